"""The pipeline where one traffic was captured at several points: each exchange once.

    Packet ─► the Dissector of its point ─► Lines (one connection, all points) ─► Copies ─► the best one

Every point is dissected by itself, so that nothing is taken for a retransmission that another point saw.
What its dissector numbers is looked up: a connection or an exchange that another point has shown gets the
number it has there. An exchange is given out when every point that has its connection has given its copy, or
:data:`WAIT_NS` later, and in the order in which the first copies were complete. What is late then is dropped:
it was told. So are exchanges that are given out of turn, where more than the limit of bytes waits.

Copies are told by what was on the wire: the connection, correlation id, sizes, API, and the place in the
stream, as far as each of them has them. As in :mod:`kdissect.spark.copies`, the one that lacks the least is
given; of equal ones that of the point nearest to the broker, where the answer took least.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from itertools import chain

from kdissect.capture.reader import Points
from kdissect.capture.segments import SegmentReader
from kdissect.dissect import Dissector, Event, Numbering
from kdissect.exchange import Copy, Exchange, Seen
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import ACK, SYN, TLS_KEY_LOG, Endpoint, Fault, Packet, Secrets, Segment
from kdissect.names import TopicNames
from kdissect.session.conversation import Connection
from kdissect.tls.keylog import Secrets as KnownSecrets
from kdissect.wording import plural

WAIT_NS = 2_000_000_000
"""How long a copy is waited for: longer than a packet is on its way, and sent again twice."""
APART_NS = 60_000_000_000
"""Copies of one exchange are not further apart than this; further apart, correlation ids come again."""
MOST_REMEMBERED = 20_000
"""Of how many exchanges that were given it is remembered which copies have not come."""


class Line:
    """A connection, as several points saw it."""

    __slots__ = ("after", "before", "begun_ns", "ends", "initial", "nearest", "number", "over", "shifts", "since")

    def __init__(self, number: int, ends: tuple[Endpoint, Endpoint], now_ns: int) -> None:
        self.number = number
        self.ends = ends
        self.begun_ns = now_ns
        self.initial: dict[Endpoint, int] = {}
        """Of each end, its initial sequence number, where a SYN told it."""
        self.since: dict[int, int] = {}
        """The points that have it, each with when it began there."""
        self.over: set[int] = set()
        """Those at which it is over."""
        self.nearest: tuple[int, ...] = ()
        """Points, the one nearest to the broker first."""
        self.shifts: dict[tuple[int, int, bool], int] = {}
        """Of two points and a direction, by how much the streams' offsets differ."""
        self.after: dict[int, int] = {}
        """Of a point, how much later than at the nearest a request was seen, at least, by the clocks."""
        self.before: dict[int, int] = {}
        """The same of responses."""

    def ahead_ns(self, point: int) -> int | None:
        """By how much the clock of a point is ahead of that of the nearest, where the network takes as long
        one way as the other; None where that is not known."""
        if point not in self.after or point not in self.before:
            return None
        return (self.after[point] + self.before[point]) // 2


class _Entry:
    """An exchange, and its copies by point."""

    __slots__ = ("copies", "done", "first_ns", "is_given", "key", "line", "number", "ready_ns", "whole")

    def __init__(self, number: int, line: Line, key: tuple[int, int | None], now_ns: int) -> None:
        self.number = number
        self.line = line
        self.key = key
        self.first_ns = now_ns
        self.ready_ns = 0
        """When its first copy was complete."""
        self.copies: dict[int, _Outline] = {}
        self.done: dict[int, Exchange] = {}
        """Those that are complete, until one is given."""
        self.whole: set[int] = set()
        """The points of which the copy lacks nothing."""
        self.is_given = False


class _Outline:
    """What a copy has that others have too."""

    __slots__ = ("exchange", "places")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange: Exchange | None = exchange
        """While it is not complete: what it has may grow."""
        self.places: tuple[tuple[int, int] | None, ...] = ()

    def close(self) -> None:
        self.places = self.sides()
        self.exchange = None

    def sides(self) -> tuple[tuple[int, int] | None, ...]:
        """Of request and response, size and offset in the stream; None where one is missing."""
        if self.exchange is None:
            return self.places
        messages = (self.exchange.request, self.exchange.response)
        return tuple(None if each is None else (each.frame.size, each.frame.offset) for each in messages)


