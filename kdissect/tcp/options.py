"""TCP options: those of a SYN, and the blocks of a SACK (RFC 9293, 7323, 2018, 2883)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

_END, _NOTHING, _MSS, _SCALE, _SACK_PERMITTED, _SACK, _TIMESTAMPS = 0, 1, 2, 3, 4, 5, 8
MOST_SCALE = 14
"""A larger scale counts as this (RFC 7323, 2.3)."""


class Offered(NamedTuple):
    """The options that one end offers in its SYN."""

    mss: int | None = None
    scale: int | None = None
    """The number of bits by which its windows are shifted, if the other end offers a scale too; None
    without."""
    sack: bool = False
    timestamps: bool = False


def _options_in(options: bytes) -> list[tuple[int, bytes]]:
    """The kind and the value of each option that is whole."""
    found: list[tuple[int, bytes]] = []
    at, end = 0, len(options)
    while at < end and (kind := options[at]) != _END:
        if kind == _NOTHING:
            at += 1
            continue
        until = at + options[at + 1] if at + 1 < end else 0
        if not at + 2 <= until <= end:
            break
        found.append((kind, options[at + 2 : until]))
        at = until
    return found


_LINUX = bytes((_SACK_PERMITTED, 2, _TIMESTAMPS, 10))
"""The options after the first one, an MSS of 4 bytes, as Linux and Android write them. 8 bytes of clocks
follow."""
_CLOCKS = bytes(8)


def offered(options: bytes) -> Offered:
    """The options of a SYN."""
    if options[:2] == b"\2\4" and options[4:8] == _LINUX and len(options) >= 16:
        options = options[:8] + _CLOCKS + options[16:]  # the clocks differ each time, and do not count
    return _offered(options)


@lru_cache(maxsize=1_024)
def _offered(options: bytes) -> Offered:
    """Clients open many connections with the same options, so each kind is read once."""
    mss = scale = None
    sack = timestamps = False
    for kind, value in _options_in(options):
        if kind == _MSS and len(value) == 2:
            mss = int.from_bytes(value, "big")
        elif kind == _SCALE and len(value) == 1:
            scale = min(value[0], MOST_SCALE)
        elif kind == _SACK_PERMITTED:
            sack = True
        elif kind == _TIMESTAMPS:
            timestamps = True
    return Offered(mss, scale, sack, timestamps)


def first_block(options: bytes) -> tuple[int, int] | None:
    """The sequence numbers of the first block of a SACK, which has the bytes received last; None without a
    SACK."""
    if _SACK not in options:
        return None
    for kind, value in _options_in(options):
        if kind == _SACK and len(value) >= 8:
            return int.from_bytes(value[:4], "big"), int.from_bytes(value[4:8], "big")
    return None
