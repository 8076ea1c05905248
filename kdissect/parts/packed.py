"""The longest lists of an edge ↔ bytes. To pickle their objects one by one took as long as a fifth of
dissecting the part. Lists of numbers are bytes from the start: an object for each number of a part took as
long as a tenth of dissecting it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdissect.model import Endpoint, Segment
from kdissect.tcp.packed import BYTES, number, put

Ends = tuple[Endpoint, Endpoint]

_BYTES = BYTES
_SEGMENT_BYTES = 14 * BYTES
_LEAST_ROOM = 512 * BYTES
_NONE = -1
"""Stands for None where no number is negative."""


class PackedNumbers:
    """Numbers of 64 bits, in order. Pickled, they are bytes.

    :param raw: the numbers to begin with, as :meth:`__reduce__` gives them.
    """

    def __init__(self, raw: bytes = b"") -> None:
        self.raw = bytearray(raw)
        """The bytes of the numbers, and room for more."""
        self._room = len(raw)
        """The number of bytes in ``raw`` …"""
        self._end = len(raw)
        """… and how many of them are used."""

    def __reduce__(self) -> tuple[type[PackedNumbers], tuple[bytes]]:
        return PackedNumbers, (bytes(memoryview(self.raw)[: self._end]),)

    def __len__(self) -> int:
        return self._end // _BYTES

    def __getitem__(self, place: int) -> int:
        if not 0 <= place < len(self):
            raise IndexError(place)
        return self.at(place)

    def count(self) -> int:
        """How many numbers there are; a fast path for compiled callers."""
        return self._end // _BYTES

    def at(self, place: int) -> int:
        """The number at a place, which must exist."""
        return number(self.raw, place * _BYTES)

    def place_of(self, value: int, start: int = 0) -> int:
        """The first place whose number is not below ``value``, if the numbers from ``start`` on ascend."""
        low, high = start, self._end // _BYTES
        while low < high:
            middle = (low + high) >> 1
            if number(self.raw, middle * _BYTES) < value:
                low = middle + 1
            else:
                high = middle
        return low

    def add(self, value: int) -> None:
        """Append a number."""
        if self._end == self._room:
            self.raw.extend(bytes(_LEAST_ROOM + self._room))
            self._room = len(self.raw)
        put(self.raw, self._end, value)
        self._end += _BYTES

    def fill(self, value: int, count: int) -> None:
        """Append the same number several times."""
        while count > 0:
            self.add(value)
            count -= 1


class Segments(list[Segment]):
    """Segments in order. Pickled, they are bytes."""

    def __reduce__(self) -> tuple[Callable[..., Segments], tuple[Any, ...]]:
        return _segments_of, _packed_segments(list(self))


class EndsList(list[Ends]):
    """Pairs of ends. Pickled, they are bytes."""

    def __reduce__(self) -> tuple[Callable[..., EndsList], tuple[Any, ...]]:
        return _ends_of, _packed_ends(list(self))


def _segments_of(ends: list[Endpoint], numbers: bytearray, payloads: bytes, options: bytes) -> Segments:
    return Segments(_unpacked_segments(ends, numbers, payloads, options))


def _ends_of(sizes: bytes, ends: bytes) -> EndsList:
    return EndsList(_unpacked_ends(sizes, ends))


def _packed_segments(segments: list[Segment]) -> tuple[list[Endpoint], bytearray, bytes, bytes]:
    """The endpoints of segments, their numbers, their payloads and their options."""
    places: dict[Endpoint, int] = {}
    payloads: list[bytes] = []
    options: list[bytes] = []
    numbers = bytearray(_SEGMENT_BYTES * len(segments))
    raw, at = numbers, 0
    for segment in segments:
        payload, option = segment.payload, segment.options
        put(raw, at, segment.packet)
        put(raw, at + 8, segment.timestamp_ns)
        put(raw, at + 16, places.setdefault(segment.source, len(places)))
        put(raw, at + 24, places.setdefault(segment.destination, len(places)))
        put(raw, at + 32, segment.seq)
        put(raw, at + 40, _NONE if segment.ack is None else segment.ack)
        put(raw, at + 48, segment.flags)
        put(raw, at + 56, len(payload))
        put(raw, at + 64, segment.length)
        put(raw, at + 72, segment.identity)
        put(raw, at + 80, segment.network)
        put(raw, at + 88, segment.window)
        put(raw, at + 96, len(option))
        put(raw, at + 104, segment.clock)
        payloads.append(payload)
        options.append(option)
        at += _SEGMENT_BYTES
    return list(places), numbers, b"".join(payloads), b"".join(options)


def _unpacked_segments(
    ends: list[Endpoint], numbers: bytearray, payloads: bytes, options: bytes
) -> list[Segment]:
    """The segments with these values, of :func:`_packed_segments`."""
    out: list[Segment] = []
    raw, data, more = numbers, payloads, options
    at = begin = option = 0
    end = len(numbers)
    while at < end:
        segment = Segment.__new__(Segment)
        segment.packet, segment.timestamp_ns = number(raw, at), number(raw, at + 8)
        segment.source, segment.destination = ends[number(raw, at + 16)], ends[number(raw, at + 24)]
        ack = number(raw, at + 40)
        segment.seq, segment.ack = number(raw, at + 32), None if ack == _NONE else ack
        segment.flags, segment.length = number(raw, at + 48), number(raw, at + 64)
        size = number(raw, at + 56)
        segment.payload = data[begin : begin + size]
        begin += size
        segment.identity, segment.network = number(raw, at + 72), number(raw, at + 80)
        segment.window, segment.clock = number(raw, at + 88), number(raw, at + 104)
        size = number(raw, at + 96)
        segment.options = more[option : option + size]
        option += size
        out.append(segment)
        at += _SEGMENT_BYTES
    return out


def _packed_ends(pairs: list[Ends]) -> tuple[bytes, bytes]:
    """The size of each end, and all ends."""
    ends = [end for pair in pairs for end in pair]
    return bytes([len(end) for end in ends]), b"".join(ends)


def _unpacked_ends(sizes: bytes, ends: bytes) -> list[Ends]:
    """The pairs with these values, of :func:`_packed_ends`."""
    out: list[Ends] = []
    raw, data, at, begin = sizes, ends, 0, 0
    count = len(sizes)
    while at < count:
        middle = begin + raw[at]
        end = middle + raw[at + 1]
        out.append((data[begin:middle], data[middle:end]))
        begin = end
        at += 2
    return out
