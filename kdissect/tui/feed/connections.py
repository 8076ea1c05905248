"""The connections that are over, by number; packed, because there may be a hundred thousand.

They are packed together, :data:`TOGETHER` at a time, because they are much alike. Of those unpacked the last
ones are kept: who asks for one goes on to the next.
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
        self._places[number] = len(self._numbers)
        self._numbers.append(number)
        self._last.append(tuple(connection))
        if len(self._last) == TOGETHER:
            self._packed.append(zlib.compress(marshal.dumps(self._last), 1))
            self._last = []

    def __getitem__(self, number: int) -> Connection:
        place = self._places[number] if 0 <= number < len(self._places) else _NONE
        if place == _NONE:
            raise KeyError(number)
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
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)
