# cython: nonecheck=True
# A state that somebody forged may have None in place of objects: then C must not read or write there.
"""Many rows of whole numbers by key, small in memory: for folds that join things only at the end."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator
from functools import lru_cache
from struct import Struct, error
from typing import Any, TypeVar

from kdissect.analysis.room import Room

K = TypeVar("K", bound=Hashable)

NONE = -(1 << 63)
"""Means an unknown number."""


def known(value: int | None) -> int:
    """The number in its kept form."""
    return NONE if value is None else value


KEY_BYTES = 500
"""The approximate size of a key and its array without rows."""


@lru_cache(maxsize=64)
def _form(width: int) -> Struct:
    """The kept form of a row."""
    return Struct(f"{width}q")


class Ledgers(dict[K, "array[int]"]):
    """Rows of ``width`` 64-bit numbers each, by key. Beyond the limit of keys or of rows, or without room,
    further ones are only counted."""

    def __init__(self, width: int, keys: int, rows: int, room: Room) -> None:
        super().__init__()
        self._width = width
        self._most_keys = keys
        self._most_rows = rows
        self._room = room
        self._pack = _form(width).pack
        self._row_bytes = 9 * width  # arrays grow by an eighth
        self._count = 0
        self.left_out = 0
        """The number of rows that were not kept."""

    def __reduce__(self) -> tuple[Any, ...]:
        how = self._width, self._most_keys, self._most_rows, self._room
        return Ledgers, how, (self._count, self.left_out), None, iter(self.items())

    def __setstate__(self, counts: tuple[int, int]) -> None:
        self._count, self.left_out = counts

    def add(self, key: K, *row: int) -> None:
        """Add a row. A row with a number beyond 64 bits counts as left out."""
        self.add_row(key, row)

    def add_row(self, key: K, row: tuple[int, ...]) -> None:
        """The same, for a caller that has the row as one object."""
        try:
            numbers = self._pack(*row)
        except error:
            self.left_out += 1
            return
        ledgers: dict[K, array[int]] = self
        kept, room = ledgers.get(key), self._room
        if (
            kept is not None
            and not room.refuses(self._count >= self._most_rows)
            and room.takes(self._row_bytes)
        ):
            kept.frombytes(numbers)  # in half the time of extending it by the numbers
            self._count += 1
        else:
            self.add_all(key, array("q", numbers))

    def add_all(self, key: K, numbers: array[int]) -> None:
        """Add several rows, in the form of :meth:`numbers`. Without memory for all of them, none is kept."""
        ledgers: dict[K, array[int]] = self
        kept = ledgers.get(key)
        rows = len(numbers) // self._width
        if not rows:
            return
        room = max(0, self._most_rows - self._count)
        if kept is None:
            is_beyond = len(ledgers) >= self._most_keys or not room
            if self._room.refuses(is_beyond) or not self._room.takes(KEY_BYTES):
                self.left_out += rows
                return
            kept = ledgers[key] = array("q")
        if self._room.refuses(rows > room):
            self.left_out += rows - room
            numbers = numbers[: room * self._width]
            rows = room
        if not self._room.takes(rows * self._row_bytes):
            self.left_out += rows
            return
        kept.extend(numbers)
        self._count += rows

    def merge(self, later: Ledgers[K]) -> None:
        """Add the rows of a later part."""
        self.left_out += later.left_out
        for key, numbers in later.items():
            self.add_all(key, numbers)

    def numbers(self, key: K) -> array[int]:
        """The numbers of the rows of ``key``, in a new array."""
        return self[key][:]

    def rows(self, key: K) -> Iterator[tuple[int, ...]]:
        """The rows of ``key``, in the order in which they came."""
        numbers = iter(self.get(key, ()))
        return zip(*[numbers] * self._width, strict=True)  # each row takes the next numbers
