"""Which node of which cluster is at an address, and its name in findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from kdissect.analysis.clusters import addresses_of as addresses_told
from kdissect.analysis.fold import Row


class ClusterNode(NamedTuple):
    """A node. Nodes of several clusters may have the same number."""

    number: int
    clusters: frozenset[str | None]
    """The ids of the clusters that tell of it; None stands for a cluster without a known id."""

    def is_also(self, other: ClusterNode | None) -> bool:
        """Whether the other is the same node."""
        if other is None or other.number != self.number:
            return False
        return not self.named_clusters.isdisjoint(other.named_clusters)

    @property
    def named_clusters(self) -> frozenset[str | None]:
        """The clusters with known ids; None alone if no id is known."""
        return self.clusters - {None} or self.clusters

    def is_source_of(self, row: Row) -> bool:
        """Whether a row of a table of clusters comes from the node's own cluster."""
        return row["cluster_id"] in self.clusters

    def is_of(self, row: Row) -> bool:
        """Whether a row of a table of clusters is about this node."""
        return row["node_id"] == self.number and self.is_source_of(row)

    def may_meet(self, other: ClusterNode | None) -> bool:
        """Whether the other may belong to the same cluster."""
        if other is None or None in self.named_clusters | other.named_clusters:
            return True
        return not self.named_clusters.isdisjoint(other.named_clusters)


class NodeNames:
    """Names of nodes in findings: their numbers. If several clusters have a node of the same number, each
    such node is named by its address, so that no finding mixes two brokers.

    :param rows: rows of :class:`ClusterBrokers`.
    """

    def __init__(self, rows: list[Row]) -> None:
        self._addresses: dict[tuple[int, str | None], str] = {}
        clusters: dict[int, set[str]] = {}
        for row in rows:
            self._addresses.setdefault((row["node_id"], row["cluster_id"]), addresses_of(row)[0])
            if row["cluster_id"] is not None:
                clusters.setdefault(row["node_id"], set()).add(row["cluster_id"])
        self._shared = frozenset(node for node, found in clusters.items() if len(found) > 1)

    def of(self, node: int, cluster: str | None) -> str:
        """The number or the address of a node."""
        return self._addresses.get((node, cluster), str(node)) if self.are_several(node) else str(node)

    def at(self, place: ClusterNode, address: str) -> str:
        """The name of the node at an address. A node with several addresses is named by the first."""
        (cluster, *more) = place.named_clusters
        return address if more and self.are_several(place.number) else self.of(place.number, cluster)

    def are_several(self, node: int) -> bool:
        """Whether several clusters have a node of this number."""
        return node in self._shared


_FETCHER = re.compile(r"broker-(\d+)-fetcher-\d+")
"""Client ids of Kafka's ReplicaFetcherThread."""


def follower_of(client_id: str | None) -> int | None:
    """The node that replicates under this client id; None if it is not a follower's."""
    found = _FETCHER.fullmatch(client_id) if client_id is not None else None
    return None if found is None else int(found[1])


def are_several_clusters(rows: Iterable[Row]) -> bool:
    """Whether a capture shows more than one cluster.

    :param rows: rows of :class:`ClusterBrokers`.
    """
    return len({row["cluster_id"] for row in rows} - {None}) > 1


def names_of_several(rows: Iterable[Row], name: str, nodes: dict[str, ClusterNode]) -> frozenset[str]:
    """Names, such as those of groups, that several clusters use.

    :param rows: each with the ``broker`` that was asked.
    :param name: the column with the name.
    """
    places: dict[str, list[ClusterNode]] = {}
    for row in rows:
        node = nodes.get(row["broker"])
        if row[name] is not None and node is not None:
            places.setdefault(row[name], []).append(node)
    return frozenset(
        each
        for each, found in places.items()
        if any(not one.may_meet(other) for one, other in combinations(set(found), 2))
    )


def read_elsewhere(positions: Iterable[Row], brokers: Sequence[Row]) -> frozenset[str]:
    """Groups that read a partition at the same time from a broker that a cluster lists and from one that no
    cluster lists. A group of one cluster does not: a partition has one reader, who may move with it to
    another broker. So the latter may belong to an unknown cluster that has a group of the same name. It
    served records after the first list came: one that served none after that may just have stopped before.

    :param positions: rows of :class:`Positions`.
    :param brokers: rows of :class:`ClusterBrokers`.
    """
    listed = {address for row in brokers for address in addresses_of(row)}
    told_ns = min((row["from_ns"] for row in brokers if row["from_ns"] is not None), default=None)
    inside: dict[tuple[str, str | None, int | None], tuple[int, int]] = {}
    outside: dict[tuple[str, str | None, int | None], tuple[int, int]] = {}
    for row in positions if told_ns is not None else ():
        group, first_ns, last_ns = row["group"], row["first_ns"], row["last_ns"]
        if group is None or first_ns is None:
            continue
        is_listed = row["broker"] in listed
        if is_listed or last_ns > told_ns:
            spans = inside if is_listed else outside
            key = group, row["topic"], row["partition"]
            begin, end = spans.get(key, (first_ns, last_ns))
            spans[key] = min(begin, first_ns), max(end, last_ns)
    return frozenset(
        key[0]
        for key, (begin, end) in outside.items()
        if key in inside and begin <= inside[key][1] and inside[key][0] <= end
    )


def addresses_of(row: Row) -> list[str]:
    """The addresses of a node, as the cluster tells them."""
    return addresses_told(row["host"], row["port"])


def nodes_by_address(rows: list[Row]) -> dict[str, ClusterNode]:
    """The node at each address, by the rows of :class:`ClusterBrokers`. An address that several node ids have
    used is left out."""
    found: dict[str, set[tuple[int, str | None]]] = {}
    for row in rows:
        for place in addresses_of(row):
            found.setdefault(place, set()).add((row["node_id"], row["cluster_id"]))
    return {
        address: ClusterNode(next(iter(told))[0], frozenset(cluster for _, cluster in told))
        for address, told in found.items()
        if len({number for number, _ in told}) == 1
    }


def by_node(each: tuple[tuple[Any, ...], list[Row]]) -> tuple[Any, str]:
    """The sort key that orders groups of rows by node, then by cluster.

    :param each: a tuple of node, cluster and more, with its rows.
    """
    (node, cluster, *_), _ = each
    return node, cluster or ""
