"""Batches → columns: every exchange of a capture, 98 bytes each, to be listed, sorted and counted.

An :class:`Index` only ever grows, in the order in which exchanges were complete; a row's place in it
never changes. What a list shows is a *view*: the places of its rows, in the order of the list. Columns are
numpy arrays, so that sorting and choosing among a million rows takes milliseconds.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kdissect.session.conversation import Connection
from kdissect.tui.feed.decoder import Batch, FaultCount, InterfaceCount
from kdissect.tui.feed.rows import FIELDS, HAS_LATENCY, ROW, TEXT_FIELDS

Places = NDArray[np.uint32]
"""Rows of the index, by their places."""

_DTYPE = np.dtype({"names": [n for n, _ in FIELDS], "formats": ["<" + kind for _, kind in FIELDS]})
assert _DTYPE.itemsize == ROW.size

_GROWTH = 1.125
"""How much larger a full column is made."""


class ErrorCount(NamedTuple):
    """Exchanges with one error."""

    number: int
    first: int
    """Place of the one with the lowest number."""
    last: int


class Connections(Mapping[int, Connection]):
    """The connections that are over, by number; each packed, because there may be a hundred thousand."""

    def __init__(self) -> None:
        self._packed: dict[int, bytes] = {}

    def add(self, connection: Connection) -> None:
        """Take in one."""
        self._packed[connection.connection] = marshal.dumps(tuple(connection))

    def __getitem__(self, number: int) -> Connection:
        return Connection(*marshal.loads(self._packed[number]))

    def __iter__(self) -> Iterator[int]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


class Index:
    """The columns, and what is known beside them."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        """What text fields name by number; fit to be shown as they are."""
        self.connections = Connections()
        self.faults: dict[tuple[str, str], FaultCount] = {}
        """By layer and kind: how many, and the first."""
        self.packets = 0
        self.bytes_read = 0
        self.first_ns: int | None = None
        """Time of the first packet."""
        self.last_ns: int | None = None
        """Time of the latest."""
        self.spooled = 0
        """Bytes of the spool."""
        self.interfaces: Sequence[InterfaceCount] = ()
        self.names: list[tuple[str, str, int]] = []
        """Topic ids with their names and the packets that told them, in the order in which they were told."""
        self._length = 0
        self._order: Places = np.zeros(0, np.uint32)
        self._errors: dict[int, ErrorCount] = {}
        """By the number of the error's name."""
        self._columns: dict[str, NDArray[Any]] = {
            name: np.empty(1024, dtype="<" + kind) for name, kind in FIELDS
        }

    def __len__(self) -> int:
        return self._length

    @property
    def bytes_an_exchange(self) -> int:
        """What a row takes in memory, without its texts and what is in reserve."""
        return _DTYPE.itemsize

    def add(self, batch: Batch) -> None:
        """Append what a batch brings."""
        self.texts += batch.texts
        self.packets = max(self.packets, batch.packets)
        self.bytes_read = max(self.bytes_read, batch.bytes_read)
        if self.first_ns is None:
            self.first_ns = batch.first_ns
        self.last_ns = batch.last_ns if batch.last_ns is not None else self.last_ns
        self.spooled = max(self.spooled, batch.spooled)
        self.interfaces = batch.interfaces or self.interfaces
        self.names += batch.names
        for connection in batch.connections:
            self.connections.add(connection)
        for key, (number, first) in batch.faults.items():
            before = self.faults.get(key, FaultCount(0, first))
            self.faults[key] = before._replace(number=before.number + number)
        if batch.rows:
            self._append(np.frombuffer(batch.rows, dtype=_DTYPE))

    def _append(self, rows: NDArray[Any]) -> None:
        start, end = self._length, self._length + len(rows)
        for name, column in self._columns.items():
            if end > len(column):
                larger = np.empty(max(end, int(len(column) * _GROWTH)), dtype=column.dtype)
                larger[:start] = column[:start]
                self._columns[name] = column = larger
            column[start:end] = rows[name]
        self._length = end
        self._count_errors(start)

    def _count_errors(self, start: int) -> None:
        """Take in the errors of the rows from a place on."""
        error = self.column("error", start)
        bad = np.flatnonzero(error)
        numbers = self.column("number", start)
        bad = bad[np.argsort(numbers[bad], kind="stable")]
        codes, firsts, counts = np.unique(error[bad], return_index=True, return_counts=True)
        _, lasts = np.unique(error[bad][::-1], return_index=True)
        for at, code in enumerate(codes.tolist()):
            first, last = int(bad[firsts[at]]) + start, int(bad[::-1][lasts[at]]) + start
            known = self._errors.get(code)
            if known is not None:
                first = min(known.first, first, key=self._number_at)
                last = max(last, known.last, key=self._number_at)
            count = int(counts[at]) + (known.number if known is not None else 0)
            self._errors[code] = ErrorCount(count, first, last)

    def _number_at(self, place: int) -> int:
        return self.value("number", place)

    def column(self, name: str, start: int = 0, end: int | None = None) -> NDArray[Any]:
        """The values of a column so far, or those of the rows from ``start`` to ``end``."""
        return self._columns[name][start : self._length if end is None else end]

    def value(self, name: str, place: int) -> int:
        """One value."""
        return int(self._columns[name][place])

    def text(self, name: str, place: int) -> str:
        """One value of a text column."""
        return self.texts[int(self._columns[name][place])]

    def fault_count(self) -> int:
        """Faults of all kinds."""
        return sum(each.number for each in self.faults.values())

    def is_bad(self) -> NDArray[np.bool_]:
        """Which rows have an error or a fault."""
        bad: NDArray[np.bool_] = (self.column("error") != 0) | (self.column("faults") != 0)
        return bad

    def order(self) -> Places:
        """The places of all rows, ascending by number. It is not to be written to."""
        if len(self._order) != self._length:
            numbers = self.column("number")
            if self._length < 2 or bool(np.all(numbers[1:] > numbers[:-1])):
                self._order = np.arange(self._length, dtype=np.uint32)
            else:
                self._order = np.argsort(numbers, kind="stable").astype(np.uint32)
        return self._order

    def view(self, sort: str = "number", descending: bool = False, places: Places | None = None) -> Places:
        """The places of rows in the order of a column; equal ones, and those without a value, which come
        last, by number.

        :param places: only these rows, which are ascending by number.
        """
        if places is None:
            places = self.order()
        if sort == "number":
            return places[::-1] if descending else places
        keys = self._sort_keys(sort)[places]
        places = places[np.argsort(-keys if descending else keys, kind="stable")]
        has = self._has(sort, places)
        return np.concatenate((places[has], places[~has]))

    def _has(self, name: str, places: Places) -> NDArray[np.bool_]:
        """Which of these rows have a value in a column."""
        column = self.column(name)[places]
        if name == "latency_ns":
            return np.asarray((self.column("flags")[places] & HAS_LATENCY) != 0)
        if name in TEXT_FIELDS:
            return np.asarray(column != 0)
        if name in ("request_packet", "response_packet"):
            return np.asarray(column != 0)
        if name in ("request_size", "response_size"):
            return np.asarray(column >= 0)
        return np.ones(len(places), dtype=np.bool_)

    def _sort_keys(self, name: str) -> NDArray[np.int64]:
        """Numbers that order as the column does."""
        column = self.column(name)
        if name not in TEXT_FIELDS:
            return column.astype(np.int64)
        in_order = sorted(np.unique(column).tolist(), key=self.texts.__getitem__)
        rank = np.zeros(len(self.texts), dtype=np.int64)
        rank[in_order] = np.arange(len(in_order))
        return np.asarray(rank[column])

    def errors(self) -> list[tuple[str, int, int, int]]:
        """Every error by name: how often, and the places of the first and the last row with it, the most
        frequent first."""
        out = [(self.texts[code], *counted) for code, counted in self._errors.items()]
        return sorted(out, key=lambda row: (-row[1], row[0]))
