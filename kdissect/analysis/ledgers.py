# cython: nonecheck=True
# A state that somebody forged may have None in place of objects: then C must not read or write there.
"""Many rows of whole numbers by key, small in memory: for folds that join things only at the end.

Times, offsets and numbers of exchanges grow a little from row to row. So a row is kept as its differences to
the numbers before it: about 15 bytes for nine numbers, not 72.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator
from functools import lru_cache
from struct import Struct, error
from typing import Any, TypeVar

from kdissect.analysis.room import Room
from kdissect.tcp.packed import BYTES, number, put

K = TypeVar("K", bound=Hashable)

NONE = -(1 << 63)
"""Means an unknown number."""
_NONE = NONE
_BYTES = BYTES
_MASK = (1 << 64) - 1
_MOST_COLUMNS = 255
_LONGEST = 10
"""The most bytes of a kept difference."""


def known(value: int | None) -> int:
    """The number in its kept form."""
    return NONE if value is None else value


KEY_BYTES = 500
"""The approximate size of a key and its rows without content."""


@lru_cache(maxsize=64)
def _form(width: int) -> Struct:
    """A row of 64-bit numbers."""
    return Struct(f"{width}q")


class Ledgers(dict[K, bytearray]):
    """Rows of ``width`` 64-bit numbers each, by key. Beyond the limit of keys or of rows, or without room,
    further ones are only counted.

    The value of a key begins with the latest known number of each column. The rows follow. Each row begins
    with one bit a column, for a number that is unknown. For each known number, the difference to the one
    before it in its column follows. It stands in groups of seven bits, the lowest first. Differences below
    zero are odd.

    :raises ValueError: the width is below 1 or above 255, or the value of a key does not have this form. In
        a forged state it need not.
    """

    def __init__(self, width: int, keys: int, rows: int, room: Room) -> None:
        super().__init__()
        if not 0 < width <= _MOST_COLUMNS:
            raise ValueError(f"rows have 1 to {_MOST_COLUMNS} numbers, not {width}")
        self._width = width
        self._most_keys = keys
        self._most_rows = rows
        self._room = room
        self._pack = _form(width).pack
        # What a row takes at most. What it really takes depends on the rows before it: if that counted, what
        # is left out would depend on how a capture is cut.
        self._row_bytes = 9 * width
        self._head = width * _BYTES
        """The bytes before the first row."""
        self._bits = (width + 7) // 8
        """The bytes of a row that tell which numbers are unknown."""
        self._row = bytearray(self._bits + width * _LONGEST)
        """A place to make a row in."""
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
        ledgers: dict[K, bytearray] = self
        kept, room = ledgers.get(key), self._room
        if (
            kept is not None
            and not room.refuses(self._count >= self._most_rows)
            and room.takes(self._row_bytes)
        ):
            self._append(kept, numbers, 0)
            self._count += 1
        else:
            self.add_all(key, array("q", numbers))

    def add_all(self, key: K, numbers: array[int]) -> None:
        """Add several rows, in the form of :meth:`numbers`. Without memory for all of them, none is kept."""
        ledgers: dict[K, bytearray] = self
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
            kept = ledgers[key] = bytearray(self._head)
        if self._room.refuses(rows > room):
            self.left_out += rows - room
            rows = room
        if not self._room.takes(rows * self._row_bytes):
            self.left_out += rows
            return
        given = numbers.tobytes()
        for at in range(rows):
            self._append(kept, given, at * self._head)
        self._count += rows

    def _append(self, kept: bytearray, given: bytes, start: int) -> None:
        """Add the row whose numbers begin at a position of the given ones."""
        if len(kept) < self._head:
            raise ValueError("the rows of a key have no beginning")
        latest, raw, row = kept, given, self._row
        end = self._bits
        for at in range(end):
            row[at] = 0
        for column in range(self._width):
            value = number(raw, start + column * _BYTES)
            if value == _NONE:
                row[column >> 3] |= 1 << (column & 7)
                continue
            step = (value - number(latest, column * _BYTES)) & _MASK
            put(latest, column * _BYTES, value)
            left = (_MASK - step) << 1 | 1 if step >> 63 else step << 1
            while left > 0x7F:
                row[end] = left & 0x7F | 0x80
                left >>= 7
                end += 1
            row[end] = left
            end += 1
        kept += self._row[:end]

    def merge(self, later: Ledgers[K]) -> None:
        """Add the rows of a later part."""
        self.left_out += later.left_out
        for key in later:
            self.add_all(key, later.numbers(key))

    def numbers(self, key: K) -> array[int]:
        """The numbers of the rows of ``key``, in a new array."""
        numbers: array[int] = array("q")
        kept, at = self[key], self._head
        latest, row = bytearray(at), bytearray(at)
        while at < len(kept):
            at = self._read(kept, at, latest, row)
            numbers.frombytes(row)
        return numbers

    def _read(self, kept: bytearray, at: int, latest: bytearray, row: bytearray) -> int:
        """Read the row at a position of the kept ones. Return the position behind it.

        :param latest: the latest known numbers before it.
        :param row: gets its numbers.
        """
        raw, end, unknown = kept, len(kept), at
        before, out = latest, row
        at += self._bits
        if at > end:
            raise ValueError(_BROKEN_OFF)
        for column in range(self._width):
            place = column * _BYTES
            if raw[unknown + (column >> 3)] >> (column & 7) & 1:
                put(out, place, _NONE)
                continue
            told, shift = 0, 0
            while True:
                if at >= end or shift > 63:
                    raise ValueError(_BROKEN_OFF)
                group = raw[at]
                at += 1
                low = group & 0x7F
                told |= low << shift
                shift += 7
                if group < 0x80:
                    break
            told &= _MASK
            step = _MASK - (told >> 1) if told & 1 else told >> 1
            put(before, place, (number(before, place) + step) & _MASK)
            put(out, place, number(before, place))
        return at

    def rows(self, key: K) -> Iterator[tuple[int, ...]]:
        """The rows of ``key``, in the order in which they came."""
        numbers = iter(self.numbers(key) if key in self else ())
        return zip(*[numbers] * self._width, strict=True)  # each row takes the next numbers


_BROKEN_OFF = "a row breaks off"
