# cython: nonecheck=True
# A state that somebody forged may have None in place of objects: then C must not read or write there.
"""Rows by key, with a limit. A fold looks up a row for each exchange, so this is done in C."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol, Self, TypeVar

from kdissect.analysis.room import Room


class Mergeable(Protocol):
    """A row while it is counted."""

    def merge(self, later: Self, /) -> None:
        """Add later counts."""


K = TypeVar("K", bound=Hashable)
J = TypeVar("J", bound=Hashable)
R = TypeVar("R", bound=Mergeable)


ROW_BYTES = 1_500
"""The approximate size of a row, unless a statistic sets its own."""


class Rows(dict[K, R]):
    """Rows by key, in the order in which they came, with a limit.

    :param row_bytes: the approximate size of a row in memory, with its result.
    :param most: the most rows; by default ``limits.rows``.
    """

    def __init__(
        self, new: Callable[[], R], room: Room, row_bytes: int = ROW_BYTES, most: int | None = None
    ) -> None:
        super().__init__()
        self.left_out = 0
        self._new = new
        self._room = room
        self._row_bytes = row_bytes
        self._most = room.limits.rows if most is None else most

    def __reduce__(self) -> tuple[Any, ...]:
        how = self._new, self._room, self._row_bytes, self._most
        return Rows, how, self.left_out, None, iter(self.items())

    def __setstate__(self, left_out: int) -> None:
        self.left_out = left_out

    def row(self, key: K) -> R | None:
        """The row of a key, made on first use; if there are too many, None, and it is counted."""
        kept: dict[K, R] = self
        found = kept.get(key)
        return self._made(key) if found is None else found

    def _made(self, key: K) -> R | None:
        """A new row, if there is room."""
        kept: dict[K, R] = self
        room = self._room
        if not room.refuses(len(kept) >= self._most) and room.takes(self._row_bytes):
            row = kept[key] = self._new()
            return row
        self.left_out += 1
        return None

    @property
    def rows(self) -> dict[K, R]:
        """The existing rows."""
        return self

    def merge(self, later: Rows[K, R]) -> None:
        """Add the rows of a later part."""
        self.left_out += later.left_out
        for key, theirs in later.items():
            mine = self.row(key)
            if mine is not None:
                mine.merge(theirs)


def as_one(rows: Mapping[K, R], new: Callable[[], R], key_of: Callable[[K], J]) -> dict[J, R]:
    """The rows under other keys; rows that get the same key become one. Do not change them: most are not
    copied.

    :param new: makes an empty row.
    """
    found: dict[J, R] = {}
    joined: set[J] = set()
    for before, row in rows.items():
        key = key_of(before)
        one = found.setdefault(key, row)
        if one is row:
            continue
        if key not in joined:
            joined.add(key)
            found[key] = new()
            found[key].merge(one)
        found[key].merge(row)
    return found
