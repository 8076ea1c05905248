"""The exchanges of a view as rows of a table. Nothing here draws."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from kdissect.feed.coloring import Coloring
from kdissect.feed.field_values import FieldValues
from kdissect.feed.index import Index, Places
from kdissect.feed.rows import (
    FIRST,
    HAS_CORRELATION,
    HAS_LATENCY,
    HAS_REQUEST,
    HAS_RESPONSE,
    HAS_TAKEN,
    HAS_VERSION,
    IS_CUT,
    grade_of,
)
from kdissect.present.form import Clock, duration, plural, seconds, size
from kdissect.present.sanitise import sanitise
from kdissect.protocol.errors import FATAL, RETRIABLE, ROUTINE, SIGNS, graded
from kdissect.settings.coloring import ColoringRule
from kdissect.tui.lists.field_columns import MOST_CELLS, FieldColumns
from kdissect.tui.lists.layout import Needs, Want, evenly, granted, shortened, taken, turned
from kdissect.tui.marks import Marks
from kdissect.tui.widgets.table import Heading

TIMES = "radue"
"""Forms of times, in the order in which the key goes through them (:data:`kdissect.present.form.TIMES`)."""
SLOW_SIGN = "◷"
_LEAST_TEXT = 12
"""Cells that a text keeps, if it needs them."""
_UP, _DOWN = "▴", "▾"

Cell = Callable[["Exchanges", int, int], str]
"""The text of an exchange in a column, by its place in the index and its flags."""


_Layout = tuple[Sequence[str], Sequence[Heading]]
"""Columns and their heads."""


class ListColumn(NamedTuple):
    """A column of the list."""

    heading: Heading
    """Its width is the most cells that it takes; 0 for what the others leave."""
    cell: Cell
    sort: str | None = None
    """The column of the index that orders the list; None where none does."""
    is_text: bool = False
    """Whether it can be narrower than what stands in it."""
    is_fixed: bool = False
    """Whether it always takes its cells."""
    alone: str = ""
    """Its name where it stands beside all others, if the head is not its own."""

    @property
    def name(self) -> str:
        """What tells it from the others."""
        return self.alone or self.heading.title


def _beside(row: int, step: int, wanted: NDArray[np.bool_]) -> int | None:
    """The next wanted row after (1) or before (-1) one."""
    rows = np.flatnonzero(wanted)
    rows = rows[rows > row] if step > 0 else rows[rows < row]
    if not len(rows):
        return None
    return int(rows[0] if step > 0 else rows[-1])


class Exchanges:
    """The exchanges of a view.

    :param chosen: names of columns; none for as many as there is room for. Where all of them are fields of
        messages, those stand among as many as there is room for.
    :param coloring: colours rows by rules of the user.
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
        self.fields = FieldColumns(values)
        """Those of the columns that show fields of messages."""
        self.choose(chosen)
        self.sorted_by: tuple[str, bool] | None = None
        """The column of the index that orders the list, and whether the largest stand first; None for the
        usual order."""
        self.needs = Needs(index)
        """What the columns are to be as wide as."""
        self._laid_out: tuple[object, _Layout] | None = None
        """The columns and their heads, after what they were made of."""
        self._layouts = 0
        """How many different ones there have been."""
        self._turn = 0
        """Which page of columns is shown (:func:`~kdissect.tui.lists.layout.turned`)."""
        self._hint = ""
        """What is said of columns without room."""
        self._marks = marks if marks is not None else Marks()
        self._coloring = coloring
        self.slow = np.zeros(0, np.int64)
        """By the number of an API's name: what an exchange takes no longer unless it is slow
        (:func:`kdissect.feed.columns.limits_of`)."""

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
        """The row of a place of the index, or else that of the next higher number, or the last row."""
        numbers = self.index.column("number")[self.view]
        number = self.index.value("number", place)
        above = numbers >= number
        if not above.any():
            return max(0, len(self) - 1)
        least = numbers[above].min()
        return int(np.flatnonzero(numbers == least)[0])

    def next_bad(self, row: int, step: int) -> int | None:
        """The next row after (1) or before (-1) one with a fault, or an error that is not routine."""
        return _beside(row, step, self.index.is_bad()[self.view])

    def next_of_connection(self, row: int, step: int) -> int | None:
        """The next row after (1) or before (-1) one with an exchange of the same connection."""
        connections = self.index.column("connection")[self.view]
        return _beside(row, step, connections == connections[row]) if row < len(self) else None

    # -- how ----------------------------------------------------------------------------------------

    def choose(self, names: Sequence[str]) -> None:
        """Show these columns; what is no column is left out."""
        self.fields.choose([name for name in names if name not in COLUMNS])
        self.chosen = tuple(name for name in names if name in COLUMNS or name in self.fields.shown)

    @property
    def is_usual(self) -> bool:
        """Whether there are as many columns as there is room for, beside fields."""
        return len(self.chosen) == len(self.fields.shown)

    def column(self, name: str) -> ListColumn:
        """The column of a name: one of :data:`COLUMNS`, or one that shows a field."""
        return COLUMNS[name] if name in COLUMNS else self._field_column(name)

    def _field_column(self, name: str) -> ListColumn:
        def cell(rows: Exchanges, place: int, _: int) -> str:
            return rows.fields.text(name, place)

        found = self.fields.shown[name]
        return ListColumn(Heading(found.title, MOST_CELLS, found.is_number), cell, is_text=True, alone=name)

    def names(self, width: int) -> Sequence[str]:
        """The columns for a table that is so wide."""
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
        """The columns and their heads, as they were, unless something that counts for them is another."""
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
        """The cells of as many columns as there is room for. ``Info`` has its share before the next column
        has any. Who chose a field wants to see it before others."""
        need = dict(zip(names, needs, strict=True))
        at = {name: place for place, name in enumerate(names)}
        begun = [(name, _LEAST_TEXT) for name in self.chosen]
        whole = [(name, _ALL) for name in self.chosen]
        wanted = (*begun, *_WANTS[:_BEFORE_FIELDS], *whole, *_WANTS[_BEFORE_FIELDS:])
        must = [Want(at[name], min(need[name], cells)) for name, cells in _MUST]
        wants = [Want(at[name], min(need[name], cells)) for name, cells in wanted]
        widths = granted(must, wants, len(names), room)
        if not all(widths):  # what is too little for the next column: Info would have to give it back
            widths[at["what"]] += max(0, room - taken(widths))
        return widths

    def _fitted_to_chosen(self, names: Sequence[str], needs: Sequence[int], room: int) -> list[int]:
        """The cells of columns all of which are wanted: texts give way."""
        can = [at for at, name in enumerate(names) if self.column(name).is_text]
        least = [Want(at, min(need, _LEAST_TEXT) if at in can else need) for at, need in enumerate(needs)]
        most = [Want(at, needs[at]) for at in can]
        wants = [*least[2:], *evenly([least[at] for at in can], most)]
        return granted(least[:2], wants, len(names), room)

    def _need(self, name: str) -> int:
        """Cells for what stands in a column, and its head with the mark of the order."""
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
        """Cells of the longest time."""
        ends, clock = self.needs.ends, self.clock
        if clock.letter not in "rd":
            return max((len(Clock(clock.letter).text(ns)) for ns in ends), default=0)
        if not ends:
            return 0
        if clock.letter == "d":  # back, where the list is in another order
            return len(seconds(ends[0] - ends[1])[:-3])
        first = self.index.first_ns if clock.first_ns is None else clock.first_ns
        return max(len(seconds(ns - (ends[0] if first is None else first))[:-3]) for ns in ends)

    def _mark_order(self, names: Sequence[str], headings: list[Heading]) -> None:
        """Mark the head of the column that orders the list."""
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
        looks = self._sign(place), self._is_slow(place), self._rule(place)
        return place, int(before), looks, self.fields.texts(place), self._layouts

    def tone(self, row: int) -> str | None:
        place, index = self.place(row), self.index
        rule = self._rule(place)
        if rule is not None:
            return f"table--{rule.color}"
        flags = index.value("flags", place)
        grade = grade_of(flags)
        if grade == FATAL or index.value("faults", place):
            return "table--error"
        if grade == RETRIABLE or flags & IS_CUT or self._is_slow(place):
            return "table--warning"
        return None if flags & HAS_REQUEST and flags & HAS_RESPONSE else "table--dim"

    def _rule(self, place: int) -> ColoringRule | None:
        """The coloring rule that an exchange matches."""
        return None if self._coloring is None else self._coloring.rule_of(place)

    def _is_slow(self, place: int) -> bool:
        """Whether it took longer than nearly all others of its API."""
        index, api = self.index, self.index.value("api", place)
        if not index.value("flags", place) & HAS_TAKEN or api >= len(self.slow):
            return False
        return index.value("taken_ns", place) > int(self.slow[api])

    def cells(self, row: int, width: int) -> Sequence[str]:
        place = self.place(row)
        flags = self.index.value("flags", place)
        self._row = row
        names = self.names(width)
        out = [self.column(name).cell(self, place, flags) for name in names]
        if "what" in names and flags & HAS_VERSION:
            at = names.index("what")
            room = self.headings(width)[at].width
            if 0 < room < len(out[at]):
                name, _, version = out[at].rpartition(" ")
                out[at] = shortened(name, f" {version}", room)
        return out

    def _sign(self, place: int) -> str:
        return self._marks.sign(self.index.value("number", place))

    # -- cells --------------------------------------------------------------------------------------

    def _mark(self, place: int, flags: int) -> str:
        return (self._state(place, flags) or " ") + self._sign(place)

    def _state(self, place: int, flags: int) -> str:
        index = self.index
        grade = grade_of(flags)
        if grade in (FATAL, RETRIABLE):
            return SIGNS[grade]
        if index.value("faults", place):
            return "!"
        if flags & IS_CUT:
            return "◐"
        if not (flags & HAS_REQUEST and flags & HAS_RESPONSE):
            return "…" if index.text("missing", place) == "waiting" else "∅"
        if self._is_slow(place):
            return SLOW_SIGN
        return SIGNS[ROUTINE] if grade else ""

    def _time(self, place: int, flags: int) -> str:
        ns = self.index.value("time_ns", place)
        if self.clock.letter == "d":  # since the row above, which may not have been drawn
            above = self.index.value("time_ns", self.place(self._row - 1)) if self._row else ns
            return seconds(ns - above)[:-3]
        if self.clock.first_ns is None:
            self.clock.first_ns = self.index.first_ns
        return self.clock.text(ns)

    def _who(self, place: int, flags: int) -> str:
        return self.index.text("client_id", place) or self.index.text("client", place)

    def _api(self, place: int, flags: int) -> str:
        api = self.index.text("api", place) or "?"
        return f"{api} v{self.index.value('api_version', place)}" if flags & HAS_VERSION else api

    def _latency(self, place: int, flags: int) -> str:
        return duration(self.index.value("latency_ns", place)) if flags & HAS_LATENCY else ""

    def _behind(self, place: int, flags: int) -> str:
        behind = self.index.value("behind_ns", place)
        return duration(behind) if behind > 0 else ""

    def _rule_name(self, place: int, flags: int) -> str:
        rule = self._rule(place)
        return "" if rule is None else sanitise(rule.name)

    def _sizes(self, place: int, flags: int) -> str:
        sides = (self.index.value(name, place) for name in ("request_size", "response_size"))
        return " → ".join("·" if count < 0 else size(count) for count in sides)

    def _info(self, place: int, flags: int) -> str:
        index = self.index
        parts = []
        if error := index.text("error", place):
            parts.append(graded(error, grade_of(flags, FIRST), grade_of(flags)))
        if missing := index.text("missing", place):
            side = "request" if not flags & HAS_REQUEST else "response"
            whole = flags & HAS_REQUEST and flags & HAS_RESPONSE
            parts.append(f"[{'cut' if whole else 'no'} {side}: {missing}]")
        if faults := index.value("faults", place):
            parts.append(f"[{plural(faults, 'fault')}]")
        if topics := index.text("topics", place):
            parts.append(topics)
        return " ".join(parts)


