"""Walks over packets by the lengths that stand before them, without making any.

Both walks take a window of a file and begin at ``at``, where something begins. They end

* before a packet that begins at ``goal`` or behind it,
* after ``most`` packets,
* before what the window does not tell,
* before anything but an ordinary packet.

They give where they ended, how many packets they passed, and whether what stands there is no ordinary packet.
Places count from the window's begin.

:param size: where the file ends.
"""

from __future__ import annotations

HEADER_BYTES = 16
"""Of a packet in a pcap file."""
ENHANCED_BYTES, SIMPLE_BYTES = 32, 16
"""The least that a pcapng block of a packet has."""
_HEADER_BYTES, _ENHANCED_BYTES, _SIMPLE_BYTES = HEADER_BYTES, ENHANCED_BYTES, SIMPLE_BYTES
"""The same, compiled numbers of C, which nobody else can import."""
_SIMPLE, _ENHANCED = 3, 6
"""Kinds of blocks; :mod:`kdissect.capture.resync` has their names."""

Walked = tuple[int, int, bool]
"""Where, how many packets, whether something else stands there."""


def walk_pcap(window: bytes, at: int, goal: int, size: int, is_little: bool, limit: int, most: int) -> Walked:
    """Walk over records of a pcap file.

    :param limit: bytes that a packet may have.
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
    """Walk over blocks of a pcapng file that hold packets. It also ends before a block whose end is not in
    the window.

    :param limit: bytes that a block may have.
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
        high = raw[at + 3]  # a number of its own: compiled, a byte would have no room to the left
        return high << 24 | raw[at + 2] << 16 | raw[at + 1] << 8 | raw[at]
    high = raw[at]
    return high << 24 | raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3]
