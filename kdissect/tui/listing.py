"""The index as rows of tables: exchanges, connections, and what is wrong. Nothing here draws."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kdissect.model import Fault
from kdissect.present.form import Clock, duration, plural, size
from kdissect.present.sanitise import sanitise
from kdissect.session.conversation import Connection
from kdissect.tui.index import Index, Places
from kdissect.tui.rows import HAS_CORRELATION, HAS_LATENCY, HAS_REQUEST, HAS_RESPONSE, HAS_VERSION, IS_CUT
from kdissect.tui.table import Heading

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
NORMAL_WIDTH, WIDE_WIDTH = 98, 158
"""Cells from which the columns of exchanges are more."""


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


class Connections:
    """The connections that are over, by number; those still going on when the capture ends are over then."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._rows: list[Connection] = []

    def refresh(self) -> None:
        """Take in what came since."""
        if len(self._rows) != len(self._index.connections):
            self._rows = [each for _, each in sorted(self._index.connections.items())]

    def __len__(self) -> int:
        return len(self._rows)

    def connection(self, row: int) -> Connection:
        """The connection of a row."""
        return self._rows[row]

    def headings(self, width: int) -> Sequence[Heading]:
        few = (Heading("Conn", 5, True), Heading("Client", 21), Heading("Broker", 21), Heading("End", 6))
        more = (Heading("Exchanges", 9, True), Heading("To broker", 10, True), Heading("From", 10, True))
        last = (Heading("Gaps", 5, True), Heading("Client id", 18), Heading("Software and SASL", 0))
        if width >= NORMAL_WIDTH:
            return (*few, *more, *last)
        return (*few, Heading("Exchanges", 9, True), Heading("Client id", 0))

    def key(self, row: int) -> Hashable:
        return self._rows[row].connection

    def tone(self, row: int) -> str | None:
        each = self._rows[row]
        if each.gaps or each.skipped_bytes:
            return "table--warning"
        return None if each.protocol == "kafka" else "table--dim"

    def cells(self, row: int, width: int) -> Sequence[str]:
        each = self._rows[row]
        said = [each.software or "" if each.protocol == "kafka" else f"({each.protocol})"]
        if each.sasl is not None:
            said.append(" ".join(str(value) for value in each.sasl.values() if value is not None))
        values = {
            "Conn": str(each.connection),
            "Client": each.client,
            "Broker": each.broker,
            "End": each.end,
            "Exchanges": f"{each.exchanges:,}",
            "To broker": size(each.bytes_to_broker),
            "From": size(each.bytes_from_broker),
            "Gaps": str(each.gaps) if each.gaps else "",
            "Client id": sanitise(each.client_id or ""),
            "Software and SASL": sanitise("  ".join(part for part in said if part)),
        }
        return [values[heading.title] for heading in self.headings(width)]


class Problem:
    """An error of brokers, or a kind of fault, with how often it came and where first."""

    def __init__(self, what: str, count: int, place: int | None, fault: Fault | None) -> None:
        self.what = what
        self.count = count
        self.place = place
        """Of the first exchange with it."""
        self.fault = fault
        """The first fault of the kind; None for errors of brokers."""


class Problems:
    """Errors by name, then faults by kind, the most frequent first."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._rows: list[Problem] = []

    def refresh(self) -> None:
        """Count anew."""
        index = self._index
        self._rows = [Problem(name, count, first, None) for name, count, first, _ in index.errors()]
        for (_, kind), (count, fault) in sorted(index.faults.items(), key=lambda item: -item[1].number):
            place = None
            if fault.exchange is not None:
                found = np.flatnonzero(index.column("number") == fault.exchange)
                place = int(found[0]) if len(found) else None
            self._rows.append(Problem(kind, count, place, fault))

    def __len__(self) -> int:
        return len(self._rows)

    def problem(self, row: int) -> Problem:
        """What a row shows."""
        return self._rows[row]

    def headings(self, width: int) -> Sequence[Heading]:
        what = Heading("What", 32 if width < NORMAL_WIDTH else 40)
        return (Heading("Kind", 6), what, Heading("Count", 9, True), Heading("First", 0))

    def key(self, row: int) -> Hashable:
        return (row, self._rows[row].what, self._rows[row].count)

    def tone(self, row: int) -> str | None:
        return "table--error" if self._rows[row].fault is None else "table--warning"

    def cells(self, row: int, width: int) -> Sequence[str]:
        each, index = self._rows[row], self._index
        kind = "error" if each.fault is None else "fault"
        parts = []
        if each.place is not None:
            parts.append(f"No. {index.value('number', each.place)}")
            if each.fault is None:
                parts.append(index.text("api", each.place))
                parts.append(index.text("topics", each.place))
        if each.fault is not None:
            if each.fault.packet is not None:
                parts.append(f"packet {each.fault.packet}")
            parts.append(sanitise(each.fault.message))
        return kind, each.what, f"{each.count:,}", ", ".join(part for part in parts if part)
