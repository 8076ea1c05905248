"""The end of a capture file → the time of its last packet, without reading the rest.

A pcapng block has its length at its end too, so blocks are found backwards. In a pcap file, records are
followed from each position of the tail until they lead exactly to the end of the file.
"""

from __future__ import annotations

import os
from struct import Struct

from kdissect.capture import pcap, pcapng
from kdissect.capture.files import PCAPNG_MAGIC
from kdissect.capture.resync import section_order
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError, Packet

TAIL_BYTES = 1 << 18
_LEAST_RECORDS = 3
"""If this number of consecutive records leads to the end of the file, it is no coincidence."""
_PACKET_BLOCKS = frozenset((2, 3, 6))


def last_time(path: str, limits: Limits = DEFAULTS) -> int | None:
    """The time of the last packet, ns since the epoch. None if the tail does not show it: the file is shorter
    than a tail, compressed, damaged, or cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(TAIL_BYTES)
            size = os.fstat(file.fileno()).st_size
            if size < 2 * TAIL_BYTES:
                return None
            file.seek(size - TAIL_BYTES)
            tail = file.read(TAIL_BYTES)
    except OSError:
        return None
    try:
        if head[:4] == PCAPNG_MAGIC:
            return _last_in_pcapng(head, tail, limits)
        if head[:4] in pcap.MAGICS and pcap.MAGICS[head[:4]][2] == 16:
            return _last_in_pcap(head, tail, limits)
    except CaptureError:
        pass
    return None


def _last_in_pcapng(head: bytes, tail: bytes, limits: Limits) -> int | None:
    preamble, order = _preamble(head), section_order(head, 0)
    if not preamble or order is None:
        return None
    word = Struct(order + "I").unpack_from
    start = len(tail)
    while start >= 12:
        (size,) = word(tail, start - 4)
        if size < 12 or size & 3 or size > start or word(tail, start - size + 4)[0] != size:
            break
        start -= size
    if start == len(tail):
        return None
    reader = pcapng.PcapngReader(head, limits)
    items = [*reader.feed(preamble), *reader.feed(tail[start:])]
    return max((item.timestamp_ns for item in items if isinstance(item, Packet)), default=None)


def _preamble(head: bytes) -> bytes:
    """The blocks of a pcapng file before its first packet; empty if that packet does not come soon."""
    order = section_order(head, 0)
    unpack = Struct((order or "<") + "II").unpack_from
    at = 0
    while at + 8 <= len(head):
        kind, size = unpack(head, at)
        if kind in _PACKET_BLOCKS:
            return head[:at]
        if size < 12 or size & 3:
            break
        at += size
    return b""


def _last_in_pcap(head: bytes, tail: bytes, limits: Limits) -> int | None:
    order, scale, _ = pcap.MAGICS[head[:4]]
    unpack = Struct(order + "IIII").unpack_from
    for start in range(len(tail) - 16):
        at, count, last = start, 0, 0
        while at + 16 <= len(tail):
            seconds, fraction, captured, wire = unpack(tail, at)
            if not 0 < captured <= limits.packet_bytes or captured > wire or fraction * scale >= 10**9:
                break
            last = max(last, seconds * 10**9 + fraction * scale)
            count += 1
            at += 16 + captured
        if at == len(tail) and count >= _LEAST_RECORDS:
            return last
    return None
