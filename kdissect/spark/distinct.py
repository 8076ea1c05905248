"""The number of different names of something: a row for each pair, so that the limit of rows applies to the
pairs."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from kdissect.analysis.room import Room
from kdissect.analysis.rows import Rows

_PAIR_BYTES = 400
K = TypeVar("K", bound=Hashable)


class _SeenName:
    """A pair that was seen."""

    __slots__ = ()

    def merge(self, later: _SeenName) -> None:
        pass


class Distinct(Generic[K]):
    """The different names of each key. None does not count.

    :param room: the memory that they share with their fold.
    """

    def __init__(self, room: Room) -> None:
        self._pairs: Rows[tuple[K, str], _SeenName] = Rows(_SeenName, room, _PAIR_BYTES)

    def add(self, key: K, name: str | None) -> None:
        """The key has this name."""
        if name is not None:
            self._pairs.row((key, name))

    def merge(self, later: Distinct[K]) -> None:
        """Add the pairs of another one."""
        self._pairs.merge(later._pairs)

    @property
    def left_out(self) -> int:
        """How often a name was not counted, because there was no room."""
        return self._pairs.left_out

    def counts(self) -> dict[K, int]:
        """How many names each key has."""
        counts: dict[K, int] = {}
        for key, _ in self._pairs:
            counts[key] = counts.get(key, 0) + 1
        return counts
