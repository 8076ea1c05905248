"""Rows of a statistic → a table for people.

Times count from the first packet, durations and sizes have units, and columns in which nothing stands are
left out, as are counts of what is rare where they are all 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kdissect.present.columns import Column, Table
from kdissect.present.form import Clock, bars, duration, size
from kdissect.present.options import Options
from kdissect.present.sanitise import pad, sanitise, width

_TIMES = frozenset(("first_ns", "last_ns", "start_ns", "left_ns", "join_ns", "sync_ns"))
_NUMBERS = frozenset(("int16", "int32", "int64", "float64"))
_RARE = frozenset(
    (
        *("unanswered", "may_wait", "waited_out", "throttled", "throttle_ms", "throttle_max_ms", "errors"),
        *("control_batches", "partial_batches", "uncounted_batches"),
        *("retransmitted", "gap_bytes", "skipped_bytes"),
    )
)
"""Columns that are left out where all is 0."""


def table_lines(
    table: Table, rows: list[dict[str, Any]], options: Options, clock: Clock, whole: bool = False
) -> Iterator[str]:
    """A heading and a line a row, with as much room for each column as it needs.

    :param whole: no column is left out.
    """
    texts = [
        [
            _shown(column, value, clock)
            for column, value in zip(table.columns, table.row(row, options), strict=True)
        ]
        for row in rows
    ]
    empty = [("", "0", "0 B") if column.name in _RARE else ("",) for column in table.columns]
    filled = [
        at for at, not_said in enumerate(empty) if whole or any(line[at] not in not_said for line in texts)
    ]
    headings = [column.name.removesuffix("_ns") for column in table.columns]
    widths = {at: max(width(line[at]) for line in [headings, *texts]) for at in filled}
    for line in [headings, *texts]:
        cells = [pad(line[at], widths[at], table.columns[at].type in _NUMBERS) for at in filled]
        yield "  ".join(cells).rstrip()


def _shown(column: Column, value: Any, clock: Clock) -> str:
    """One value for people."""
    if value is None:
        return ""
    form = _FORMS.get(column.type)
    if column.name in _TIMES:
        return clock.text(value)
    if column.name.endswith("_ns"):
        return duration(value)
    if column.name.endswith("bytes") or column.name.startswith("batch_bytes"):
        return size(value)
    return form(value) if form is not None else f"{value:,}"


_FORMS: dict[str, Callable[[Any], str]] = {
    "text": sanitise,
    "int64s": bars,
    "texts": lambda values: ", ".join(sanitise(each) for each in values),
    "bool": lambda value: "yes" if value else "no",
    "float64": lambda value: f"{value:,.1f}",
}
