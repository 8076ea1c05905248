"""Batches → columns: every exchange of a capture, 106 bytes each, to be listed, sorted and counted.

An :class:`Index` only grows, in the order in which exchanges were complete; a row's place never changes. A
list shows a *view*: the places of its rows, in the order of the list. Columns are numpy arrays
(:mod:`kdissect.feed.storage`), so that sorting and filtering a million rows takes milliseconds.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kdissect.feed.batches import CountedFault, FeedBatch, InterfaceCount
from kdissect.feed.rows import FIELDS, GRADES, GRAVEST, HAS_LATENCY, ROW, TEXT_FIELDS
from kdissect.feed.storage import GrowingColumns, PackedConnections
from kdissect.names import KnownNames, TopicNames
from kdissect.protocol.errors import ROUTINE
from kdissect.session.conversation import Connection

Places = NDArray[np.uint32]
"""Rows of the index, by their places."""

_ALL_PACKETS = 1 << 62
_LONGEST_PORT = 5
"""The digits of the longest port."""


class Index:
    """The columns, and the facts beside them."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        """The texts that text fields name by number; they can be shown unchanged."""
        self.connections = PackedConnections()
        self.going_on: Mapping[int, Connection] = {}
        """Open connections with TLS, by number. A change replaces the mapping."""
        self.faults: dict[tuple[str, str], CountedFault] = {}
        """The number of faults and the first one, by layer and kind."""
        self.cut: dict[int, CountedFault] = {}
        """The faults caused by the snap length, by connection."""
        self.packets = 0
        self.bytes_read = 0
        self.first_ns: int | None = None
        """The time of the first packet."""
        self.last_ns: int | None = None
        """The time of the latest packet."""
        self.spooled = 0
        """The number of bytes in the spool."""
        self.interfaces: Sequence[InterfaceCount] = ()
        self.names: list[tuple[str, str, int]] = []
        """Topic ids with their names and the packets that had the names, in the order of these packets."""
        self.topic_names = TopicNames()
        """The same names, for look-ups."""
        self._ports = array("i", [-1])
        """The port of every text that is an address with a port; -1 for others."""
        self._order: Places = np.zeros(0, np.uint32)
        self.graded = [0] * len(GRADES)
        """The number of exchanges with errors, by the grade of the gravest, in the order of
        :data:`GRADES`."""
        self._columns = GrowingColumns(FIELDS)
        assert self.bytes_an_exchange == ROW.size

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def bytes_an_exchange(self) -> int:
        """The memory of a row, without its texts and without reserves."""
        return self._columns.row.itemsize

    def add(self, batch: FeedBatch) -> None:
        """Append the contents of a batch."""
        self.texts += batch.texts
        self._ports.extend(map(_port_of, batch.texts))
        self.packets = max(self.packets, batch.packets)
        self.bytes_read = max(self.bytes_read, batch.bytes_read)
        if self.first_ns is None:
            self.first_ns = batch.first_ns
        self.last_ns = batch.last_ns if batch.last_ns is not None else self.last_ns
        self.spooled = max(self.spooled, batch.spooled)
        self.interfaces = batch.interfaces or self.interfaces
        self.names += batch.names
        for topic_id, name, packet in batch.names:
            self.topic_names.learn(topic_id, name, packet)
        for connection in batch.connections:
            self.connections.add(connection)
        told = {each.connection: each for each in batch.going_on}
        if told or any(each.connection in self.going_on for each in batch.connections):
            both = {**self.going_on, **told}
            self.going_on = {number: both[number] for number in both if number not in self.connections}
        self.add_faults(batch.faults)
        _add_faults(self.cut, batch.cut)
        if batch.rows:
            start = len(self)
            self._columns.append(batch.rows)
            for grade, count in enumerate(grades(self.column("flags", start)).tolist()):
                self.graded[grade] += count

    def all_names(self) -> KnownNames:
        """The names of topic ids from all packets: an id never names another topic."""
        return self.topic_names.up_to(_ALL_PACKETS)

    def column(self, name: str, start: int = 0, end: int | None = None) -> NDArray[Any]:
        """The values of a column so far, or of the rows from ``start`` to ``end``."""
        return self._columns[name][start : len(self) if end is None else end]

    def value(self, name: str, place: int) -> int:
        """One value."""
        return int(self._columns[name][place])

    def text(self, name: str, place: int) -> str:
        """One value of a text column."""
        return self.texts[int(self._columns[name][place])]

    def add_faults(self, faults: Mapping[tuple[str, str], CountedFault]) -> None:
        """Count faults, by layer and kind."""
        _add_faults(self.faults, faults)

    def fault_count(self) -> int:
        """The number of faults of all kinds."""
        return sum(each.number for each in self.faults.values())

    def is_bad(self) -> NDArray[np.bool_]:
        """Which rows have a fault, or an error that is not routine."""
        bad: NDArray[np.bool_] = self.has_errors() | (self.column("faults") != 0)
        return bad

    def has_errors(self) -> NDArray[np.bool_]:
        """Which rows have an error that is not routine."""
        found: NDArray[np.bool_] = (self.column("flags") >> GRAVEST & 3) > GRADES.index(ROUTINE)
        return found

    def ports(self) -> NDArray[np.int32]:
        """The port of each text that is an address, by the text's number; -1 for other texts."""
        return np.array(self._ports, dtype=np.int32)

    def order(self) -> Places:
        """The places of all rows, ascending by number. Read only."""
        known, end = len(self._order), len(self)
        if known != end:
            self._order = _merged(self.column("number"), self._order, np.arange(known, end, dtype=np.uint32))
        return self._order

    def view(self, sort: str = "number", descending: bool = False, places: Places | None = None) -> Places:
        """The places of rows in the order of a column. Equal rows are ordered by number. So are rows without
        a value, which come last.

        :param places: only these rows, which are ascending by number.
        """
        if places is None:
            places = self.order()
        if sort == "number":
            return places[::-1] if descending else places
        has = self._has(sort, places)
        rows = places[has]
        return np.concatenate((rows[_sorted(self._sort_keys(sort, rows), descending)], places[~has]))

    def _has(self, name: str, places: Places) -> NDArray[np.bool_]:
        """Which of these rows have a value in a column."""
        column = self.column(name)[places]
        if name == "latency_ns":
            return np.asarray((self.column("flags")[places] & HAS_LATENCY) != 0)
        if name in TEXT_FIELDS:
            return np.asarray(column != 0)
        if name in ("request_packet", "response_packet"):
            return np.asarray(column != 0)
        if name in ("request_size", "response_size", "behind_ns"):
            return np.asarray(column >= 0)
        return np.ones(len(places), dtype=np.bool_)

    def _sort_keys(self, name: str, places: Places) -> NDArray[np.int64]:
        """Numbers of these rows that sort like the column."""
        column = self.column(name)[places]
        if name not in TEXT_FIELDS:
            return column.astype(np.int64)
        in_order = sorted(np.flatnonzero(np.bincount(column)).tolist(), key=self.texts.__getitem__)
        rank = np.zeros(len(self.texts), dtype=np.int64)
        rank[in_order] = np.arange(len(in_order))
        return np.asarray(rank[column])


