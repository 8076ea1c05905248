"""The data that all panels of a report share: the report, its time axis, and tables of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kdissect.analysis.declared import BYTES, DURATION
from kdissect.analysis.fold import SECOND, Row
from kdissect.insight.judge import CaptureReport
from kdissect.present.columns import Column
from kdissect.present.form import Clock, size
from kdissect.present.html.page import table
from kdissect.present.html.svg import Band, TimeAxis
from kdissect.present.options import PLAIN
from kdissect.present.statistics import STATISTICS
from kdissect.present.statistics_text import NUMBERS, shown

Shown = tuple[str, str]
"""A column and its heading."""


class ReportOptions(NamedTuple):
    """The options of a report."""

    files: tuple[str, ...]
    """The input files."""
    arguments: tuple[str, ...]
    """The arguments that make ``kdissect`` read the same: files and options."""


class Sheet:
    """A report while it is drawn.

    :param most: the most rows of a table.
    """

    def __init__(self, report: CaptureReport, made: ReportOptions, most: int) -> None:
        self.report = report
        self.made = made
        self.most = most
        self.first_ns = report.context.first_ns or 0
        self.last_ns = report.context.last_ns or 0
        self.axis = TimeAxis(0.0, max(report.context.span_s, 1e-6))

    def rows(self, name: str) -> list[Row]:
        """The rows of a table."""
        return self.report.tables.get(name, [])

    def s(self, ns: int) -> float:
        """A time in seconds from the first packet."""
        return (ns - self.first_ns) / SECOND

    def band(self, from_ns: int | None, to_ns: int | None, what: str) -> Band | None:
        """A span of time with its event; None if the time is unknown."""
        if from_ns is None and to_ns is None:
            return None
        first = from_ns if from_ns is not None else to_ns
        last = to_ns if to_ns is not None else from_ns
        assert first is not None
        assert last is not None
        return Band(self.s(first), self.s(max(first, last)), what)

    def table(
        self,
        name: str,
        columns: Sequence[Shown],
        caption: str,
        rows: Sequence[Row] | None = None,
        sort: Callable[[Row], Any] | None = None,
    ) -> str:
        """A table of a statistic's rows, with the columns that are not empty.

        :param rows: which rows; all by default.
        :param sort: the sort key of the rows.
        """
        chosen = list(self.rows(name) if rows is None else rows)
        if sort is not None:
            chosen.sort(key=sort)
        known = {column.name: column for column in STATISTICS[name.partition(",")[0]].columns}
        kept = chosen[: self.most]
        used = [
            (known[column], heading)
            for at, (column, heading) in enumerate(columns)
            if at == 0 or any(not _is_empty(known[column], row[column]) for row in kept)
        ]
        clock = Clock("r", self.first_ns)
        lines = [[self._cell(column, row, clock) for column, _ in used] for row in kept]
        numbers = [at for at, (column, _) in enumerate(used) if _is_number(column)]
        return table([heading for _, heading in used], lines, caption, numbers, len(chosen) - len(kept))

    def _cell(self, column: Column, row: Row, clock: Clock) -> object:
        (value,) = [column.value(row, PLAIN)]
        text = "0" if value == 0 and column.unit in (DURATION, BYTES) else shown(column, value, clock)
        if value is not None and column.name.endswith("bytes_per_s"):
            text = size(round(value))  # the heading says that the rate is per second
        return (text, value) if _is_number(column) else text


def _is_number(column: Column) -> bool:
    return column.type in NUMBERS


def _is_empty(column: Column, value: Any) -> bool:
    return value is None or value in ("", []) or (value == 0 and (column.rare or column.unit == DURATION))
