"""Whether a packet without new bytes is a retransmission, or a copy captured at another interface.

A copy has the identity of one of the ``RECENT`` segments before it, and comes within ``COPY_NS`` of new
bytes. A sender without IP identification and TCP timestamps may retransmit at once. Then the two are
indistinguishable, and the segment counts as a copy. Only counts depend on it.

Most senders count their packets in the IP identification, so a retransmission has a later number than all
packets before it. A packet with an earlier number is a copy, or came out of order.
"""

from __future__ import annotations

from collections.abc import Callable

from kdissect.tcp.packed import BYTES, number, put

RECENT = 16
"""The number of segments with bytes whose identity is remembered. A network card hands over fewer at a time
between two interfaces of a host."""
_RECENT = RECENT
_NEAR = 2_048
"""How far apart the numbers of the remembered packets may be, if their sender counts its packets."""
_FEWEST = 4
"""How many packets must show that it counts them."""
_FARTHEST = 4_096
"""How many packets before the newest a late one may have been sent."""
COPY_NS = 10_000_000
"""Longer than a packet takes through a host, and much shorter than the 200 ms after which Linux
retransmits."""
_COPY_NS = COPY_NS
_BYTES = BYTES
_HEAD_BYTES = 2 * BYTES
"""The packed bytes before the identities."""


class Copies:
    """Remembers the segments of one direction that brought new bytes."""

    __slots__ = ("_identities", "_latest_ns", "_oldest")

    def __init__(self) -> None:
        self._identities = [0] * 16
        """:data:`RECENT` identities. Compiled they are C numbers: objects would take five times the memory in
        every connection."""
        self._oldest = 0
        """The place of the oldest, which the next identity replaces."""
        self._latest_ns = 0
        """The time of the newest."""

    def __reduce__(self) -> tuple[Callable[[bytearray], Copies], tuple[bytearray]]:
        return copies_of, (self.packed(),)

    def packed(self) -> bytearray:
        """All its values, for :func:`copies_of`."""
        size = _RECENT
        while size and not self._identities[size - 1]:
            size -= 1  # most connections are short
        numbers = bytearray(_HEAD_BYTES + _BYTES * size)
        raw, at = numbers, 0
        put(raw, 0, self._oldest)
        put(raw, 8, self._latest_ns)
        while at < size:
            put(raw, _HEAD_BYTES + _BYTES * at, self._identities[at])
            at += 1
        return numbers

    def remember(self, identity: int, timestamp_ns: int) -> None:
        """Remember a segment that brought new bytes."""
        self._identities[self._oldest] = identity
        self._oldest = (self._oldest + 1) % _RECENT
        self._latest_ns = timestamp_ns

    def has(self, identity: int, timestamp_ns: int) -> bool:
        """Whether a segment is a copy of a remembered one."""
        if identity == 0 or timestamp_ns - self._latest_ns > _COPY_NS:
            return False
        at = 0
        while at < _RECENT and self._identities[at] != identity:
            at += 1
        return at < _RECENT or self._is_behind(identity >> 16)

    def _is_behind(self, sent: int) -> bool:
        """Whether a packet with this IP identification was sent before the newest. The identification is
        above the lowest 16 bits of an identity, and 0 without any."""
        if sent == 0:
            return False
        newest = self._identities[(self._oldest + _RECENT - 1) % _RECENT] >> 16
        at = seen = latest = 0
        while at < _RECENT:
            if self._identities[at]:
                ahead = (((self._identities[at] >> 16) - newest + 0x8000) & 0xFFFF) - 0x8000
                if ahead < -_NEAR or ahead > _NEAR:
                    return False
                latest = max(latest, ahead)
                seen += 1
            at += 1
        behind = latest - (((sent - newest + 0x8000) & 0xFFFF) - 0x8000)
        return seen >= _FEWEST and 0 < behind <= _FARTHEST


def copies_of(numbers: bytearray) -> Copies:
    """The object with these :meth:`~Copies.packed` values."""
    made = Copies()
    raw, size, at = numbers, (len(numbers) - _HEAD_BYTES) // _BYTES, 0
    made._oldest, made._latest_ns = number(raw, 0), number(raw, 8)
    while at < size:
        made._identities[at] = number(raw, _HEAD_BYTES + _BYTES * at)
        at += 1
    return made
