"""Clients, topics, groups and brokers, and the flows between them.

``client produces topic``, ``client fetches topic``, ``client member-of group``, ``client commits group``,
``group commits topic``, ``client administers topic`` (or the requested broker, for requests without a topic),
``broker replicates topic``. Requests between brokers are left out, except replication.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from kdissect.analysis.batches import Batches
from kdissect.analysis.clusters import Clusters, NameAt
from kdissect.analysis.counters import Span
from kdissect.analysis.declared import CLIENT_ID_COLUMN, column, first_and_last
from kdissect.analysis.fold import Batched, Row, Statistic
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.packed import packed
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import record_sets, topics_of
from kdissect.analysis.speakers import address
from kdissect.analysis.topics import replica_id
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.traits import traits_of_api

CLIENT, TOPIC, GROUP, BROKER = ("client", "topic", "group", "broker")
PRODUCES, FETCHES, COMMITS = ("produces", "fetches", "commits")
MEMBER_OF, ADMINISTERS, REPLICATES = ("member-of", "administers", "replicates")
RELATIONS = (PRODUCES, FETCHES, COMMITS, MEMBER_OF, ADMINISTERS, REPLICATES)
_NAMING = ("ApiVersions", "SaslHandshake")
"""APIs that tell a client's names."""
_CARRIERS = ("Produce", "Fetch", "ShareFetch")
_COMMITTERS = ("OffsetCommit", "TxnOffsetCommit")
_MEMBERS = (
    "JoinGroup",
    "SyncGroup",
    "Heartbeat",
    "ConsumerGroupHeartbeat",
    "ShareGroupHeartbeat",
    "StreamsGroupHeartbeat",
)


class _Edge(NamedTuple):
    """One thing, its action, and the other thing; topics as the wire names them."""

    source: str | Topic
    source_kind: str
    target: str | Topic
    target_kind: str
    relation: str
    client_id: str | None
    principal: str | None
    host: str


_Edges = list[tuple[_Edge, Batches | None]]
_NO_EDGES: _Edges = []
"""Do not change it."""
_MOST_KNOWN = 256
"""The most edges that are remembered at a time."""
_NAMED_BYTES = 400
"""The approximate size of what is kept for a connection."""


class _EdgeFlow:
    """What flowed, over one connection."""

    __slots__ = ("broker", "bytes", "encrypted", "exchanges", "records", "span")

    def __init__(self) -> None:
        self.broker = ""
        """Where the connection leads."""
        self.exchanges = 0
        self.records: int | None = None
        self.bytes: int | None = None
        self.encrypted = True
        self.span = Span()

    def add(self, exchange: Exchange, batches: Batches | None) -> None:
        """Count an exchange, with its records of a topic if it has any."""
        self.exchanges += 1
        self.encrypted = self.encrypted and exchange.is_encrypted
        self.span.cover(exchange)
        if batches is not None:
            self.records = (self.records or 0) + batches.records
            self.bytes = (self.bytes or 0) + batches.set_bytes

    def merge(self, later: _EdgeFlow) -> None:
        self.broker = self.broker or later.broker
        self.exchanges += later.exchanges
        self.records = _sum(self.records, later.records)
        self.bytes = _sum(self.bytes, later.bytes)
        self.encrypted = self.encrypted and later.encrypted
        self.span.merge(later.span)


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other


@packed
@dataclass(slots=True)
class _ClientNames:
    """The client's names on a connection."""

    software: str | None = None
    mechanism: str | None = None

    def merge(self, later: _ClientNames) -> None:
        self.software = later.software or self.software
        self.mechanism = later.mechanism or self.mechanism


