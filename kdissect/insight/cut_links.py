"""Connections that a broken link cut off, grouped by link."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.speakers import address
from kdissect.analysis.tcp import Tcp
from kdissect.insight.finding import FindingSubject
from kdissect.insight.nodes import NodeNames, nodes_by_address
from kdissect.insight.rule import Facts

OUTAGE = "network-outage"


class CutLink(NamedTuple):
    """Connections that one broken link cut off at the same time."""

    subject: FindingSubject
    """The client that is cut off. For several clients: the broker whose machine or port they cannot reach, or
    the host that they run on, with the client id that was cut off first."""
    rows: list[Row]
    """Rows of :class:`~kdissect.analysis.tcp.Tcp`, in the order in which the connections were cut off."""

    @property
    def from_ns(self) -> int:
        """When the first connection was cut off."""
        return min(int(row["outage_from_ns"]) for row in self.rows)

    @property
    def to_ns(self) -> int:
        """When the last connection got through again."""
        return max(_end_ns(row) for row in self.rows)

    @property
    def longest_ns(self) -> int:
        """The longest time that one of the connections was cut off."""
        return max(int(row["outage_ns"]) for row in self.rows)

    @property
    def client_ids(self) -> tuple[str, ...]:
        """The client ids of the connections that were cut off."""
        return tuple(sorted({row["client_id"] for row in self.rows if row["client_id"]}))

    def is_of(self, client_id: str, from_ns: int, to_ns: int) -> bool:
        """Whether a client was cut off for some of this time."""
        return any(
            row["client_id"] == client_id and row["outage_from_ns"] <= to_ns and from_ns <= _end_ns(row)
            for row in self.rows
        )

    def may_be_cut(self, row: Row) -> bool:
        """Whether a connection belongs to one of the same clients and takes the same link."""
        return any(
            _client_name(row) == _client_name(each) and _hosts(row) == _hosts(each) for each in self.rows
        )


def cut_links(facts: Facts) -> list[CutLink]:
    """The broken links, one for each outage, with the connections that each cut off. A host is the broken end
    if connections from it to several other hosts were cut off at the same time. The rule needs
    :class:`~kdissect.analysis.tcp.Tcp` and :class:`~kdissect.analysis.cluster.ClusterBrokers`."""
    least_ns = facts.limit_of(OUTAGE, "outage_s") * SECOND
    cut = [row for row in facts.rows(Tcp) if row["outage_from_ns"] is not None and row["exchanges"]]
    cut = sorted((row for row in cut if row["outage_ns"] >= least_ns), key=_order)
    nodes = facts.rows(ClusterBrokers)
    return [
        CutLink(_subject(host, rows, nodes), rows) for some in _at_once(cut) for host, rows in _by_host(some)
    ]


def _order(row: Row) -> tuple[int, str, int]:
    return row["outage_from_ns"], row["client_id"] or "", row["connection"]


def _end_ns(row: Row) -> int:
    return int(row["outage_from_ns"] + row["outage_ns"])


def _hosts(row: Row) -> tuple[str, str]:
    return address(row["client"]), address(row["broker"])


def _client_name(row: Row) -> str:
    return row["client_id"] or address(row["client"])


def _at_once(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in the order of time, grouped where their times overlap."""
    some: list[Row] = []
    until_ns = 0
    for row in rows:
        if some and row["outage_from_ns"] > until_ns:
            yield some
            some = []
        until_ns = max(until_ns, _end_ns(row)) if some else _end_ns(row)
        some.append(row)
    if some:
        yield some


def _by_host(rows: list[Row]) -> Iterator[tuple[str | None, list[Row]]]:
    """The connections that were cut off together, each group with the host that was cut off: the host that
    lost contact with most others. Connections on one host use no link, so they are grouped apart."""
    yield from _on_one_host([row for row in rows if len(set(_hosts(row))) == 1])
    left = [row for row in rows if len(set(_hosts(row))) == 2]
    while left:
        others: dict[str, set[str]] = defaultdict(set)
        for here, there in map(_hosts, left):
            others[here].add(there)
            others[there].add(here)
        asking = {address(row["client"]) for row in left}
        host = min(others, key=lambda each: (-len(others[each]), each not in asking, each))
        yield host, [row for row in left if host in _hosts(row)]
        left = [row for row in left if host not in _hosts(row)]


def _on_one_host(left: list[Row]) -> Iterator[tuple[str | None, list[Row]]]:
    """The connections whose ends are on one host, grouped by the client or the port that lost contact with
    most others. The host of a client is None here, that of a port its own."""
    while left:
        ports: dict[str, set[str]] = defaultdict(set)
        clients: dict[str, set[str]] = defaultdict(set)
        for row in left:
            ports[_client_name(row)].add(row["broker"])
            clients[row["broker"]].add(_client_name(row))
        client = max(ports, key=lambda each: len(ports[each]))
        port = max(clients, key=lambda each: len(clients[each]))
        is_port = len(clients[port]) > len(ports[client])
        own = [row for row in left if (row["broker"] == port if is_port else _client_name(row) == client)]
        yield (address(port) if is_port else None), own
        left = [row for row in left if row not in own]


def _subject(host: str | None, rows: list[Row], told: list[Row]) -> FindingSubject:
    first = rows[0]
    hosts = {address(row["client"]) for row in rows}
    clients = set(map(_client_name, rows))
    if len(clients) == 1 and len(hosts) == 1:
        client_id = first["client_id"]
        return FindingSubject(client_id=client_id, client=None if client_id else address(first["client"]))
    places = {row["broker"] for row in rows if address(row["broker"]) == host}
    known = {place: node for place, node in nodes_by_address(told).items() if address(place) == host}
    if len(hosts | {address(row["broker"]) for row in rows}) == 1:
        known = {place: node for place, node in known.items() if place in places}
    if len({node.number for node in known.values()}) == 1:
        place, node = min(known.items())
        return FindingSubject(broker=NodeNames(told).at(node, place))
    if places:
        return FindingSubject(broker=min(places) if len(places) == 1 else host)
    return FindingSubject(client_id=first["client_id"], client=host)
