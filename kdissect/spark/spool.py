"""A folder in which captures appear → which of their bytes are read next.

The position of a stream is what was read of each file: its size then, whether it is final, and the time
of its first packet. A file is final when a later one of its capture point is there; until then its end is
not taken for its end. Files go in the order of their first packets. A file of which no packet is there
yet waits. Files that are gone are forgotten; the names of files are not used again.

Files should appear by renaming, or by being written to in the order of time, as tcpdump and dumpcap do.
Names that begin with ``.`` or ``_`` do not count.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BufferedIOBase
from typing import Any, NamedTuple, cast

from kdissect.capture.compressed import Pieces
from kdissect.capture.files import open_capture, read_packets
from kdissect.capture.pcap import MAGICS
from kdissect.limits import Limits
from kdissect.model import CaptureError, Packet
from kdissect.spark.plan import point_of
from kdissect.spark.storage import counts

_MAGIC_BYTES = 4
_PCAPNG = b"\x0a\x0d\x0d\x0a"
"""The type of the block that a pcapng file begins with."""
_ENOUGH = 64
"""Bytes in which the header of any capture is whole."""


class Read(NamedTuple):
    """What was read of a file."""

    size: int
    is_final: bool
    first_ns: int | None
    """Time of its first packet; None for a final file without packets."""


class Span(NamedTuple):
    """A file, as far as a batch reads it."""

    point: str
    path: str
    size: int
    is_final: bool
    first_ns: int | None


Position = dict[str, Read]
"""By the file's path."""


def to_offset(position: Position) -> dict[str, Any]:
    """A position as Spark keeps it: JSON."""
    return {"files": {path: list(read) for path, read in position.items()}}


def of_offset(offset: dict[str, Any]) -> Position:
    """The position of :func:`to_offset`."""
    return {path: Read(*read) for path, read in offset["files"].items()}


def spans_between(start: Position, end: Position, rule: str | None) -> list[Span]:
    """What a batch reads, in the order in which it is read; ``rule`` tells capture points apart."""
    new = [(path, read) for path, read in end.items() if start.get(path) != read]
    new.sort(key=lambda each: (each[1].first_ns or 0, each[0]))
    return [Span(point_of(path, rule), path, *read) for path, read in new]


def next_position(
    folder: str,
    start: Position,
    most_bytes: int | None,
    rule: str | None,
    limits: Limits,
    last: Position | None = None,
) -> Position:
    """How far the next batch reads.

    :param most_bytes: files are taken up to so many bytes, but at least one.
    :param last: what is not in this position does not count.
    """
    found = _files_in(folder)
    if last is not None:
        found = {path: min(size, last[path].size) for path, size in found.items() if path in last}
    firsts = {path: _first_of(path, start.get(path), limits) for path in found}
    latest: dict[str, int] = {}
    for path, first in firsts.items():
        if first is not None:
            point = point_of(path, rule)
            latest[point] = max(latest.get(point, first), first)
    end = {path: read for path, read in start.items() if path in found}
    budget = most_bytes
    for path in sorted(found, key=lambda path: (firsts[path] or 0, path)):
        first, before = firsts[path], start.get(path, Read(0, False, None))
        is_final = first is not None and first < latest[point_of(path, rule)]
        now = Read(max(found[path], before.size), is_final or before.is_final, first)
        if first is None or now == before:
            continue
        new_bytes = max(0, now.size - before.size)
        if budget is not None and new_bytes > budget and budget != most_bytes:
            break
        end[path] = now
        if budget is not None:
            budget = max(0, budget - new_bytes)
    return end


def limited(size: int) -> Callable[[str], BufferedIOBase]:
    """What opens a file that ends after ``size`` bytes, whatever was written to it since."""

    def opened(path: str) -> BufferedIOBase:
        return cast(BufferedIOBase, _Head(open_capture(path), size))

    return opened


class _Head:
    """The first bytes of a file, as far as captures are read."""

    def __init__(self, file: BufferedIOBase, size: int) -> None:
        self._file = file
        self._left = size

    def read1(self, size: int) -> bytes:
        data = self._file.read1(min(size, self._left)) if self._left else b""
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._file.close()


def _files_in(folder: str) -> dict[str, int]:
    """Path and size of the files that count, also in the folders in it."""
    found = {}
    for parent, folders, names in os.walk(folder):
        folders[:] = filter(counts, folders)
        for name in filter(counts, names):
            path = os.path.join(parent, name)
            try:
                found[path] = os.path.getsize(path)
            except OSError:
                continue  # it was renamed or removed meanwhile
    return found


def _first_of(path: str, before: Read | None, limits: Limits) -> int | None:
    """The time of the file's first packet; 0 of what is no capture, None where it is not there yet."""
    if before is not None and before.first_ns is not None:
        return before.first_ns
    try:
        for item in read_packets([path], limits, unfinished=(path,)):
            if isinstance(item, Packet):
                return item.timestamp_ns
    except CaptureError:
        return 0 if _is_no_capture(path) else None
    return None


def _is_no_capture(path: str) -> bool:
    """Whether a file that cannot be read as a capture will never be one, whatever is written to it."""
    head = b""
    try:
        pieces = Pieces(open_capture(path))
        try:
            while len(head) < _ENOUGH and (piece := next(pieces, b"")):
                head += piece
        finally:
            pieces.close()
        if len(head) < _MAGIC_BYTES:  # nothing yet, unless it is damage that keeps it from being unpacked
            offset = None if pieces.fault is None else pieces.fault.offset
            return offset is not None and offset < os.path.getsize(path)
    except (OSError, CaptureError):
        return False
    return head[:_MAGIC_BYTES] not in (*MAGICS, _PCAPNG) or len(head) >= _ENOUGH
