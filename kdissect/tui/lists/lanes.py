"""Lines of time in a table: what lasted from one moment to another, as characters in so many cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Span(NamedTuple):
    """The time that a line shows."""

    start_ns: int
    end_ns: int

    def at(self, ns: int, room: int) -> int:
        """The cell of a moment, of so many; of one outside, the nearest."""
        cell = (ns - self.start_ns) * room // max(1, self.end_ns - self.start_ns)
        return max(0, min(room - 1, cell))

    def has(self, first_ns: int, last_ns: int) -> bool:
        """Whether any of this time is in it."""
        return first_ns <= self.end_ns and last_ns >= self.start_ns


class Lane:
    """One line, blank at first.

    :param room: cells.
    :param ranks: how important characters are, where several fall into one cell; others are the least.
    """

    def __init__(self, span: Span, room: int, ranks: Mapping[str, int] = {}) -> None:
        self._span, self._ranks = span, ranks
        self._cells = [" "] * max(1, room)

    def fill(self, first_ns: int, last_ns: int, mark: str) -> None:
        """Draw what lasted from one moment to another."""
        if self._span.has(first_ns, last_ns):
            for cell in range(self._at(first_ns), self._at(max(first_ns, last_ns)) + 1):
                self._put(cell, mark)

    def mark(self, ns: int, mark: str) -> None:
        """Draw what happened at a moment."""
        if self._span.has(ns, ns):
            self._put(self._at(ns), mark)

    def write(self, ns: int, text: str, after: int = 0) -> None:
        """Write a text from a moment on; where it does not fit, as far on the left as it must.

        :param after: so many cells behind the moment.
        """
        if self._span.has(ns, ns) and len(text) <= len(self._cells):  # a part of a number would be another
            place = max(0, min(self._at(ns) + after, len(self._cells) - len(text)))
            self._cells[place : place + len(text)] = text

    def _put(self, cell: int, mark: str) -> None:
        if self._ranks.get(mark, 0) >= self._ranks.get(self._cells[cell], 0):
            self._cells[cell] = mark

    def _at(self, ns: int) -> int:
        return self._span.at(ns, len(self._cells))

    def text(self) -> str:
        """The line."""
        return "".join(self._cells)
