"""Rows of a statistic → a table for people.

Times count from the first packet. Durations and sizes have units. Empty columns are left out, and so are
columns of rare events if all counts are 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from kdissect.analysis.declared import BANDS, BYTES, DURATION, EXCHANGE, ID, TIME
from kdissect.limits import Limits
from kdissect.present.columns import Column, Table
from kdissect.present.form import Clock, bars, duration, plural, size
from kdissect.present.options import Options
from kdissect.present.sanitise import CUT, aligned, pad, sanitise, valid_text, width

NUMBERS = frozenset(("int16", "int32", "int64", "float64"))
MOST_TEXT, LEAST_TEXT = 48, 16
"""The most cells of a column of texts if the room is limited, and the least cells that it keeps if it needs
them."""
_GAP = 2


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
    rows: Iterable[dict[str, Any]],
    options: Options,
    clock: Clock,
    whole: bool = False,
    room: int | None = None,
) -> Iterator[str]:
    """A heading and a line for each row, with as much room for each column as it needs.

    :param rows: the rows. Each is needed only until the next ones are taken.
    :param whole: whether to leave out no column.
    :param room: cells of a line, if no line may be longer: texts are cut, the last columns are left out, and
        a line below names them.
    """
    columns = [_ColumnTexts(column, clock) for column in table.columns]
    counts: list[int] = []
    following = iter(rows)
    while part := list(islice(following, _ROWS_AT_ONCE)):
        counts.append(len(part))
        # By columns: each column has its own way to show values.
        for column, values in zip(columns, _values(part, table.columns, options), strict=True):
            column.add(values)
    if not counts:
        yield "(no rows)"
        return
    headings = [column.name.removesuffix("_ns") for column in table.columns]
    shown = [at for at, column in enumerate(columns) if whole or not column.is_left_out]
    widths = {at: max(width(headings[at]), columns[at].cells) for at in shown}
    if room is not None:
        widths = _fitting(table, widths, room, whole)
    padded = [
        _PaddedColumn(columns[at], cells, table.columns[at].type in NUMBERS) for at, cells in widths.items()
    ]
    least = [each.least for each in padded]
    head = [[each.heading(headings[at])] for at, each in zip(widths, padded, strict=True)]
    yield from aligned(head, least, 1, _GAP)
    for block, count in enumerate(counts):
        yield from aligned([each.texts(block) for each in padded], least, count, _GAP)
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


_LEFT_OUT_TEXTS = (frozenset(("",)), frozenset(("", "0", "0 B")))
"""The texts of a column that is left out: of most columns, and of columns of rare events."""


class _ColumnBlock(NamedTuple):
    """The texts of a column in :data:`_ROWS_AT_ONCE` rows, or fewer at the end."""

    text: str
    """The texts, with :data:`_BETWEEN` between them; if all are the same, only one of them."""
    same: int
    """How many there are if all are the same; otherwise 0."""


class _ColumnTexts:
    """The texts of a column. Those of many rows are one string: separate strings would take ten times the
    memory."""

    def __init__(self, column: Column, clock: Clock) -> None:
        self._show = _way_to_show(column, clock)
        self._known: dict[Any, str] | None = {None: ""}
        """The texts by value, if equal values have equal texts."""
        self._is_of_texts = column.type == "texts"
        self._is_of_numbers = column.type == "int64s" and column.unit != BANDS
        """Whether values are lists, and an empty one has an empty text."""
        if column.type not in _OFTEN_THE_SAME or column.unit in _SELDOM_THE_SAME:
            self._known = None
        self._column = column
        self._first: str | None = None
        self.blocks: list[_ColumnBlock] = []
        self.is_left_out = True
        """Whether its texts are no reason to show the column."""
        self.is_narrow = True
        """Whether each has a cell a character."""
        self.cells = 0
        """How wide the widest is."""

    def add(self, values: Sequence[Any]) -> None:
        """Add the values of the next rows."""
        texts, different = self._texts(values)
        if self.is_left_out:
            self.is_left_out = self._leaves_out(different)
        same = len(values) if different.count(different[0]) == len(different) else 0
        block = _ColumnBlock(texts[0] if same else _BETWEEN.join(texts), same)
        is_narrow = block.text.isascii() or block.text.replace(_MICRO, "").isascii()
        self.is_narrow &= is_narrow
        self.cells = max(self.cells, *map(len if is_narrow else width, different))
        self.blocks.append(block)

    def _texts(self, values: Sequence[Any]) -> tuple[list[str], list[str]]:
        """The texts of values, and those that differ, some of them maybe several times. If all are the same,
        one text is enough."""
        show, known = self._show, self._known
        if self._is_of_numbers:
            texts = [show(value) if value else "" for value in values]
            return texts, texts
        if known is None:
            texts = ["" if value is None else show(value) for value in values]
            return texts, texts
        if self._is_of_texts:
            values = [tuple(value or ()) for value in values]
        different = set(values)
        for value in different.difference(known):
            known[value] = show(value)
        texts = found = list(map(known.__getitem__, different))
        if len(found) > 1:
            texts = list(map(known.__getitem__, values))
        if len(known) > _MOST_KNOWN:
            self._known = {None: ""}
        return texts, found

    def _leaves_out(self, different: list[str]) -> bool:
        """Whether the column may be left out with these further texts."""
        if not self._column.apart:
            return _LEFT_OUT_TEXTS[self._column.rare].issuperset(different)
        if self._first is None:
            self._first = min(different)
        return set(different) == {self._first}


_ROWS_AT_ONCE = 256
"""How many rows are read, shown and padded at a time."""
_BETWEEN = "\0"
"""Separates the texts in a block. It is in no text, because texts are sanitised."""
_MICRO = "µ"
"""It takes one cell. Durations have no other character beyond ASCII."""
_MOST_KNOWN = 1_024
_OFTEN_THE_SAME = frozenset(("text", "texts", "bool", "int16", "int32", "int64"))
"""Types whose equal values have equal texts. The text of a frequent value is made once."""
_SELDOM_THE_SAME = frozenset((BANDS, EXCHANGE, TIME))
"""Units whose values are not worth remembering."""


class _PaddedColumn:
    """The texts of a column, as :func:`~kdissect.present.sanitise.aligned` takes them."""

    def __init__(self, column: _ColumnTexts, cells: int, is_right: bool) -> None:
        self._cells, self._is_right = cells, is_right
        self._blocks = column.blocks
        self._is_padded = not column.is_narrow or column.cells > cells
        """Whether its texts are padded here, because some are cut, or take other cells than characters."""
        self.least = 0 if self._is_padded else -cells if is_right else cells
        """The least characters of its texts; negative if they are aligned right."""

    def heading(self, text: str) -> str:
        """A single text."""
        return _cell(text, self._cells, self._is_right)

    def texts(self, block: int) -> list[str]:
        """The texts of a block; a single one if all are the same."""
        text, same = self._blocks[block]
        if same:
            return [self.heading(text)]
        texts = text.split(_BETWEEN)
        if not self._is_padded:
            return texts
        padded = {each: self.heading(each) for each in set(texts)}
        return list(map(padded.__getitem__, texts))


def _cell(text: str, cells: int, is_right: bool) -> str:
    if width(text) > cells:
        while width(text) > cells - width(CUT):
            text = text[:-1]
        text += CUT
    return pad(text, cells, is_right)


def _values(
    rows: Sequence[dict[str, Any]], columns: Sequence[Column], options: Options
) -> list[Sequence[Any]]:
    """The values of each column. Texts in them may not be valid yet."""
    keys = [column.key for column in columns if column.key is not None]
    kept: Iterator[Sequence[Any]] = iter(())
    if len(keys) > 1:
        kept = zip(*map(itemgetter(*keys), rows), strict=True)  # by rows: each is looked up only once
    elif keys:
        kept = iter(([row[keys[0]] for row in rows],))
    return [
        [column.value(row, options) for row in rows] if column.key is None else next(kept)
        for column in columns
    ]


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
