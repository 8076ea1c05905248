"""Capture files → their capture points, if the same traffic was captured at several places.

Packets are copies of one another if both ends, sequence number and bytes are the same. Files that overlap in
time and have copies with different times are from several points. Files whose copies have the same times are
from one point. So are files that have no copies in their common connections. A file belongs to the point of
another if it follows that file and only the number in its name differs (a rotated capture). Two points are
not recognised if an address is translated between them. They are not recognised either if their clocks differ
by more than the inspected packets.

Only a limited number of packets is inspected where one file begins while another goes on. If files do not
overlap, only their ends are read. For a long compressed file, only its first :data:`SCAN_BYTES` are read.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from io import BufferedIOBase
from typing import NamedTuple

from kdissect.capture.compressed import SUFFIXES
from kdissect.capture.files import Path, open_capture, read_packets
from kdissect.capture.reader import Points
from kdissect.capture.segments import SegmentReader
from kdissect.capture.tails import last_time
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError, Endpoint, Packet, Segment

BEFORE, AFTER = 2_000, 4_000
"""The number of packets inspected before and after the time at which another file begins."""
SCAN_BYTES = 32 << 20
"""The number of unpacked bytes that are read of a file if its end cannot be found otherwise."""
_LEAST_SHARE = 4
"""One in this number of the segments that another file should also have must be there. Retransmissions
between two files of one point are fewer."""
_CAPTURE_SUFFIXES = (".pcap", ".pcapng", ".cap", ".dmp", *SUFFIXES)

Opener = Callable[[str], BufferedIOBase]


def find_points(
    paths: Iterable[Path], limits: Limits = DEFAULTS, opener: Opener = open_capture
) -> Points | None:
    """The capture points of these files; None if they are from one point, cannot be read twice, or the points
    cannot be determined. Faults of a file are reported when it is read."""
    names = [os.fspath(path) for path in paths]
    if len(names) < 2 or not all(os.path.isfile(name) for name in names):
        return None
    try:
        files = [file for name in names if (file := _file(name, limits, opener)) is not None]
    except OSError:
        return None
    files.sort(key=lambda file: file.first_ns)
    groups: list[_PointFiles] = []
    related = False
    for file in files:
        related = _place(file, groups, limits, opener) or related
    return _points(groups) if related and len(groups) > 1 else None


class _PointFile(NamedTuple):
    path: str
    first_ns: int
    last_ns: int


class _PointFiles:
    """The files of one point so far."""

    def __init__(self, file: _PointFile, ahead_ns: int) -> None:
        self.files = [file]
        self.ahead_ns = ahead_ns

    @property
    def last_ns(self) -> int:
        return max(file.last_ns for file in self.files)

    def likeness(self, file: _PointFile) -> int:
        """The similarity of a file's name, if the file may follow these files; 0 if it may not."""
        key = _key(file.path)
        if all(_key(each.path) != key for each in self.files):
            return 0
        return 1 + max(_common(each.path, file.path) for each in self.files)


def _place(file: _PointFile, groups: list[_PointFiles], limits: Limits, opener: Opener) -> bool:
    """Put a file into its group, or into a new one. Return whether it is another point's view of a group's
    traffic."""
    going_on = [group for group in groups if group.last_ns > file.first_ns]
    ended = [group for group in groups if group.last_ns <= file.first_ns]
    last = max(ended, key=lambda group: (group.likeness(file), group.last_ns), default=None)
    if last is not None and (last.likeness(file) or not going_on):
        last.files.append(file)
        return False
    sample = _around(file, file.first_ns, limits, opener)
    ahead: list[int] = []
    for group in going_on:
        views = [
            _compared(_around(each, file.first_ns, limits, opener), sample)
            for each in group.files
            if each.last_ns > file.first_ns
        ]
        found = [view.ahead_ns for view in views if view.ahead_ns is not None]
        if found:
            ahead.append(group.ahead_ns + found[0])
        elif any(view.is_same for view in views) or group.likeness(file):
            group.files.append(file)
            return False
    groups.append(_PointFiles(file, ahead[0] if ahead else 0))
    return bool(ahead)


class _Overlap(NamedTuple):
    """The relation of two files."""

    is_same: bool
    """Whether they are from one point."""
    ahead_ns: int | None = None
    """How far the clock of the second is ahead; None if they are not from two points."""


_Sent = tuple[Endpoint, Endpoint]
_Sample = dict[tuple[Endpoint, Endpoint, int], Segment]


