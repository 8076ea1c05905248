"""Connections below Kafka: round trips, the options of both ends, windows, losses, and the end that closed.

The facts are gathered while the segments pass (:mod:`kdissect.tcp.facts`) and come with the row of an ended
connection. Its exchanges show when it was ready for use, and which of them a late retransmission hit.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.declared import (
    BROKER_COLUMN,
    CLIENT_COLUMN,
    CLIENT_ID_COLUMN,
    EXCHANGE,
    Declared,
    column,
    first_and_last,
)
from kdissect.analysis.fold import MILLISECOND, SECOND, Batched, OneTable, Row, least, most
from kdissect.analysis.rows import Rows
from kdissect.analysis.waits import asked_wait, is_long_poll, waits_for_members
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Request, Response, Token
from kdissect.session.conversation import Connection

_MAKES_READY = ("ApiVersions", "SaslHandshake", "SaslAuthenticate", "SaslToken")
"""The requests of a client before it uses a connection."""
_LOGIN = _MAKES_READY[1:]
SLOW_NS = 200 * MILLISECOND
"""An exchange that was hit by a retransmission after such a delay took longer than this."""
MOST_SLOW = 32
"""The most of them that are remembered for a connection, the longest first."""
MOST_HIT = 8
LARGE_BYTES = 256 << 10
"""The smallest messages that are used to measure the speed of transfers."""
_LARGE_BYTES = LARGE_BYTES
SLOW_BYTES_PER_S = 2_000_000
_MEMBER_BEATS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")


def _each_end(name: str, kind: str, meaning: str, rare: bool = False) -> tuple[Declared, ...]:
    """A column for the client and one for the broker; ``{}`` in the meaning is replaced by the end."""
    return tuple(
        column(name.format(end), kind, meaning.format(f"the {end}"), rare=rare)
        for end in ("client", "broker")
    )


_FACTS: tuple[Declared, ...] = (
    column("opening", "text", "result of its SYN: answered, refused or unanswered; null without a SYN"),
    column("syns", "int32", "attempts to open the connection"),
    *_each_end("syn_rtt_{}_ns", "int64", "round trip of the handshake between capture point and {}"),
    *_each_end("rtt_{}_ns", "int64", "smallest round trip between capture point and {}"),
    column("rtt_min_ns", "int64", "smallest round trip between client and broker (the sum of both parts)"),
    column(
        "rtt_p50_ns",
        "int64",
        "median round trip between client and broker, including acknowledgements that a receiver delays "
        "(up to 40 ms and more)",
    ),
    column(
        "captured_near",
        "text",
        "where the capture was taken, by the round trips: near the client, near the broker or between; "
        "null if unknown",
    ),
    *_each_end("wscale_{}", "int16", "window scale that {} offers in its SYN; null without it"),
    *_each_end("mss_{}", "int32", "largest segment that {} accepts, from its SYN"),
    column("sack", "bool", "whether both ends offer selective acknowledgements; null if a SYN is missing"),
    column("timestamps", "bool", "whether both ends offer timestamps; null if a SYN is missing"),
    *_each_end("window_max_{}", "int64", "largest window of {}, bytes; null if a SYN is missing"),
    *_each_end("zero_window_{}_count", "int32", "how often {} announced a zero window", rare=True),
    *_each_end("zero_window_{}_ns", "int64", "total time with that zero window", rare=True),
    *_each_end("zero_window_{}_max_ns", "int64", "longest time with that zero window", rare=True),
    column(
        "lost_to_broker",
        "int32",
        "lost segments of the client, which it sent again",
        rare=True,
    ),
    column("lost_to_client", "int32", "lost segments of the broker, which it sent again", rare=True),
    column(
        "retransmitted_segments",
        "int32",
        "retransmitted segments of both ends, without those that the receiver already had",
        rare=True,
    ),
    column("rto_like", "int32", "retransmissions that closed a gap of 200 ms or more", rare=True),
    column("rto_packets", "int64s", "packets of the first 8 of these retransmissions"),
    column(
        "outage_ns",
        "int64",
        "longest time in which bytes were sent again and nothing was acknowledged",
        rare=True,
    ),
    column("outage_from_ns", "int64", "when that time began, ns since the epoch", unit="time"),
    column("closed_by", "text", "end that closed the connection first: client or broker; null if unknown"),
    column("reset_by", "text", "end that reset the connection: client or broker; null without a reset"),
    column("handshake_ns", "int64", "from the first SYN until the client acknowledged the broker's SYN"),
)

_NAMES = tuple(each.name for each in _FACTS)


class _ConnectionTcp:
    __slots__ = (
        *("answered", "client_id", "exchanges", "first_ns", "large", "last", "left_ns", "login_ns"),
        *("over", "prepared_ns", "ready_ns", "slow", "slow_large", "waiting"),
    )

    def __init__(self) -> None:
        self.over: Connection | None = None
        self.client_id: str | None = None
        self.ready_ns: int | None = None
        """When the first request began after the preparation of the connection."""
        self.prepared_ns: int | None = None
        """When the last answer to the preparation came: versions, and the login."""
        self.first_ns: int | None = None
        """When the first request of any kind began."""
        self.login_ns = 0
        self.exchanges = 0
        self.slow: list[tuple[int, int, int, int]] = []
        """The longest exchanges: minus the duration, number, begin and end."""
        self.waiting: list[tuple[int, int, int, str, int]] = []
        """Requests that waited when it was closed: the time, the number, the allowed wait (ns), the API, the
        size that they announce; the oldest ones."""
        self.answered: set[str] = set()
        """APIs with answered requests."""
        self.left_ns: int | None = None
        """When its client last left a group."""
        self.last: tuple[int, int, str, str] | None = None
        """The exchange with the latest message: the time, its number, its API, the reason for a missing
        side."""
        self.large = 0
        """The number of messages of :data:`LARGE_BYTES` and more."""
        self.slow_large: list[tuple[float, int, int]] = []
        """The slowest of them: bytes per second, duration, the exchange's number."""

    def add(self, exchange: Exchange) -> None:
        """Count an exchange."""
        self.exchanges += 1
        api, number = exchange._api() or "", exchange.number
        request, response = exchange.request, exchange.response
        last = exchange._ended(), number, api, exchange.missing or ""
        if self.last is None or last > self.last:
            self.last = last
        if exchange._client_id() is not None:
            self.client_id = exchange._client_id()
        if request is not None and request.frame.size >= _LARGE_BYTES:
            self._carried(number, request)
        if response is not None and response.frame.size >= _LARGE_BYTES:
            self._carried(number, response)
        if request is None:
            return
        frame = request.frame
        if response is None and exchange.missing == "connection closed":
            waits = _may_wait_ns(exchange)
            if waits is not None:
                waiting = frame.last_ns, number, waits, api, frame.size
                self.waiting = sorted([*self.waiting, waiting])[:MOST_SLOW]
        if _leaves(exchange, api):
            self.left_ns = most(self.left_ns, frame.last_ns)
        begin_ns = int(frame.first_ns)
        if self.first_ns is None or begin_ns < self.first_ns:
            self.first_ns = begin_ns
        if self.ready_ns is None or begin_ns < self.ready_ns:
            if api not in _MAKES_READY:
                self.ready_ns = begin_ns
            else:
                if response is not None:
                    self.prepared_ns = most(self.prepared_ns, int(response.frame.last_ns))
                if api in _LOGIN:
                    self.login_ns += exchange._latency() or 0
        if response is not None:
            self.answered.add(api)
            end_ns = int(response.frame.last_ns)
            if end_ns - begin_ns >= SLOW_NS:
                slow = begin_ns - end_ns, number, begin_ns, end_ns
                self.slow = sorted([*self.slow, slow])[:MOST_SLOW]

    def _carried(self, number: int, message: Request | Response | Token) -> None:
        """Count a large message of an exchange."""
        if message.is_cut:
            return
        self.large += 1
        took_ns = int(message.frame.last_ns) - int(message.frame.first_ns)
        if took_ns > 0 and message.frame.size * SECOND / took_ns < SLOW_BYTES_PER_S:
            slow = (round(message.frame.size * SECOND / took_ns, 1), took_ns, number)
            self.slow_large = sorted([*self.slow_large, slow])[:MOST_SLOW]

    def merge(self, later: _ConnectionTcp) -> None:
        self.over = later.over or self.over
        self.client_id = later.client_id if later.client_id is not None else self.client_id
        if self.ready_ns is None:
            self.prepared_ns = most(self.prepared_ns, later.prepared_ns)
        self.ready_ns = least(self.ready_ns, later.ready_ns)
        self.first_ns = least(self.first_ns, later.first_ns)
        self.login_ns += later.login_ns
        self.exchanges += later.exchanges
        self.slow = sorted(self.slow + later.slow)[:MOST_SLOW]
        self.waiting = sorted(self.waiting + later.waiting)[:MOST_SLOW]
        self.answered |= later.answered
        self.left_ns = most(self.left_ns, later.left_ns)
        if later.last is not None and (self.last is None or later.last > self.last):
            self.last = later.last
        self.large += later.large
        self.slow_large = sorted(self.slow_large + later.slow_large)[:MOST_SLOW]