def _text(title: str, name: str, most: int) -> ListColumn:
    def cell(rows: Exchanges, place: int, _: int) -> str:
        return rows.index.text(name, place)

    return ListColumn(Heading(title, most, is_name=name in _NAMES), cell, name, is_text=True)


def _number(title: str, name: str, least: int | None = None, flag: int = 0) -> ListColumn:
    """A column of numbers; nothing stands for those below ``least``, and in rows without the flag."""

    def cell(rows: Exchanges, place: int, flags: int) -> str:
        value = rows.index.value(name, place)
        return "" if flags & flag != flag or (least is not None and value < least) else str(value)

    return ListColumn(Heading(title, _MOST_DIGITS, True), cell, name)


def _size(title: str, name: str) -> ListColumn:
    def cell(rows: Exchanges, place: int, _: int) -> str:
        value = rows.index.value(name, place)
        return "" if value < 0 else size(value)

    return ListColumn(Heading(title, _MOST_SIZE, True), cell, name)


_NAMES = ("client_id", "client", "broker")
_MOST_DIGITS, _MOST_SIZE, _MOST_TIME = 11, 10, 27
_MOST_ID, _MOST_ADDRESS, _MOST_API = 28, 47, 34
_MOST_RULE = 16

COLUMNS: Mapping[str, ListColumn] = {
    "mark": ListColumn(Heading("", 2), Exchanges._mark, is_fixed=True),
    "number": _number("No.", "number"),
    "request_time_ns": ListColumn(Heading("Time", _MOST_TIME, True), Exchanges._time, "time_ns"),
    "connection": _number("Conn", "connection"),
    "who": ListColumn(Heading("Client", _MOST_ID, is_name=True), Exchanges._who, "client_id", is_text=True),
    "client_id": _text("Client id", "client_id", _MOST_ID),
    "client": _text("Address", "client", _MOST_ADDRESS),
    "broker": _text("Broker", "broker", _MOST_ADDRESS),
    "what": ListColumn(Heading("API", _MOST_API), Exchanges._api, "api", is_text=True),
    "api": _text("API", "api", _MOST_API)._replace(alone="API alone"),
    "api_version": _number("Version", "api_version", flag=HAS_VERSION),
    "correlation_id": _number("Corr", "correlation_id", flag=HAS_CORRELATION),
    "latency_ns": ListColumn(Heading("Latency", 8, True), Exchanges._latency, "latency_ns", is_fixed=True),
    "behind_ns": ListColumn(Heading("Behind", 8, True), Exchanges._behind, "behind_ns", is_fixed=True),
    "request_size": _size("Request", "request_size"),
    "response_size": _size("Response", "response_size"),
    "sizes": ListColumn(Heading("Bytes", 2 * _MOST_SIZE + 3), Exchanges._sizes, "response_size"),
    "request_packet": _number("Packet", "request_packet", 1)._replace(alone="Asked in"),
    "response_packet": _number("Packet", "response_packet", 1)._replace(alone="Answered in"),
    "missing": _text("Missing", "missing", 20),
    "error": _text("Error", "error", 40),
    "topics": _text("Topics", "topics", 60),
    "faults": _number("Faults", "faults", 1),
    "coloring_rule": ListColumn(Heading("Rule", _MOST_RULE), Exchanges._rule_name, is_fixed=True),
    "info": ListColumn(Heading("Info", 0), Exchanges._info, "error", is_text=True),
}
"""Columns of an exchange that the list can show, by their names; ``mark``, ``who``, ``what``, ``sizes`` and
``info`` say in one what stands in several."""

_ORDER = (
    *("mark", "number", "request_time_ns", "connection", "who", "client", "broker", "what"),
    *("correlation_id", "latency_ns", "sizes", "info"),
)
"""The columns that are shown where none are chosen, as far as there is room."""
_KEPT = ("mark", "number")
"""Columns that stand beside those without room for all."""
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
"""Cells that columns have before others have any, or more; of each no more than it needs. One long name of an
API does not take the room of the client from all rows."""
_BEFORE_FIELDS = 6
"""After so many of these wants, fields that were chosen have all their cells."""

SORTS = {
    "number": "No.",
    "time_ns": "Time",
    "latency_ns": "Latency",
    "response_size": "Response",
    "request_size": "Request",
    "api": "API",
    "client_id": "Client",
    "broker": "Broker",
    "error": "Error",
}
"""Columns of the index that the list can be ordered by, in the order in which the key goes through them."""

SORT_TITLES = {each.sort: each.heading.title for each in COLUMNS.values() if each.sort} | SORTS
LARGEST_FIRST = ("latency_ns", "behind_ns", "response_size", "request_size", "faults")
"""Those by which the largest stand first."""
