"""The exchanges of a view as rows of a table. Nothing here draws."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kdissect.present.form import Clock, duration, plural, size
from kdissect.tui.feed.index import Index, Places
from kdissect.tui.feed.rows import (
    HAS_CORRELATION,
    HAS_LATENCY,
    HAS_REQUEST,
    HAS_RESPONSE,
    HAS_VERSION,
    IS_CUT,
)
from kdissect.tui.lists import NORMAL_WIDTH, WIDE_WIDTH
from kdissect.tui.widgets.table import Heading

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
"""Columns that the list can be ordered by, in the order in which the key goes through them."""

TIMES = "raue"
"""Forms of times, in the order in which the key goes through them (:data:`kdissect.present.form.TIMES`)."""

_MARK, _NUMBER, _TIME = Heading("", 1), Heading("No.", 7, True), Heading("Time", 12, True)
_API, _LATENCY, _INFO = Heading("API", 22), Heading("Latency", 8, True), Heading("Info", 0)
_CLIENT, _SIZES = Heading("Client", 14), Heading("Bytes", 21)
_NARROW = (_MARK, Heading("No.", 5, True), _TIME, Heading("API", 20), _LATENCY, _INFO)
_NORMAL = (_MARK, _NUMBER, _TIME, _CLIENT, _API, _LATENCY, _SIZES, _INFO)
_WIDE = (
    *(_MARK, _NUMBER, _TIME, Heading("Conn", 5, True), _CLIENT, Heading("Address", 21)),
    *(Heading("Broker", 21), _API, Heading("Corr", 8, True), _LATENCY, _SIZES, _INFO),
)


class Exchanges:
    """The exchanges of a view."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.view: Places = index.view()
        self.clock = Clock()

    def __len__(self) -> int:
        return len(self.view)

    def place(self, row: int) -> int:
        """The place in the index of a row."""
        return int(self.view[row])

    def row_of(self, place: int) -> int | None:
        """The row that shows a place of the index; None if none does."""
        found = np.flatnonzero(self.view == place)
        return int(found[0]) if len(found) else None

    def next_bad(self, row: int, step: int) -> int | None:
        """The next row after (1) or before (-1) one with an error or a fault."""
        bad = np.flatnonzero(self.index.is_bad()[self.view])
        bad = bad[bad > row] if step > 0 else bad[bad < row]
        if not len(bad):
            return None
        return int(bad[0] if step > 0 else bad[-1])

    def headings(self, width: int) -> Sequence[Heading]:
        chosen = _WIDE if width >= WIDE_WIDTH else _NORMAL if width >= NORMAL_WIDTH else _NARROW
        if self.clock.letter in "ue":
            return [each._replace(width=27) if each.title == "Time" else each for each in chosen]
        return chosen

    def key(self, row: int) -> Hashable:
        return self.place(row)

    def tone(self, row: int) -> str | None:
        place, index = self.place(row), self.index
        if index.value("error", place) or index.value("faults", place):
            return "table--error"
        flags = index.value("flags", place)
        if flags & IS_CUT or not (flags & HAS_REQUEST and flags & HAS_RESPONSE):
            return "table--dim" if index.text("missing", place) == "acks=0" else "table--warning"
        return None

    def cells(self, row: int, width: int) -> Sequence[str]:
        place, index = self.place(row), self.index
        if self.clock.first_ns is None:
            self.clock.first_ns = index.first_ns
        flags = index.value("flags", place)
        api = index.text("api", place) or "?"
        if flags & HAS_VERSION:
            api += f" v{index.value('api_version', place)}"
        latency = duration(index.value("latency_ns", place)) if flags & HAS_LATENCY else ""
        values = {
            "": self._mark(place, flags),
            "No.": str(index.value("number", place)),
            "Time": self.clock.text(index.value("time_ns", place)),
            "Conn": str(index.value("connection", place)),
            "Client": index.text("client_id", place) or index.text("client", place),
            "Address": index.text("client", place),
            "Broker": index.text("broker", place),
            "API": api,
            "Corr": str(index.value("correlation_id", place)) if flags & HAS_CORRELATION else "",
            "Latency": latency,
            "Bytes": self._sizes(place),
            "Info": self._info(place, flags),
        }
        return [values[heading.title] for heading in self.headings(width)]

    def _mark(self, place: int, flags: int) -> str:
        index = self.index
        if index.value("error", place):
            return "✗"
        if index.value("faults", place):
            return "!"
        if flags & IS_CUT:
            return "◐"
        if not (flags & HAS_REQUEST and flags & HAS_RESPONSE):
            return "…" if index.text("missing", place) == "waiting" else "∅"
        return ""

    def _sizes(self, place: int) -> str:
        sides = (self.index.value(name, place) for name in ("request_size", "response_size"))
        return " → ".join("·" if count < 0 else size(count) for count in sides)

    def _info(self, place: int, flags: int) -> str:
        index = self.index
        parts = []
        if error := index.text("error", place):
            parts.append(error)
        if missing := index.text("missing", place):
            side = "request" if not flags & HAS_REQUEST else "response"
            whole = flags & HAS_REQUEST and flags & HAS_RESPONSE
            parts.append(f"[{'cut' if whole else 'no'} {side}: {missing}]")
        if faults := index.value("faults", place):
            parts.append(f"[{plural(faults, 'fault')}]")
        if topics := index.text("topics", place):
            parts.append(topics)
        return " ".join(parts)
