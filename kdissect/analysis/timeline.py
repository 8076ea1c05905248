"""The data of a time line, by interval: requests, bytes, errors, the brokers' times, and events.

Intervals are those of ``io``. A message counts for the interval in which it was complete; the broker's time,
for the interval of the answer.
"""

from __future__ import annotations

from typing import Self

from kdissect.analysis.counters import Grades
from kdissect.analysis.declared import MESSAGE_BYTES, column, graded_errors, time_column
from kdissect.analysis.fold import SECOND, Batched, OneTable, Row
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.moments import MARKING, Moments
from kdissect.analysis.rows import Rows
from kdissect.analysis.waits import split
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Request, Response, Token


class _TimelineInterval:
    __slots__ = ("broker", "errors", "request_bytes", "requests", "response_bytes", "responses")

    def __init__(self) -> None:
        self.requests = 0
        self.request_bytes = 0
        self.responses = 0
        self.response_bytes = 0
        self.errors = Grades()
        self.broker = Histogram()

    def add_request(self, request: Request | Token) -> None:
        """Count a request."""
        self.requests += 1
        self.request_bytes += request.frame.size

    def answer(self, exchange: Exchange, response: Response | Token) -> None:
        """Count the response of an exchange."""
        self.responses += 1
        self.response_bytes += response.frame.size
        self.errors.add_codes(exchange)
        broker_ns = split(exchange).broker_ns
        if broker_ns is not None:
            self.broker.add(broker_ns)

    def merge(self, later: _TimelineInterval) -> None:
        self.requests += later.requests
        self.request_bytes += later.request_bytes
        self.responses += later.responses
        self.response_bytes += later.response_bytes
        self.errors.merge(later.errors)
        self.broker.merge(later.broker)


class Timeline(Batched, OneTable[int, _TimelineInterval]):
    """The statistic ``timeline``."""

    name = "timeline"
    about = "per interval (1s): requests, bytes, errors, broker times, rebalances and other marks"
    columns = (
        time_column("start_ns", "beginning of the interval"),
        column("interval_ns", "int64", "length of the interval"),
        column("requests", "int64", "requests that were complete in it"),
        column("responses", "int64", "responses that were complete in it"),
        *MESSAGE_BYTES,
        *graded_errors("error codes in the responses"),
        column("broker_count", "int64", "responses whose broker_ns is known"),
        column("broker_p50_ns", "int64", "median of broker_ns (within 0.4 %)"),
        column("broker_p99_ns", "int64", "99th percentile of broker_ns (within 0.4 %)"),
        column(
            "marks",
            "texts",
            "what happened: generations of groups, leaders that moved, transactions that ended",
        ),
    )
    takes_interval = True

    def __init__(self, limits: Limits = DEFAULTS, length_ns: int = SECOND, most: int | None = None) -> None:
        """Make an empty timeline.

        :param most: the most intervals with data. Beyond it, intervals become twice as long until there are
            few enough.
        """
        super().__init__(_TimelineInterval, limits)
        self._length_ns = length_ns
        self._most = most
        self._moments = Moments(self.room, self.latest)

    def _other(self, exchange: Exchange) -> None:
        self._moments.see(exchange, False)

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        for exchange in exchanges:
            if exchange.api in MARKING:
                self._moments.see(exchange, True)
        if self._most is None:
            _count(exchanges, self._rows, self._length_ns)
            return
        for exchange in exchanges:
            _count([exchange], self._rows, self._length_ns)
            self._keep_few()

    def merge(self, later: Self) -> None:
        if later._length_ns > self._length_ns:
            self._lengthen(later._length_ns // self._length_ns)
        times = self._length_ns // later._length_ns
        self._rows.left_out += later._rows.left_out
        for number, theirs in later._rows.rows.items():
            row = self._rows.row(number // times)
            if row is not None:
                row.merge(theirs)
        self._keep_few()
        self._moments.merge(later._moments)

    def _keep_few(self) -> None:
        if self._most is not None:
            while len(self._rows.rows) > self._most:
                self._lengthen(2)

    def _lengthen(self, times: int) -> None:
        """Make intervals longer by a factor."""
        short = list(self._rows.items())
        self._rows.clear()
        self._length_ns *= times
        for number, each in short:
            long = self._rows.rows.setdefault(number // times, each)
            if long is not each:
                long.merge(each)

    def result(self) -> list[Row]:
        marks = self._moments.texts(self._length_ns)
        return [
            self._row(number, row, marks.get(number, [])) for number, row in sorted(self._rows.rows.items())
        ]

    def _row(self, number: int, row: _TimelineInterval, marks: list[str]) -> Row:
        p50, p99 = row.broker.percentiles(50, 99)
        return {
            "start_ns": number * self._length_ns,
            "interval_ns": self._length_ns,
            "requests": row.requests,
            "responses": row.responses,
            "request_bytes": row.request_bytes,
            "response_bytes": row.response_bytes,
            **row.errors.columns(),
            "broker_count": row.broker.count,
            "broker_p50_ns": p50,
            "broker_p99_ns": p99,
            "marks": marks,
        }


def _count(exchanges: list[Exchange], rows: Rows[int, _TimelineInterval], length_ns: int) -> None:
    """Count exchanges."""
    for exchange in exchanges:
        request, response = exchange.request, exchange.response
        if request is not None:
            row = rows.row(request.frame.last_ns // length_ns)
            if row is not None:
                row.add_request(request)
        if response is not None:
            row = rows.row(response.frame.last_ns // length_ns)
            if row is not None:
                row.answer(exchange, response)
