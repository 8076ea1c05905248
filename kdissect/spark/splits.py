"""One large capture file → parts that can be read each alone.

To find where a part may begin, *all* places that could be record headers are followed until one chain is left
(RAPCAP, IM 2017). A window as long as the longest record has at least one true header, and true chains never
break. So the chain that is left is true, if the file is well formed. Whether it is well formed shows
afterwards. Every part must end exactly where the next begins, without a fault and without another file
header, section or interface. The first part begins at the file's beginning, so all of the file is proven
then. A file that is not proven is read as one part.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple

from kdissect.capture import pcap, pcapng
from kdissect.capture.files import read_packets
from kdissect.capture.reader import Item, Reader
from kdissect.limits import Limits
from kdissect.spark.storage import is_remote, open_file

SPLIT_BYTES = 256 << 20
_SEARCH_BYTES = 64 << 20
"""A beginning that is not found in so many bytes is given up: the part before goes on."""
_PIECE_BYTES = 1 << 20
_PREAMBLE_BYTES = 1 << 20
"""In so many bytes a pcapng file describes its interfaces, or it is not split."""
_PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
_PACKET_BLOCKS = frozenset((2, 3, 6))
_MORE_IN_BLOCK = 1 << 16
"""What a block with a packet has beside it, at most, as far as splitting goes."""


class Part(NamedTuple):
    """Bytes of a file."""

    path: str
    start: int = 0
    end: int | None = None
    """None: the whole file, however it is stored."""


class PartReader(Iterator[Item]):
    """Iterates over what a part holds; then tells whether it fits to its neighbours."""

    def __init__(self, part: Part, limits: Limits) -> None:
        self.is_sound = True
        """Nothing but whole packets was in it."""
        self._part = part
        self._limits = limits
        self._items = self._read()

    def __next__(self) -> Item:
        return next(self._items)

    def _read(self) -> Iterator[Item]:
        path, at, end = self._part
        if end is None:
            yield from read_packets([path], self._limits, open_file)
            return
        with open(path, "rb") as file:
            reader, preamble = _reader(file.read(_PREAMBLE_BYTES), self._limits)
            reader.feed(preamble)
            interfaces = len(reader.interfaces)
            at = max(at, len(preamble) or pcap.HEADER_BYTES)
            file.seek(at)
            while at < end and (piece := file.read(min(_PIECE_BYTES, end - at))):
                at += len(piece)
                yield from reader.feed(piece)
        self.is_sound = (
            at == end
            and not reader.waiting_bytes
            and not reader.stopped
            and len(reader.interfaces) == interfaces
        )


def parts_of(path: str, size: int, limits: Limits, split_bytes: int = SPLIT_BYTES) -> list[Part]:
    """A file in parts of about so many bytes; as one where it is small, compressed, elsewhere, or where no
    beginning is certain."""
    whole = [Part(path)]
    if size < 2 * split_bytes or is_remote(path):
        return whole
    try:
        with open(path, "rb") as file:
            head = file.read(_PREAMBLE_BYTES)
            follow = _chain(head, limits)
            if follow is None:
                return whole
            starts = [0]
            for nominal in range(split_bytes, size - split_bytes // 2, split_bytes):
                file.seek(nominal)
                found = follow(file.read(min(_SEARCH_BYTES, size - nominal)), nominal)
                if found is not None and starts[-1] < found < size:
                    starts.append(found)
    except OSError:
        return whole
    return [Part(path, *ends) for ends in zip(starts, [*starts[1:], size], strict=True)]


Follow = Callable[[bytes, int], int | None]
"""Bytes from a place on, and the place → where a record begins for certain."""


def _chain(head: bytes, limits: Limits) -> Follow | None:
    """What finds beginnings in a file of this kind; None if there is nothing that does."""
    if head[:4] in pcap.MAGICS and pcap.MAGICS[head[:4]][2] == 16:
        order, scale, _ = pcap.MAGICS[head[:4]]
        if Struct(order + "HH").unpack_from(head, 4) != (2, pcap.NEWEST_MINOR):
            return None  # older versions have the lengths the other way round
        record, longest = _record(order, scale, limits), limits.packet_bytes + 16
        return lambda data, at: _first_certain(data, at, 1, longest, record)
    if head[:4] == _PCAPNG_MAGIC:
        if not _preamble(head):
            return None
        order = "<" if head[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
        longest_block = limits.packet_bytes + _MORE_IN_BLOCK
        block = _block(order, longest_block)
        return lambda data, at: _first_certain(data, at, 4, longest_block, block)
    return None


def _record(order: str, scale: int, limits: Limits) -> Callable[[bytes, int], int]:
    """The length of the pcap record at an offset; 0 if there can be none, -1 if it is not all there."""
    unpack = Struct(order + "IIII").unpack_from
    most, fractions = limits.packet_bytes, 1_000_000_000 // scale

    def length(data: bytes, at: int) -> int:
        if at + 16 > len(data):
            return -1
        _, fraction, captured, wire = unpack(data, at)
        if not 0 < captured <= most or captured > wire or fraction >= fractions:
            return 0
        return 16 + captured if at + 16 + captured <= len(data) else -1

    return length


def _block(order: str, longest: int) -> Callable[[bytes, int], int]:
    """The same of a pcapng block, which says its length at both ends."""
    unpack, last = Struct(order + "II").unpack_from, Struct(order + "I").unpack_from

    def length(data: bytes, at: int) -> int:
        if at + 8 > len(data):
            return -1
        _, size = unpack(data, at)
        if size < 12 or size & 3 or size > longest:
            return 0
        if at + size > len(data):
            return -1
        return size if last(data, at + size - 4)[0] == size else 0

    return length


def _first_certain(
    data: bytes, base: int, step: int, window: int, length: Callable[[bytes, int], int]
) -> int | None:
    """Follow every chain that begins in the window; the head of the last one that is left is certain."""
    heads = [at for at in range(-base % step, min(window, len(data)), step) if length(data, at)]
    waiting = set(heads)
    heapq.heapify(heads)
    while heads:
        at = heapq.heappop(heads)
        waiting.remove(at)  # no chain comes back to it
        size = length(data, at)
        if size < 0:
            return None  # nothing is certain in these bytes
        if not size:
            continue
        if not heads:
            return base + at
        if at + size not in waiting:
            waiting.add(at + size)
            heapq.heappush(heads, at + size)
    return None


def _reader(head: bytes, limits: Limits) -> tuple[Reader, bytes]:
    """A reader, and what it must be fed before records from anywhere."""
    if head[:4] == _PCAPNG_MAGIC:
        return pcapng.PcapngReader(head, limits), _preamble(head)
    return pcap.PcapReader(head, limits), b""


def _preamble(head: bytes) -> bytes:
    """The blocks of a pcapng file before its first packet; nothing where that does not come soon."""
    order = "<" if head[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
    unpack = Struct(order + "II").unpack_from
    at = 0
    while at + 8 <= len(head):
        kind, size = unpack(head, at)
        if kind in _PACKET_BLOCKS:
            return head[:at]
        if size < 12 or size & 3:
            break
        at += size
    return b""
