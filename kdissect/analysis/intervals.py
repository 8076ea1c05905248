"""What went on in each interval of time: requests, responses, bytes each way, records, errors.

Intervals are counted from the epoch, so that those of several captures agree; one in which nothing was
captured has no row. A message counts for the interval in which it was complete.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kdissect.analysis.counters import Grades
from kdissect.analysis.declared import MESSAGE_BYTES, column, graded_errors, time_column
from kdissect.analysis.fold import SECOND, OneTable, Row
from kdissect.analysis.packed import packed
from kdissect.analysis.sets import record_sets
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits


@packed
@dataclass(slots=True)
class _Interval:
    requests: int = 0
    request_bytes: int = 0
    produced: int = 0
    responses: int = 0
    response_bytes: int = 0
    fetched: int = 0
    errors: Grades = field(default_factory=Grades)

    def merge(self, later: _Interval) -> None:
        self.requests += later.requests
        self.request_bytes += later.request_bytes
        self.produced += later.produced
        self.responses += later.responses
        self.response_bytes += later.response_bytes
        self.fetched += later.fetched
        self.errors.merge(later.errors)


class Intervals(OneTable[int, _Interval]):
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
        """By number, counted from the epoch."""

    def _exchange(self, exchange: Exchange) -> None:
        produced = fetched = 0
        for found in record_sets(exchange, self.limits):
            if found.place.message is exchange.request:
                produced += found.batches.records
            else:
                fetched += found.batches.records
        request, response, length_ns = exchange.request, exchange.response, self._length_ns
        if request is not None:
            frame = request.frame
            row = self._rows.row(frame.last_ns // length_ns)
            if row is not None:
                row.requests += 1
                row.request_bytes += frame.size
                row.produced += produced
        if response is not None:
            frame = response.frame
            row = self._rows.row(frame.last_ns // length_ns)
            if row is not None:
                row.responses += 1
                row.response_bytes += frame.size
                row.fetched += fetched
                row.errors.add_codes(exchange)

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
