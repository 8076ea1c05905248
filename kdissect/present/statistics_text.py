"""Rows of a statistic → a table for people.

Times count from the first packet. Durations and sizes have units. Empty columns are left out, and so are
columns of rare events if all counts are 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, NamedTuple

from kdissect.analysis.declared import BANDS, BYTES, DURATION, EXCHANGE, ID, TIME
from kdissect.limits import Limits
from kdissect.present.columns import Column, Table
from kdissect.present.form import Clock, bars, duration, plural, size
from kdissect.present.options import Options
from kdissect.present.sanitise import CUT, pad, sanitise, valid_text, width

NUMBERS = frozenset(("int16", "int32", "int64", "float64"))
MOST_TEXT, LEAST_TEXT = 48, 16
"""The most cells of a column of texts if the room is limited, and the least cells that it keeps if it needs
them."""
_GAP = 2
_PADDED_AT_ONCE = 512
"""How many rows are padded to the widths of the columns at a time."""
_READ_AT_ONCE = 256
"""How many rows are read at a time."""


def left_out_text(name: str, left_out: int, limits: Limits) -> str:
    """The line about what a statistic did not count.

    :param name: the name that was requested.
    """
    return (
        f"{name}: more than {limits.rows:,} rows, the limit, or {limits.fact_bytes >> 20:,} MiB in all; "
        f"{plural(left_out, 'count')} for others left out"
    )


def table_lines(
    table: Table,
    rows: list[dict[str, Any]],
    options: Options,
    clock: Clock,
    whole: bool = False,
    room: int | None = None,
) -> Iterator[str]:
    """A heading and a line for each row, with as much room for each column as it needs.

    :param whole: whether to leave out no column.
    :param room: cells of a line, if no line may be longer: texts are cut, the last columns are left out, and
        a line below names them.
    """
    if not rows:
        yield "(no rows)"
        return
    headings = [column.name.removesuffix("_ns") for column in table.columns]
    shown: dict[int, _ColumnTexts] = {}
    widths: dict[int, int] = {}
    values = _values(rows, table.columns, options)
    for at, column in enumerate(table.columns):  # by columns: the way to print a column is chosen once
        texts = _all_shown(values[at], column, clock)
        if whole or not _is_left_out(column, texts):
            shown[at] = texts
            widths[at] = max(width(headings[at]), texts.cells)
    if room is not None:
        widths = _fitting(table, widths, room, whole)
    gap = " " * _GAP
    padded = {
        at: _PaddedColumn(shown[at], cells, table.columns[at].type in NUMBERS) for at, cells in widths.items()
    }
    yield gap.join(each.heading(headings[at]) for at, each in padded.items()).rstrip()
    for start in range(0, len(rows), _PADDED_AT_ONCE):  # padding each text takes several times longer
        part = slice(start, start + _PADDED_AT_ONCE)
        for line in map(gap.join, zip(*(each.texts(part) for each in padded.values()), strict=True)):
            yield line.rstrip()
    left_out = [headings[at] for at in shown if at not in widths]
    if left_out:
        yield f"(no room for {', '.join(left_out)}: -e chooses columns, -o FILE or a pipe prints all)"


def _fitting(table: Table, wanted: dict[int, int], room: int, whole: bool) -> dict[int, int]:
    """The columns that fit, and their widths. Texts are shortened as far as they can, then figures are left
    out, the last first."""
    texts = [at for at in wanted if table.columns[at].type in ("text", "texts")]
    least = {at: min(cells, LEAST_TEXT) if at in texts else cells for at, cells in wanted.items()}
    widths = {at: min(cells, MOST_TEXT) if at in texts else cells for at, cells in wanted.items()}
    while not whole and len(widths) > 1 and _taken(least[at] for at in widths) > room:
        first = next(iter(widths))
        at = max(widths, key=lambda at: (at != first, not table.columns[at].kept, at))
        del widths[at]
    while _taken(widths.values()) > room:
        widest = max(
            (at for at in texts if widths.get(at, 0) > least[at]), key=widths.__getitem__, default=None
        )
        if widest is None:
            break
        widths[widest] -= 1
    return widths


def _taken(cells: Iterable[int]) -> int:
    each = list(cells)
    return sum(each) + _GAP * (len(each) - 1)


def _is_left_out(column: Column, texts: _ColumnTexts) -> bool:
    """Whether a column is left out of a table for people."""
    if column.apart:
        return len(texts.different) <= 1
    return _LEFT_OUT_TEXTS[column.rare].issuperset(texts.different)


_LEFT_OUT_TEXTS = (frozenset(("",)), frozenset(("", "0", "0 B")))
"""The texts of a column that is left out: of most columns, and of columns of rare events."""


class _ColumnTexts(NamedTuple):
    """The texts of a column."""

    values: list[Any]
    """For each row the text, or its value if there are few different ones."""
    by_value: dict[Any, str] | None
    """In that case the texts by value."""
    different: Collection[str]
    """All different texts."""

    @property
    def is_ascii(self) -> bool:
        """Whether all of them have a cell a character."""
        return "".join(self.different).isascii()

    @property
    def cells(self) -> int:
        """How wide the widest is."""
        return max(map(len if self.is_ascii else width, self.different))


class _PaddedColumn:
    """The texts of a column, padded to its width."""

    def __init__(self, shown: _ColumnTexts, cells: int, is_right: bool) -> None:
        self._cells, self._is_right = cells, is_right
        self._values = shown.values
        self._pad: Callable[[str, int], str] | None = None
        """What brings a text to its width, where all are plain and none is cut."""
        if shown.is_ascii and max(map(len, shown.different)) <= cells:
            self._pad = str.rjust if is_right else str.ljust
        self._by_value: dict[Any, str] | None = None
        if shown.by_value is not None:
            padded = self._padded(shown.by_value.values())
            self._by_value = dict(zip(shown.by_value, padded, strict=True))

    def heading(self, text: str) -> str:
        """A single text."""
        return _cell(text, self._cells, self._is_right)

    def texts(self, part: slice) -> Iterable[str]:
        """The texts of some rows."""
        values = self._values[part]
        if self._by_value is not None:
            return map(self._by_value.__getitem__, values)
        return self._padded(values)

    def _padded(self, texts: Iterable[str]) -> Iterable[str]:
        if self._pad is not None:
            return map(self._pad, texts, repeat(self._cells))
        return map(self.heading, texts)


def _cell(text: str, cells: int, is_right: bool) -> str:
    if width(text) > cells:
        while width(text) > cells - width(CUT):
            text = text[:-1]
        text += CUT
    return pad(text, cells, is_right)


def _values(rows: list[dict[str, Any]], columns: Sequence[Column], options: Options) -> list[list[Any]]:
    """The values of each column. Texts in them may not be valid yet."""
    found: list[list[Any]] = [[] for _ in columns]
    kept = [
        (column.key, values) for column, values in zip(columns, found, strict=True) if column.key is not None
    ]
    if len(kept) > 1:
        row_of = itemgetter(*[key for key, _ in kept])
        for start in range(0, len(rows), _READ_AT_ONCE):  # by rows: each row is looked up in memory only once
            part = map(row_of, rows[start : start + _READ_AT_ONCE])
            for (_, values), some in zip(kept, zip(*part, strict=True), strict=True):
                values += some
    else:
        for key, values in kept:
            values += map(itemgetter(key), rows)
    for column, values in zip(columns, found, strict=True):
        if column.key is None:
            value = column.value
            values += [value(row, options) for row in rows]
    return found


def _all_shown(values: list[Any], column: Column, clock: Clock) -> _ColumnTexts:
    """The texts of a column. The text of a frequent value is made once."""
    show = _way_to_show(column, clock)
    if column.type not in _OFTEN_THE_SAME or column.unit == BANDS:
        every = ["" if value is None else show(value) for value in values]
        return _ColumnTexts(every, None, set(every))
    texts = {value: "" if value is None else show(value) for value in set(values)}
    if len(texts) <= len(values) // _OFTEN:
        return _ColumnTexts(values, texts, texts.values())
    return _ColumnTexts(list(map(texts.__getitem__, values)), None, texts.values())


_OFTEN = 4
"""If values occur this often on average, each is padded once."""
_OFTEN_THE_SAME = frozenset(("text", "bool", "int16", "int32", "int64"))
"""Types whose equal values have equal texts."""


def shown(column: Column, value: Any, clock: Clock) -> str:
    """One value for people."""
    if value is None:
        return ""
    return _way_to_show(column, clock)(value)


def _way_to_show(column: Column, clock: Clock) -> Callable[[Any], str]:
    """The function that prints the values of a column."""
    if column.unit == TIME:
        return clock.text
    return _UNITS.get(column.unit or "") or _FORMS.get(column.type) or "{:,}".format


def _listed(values: Iterable[int]) -> str:
    return ", ".join(map(str, values))


def _exchanges(numbers: int | Sequence[int]) -> str:
    """The text of one or several exchange numbers."""
    return str(numbers) if isinstance(numbers, int) else _listed(numbers)


_UNITS: dict[str, Callable[[Any], str]] = {
    DURATION: duration,
    BYTES: size,
    BANDS: bars,
    ID: str,
    EXCHANGE: _exchanges,
}


_FORMS: dict[str, Callable[[Any], str]] = {
    "text": lambda value: sanitise(valid_text(value)),
    "int64s": _listed,
    "texts": lambda values: ", ".join(sanitise(valid_text(each)) for each in values),
    "bool": lambda value: "yes" if value else "no",
    "float64": lambda value: f"{value:,.1f}",
    "json": lambda value: sanitise(json.dumps(value, ensure_ascii=False)),
}
