"""Copies of one exchange, of several capture points: which are the same exchange, and which one is given.

Copies of an exchange agree in what was on the wire: connection, correlation id, sizes, and place in the
stream. A copy may lack some of these. As in :mod:`kdissect.spark.copies`, the copy that lacks the least is
given; among equal ones, that of the point nearest to the broker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdissect.exchange import Copy, Exchange, Seen
from kdissect.points.traces import APART_NS, Trace

Key = tuple[int, int | None]
"""Number of the connection, and correlation id."""

_NOT_CAPTURED = ("not captured", "gap", "skipped")
"""Of the words of :attr:`~kdissect.exchange.Exchange.missing`, those that tell of a loss."""

_Side = tuple[int, int] | None
"""Size of a message, and its offset in the stream; None where it is missing."""


class _Outline:
    """What a copy has that others have too."""

    __slots__ = ("exchange", "is_encrypted", "told")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange: Exchange | None = exchange
        """While it is not complete: what it has may grow."""
        self.is_encrypted = exchange.is_encrypted
        self.told: tuple[_Side, ...] = ()

    def complete(self) -> None:
        """It has all that it will have; let go of the exchange."""
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
        """Copies that are complete, until one is given."""
        self.whole: set[int] = set()
        """The points of which the copy lacks nothing."""
        self.lost: set[int] = set()
        """Those of which it lacks what was not captured there."""
        self.is_given = False

    def takes(self, point: int, exchange: Exchange, now_ns: int) -> bool:
        """Whether this is a copy of it; if so it is taken in."""
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
        # Of records of TLS that are lost it is not known how long they were: offsets do not last there.
        for other, copy in () if outline.is_encrypted else self.outlines.items():
            for side, (mine, its) in enumerate(zip(outline.sides(), copy.sides(), strict=True)):
                if mine is not None and its is not None:
                    shifts.setdefault((other, point, side), mine[1] - its[1])
                    shifts.setdefault((point, other, side), its[1] - mine[1])
        self.outlines[point] = outline

    def complete(self, point: int, exchange: Exchange) -> None:
        """A copy is complete."""
        self.outlines[point].complete()
        if exchange.missing is None:
            self.whole.add(point)
        elif exchange.missing in _NOT_CAPTURED:
            self.lost.add(point)
        if not self.is_given:
            self.done[point] = exchange

    @property
    def waits(self) -> bool:
        """Whether a copy was recognised that is not complete."""
        return any(outline.exchange is not None for outline in self.outlines.values())

    def give(self, order: Sequence[int], names: Sequence[str]) -> Exchange:
        """The copy that is given, with what the others say of it.

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
    """What a copy lacks."""
    cut = sum(message.is_cut for message in exchange.messages)
    return exchange.missing is not None, cut, len(exchange.session_faults)
