"""A folder in which captures appear → which of their bytes are read next.

The position of a stream contains what was read of each file: its size then, whether it is final, and its
first packet's time. A file is final when a later one of its capture point exists; until then it may grow.
Files go in the order of their first packets. A file without a packet waits, but does not delay the others.

kdissect waits for nothing in silence. If nobody writes to a file that is not final for the settle time,
kdissect looks at it once as if it were whole. It then reports the faults of the file, and reads on when the
file grows.

A name may come again, as in tcpdump's rings (``-W``). A file that became shorter, or that has another first
packet, is another file. Files that are gone are forgotten when others are read. Files below a folder that
cannot be listed do not count as gone. A file that was compressed continues under its other name
(:mod:`kdissect.spark.renamed_files`).

Files should appear by renaming, or by being written to in the order of time, as tcpdump and dumpcap do.
Names that begin with ``.`` or ``_`` do not count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from io import BufferedIOBase
from typing import Any, NamedTuple, cast

from kdissect.capture.compressed import Pieces
from kdissect.capture.files import read_packets
from kdissect.capture.pcap import MAGICS
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError, Packet
from kdissect.spark.plan import point_of
from kdissect.spark.renamed_files import doubles, twins
from kdissect.spark.storage import files_below, may_be_there, open_file

_MAGIC_BYTES = 4
_PCAPNG = b"\x0a\x0d\x0d\x0a"
"""The type of the first block of a pcapng file."""
_ENOUGH = 64
"""The number of bytes that contain the complete header of any capture."""


CHECKPOINT = "_checkpoint"
"""The folder beside tables that keeps how far a stream has read, unless another one is named."""
SETTLE_SECONDS = 60.0
"""The default settle time."""


class SpoolRead(NamedTuple):
    """What was read of a file."""

    size: int
    is_final: bool
    first_ns: int | None
    """The time of its first packet in ns; None if it has none yet; 0 if it is no capture, or a folder that
    cannot be listed."""
    is_settled: bool = False
    """Whether nobody wrote to it for the settle time, before it was final."""
    modified_ns: int = 0
    """The time of the last write."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder that cannot be listed. A file without bytes may still become a capture."""
        return self.first_ns == 0 and self.size == 0

    def point(self, path: str, rule: str | None) -> str:
        """The capture point. A folder is a point of its own, because the captures in it are unknown.

        :param rule: the setting ``capture_point``.
        :raises ValueError: a file belongs to no capture point.
        """
        return path if self.is_folder and rule is not None else point_of(path, rule)


class FileSpan(NamedTuple):
    """The part of a file that a batch reads."""

    point: str
    path: str
    size: int
    is_final: bool
    first_ns: int | None
    is_settled: bool
    is_gone: bool = False
    """Whether the file is no longer in the folder. Then the other fields are what was known of it."""


Position = dict[str, SpoolRead]
"""What was read of each file, by path."""


def to_offset(position: Position) -> dict[str, Any]:
    """A position in the form that Spark keeps: JSON."""
    return {"files": {path: list(read) for path, read in position.items()}}


def of_offset(offset: dict[str, Any]) -> Position:
    """The position of :func:`to_offset`."""
    return {path: SpoolRead(*read) for path, read in offset["files"].items()}


def spans_between(start: Position, end: Position, rule: str | None) -> list[FileSpan]:
    """The spans of a batch, in the order in which they are read, and then the files that are gone.

    :param rule: the setting ``capture_point``.
    :raises ValueError: a file belongs to no capture point.
    """
    new = [(path, read) for path, read in end.items() if start.get(path) != read]
    new.sort(key=lambda each: (each[1].first_ns or 0, each[0]))
    spans = [FileSpan(read.point(path, rule), path, *read[:4]) for path, read in new]
    gone = [(path, read) for path, read in start.items() if path not in end]
    return spans + [FileSpan(read.point(path, rule), path, *read[:4], is_gone=True) for path, read in gone]