class Tcp(Batched, OneTable[int, _ConnectionTcp]):
    """The statistic ``tcp``: a row for each connection that speaks Kafka or TLS, or that failed to open."""

    reads_tcp = True
    name = "tcp"
    about = "handshakes, round trips, windows, losses"
    row_bytes = 3_700
    columns = (
        column("connection", "int64", "0, 1, … by the first packet (Wireshark's tcp.stream)"),
        CLIENT_COLUMN,
        BROKER_COLUMN,
        CLIENT_ID_COLUMN,
        *_FACTS,
        column("login_ns", "int64", "time of the login's exchanges"),
        column(
            "setup_ns",
            "int64",
            "from the first SYN until ApiVersions and login are answered, or to the first other request "
            "if that comes before; null without the SYN",
        ),
        column(
            "waiting_exchanges",
            "int64s",
            "requests that waited when one end closed the connection, at most 8",
            unit=EXCHANGE,
        ),
        column("waiting_apis", "texts", "APIs of the requests that waited"),
        column(
            "waiting_bytes",
            "int64",
            "bytes that the largest of them announces, whether or not all were sent",
            unit="bytes",
        ),
        column(
            "waiting_ns",
            "int64",
            "age of the oldest request that waited; for a long poll, since the end of its own wait",
        ),
        column("answered_apis", "texts", "APIs whose requests were answered"),
        column(
            "closed_ns", "int64", "when the first end closed the connection, ns since the epoch", unit="time"
        ),
        column("left_ns", "int64", "when its client last left a group, ns since the epoch", unit="time"),
        column("last_exchange", "int64", "the exchange of the last message", unit=EXCHANGE),
        column("last_api", "text", "API of the last exchange"),
        column("last_missing", "text", "why the last exchange lacks a side; null if it has both"),
        column("idle_ns", "int64", "from the last message until one end closed the connection"),
        column("large", "int64", "messages of 256 KiB and more", rare=True),
        column(
            "slow_large",
            "int64",
            "large messages that took more than 5 round trips at less than 2 MB/s; at most 32",
            rare=True,
        ),
        column(
            "slow_large_bytes_per_s",
            "float64",
            "speed of the slowest of these large messages, bytes per second",
            unit="bytes",
            rare=True,
        ),
        column(
            "slow_large_exchanges", "int64s", "exchanges of the 8 slowest of these messages", unit=EXCHANGE
        ),
        column(
            "hit_exchanges",
            "int64s",
            "exchanges with bytes that were sent again after 200 ms or more; at most 8",
            unit=EXCHANGE,
        ),
        column("exchanges", "int64", "exchanges"),
        column("packets", "int64", "packets of both directions"),
        column("bytes_to_broker", "int64", "bytes that the client sent, each once", unit="bytes"),
        column("bytes_from_broker", "int64", "bytes that the broker sent, each once", unit="bytes"),
        column("tls", "bool", "whether it speaks TLS"),
        column("end", "text", "fin, rst, open, reused or evicted"),
        *first_and_last("packet"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_ConnectionTcp, limits)

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _count(exchanges, self._rows)

    def _connection(self, connection: Connection) -> None:
        if connection.tcp is None:
            return
        row = self._rows.row(connection.connection)
        if row is not None:
            row.over = connection

    def result(self) -> list[Row]:
        return list(self.result_rows())

    def result_rows(self) -> Iterator[Row]:
        for number in sorted(self._rows):
            row = self._rows[number]
            if row.over is not None:
                yield _result(number, row, row.over)


def _count(exchanges: list[Exchange], rows: Rows[int, _ConnectionTcp]) -> None:
    """Count exchanges."""
    for exchange in exchanges:
        row = rows.row(exchange.connection)
        if row is not None:
            row.add(exchange)


def _oldest(waiting: list[tuple[int, int, int, str, int]], closed_ns: int | None) -> int | None:
    """How long the oldest had waited beyond its allowed wait."""
    if closed_ns is None:
        return None
    return max((closed_ns - asked - may for asked, _, may, *_ in waiting), default=None)


def _may_wait_ns(exchange: Exchange) -> int | None:
    """How long the client agreed to wait; None if unknown. A Produce that is cut may need no answer."""
    assert exchange.request is not None
    if waits_for_members(exchange.api):
        return None
    if exchange.api == "Produce" and exchange.request.is_cut and "acks" not in exchange.request.body():
        return None
    if not is_long_poll(exchange.api):
        return 0
    longest, _ = asked_wait(exchange.request)
    return None if longest is None else max(0, longest) * MILLISECOND


def _leaves(exchange: Exchange, api: str) -> bool:
    """Whether the client leaves a group: with its own LeaveGroup request, or with an epoch below 0
    (KIP-848)."""
    if api == "LeaveGroup":
        return True
    if api not in _MEMBER_BEATS or exchange.request is None:
        return False
    return bool((exchange.request.body().get("memberEpoch") or 0) < 0)


def _result(number: int, row: _ConnectionTcp, over: Connection) -> Row:
    facts = over.tcp or {}
    setup_ns = None
    if over.opened and row.ready_ns is not None:
        until_ns = row.ready_ns if row.prepared_ns is None else min(row.prepared_ns, row.ready_ns)
        setup_ns = max(0, until_ns - over.start_ns)
    late = facts.get("rto_ns") or ()
    rtt = facts.get("rtt_min_ns") or 0
    large = [each for each in row.slow_large if each[1] > 5 * rtt]
    waiting: list[tuple[int, int, int, str, int]] = []
    closed_ns = facts.get("closed_ns")
    if closed_ns is not None:
        waiting = [each for each in row.waiting if each[0] + each[2] < closed_ns]
    hit = sorted(each for _, each, begin, end in row.slow if any(begin <= ns <= end for ns in late))
    out = _BLANK.copy()
    for name in _NAMES:
        out[name] = facts.get(name)
    out |= {
        "connection": number,
        "client": over.client,
        "broker": over.broker,
        "client_id": row.client_id if row.client_id is not None else over.client_id,
        "login_ns": row.login_ns,
        "setup_ns": setup_ns,
        "waiting_exchanges": [each for _, each, *_ in waiting[:MOST_HIT]],
        "waiting_apis": sorted({api for _, _, _, api, _ in waiting}),
        "waiting_bytes": max((size for *_, size in waiting), default=None),
        "waiting_ns": _oldest(waiting, closed_ns),
        "answered_apis": sorted(row.answered),
        "closed_ns": closed_ns,
        "left_ns": row.left_ns,
        "last_exchange": row.last[1] if row.last is not None else None,
        "last_api": row.last[2] or None if row.last is not None else None,
        "last_missing": row.last[3] or None if row.last is not None else None,
        "idle_ns": closed_ns - row.last[0] if row.last is not None and closed_ns is not None else None,
        "large": row.large,
        "slow_large": len(large),
        "slow_large_bytes_per_s": large[0][0] if large else None,
        "slow_large_exchanges": [number for *_, number in large[:MOST_HIT]],
        "hit_exchanges": hit[:MOST_HIT],
        "exchanges": row.exchanges,
        "packets": over.packets,
        "bytes_to_broker": over.bytes_to_broker,
        "bytes_from_broker": over.bytes_from_broker,
        "tls": over.tls is not None,
        "end": over.end,
        "first_ns": over.start_ns,
        "last_ns": over.end_ns,
    }
    return out


_BLANK: Row = dict.fromkeys(each.name for each in Tcp.columns)
"""A row without values. Filling a copy of it is quicker than letting a dict grow to this size."""
