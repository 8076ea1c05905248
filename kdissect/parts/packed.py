"""The longest lists of an edge ↔ bytes. To pickle their objects one by one took as long as a fifth of
dissecting the part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdissect.model import Endpoint, Segment

Ends = tuple[Endpoint, Endpoint]

_BYTES = 8
"""The bytes of a number, lowest first."""
_SEGMENT_BYTES = 14 * _BYTES
_NONE = -1
"""Stands for None where no number is negative."""


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
        _put(raw, at, segment.packet)
        _put(raw, at + 8, segment.timestamp_ns)
        _put(raw, at + 16, places.setdefault(segment.source, len(places)))
        _put(raw, at + 24, places.setdefault(segment.destination, len(places)))
        _put(raw, at + 32, segment.seq)
        _put(raw, at + 40, _NONE if segment.ack is None else segment.ack)
        _put(raw, at + 48, segment.flags)
        _put(raw, at + 56, len(payload))
        _put(raw, at + 64, segment.length)
        _put(raw, at + 72, segment.identity)
        _put(raw, at + 80, segment.network)
        _put(raw, at + 88, segment.window)
        _put(raw, at + 96, len(option))
        _put(raw, at + 104, segment.clock)
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
        segment.packet, segment.timestamp_ns = _number(raw, at), _number(raw, at + 8)
        segment.source, segment.destination = ends[_number(raw, at + 16)], ends[_number(raw, at + 24)]
        ack = _number(raw, at + 40)
        segment.seq, segment.ack = _number(raw, at + 32), None if ack == _NONE else ack
        segment.flags, segment.length = _number(raw, at + 48), _number(raw, at + 64)
        size = _number(raw, at + 56)
        segment.payload = data[begin : begin + size]
        begin += size
        segment.identity, segment.network = _number(raw, at + 72), _number(raw, at + 80)
        segment.window, segment.clock = _number(raw, at + 88), _number(raw, at + 104)
        size = _number(raw, at + 96)
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


def _put(raw: bytearray, at: int, value: int) -> None:
    """Write a number of 64 bits."""
    raw[at] = value & 0xFF
    raw[at + 1] = value >> 8 & 0xFF
    raw[at + 2] = value >> 16 & 0xFF
    raw[at + 3] = value >> 24 & 0xFF
    raw[at + 4] = value >> 32 & 0xFF
    raw[at + 5] = value >> 40 & 0xFF
    raw[at + 6] = value >> 48 & 0xFF
    raw[at + 7] = value >> 56 & 0xFF


def _number(raw: bytearray, at: int) -> int:
    """Read a number that :func:`_put` wrote."""
    high: int = raw[at + 7]
    if high > 0x7F:
        high -= 0x100
    high = high << 8 | raw[at + 6]
    high = high << 8 | raw[at + 5]
    high = high << 8 | raw[at + 4]
    high = high << 8 | raw[at + 3]
    high = high << 8 | raw[at + 2]
    high = high << 8 | raw[at + 1]
    return high << 8 | raw[at]