class Graph(Batched, Statistic):
    """The statistic ``graph``: a row for each pair of things and each action of one on the other."""

    name = "graph"
    about = "clients, topics, groups and brokers, and what flows between them"
    columns = (
        column("from", "text", "the source: a client id or address, a group, or the id of a broker"),
        column("from_kind", "text", ", ".join((CLIENT, GROUP, BROKER))),
        column("to", "text", "the target: a topic, a group, or the id of a broker"),
        column("to_kind", "text", ", ".join((TOPIC, GROUP, BROKER))),
        column("relation", "text", ", ".join(RELATIONS)),
        column(
            "cluster_id",
            "text",
            "id of the target's cluster, or of the only cluster that the capture shows; null if it is "
            "unknown. Things of the same name in several clusters have rows of their own",
            apart=True,
        ),
        CLIENT_ID_COLUMN,
        column("software", "text", "name and version of the client, from ApiVersions (KIP-511)"),
        column("principal", "text", "user of the connections, from the login"),
        column("host", "text", "address of the client"),
        column("connections", "int64", "connections that carried it"),
        column("exchanges", "int64", "requests"),
        column("records", "int64", "records that were sent or fetched; null if records cannot be counted"),
        column("bytes", "int64", "bytes of their record sets"),
        column("bytes_per_s", "float64", "these bytes per second, from the first request to the last"),
        *first_and_last("request"),
        column("encrypted", "bool", "whether all of it was inside TLS"),
        column("authenticated", "text", "the SASL mechanism of the login; null if no login was seen"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self.latest.keep_clusters(Clusters(self.room))
        self._labels = Labels(self.latest, limits)
        self._named: Rows[int, _ClientNames] = Rows(_ClientNames, self.room, _NAMED_BYTES)
        self._flows: Rows[tuple[int, _Edge], _EdgeFlow] = Rows(_EdgeFlow, self.room)
        self._known: dict[tuple[Any, ...], _Edge] = {}
        """Recent edges, by their parts."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _count(exchanges, self)

    def _other(self, exchange: Exchange) -> None:
        if exchange.request is not None and exchange.api in _NAMING:
            self._learn(exchange, exchange.request.body())

    def _learn(self, exchange: Exchange, body: dict[str, Any]) -> None:
        named = self._named.row(exchange.connection)
        if named is None:
            return
        if exchange.api == "SaslHandshake":
            named.mechanism = body.get("mechanism") or named.mechanism
        elif body.get("clientSoftwareName"):
            version = body.get("clientSoftwareVersion") or ""
            named.software = f"{body['clientSoftwareName']} {version}".strip()

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        self._named.merge(later._named)
        self._flows.merge(later._flows)

    @property
    def left_out(self) -> int:
        return self._named.left_out + self._flows.left_out

    def result(self) -> list[Row]:
        self._labels.resolve_names()
        flows: dict[tuple[_Edge, str, str, str], tuple[_EdgeFlow, set[int]]] = {}
        every = [
            (connection, self._named_edge(edge), flow)
            for (connection, edge), flow in self._flows.rows.items()
        ]
        apart = self.latest.clusters.apart(_name_at(edge, flow) for _, edge, flow in every)
        for connection, edge, flow in every:
            named = self._named.rows.get(connection, _ClientNames())
            key = edge, apart[_name_at(edge, flow)].at, named.software or "", named.mechanism or ""
            whole, connections = flows.setdefault(key, (_EdgeFlow(), set()))
            whole.merge(flow)
            connections.add(connection)
        rows = [_result(*key, flow, len(over)) for key, (flow, over) in flows.items()]
        return sorted(rows, key=_order)

    def _named_edge(self, edge: _Edge) -> _Edge:
        """The edge with the name of its topic."""
        if not isinstance(edge.target, Topic):
            return edge
        return edge._replace(target=self._labels.name(edge.target) or "")


def _count(exchanges: list[Exchange], graph: Graph) -> None:
    """Count exchanges."""
    flows = graph._flows
    for exchange in exchanges:
        request = exchange.request
        if request is None:
            continue
        api = exchange._api() or ""
        if api in _NAMING:
            graph._learn(exchange, request.body())
        for edge, batches in _edges(exchange, api, graph):
            flow = flows.row((exchange.connection, edge))
            if flow is not None:
                if not flow.exchanges:
                    flow.broker = graph.latest.clusters.at(exchange)
                flow.add(exchange, batches)


def _edge(exchange: Exchange, target: str | Topic, kind: str, relation: str, graph: Graph) -> _Edge:
    client, client_id, principal = exchange._client_address(), exchange._client_id(), exchange.principal
    made_of = client, client_id, principal, target, relation
    known = graph._known
    edge = known.get(made_of)
    if edge is None:
        host = address(client)
        edge = _Edge(client_id or host, CLIENT, target, kind, relation, client_id, principal, host)
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[made_of] = edge
    return edge


def _edges(exchange: Exchange, api: str, graph: Graph) -> _Edges:
    """What an exchange does, with the records that it carries."""
    if api in _CARRIERS:
        return _records(exchange, api, graph)
    if api in _MEMBERS or api in _COMMITTERS:
        return _group(exchange, api, graph)
    return _administered(exchange, graph) if traits_of_api(api).administers else _NO_EDGES


def _records(exchange: Exchange, api: str, graph: Graph) -> _Edges:
    sets = record_sets(exchange, graph.limits)
    if not sets:
        return _NO_EDGES
    found: dict[Topic, Batches] = {}
    labels = graph._labels
    asked = exchange.request if api == "Produce" else exchange.response
    for each in sets:
        place = each.place
        if place.message is asked:
            topic = labels.topic(place.topic, None if place.topic else place.topic_id)
            if topic in found:
                both = Batches()
                both.merge(found[topic])
                both.merge(each.batches)
                found[topic] = both
            else:
                found[topic] = each.batches  # nobody changes it
    follower = replica_id(exchange) if api == "Fetch" else -1
    if follower >= 0:
        who, host = exchange._client_id(), address(exchange._client_address())
        return [
            (_Edge(str(follower), BROKER, topic, TOPIC, REPLICATES, who, None, host), batches)
            for topic, batches in found.items()
        ]
    relation = PRODUCES if api == "Produce" else FETCHES
    return [(_edge(exchange, topic, TOPIC, relation, graph), batches) for topic, batches in found.items()]


def _group(exchange: Exchange, api: str, graph: Graph) -> _Edges:
    assert exchange.request is not None
    request = exchange.request.body()
    group = request.get("groupId")
    if not group:
        return _NO_EDGES
    if api in _MEMBERS:
        return [(_edge(exchange, group, GROUP, MEMBER_OF, graph), None)]
    out: _Edges = [(_edge(exchange, group, GROUP, COMMITS, graph), None)]
    for topic in request.get("topics") or ():
        name, topic_id = topic.get("name"), topic.get("topicId")
        label = graph._labels.topic(name, None if name else topic_id)
        if label != NOWHERE:
            edge = _edge(exchange, label, TOPIC, COMMITS, graph)
            out.append((edge._replace(source=group, source_kind=GROUP), None))
    return out


def _administered(exchange: Exchange, graph: Graph) -> _Edges:
    if traits_of_api(exchange._api()).between_brokers:
        return _NO_EDGES
    topics = topics_of(exchange)
    if not topics:
        return [(_edge(exchange, exchange._broker_address(), BROKER, ADMINISTERS, graph), None)]
    return [(_edge(exchange, Topic(topic, ""), TOPIC, ADMINISTERS, graph), None) for topic in topics]


def _name_at(edge: _Edge, flow: _EdgeFlow) -> NameAt:
    """The target at its broker. A group may have the name of a topic."""
    return NameAt(f"{edge.target_kind} {edge.target}", flow.broker)


NOWHERE = Topic("", "")


def _order(row: Row) -> tuple[str, ...]:
    names = (
        "from_kind",
        "from",
        "relation",
        "to_kind",
        "to",
        "host",
        "principal",
        "software",
        "authenticated",
        "cluster_id",
    )
    return tuple(row[name] or "" for name in names)


def _result(
    edge: _Edge, cluster: str, software: str, mechanism: str, flow: _EdgeFlow, connections: int
) -> Row:
    return {
        "from": edge.source,
        "from_kind": edge.source_kind,
        "to": edge.target,
        "to_kind": edge.target_kind,
        "relation": edge.relation,
        "cluster_id": cluster or None,
        "client_id": edge.client_id,
        "software": software or None,
        "principal": edge.principal,
        "host": edge.host,
        "connections": connections,
        "exchanges": flow.exchanges,
        "records": flow.records,
        "bytes": flow.bytes,
        "bytes_per_s": None if flow.bytes is None else flow.span.rate(flow.bytes),
        "first_ns": flow.span.first_ns,
        "last_ns": flow.span.last_ns,
        "encrypted": flow.encrypted,
        "authenticated": mechanism or None,
    }