class SpoolFolder(NamedTuple):
    """A folder, and how it is read."""

    folder: str
    rule: str | None = None
    """The setting ``capture_point``."""
    limits: Limits = DEFAULTS
    settle_seconds: float = SETTLE_SECONDS
    there: Callable[[], dict[str, SpoolRead]] | None = None
    """Returns the files, instead of listing the folder."""

    def next(self, start: Position, most_bytes: int | None = None, last: Position | None = None) -> Position:
        """How far the next batch reads; ``start`` itself if there is nothing to read.

        :param most_bytes: the most bytes of files to take, but at least one file.
        :param last: only files and bytes of this position count.
        :raises CaptureError: the folder cannot be listed, or its file system cannot be reached.
        :raises ValueError: a file belongs to no capture point.
        """
        there = files_in(self.folder) if self.there is None else self.there()
        found = {path: self._look(path, read, start.get(path)) for path, read in there.items()}
        for path in doubles({path: read.first_ns for path, read in found.items()}, start):
            del found[path]
        renamed = {
            path: twin
            for path, read in found.items()
            for twin in twins(path)
            if read.first_ns and twin in start and twin not in there and start[twin].first_ns == read.first_ns
        }
        if last is not None:
            found = {path: _at_most(read, last[path]) for path, read in found.items() if path in last}
        latest: dict[str, int] = {}
        for path, read in found.items():
            if read.first_ns is not None:
                point = read.point(path, self.rule)
                latest[point] = max(latest.get(point, read.first_ns), read.first_ns)
        end = {
            path: read
            for path, read in start.items()
            if path in there or path in renamed.values() or may_be_there(path)
        }
        is_any = False
        budget = most_bytes
        for path in sorted(found, key=lambda path: (found[path].first_ns or 0, path)):
            now, before = found[path], start.get(path)
            is_final = now.is_final or (
                now.first_ns is not None and now.first_ns < latest[now.point(path, self.rule)]
            )
            if before is not None and before.first_ns == now.first_ns:
                is_final = is_final or before.is_final
            if path in renamed:
                is_final = is_final or start[renamed[path]].is_final
            now = now._replace(is_final=is_final, is_settled=now.is_settled and not is_final)
            if now.first_ns is None and not now.is_settled:
                continue
            known = before.size if before is not None and before.first_ns in (None, now.first_ns) else 0
            if before is not None and now[:4] == before[:4]:
                continue
            new_bytes = now.size - known if now.size >= known else 0
            if budget is not None and new_bytes > budget and budget != most_bytes:
                break
            end[path], is_any = now, True
            if path in renamed:
                del end[renamed[path]]
            if budget is not None:
                budget = max(0, budget - new_bytes)
        return end if is_any else start

    def _look(self, path: str, now: SpoolRead, before: SpoolRead | None) -> SpoolRead:
        """The current state of a file."""
        if now.is_final:
            return now._replace(first_ns=0)
        first = None if before is None else before.first_ns
        is_touched = before is None or (before.size, before.modified_ns) != (now.size, now.modified_ns)
        if first is None or is_touched:
            first = _first_of(path, now.size, self.limits)
        age = time.time() - now.modified_ns / 1e9
        return now._replace(first_ns=first, is_settled=now.is_settled or age >= self.settle_seconds)


def limited(size: int, note: Callable[[bytes], None]) -> Callable[[str], BufferedIOBase]:
    """A function that opens a file and lets it end after ``size`` bytes, even if it has grown since. It
    raises the same errors as :func:`~kdissect.spark.storage.open_file`.

    :param note: receives the bytes that are read.
    """

    def opened(path: str) -> BufferedIOBase:
        return cast(BufferedIOBase, _Head(open_file(path), size, note))

    return opened


class _Head:
    """The first bytes of a file, with the methods that readers of captures use."""

    def __init__(self, file: BufferedIOBase, size: int, note: Callable[[bytes], None]) -> None:
        self._file = file
        self._left = size
        self._note = note

    def read1(self, size: int) -> bytes:
        data = self._file.read1(min(size, self._left)) if self._left else b""
        self._left -= len(data)
        self._note(data)
        return data

    def close(self) -> None:
        self._file.close()


def files_in(folder: str) -> dict[str, SpoolRead]:
    """Size and time of the files that count, by path, also of those in inner folders. An inner folder that
    cannot be listed stands for its files, and is final: reading it reports the reason.

    :raises CaptureError: the folder cannot be listed, or another file system cannot be asked.
    """
    return {
        path: SpoolRead(found.size, found.is_folder, None, modified_ns=found.modified_ns)
        for path, found in files_below(folder).items()
    }


def _at_most(now: SpoolRead, last: SpoolRead) -> SpoolRead:
    """A file up to its size in ``last``, if it is still the same."""
    return now._replace(size=min(now.size, last.size), is_settled=now.is_settled and last.is_settled)


def _first_of(path: str, size: int, limits: Limits) -> int | None:
    """The time of the file's first packet; 0 if it is no capture; None if it has none yet."""
    try:
        for item in read_packets([path], limits, open_file, (path,)):
            if isinstance(item, Packet):
                return item.timestamp_ns
    except CaptureError:
        return 0 if _is_no_capture(path, size) else None
    return None


def _is_no_capture(path: str, size: int) -> bool:
    """Whether a file that cannot be read as a capture will never be one, even if it grows."""
    head = b""
    try:
        pieces = Pieces(open_file(path))
        try:
            while len(head) < _ENOUGH and (piece := next(pieces, b"")):
                head += piece
        finally:
            pieces.close()
        if len(head) < _MAGIC_BYTES:  # nothing yet, unless damage prevents unpacking it
            offset = None if pieces.fault is None else pieces.fault.offset
            return offset is not None and offset < size
    except (OSError, CaptureError):
        return False
    return head[:_MAGIC_BYTES] not in (*MAGICS, _PCAPNG) or len(head) >= _ENOUGH
