"""A capture file ─► parts, each a run of whole packets that is read alone.

The file is walked from its beginning, packet by packet, by the lengths that stand before them. So each cut is
a true boundary, and the number of the first packet behind it is known. Nothing is guessed.

Only what nearly all files are is cut: one uncompressed pcap (version 2.4) or pcapng file of this machine. The
walk ends before anything but an ordinary packet: damage, another header, an interface, secrets, statistics.
From there on the file is one part, and the reader says what it always says. The file is read, not mapped into
memory: where somebody cuts it meanwhile, the walk ends.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from kdissect.capture import pcap, pcapng
from kdissect.capture.reader import Interface, Item, Reader
from kdissect.capture.resync import ENHANCED_PACKET, SIMPLE_PACKET
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError

PIECE_BYTES = 1 << 18
_WINDOW_BYTES = 1 << 18
"""What is read at a time to walk over it."""
_PREAMBLE_BYTES = 1 << 20
"""In so many bytes a pcapng file describes its interfaces, or it is not cut."""
_PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
_HEADER_BYTES = 16
_SHORTEST = {ENHANCED_PACKET: 32, SIMPLE_PACKET: 16}


class FilePart(NamedTuple):
    """Bytes of a file that hold whole packets."""

    path: str
    start: int
    end: int | None
    """None: the end of the file, whatever stands before it."""
    before: int
    """How many packets stand before it."""
    packets: int = 0
    """How many it has; 0 where nobody counted."""


class Cuts:
    """Walks a file and cuts it.

    :raises CaptureError: it cannot be cut: it is to be read as one.
    """

    def __init__(self, path: str, limits: Limits = DEFAULTS) -> None:
        self._path = path
        self._limits = limits
        self.first_ns: int | None = None
        """Time of the first packet, where there is one."""
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise CaptureError(f"{path}: is not a file")
            with open(path, "rb") as file:
                self._size = os.fstat(file.fileno()).st_size
                head = file.read(_PREAMBLE_BYTES)
                self._at = _preamble_bytes(head, limits)
                self._file = os.dup(file.fileno())
        except (OSError, ValueError) as error:
            raise CaptureError(f"{path}: cannot be read: {error}") from None
        if head[:4] == _PCAPNG_MAGIC:
            self._order = "<" if head[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
        else:
            self._order, self._scale, _ = pcap.MAGICS[head[:4]]
        self._is_pcapng = head[:4] == _PCAPNG_MAGIC
        self._packets = 0
        self.is_over = False
        """Whether the walk has come to something else than packets, or to the end."""

    def next(self, size: int, packets: int | None = None) -> FilePart | None:
        """The next part, of about so many bytes; None where the walk is over.

        :param packets: how many packets it has at most.
        """
        start, before = self._at, self._packets
        goal = min(start + size, self._size)
        walk = self._walk_pcapng if self._is_pcapng else self._walk_pcap
        count = 0 if self.is_over else walk(goal, packets)
        if not count:
            return None
        self._packets += count
        return FilePart(self._path, start, self._at, before, count)

    def rest(self) -> FilePart:
        """What was not cut."""
        return FilePart(self._path, self._at, None, self._packets)

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _walk_pcap(self, goal: int, most: int | None) -> int:
        unpack = Struct(self._order + "IIII").unpack_from
        at, size, limit = self._at, self._size, self._limits.packet_bytes
        window, begin, last = b"", at, at - 1  # the last place where a header may begin
        count = 0
        while at < goal and count != most:
            if at > last:
                window, begin = self._window(at), at
                last = begin + len(window) - _HEADER_BYTES
                if last < at:
                    self.is_over = True
                    break
            seconds, fraction, captured, wire = unpack(window, at - begin)
            end = at + _HEADER_BYTES + captured
            if not 0 < captured <= limit or captured > wire or end > size:
                self.is_over = True
                break
            if self.first_ns is None:
                self.first_ns = seconds * 1_000_000_000 + fraction * self._scale
            at = end
            count += 1
        self._at = at
        return count

    def _walk_pcapng(self, goal: int, most: int | None) -> int:
        unpack, last_length = Struct(self._order + "II").unpack_from, Struct(self._order + "I").unpack
        at, size, limit = self._at, self._size, self._limits.block_bytes
        window, begin, last = b"", at, at - 1
        count = 0
        while at < goal and count != most:
            if at > last:
                window, begin = self._window(at), at
                last = begin + len(window) - 8
                if last < at:
                    self.is_over = True
                    break
            kind, length = unpack(window, at - begin)
            end = at + length
            if kind not in _SHORTEST or not _SHORTEST[kind] <= length <= limit or length & 3 or end > size:
                self.is_over = True
                break
            behind = window[end - 4 - begin : end - begin]
            if len(behind) < 4:
                behind = self._window(end - 4)[:4]
            if len(behind) < 4 or last_length(behind)[0] != length:
                self.is_over = True
                break
            at = end
            count += 1
        self._at = at
        return count

    def _window(self, at: int) -> bytes:
        """Bytes of the file; none where it cannot be read any more."""
        try:
            return os.pread(self._file, _WINDOW_BYTES, at)
        except OSError:
            return b""


class PartPackets(Iterator[Item]):
    """The packets of a part, with the numbers that they have in the whole file."""

    def __init__(self, part: FilePart, limits: Limits = DEFAULTS) -> None:
        """:raises CaptureError: the file cannot be read."""
        self.interfaces: list[Interface] = []
        """By the index that packets have."""
        self._part = part
        try:
            self._file = open(part.path, "rb")  # noqa: SIM115 - close() does it
            head = self._file.read(_PREAMBLE_BYTES)
        except OSError as error:
            raise CaptureError(f"{part.path}: cannot be read: {error.strerror or error}") from error
        self._reader: Reader
        if head[:4] == _PCAPNG_MAGIC:
            self._reader = pcapng.PcapngReader(head, limits, self.interfaces)
            self._reader.feed(head[: _preamble_bytes(head, limits)])
        else:
            self._reader = pcap.PcapReader(head, limits, self.interfaces)
        self._reader.goes_on(part.start, part.before)
        self._items = (item for items in self.blocks() for item in items)

    def __next__(self) -> Item:
        return next(self._items)

    def blocks(self) -> Iterator[list[Item]]:
        """The same items as iterating gives, in lists of those that came together."""
        at, end = self._part.start, self._part.end
        self._file.seek(at)
        try:
            while not self._reader.stopped:
                data = self._file.read(PIECE_BYTES if end is None else min(PIECE_BYTES, end - at))
                if not data:
                    break
                at += len(data)
                yield self._reader.feed(data)
        finally:
            self.close()
        yield self._reader.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _preamble_bytes(head: bytes, limits: Limits) -> int:
    """What stands before the first packet.

    :raises CaptureError: it is not what is cut.
    """
    if head[:4] in pcap.MAGICS:
        order, _, header_bytes = pcap.MAGICS[head[:4]]
        if header_bytes != _HEADER_BYTES or len(head) < pcap.HEADER_BYTES:
            raise CaptureError("a pcap file of another form")
        if Struct(order + "HH").unpack_from(head, 4) != (2, pcap.NEWEST_MINOR):
            raise CaptureError("a pcap file of another version")
        return pcap.HEADER_BYTES
    if head[:4] != _PCAPNG_MAGIC or len(head) < pcapng.HEADER_BYTES:
        raise CaptureError("not a capture file that is cut")
    order = "<" if head[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
    unpack = Struct(order + "II").unpack_from
    at = 0
    while at + 8 <= len(head):
        kind, size = unpack(head, at)
        if kind in _SHORTEST:
            items = pcapng.PcapngReader(head, limits).feed(head[:at])
            if not items:
                return at
            break  # secrets, or something wrong
        if size < 12 or size & 3:
            break
        at += size
    raise CaptureError("a pcapng file that does not begin with its interfaces")
