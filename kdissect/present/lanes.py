"""Durations as characters: time lines, lines of lag, and the parts of response times as a bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from kdissect.analysis.fold import Row
from kdissect.present.form import SECOND, duration


class CellSpan(NamedTuple):
    """The time that a line shows."""

    start_ns: int
    end_ns: int

    def at(self, ns: int, room: int) -> int:
        """The cell of a moment, of ``room`` cells. A moment outside gets the nearest cell."""
        cell = (ns - self.start_ns) * room // max(1, self.end_ns - self.start_ns)
        return max(0, min(room - 1, cell))

    def has(self, first_ns: int, last_ns: int) -> bool:
        """Whether any of this time is in it."""
        return first_ns <= self.end_ns and last_ns >= self.start_ns


class TextLane:
    """One line, blank at first.

    :param room: cells.
    :param ranks: the importance of characters, for those that fall into one cell; unlisted characters have
        the least.
    """

    def __init__(self, span: CellSpan, room: int, ranks: Mapping[str, int] = {}) -> None:
        self._span, self._ranks = span, ranks
        self._cells = [" "] * max(1, room)

    def copy(self) -> TextLane:
        """A copy, to draw more on it."""
        other = TextLane(self._span, len(self._cells), self._ranks)
        other._cells = self._cells[:]
        return other

    def fill(self, first_ns: int, last_ns: int, mark: str) -> None:
        """Draw a mark from one moment to another."""
        if self._span.has(first_ns, last_ns):
            for cell in range(self._at(first_ns), self._at(max(first_ns, last_ns)) + 1):
                self._put(cell, mark)

    def mark(self, ns: int, mark: str) -> None:
        """Draw a mark at a moment."""
        if self._span.has(ns, ns):
            self._put(self._at(ns), mark)

    def write(self, ns: int, text: str, after: int = 0) -> None:
        """Write a text that begins at a moment. If it does not fit, it begins as far to the left as it must.

        :param after: the number of cells between the moment and the text.
        """
        if self._span.has(ns, ns) and len(text) <= len(self._cells):  # a cut number is another number
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


_STEPS = (1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600)
"""The possible seconds between points of a line of lag."""
USUAL_LAG_STEP = 10
"""The seconds between points while a capture is read, because its end is not known yet."""
POINTS = 16
"""The most points of a line."""


def lag_step(first_ns: int | None, last_ns: int | None) -> int:
    """The seconds between the points of a line for a whole capture, by its first and last time."""
    if first_ns is None or last_ns is None:
        return USUAL_LAG_STEP
    wanted = (last_ns - first_ns) / SECOND / POINTS
    return next((step for step in _STEPS if step >= wanted), _STEPS[-1])


def thinned(values: Sequence[int], most: int = POINTS) -> list[int]:
    """The values, at most one for each point of a line. If several values share a point, the largest is kept.

    :param most: points of the line.
    """
    points = min(most, len(values))
    cuts = [at * len(values) // points for at in range(points + 1)] if points else []
    return [max(0, *values[first:last]) for first, last in pairwise(cuts)]


CELLS = 24
"""The cells of a bar."""


class TimePart(NamedTuple):
    """A part of the time of an exchange."""

    column: str
    """The column of the statistic ``latency``, without ``_sum_ns``."""
    sign: str
    words: str
    brief: str
    """The words in a legend."""


PARTS = (
    TimePart("request_transfer", "▸", "the request came", "request came"),
    TimePart("behind", "▒", "waiting behind another request", "behind another"),
    TimePart("throttle", "▓", "held back for a quota", "quota"),
    TimePart("network", "·", "network", "network"),
    TimePart("wait", "┄", "long poll, as asked", "long poll"),
    TimePart("broker", "█", "the broker worked", "broker worked"),
    TimePart("unknown", "▤", "worked or waited as asked", "worked or waited"),
    TimePart("response_transfer", "◂", "the answer came", "answer came"),
)
"""The parts in the order of time. The time between an answer and the next request is the client's, and in no
bar."""
INKS = {"▒": "table--warning", "▓": "table--error", "┄": "table--dim", "·": "table--dim"}


def sums(row: Row) -> dict[str, int]:
    """The sums of the parts of a row of ``latency``, by their columns."""
    out = {each.column: row[f"{each.column}_sum_ns"] or 0 for each in PARTS if each.column != "unknown"}
    out["unknown"] = max(0, (row["served_sum_ns"] or 0) - out["wait"] - out["broker"])
    return out


def bar(row: Row | None, room: int = CELLS) -> str:
    """The parts side by side, in ``room`` cells."""
    found = {} if row is None else sums(row)
    whole = sum(found.values())
    if not whole:
        return ""
    cells = {name: ns * room // whole for name, ns in found.items()}
    for name, ns in sorted(found.items(), key=lambda each: -(each[1] * room % whole)):
        if sum(cells.values()) < room and ns:
            cells[name] += 1
    return "".join(part.sign * cells[part.column] for part in PARTS)


def in_words(row: Row | None) -> str:
    """The time of each part and its share of all time, the largest first. No-break spaces keep signs and
    their words on one line."""
    found = {} if row is None else sums(row)
    whole = sum(found.values())
    if row is None or not whole:
        return "the parts of these response times are not known"
    told = [
        f"{part.sign}\u00a0{part.words} "
        f"{duration(found[part.column])} ({100 * found[part.column] / whole:.0f} %)"
        for part in sorted(PARTS, key=lambda each: -found[each.column])
        if found[part.column]
    ]
    client = row["think_sum_ns"]
    if client:
        told.append(f"beside it, the client between answer and request {duration(client)}")
    return "   ".join([f"{duration(whole)} in all:", *told])
