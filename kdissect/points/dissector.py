"""The pipeline for traffic that was captured at several points: each exchange once.

    Packet ─► the Dissector of its point ─► Traces (a connection, all points) ─► Sighting (copies) ─► the best

Each point has its own dissector, so that a copy at another point is not taken for a retransmission. A
connection or an exchange that another point has already seen keeps the number that it got there.

An exchange is given when every point that has its connection has given its copy, or :data:`WAIT_NS` later.
Exchanges come in the order in which their first copies were complete. Copies that come later still are
dropped. If more bytes wait than the limit allows, exchanges do not wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import chain

from kdissect.capture.reader import Points
from kdissect.capture.segments import SegmentReader
from kdissect.dissect import Dissector, Event, Numbering
from kdissect.exchange import Exchange
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Fault, Packet, Secrets, Segment
from kdissect.names import TopicNames
from kdissect.points.copies import Key, Sighting
from kdissect.points.traces import APART_NS, Traces
from kdissect.session.briefs import Brief, Interest
from kdissect.session.conversation import Connection, Listener
from kdissect.tls.keylog import TlsSecrets
from kdissect.wording import plural

WAIT_NS = 2_000_000_000
"""How long to wait for a copy: longer than a packet takes that is lost and sent again twice."""
EDGE_NS = 200_000_000
"""The time around the edges of a capture in which a missing message is not counted as lost. The message may
have passed before the point began to see the connection in mid-stream, or after its capture ended."""
MOST_REMEMBERED = 20_000
"""The number of exchanges, already given, whose later copies are still recognised."""


class _PointNumbering(Numbering):
    """Numbers from the dissector of all points."""

    def __init__(self, owner: PointsDissector, point: int) -> None:
        super().__init__()
        self._owner = owner
        self._point = point

    def connection(self, packet: int) -> int:
        return self._owner.number_of_connection(self._point)

    def exchange(self, begun: Exchange | Brief) -> int:
        assert isinstance(begun, Exchange)  # with several points there are no briefs
        return self._owner.number_of(self._point, begun)


class PointsDissector:
    """The machine of a capture of several points; used like :class:`~kdissect.dissect.Dissector`.

    :param new: makes the dissector of a point, with its numbering and its secrets.
    :param secrets: decrypt TLS at all points.
    """

    def __init__(
        self,
        points: Points,
        new: Callable[[Numbering, TlsSecrets | None], Dissector],
        limits: Limits = DEFAULTS,
        secrets: TlsSecrets | None = None,
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
        self.exchanges = 0
        """How many exchanges have a number."""
        self.at_several = 0
        """How many of the given exchanges several points saw."""
        self.only_at = [0] * len(points.names)
        """How many exchanges only this point saw, for each point."""
        self._lacking: dict[tuple[int, int], int] = {}
        """How often a point lacks exchanges of connections that it has, by that point and the point that saw
        them."""
        self._segment: Segment | None = None
        self._now_ns = 0
        self._last_ns = [0] * len(points.names)
        """When each point captured its last packet."""
        self._traces = Traces(points.ahead_ns)
        self._sightings: dict[int, Sighting] = {}
        self._open: dict[Key, list[Sighting]] = {}
        self._turns: deque[tuple[int, Sighting | Connection]] = deque()
        """Sightings and connections that wait to be given, in order."""
        self._late: deque[Sighting] = deque()
        """Exchanges already given, while another copy may still come."""
        self._held_bytes = 0

    # -- as a Dissector -----------------------------------------------------------------------------

    @property
    def connections(self) -> int:
        """How many connections were seen so far, each once."""
        return self._traces.count

    @property
    def names(self) -> TopicNames:
        """The names of topic ids. A name seen at one point is used at all points."""
        return self._dissectors[0].names

    @property
    def secrets(self) -> TlsSecrets:
        """The secrets that decrypt TLS."""
        return self._dissectors[0].secrets

    def feed(self, item: Packet | Secrets | Fault) -> Sequence[Event]:
        """Take in a packet, and return the events it leads to, in order."""
        if isinstance(item, Fault):
            return (item,)
        if isinstance(item, Secrets):
            return self._learn_secrets(item)
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
            self._take(point, self._dissectors[point].feed(segment), out)
        if self._turns:
            self._give(out)
        return out

    def feed_all(self, items: Iterable[Packet | Secrets | Fault]) -> Iterator[list[Event]]:
        """:meth:`feed` several items, and give the lists of events that are not empty."""
        for item in items:
            if found := list(self.feed(item)):
                yield found

    def _learn_secrets(self, secrets: Secrets) -> list[Event]:
        """Take in lines of a key log, and return the events that waited for them."""
        out: list[Event] = []
        for point, dissector in enumerate(self._dissectors):
            dissector.packets = self.packets
            self._take(point, dissector.feed(secrets), out)
        self._give(out)
        return out

    def in_tls(self) -> Iterator[Connection]:
        """The rows, so far, of the remembered connections that speak TLS."""
        for at, dissector in enumerate(self._dissectors):
            for connection in dissector.in_tls():
                yield connection._replace(capture_point=self._points.names[at])

    def close(self) -> Iterator[Event]:
        """End the capture: give the exchanges that still wait, then the rows of all connections."""
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
        for sighting in list(self._sightings.values()):
            self._forget(sighting)
        yield from out
        for point, connection in sorted(connections, key=self._rank):
            yield self._told(point, connection)
        for (point, other), count in sorted(self._lacking.items()):
            names = self._points.names
            message = (
                f"capture point {names[point]} lacks {plural(count, 'exchange')} or parts of them, though "
                f"it has the connections: {names[other]} has the exchanges"
            )
            yield fault("seen-elsewhere", message)

    def summary(self) -> str:
        """How many exchanges each point saw, in words."""
        seen = [f"{self.at_several:,} at several"]
        alone = zip(self._points.names, self.only_at, strict=True)
        seen += [f"{count:,} at {name} alone" for name, count in alone]
        return f"{plural(len(self._points.names), 'capture point')}, exchanges seen: {', '.join(seen)}"

    # -- numbers ------------------------------------------------------------------------------------

    def number_of_connection(self, point: int) -> int:
        """The number of the connection that begins with the segment just fed to a point's dissector."""
        assert self._segment is not None
        return self._traces.begin(point, self._segment, self._now_ns).number

    def number_of(self, point: int, exchange: Exchange) -> int:
        """The number of an exchange that a point has recognised."""
        trace = self._traces.again(exchange.connection, point, exchange, self._now_ns)
        key = (trace.number, exchange.correlation_id)
        sightings = self._open.setdefault(key, [])
        for sighting in sightings:
            if sighting.takes(point, exchange, self._now_ns):
                return sighting.number
        self.exchanges += 1
        sighting = Sighting(self.exchanges, trace, key, self._now_ns)
        sighting.begin(point, exchange)
        sightings.append(sighting)
        self._sightings[sighting.number] = sighting
        return sighting.number

    # -- what is given out --------------------------------------------------------------------------

    def _take(self, point: int, events: Iterable[Event], out: list[Event]) -> None:
        """Take in the events of a point's dissector."""
        for event in events:
            if isinstance(event, Exchange):
                self._complete(point, event)
            elif isinstance(event, Connection):
                self._turns.append((point, event))
            else:
                out.append(event)

    def _complete(self, point: int, exchange: Exchange) -> None:
        sighting = self._sightings.get(exchange.number)
        if sighting is None:
            return
        if not sighting.done and not sighting.is_given:
            sighting.ready_ns = self._now_ns
            self._turns.append((point, sighting))
        sighting.complete(point, exchange)
        if sighting.is_given:
            self._forget(sighting)
        else:
            self._held_bytes += exchange.size()

    def _give(self, out: list[Event], at_the_end: bool = False) -> None:
        """Append the exchanges and connections that wait no longer."""
        while self._turns:
            point, turn = self._turns[0]
            if isinstance(turn, Connection):
                out.append(self._told(point, turn))
            elif at_the_end or self._is_ready(turn) or self._held_bytes > self._limits.waiting_bytes:
                self._held_bytes -= sum(exchange.size() for exchange in turn.done.values())
                out.append(turn.give(self._traces.rank(turn.trace, turn.done), self._points.names))
                self._remember(turn)
            else:
                return
            self._turns.popleft()

    def _is_ready(self, sighting: Sighting) -> bool:
        trace = sighting.trace
        if len(sighting.done) == len(self._points.names) or self._now_ns - sighting.ready_ns > WAIT_NS:
            return True
        if self._now_ns - trace.begun_ns <= WAIT_NS:
            return False  # the connection may still appear at another point
        return sighting.done.keys() >= trace.since.keys() - trace.over

    def _remember(self, sighting: Sighting) -> None:
        """Keep a given exchange for a while, so that later copies are recognised and dropped."""
        if len(sighting.outlines) == len(self._points.names):
            self._forget(sighting)
            return
        self._late.append(sighting)
        while self._now_ns - self._late[0].ready_ns > APART_NS or len(self._late) > MOST_REMEMBERED:
            self._forget(self._late.popleft())
            if not self._late:
                return

    def _forget(self, sighting: Sighting) -> None:
        if sighting.waits or self._sightings.pop(sighting.number, None) is None:
            return  # a copy is not complete yet: it is forgotten when that copy is complete
        self._count(sighting)
        sightings = self._open[sighting.key]
        sightings.remove(sighting)
        if not sightings:
            del self._open[sighting.key]

    def _told(self, point: int, connection: Connection) -> Connection:
        """The row of a connection at a point."""
        trace, name = self._traces.get(connection.connection), self._points.names[point]
        if trace is None:
            return connection._replace(capture_point=name)
        self._traces.end(point, trace, self._now_ns)
        return connection._replace(
            capture_point=name, clock_ahead_ns=trace.ahead_ns(point), is_copy=point != trace.first
        )

    def _rank(self, told: tuple[int, Connection]) -> tuple[int, bool, int]:
        """The key to sort rows: by connection, and the row that is no copy first."""
        point, connection = told
        trace = self._traces.get(connection.connection)
        return connection.connection, trace is not None and point != trace.first, point

    def _count(self, sighting: Sighting) -> None:
        """Count which points saw an exchange, and which points lack it."""
        if len(sighting.outlines) > 1:
            self.at_several += 1
        else:
            self.only_at[next(iter(sighting.outlines))] += 1
        if not sighting.whole:
            return
        trace = sighting.trace
        for point, since_ns in trace.since.items():
            has_begun = point in trace.opened or since_ns + EDGE_NS < sighting.first_ns
            was_on = has_begun and sighting.first_ns < self._last_ns[point] - EDGE_NS
            if was_on and (point not in sighting.outlines or point in sighting.lost):
                key = (point, min(sighting.whole))
                self._lacking[key] = self._lacking.get(key, 0) + 1


def dissector_of(
    points: Points | None,
    limits: Limits = DEFAULTS,
    broker_ports: frozenset[int] = frozenset(),
    names: TopicNames | None = None,
    *,
    embedded: bool = False,
    secrets: TlsSecrets | None = None,
    adds_tcp: bool = True,
    listener: Listener | None = None,
    briefs: Interest | None = None,
) -> Dissector | PointsDissector:
    """The dissector for an input: of one capture, or of several points if ``points`` is given.

    :param briefs: see :class:`~kdissect.dissect.Dissector`; ignored with several points.
    """

    def new(numbering: Numbering | None, known: TlsSecrets | None) -> Dissector:
        told = (limits, broker_ports, names, numbering)
        return Dissector(
            *told,
            embedded=embedded,
            secrets=known,
            adds_tcp=adds_tcp,
            listener=listener,
            briefs=briefs if points is None else None,
        )

    if points is None:
        return new(None, secrets)

    return PointsDissector(points, new, limits, secrets)
