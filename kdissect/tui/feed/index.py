"""Batches → columns: every exchange of a capture, 82 bytes each, to be listed, sorted and counted.

An :class:`Index` only ever grows, in the order in which exchanges were complete; a row's place in it
never changes. What a list shows is a *view*: the places of its rows, in the order of the list. Columns are
numpy arrays, so that sorting and choosing among a million rows takes milliseconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdissect.session.conversation import Connection
from kdissect.tui.feed.decoder import Batch, FaultCount
from kdissect.tui.feed.rows import FIELDS, HAS_LATENCY, ROW, TEXT_FIELDS

Places = NDArray[np.uint32]
"""Rows of the index, by their places."""

_DTYPE = np.dtype({"names": [n for n, _ in FIELDS], "formats": ["<" + kind for _, kind in FIELDS]})
assert _DTYPE.itemsize == ROW.size

_GROWTH = 1.25
"""How much larger a full column is made."""


class Index:
    """The columns, and what is known beside them."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        """What text fields name by number; fit to be shown as they are."""
        self.connections: dict[int, Connection] = {}
        self.faults: dict[tuple[str, str], FaultCount] = {}
        """By layer and kind: how many, and the first."""
        self.packets = 0
        self.bytes_read = 0
        self.first_ns: int | None = None
        """Time of the first packet."""
        self._length = 0
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
        for connection in batch.connections:
            self.connections[connection.connection] = connection
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

    def column(self, name: str) -> NDArray[Any]:
        """All values of a column so far."""
        return self._columns[name][: self._length]

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

    def view(self, sort: str = "number", descending: bool = False, connection: int | None = None) -> Places:
        """The places of rows in the order of a column; equal ones, and those without a value, which come
        last, by number.

        :param connection: only rows of this one.
        """
        places = np.argsort(self.column("number"), kind="stable").astype(np.uint32)
        if connection is not None:
            places = places[self.column("connection")[places] == connection]
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
        column = self.column("error")
        numbers, counts = np.unique(column, return_counts=True)
        out = []
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            if number:
                places = np.flatnonzero(column == number)
                by_number = places[np.argsort(self.column("number")[places], kind="stable")]
                out.append((self.texts[number], count, int(by_number[0]), int(by_number[-1])))
        return sorted(out, key=lambda row: (-row[1], row[0]))
