"""Connections that several capture points saw: which are the same, and how the points' clocks differ.

Two points saw the same connection if both ends are the same, and the initial sequence numbers in their SYNs.
If one point has no SYN, because it began later, the connection must still be open at the other point.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence

from kdissect.exchange import Exchange
from kdissect.model import ACK, SYN, Endpoint, Segment

APART_NS = 60_000_000_000
"""The longest time between copies of one exchange. After more time, a client may use the correlation id
again."""
MOST_HOSTS = 100_000
"""The number of pairs of hosts whose nearest point is remembered."""

Ends = tuple[Endpoint, Endpoint]


class Trace:
    """A connection, as several points saw it."""

    __slots__ = (
        *("after", "before", "begun_ns", "ends", "initial", "nearest", "number", "opened", "over"),
        *("shifts", "since"),
    )

    def __init__(self, number: int, ends: Ends, now_ns: int) -> None:
        self.number = number
        self.ends = ends
        self.begun_ns = now_ns
        self.initial: dict[Endpoint, int] = {}
        """The initial sequence number of each end, if a SYN had it."""
        self.since: dict[int, int] = {}
        """The points that have the connection, and when it began there."""
        self.opened: set[int] = set()
        """The points that have its beginning."""
        self.over: set[int] = set()
        """The points at which it is over."""
        self.nearest: tuple[int, ...] = ()
        """The points, from the nearest to the broker to the farthest; empty until known."""
        self.shifts: dict[tuple[int, int, int], int] = {}
        """The difference of the streams' offsets, by two points and a side."""
        self.after: dict[int, int] = {}
        """By point: the largest difference of its clock to the nearest point's clock, measured when requests
        passed."""
        self.before: dict[int, int] = {}
        """By point: the smallest difference of its clock to the nearest point's clock, measured when
        responses passed."""

    @property
    def first(self) -> int:
        """The point whose row counts: the one nearest to the broker, else the one that had the connection
        first."""
        return self.nearest[0] if self.nearest else next(iter(self.since))

    def ahead_ns(self, point: int) -> int | None:
        """How far the clock of a point is ahead of the nearest point's clock; None if unknown. It is exact if
        the network takes the same time both ways."""
        if point not in self.after or point not in self.before:
            return None
        return (self.after[point] + self.before[point]) // 2

    def measure(self, done: Mapping[int, Exchange]) -> None:
        """Learn from copies of an exchange how the clocks differ."""
        base = done.get(self.nearest[0]) if self.nearest else None
        if base is None:
            return
        for point, copy in done.items():
            if copy is base:
                continue
            if base.request_time_ns is not None and copy.request_time_ns is not None:
                # Requests pass the far point first, responses last. The fastest ones bound it best.
                after = copy.request_time_ns - base.request_time_ns
                self.after[point] = max(self.after.get(point, after), after)
            if base.response_start_ns is not None and copy.response_start_ns is not None:
                before = copy.response_start_ns - base.response_start_ns
                self.before[point] = min(self.before.get(point, before), before)


class Traces:
    """The connections that are remembered."""

    def __init__(self, ahead_ns: Sequence[int]) -> None:
        """:param ahead_ns: how far the clock of each point seems to be ahead of the first point's clock."""
        self._ahead_ns = ahead_ns
        self.count = 0
        """The number of connections so far, each counted once."""
        self._by_ends: dict[Ends, list[Trace]] = {}
        self._by_number: dict[int, Trace] = {}
        self._ended: deque[tuple[int, Trace]] = deque()
        self._nearest: OrderedDict[tuple[bytes, bytes], tuple[int, ...]] = OrderedDict()
        """The points, from the nearest to the broker to the farthest, by the hosts of client and broker."""

    def get(self, number: int) -> Trace | None:
        """A connection by its number; None if it was forgotten."""
        return self._by_number.get(number)

    def begin(self, point: int, segment: Segment, now_ns: int) -> Trace:
        """The connection that begins with a segment at a point."""
        self._forget_ended(now_ns)
        source, destination = segment.source, segment.destination
        ends = (source, destination) if source < destination else (destination, source)
        initial: dict[Endpoint, int] = {}
        if segment.flags & SYN:
            initial[source] = segment.seq
            if segment.flags & ACK and segment.ack is not None:
                initial[destination] = (segment.ack - 1) & 0xFFFFFFFF
        traces = self._by_ends.setdefault(ends, [])
        found = next((each for each in reversed(traces) if _is_same(each, point, initial)), None)
        if found is None:
            found = Trace(self.count, ends, now_ns)
            self.count += 1
            traces.append(found)
            self._by_number[found.number] = found
        found.initial |= initial
        found.since[point] = now_ns
        if initial:
            found.opened.add(point)
        return found

    def again(self, number: int, point: int, exchange: Exchange, now_ns: int) -> Trace:
        """The connection of an exchange. If the connection was already forgotten, it is added again."""
        trace = self._by_number.get(number)
        if trace is None:
            trace = Trace(number, (exchange.client_endpoint, exchange.broker_endpoint), now_ns)
            self._by_number[number] = trace
        trace.since.setdefault(point, now_ns)
        return trace

    def rank(self, trace: Trace, done: Mapping[int, Exchange]) -> list[int]:
        """The points of these copies of an exchange, from the nearest to the broker to the farthest. At the
        nearest point the latency is smallest.

        The first exchange of a connection with both sides at several points decides for the connection. It
        also decides for other connections between the same hosts that have no such exchange. Before that,
        corrected clocks decide: requests pass the nearest point last, responses first.
        """
        if not trace.nearest:
            took = [(each.latency_ns, point) for point, each in done.items() if each.latency_ns is not None]
            exchange = next(iter(done.values()))
            hosts = (exchange.client_endpoint[:-2], exchange.broker_endpoint[:-2])
            if len(took) > 1:
                trace.nearest = self._nearest[hosts] = tuple(point for _, point in sorted(took))
                if len(self._nearest) > MOST_HOSTS:
                    self._nearest.popitem(last=False)
            elif len(done) > 1:
                trace.nearest = self._nearest.get(hosts, ())
        nearest = [point for point in trace.nearest if point in done]
        others = [point for point in done if point not in nearest]
        return [*nearest, *sorted(others, key=lambda point: (self._passed_ns(point, done[point]), point))]

    def _passed_ns(self, point: int, exchange: Exchange) -> int:
        """The sort key of a point by time: the nearer to the broker, the smaller."""
        if exchange.response_start_ns is not None:
            return exchange.response_start_ns - self._ahead_ns[point]
        return self._ahead_ns[point] - (exchange.request_time_ns or 0)

    def end(self, point: int, trace: Trace, now_ns: int) -> None:
        """A connection is over at a point."""
        trace.over.add(point)
        if trace.over >= trace.since.keys():
            self._ended.append((now_ns, trace))

    def _forget_ended(self, now_ns: int) -> None:
        while self._ended and now_ns - self._ended[0][0] > APART_NS:
            _, trace = self._ended.popleft()
            if trace.over >= trace.since.keys() and self._by_number.pop(trace.number, None) is not None:
                traces = self._by_ends.get(trace.ends, [])
                if trace in traces:
                    traces.remove(trace)
                if not traces:
                    self._by_ends.pop(trace.ends, None)


def _is_same(trace: Trace, point: int, initial: Mapping[Endpoint, int]) -> bool:
    if point in trace.since:
        return False
    known = [trace.initial[end] == number for end, number in initial.items() if end in trace.initial]
    return all(known) if known else not trace.over >= trace.since.keys()
