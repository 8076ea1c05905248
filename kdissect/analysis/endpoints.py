"""Addresses of brokers: which addresses answers give to clients, who connects there, and with what result.

Failed connections (a SYN that is refused, or never answered) count here too. The bytes on the wire
distinguish refused from closed connections:

* A TLS alert as the answer to a Kafka request: seven bytes that are in no Kafka frame, and no response. RFC
  8446 6: an alert is two bytes after a header of five.
* A TLS hello without an answer: the connection is TLS, and nothing came back.

Ports of KRaft controllers are known by the APIs that they offer in ApiVersions: they have no Metadata.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from kdissect.analysis.answers import KnownAnswers
from kdissect.analysis.declared import EXCHANGE, column, time_column
from kdissect.analysis.fold import OneTable, Row, least, most
from kdissect.analysis.offers_seen import Ranges, ranges_in
from kdissect.analysis.packed import packed
from kdissect.analysis.speakers import address
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.session.conversation import Connection

ADDRESS_APIS = ("Metadata", "FindCoordinator", "DescribeCluster")
_OFFERS = "ApiVersions"
_METADATA, _VOTE = 3, 52
ALERT_BYTES = 7
EVIDENCE = 4


_LISTED_BYTES = 300
"""The approximate size of an entry that a row lists."""
T = TypeVar("T")


_LISTS = ("nodes", "told_to", "told_by", "client_ids", "clients")
"""The lists of a row."""


@packed
@dataclass(slots=True)
class _Endpoint:
    told: int = 0
    nodes: set[int] = field(default_factory=set)
    told_to: set[tuple[str, str]] = field(default_factory=set)
    """The client ids and addresses that were given the endpoint."""
    told_by: set[str] = field(default_factory=set)
    told_first_ns: int | None = None
    told_last_ns: int | None = None
    has_metadata: bool = False
    has_votes: bool = False
    """Whether it offers Vote."""
    connections: int = 0
    answered: int = 0
    refused: int = 0
    silent: int = 0
    kafka: int = 0
    kafka_alerted: int = 0
    kafka_closed: int = 0
    tls: int = 0
    tls_closed: int = 0
    client_ids: set[str] = field(default_factory=set)
    clients: set[str] = field(default_factory=set)
    failed_first_ns: int | None = None
    failed_last_ns: int | None = None
    failed: list[int] = field(default_factory=list)
    exchanges: list[int] = field(default_factory=list)

    def merge(self, later: _Endpoint) -> None:
        """Add later counts. The lists are left to the statistic, which has the room for them."""
        for name in (
            *("told", "connections", "answered", "refused", "silent"),
            *("kafka", "kafka_alerted", "kafka_closed", "tls", "tls_closed"),
        ):
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.has_metadata |= later.has_metadata
        self.has_votes |= later.has_votes
        self.told_first_ns = least(self.told_first_ns, later.told_first_ns)
        self.told_last_ns = most(self.told_last_ns, later.told_last_ns)
        self.failed_first_ns = least(self.failed_first_ns, later.failed_first_ns)
        self.failed_last_ns = most(self.failed_last_ns, later.failed_last_ns)
        self.failed = sorted({*self.failed, *later.failed})[:EVIDENCE]
        self.exchanges = sorted({*self.exchanges, *later.exchanges})[:EVIDENCE]


class Endpoints(OneTable[str, _Endpoint]):
    """The statistic ``endpoints``."""

    reads_tcp = True
    apis = frozenset((*ADDRESS_APIS, _OFFERS))
    name = "endpoints"
    about = "per address of a broker: which clients learned it, which connected, and with what result"
    columns = (
        column("broker", "text", "host:port, from a response or from connections of clients"),
        column("nodes", "int64s", "ids of the brokers that have this address, according to responses"),
        column("told", "int64", "responses that contain the address"),
        column("told_to", "texts", "clients that got these responses: client id@address"),
        column("told_by", "texts", "addresses of the brokers that sent these responses"),
        time_column("told_first_ns", "time of the first such response"),
        time_column("told_last_ns", "time of the last such response"),
        column(
            "is_controllers",
            "bool",
            "whether it is a port of controllers: it offers Vote and no Metadata; null if it offered nothing",
        ),
        column("connections", "int64", "connections to it, including failed attempts"),
        column("answered", "int64", "connections on which it sent data", kept=True),
        column("refused", "int64", "connections that it refused: RST answered the SYN", kept=True),
        column("silent", "int64", "connections whose SYN nobody answered"),
        column("kafka", "int64", "connections on which it answered a Kafka request"),
        column("kafka_alerted", "int64", "connections on which it answered a Kafka request with a TLS alert"),
        column("kafka_closed", "int64", "connections that ended without an answer to any Kafka request"),
        column("tls", "int64", "connections on which it answered with TLS"),
        column("tls_closed", "int64", "connections on which it did not answer a TLS ClientHello"),
        column("client_ids", "texts", "client ids that sent requests to it"),
        column("clients", "texts", "addresses that connected to it"),
        time_column("failed_first_ns", "time of the first connection that failed in one of these ways"),
        time_column("failed_last_ns", "time of the last one"),
        column("failed", "int64s", "the first connections that failed"),
        column("exchanges", "int64s", "the first exchanges that contain the address", unit=EXCHANGE),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_Endpoint, limits)

    def _exchange(self, exchange: Exchange) -> None:
        if exchange.api == _OFFERS and exchange.response is not None:
            self._offered(exchange.broker, ranges_in(exchange, exchange.response))
        if exchange.api not in ADDRESS_APIS or exchange.request is None or exchange.response is None:
            return
        ns, number = exchange.ended_ns, exchange.number
        client = exchange.client_id or "", address(exchange.client)
        for place, node in _addresses_in(exchange, exchange.response):
            row = self._rows.row(place)
            if row is None:
                continue
            row.told += 1
            if node is not None and node >= 0:
                self._keep(row.nodes, node)
            self._keep(row.told_to, client)
            self._keep(row.told_by, exchange.broker)
            row.told_first_ns = least(row.told_first_ns, ns)
            row.told_last_ns = most(row.told_last_ns, ns)
            if len(row.exchanges) < EVIDENCE or number < row.exchanges[-1]:
                row.exchanges = sorted({*row.exchanges, number})[:EVIDENCE]

    def _offered(self, broker: str, ranges: Ranges) -> None:
        row = self._rows.row(broker) if ranges else None
        if row is not None:
            row.has_metadata |= _METADATA in ranges
            row.has_votes |= _VOTE in ranges

    def _connection(self, connection: Connection) -> None:
        row = self._rows.row(connection.broker)
        if row is None:
            return
        row.connections += 1
        self._keep(row.clients, address(connection.client))
        if connection.client_id is not None:
            self._keep(row.client_ids, connection.client_id)
        if connection.gap_bytes or not connection.opened:
            row.answered += connection.bytes_from_broker > 0
            said = connection.bytes_from_broker - connection.skipped_bytes  # an alert of TLS is skipped
            row.kafka += connection.protocol == "kafka" and said > 0
            return
        self._judge(row, connection)

    def _keep(self, among: set[T], one: T) -> None:
        """Add to the list of a row, if there is room."""
        if one in among or self.room.refuses(len(among) >= self.limits.rows):
            return
        if self.room.takes(_LISTED_BYTES):
            among.add(one)

    def merge(self, later: Self) -> None:
        super().merge(later)
        for broker, theirs in later._rows.items():
            mine = self._rows.get(broker)
            for name in _LISTS if mine is not None else ():
                among = getattr(mine, name)
                for one in sorted(getattr(theirs, name) - among):  # if memory is full, always the same ones
                    self._keep(among, one)

    @staticmethod
    def _judge(row: _Endpoint, over: Connection) -> None:
        """Count the result of a connection that was captured from its beginning to its end."""
        back, there = over.bytes_from_broker, over.bytes_to_broker
        has_ended = over.end in ("fin", "rst")
        failed = True
        row.answered += back > 0
        opening = over.tcp["opening"] if over.tcp is not None else None
        if opening == "refused":
            row.refused += 1
        elif opening == "unanswered":
            row.silent += 1
        elif over.protocol == "kafka" and there and has_ended and back and back == over.skipped_bytes:
            row.kafka_alerted += back in (ALERT_BYTES, 2 * ALERT_BYTES)
        elif over.protocol == "kafka" and there and has_ended and not back:
            row.kafka_closed += 1
        elif over.protocol == "tls" and has_ended and not back:
            row.tls_closed += 1
        else:
            failed = False
            row.kafka += over.protocol == "kafka" and back > 0
            row.tls += (over.protocol == "tls" or over.tls is not None) and back > 2 * ALERT_BYTES
        if failed:
            row.failed_first_ns = least(row.failed_first_ns, over.start_ns)
            row.failed_last_ns = most(row.failed_last_ns, over.start_ns)
            row.failed = sorted({*row.failed, over.connection})[:EVIDENCE]

    def result(self) -> list[Row]:
        return [_result(name, row) for name, row in sorted(self._rows.rows.items())]


def _addresses(answer: dict[str, Any]) -> tuple[tuple[str, int | None], ...]:
    """The addresses in an answer, each with its node."""
    found: list[tuple[str, int | None]] = []
    for each in answer.get("brokers") or answer.get("coordinators") or [answer]:
        host, port, node = each.get("host"), each.get("port", -1), each.get("nodeId", each.get("brokerId"))
        if host and isinstance(host, str) and port > 0:
            found.append((f"[{host}]:{port}" if ":" in host else f"{host}:{port}", node))
    return tuple(found)


_addresses_in = KnownAnswers(_addresses).of


def _result(name: str, row: _Endpoint) -> Row:
    return {
        "broker": name,
        "nodes": sorted(row.nodes),
        "told": row.told,
        "told_to": sorted(f"{client_id}@{client}" for client_id, client in row.told_to),
        "told_by": sorted(row.told_by),
        "told_first_ns": row.told_first_ns,
        "told_last_ns": row.told_last_ns,
        "is_controllers": not row.has_metadata if row.has_metadata or row.has_votes else None,
        "connections": row.connections,
        "answered": row.answered,
        "refused": row.refused,
        "silent": row.silent,
        "kafka": row.kafka,
        "kafka_alerted": row.kafka_alerted,
        "kafka_closed": row.kafka_closed,
        "tls": row.tls,
        "tls_closed": row.tls_closed,
        "client_ids": sorted(row.client_ids),
        "clients": sorted(row.clients),
        "failed_first_ns": row.failed_first_ns,
        "failed_last_ns": row.failed_last_ns,
        "failed": row.failed,
        "exchanges": row.exchanges,
    }
