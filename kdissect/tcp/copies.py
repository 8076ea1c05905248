"""Is a packet that brings nothing new a retransmission, or was it captured at another interface too?

A copy has the identity of one of the ``RECENT`` segments before it, and comes within ``COPY_NS`` of new
bytes. A sender without IP identification and TCP timestamps may send again at once. Then the two cannot be
told apart, and the segment is taken for a copy. Only counts depend on it.
"""

from __future__ import annotations

RECENT = 16
"""Segments with bytes whose identity is remembered: more than a card hands over at a time between two
interfaces of a host."""
_RECENT = RECENT
COPY_NS = 10_000_000
"""Longer than a packet takes through a host, much shorter than the 200 ms after which Linux sends again."""
_COPY_NS = COPY_NS


class Copies:
    """Remembers the segments of one direction that brought new bytes."""

    __slots__ = ("_identities", "_latest_ns", "_oldest")

    def __init__(self) -> None:
        self._identities = [0] * 16
        """As many as :data:`RECENT` says. Compiled they are numbers of C: objects would take five times as
        much, in every connection."""
        self._oldest = 0
        """The place of the oldest, which makes room for the next."""
        self._latest_ns = 0

    def remember(self, identity: int, timestamp_ns: int) -> None:
        """This one brought new bytes."""
        self._identities[self._oldest] = identity
        self._oldest = (self._oldest + 1) % _RECENT
        self._latest_ns = timestamp_ns

    def has(self, identity: int, timestamp_ns: int) -> bool:
        """Whether this is a copy of one of them."""
        if identity == 0 or timestamp_ns - self._latest_ns > _COPY_NS:
            return False
        at = 0
        while at < _RECENT and self._identities[at] != identity:
            at += 1
        return at < _RECENT
