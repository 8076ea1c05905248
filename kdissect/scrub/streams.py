"""The replaced bytes of each direction of each connection, by their offset.

A stream is a direction of a connection: twice the connection's number, plus the side. Retransmitted and
overlapping bytes get the same replacement each time, because they have the same offset.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from typing import IO, NamedTuple

from kdissect.scrub.allowed import UNKNOWN
from kdissect.tcp.duplex import Side


def stream_of(connection: int, side: Side) -> int:
    """The number of a stream."""
    return 2 * connection + side


class StreamPart(NamedTuple):
    """A part of a stream."""

    data: bytes
    """The bytes, with :data:`~kdissect.scrub.allowed.UNKNOWN` if nothing was written."""
    known: int
    """How many of the bytes were written."""


class _WrittenStream:
    """The written ranges of a stream."""

    def __init__(self) -> None:
        self.starts, self.lengths, self.places = array("q"), array("q"), array("q")
        self.is_sorted = True

    def add(self, start: int, length: int, place: int) -> None:
        if self.starts and start < self.starts[-1]:
            self.is_sorted = False
        self.starts.append(start)
        self.lengths.append(length)
        self.places.append(place)

    def sort(self) -> None:
        if not self.is_sorted:
            rows = sorted(zip(self.starts, self.lengths, self.places, strict=True))
            columns = zip(*rows, strict=True)
            self.starts, self.lengths, self.places = (array("q", column) for column in columns)
            self.is_sorted = True


class Streams:
    """Keeps the bytes in a file, and the place of each range.

    :param file: an empty file, for reading and writing.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = 0
        self._written: defaultdict[int, _WrittenStream] = defaultdict(_WrittenStream)

    def __contains__(self, stream: int) -> bool:
        """Whether anything was written of a stream, or of the other direction."""
        return stream in self._written or stream ^ 1 in self._written

    def add(self, stream: int, offset: int, data: bytes) -> None:
        """Write bytes of a stream."""
        self._file.seek(self._size)
        self._file.write(data)
        self._written[stream].add(offset, len(data), self._size)
        self._size += len(data)

    def read(self, stream: int, offset: int, length: int) -> StreamPart:
        """A part of a stream."""
        written = self._written.get(stream)
        if written is None or not length:
            return StreamPart(UNKNOWN * length, 0)
        written.sort()
        out = bytearray(UNKNOWN) * length
        known = 0
        at = max(bisect_right(written.starts, offset) - 1, 0)
        end = offset + length
        while at < len(written.starts) and written.starts[at] < end:
            start, size = written.starts[at], written.lengths[at]
            first, last = max(start, offset), min(start + size, end)
            if first < last:
                self._file.seek(written.places[at] + first - start)
                out[first - offset : last - offset] = self._file.read(last - first)
                known += last - first
            at += 1
        return StreamPart(bytes(out), known)
