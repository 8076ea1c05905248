"""Which node of which cluster is at an address."""

from __future__ import annotations

from typing import NamedTuple

from kdissect.analysis.fold import Row


class ClusterNode(NamedTuple):
    """A node. Nodes of several clusters may have the same number."""

    number: int
    clusters: frozenset[str | None]
    """The clusters that tell of it, by their ids; None stands for one whose id is not told."""

    def is_also(self, other: ClusterNode | None) -> bool:
        """Whether the other is this node, too."""
        same = other is not None and other.number == self.number
        return same and other is not None and not self.clusters.isdisjoint(other.clusters)

    def has_told(self, row: Row) -> bool:
        """Whether a row of a table of clusters is of the node's own cluster."""
        return row["cluster_id"] in self.clusters


def addresses_of(row: Row) -> list[str]:
    """The addresses of a node that the cluster tells. ``localhost`` is this machine's own."""
    hosts = ("127.0.0.1", "[::1]") if row["host"] == "localhost" else (row["host"],)
    places = (f"[{host}]" if ":" in host and not host.startswith("[") else host for host in hosts)
    return [f"{place}:{row['port']}" for place in places]


def nodes_by_address(rows: list[Row]) -> dict[str, ClusterNode]:
    """Which node is at an address, by the rows of :class:`ClusterBrokers`. An address that nodes with several
    numbers have had is left out."""
    found: dict[str, set[tuple[int, str | None]]] = {}
    for row in rows:
        for place in addresses_of(row):
            found.setdefault(place, set()).add((row["node_id"], row["cluster_id"]))
    return {
        address: ClusterNode(next(iter(told))[0], frozenset(cluster for _, cluster in told))
        for address, told in found.items()
        if len({number for number, _ in told}) == 1
    }
