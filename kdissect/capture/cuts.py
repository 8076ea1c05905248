"""A capture file ─► parts, each a run of whole packets that can be read alone.

The file is walked from its beginning, packet by packet, by the length fields before the packets. So each cut
is a true boundary, and the number of the first packet after it is known. Nothing is guessed.

Only the usual form of file is cut: one uncompressed pcap (version 2.4) or pcapng file on this machine. The
walk ends before anything but an ordinary packet: damage, another header, an interface, secrets, statistics.
From there on the file is one part, and the reader handles it as usual. The file is read, not mapped into
memory: if another program truncates it meanwhile, the walk ends.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from struct import Struct
from typing import NamedTuple, Protocol

from kdissect.capture import pcap, pcapng
from kdissect.capture.reader import PACKET_OVERHEAD, Interface, Item, Reader, one_by_one
from kdissect.capture.resync import ENHANCED_PACKET, SIMPLE_PACKET
from kdissect.capture.runs import PacketRun
from kdissect.capture.walks import ENHANCED_BYTES, HEADER_BYTES, SIMPLE_BYTES, walk_pcap, walk_pcapng
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError, Packet

PIECE_BYTES = 1 << 18
_WINDOW_BYTES = 1 << 18
"""The number of bytes that the walk reads at a time."""
_PREAMBLE_BYTES = 1 << 20
"""A pcapng file must describe its interfaces in this number of bytes; otherwise it is not cut."""
_PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
_SHORTEST = {ENHANCED_PACKET: ENHANCED_BYTES, SIMPLE_PACKET: SIMPLE_BYTES}


class FilePart(NamedTuple):
    """A part of a file that contains whole packets."""

    path: str
    start: int
    end: int | None
    """None: up to the end of the file, whatever its contents."""
    before: int
    """The number of packets before it."""
    packets: int = 0
    """The number of its packets; 0 if not counted."""
    is_plain: bool = True
    """As in :class:`CapturePart`."""

    def in_runs(self, limits: Limits) -> Iterator[Sequence[Item | PacketRun]]:
        """As in :class:`CapturePart`."""
        with closing(PartPackets(self, limits)) as packets:
            yield from packets.in_runs()


class Cuts:
    """Walks a file and cuts it.

    :raises CaptureError: it cannot be cut, and has to be read as one part.
    """

    def __init__(self, path: str, limits: Limits = DEFAULTS) -> None:
        self._path = path
        self._limits = limits
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
            self._is_little = head[8:12] == b"\x4d\x3c\x2b\x1a"
        else:
            order, _, _ = pcap.MAGICS[head[:4]]
            self._is_little = order == "<"
        self._is_pcapng = head[:4] == _PCAPNG_MAGIC
        self._packets = 0
        self.is_over = False
        """Whether the walk has reached the end, or something other than packets."""

    @property
    def left(self) -> int:
        """The number of bytes not cut yet."""
        return self._size - self._at

    def next(self, size: int, packets: int | None = None) -> FilePart | None:
        """The next part, of about ``size`` bytes; None if the walk is over.

        :param packets: the largest number of packets in it.
        """
        start, before = self._at, self._packets
        goal = min(start + size, self._size)
        count = 0 if self.is_over else self._walk(goal, sys.maxsize if packets is None else packets)
        if not count:
            return None
        self._packets += count
        return FilePart(self._path, start, self._at, before, count)

    def rest(self) -> FilePart:
        """The remaining part."""
        return FilePart(self._path, self._at, None, self._packets)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _walk(self, goal: int, most: int) -> int:
        """Walk up to a position, over at most ``most`` packets. Return the number of packets."""
        walk = walk_pcapng if self._is_pcapng else walk_pcap
        limit = self._limits.block_bytes if self._is_pcapng else self._limits.packet_bytes
        count, wanted = 0, _WINDOW_BYTES
        while self._at < goal and count < most:
            window = self._window(wanted)
            begin, left = self._at, most - count
            at, passed, self.is_over = walk(
                window, 0, goal - begin, self._size - begin, self._is_little, limit, left
            )
            self._at += at
            count += passed
            if self.is_over:
                break
            if not passed:
                # A block is longer than the window, or the file was truncated meanwhile.
                self.is_over = wanted > _WINDOW_BYTES or len(window) < wanted
                wanted = limit
                if self.is_over:
                    break
            else:
                wanted = _WINDOW_BYTES
        return count

    def _window(self, size: int) -> bytes:
        """The file's bytes from the walk's position; empty if it cannot be read any more."""
        try:
            return os.pread(self._file, size, self._at)
        except OSError:
            return b""


class Cutter(Protocol):
    """Cuts the input into parts."""

    @property
    def left(self) -> int:
        """About the number of bytes not cut yet."""

    def next(self, size: int) -> CapturePart | None:
        """The next part, of about ``size`` bytes; None if there is no other."""


class CapturePart(Protocol):
    """A run of packets."""

    @property
    def is_plain(self) -> bool:
        """Whether it has only packets."""

    def in_runs(self, limits: Limits) -> Iterator[Sequence[Item | PacketRun]]:
        """Its packets and other items, in lists. Consecutive ordinary packets may come as a run. Each call
        gives all of them again."""


class ReadPart(NamedTuple):
    """A part that was read and is in memory."""

    items: Sequence[Item | PacketRun]
    is_plain: bool

    def in_runs(self, limits: Limits) -> Iterator[Sequence[Item | PacketRun]]:
        """As in :class:`CapturePart`."""
        yield [each.copy() if isinstance(each, PacketRun) else each for each in self.items]


class ReadCuts:
    """Cuts packets that were read: several files in one order, compressed files, and the part of a file after
    its ordinary packets. An item that is no packet is a separate part.

    :param blocks: the items read, in lists.
    :param size: the size of the files.
    """

    def __init__(self, blocks: Iterator[Sequence[Item | PacketRun]], size: int) -> None:
        self._blocks = blocks
        self._ahead: Sequence[Item | PacketRun] = ()
        """Items read that are in no part yet."""
        self._size = size

    @property
    def left(self) -> int:
        """As in :class:`Cutter`; unknown for compressed files."""
        return max(0, self._size)

    def next(self, size: int) -> ReadPart | None:
        """As in :class:`Cutter`."""
        gathered: list[Item | PacketRun] = []
        there = 0
        while there < size:
            items: Sequence[Item | PacketRun] = self._ahead
            if not items:
                block = next(self._blocks, None)
                if block is None:
                    break
                items = block
            self._ahead = ()
            end = len(items)
            for at, item in enumerate(items):
                if isinstance(item, PacketRun):
                    there += item.size
                elif isinstance(item, Packet):
                    there += len(item.data) + PACKET_OVERHEAD
                else:
                    end = at
                    break
                if there >= size:
                    end = at + 1
                    break
            gathered += items[:end]
            self._ahead = items[end:]
            if self._ahead:
                break
        self._size -= there
        if gathered:
            return ReadPart(gathered, True)
        if not self._ahead:
            return None
        other, self._ahead = self._ahead[0], self._ahead[1:]
        return ReadPart([other], False)

    def rest(self) -> Sequence[Item | PacketRun]:
        """The items read that are in no part yet."""
        items, self._ahead = self._ahead, ()
        return items


class PartPackets(Iterator[Item]):
    """The packets of a part, with their numbers in the whole file."""

    def __init__(self, part: FilePart, limits: Limits = DEFAULTS) -> None:
        """:raises CaptureError: the file cannot be read."""
        self.interfaces: list[Interface] = []
        """The interfaces, by the index that packets have."""
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
        self._items = (item for items in self.in_runs() for item in one_by_one(items))

    def __next__(self) -> Item:
        return next(self._items)

    def in_runs(self) -> Iterator[list[Item | PacketRun]]:
        """The same items as iterating gives, in lists of items that were read together. Consecutive ordinary
        packets may come as a run."""
        at, end = self._part.start, self._part.end
        self._file.seek(at)
        try:
            while not self._reader.stopped:
                data = self._file.read(PIECE_BYTES if end is None else min(PIECE_BYTES, end - at))
                if not data:
                    break
                at += len(data)
                yield self._reader.feed_in_runs(data)
        finally:
            self.close()
        yield [*self._reader.close()]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _preamble_bytes(head: bytes, limits: Limits) -> int:
    """The number of bytes before the first packet.

    :raises CaptureError: the file has not the form that can be cut.
    """
    if head[:4] in pcap.MAGICS:
        order, _, header_bytes = pcap.MAGICS[head[:4]]
        if header_bytes != HEADER_BYTES or len(head) < pcap.HEADER_BYTES:
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
            break  # secrets, or damage
        if size < 12 or size & 3:
            break
        at += size
    raise CaptureError("a pcapng file that does not begin with its interfaces")
