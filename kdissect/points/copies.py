"""The copies of an exchange at several capture points: which belong together, and which copy is given.

Copies of one exchange have the same connection, correlation id, sizes, and offsets in the stream. A copy may
lack some of these. As in :mod:`kdissect.spark.copies`, the copy that lacks the least is given; among equal
copies, the copy of the point nearest to the broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdissect.exchange import Copy, Exchange, Seen
from kdissect.points.traces import APART_NS, Trace

Key = tuple[int, int | None]
"""Number of the connection, and correlation id."""

_NOT_CAPTURED = ("not captured", "gap", "skipped")
"""The values of :attr:`~kdissect.exchange.Exchange.missing` that mean a loss."""

_Side = tuple[int, int] | None
"""Size of a message, and its offset in the stream; None where it is missing."""


class _Outline:
    """The facts of a copy that other copies share."""

    __slots__ = ("exchange", "is_encrypted", "told")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange: Exchange | None = exchange
        """The exchange until it is complete: its messages may still come."""
        self.is_encrypted = exchange.is_encrypted
        self.told: tuple[_Side, ...] = ()

    def complete(self, exchange: Exchange) -> None:
        """Keep the facts of the exchange, which is complete, and release it. It may be another object than
        before: see :mod:`kdissect.session.resting`."""
        self.exchange = exchange
        self.told = self.sides()
        self.exchange = None

    def sides(self) -> tuple[_Side, ...]:
        """Size and offset of request and response."""
        if self.exchange is None:
            return self.told
        messages = (self.exchange.request, self.exchange.response)
        return tuple(None if each is None else (each.frame.size, each.frame.offset) for each in messages)


class Sighting:
    """An exchange, and its copies by point."""

    __slots__ = (
        *("done", "first_ns", "is_given", "key", "lost", "number", "outlines", "ready_ns", "trace"),
        *("whole",),
    )

    def __init__(self, number: int, trace: Trace, key: Key, now_ns: int) -> None:
        self.number = number
        self.trace = trace
        self.key = key
        self.first_ns = now_ns
        """When it was first recognised."""
        self.ready_ns = 0
        """When its first copy was complete."""
        self.outlines: dict[int, _Outline] = {}
        self.done: dict[int, Exchange] = {}
        """The complete copies, until one is given."""
        self.whole: set[int] = set()
        """The points whose copy lacks nothing."""
        self.lost: set[int] = set()
        """The points whose copy lacks a message that was not captured there."""
        self.is_given = False

    def takes(self, point: int, exchange: Exchange, now_ns: int) -> bool:
        """Take in an exchange if it is a copy of this one; return whether it is."""
        if point in self.outlines or now_ns - self.first_ns > APART_NS:
            return False
        outline = _Outline(exchange)
        if not all(self._agree(other, point, outline) for other in self.outlines):
            return False
        self.add(point, outline)
        return True

    def begin(self, point: int, exchange: Exchange) -> None:
        """Take in the first copy."""
        self.outlines[point] = _Outline(exchange)

    def _agree(self, other: int, point: int, outline: _Outline) -> bool:
        for side, (mine, its) in enumerate(zip(outline.sides(), self.outlines[other].sides(), strict=True)):
            if mine is None or its is None:
                continue
            if mine[0] != its[0]:
                return False
            shift = self.trace.shifts.get((other, point, side))
            if shift is not None and mine[1] - its[1] != shift:
                return False
        return True

    def add(self, point: int, outline: _Outline) -> None:
        """Take in another copy, and learn how the offsets of the two points' streams differ."""
        shifts = self.trace.shifts
        # The length of lost TLS records is unknown, so offsets of encrypted streams differ after a loss.
        for other, copy in () if outline.is_encrypted else self.outlines.items():
            for side, (mine, its) in enumerate(zip(outline.sides(), copy.sides(), strict=True)):
                if mine is not None and its is not None:
                    shifts.setdefault((other, point, side), mine[1] - its[1])
                    shifts.setdefault((point, other, side), its[1] - mine[1])
        self.outlines[point] = outline

    def complete(self, point: int, exchange: Exchange) -> None:
        """Take in a copy that is complete."""
        self.outlines[point].complete(exchange)
        if exchange.missing is None:
            self.whole.add(point)
        elif exchange.missing in _NOT_CAPTURED:
            self.lost.add(point)
        if not self.is_given:
            self.done[point] = exchange

    @property
    def waits(self) -> bool:
        """Whether a recognised copy is not complete."""
        return any(outline.exchange is not None for outline in self.outlines.values())

    def give(self, order: Sequence[int], names: Sequence[str]) -> Exchange:
        """Return the best copy, with the times of the other copies.

        :param order: the points of the copies, the one nearest to the broker first.
        :param names: the names of all points.
        """
        self.trace.measure(self.done)
        best = min(order, key=lambda point: (*_lack(self.done[point]), order.index(point)))
        exchange = self.done[best]
        exchange.seen = Seen(names[best], _copies({p: e for p, e in self.done.items() if p != best}, names))
        self.is_given, self.done = True, {}
        return exchange


def _copies(others: Mapping[int, Exchange], names: Sequence[str]) -> tuple[Copy, ...]:
    return tuple(
        Copy(names[point], copy.request_time_ns, copy.response_start_ns)
        for point, copy in sorted(others.items())
    )


def _lack(exchange: Exchange) -> tuple[bool, int, int]:
    """How much a copy lacks, for comparing: less is better."""
    cut = sum(message.is_cut for message in exchange.messages)
    return exchange.missing is not None, cut, len(exchange.session_faults)