class _PointNumbering(Numbering):
    """Asks who numbers over all points."""

    def __init__(self, owner: PointsDissector, point: int) -> None:
        super().__init__()
        self._owner = owner
        self._point = point

    def connection(self, packet: int) -> int:
        return self._owner.line_of(self._point).number

    def exchange(self, exchange: Exchange) -> int:
        return self._owner.number_of(self._point, exchange)


class PointsDissector:
    """The machine of a capture of several points; used like :class:`~kdissect.dissect.Dissector`.

    :param new: makes the dissector of a point, with its numbering and the secrets it is to use.
    :param secrets: with which TLS is decrypted at all points.
    """

    def __init__(
        self,
        points: Points,
        new: Callable[[Numbering, KnownSecrets | None], Dissector],
        limits: Limits = DEFAULTS,
        secrets: KnownSecrets | None = None,
    ) -> None:
        self._points = points
        self._limits = limits
        self._dissectors = [
            new(_PointNumbering(self, at), secrets if at == 0 else deepcopy(secrets))
            for at in range(len(points.names))
        ]
        for other in self._dissectors[1:]:
            other.names = self._dissectors[0].names
        self._readers = [SegmentReader(limits) for _ in points.names]
        self.packets = 0
        self.connections = 0
        """How many connections were seen so far, each once."""
        self.exchanges = 0
        """How many exchanges have a number."""
        self.at_several = 0
        """How many of those that were given several points saw."""
        self.only_at = [0] * len(points.names)
        """Of each point, how many only it saw."""
        self._lacking: dict[tuple[int, int], int] = {}
        """How often a point that has the connection lacks what another saw."""
        self._segment: Segment | None = None
        self._now_ns = 0
        self._last_ns = [0] * len(points.names)
        """When each point captured its last packet."""
        self._lines: dict[tuple[Endpoint, Endpoint], list[Line]] = {}
        self._by_number: dict[int, Line] = {}
        self._ended: deque[tuple[int, Line]] = deque()
        self._entries: dict[int, _Entry] = {}
        self._open: dict[tuple[int, int | None], list[_Entry]] = {}
        self._turns: deque[tuple[int, _Entry | Connection]] = deque()
        self._late: deque[_Entry] = deque()
        self._held_bytes = 0

    # -- as a Dissector -----------------------------------------------------------------------------

    @property
    def names(self) -> TopicNames:
        """Names of topic ids; what one point tells holds at all of them."""
        return self._dissectors[0].names

    @property
    def secrets(self) -> KnownSecrets:
        """With which TLS is decrypted."""
        return self._dissectors[0].secrets

    @property
    def capture_points(self) -> tuple[str, ...]:
        """Their names."""
        return self._points.names

    def feed(self, item: Packet | Secrets | Fault) -> Iterable[Event]:
        """What one packet brings to light, in order."""
        if isinstance(item, Fault):
            return (item,)
        if isinstance(item, Secrets):
            return self.learn_secrets(item.data, self.packets) if item.kind == TLS_KEY_LOG else ()
        self.packets += 1
        point = self._points.of_interface.get(item.interface, 0)
        self._now_ns = item.timestamp_ns - self._points.ahead_ns[point]
        self._last_ns[point] = self._now_ns
        segment = self._readers[point].feed(item)
        out: list[Event] = []
        if isinstance(segment, Fault):
            out.append(segment)
        elif segment is not None:
            self._segment = segment
            self._take(point, self._dissectors[point].feed_segment(segment), out)
        if self._turns:
            self._give(out)
        return out

    def feed_all(self, items: Iterable[Packet | Secrets | Fault]) -> Iterator[list[Event]]:
        """What several bring to light, in order, in lists."""
        for item in items:
            if found := list(self.feed(item)):
                yield found

    def learn_secrets(self, key_log: bytes, packet: int) -> list[Event]:
        """Take in lines of a key log that stand behind ``packet``; what waited for them comes out."""
        out: list[Event] = []
        for point, dissector in enumerate(self._dissectors):
            self._take(point, dissector.learn_secrets(key_log, packet), out)
        self._give(out)
        return out

    def in_tls(self) -> Iterator[Connection]:
        """What is known by now of the connections that speak TLS and are remembered."""
        for at, dissector in enumerate(self._dissectors):
            for connection in dissector.in_tls():
                yield connection._replace(capture_point=self._points.names[at])

    def close(self) -> Iterator[Event]:
        """The capture is over: what still waits comes out, then every connection's rows."""
        out: list[Event] = list(chain.from_iterable(reader.close() for reader in self._readers))
        connections: list[tuple[int, Connection]] = []
        for point, dissector in enumerate(self._dissectors):
            found: list[Event] = []
            for event in dissector.close():
                if isinstance(event, Connection):
                    connections.append((point, event))
                else:
                    found.append(event)
            self._take(point, found, out)
        self._give(out, at_the_end=True)
        for entry in list(self._entries.values()):
            self._forget_entry(entry)
        yield from out
        for point, connection in sorted(connections, key=lambda each: (each[1].connection, each[0])):
            yield self._told(point, connection)
        for (point, other), count in sorted(self._lacking.items()):
            names = self._points.names
            message = (
                f"capture point {names[point]} lacks {plural(count, 'exchange')}, whole or in part, of "
                f"connections that it has: {names[other]} has them"
            )
            yield fault("seen-elsewhere", message)

    def summary(self) -> str:
        """How many exchanges which points saw, in words."""
        seen = [f"{self.at_several:,} at several"]
        seen += [f"{count:,} at {name} alone" for name, count in zip(self._points.names, self.only_at, strict=True)]
        return f"{plural(len(self._points.names), 'capture point')}, exchanges seen: {', '.join(seen)}"

    # -- connections --------------------------------------------------------------------------------

    def line_of(self, point: int) -> Line:
        """The connection that begins with the segment that a point's dissector was given."""
        segment = self._segment
        assert segment is not None
        self._forget_ended()
        source, destination = segment.source, segment.destination
        ends = (source, destination) if source < destination else (destination, source)
        initial: dict[Endpoint, int] = {}
        if segment.flags & SYN:
            initial[source] = segment.seq
            if segment.flags & ACK and segment.ack is not None:
                initial[destination] = (segment.ack - 1) & 0xFFFFFFFF
        lines = self._lines.setdefault(ends, [])
        found = next((each for each in reversed(lines) if self._is_same(each, point, initial)), None)
        if found is None:
            found = Line(self.connections, ends, self._now_ns)
            self.connections += 1
            lines.append(found)
            self._by_number[found.number] = found
        found.initial |= initial
        found.since[point] = self._now_ns
        return found

    def _is_same(self, line: Line, point: int, initial: dict[Endpoint, int]) -> bool:
        if point in line.since:
            return False
        known = [line.initial[end] == number for end, number in initial.items() if end in line.initial]
        if known:
            return all(known)
        return line.over != line.since.keys()

    def _end(self, point: int, line: Line) -> None:
        line.over.add(point)
        if line.over == line.since.keys():
            self._ended.append((self._now_ns, line))

    def _forget_ended(self) -> None:
        while self._ended and self._now_ns - self._ended[0][0] > APART_NS:
            _, line = self._ended.popleft()
            if line.over == line.since.keys() and self._by_number.pop(line.number, None) is not None:
                lines = self._lines[line.ends]
                lines.remove(line)
                if not lines:
                    del self._lines[line.ends]

    def _told(self, point: int, connection: Connection) -> Connection:
        """The row of a connection at a point."""
        line = self._by_number.get(connection.connection)
        ahead_ns = None
        if line is not None:
            self._end(point, line)
            ahead_ns = line.ahead_ns(point)
        return connection._replace(capture_point=self._points.names[point], clock_ahead_ns=ahead_ns)

    # -- exchanges ----------------------------------------------------------------------------------

    def number_of(self, point: int, exchange: Exchange) -> int:
        """The number of an exchange that a point has recognised."""
        line = self._line(exchange.connection, point, exchange)
        key = (line.number, exchange.correlation_id)
        entries = self._open.setdefault(key, [])
        outline = _Outline(exchange)
        for entry in entries:
            if point not in entry.copies and self._is_copy(entry, point, outline):
                break
        else:
            self.exchanges += 1
            entry = _Entry(self.exchanges, line, key, self._now_ns)
            entries.append(entry)
            self._entries[entry.number] = entry
        self._learn_shifts(entry, point, outline)
        entry.copies[point] = outline
        return entry.number

    def _line(self, number: int, point: int, exchange: Exchange) -> Line:
        """A connection by its number. What only comes to light at the end may be of one that was forgotten."""
        line = self._by_number.get(number)
        if line is None:
            line = Line(number, (exchange.client_endpoint, exchange.broker_endpoint), self._now_ns)
            self._by_number[number] = line
        line.since.setdefault(point, self._now_ns)
        return line

    def _is_copy(self, entry: _Entry, point: int, outline: _Outline) -> bool:
        if self._now_ns - entry.first_ns > APART_NS:
            return False
        places = outline.sides()
        for other, copy in entry.copies.items():
            for side, (mine, its) in enumerate(zip(places, copy.sides(), strict=True)):
                if mine is None or its is None:
                    continue
                if mine[0] != its[0]:
                    return False
                shift = entry.line.shifts.get((other, point, bool(side)))
                if shift is not None and mine[1] - its[1] != shift:
                    return False
        return True

    def _learn_shifts(self, entry: _Entry, point: int, outline: _Outline) -> None:
        if outline.exchange is None or outline.exchange.is_encrypted:
            return  # of records of TLS that are lost it is not known how long they were
        for other, copy in entry.copies.items():
            for side, (mine, its) in enumerate(zip(outline.sides(), copy.sides(), strict=True)):
                if mine is not None and its is not None:
                    shift = mine[1] - its[1]
                    entry.line.shifts.setdefault((other, point, bool(side)), shift)
                    entry.line.shifts.setdefault((point, other, bool(side)), -shift)

    def _take(self, point: int, events: Iterable[Event], out: list[Event]) -> None:
        """Take in what a point's dissector gave."""
        for event in events:
            if isinstance(event, Exchange):
                self._complete(point, event)
            elif isinstance(event, Connection):
                self._turns.append((point, event))
            else:
                out.append(event)

    def _complete(self, point: int, exchange: Exchange) -> None:
        entry = self._entries.get(exchange.number)
        if entry is None:
            return
        entry.copies[point].close()
        if exchange.missing is None:
            entry.whole.add(point)
        if entry.is_given:
            self._forget_entry(entry)
            return
        if not entry.done:
            entry.ready_ns = self._now_ns
            self._turns.append((point, entry))
        entry.done[point] = exchange
        self._held_bytes += _size(exchange)

    def _give(self, out: list[Event], at_the_end: bool = False) -> None:
        """Append what no copy is waited for any more."""
        while self._turns:
            point, turn = self._turns[0]
            if isinstance(turn, Connection):
                out.append(self._told(point, turn))
            elif at_the_end or self._is_ready(turn) or self._held_bytes > self._limits.waiting_bytes:
                out.append(self._best(turn))
            else:
                return
            self._turns.popleft()

    def _is_ready(self, entry: _Entry) -> bool:
        waited = self._now_ns - entry.ready_ns > WAIT_NS
        line = entry.line
        if waited or len(entry.done) == len(self._points.names):
            return True
        if self._now_ns - line.begun_ns <= WAIT_NS:
            return False  # another point may show the connection yet
        return entry.done.keys() >= line.since.keys() - line.over

    def _best(self, entry: _Entry) -> Exchange:
        """The copy that is given, and what the others say of it."""
        done, line, names = entry.done, entry.line, self._points.names
        self._held_bytes -= sum(map(_size, done.values()))
        if not line.nearest:
            line.nearest = _by_distance(done)
        order = (*line.nearest, *(point for point in sorted(done) if point not in line.nearest))
        point = min(done, key=lambda each: (*_lack(done[each]), order.index(each)))
        best = done[point]
        others = sorted(other for other in done if other != point)
        copies = (Copy(names[each], done[each].request_time_ns, done[each].response_start_ns) for each in others)
        best.seen = Seen(names[point], tuple(copies))
        self._measure(line, done)
        entry.is_given = True
        entry.done = {}
        if entry.copies.keys() >= line.since.keys() and len(line.since) == len(names):
            self._forget_entry(entry)
        else:
            self._late.append(entry)
            while self._late and (
                self._now_ns - self._late[0].first_ns > APART_NS or len(self._late) > MOST_REMEMBERED
            ):
                self._forget_entry(self._late.popleft())
        return best

    def _forget_entry(self, entry: _Entry) -> None:
        if any(copy.exchange is not None for copy in entry.copies.values()):
            return  # one of them is to come yet
        if self._entries.pop(entry.number, None) is None:
            return
        self._count(entry)
        entries = self._open[entry.key]
        entries.remove(entry)
        if not entries:
            del self._open[entry.key]

    def _measure(self, line: Line, done: dict[int, Exchange]) -> None:
        """What two points say of their clocks."""
        if not line.nearest or line.nearest[0] not in done:
            return
        reference = line.nearest[0]
        base = done[reference]
        for point, copy in done.items():
            if point == reference:
                continue
            if base.request_time_ns is not None and copy.request_time_ns is not None:
                # Requests pass the far point first: the shortest way is where it was earlier by least.
                after = copy.request_time_ns - base.request_time_ns
                line.after[point] = max(line.after.get(point, after), after)
            if base.response_start_ns is not None and copy.response_start_ns is not None:
                before = copy.response_start_ns - base.response_start_ns
                line.before[point] = min(line.before.get(point, before), before)

    def _count(self, entry: _Entry) -> None:
        """What only some points saw."""
        if len(entry.copies) > 1:
            self.at_several += 1
        else:
            self.only_at[next(iter(entry.copies))] += 1
        if not entry.whole:
            return
        for point, since_ns in entry.line.since.items():
            was_on = since_ns + WAIT_NS // 2 < entry.first_ns < self._last_ns[point] - WAIT_NS // 2
            if point not in entry.whole and was_on:
                key = (point, min(entry.whole))
                self._lacking[key] = self._lacking.get(key, 0) + 1


