"""Events of many things by time: what folds keep that decide only at the end.

A fold appends small tuples ``(ns, number, kind, …)`` to the line of a group, a transactional id or a
partition. It sorts them and runs over them only when rows are asked for. Parts of a capture then merge
without seams: nothing was decided before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

from kdissect.analysis.room import Room

K = TypeVar("K", bound=Hashable)

Mark = tuple[Any, ...]
"""``(ns, number, kind, …)``: when, in which exchange, and what. Values behind them need no order."""


KEY_BYTES = 250
"""About what a line takes without its marks."""
MARK_BYTES = 450
"""About what a mark takes, and its part of a row."""


class Timelines(Generic[K]):
    """Lines of marks by key: no more than ``limits.rows`` keys, ``limits.timeline_key_events`` of a key and
    ``limits.timeline_events`` in all, and what there is room for. The first are kept, further ones are only
    counted."""

    def __init__(self, room: Room) -> None:
        self._lines: dict[K, list[Mark]] = {}
        self._room = room
        self._limits = room.limits
        self._count = 0
        self.left_out = 0
        """How many marks were not kept."""
        self._is_shut = False
        """Whether no mark finds room in what it is to be added to."""
        self._is_short = False
        """Whether that has no memory for it."""

    @property
    def is_full(self) -> bool:
        """Whether there is no room for a further mark, and never will be."""
        return self._count >= self._limits.timeline_events or not self._room.has(MARK_BYTES)

    def keep_to(self, whole: Timelines[K]) -> None:
        """Keep no marks that would find no room in what they are to be added to."""
        self._is_shut = whole.is_full
        self._is_short = not whole._room.has(MARK_BYTES)

    def add(self, key: K, mark: Mark) -> None:
        """A mark on the line of ``key``."""
        if self._is_shut:
            self.left_out += 1
            self._room.refused |= self._is_short
            return
        line = self._lines.get(key)
        if line is None:
            if len(self._lines) >= self._limits.rows or not self._room.takes(KEY_BYTES):
                self.left_out += 1
                return
            line = self._lines[key] = []
        if (
            len(line) >= self._limits.timeline_key_events
            or self._count >= self._limits.timeline_events
            or not self._room.takes(MARK_BYTES)
        ):
            self.left_out += 1
            return
        line.append(mark)
        self._count += 1

    def merge(self, later: Timelines[K]) -> None:
        """Add the marks of another that came after."""
        self.left_out += later.left_out
        for key, line in later._lines.items():
            for mark in line:
                self.add(key, mark)

    def __iter__(self) -> Iterator[K]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def line(self, key: K) -> list[Mark]:
        """The marks of ``key`` by time, then by number of the exchange; then as they were added."""
        return sorted(self._lines.get(key, ()), key=lambda mark: (mark[0], mark[1]))
