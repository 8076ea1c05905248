"""The columns that a list of exchanges can have, and the text of an exchange in each of them. Nothing here
draws.

Fields of messages can be columns too (Wireshark: "Apply as Column"). The width of such a column is known only
after its values. The column begins narrow. Between two drawings it grows to the widest value seen so far. It
never gets narrower again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len

from kdissect.feed.coloring import Coloring
from kdissect.feed.field_values import FieldValues
from kdissect.feed.index import Index
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
from kdissect.filter.field import FieldKind, FilterField
from kdissect.present.form import Clock, duration, plural, seconds, size
from kdissect.present.sanitise import sanitise
from kdissect.protocol.errors import FATAL, RETRIABLE, ROUTINE, SIGNS, graded
from kdissect.settings.coloring import ColoringRule
from kdissect.settings.list_columns import field_of
from kdissect.tui.marks import Marks
from kdissect.tui.widgets.table import Heading

SLOW_SIGN = "◷"


class ExchangeTexts:
    """The texts of exchanges.

    :param clock: writes times.
    :param coloring: has the user's rules.
    """

    def __init__(
        self, index: Index, clock: Clock, marks: Marks | None = None, coloring: Coloring | None = None
    ) -> None:
        self.index, self.clock = index, clock
        self._marks = marks if marks is not None else Marks()
        self._coloring = coloring
        self.slow = np.zeros(0, np.int64)
        """For each number of an API's name, the longest time of an exchange that is not slow
        (:func:`kdissect.feed.columns.limits_of`)."""
        self.above: int | None = None
        """The place in the index of the exchange in the row above; None for the first row."""

    def rule(self, place: int) -> ColoringRule | None:
        """The coloring rule that an exchange matches."""
        return None if self._coloring is None else self._coloring.rule_of(place)

    def is_slow(self, place: int) -> bool:
        """Whether the exchange took longer than nearly all others of its API."""
        index, api = self.index, self.index.value("api", place)
        if not index.value("flags", place) & HAS_TAKEN or api >= len(self.slow):
            return False
        return index.value("taken_ns", place) > int(self.slow[api])

    def sign(self, place: int) -> str:
        """The sign of its mark or comment."""
        return self._marks.sign(self.index.value("number", place))

    def mark(self, place: int, flags: int) -> str:
        """The signs of its kind, and of the user's marks."""
        return (self.state(place, flags) or " ") + self.sign(place)

    def state(self, place: int, flags: int) -> str:
        """The sign for its error, fault or slowness; empty for none."""
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
        if self.is_slow(place):
            return SLOW_SIGN
        return SIGNS[ROUTINE] if grade else ""

    def time(self, place: int, flags: int) -> str:
        """The time of its request, in the clock's form."""
        ns = self.index.value("time_ns", place)
        if self.clock.letter == "d":  # since the row above, which may not have been drawn
            above = ns if self.above is None else self.index.value("time_ns", self.above)
            return seconds(ns - above)[:-3]
        if self.clock.first_ns is None:
            self.clock.first_ns = self.index.first_ns
        return self.clock.text(ns)

    def who(self, place: int, flags: int) -> str:
        """The client id, or else the address of the client."""
        return self.index.text("client_id", place) or self.index.text("client", place)

    def api(self, place: int, flags: int) -> str:
        """The API with its version."""
        api = self.index.text("api", place) or "?"
        return f"{api} v{self.index.value('api_version', place)}" if flags & HAS_VERSION else api

    def latency(self, place: int, flags: int) -> str:
        """From the request to the response."""
        return duration(self.index.value("latency_ns", place)) if flags & HAS_LATENCY else ""

    def behind(self, place: int, flags: int) -> str:
        """How long the request waited behind others of its connection."""
        behind = self.index.value("behind_ns", place)
        return duration(behind) if behind > 0 else ""

    def rule_name(self, place: int, flags: int) -> str:
        """The name of its coloring rule."""
        rule = self.rule(place)
        return "" if rule is None else sanitise(rule.name)

    def sizes(self, place: int, flags: int) -> str:
        """The sizes of the request and the response in bytes."""
        sides = (self.index.value(name, place) for name in ("request_size", "response_size"))
        return " → ".join("·" if count < 0 else size(count) for count in sides)

    def info(self, place: int, flags: int) -> str:
        """Its error or fault, and the topics."""
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