def dissector_of(
    points: Points | None,
    limits: Limits = DEFAULTS,
    broker_ports: frozenset[int] = frozenset(),
    names: TopicNames | None = None,
    *,
    embedded: bool = False,
    secrets: KnownSecrets | None = None,
) -> Dissector | PointsDissector:
    """The machine for an input: that of one capture, or that of several points, where it has some."""
    if points is None:
        return Dissector(limits, broker_ports, names, embedded=embedded, secrets=secrets)

    def new(numbering: Numbering, known: KnownSecrets | None) -> Dissector:
        return Dissector(limits, broker_ports, names, numbering, embedded=embedded, secrets=known)

    return PointsDissector(points, new, limits, secrets)


def _size(exchange: Exchange) -> int:
    return sum(len(message.frame.payload) for message in exchange.messages)


def _lack(exchange: Exchange) -> tuple[bool, int, int]:
    """What a copy lacks."""
    cut = sum(message.is_cut for message in exchange.messages)
    return exchange.missing is not None, cut, len(exchange.session_faults)


def _by_distance(done: dict[int, Exchange]) -> tuple[int, ...]:
    """Points by how long the answer took there: it takes least at the one nearest to the broker. Nothing
    where it is not known of several."""
    took = [(exchange.latency_ns, point) for point, exchange in done.items() if exchange.latency_ns is not None]
    return tuple(point for _, point in sorted(took)) if len(took) > 1 else ()
