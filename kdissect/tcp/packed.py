"""Numbers of 64 bits ↔ bytes, for values that are pickled often. To pickle their numbers one by one takes
many times as long."""

from __future__ import annotations

BYTES = 8
"""The bytes of a number, lowest first."""


def put(raw: bytearray, at: int, value: int) -> None:
    """Write a number."""
    raw[at] = value & 0xFF
    raw[at + 1] = value >> 8 & 0xFF
    raw[at + 2] = value >> 16 & 0xFF
    raw[at + 3] = value >> 24 & 0xFF
    raw[at + 4] = value >> 32 & 0xFF
    raw[at + 5] = value >> 40 & 0xFF
    raw[at + 6] = value >> 48 & 0xFF
    raw[at + 7] = value >> 56 & 0xFF


def number(raw: bytes | bytearray, at: int) -> int:
    """Read a number that :func:`put` wrote."""
    high: int = raw[at + 7]
    if high > 0x7F:
        high -= 0x100
    high = high << 8 | raw[at + 6]
    high = high << 8 | raw[at + 5]
    high = high << 8 | raw[at + 4]
    high = high << 8 | raw[at + 3]
    high = high << 8 | raw[at + 2]
    high = high << 8 | raw[at + 1]
    return high << 8 | raw[at]