Cell = Callable[[ExchangeTexts, int, int], str]
"""The text of an exchange in a column, by its place in the index and its flags."""


class ListColumn(NamedTuple):
    """A column of the list."""

    heading: Heading
    """The heading. Its width is the most cells that the column takes; 0 means the remaining cells."""
    cell: Cell
    sort: str | None = None
    """The column of the index that orders the list; None without one."""
    is_text: bool = False
    """Whether it can be narrower than its text."""
    is_fixed: bool = False
    """Whether it always has its full width."""
    alone: str = ""
    """Its name in a list of all columns, if that is not its heading."""

    @property
    def name(self) -> str:
        """Its unique name."""
        return self.alone or self.heading.title


def _text(title: str, name: str, most: int) -> ListColumn:
    def cell(texts: ExchangeTexts, place: int, _: int) -> str:
        return texts.index.text(name, place)

    return ListColumn(Heading(title, most, is_name=name in _NAMES), cell, name, is_text=True)


def _number(title: str, name: str, least: int | None = None, flag: int = 0) -> ListColumn:
    """A column of numbers; empty for numbers below ``least``, and in rows without the flag."""

    def cell(texts: ExchangeTexts, place: int, flags: int) -> str:
        value = texts.index.value(name, place)
        return "" if flags & flag != flag or (least is not None and value < least) else str(value)

    return ListColumn(Heading(title, _MOST_DIGITS, True), cell, name)


def _size(title: str, name: str) -> ListColumn:
    def cell(texts: ExchangeTexts, place: int, _: int) -> str:
        value = texts.index.value(name, place)
        return "" if value < 0 else size(value)

    return ListColumn(Heading(title, _MOST_SIZE, True), cell, name)


_NAMES = ("client_id", "client", "broker")
_MOST_DIGITS, _MOST_SIZE, _MOST_TIME = 11, 10, 27
_MOST_ID, _MOST_ADDRESS, _MOST_API = 28, 47, 34
_MOST_RULE = 16

COLUMNS: Mapping[str, ListColumn] = {
    "mark": ListColumn(Heading("", 2), ExchangeTexts.mark, is_fixed=True),
    "number": _number("No.", "number"),
    "request_time_ns": ListColumn(Heading("Time", _MOST_TIME, True), ExchangeTexts.time, "time_ns"),
    "connection": _number("Conn", "connection"),
    "who": ListColumn(
        Heading("Client", _MOST_ID, is_name=True), ExchangeTexts.who, "client_id", is_text=True
    ),
    "client_id": _text("Client id", "client_id", _MOST_ID),
    "client": _text("Address", "client", _MOST_ADDRESS),
    "broker": _text("Broker", "broker", _MOST_ADDRESS),
    "what": ListColumn(Heading("API", _MOST_API), ExchangeTexts.api, "api", is_text=True),
    "api": _text("API", "api", _MOST_API)._replace(alone="API alone"),
    "api_version": _number("Version", "api_version", flag=HAS_VERSION),
    "correlation_id": _number("Corr", "correlation_id", flag=HAS_CORRELATION),
    "latency_ns": ListColumn(Heading("Latency", 8, True), ExchangeTexts.latency, "latency_ns", is_fixed=True),
    "behind_ns": ListColumn(Heading("Behind", 8, True), ExchangeTexts.behind, "behind_ns", is_fixed=True),
    "request_size": _size("Request", "request_size"),
    "response_size": _size("Response", "response_size"),
    "sizes": ListColumn(Heading("Bytes", 2 * _MOST_SIZE + 3), ExchangeTexts.sizes, "response_size"),
    "request_packet": _number("Packet", "request_packet", 1)._replace(alone="Asked in"),
    "response_packet": _number("Packet", "response_packet", 1)._replace(alone="Answered in"),
    "missing": _text("Missing", "missing", 20),
    "error": _text("Error", "error", 40),
    "topics": _text("Topics", "topics", 60),
    "faults": _number("Faults", "faults", 1),
    "coloring_rule": ListColumn(Heading("Rule", _MOST_RULE), ExchangeTexts.rule_name, is_fixed=True),
    "info": ListColumn(Heading("Info", 0), ExchangeTexts.info, "error", is_text=True),
}
"""The columns of an exchange that the list can show, by their names. ``mark``, ``who``, ``what``, ``sizes``
and ``info`` each combine several columns."""

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
"""The columns of the index that can order the list, in the order in which the key cycles through them."""

