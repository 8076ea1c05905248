"""What the latest exchange tells of all before it: the names of topic ids, and the time. Folds that are fed
together share one, so that each exchange is looked at once for it.

    latest.see(exchange)             every exchange, counted or not
    share([latest, other, …])        from now on these are one
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kdissect.exchange import Exchange
from kdissect.names import NO_NAMES, Names


class Namer(Protocol):
    """What gives ids their names by what is known."""

    def settle(self) -> None:
        """Give the names that are known by now to the ids that had none."""


class _SharedLatest:
    """What was seen by all that share it."""

    __slots__ = ("namers", "names", "ns", "packet")

    def __init__(self) -> None:
        self.namers: list[Namer] = []
        self.names: Names = NO_NAMES
        self.packet = 0
        self.ns: int | None = None


class Latest:
    """What one fold knows of the exchanges so far."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen = _SharedLatest()

    def see(self, exchange: Exchange) -> None:
        """To be called with every exchange."""
        seen, packet = self._seen, exchange.last_packet
        if packet >= seen.packet:
            seen.packet, seen.names = packet, exchange.topic_names
        ns = exchange.told_ns
        if seen.ns is None or ns > seen.ns:
            seen.ns = ns

    @property
    def names(self) -> Names:
        """The names of topic ids that the last packet knows."""
        return self._seen.names

    @property
    def ns(self) -> int | None:
        """The latest time at which an exchange was over; None before the first."""
        return self._seen.ns

    def tell(self, namer: Namer) -> None:
        """Before other names count, have this one take those that are known."""
        self._seen.namers.append(namer)

    def merge(self, later: Latest) -> None:
        """Add what was seen later. It does no harm to do so again."""
        mine, theirs = self._seen, later._seen
        for each in (*mine.namers, *theirs.namers):
            each.settle()
        if theirs.packet >= mine.packet:
            mine.packet, mine.names = theirs.packet, theirs.names
        if mine.ns is None or (theirs.ns is not None and theirs.ns > mine.ns):
            mine.ns = theirs.ns


def share(every: Sequence[Latest]) -> None:
    """Let folds that are fed the same exchanges see each once."""
    for each in every[1:]:
        every[0]._seen.namers += each._seen.namers
        each._seen = every[0]._seen
