# cython: nonecheck=True
# A state that somebody forged may have None in place of rows: then C must not read or write there.
"""Connections: their traffic, the times until answers, and the requests in flight.

A capture may have hundreds of thousands of connections, so the row of a connection that has ended is packed.
A packed row takes less than half of the memory. When thousands are packed, they are compressed in chunks.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterator
from typing import Any, Self

from kdissect.analysis.counters import Depth, Grades, Span
from kdissect.analysis.declared import (
    BROKER_COLUMN,
    CLIENT_COLUMN,
    CLIENT_ID_COLUMN,
    MESSAGE_BYTES,
    column,
    first_and_last,
    graded_errors,
)
from kdissect.analysis.fold import Batched, OneTable, Row
from kdissect.analysis.histogram import Histogram, of_parts
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import error_class_of
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.row_chunks import CHUNK_ROWS, pack, rows_of
from kdissect.session.conversation import Connection

_Key = int | tuple[int, str]
"""Number of the connection; with the name of the capture point, if there are several. A number alone takes a
third of the memory."""

_ALONE = -1
_FEWEST = 4_096
"""The least number of ended connections whose rows are put together. They take 4 MB."""
_SHARE_BITS = 4
"""Of many rows, a sixteenth must have ended."""

_Ended = tuple[Any, ...]
"""What the row has of a TCP connection that has ended: client, broker, software, protocol, TLS, end, packets,
retransmitted, missing and skipped bytes, how far its clock is ahead, first and last time."""


def _key(number: int, point: str) -> _Key:
    return (number, point) if point else number


def _in_order(key: _Key) -> tuple[int, str]:
    """Number and capture point, by which rows are sorted."""
    return key if isinstance(key, tuple) else (key, "")


def _ended(connection: Connection) -> _Ended:
    return (
        connection.client,
        connection.broker,
        connection.software,
        connection.protocol,
        _tls(connection),
        connection.end,
        connection.packets,
        connection.retransmitted,
        connection.gap_bytes,
        connection.skipped_bytes,
        connection.clock_ahead_ns,
        connection.start_ns,
        connection.end_ns,
    )


class _ConnectionSoFar:
    __slots__ = (
        *("broker", "client", "client_id", "depth", "ended", "errors", "latency", "request_bytes"),
        *("requests", "response_bytes", "responses", "span"),
    )

    def __init__(self) -> None:
        self.client = ""
        self.broker = ""
        self.client_id: str | None = None
        self.requests = 0
        self.responses = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.errors = Grades()
        self.latency = Histogram()
        self.depth = Depth()
        self.span = Span()
        self.ended: _Ended | None = None
        """The TCP connection, after it has ended."""

    @property
    def is_counted(self) -> bool:
        """Whether it has a row. It has none if its exchanges only matter for the requests in flight."""
        return bool(self.requests or self.responses) or self.ended is not None

    def add(self, exchange: Exchange) -> None:
        """Count an exchange."""
        request, response = exchange.request, exchange.response
        self.count(
            exchange,
            None if request is None else request.frame.last_ns,
            None if response is None else response.frame.first_ns,
        )
        self.span.cover(exchange)

    def count(self, exchange: Exchange, asked_ns: int | None, answered_ns: int | None) -> None:
        """Count an exchange, with the times of its two messages at the capture point; None if a message was
        not seen there."""
        self.client, self.broker = exchange._client_address(), exchange._broker_address()
        request, response = exchange.request, exchange.response
        if asked_ns is not None and request is not None:
            self.requests += 1
            self.request_bytes += request.frame.size
            if request.client_id is not None:
                self.client_id = request.client_id
        if answered_ns is not None and response is not None:
            self.responses += 1
            self.response_bytes += response.frame.size
            if exchange._error() is not None:
                self.errors.add(error_class_of(exchange))
        if asked_ns is not None and answered_ns is not None:
            self.latency.add(answered_ns - asked_ns)
            self.depth.add(asked_ns, answered_ns)

    def merge(self, later: _ConnectionSoFar) -> None:
        self.client, self.broker = later.client or self.client, later.broker or self.broker
        self.client_id = later.client_id if later.client_id is not None else self.client_id
        self.requests += later.requests
        self.responses += later.responses
        self.request_bytes += later.request_bytes
        self.response_bytes += later.response_bytes
        self.errors.merge(later.errors)
        self.latency.merge(later.latency)
        self.depth.merge(later.depth)
        self.span.merge(later.span)
        self.ended = later.ended or self.ended


class _KeptRow:
    """The row of a connection. It is packed when the connection ends, and later put into a chunk of rows. A
    later exchange opens it again."""

    __slots__ = ("_open", "_packed", "_place")

    def __init__(self) -> None:
        self._open: _ConnectionSoFar | None = None
        self._packed = b""
        """The packed row, or the chunk that contains it."""
        self._place = _ALONE
        """Its place in the chunk."""

    def __reduce__(self) -> tuple[Callable[[_ConnectionSoFar], _KeptRow], tuple[_ConnectionSoFar]]:
        """It is never stored packed: what a file has may be forged, and marshal reads anything."""
        return _kept, (self.contents,)

    @property
    def contents(self) -> _ConnectionSoFar:
        """What it has so far. Do not change it."""
        return self._open if self._open is not None else _unpacked(self._alone())

    def opened(self) -> _ConnectionSoFar:
        """What it has so far, to add something to it."""
        if self._open is None:
            self._open = _unpacked(self._alone())
            self._packed, self._place = b"", _ALONE
        return self._open

    def end(self, connection: Connection) -> None:
        """Note the end of the TCP connection."""
        self.opened().ended = _ended(connection)
        self._pack()

    def merge(self, later: _KeptRow) -> None:
        """Add the same row of a later part."""
        if self._open is None and not self._packed and later._packed:
            self._packed, self._place = later._packed, later._place
        else:
            self.opened().merge(later.contents)
            self._pack()

    def _pack(self) -> None:
        row = self._open
        if row is not None and row.ended is not None:
            self._packed, self._open = _packed(row), None

    def _alone(self) -> bytes:
        """The packed row."""
        if self._place == _ALONE:
            return self._packed
        row: bytes = rows_of(self._packed)[self._place]
        return row


def _kept(row: _ConnectionSoFar) -> _KeptRow:
    """The row with these contents."""
    kept = _KeptRow()
    kept._open = row
    kept._pack()
    return kept


def _put_together(rows: Rows[_Key, _KeptRow]) -> None:
    """Put packed rows into chunks. Rows with near numbers come into the same chunk, because they are read in
    the order of their numbers."""
    alone: list[_Key] = []
    for key, row in rows.items():
        if row._packed and row._place == _ALONE:
            alone.append(key)
    alone.sort(key=_in_order)
    for begin in range(0, len(alone) - CHUNK_ROWS + 1, CHUNK_ROWS):
        together = [rows[key] for key in alone[begin : begin + CHUNK_ROWS]]
        packed: list[bytes] = []
        for row in together:
            packed.append(row._packed)
        chunk = pack(packed)
        for place, row in enumerate(together):
            row._packed, row._place = chunk, place


def _packed(row: _ConnectionSoFar) -> bytes:
    counts: tuple[Any, ...] | None = None
    if row.client or row.depth.first_response_ns is not None:
        counts = (
            *(row.client, row.broker, row.client_id, row.requests, row.responses),
            *(row.request_bytes, row.response_bytes),
            *[each.__reduce__()[1] for each in (row.errors, row.latency, row.depth, row.span)],
        )
    packed: bytes = marshal.dumps((row.ended, counts))
    return packed


def _unpacked(packed: bytes) -> _ConnectionSoFar:
    row = _ConnectionSoFar()
    if not packed:
        return row
    row.ended, counts = marshal.loads(packed)
    if counts is not None:
        row.client, row.broker, row.client_id, row.requests, row.responses = counts[:5]
        row.request_bytes, row.response_bytes, errors, latency, depth, span = counts[5:]
        row.errors, row.latency = Grades(*errors), of_parts(*latency)
        row.depth, row.span = Depth(*depth), Span(*span)
    return row


class Connections(Batched, OneTable[_Key, _KeptRow]):
    """The statistic ``connections``."""

    name = "connections"
    about = "bytes, errors, latency, requests in flight"
    row_bytes = 3_000
    at_every_point = True
    columns = (
        column("connection", "int64", "0, 1, … by the first packet (Wireshark's tcp.stream)"),
        column(
            "capture_point",
            "text",
            "the capture point of the row, if there are several: each has a row of its own; else null",
        ),
        CLIENT_COLUMN,
        BROKER_COLUMN,
        CLIENT_ID_COLUMN,
        column("software", "text", "name and version of the client, from ApiVersions"),
        column("protocol", "text", "kafka, tls, http or unknown"),
        column("tls", "text", "version of TLS, and why it is not decrypted; null without TLS"),
        column("end", "text", "fin, rst, open, reused or evicted"),
        column("requests", "int64", "requests"),
        column("responses", "int64", "responses"),
        *MESSAGE_BYTES,
        *graded_errors("responses with an error code"),
        column("p50_ns", "int64", "median latency (within 0.4 %)"),
        column("p99_ns", "int64", "99th percentile of the latency (within 0.4 %)"),
        column("max_ns", "int64", "the longest latency"),
        column(
            "in_flight_mean",
            "float64",
            "mean number of requests in flight when one is sent, counting that one",
        ),
        column("in_flight_max", "int32", "largest number of requests in flight"),
        column("packets", "int64", "packets of both directions"),
        column("retransmitted", "int64", "bytes sent again", rare=True),
        column("gap_bytes", "int64", "bytes that were not captured", rare=True),
        column("skipped_bytes", "int64", "captured bytes that are in no frame", rare=True),
        column(
            "clock_ahead_ns",
            "int64",
            "how far its clock is ahead of the clock at the capture point nearest to the broker; null "
            "there, or if unknown",
            rare=True,
        ),
        *first_and_last("packet"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_KeptRow, limits)
        self._ended = 0
        """The number of rows that were packed since rows were put together."""

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _count(exchanges, self._rows)

    def _other(self, exchange: Exchange) -> None:
        row = self._rows.row(_key(exchange.connection, exchange.capture_point or ""))
        if row is not None and exchange.request is not None and exchange.response is not None:
            asked_ns, answered_ns = exchange.request.frame.last_ns, exchange.response.frame.first_ns
            row.opened().depth.add(asked_ns, answered_ns, counts=False)

    def _connection(self, connection: Connection) -> None:
        row = self._rows.row(_key(connection.connection, connection.capture_point or ""))
        if row is not None:
            row.end(connection)
            self._note_ended(1)

    def merge(self, later: Self) -> None:
        super().merge(later)
        self._note_ended(len(later._rows))

    def _note_ended(self, count: int) -> None:
        """Put the rows together from time to time. Reading all of them for it costs little then."""
        self._ended += count
        if self._ended >= max(_FEWEST, len(self._rows) >> _SHARE_BITS):
            _put_together(self._rows)
            self._ended = 0

    def result(self) -> list[Row]:
        return list(self.result_rows())

    def result_rows(self) -> Iterator[Row]:
        for key in sorted(self._rows, key=_in_order):
            row = self._rows[key].contents
            if row.is_counted:
                yield _result(*_in_order(key), row)


def _count(exchanges: list[Exchange], rows: Rows[_Key, _KeptRow]) -> None:
    """Count exchanges, and their messages at other capture points."""
    for exchange in exchanges:
        seen = exchange.seen
        row = rows.row(exchange.connection if seen is None else _key(exchange.connection, seen.point))
        if row is None:
            continue
        row.opened().add(exchange)
        for copy in () if seen is None else seen.copies:
            row = rows.row(_key(exchange.connection, copy.point))
            if row is not None:
                row.opened().count(exchange, copy.request_time_ns, copy.response_start_ns)


def row_of(connection: Connection) -> Row:
    """The row of a connection without exchanges."""
    alone = _ConnectionSoFar()
    alone.ended = _ended(connection)
    return _result(connection.connection, connection.capture_point or "", alone)


def _result(number: int, point: str, row: _ConnectionSoFar) -> Row:
    client, broker, software, protocol, tls, end, packets, retransmitted, gap, skipped, ahead, first, last = (
        row.ended or _not_ended(row)
    )
    p50, p99 = row.latency.percentiles(50, 99)
    return {
        "connection": number,
        "capture_point": point or None,
        "client": client,
        "broker": broker,
        "client_id": row.client_id,
        "software": software,
        "protocol": protocol,
        "tls": tls,
        "end": end,
        "requests": row.requests,
        "responses": row.responses,
        "request_bytes": row.request_bytes,
        "response_bytes": row.response_bytes,
        **row.errors.columns(),
        "p50_ns": p50,
        "p99_ns": p99,
        "max_ns": row.latency.most,
        "in_flight_mean": row.depth.mean,
        "in_flight_max": row.depth.deepest if row.depth.count else None,
        "packets": packets,
        "retransmitted": retransmitted,
        "gap_bytes": gap,
        "skipped_bytes": skipped,
        "clock_ahead_ns": ahead,
        "first_ns": first,
        "last_ns": last,
    }


def _not_ended(row: _ConnectionSoFar) -> _Ended:
    """What the row has of a TCP connection that has not ended."""
    unknown = (None,) * 5
    return (row.client, row.broker, None, "kafka", None, None, *unknown, row.span.first_ns, row.span.last_ns)


def _tls(connection: Connection) -> str | None:
    """The version of TLS, and the reason if it was not decrypted."""
    if connection.tls is None:
        return None
    version = connection.tls["version"] or "TLS"
    return version if connection.tls["dark"] is None else f"{version}: {connection.tls['dark']}"