SORT_TITLES = {each.sort: each.heading.title for each in COLUMNS.values() if each.sort} | SORTS
LARGEST_FIRST = ("latency_ns", "behind_ns", "response_size", "request_size", "faults")
"""The columns that sort with the largest first."""


MOST_CELLS = 40
"""The most cells that a column gets for its values."""
_LEAST_CELLS = 4


class FieldColumn(NamedTuple):
    """A column that shows a field."""

    field: FilterField
    title: str
    """The title, sanitised."""

    @property
    def is_number(self) -> bool:
        """Whether its values are aligned to the right."""
        return self.field.kind in (FieldKind.NUMBER, FieldKind.FLOAT)


class FieldColumns:
    """The shown columns with fields.

    :param values: gives their texts; without it, there are no such columns.
    """

    def __init__(self, values: FieldValues | None) -> None:
        self._values = values
        self.shown: Mapping[str, FieldColumn] = {}
        """The columns by the name of the field, in their order."""
        self._seen: list[int] = []
        """The widest value of each column so far, in cells."""
        self._given: list[int] = []
        """The current width of each column, in cells."""

    def choose(self, names: Sequence[str]) -> None:
        """Show these columns; names without a field are left out."""
        fields = {name: field for name in names if (field := _field(name)) is not None}
        known = {name: max(_LEAST_CELLS, self.cells(name)) for name in self.shown}
        titles = _titles(list(fields))
        self.shown = {name: FieldColumn(field, titles[name]) for name, field in fields.items()}
        self._seen = [known.get(name, _LEAST_CELLS) for name in self.shown]
        self._given = list(self._seen)
        if self._values is not None:
            self._values.choose([each.field for each in self.shown.values()])

    def texts(self, place: int) -> tuple[str, ...]:
        """The text in each column for the exchange at a place of the index; empty if it is not known yet."""
        found = self._values.texts(place) if self.shown and self._values is not None else None
        if found is None:
            return ("",) * len(self.shown)
        for at, text in enumerate(found):
            cells = min(MOST_CELLS, cell_len(text))
            if cells > self._seen[at]:
                self._seen[at] = cells
                if self._values is not None:
                    self._values.frame_time.draw_again()
        return found

    def text(self, name: str, place: int) -> str:
        """The text in one of the columns."""
        return self.texts(place)[list(self.shown).index(name)]

    def cells(self, name: str) -> int:
        """The width of a column, in cells."""
        return self._given[list(self.shown).index(name)]

    def grow(self) -> None:
        """Widen the columns to the widest values seen."""
        self._given = list(self._seen)

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths of all columns."""
        return tuple(self._given)


def _field(name: str) -> FilterField | None:
    try:
        return field_of(name)
    except LookupError:  # of another version
        return None


def _titles(names: Sequence[str]) -> dict[str, str]:
    """The last step of each path. If several paths have the same last step, the first step comes before it.
    If that is the same too, it is the whole path."""
    out: dict[str, str] = {}
    ends = [name.rpartition(".")[2] for name in names]
    longer = [f"{name.partition('.')[0]}…{end}" for name, end in zip(names, ends, strict=True)]
    for name, end, more in zip(names, ends, longer, strict=True):
        title = end if ends.count(end) == 1 else more if longer.count(more) == 1 else name
        out[name] = sanitise(title, MOST_CELLS)
    return out
