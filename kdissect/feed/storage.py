"""Storage that grows while a capture is read: columns of rows of fixed size, and connections.

Rows are appended a hundred times a minute, and this must never take long. So a full column moves to a larger
area, and no two columns are full at the same time. Each area is mapped from the system, and is returned to it
when the column has moved. On the heap it would leave a hole too large to be reused.

There may be a hundred thousand finished connections. They are packed together, :data:`TOGETHER` at a time,
because they are much alike. The last unpacked ones are kept, because a screen that reads one soon reads the
next. With several capture points, each may have a row of a connection. The mapping has the row that counts.
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

from kdissect.feed.packing import PackedRows
from kdissect.row_chunks import pack, unpack
from kdissect.session.conversation import Connection
from kdissect.system import anonymous_memory

_FIRST = 1_024
"""The number of rows with room at first."""
_GROWTH = 1.125
"""The growth factor of a full column. Its reserve takes no memory before it is written to."""


class GrowingColumns:
    """Columns that grow together.

    :param fields: name and type of each, as in the rows.
    """

    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self.row = np.dtype(
            {"names": [name for name, _ in fields], "formats": ["<" + kind for _, kind in fields]}
        )
        """The type of a row."""
        self._order = {name: at / len(fields) for at, (name, _) in enumerate(fields)}
        self._columns = {name: self._room(name, 1) for name, _ in fields}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column with its reserve. When it has grown, it is another array."""
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
        """An area for at least this number of rows. Each column has its own sequence of sizes."""
        steps = max(0, math.ceil(math.log(rows / _FIRST, _GROWTH) - self._order[name]))
        room = max(rows, math.ceil(_FIRST * _GROWTH ** (steps + self._order[name])))
        kind = self.row[name]
        return np.frombuffer(anonymous_memory(room * kind.itemsize), dtype=kind)


TOGETHER = 64
_NONE = -1
_KAFKA = "kafka"


class StreamTotals:
    """Totals of the connections, updated as they come: there may be too many to read all of them again."""

    def __init__(self) -> None:
        self.kafka = 0
        """The number of connections with Kafka."""
        self.bytes: Counter[str] = Counter()
        """The captured bytes of streams, by protocol."""
        self.skipped_bytes = 0
        """Bytes of Kafka outside of frames."""
        self.gap_bytes = 0
        """Bytes of streams that were not captured."""
        self.retransmitted = 0
        """Retransmitted bytes."""

    def add(self, connection: Connection, sign: int = 1) -> None:
        """Add a connection; with a ``sign`` of -1, subtract it."""
        protocol = connection.protocol
        self.bytes[protocol] += sign * (connection.bytes_to_broker + connection.bytes_from_broker)
        self.gap_bytes += sign * connection.gap_bytes
        self.retransmitted += sign * connection.retransmitted
        if protocol == _KAFKA:
            self.kafka += sign
            self.skipped_bytes += sign * connection.skipped_bytes


class PackedConnections(Mapping[int, Connection]):
    """The connections, in the order in which they ended."""

    def __init__(self) -> None:
        self._numbers = array("q")
        self._places = array("q")
        """The place of each connection in that order, by number."""
        self._copies: dict[int, list[int]] = {}
        """The places of the rows that do not count, by number."""
        self._packed: list[bytes] = []
        self._last: list[tuple[Any, ...]] = []
        """The rows that are not packed yet."""
        self._unpacked: tuple[int, list[tuple[Any, ...]]] = _NONE, []
        self.carried = StreamTotals()
        """The totals of the rows that count."""

    def add(self, connection: Connection) -> None:
        """Add a connection."""
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
        """The number of rows, including those that do not count."""
        return len(self._numbers)

    def places(self, number: int) -> list[int]:
        """The places of a connection's rows, in the order in which they came."""
        return [self._places[number], *self._copies.get(number, ())] if number in self else []

    def row(self, place: int) -> Connection:
        """The row at a place in that order."""
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
