"""The connections that are over, by number; packed, because there may be a hundred thousand.

They are packed together, :data:`TOGETHER` at a time, because they are much alike. The last ones that were
unpacked are kept, because a screen that asks for one soon asks for the next.

Where the input has several capture points, each may have a row of a connection. The mapping has the one that
counts.
"""

from __future__ import annotations

import marshal
import zlib
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

from kdissect.session.conversation import Connection

TOGETHER = 64
_NONE = -1


class Connections(Mapping[int, Connection]):
    """The connections, in the order in which they were over."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._places = array("q")
        """By number: which it was in that order."""
        self._copies: dict[int, list[int]] = {}
        """By number, the same of the rows that do not count."""
        self._packed: list[bytes] = []
        self._last: list[tuple[Any, ...]] = []
        """Those that are not packed yet."""
        self._unpacked: tuple[int, list[tuple[Any, ...]]] = _NONE, []

    def add(self, connection: Connection) -> None:
        """Take in one."""
        number = connection.connection
        missing = number + 1 - len(self._places)
        if missing > 0:
            self._places.extend([_NONE] * missing)
        place, before = len(self._numbers), self._places[number]
        if before == _NONE or not connection.is_copy:
            self._places[number] = place
        if before != _NONE:
            self._copies.setdefault(number, []).append(place if connection.is_copy else before)
        self._numbers.append(number)
        self._last.append(tuple(connection))
        if len(self._last) == TOGETHER:
            self._packed.append(zlib.compress(marshal.dumps(self._last), 1))
            self._last = []

    def __getitem__(self, number: int) -> Connection:
        place = self._places[number] if 0 <= number < len(self._places) else _NONE
        if place == _NONE:
            raise KeyError(number)
        return self.row(place)

    @property
    def rows(self) -> int:
        """How many rows there are, those that do not count among them."""
        return len(self._numbers)

    def places(self, number: int) -> list[int]:
        """Which rows are of a connection, in the order in which rows came."""
        return [self._places[number], *self._copies.get(number, ())] if number in self else []

    def row(self, place: int) -> Connection:
        """The row that was so many in that order."""
        which, at = divmod(place, TOGETHER)
        return Connection(*self._together(which)[at])

    def _together(self, which: int) -> list[tuple[Any, ...]]:
        if which == len(self._packed):
            return self._last
        if self._unpacked[0] != which:
            self._unpacked = which, marshal.loads(zlib.decompress(self._packed[which]))
        return self._unpacked[1]

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and 0 <= number < len(self._places) and self._places[number] != _NONE

    def __iter__(self) -> Iterator[int]:
        if not self._copies:
            return iter(self._numbers)
        return (number for place, number in enumerate(self._numbers) if self._places[number] == place)

    def __len__(self) -> int:
        return len(self._numbers) - sum(map(len, self._copies.values()))
