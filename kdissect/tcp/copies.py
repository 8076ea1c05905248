"""Whether a packet without new bytes is a retransmission, or a copy captured at another interface.

A copy has the identity of one of the ``RECENT`` segments before it, and comes within ``COPY_NS`` of new
bytes. A sender without IP identification and TCP timestamps may retransmit at once. Then the two are
indistinguishable, and the segment counts as a copy. Only counts depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

RECENT = 16
"""The number of segments with bytes whose identity is remembered. A network card hands over fewer at a time
between two interfaces of a host."""
_RECENT = RECENT
COPY_NS = 10_000_000
"""Longer than a packet takes through a host, and much shorter than the 200 ms after which Linux
retransmits."""
_COPY_NS = COPY_NS


class Copies:
    """Remembers the segments of one direction that brought new bytes."""

    __slots__ = ("_identities", "_latest_ns", "_oldest")

    def __init__(self, identities: Sequence[int] = (), oldest: int = 0, latest_ns: int = 0) -> None:
        """:param identities: the identities of the remembered segments, by place; at most :data:`RECENT`
            count.
        :param oldest: the place of the oldest.
        :param latest_ns: the time of the newest.
        """
        self._identities = [0] * 16
        """:data:`RECENT` identities. Compiled they are C numbers: objects would take five times the memory in
        every connection."""
        for at, identity in enumerate(identities[:RECENT]):
            self._identities[at] = identity
        self._oldest = oldest % RECENT
        """The place of the oldest, which the next identity replaces."""
        self._latest_ns = latest_ns

    def __reduce__(self) -> tuple[type[Copies], tuple[Any, ...]]:
        return Copies, self._parts()

    def _parts(self) -> tuple[Sequence[int], int, int]:
        size = _RECENT
        while size and not self._identities[size - 1]:
            size -= 1  # most connections are short, and empty places are slow to pickle
        return [self._identities[at] for at in range(size)], self._oldest, self._latest_ns

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
        return at < _RECENT
