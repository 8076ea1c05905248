"""The exchanges of a view as rows of a table. Nothing here draws."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kdissect.present.form import Clock, duration, plural, seconds, size
from kdissect.protocol import apis
from kdissect.protocol.errors import FATAL, RETRIABLE, ROUTINE, SIGNS, graded
from kdissect.tui.feed.index import Index, Places
from kdissect.tui.feed.rows import (
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
from kdissect.tui.lists import NORMAL_WIDTH, WIDE_WIDTH
from kdissect.tui.marks import Marks
from kdissect.tui.shortening import shortened
from kdissect.tui.widgets.table import Heading

TIMES = "radue"
"""Forms of times, in the order in which the key goes through them (:data:`kdissect.present.form.TIMES`)."""
_TIME_WIDTHS = {"u": 27, "e": 27, "a": 15}
"""Cells for the forms of times that are longer than the others."""
_API, _MOST_API = 22, 34
"""Cells for an API and its version: always, and where ``Info`` has room to give."""
_LEAST_INFO = 18
"""Cells that ``Info`` keeps of that."""
_UP, _DOWN = "▴", "▾"

_API_NAMES = frozenset(map(apis.api_name, apis.api_keys()))

Cell = Callable[["Exchanges", int, int], str]
"""The text of an exchange in a column, by its place in the index and its flags."""


class ListColumn(NamedTuple):
    """A column of the list."""

    heading: Heading
    cell: Cell
    sort: str | None = None
    """The column of the index that orders the list; None where none does."""


class Exchanges:
    """The exchanges of a view.

    :param chosen: names of columns; none for as many as there is room for.
    """

    def __init__(
        self,
        index: Index,
        marks: Marks | None = None,
        chosen: Sequence[str] = (),
    ) -> None:
        self.index = index
        self.view: Places = index.view()
        self.clock = Clock()
        self.chosen = chosen
        self.sorted_by: tuple[str, bool] | None = None
        """The column of the index that orders the list, and whether the largest stand first; None for the
        usual order."""
        self._longest_api, self._texts_seen = 0, 0
        """Cells of the longest name of an API with its version, among so many texts of the index."""
        self._marks = marks if marks is not None else Marks()
        self.slow = np.zeros(0, np.int64)
        """By the number of an API's name: what an exchange takes no longer unless it is slow
        (:func:`kdissect.tui.feed.slowness.limits_of`)."""

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
        bad = np.flatnonzero(self.index.is_bad()[self.view])
        bad = bad[bad > row] if step > 0 else bad[bad < row]
        if not len(bad):
            return None
        return int(bad[0] if step > 0 else bad[-1])

    # -- how ----------------------------------------------------------------------------------------

    def names(self, width: int) -> Sequence[str]:
        """The columns for a table that is so wide."""
        if self.chosen:
            return ("mark", *(name for name in self.chosen if name in COLUMNS))
        return _WIDE if width >= WIDE_WIDTH else _NORMAL if width >= NORMAL_WIDTH else _NARROW

    def headings(self, width: int) -> Sequence[Heading]:
        names = self.names(width)
        out = [COLUMNS[name].heading for name in names]
        if "request_time_ns" in names and self.clock.letter in _TIME_WIDTHS:
            at = names.index("request_time_ns")
            out[at] = out[at]._replace(width=_TIME_WIDTHS[self.clock.letter])
        if names is _NARROW:
            out[1] = out[1]._replace(width=5)
        if "what" in names and "info" in names:
            at = names.index("what")
            spare = width - sum(each.width for each in out) - (len(out) - 1) - _LEAST_INFO
            out[at] = out[at]._replace(width=_API + max(0, min(self._api_room() - _API, spare)))
        self._mark_order(names, out)
        if self.chosen and not any(heading.width == 0 for heading in out):
            out[-1] = out[-1]._replace(width=0, is_right=False)
        return out

    def _api_room(self) -> int:
        """Cells that the longest name of an API needs, of those that occur."""
        texts = self.index.texts
        if len(texts) != self._texts_seen:
            new = (len(text) for text in texts[self._texts_seen :] if text in _API_NAMES)
            self._longest_api = max(self._longest_api, max(new, default=0))
            self._texts_seen = len(texts)
        return min(_MOST_API, self._longest_api + len(" v99"))

    def _mark_order(self, names: Sequence[str], headings: list[Heading]) -> None:
        """Mark the head of the column that orders the list."""
        if self.sorted_by is None:
            return
        sort, descending = self.sorted_by
        at = next((at for at, name in enumerate(names) if COLUMNS[name].sort == sort), None)
        if at is not None:
            heading, mark = headings[at], _DOWN if descending else _UP
            title = f"{mark}{heading.title}" if heading.is_right else f"{heading.title}{mark}"
            headings[at] = heading._replace(title=title)

    def key(self, row: int) -> Hashable:
        place = self.place(row)
        before = self.view[row - 1] if row and self.clock.letter == "d" else 0
        return place, int(before), self._sign(place), self._is_slow(place), self._longest_api

    def tone(self, row: int) -> str | None:
        place, index = self.place(row), self.index
        flags = index.value("flags", place)
        grade = grade_of(flags)
        if grade == FATAL or index.value("faults", place):
            return "table--error"
        if grade == RETRIABLE or flags & IS_CUT or self._is_slow(place):
            return "table--warning"
        return None if flags & HAS_REQUEST and flags & HAS_RESPONSE else "table--dim"

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
        out = [COLUMNS[name].cell(self, place, flags) for name in names]
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


def _text(title: str, name: str, width: int) -> ListColumn:
    return ListColumn(Heading(title, width), lambda rows, place, _: rows.index.text(name, place), name)


def _number(title: str, name: str, width: int, least: int | None = None, flag: int = 0) -> ListColumn:
    """A column of numbers; nothing stands for those below ``least``, and in rows without the flag."""

    def cell(rows: Exchanges, place: int, flags: int) -> str:
        value = rows.index.value(name, place)
        return "" if flags & flag != flag or (least is not None and value < least) else str(value)

    return ListColumn(Heading(title, width, True), cell, name)


def _size(title: str, name: str) -> ListColumn:
    def cell(rows: Exchanges, place: int, _: int) -> str:
        value = rows.index.value(name, place)
        return "" if value < 0 else size(value)

    return ListColumn(Heading(title, 9, True), cell, name)


_TIME = ListColumn(Heading("Time", 12, True), Exchanges._time, "time_ns")

COLUMNS: Mapping[str, ListColumn] = {
    "mark": ListColumn(Heading("", 2), Exchanges._mark),
    "number": _number("No.", "number", 7),
    "request_time_ns": _TIME,
    "connection": _number("Conn", "connection", 5),
    "who": ListColumn(Heading("Client", 14), Exchanges._who, "client_id"),
    "client_id": _text("Client id", "client_id", 14),
    "client": _text("Address", "client", 21),
    "broker": _text("Broker", "broker", 21),
    "what": ListColumn(Heading("API", _API), Exchanges._api, "api"),
    "api": _text("API", "api", 20),
    "api_version": _number("Version", "api_version", 7, flag=HAS_VERSION),
    "correlation_id": _number("Corr", "correlation_id", 8, flag=HAS_CORRELATION),
    "latency_ns": ListColumn(Heading("Latency", 8, True), Exchanges._latency, "latency_ns"),
    "behind_ns": ListColumn(Heading("Behind", 8, True), Exchanges._behind, "behind_ns"),
    "request_size": _size("Request", "request_size"),
    "response_size": _size("Response", "response_size"),
    "sizes": ListColumn(Heading("Bytes", 21), Exchanges._sizes, "response_size"),
    "request_packet": _number("Packet", "request_packet", 8, 1),
    "response_packet": _number("Packet", "response_packet", 8, 1),
    "missing": _text("Missing", "missing", 17),
    "error": _text("Error", "error", 28),
    "topics": _text("Topics", "topics", 28),
    "faults": _number("Faults", "faults", 6, 1),
    "info": ListColumn(Heading("Info", 0), Exchanges._info, "error"),
}
"""Columns of an exchange that the list can show, by their names; ``mark``, ``who``, ``what``, ``sizes`` and
``info`` say in one what stands in several."""

_NARROW = ("mark", "number", "request_time_ns", "what", "latency_ns", "info")
_NORMAL = ("mark", "number", "request_time_ns", "who", "what", "latency_ns", "sizes", "info")
_WIDE = (
    *("mark", "number", "request_time_ns", "connection", "who", "client", "broker", "what"),
    *("correlation_id", "latency_ns", "sizes", "info"),
)

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
