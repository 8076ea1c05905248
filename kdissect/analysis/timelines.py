"""Events of many things by time: for folds that draw conclusions only at the end.

A fold appends small tuples ``(ns, number, kind, …)`` to the timeline of a group, a transactional id or a
partition. It sorts and reads them only when rows are asked for. So parts of a capture merge without seams:
nothing was concluded before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

from kdissect.analysis.room import Room

K = TypeVar("K", bound=Hashable)

Mark = tuple[Any, ...]
"""``(ns, number, kind, …)``: the time, the exchange, and the kind. The values after them need no order."""


KEY_BYTES = 250
"""The approximate size of a timeline without its marks."""
MARK_BYTES = 450
"""The approximate size of a mark, with its part of a row."""


class Timelines(Generic[K]):
    """Timelines of marks by key: at most ``limits.rows`` keys, ``limits.timeline_key_events`` for each key
    and ``limits.timeline_events`` in all, if there is room. The first are kept, further ones are only
    counted."""

    def __init__(self, room: Room) -> None:
        self._lines: dict[K, list[Mark]] = {}
        self._room = room
        self._limits = room.limits
        self._count = 0
        self.left_out = 0
        """The number of marks that were not kept."""

    def add(self, key: K, mark: Mark) -> None:
        """Add a mark to the timeline of ``key``."""
        line = self._lines.get(key)
        if line is None:
            if self._room.refuses(len(self._lines) >= self._limits.rows) or not self._room.takes(KEY_BYTES):
                self.left_out += 1
                return
            line = self._lines[key] = []
        limits = self._limits
        is_beyond = len(line) >= limits.timeline_key_events or self._count >= limits.timeline_events
        if self._room.refuses(is_beyond) or not self._room.takes(MARK_BYTES):
            self.left_out += 1
            return
        line.append(mark)
        self._count += 1

    def merge(self, later: Timelines[K]) -> None:
        """Add the marks of a later part."""
        self.left_out += later.left_out
        for key, line in later._lines.items():
            for mark in line:
                self.add(key, mark)

    def __iter__(self) -> Iterator[K]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def marks(self) -> int:
        """The number of marks in all."""
        return self._count

    def line(self, key: K) -> list[Mark]:
        """The marks of ``key`` by time, then by number of the exchange, then in the order in which they were
        added."""
        return sorted(self._lines.get(key, ()), key=lambda mark: (mark[0], mark[1]))