def grades(flags: NDArray[Any]) -> NDArray[np.intp]:
    """The number of these rows with each of the :data:`GRADES`."""
    return np.bincount(flags >> GRAVEST & 3, minlength=len(GRADES))


def _port_of(text: str) -> int:
    port = text.rpartition(":")[2]
    return int(port) if len(port) <= _LONGEST_PORT and port.isascii() and port.isdecimal() else -1


def _merged(numbers: NDArray[Any], order: Places, new: Places) -> Places:
    """The places in order, with new ones. These come nearly in order, so only the end has to be sorted."""
    new = new[np.argsort(numbers[new], kind="stable")]
    least = int(numbers[new[0]])
    start = bisect_right(order, least, key=lambda place: int(numbers[place]))
    end = np.concatenate((order[start:], new))
    return np.concatenate((order[:start], end[np.argsort(numbers[end], kind="stable")]))


def _sorted(keys: NDArray[np.int64], descending: bool) -> NDArray[np.intp]:
    """The places of keys in their order; equal keys keep their order.

    A key and its place are sorted as one number, if they fit into one. That takes a third of the time of a
    stable sort of places. It overwrites the keys.
    """
    bits = len(keys).bit_length()
    low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
    if high - low >= 1 << (63 - bits):
        return np.argsort(~keys if descending else keys, kind="stable")
    keys -= low
    if descending:
        np.subtract(high - low, keys, out=keys)
    keys <<= bits
    keys |= np.arange(len(keys))
    keys.sort()
    keys &= (1 << bits) - 1
    return keys


_Key = TypeVar("_Key")


def _add_faults(counts: dict[_Key, CountedFault], later: Mapping[_Key, CountedFault]) -> None:
    for key, (number, first) in later.items():
        before = counts.get(key, CountedFault(0, first))
        counts[key] = before._replace(number=before.number + number)
