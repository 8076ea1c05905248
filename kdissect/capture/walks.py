"""Walks over packets by the length fields before them, without making packet objects.

Both walks take a window of a file and begin at ``at``, where a record or block begins. They end

* before a packet that begins at or after ``goal``,
* after ``most`` packets,
* before a packet that the window does not contain enough of,
* before anything but an ordinary packet.

They return their end, the number of packets passed, and whether the item at the end is not an ordinary
packet. Positions count from the beginning of the window.

:param size: the end of the file.
"""

from __future__ import annotations

HEADER_BYTES = 16
"""The bytes of a record's header in a pcap file."""
ENHANCED_BYTES, SIMPLE_BYTES = 32, 16
"""The fewest bytes of a pcapng block with a packet."""
_HEADER_BYTES, _ENHANCED_BYTES, _SIMPLE_BYTES = HEADER_BYTES, ENHANCED_BYTES, SIMPLE_BYTES
"""The same as C numbers when compiled, which other modules cannot import."""
_SIMPLE, _ENHANCED = 3, 6
"""The types of blocks; :mod:`kdissect.capture.resync` has their names."""

Walked = tuple[int, int, bool]
"""The end, the number of packets, and whether another item is there."""


def walk_pcap(window: bytes, at: int, goal: int, size: int, is_little: bool, limit: int, most: int) -> Walked:
    """Walk over records of a pcap file.

    :param limit: the most bytes of a packet.
    """
    raw, last, count = window, len(window) - _HEADER_BYTES, 0
    while at < goal and count < most and at <= last:
        captured, wire = _number(raw, at + 8, is_little), _number(raw, at + 12, is_little)
        end = at + _HEADER_BYTES + captured
        if not 0 < captured <= limit or captured > wire or end > size:
            return at, count, True
        at = end
        count += 1
    return at, count, False


def walk_pcapng(
    window: bytes, at: int, goal: int, size: int, is_little: bool, limit: int, most: int
) -> Walked:
    """Walk over blocks of a pcapng file that have packets. It also ends before a block whose end is not in
    the window.

    :param limit: the most bytes of a block.
    """
    raw, last, count = window, len(window), 0
    while at < goal and count < most and at + 8 <= last:
        kind, length = _number(raw, at, is_little), _number(raw, at + 4, is_little)
        end = at + length
        if kind == _ENHANCED:
            least = _ENHANCED_BYTES
        elif kind == _SIMPLE:
            least = _SIMPLE_BYTES
        else:
            return at, count, True
        if length < least or length > limit or length & 3 or end > size:
            return at, count, True
        if end > last:
            break
        if _number(raw, end - 4, is_little) != length:
            return at, count, True
        at = end
        count += 1
    return at, count, False


def _number(raw: bytes, at: int, is_little: bool) -> int:
    """A number of 32 bits."""
    if is_little:
        high = raw[at + 3]  # a separate number: compiled, shifting a byte would lose bits
        return high << 24 | raw[at + 2] << 16 | raw[at + 1] << 8 | raw[at]
    high = raw[at]
    return high << 24 | raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3]
