"""What grows while a capture is read: columns of rows of fixed size, and connections.

Rows are appended a hundred times a minute, and this must never take long. So a full column moves to a larger
place, and no two columns are full at the same time. Each place is mapped from the system, and goes back to it
when the column has moved out. On the heap it would leave a hole that nothing fits into.

There may be a hundred thousand connections that are over. They are packed together, :data:`TOGETHER` at a
time, because they are much alike. The last ones that were unpacked are kept, because a screen that asks for
one soon asks for the next. Where the input has several capture points, each may have a row of a connection.
The mapping has the one that counts.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdissect.feed.packing import PackedRows, pack, unpack
from kdissect.session.conversation import Connection
from kdissect.system import anonymous_memory

_FIRST = 1_024
"""Rows that there is room for at first."""
_GROWTH = 1.125
"""How much larger a full column is made. What it has in reserve takes no memory before it is written to."""


class GrowingColumns:
    """The columns.

    :param fields: name and type of each, as the rows have them.
    """

    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self.row = np.dtype(
            {"names": [name for name, _ in fields], "formats": ["<" + kind for _, kind in fields]}
        )
        """What a row is."""
        self._order = {name: at / len(fields) for at, (name, _) in enumerate(fields)}
        self._columns = {name: self._room(name, 1) for name, _ in fields}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column with what it has in reserve. Its place is another one when it has grown."""
        return self._columns[name]

    def append(self, packed: bytes) -> None:
        """Append rows, one after another."""
        rows = np.frombuffer(packed, dtype=self.row)
        start, end = self._length, self._length + len(rows)
        for name, column in self._columns.items():
            if end > len(column):
                larger = self._room(name, end)
                larger[:start] = column[:start]
                self._columns[name] = column = larger
            column[start:end] = rows[name]
        self._length = end

    def _room(self, name: str, rows: int) -> NDArray[Any]:
        """A place for at least so many. Each column goes through sizes of its own."""
        steps = max(0, math.ceil(math.log(rows / _FIRST, _GROWTH) - self._order[name]))
        room = max(rows, math.ceil(_FIRST * _GROWTH ** (steps + self._order[name])))
        kind = self.row[name]
        return np.frombuffer(anonymous_memory(room * kind.itemsize), dtype=kind)


TOGETHER = 64
_NONE = -1
_KAFKA = "kafka"


class StreamTotals:
    """What connections carried, added up as they come: there may be too many to look at all of them again."""

    def __init__(self) -> None:
        self.kafka = 0
        """How many spoke Kafka."""
        self.bytes: Counter[str] = Counter()
        """Of streams, as far as they were captured, by protocol."""
        self.skipped_bytes = 0
        """Bytes of Kafka in no frame."""
        self.gap_bytes = 0
        """Bytes of streams that were not captured."""
        self.retransmitted = 0
        """Bytes that were sent again."""

    def add(self, connection: Connection, sign: int = 1) -> None:
        """Add one; with a ``sign`` of -1 take one back."""
        protocol = connection.protocol
        self.bytes[protocol] += sign * (connection.bytes_to_broker + connection.bytes_from_broker)
        self.gap_bytes += sign * connection.gap_bytes
        self.retransmitted += sign * connection.retransmitted
        if protocol == _KAFKA:
            self.kafka += sign
            self.skipped_bytes += sign * connection.skipped_bytes


class PackedConnections(Mapping[int, Connection]):
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
        self.carried = StreamTotals()
        """What those that count carried."""

    def add(self, connection: Connection) -> None:
        """Take in one."""
        number = connection.connection
        missing = number + 1 - len(self._places)
        if missing > 0:
            self._places.extend([_NONE] * missing)
        place, before = len(self._numbers), self._places[number]
        if before == _NONE or not connection.is_copy:
            if before != _NONE:
                self.carried.add(self.row(before), -1)
            self.carried.add(connection)
            self._places[number] = place
        if before != _NONE:
            self._copies.setdefault(number, []).append(place if connection.is_copy else before)
        self._numbers.append(number)
        self._last.append(tuple(connection))
        if len(self._last) == TOGETHER:
            self._packed.append(pack(self._last))
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

    def packed(self, places: Iterable[int]) -> Iterator[PackedRows]:
        """Rows by their places, still packed."""
        for which, group in groupby(places, lambda place: place // TOGETHER):
            packed = pack(self._last) if which == len(self._packed) else self._packed[which]
            yield PackedRows(packed, tuple(place % TOGETHER for place in group))

    def _together(self, which: int) -> list[tuple[Any, ...]]:
        if which == len(self._packed):
            return self._last
        if self._unpacked[0] != which:
            self._unpacked = which, unpack(self._packed[which])
        return self._unpacked[1]

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and 0 <= number < len(self._places) and self._places[number] != _NONE

    def __iter__(self) -> Iterator[int]:
        if not self._copies:
            return iter(self._numbers)
        return (number for place, number in enumerate(self._numbers) if self._places[number] == place)

    def __len__(self) -> int:
        return len(self._numbers) - sum(map(len, self._copies.values()))
