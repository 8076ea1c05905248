"""The exchanges of a view as rows of a table. Nothing here draws."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from kdissect.feed.coloring import Coloring
from kdissect.feed.field_values import FieldValues
from kdissect.feed.index import Index, Places
from kdissect.feed.rows import (
    HAS_REQUEST,
    HAS_RESPONSE,
    HAS_VERSION,
    IS_CUT,
    grade_of,
)
from kdissect.present.form import Clock, seconds
from kdissect.protocol.errors import FATAL, RETRIABLE
from kdissect.tui.lists.exchange_columns import COLUMNS, MOST_CELLS, ExchangeTexts, FieldColumns, ListColumn
from kdissect.tui.lists.layout import Needs, Want, evenly, granted, shortened, taken, turned
from kdissect.tui.marks import Marks
from kdissect.tui.widgets.table import Heading

TIMES = "radue"
"""The forms of times, in the order in which the key cycles through them
(:data:`kdissect.present.form.TIMES`)."""
_LEAST_TEXT = 12
"""The least width of a text column, in cells, if its texts need them."""
_UP, _DOWN = "▴", "▾"

_Layout = tuple[Sequence[str], Sequence[Heading]]
"""The columns and their headings."""


def _beside(row: int, step: int, wanted: NDArray[np.bool_]) -> int | None:
    """The next wanted row after (1) or before (-1) one."""
    rows = np.flatnonzero(wanted)
    rows = rows[rows > row] if step > 0 else rows[rows < row]
    if not len(rows):
        return None
    return int(rows[0] if step > 0 else rows[-1])


class Exchanges:
    """The exchanges of a view.

    :param chosen: names of columns. If empty, the list has as many columns as there is room for. If all of
        them are fields of messages, they are added to those columns.
    :param coloring: colours rows by the user's rules.
    :param values: gives the values of fields.
    """

    def __init__(
        self,
        index: Index,
        marks: Marks | None = None,
        chosen: Sequence[str] = (),
        coloring: Coloring | None = None,
        values: FieldValues | None = None,
    ) -> None:
        self.index = index
        self.view: Places = index.view()
        self.clock = Clock()
        self.texts = ExchangeTexts(index, self.clock, marks, coloring)
        self.fields = FieldColumns(values)
        """The columns that show fields of messages."""
        self.choose(chosen)
        self.sorted_by: tuple[str, bool] | None = None
        """The column of the index that orders the list, and whether the largest come first; None for the
        usual order."""
        self.needs = Needs(index)
        """The needed widths of the columns."""
        self._laid_out: tuple[object, _Layout] | None = None
        """The columns and their headings, with the data that they were made from."""
        self._layouts = 0
        """How many different layouts there have been."""
        self._turn = 0
        """The page of columns that is shown (:func:`~kdissect.tui.lists.layout.turned`)."""
        self._hint = ""
        """The text about columns without room."""

    # -- which --------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.view)

    def place(self, row: int) -> int:
        """The place in the index of a row."""
        return int(self.view[row])

    def row_of(self, place: int) -> int | None:
        """The row that shows a place of the index; None if none does."""
        found = np.flatnonzero(self.view == place)
        return int(found[0]) if len(found) else None

    def row_after(self, place: int) -> int:
        """The row of a place of the index, or else of the next higher number, or the last row."""
        numbers = self.index.column("number")[self.view]
        number = self.index.value("number", place)
        above = numbers >= number
        if not above.any():
            return max(0, len(self) - 1)
        least = numbers[above].min()
        return int(np.flatnonzero(numbers == least)[0])

    def next_bad(self, row: int, step: int) -> int | None:
        """The next row after (1) or before (-1) a row that has a fault, or an error that is not routine."""
        return _beside(row, step, self.index.is_bad()[self.view])

    def is_bad(self, row: int) -> bool:
        """Whether a row has a fault, or an error that is not routine."""
        return bool(self.index.is_bad()[self.place(row)])

    def next_of_connection(self, row: int, step: int) -> int | None:
        """The next row after (1) or before (-1) a row, with an exchange of the same connection."""
        connections = self.index.column("connection")[self.view]
        return _beside(row, step, connections == connections[row]) if row < len(self) else None

    # -- how ----------------------------------------------------------------------------------------

    def choose(self, names: Sequence[str]) -> None:
        """Show these columns; other names are left out."""
        self.fields.choose([name for name in names if name not in COLUMNS])
        self.chosen = tuple(name for name in names if name in COLUMNS or name in self.fields.shown)

    @property
    def is_usual(self) -> bool:
        """Whether the list has the usual columns, as many as there is room for, besides fields."""
        return len(self.chosen) == len(self.fields.shown)

    def column(self, name: str) -> ListColumn:
        """The column of a name: one of :data:`COLUMNS`, or one that shows a field."""
        return COLUMNS[name] if name in COLUMNS else self._field_column(name)

    def _field_column(self, name: str) -> ListColumn:
        def cell(_: ExchangeTexts, place: int, flags: int) -> str:
            return self.fields.text(name, place)

        found = self.fields.shown[name]
        return ListColumn(Heading(found.title, MOST_CELLS, found.is_number), cell, is_text=True, alone=name)

    def names(self, width: int) -> Sequence[str]:
        """The columns for a table of this width."""
        return self._layout(width)[0]

    def headings(self, width: int) -> Sequence[Heading]:
        return self._layout(width)[1]

    def columns_hint(self, width: int) -> str:
        self._layout(width)
        return self._hint

    def turn_columns(self, step: int, width: int) -> bool:
        self._layout(width)
        before, self._turn = self._turn, max(0, self._turn + step)
        self._layout(width)
        return self._turn != before

    def _layout(self, width: int) -> _Layout:
        """The columns and their headings. They are kept until something that they depend on changes."""
        self.needs.look()
        looks = self.clock.letter, self.clock.first_ns, self.chosen, self.sorted_by, self._turn
        known = (width, self.needs.all, self.needs.ends, self.fields.widths, *looks)
        if self._laid_out is None or self._laid_out[0] != known:
            before, found = self._laid_out, self._lay_out(width)
            self._laid_out = known, found
            self._layouts += before is None or before[1] != found
        return self._laid_out[1]

    def _lay_out(self, width: int) -> _Layout:
        *others, info = _ORDER
        names = (*others, *self.chosen, info) if self.is_usual else ("mark", *self.chosen)
        needs = [self._need(name) for name in names]

        def fit(room: int) -> list[int]:
            fitted = self._fitted if self.is_usual else self._fitted_to_chosen
            return fitted(names, needs, room)

        kept = [at for at, name in enumerate(names) if name in _KEPT]
        found = turned(fit, needs, kept, width, self._turn)
        widths, self._hint, self._turn = found
        headings = [
            self.column(name).heading._replace(width=cells) for name, cells in zip(names, widths, strict=True)
        ]
        self._mark_order(names, headings)
        shown = [at for at, cells in enumerate(widths) if cells]
        rest = next((at for at in shown if names[at] == "info"), shown[-1])
        headings[rest] = headings[rest]._replace(width=0, is_right=False)
        return [names[at] for at in shown], [headings[at] for at in shown]

    def _fitted(self, names: Sequence[str], needs: Sequence[int], room: int) -> list[int]:
        """The widths of as many columns as there is room for. ``Info`` gets its share before the next column
        gets any. A chosen field comes before other columns, because the user wants to see it."""
        need = dict(zip(names, needs, strict=True))
        at = {name: place for place, name in enumerate(names)}
        begun = [(name, _LEAST_TEXT) for name in self.chosen]
        whole = [(name, _ALL) for name in self.chosen]
        wanted = (*begun, *_WANTS[:_BEFORE_FIELDS], *whole, *_WANTS[_BEFORE_FIELDS:])
        must = [Want(at[name], min(need[name], cells)) for name, cells in _MUST]
        wants = [Want(at[name], min(need[name], cells)) for name, cells in wanted]
        widths = granted(must, wants, len(names), room)
        if not all(widths):  # too little for the next column: Info would have to give it back
            widths[at["what"]] += max(0, room - taken(widths))
        return widths

    def _fitted_to_chosen(self, names: Sequence[str], needs: Sequence[int], room: int) -> list[int]:
        """The widths of columns if all of them are shown: texts get shorter."""
        can = [at for at, name in enumerate(names) if self.column(name).is_text]
        least = [Want(at, min(need, _LEAST_TEXT) if at in can else need) for at, need in enumerate(needs)]
        most = [Want(at, needs[at]) for at in can]
        wants = [*least[2:], *evenly([least[at] for at in can], most)]
        return granted(least[:2], wants, len(names), room)

    def _need(self, name: str) -> int:
        """The cells for the values of a column, and for its heading with the mark of the order."""
        column = self.column(name)
        most = column.heading.width
        if column.is_fixed:
            return most
        if name in self.fields.shown:
            cells = self.fields.cells(name)
        else:
            cells = self._time_cells() if name == "request_time_ns" else self.needs.of(name)
        head = cell_len(column.heading.title) + (column.sort is not None)
        return max(head, min(cells, most) if most else cells)

    def _time_cells(self) -> int:
        """The width of the longest time, in cells."""
        ends, clock = self.needs.ends, self.clock
        if clock.letter not in "rd":
            return max((len(Clock(clock.letter).text(ns)) for ns in ends), default=0)
        if not ends:
            return 0
        if clock.letter == "d":  # back, if the list is in another order
            return len(seconds(ends[0] - ends[1])[:-3])
        first = self.index.first_ns if clock.first_ns is None else clock.first_ns
        return max(len(seconds(ns - (ends[0] if first is None else first))[:-3]) for ns in ends)

    def _mark_order(self, names: Sequence[str], headings: list[Heading]) -> None:
        """Mark the heading of the column that orders the list."""
        if self.sorted_by is None:
            return
        sort, descending = self.sorted_by
        at = next((at for at, name in enumerate(names) if self.column(name).sort == sort), None)
        if at is not None:
            heading, mark = headings[at], _DOWN if descending else _UP
            title = f"{mark}{heading.title}" if heading.is_right else f"{heading.title}{mark}"
            headings[at] = heading._replace(title=title)

    def key(self, row: int) -> Hashable:
        place = self.place(row)
        before = self.view[row - 1] if row and self.clock.letter == "d" else 0
        looks = self.texts.sign(place), self.texts.is_slow(place), self.texts.rule(place)
        return place, int(before), looks, self.fields.texts(place), self._layouts

    def tone(self, row: int) -> str | None:
        place, index = self.place(row), self.index
        rule = self.texts.rule(place)
        if rule is not None:
            return f"table--{rule.color}"
        flags = index.value("flags", place)
        grade = grade_of(flags)
        if grade == FATAL or index.value("faults", place):
            return "table--error"
        if grade == RETRIABLE or flags & IS_CUT or self.texts.is_slow(place):
            return "table--warning"
        return None if flags & HAS_REQUEST and flags & HAS_RESPONSE else "table--dim"

    def cells(self, row: int, width: int) -> Sequence[str]:
        place = self.place(row)
        flags = self.index.value("flags", place)
        self.texts.above = self.place(row - 1) if row else None
        names = self.names(width)
        out = [self.column(name).cell(self.texts, place, flags) for name in names]
        if "what" in names and flags & HAS_VERSION:
            at = names.index("what")
            room = self.headings(width)[at].width
            if 0 < room < len(out[at]):
                name, _, version = out[at].rpartition(" ")
                out[at] = shortened(name, f" {version}", room)
        return out


_ORDER = (
    *("mark", "number", "request_time_ns", "connection", "who", "client", "broker", "what"),
    *("correlation_id", "latency_ns", "sizes", "info"),
)
"""The columns that are shown if the user chose none, as far as there is room."""
_KEPT = ("mark", "number")
"""The columns that are on every page of columns."""
_ALL = 1_000
_MUST = (
    *(("mark", _ALL), ("number", _ALL), ("request_time_ns", _ALL), ("what", 14), ("latency_ns", _ALL)),
    ("info", 10),
)
_WANTS = (
    *(("what", 18), ("info", 18), ("who", 10), ("what", 22), ("info", 24), ("who", 14), ("what", _ALL)),
    *(("info", 30), ("sizes", _ALL), ("info", 36), ("who", _ALL), ("connection", _ALL)),
    *(
        ("correlation_id", _ALL),
        ("info", 44),
        ("broker", _ALL),
        ("info", 50),
        ("client", _ALL),
        ("info", _ALL),
    ),
)
"""The widths that columns get before others get any, or more; each gets no more than it needs. So one long
name of an API does not take the room of the client from all rows."""
_BEFORE_FIELDS = 6
"""The number of these wants that come before chosen fields."""