def _compared(first: _Sample, second: _Sample) -> _Overlap:
    spans: dict[_Sent, tuple[int, int]] = {}
    for source, destination, seq in first:
        low, high = spans.get((source, destination), (seq, seq))
        spans[source, destination] = (min(low, seq), max(high, seq))
    apart: dict[_Sent, list[int]] = {}
    lacking = shared = 0
    for key, segment in second.items():
        sent = key[:2]
        copy = first.get(key)
        if copy is not None and _is_copy(copy, segment):
            apart.setdefault(sent, []).append(segment.timestamp_ns - copy.timestamp_ns)
        elif sent in spans and spans[sent][0] <= segment.seq <= spans[sent][1]:
            lacking += 1
        elif sent in spans or sent[::-1] in spans:
            shared += 1
    times = [each for some in apart.values() for each in some]
    if not times:
        return _Overlap(bool(shared or lacking))
    if 2 * times.count(0) > len(times) or _LEAST_SHARE * len(times) < len(times) + lacking:
        return _Overlap(True)
    return _Overlap(False, _ahead(apart))


def _is_copy(one: Segment, other: Segment) -> bool:
    """Whether the common part of the bytes is the same: network cards cut and join segments."""
    size = min(len(one.payload), len(other.payload))
    return one.payload[:size] == other.payload[:size]


def _ahead(apart: dict[_Sent, list[int]]) -> int:
    """How far one clock is ahead of another. The network's time is added in one direction, and subtracted in
    the other."""
    from statistics import median

    found = [
        (median(there) + median(apart[sent[::-1]])) / 2
        for sent, there in apart.items()
        if sent[::-1] in apart
    ]
    return int(median(found or [each for some in apart.values() for each in some]))


def _around(file: _PointFile, time_ns: int, limits: Limits, opener: Opener) -> _Sample:
    """The segments with data of a file around a time, each once."""
    before: deque[Packet] = deque(maxlen=BEFORE)
    after: list[Packet] = []
    for packet in _packets(file.path, limits, opener):
        if packet.timestamp_ns < time_ns:
            before.append(packet)
            continue
        after.append(packet)
        if len(after) >= AFTER:
            break
    reader = SegmentReader(limits)
    sample: _Sample = {}
    for packet in (*before, *after):
        segment = reader.feed(packet)
        if isinstance(segment, Segment) and segment.payload:
            sample.setdefault((segment.source, segment.destination, segment.seq), segment)
    return sample


def _packets(path: str, limits: Limits, opener: Opener) -> Iterator[Packet]:
    """The packets of a file, up to the first that cannot be read."""
    try:
        capture = read_packets((path,), limits, opener)
    except CaptureError:
        return
    try:
        for item in capture:
            if isinstance(item, Packet):
                yield item
    finally:
        capture.close()


def _file(path: str, limits: Limits, opener: Opener) -> _PointFile | None:
    """A file, with the times of its first and last packet; None without packets."""
    first = next(_packets(path, limits, opener), None)
    if first is None:
        return None
    last = last_time(path, limits)
    if last is None:
        read, last = 0, first.timestamp_ns
        for packet in _packets(path, limits, opener):
            last = max(last, packet.timestamp_ns)
            read += len(packet.data)
            if read > SCAN_BYTES:
                break
    return _PointFile(path, first.timestamp_ns, last)


# -- names ------------------------------------------------------------------------------------------


def _points(groups: list[_PointFiles]) -> Points:
    names = _names([group.files[0].path for group in groups])
    return Points(
        tuple(names),
        {file.path: at for at, group in enumerate(groups) for file in group.files},
        tuple(group.ahead_ns for group in groups),
        {},
    )


def _names(paths: list[str]) -> list[str]:
    """The names of the points: their first files, with as many folders as needed to distinguish them."""
    parts = [os.path.abspath(path).split(os.sep) for path in paths]
    for count in range(1, max(map(len, parts)) + 1):
        names = [_bare("/".join(each[-count:])) for each in parts]
        if len(set(names)) == len(names):
            return names
    return ["/".join(each[1:]) for each in parts]


def _common(one: str, other: str) -> int:
    """The length of the common beginning of two names."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (mine, its) in enumerate(pairs) if mine != its), min(len(one), len(other)))


def _bare(path: str) -> str:
    while path.endswith(_CAPTURE_SUFFIXES) and os.path.basename(path) not in _CAPTURE_SUFFIXES:
        path = path[: path.rindex(".")]
    return path


def _key(path: str) -> str:
    """The common part of the names of a rotated capture's files."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(folder, re.sub(r"\d+", "", _bare(name)))
