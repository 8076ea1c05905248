"""The traffic in each interval of time: requests, responses, bytes each way, records, errors.

Intervals are counted from the epoch, so that those of several captures agree. An interval without captured
messages has no row. A message counts for the interval in which it was complete.
"""

from __future__ import annotations

from kdissect.analysis.counters import Grades
from kdissect.analysis.declared import MESSAGE_BYTES, column, graded_errors, time_column
from kdissect.analysis.fold import SECOND, Batched, OneTable, Row
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import record_sets
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Request, Response, Token


class _Interval:
    __slots__ = (
        *("errors", "fetched", "produced", "request_bytes", "requests", "response_bytes"),
        *("responses",),
    )

    def __init__(self) -> None:
        self.requests = 0
        self.request_bytes = 0
        self.produced = 0
        self.responses = 0
        self.response_bytes = 0
        self.fetched = 0
        self.errors = Grades()

    def add_request(self, request: Request | Token, produced: int) -> None:
        """Count a request with this number of records."""
        self.requests += 1
        self.request_bytes += request.frame.size
        self.produced += produced

    def answer(self, exchange: Exchange, response: Response | Token, fetched: int) -> None:
        """Count the response of an exchange, with this number of records."""
        self.responses += 1
        self.response_bytes += response.frame.size
        self.fetched += fetched
        self.errors.add_codes(exchange)

    def merge(self, later: _Interval) -> None:
        self.requests += later.requests
        self.request_bytes += later.request_bytes
        self.produced += later.produced
        self.responses += later.responses
        self.response_bytes += later.response_bytes
        self.fetched += later.fetched
        self.errors.merge(later.errors)


class Intervals(Batched, OneTable[int, _Interval]):
    """The statistic ``io``."""

    name = "io"
    about = "requests, bytes, records and errors of each interval (1s)"
    columns = (
        time_column("start_ns", "beginning of the interval"),
        column("interval_ns", "int64", "length of the interval"),
        column("requests", "int64", "requests that were complete in it"),
        column("responses", "int64", "responses that were complete in it"),
        *MESSAGE_BYTES,
        column("records_produced", "int64", "records in the requests"),
        column("records_fetched", "int64", "records in the responses"),
        *graded_errors("error codes in the responses"),
    )

    takes_interval = True

    def __init__(self, limits: Limits = DEFAULTS, length_ns: int = SECOND) -> None:
        super().__init__(_Interval, limits)
        self._length_ns = length_ns
        """The intervals by number, counted from the epoch."""

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _count(exchanges, self._rows, self._length_ns, self.limits)

    def result(self) -> list[Row]:
        return [
            {
                "start_ns": number * self._length_ns,
                "interval_ns": self._length_ns,
                "requests": row.requests,
                "responses": row.responses,
                "request_bytes": row.request_bytes,
                "response_bytes": row.response_bytes,
                "records_produced": row.produced,
                "records_fetched": row.fetched,
                **row.errors.columns(),
            }
            for number, row in sorted(self._rows.rows.items())
        ]


def _count(exchanges: list[Exchange], rows: Rows[int, _Interval], length_ns: int, limits: Limits) -> None:
    """Count exchanges."""
    for exchange in exchanges:
        request, response = exchange.request, exchange.response
        produced = fetched = 0
        for found in record_sets(exchange, limits):
            if found.place.message is request:
                produced += found.batches.records
            else:
                fetched += found.batches.records
        if request is not None:
            row = rows.row(request.frame.last_ns // length_ns)
            if row is not None:
                row.add_request(request, produced)
        if response is not None:
            row = rows.row(response.frame.last_ns // length_ns)
            if row is not None:
                row.answer(exchange, response, fetched)
