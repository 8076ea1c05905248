"""Rows of the table ``exchanges`` → capture points: what each saw, and its distance from the client."""

from __future__ import annotations

from kdissect.analysis.declared import column
from kdissect.analysis.fold import OneTable, Row
from kdissect.analysis.histogram import Histogram
from kdissect.limits import DEFAULTS, Limits
from kdissect.spark.row_fold import RowFold, StoredExchange


class _PointCounts:
    """The counts of a row."""

    __slots__ = ("exchanges", "latency", "only_here", "to_here")

    def __init__(self) -> None:
        self.exchanges = self.only_here = 0
        self.latency = Histogram()
        self.to_here = Histogram()

    def merge(self, later: _PointCounts) -> None:
        self.exchanges += later.exchanges
        self.only_here += later.only_here
        self.latency.merge(later.latency)
        self.to_here.merge(later.to_here)


class StoredPoints(RowFold, OneTable[str, _PointCounts]):
    """A row for each capture point. An exchange takes longest at the point that sees it first. The difference
    to another point is the time that the network between the two takes."""

    name = "points"
    about = "capture points: exchanges, and the way to them"
    columns = (
        column("capture_point", "text", "name of the capture point"),
        column("exchanges", "int64", "exchanges seen there"),
        column("only_here", "int64", "of them, those that no other point saw"),
        column("p50_ns", "int64", "median of latency_ns there (within 0.4 %)"),
        column(
            "p50_to_here_ns",
            "int64",
            "median of how much longer the exchange took at the point nearest to the client (within 0.4 %)",
        ),
    )
    reads_copies = True

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_PointCounts, limits)

    def count(self, exchange: StoredExchange) -> None:
        copies = exchange.copies
        times = [each.latency_ns for each in copies if each.latency_ns is not None]
        longest = max(times, default=0)
        for copy in copies:
            row = self._rows.row(copy.point)
            if row is None:
                continue
            row.exchanges += 1
            row.only_here += len(copies) == 1
            if copy.latency_ns is not None:
                row.latency.add(copy.latency_ns)
                if len(copies) > 1:
                    row.to_here.add(longest - copy.latency_ns)

    def result(self) -> list[Row]:
        return [
            {
                "capture_point": point,
                "exchanges": row.exchanges,
                "only_here": row.only_here,
                "p50_ns": row.latency.percentiles(50)[0],
                "p50_to_here_ns": row.to_here.percentiles(50)[0],
            }
            for point, row in sorted(self._rows.items())
        ]
