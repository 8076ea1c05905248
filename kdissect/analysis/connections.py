"""Connections: their traffic, the times until answers, and the requests in flight."""

from __future__ import annotations

from collections.abc import Iterator

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
from kdissect.analysis.fold import Batched, OneTable, Row, Rows
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.shared_parts import error_class_of
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.session.conversation import Connection


class _ClosedConnection:
    """What the row has of a TCP connection that has ended. The whole :class:`Connection` takes four times the
    memory."""

    __slots__ = (
        *("broker", "client", "clock_ahead_ns", "end", "end_ns", "gap_bytes", "packets", "protocol"),
        *("retransmitted", "skipped_bytes", "software", "start_ns", "tls"),
    )

    def __init__(self, connection: Connection) -> None:
        self.client, self.broker = connection.client, connection.broker
        self.software = connection.software
        self.protocol = connection.protocol
        self.tls = _tls(connection)
        self.end = connection.end
        self.packets = connection.packets
        self.retransmitted = connection.retransmitted
        self.gap_bytes = connection.gap_bytes
        self.skipped_bytes = connection.skipped_bytes
        self.clock_ahead_ns = connection.clock_ahead_ns
        self.start_ns, self.end_ns = connection.start_ns, connection.end_ns


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
        self.ended: _ClosedConnection | None = None
        """The TCP connection, after it has ended."""

    @property
    def is_counted(self) -> bool:
        """Whether it has a row. It has none if its exchanges only matter for the requests in flight."""
        return bool(self.requests or self.responses) or self.ended is not None

    def end(self, connection: Connection) -> None:
        """Note the end of the TCP connection."""
        self.ended = _ClosedConnection(connection)
        if self.client == self.ended.client and self.broker == self.ended.broker:  # one text for both
            self.client, self.broker = self.ended.client, self.ended.broker

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
        self.client, self.broker = exchange.client, exchange.broker
        request, response = exchange.request, exchange.response
        if asked_ns is not None and request is not None:
            self.requests += 1
            self.request_bytes += request.frame.size
            if request.client_id is not None:
                self.client_id = request.client_id
        if answered_ns is not None and response is not None:
            self.responses += 1
            self.response_bytes += response.frame.size
            if exchange.error is not None:
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


_Key = tuple[int, str]
"""Number of the connection, and name of the capture point; empty if the input has only one."""


class Connections(Batched, OneTable[_Key, _ConnectionSoFar]):
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
        super().__init__(_ConnectionSoFar, limits)

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _count(exchanges, self._rows)

    def _other(self, exchange: Exchange) -> None:
        row = self._rows.row((exchange.connection, exchange.capture_point or ""))
        if row is not None and exchange.request is not None and exchange.response is not None:
            row.depth.add(exchange.request.frame.last_ns, exchange.response.frame.first_ns, counts=False)

    def _connection(self, connection: Connection) -> None:
        row = self._rows.row((connection.connection, connection.capture_point or ""))
        if row is not None:
            row.end(connection)

    def result(self) -> list[Row]:
        return list(self.result_rows())

    def result_rows(self) -> Iterator[Row]:
        for number, point in sorted(self._rows):
            row = self._rows[number, point]
            if row.is_counted:
                yield _result(number, point, row)


def _count(exchanges: list[Exchange], rows: Rows[_Key, _ConnectionSoFar]) -> None:
    """Count exchanges, and their messages at other capture points."""
    for exchange in exchanges:
        seen = exchange.seen
        row = rows.row((exchange.connection, "" if seen is None else seen.point))
        if row is None:
            continue
        row.add(exchange)
        for copy in () if seen is None else seen.copies:
            row = rows.row((exchange.connection, copy.point))
            if row is not None:
                row.count(exchange, copy.request_time_ns, copy.response_start_ns)


def row_of(connection: Connection) -> Row:
    """The row of a connection without exchanges."""
    alone = _ConnectionSoFar()
    alone.end(connection)
    return _result(connection.connection, connection.capture_point or "", alone)


def _result(number: int, point: str, row: _ConnectionSoFar) -> Row:
    ended = row.ended
    p50, p99 = row.latency.percentiles(50, 99)
    return {
        "connection": number,
        "capture_point": point or None,
        "client": ended.client if ended is not None else row.client,
        "broker": ended.broker if ended is not None else row.broker,
        "client_id": row.client_id,
        "software": ended.software if ended is not None else None,
        "protocol": ended.protocol if ended is not None else "kafka",
        "tls": ended.tls if ended is not None else None,
        "end": ended.end if ended is not None else None,
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
        "packets": ended.packets if ended is not None else None,
        "retransmitted": ended.retransmitted if ended is not None else None,
        "gap_bytes": ended.gap_bytes if ended is not None else None,
        "skipped_bytes": ended.skipped_bytes if ended is not None else None,
        "clock_ahead_ns": ended.clock_ahead_ns if ended is not None else None,
        "first_ns": ended.start_ns if ended is not None else row.span.first_ns,
        "last_ns": ended.end_ns if ended is not None else row.span.last_ns,
    }


def _tls(connection: Connection) -> str | None:
    """The version of TLS, and the reason if it was not decrypted."""
    if connection.tls is None:
        return None
    version = connection.tls["version"] or "TLS"
    return version if connection.tls["dark"] is None else f"{version}: {connection.tls['dark']}"
