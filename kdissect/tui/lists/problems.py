"""What is wrong, by error and by kind of fault, as rows of a table. Nothing here draws."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from kdissect.model import Fault
from kdissect.present.sanitise import sanitise
from kdissect.tui.feed.index import Index
from kdissect.tui.lists import NORMAL_WIDTH
from kdissect.tui.widgets.table import Heading


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
