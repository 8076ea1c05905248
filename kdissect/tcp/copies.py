"""Is a packet that brings nothing new a retransmission, or was it captured at another interface too?

A copy has the identity of one of the ``RECENT`` segments before it, and comes within ``COPY_NS`` of new
bytes. A sender without IP identification and TCP timestamps may send again at once. Then the two cannot be
told apart, and the segment is taken for a copy. Only counts depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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

    def __init__(self, identities: Sequence[int] = (), oldest: int = 0, latest_ns: int = 0) -> None:
        """
        :param identities: those of the segments that it remembers, by place; at most :data:`RECENT` count.
        :param oldest: the place of the oldest.
        :param latest_ns: the time of the newest.
        """
        self._identities = [0] * 16
        """As many as :data:`RECENT` says. Compiled they are numbers of C: objects would take five times as
        much, in every connection."""
        for at, identity in enumerate(identities[:RECENT]):
            self._identities[at] = identity
        self._oldest = oldest % RECENT
        """The place of the oldest, which makes room for the next."""
        self._latest_ns = latest_ns

    def __reduce__(self) -> tuple[type[Copies], tuple[Any, ...]]:
        return Copies, self._parts()

    def _parts(self) -> tuple[Sequence[int], int, int]:
        size = _RECENT
        while size and not self._identities[size - 1]:
            size -= 1  # most connections are short, and empty places take long to hand over
        return [self._identities[at] for at in range(size)], self._oldest, self._latest_ns

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
