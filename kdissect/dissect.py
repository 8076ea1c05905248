"""The pipeline: packets → exchanges, connections and faults.

for item in read_packets(paths):
    for event in dissector.feed(item): …
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from kdissect.capture.fragments import Fragments
from kdissect.capture.reader import Item
from kdissect.capture.runs import PacketRun
from kdissect.capture.segments import SegmentReader
from kdissect.exchange import Exchange
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import ACK, SYN, TLS_KEY_LOG, Endpoint, Fault, Packet, Secrets, Segment
from kdissect.names import TopicNames
from kdissect.numbering import AT_THE_END, Event, EventPublisher, Numbering, Step
from kdissect.session.awaiting import Awaiting
from kdissect.session.briefs import Brief, Interest
from kdissect.session.conversation import Connection, Conversation, Listener
from kdissect.session.conversation import Event as SessionEvent
from kdissect.session.lanes import Lane, LaneTable
from kdissect.session.pairing import Completed, Recognised
from kdissect.session.quick import PairLayouts
from kdissect.session.reopened import Reopened
from kdissect.session.resting import Ends, RestingConnection, RestingConnections
from kdissect.session.tunnelled import Key, Tunnelled
from kdissect.tls.keylog import TlsSecrets
from kdissect.wording import plural

__all__ = [
    "AT_THE_END",
    "BEFORE_ALL",
    "LINGERING",
    "LINGER_NS",
    "Dissector",
    "Event",
    "Journal",
    "Numbering",
]

LINGER_NS = 60_000_000_000
"""The time for which endpoints still belong to a connection that both ends closed. Late acknowledgements and
retransmissions come in that time (RFC 9293's TIME-WAIT). Later packets are another connection."""

_LINGER_NS = LINGER_NS
"""The same as a C number when compiled, which other modules cannot import."""
_NEVER = (1 << 63) - 1
"""A time after any other."""
BEFORE_ALL = -(1 << 63)
"""A time before any other."""

LINGERING = 1_000
"""The number of stale entries, of connections forgotten for other reasons, that may remain before they are
removed."""

RELIEF = 8
"""When a limit is reached, usage is reduced below it by one part in this number, so that there is room for
some time."""

PART_BYTES = 1 << 15
"""The bytes of messages whose exchanges are given together; the last exchange may exceed it."""

LATE_BYTES = 1_024
"""The cost of an exchange numbered at the end, beside its bytes; each of its two events counts half."""

GOING_ON = "going on"
"""The end of a connection that may still go on."""

_NO_BYTES = b""
_PART_BYTES = PART_BYTES


class Journal:
    """Accompanies a dissector that has a part of a capture (:mod:`kdissect.parts`). This base class notes
    nothing."""

    def __init__(self) -> None:
        self.now = 0
        """The current packet."""

    def tick(self, packet: int, timestamp_ns: int) -> None:
        """Note a packet with a segment."""

    def is_set_aside(self, segment: Segment) -> bool:
        """Whether another dissector has the segment's connection. Only segments without a known connection
        are checked."""
        return False

    def note_tls(self, ends: tuple[Endpoint, Endpoint]) -> None:
        """Note that a connection has TLS; the second of the ends is the one that was connected to."""

    def note_forgotten(self, since_ns: int, number: int, events: int) -> None:
        """Note that the next ``events`` events are of a connection that has lingered since that time."""

    def note_events(self, events: int) -> None:
        """Note the number of events of the current packet."""


class Dissector:
    """Dissects a whole capture.

    Connections do not depend on each other, except by the limits over all of them. The time at which a
    finished connection is forgotten depends only on its own packets and on the time of all others.
    """

    def __init__(
        self,
        limits: Limits = DEFAULTS,
        broker_ports: frozenset[int] = frozenset(),
        names: TopicNames | None = None,
        numbering: Numbering | None = None,
        *,
        embedded: bool = False,
        secrets: TlsSecrets | None = None,
        adds_tcp: bool = True,
        listener: Listener | None = None,
        briefs: Interest | None = None,
        forms: PairLayouts | None = None,
    ) -> None:
        """:param listener: gets the steps before exchanges, of all connections.
        :param briefs: the facts needed of exchanges in brief, if events may have a
            :class:`~kdissect.session.briefs.Brief` in place of an exchange. Then an ordinary connection
            (:meth:`~kdissect.session.conversation.Conversation.is_ordinary`) has no row. A connection without
            bytes has no row either, if it ended after the first brief.
        :param forms: the layouts of another dissector of the same capture. Finding them again for each part
            of a capture took as long as dissecting half a megabyte.
        """
        self._limits = limits
        self._most_waiting = limits.waiting_bytes
        self._listener = listener
        self._adds_tcp = adds_tcp
        """Whether rows of connections have the facts of TCP."""
        self._ports = broker_ports
        self.secrets = TlsSecrets(limits) if secrets is None else secrets
        """The secrets that decrypt TLS; the capture may add some."""
        self._awaiting = Awaiting(self.secrets)
        """The connections that wait for more secrets."""
        self._awaited = self._awaiting.names
        """The same as a table, which is checked for every packet with data of TLS."""
        self._has_reported_secrets = False
        """Whether it was reported that there are too many secrets."""
        self._segments = SegmentReader(limits)
        self._table: dict[Key, Conversation] = {}
        """Each connection under both orders of its endpoints, or under its keys in ``_tunnelled``."""
        self._remembered = 0
        """The number of connections in the table."""
        self._lanes = LaneTable()
        """The fast paths of connections in the table."""
        self._step: list[SessionEvent] = []
        """The events of one packet on the fast path: one list for all of them, one after the other."""
        self._uses_lanes = listener is None
        """Whether packets may take the fast path. They may not with tunnels, whose ends do not identify a
        connection, nor with a listener, which would not get their steps."""
        self._tunnelled = Tunnelled(limits)
        """The connections with packets from tunnels, which may have several keys."""
        self._reopened = Reopened()
        """The connections whose endpoints a newer SYN has; they are not in the table."""
        self._older = self._reopened.older
        self._closed: dict[int, Conversation] = {}
        """The connections that are over, by number; forgotten when they have lingered."""
        self._lingering: deque[tuple[int, int]] = deque()
        """The numbers of these connections, in the order of the times since which they linger. Some may
        already be forgotten."""
        self._lingers_since = _NEVER
        """The earliest of these times."""
        self._latest_lingers_since = BEFORE_ALL
        """A time not before the latest of them."""
        self._waits = 0
        """How often a connection began to wait. If two hold the same number of bytes, it shows which has
        waited longer."""
        self._held_bytes = 0
        """The cost of all that waits, and of ``_late``."""
        self._most_held = 0
        self._late: list[SessionEvent] = []
        """The events found only when a connection was forgotten. That time depends on the packets of other
        connections, and numbers must not. So these exchanges are numbered at the end."""
        self._late_bytes = 0
        self._publisher = EventPublisher(
            Numbering() if numbering is None else numbering,
            TopicNames() if names is None else names,
            # Then all names are known, or not needed.
            names is not None or (briefs is not None and not briefs.names),
            limits.topic_names,
            embedded,
        )
        self.forms = forms
        """The layouts of exchanges, if they may be brief."""
        if forms is None and briefs is not None and listener is None and not embedded:
            self.forms = PairLayouts(briefs)
        self.resting = RestingConnections((limits, broker_ports, self.secrets), self.forms)
        """The connections that were silent for long; they are not in the table."""
        self.packets = 0
        """The number of packets read; callers that feed segments count them."""
        self.journal: Journal | None = None
        """The journal of a part of a capture."""

    def packets_of(self, number: int) -> tuple[int, ...]:
        """The packets that carried the segment of the packet ``number``, which was fed last."""
        return self._segments.packets_of(number)

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return self._publisher.numbering.connections

    @property
    def remembered(self) -> int:
        """The number of connections remembered now, which a limit bounds."""
        return self._remembered

    @property
    def held_bytes(self) -> int:
        """The cost of all that waits now, which a limit bounds."""
        return self._held_bytes

    @property
    def most_held_bytes(self) -> int:
        """The largest cost so far."""
        return self._most_held

    # -- parts of a capture -------------------------------------------------------------------------

    @property
    def numbering(self) -> Numbering:
        """The source of the numbers."""
        return self._publisher.numbering

    @property
    def names_are_complete(self) -> bool:
        """Whether all names of topic ids were known from the start."""
        return self._publisher.names_are_complete

    @property
    def names(self) -> TopicNames:
        """The names of topic ids."""
        return self._publisher.names

    @names.setter
    def names(self, names: TopicNames) -> None:
        self._publisher.names = names

    @property
    def crosses_connections(self) -> bool:
        """Whether it has state beyond single connections: tunnels, or fragments that wait."""
        return bool(self._tunnelled) or not self._uses_lanes or self._segments.waits

    @property
    def had_fragments(self) -> bool:
        """Whether there was a fragment of a packet."""
        return self._segments.had_fragments

    @property
    def fragments(self) -> Fragments | None:
        """The fragments that wait for others; None without any."""
        return self._segments.fragments if self._segments.waits else None

    def take_fragments(self, fragments: Fragments) -> None:
        """Take over the waiting fragments of another dissector; none waited here."""
        self._segments.resume_with(fragments)

    def is_crossed(self, had_fragments: bool) -> bool:
        """Whether state beyond single connections may affect later packets. Waiting fragments only affect
        other fragments.

        :param had_fragments: whether some of the later packets are fragments.
        """
        if self._tunnelled or not self._uses_lanes or self._segments.has_fault:
            return True
        return had_fragments and self._segments.waits

    @property
    def stands_alone(self) -> bool:
        """Whether another dissector can take its connections unchanged."""
        if (
            self._late
            or self._older
            or self._publisher.names_left_out
            or self._tunnelled
            or not self._uses_lanes
        ):
            return False
        return not any(each.speaks_tls for each in self._table.values())

    @property
    def lingers_since(self) -> int | None:
        """The earliest time since which a connection lingers that is to be forgotten."""
        return self._lingering[0][0] if self._lingering else None

    def remembers_any(self, pairs: Iterable[tuple[Endpoint, Endpoint]]) -> bool:
        """Whether it has a connection between the ends of any of these pairs."""
        for ends in pairs:  # noqa: SIM110 - any() makes a generator, and took three times as long
            if ends in self._table or (self.resting and self.resting.has(*ends)):
                return True
        return False

    def pairs(self) -> list[tuple[Endpoint, Endpoint]]:
        """The ends of the remembered connections, the smaller one first."""
        awake = [(key[0], key[1]) for key in self._table if key[0] <= key[1]]
        return awake + [each.ends for each in self.resting.all()]

    def handed_over(self) -> list[tuple[Conversation, int | None]]:
        """The remembered connections, by number; and the time since which each lingers, if it is over. This
        dissector must not get packets any more."""
        self._wake_all()
        since = {number: since_ns for since_ns, number in self._lingering if number in self._closed}
        found = sorted(set(self._table.values()), key=lambda each: each.number)
        for each in found:
            each.ends = None  # the table of lanes does not go with it
        return [(each, since.get(each.number)) for each in found]

    def adopt(self, conversation: Conversation, since_ns: int | None) -> None:
        """Take over a connection from another dissector.

        :param since_ns: the time since which it lingers, if it is over.
        """
        first, other = conversation.endpoints
        self._table[first, other] = self._table[other, first] = conversation
        self._remembered += 1
        conversation.resume_with(self.secrets, self.forms)
        conversation.counted_bytes = 0
        conversation.ends = None
        self._count_held(conversation)
        if since_ns is not None:
            self._wait_for(conversation, since_ns)

    # -- packets ------------------------------------------------------------------------------------

    def feed(self, item: Item | Segment | int) -> Sequence[Event]:
        """The events of one packet, in order.

        :param item: a packet, or its segment. Key logs and faults of the capture are fed at their positions
            in it. A number is the time, in nanoseconds, of a segment that another dissector has.
        """
        if isinstance(item, Packet):
            self.packets += 1
            segment = self._segments.feed(item)
            if segment is None:
                return ()
            if isinstance(segment, Fault):
                return (segment,)
            return self._feed_segment(segment)
        if isinstance(item, Segment):
            return self._feed_segment(item)
        if isinstance(item, Fault):
            return (item,)
        if isinstance(item, Secrets):
            return self._learn_secrets(item.data) if item.kind == TLS_KEY_LOG else ()
        return self._elapse(item)

    def feed_all(self, items: Iterable[Item | PacketRun]) -> Iterator[list[Event]]:
        """:meth:`feed` several items, and give lists of the events. A list ends before a fault of a file, and
        when its messages have :data:`PART_BYTES`, because decoding them takes many times that."""
        out: list[Event] = []
        size = 0
        for item in items:
            if isinstance(item, PacketRun):
                run = item
                while run.at < run.stop:
                    size = self._take_run(run, size, out)
                    if size > PART_BYTES:
                        yield out
                        out, size = [], 0
                continue
            if isinstance(item, Packet):
                size = self._take(item, size, out)
                if size > PART_BYTES:
                    yield out
                    out, size = [], 0
                continue
            if out:
                yield out
                out, size = [], 0
            yield list(self.feed(item))
        if out:
            yield out

    def _take_run(self, run: PacketRun, size: int, out: list[Event]) -> int:
        """Append the events of a run's packets, until their messages have :data:`PART_BYTES`. Return the
        bytes of the messages.

        :param size: the bytes of the messages before.
        """
        segments, data, link_type = self._segments, run.buffer, run.link_type
        raw = data
        while size <= _PART_BYTES and run.next():
            place = segments.look(data, run.data_start, run.data_end, link_type)
            if place < 0:
                self.packets += 1
                size = self._feed_packet(run.packet(), None, size, out)
                continue
            lane = self._lanes.find(data, place, segments.ends_size)
            if lane is None:
                size = self._take_long(run.packet(), raw[place : place + segments.ends_size], size, out)
                continue
            self.packets += 1
            if self.journal is not None:
                self.journal.tick(run.number, run.timestamp_ns)
            payload, length = _NO_BYTES, segments.length
            if length:
                payload = raw[segments.start : segments.start + length]
            segments.start = 0
            known = self._take_short(lane, run.number, run.timestamp_ns, payload, size, out)
            if known < 0:
                ends = raw[place : place + segments.ends_size]
                known = self._feed_packet(run.packet(), ends, size, out)
            size = known
        return size

    def _take(self, packet: Packet, size: int, out: list[Event]) -> int:
        """Append the events of a packet. Return the bytes of the messages, including those before."""
        segments, data = self._segments, packet.data
        raw, place = data, segments.look(data, 0, len(data), packet.link_type)
        if place < 0:
            self.packets += 1
            return self._feed_packet(packet, None, size, out)
        lane = self._lanes.find(data, place, segments.ends_size)
        if lane is None:
            return self._take_long(packet, raw[place : place + segments.ends_size], size, out)
        self.packets += 1
        if self.journal is not None:
            self.journal.tick(packet.number, packet.timestamp_ns)
        known = self._take_short(lane, packet.number, packet.timestamp_ns, data, size, out)
        if known < 0:
            return self._feed_packet(packet, raw[place : place + segments.ends_size], size, out)
        return known

    def _take_long(self, packet: Packet, ends: bytes, size: int, out: list[Event]) -> int:
        """Append the events of an ordinary packet without a fast path. Return the bytes as :meth:`_take`.

        :param ends: the bytes of its addresses and ports.
        """
        self.packets += 1
        if self.journal is not None:
            self.journal.tick(packet.number, packet.timestamp_ns)
        return self._feed_packet(packet, ends, size, out)

    def _feed_packet(self, packet: Packet, ends: bytes | None, size: int, out: list[Event]) -> int:
        """Append the events of any packet. Return the bytes as :meth:`_take`.

        :param ends: the bytes of an ordinary packet's addresses and ports.
        """
        found = self._segments.feed(packet)
        if not isinstance(found, Segment):
            if found is not None:
                out.append(found)
            return size
        segment = found
        if ends is None and self.journal is not None:
            self.journal.tick(packet.number, packet.timestamp_ns)
        size = _append(self._feed_segment(segment), size, out)
        if self._uses_lanes and (ends is not None or segment.flags & (SYN | ACK) == SYN | ACK):
            conversation = self._table.get((segment.source, segment.destination))
            if conversation is not None and (segment.length or not conversation.was_reset):
                self._lanes.open(conversation, segment)
        return size

    def _take_short(
        self, lane: Lane, packet: int, timestamp_ns: int, data: bytes, size: int, out: list[Event]
    ) -> int:
        """Append the events of an ordinary packet of a connection, whose headers were read. Return the bytes
        of the messages, including those before. Below 0 for another packet: nothing was taken.

        :param data: contains its payload, at the segment reader's position.
        """
        if self._older or (timestamp_ns > self._lingers_since and self._has_lingered(timestamp_ns)):
            return -1
        conversation, step = lane.conversation, self._step
        if step:
            step.clear()
        if not conversation.take(packet, timestamp_ns, lane.side, self._segments, data, step):
            return -1
        if self._segments.is_end:
            if conversation._is_over() and conversation.number not in self._closed:
                self._wait_for(conversation, timestamp_ns)
        elif not self._segments.length:
            return size
        found = self._close_step(conversation, packet, step)  # type: ignore[arg-type]  # nobody else's
        return _append(found, size, out) if found else size

    def _learn_secrets(self, key_log: bytes) -> list[Event]:
        """Take in lines of a key log, and return the events that waited for them."""
        step: list[Step] = []
        self._retry(self.secrets.add(key_log), self.packets, step)
        step += self._too_many_secrets()
        return self._publish(step) if step else []

    def _retry(self, names: Iterable[bytes], packet: int, step: list[Step]) -> None:
        """Retry the connections that waited for secrets of these names."""
        for conversation, events in self._awaiting.retry(names, packet):
            step += events
            self._count_held(conversation)

    def _too_many_secrets(self) -> list[Fault]:
        """The fault of dropped secrets; reported once."""
        if self._has_reported_secrets or not self.secrets.left_out:
            return []
        self._has_reported_secrets = True
        limit = plural(self._limits.secret_bytes, "byte")
        oldest = plural(self.secrets.left_out, "connection")
        message = f"TLS secrets take more than {limit}; the oldest were forgotten, those of {oldest} so far"
        return [fault("too-many-secrets", message)]

    def in_tls(self) -> Iterator[Connection]:
        """The rows, so far, of the remembered connections with TLS, by number. Another thread may call it."""
        found = {each.number: each for each in self._conversations() if each.speaks_tls}
        for _, conversation in sorted(found.items()):
            end = None if conversation.is_over else GOING_ON
            yield conversation.summary(end, self._adds_tcp)

    def close(self) -> Iterator[Event]:
        """End the capture: give the events that still wait, then every connection's row."""
        yield from self._segments.close()
        everyone: list[Conversation | RestingConnection] = [*set(self._conversations()), *self.resting.all()]
        everyone.sort(key=lambda each: each.number)
        events = self._take_late()
        for each in everyone:
            if not isinstance(each, RestingConnection):
                events += each.close(AT_THE_END, cut=True)
                continue
            conversation = self._wake(each.ends)
            assert conversation is not None
            events += conversation.close(AT_THE_END, cut=True)
            if self.forms is not None and conversation.is_ordinary(self.forms.reports_faults):
                self._remove(conversation)  # it has no row
            else:
                self._put_to_rest(conversation)
        yield from self._publish(events)
        for each in everyone:
            conversation = self._wake(each.ends) if isinstance(each, RestingConnection) else each
            if conversation is None:
                continue
            rows: list[Step] = []
            self._sum_up(conversation, None, rows)
            yield from cast(list[Event], rows)
            self._remove(conversation)
        if self._publisher.names_left_out:
            limit = plural(self._limits.topic_names, "topic id")
            often = plural(self._publisher.names_left_out, "time")
            message = f"the capture names more than {limit}; kdissect left out other names {often}"
            yield fault("too-many-names", message)
        yield from self._too_many_secrets()

    def _feed_segment(self, segment: Segment) -> list[Event]:
        timestamp_ns, flags, network = segment.timestamp_ns, segment.flags, segment.network
        source, destination = segment.source, segment.destination
        key: Key = (source, destination, network) if network else (source, destination)
        step: list[Step] = []
        if timestamp_ns > self._lingers_since and self._has_lingered(timestamp_ns):
            self._forget_lingering(timestamp_ns, step)
        if network and self._uses_lanes:
            self._uses_lanes = False
            self._lanes.clear()
            self._wake_all()
        conversation = self._table.get(key)
        if conversation is None and self.resting:
            conversation = self._wake((source, destination))
        if conversation is None and not self._uses_lanes and (network or self._tunnelled):
            conversation = self._tunnelled.find(segment, self._table)
        newest = conversation
        if conversation is not None and self._older:
            conversation = self._resolve_reopened(conversation, segment, step)
        before: Conversation | None = None
        if conversation is not None and conversation.has_lingered(timestamp_ns, _LINGER_NS):
            self._forget(conversation, step)
            conversation = None if newest is conversation else newest
        elif conversation is not None and newest and flags & SYN and conversation.is_reopened_by(segment):
            before = self._before_reopening(newest, segment, step)
            conversation = None
        if conversation is None and self.journal is not None and self.journal.is_set_aside(segment):
            return self._publish(step) if step else []
        if conversation is None:
            if self._remembered >= self._limits.connections:
                limit = plural(self._limits.connections, "connection")
                self._evict("too-many-connections", f"more than {limit}", segment.packet, step)
            if network and (crowd := self._tunnelled.crowd(key)):
                reason = f"more than {plural(len(crowd), 'connection')} in tunnels between the same endpoints"
                self._evict("too-many-connections", reason, segment.packet, step, crowd)
            number = self._publisher.numbering.connection(segment.packet)
            conversation = Conversation.__new__(Conversation)
            conversation.begin(
                number, segment, self._limits, self._ports, self.secrets, self._listener, self.forms
            )
            self._remembered += 1
            if self._table.get(key) is not before:
                before = None  # a limit dropped it
            self._table[key] = conversation
            if before is not None:
                self._reopened.add(conversation, before)
                self._hand_over(before, conversation)
            elif network:
                self._tunnelled.add(conversation, key)
            else:
                self._table[destination, source] = conversation
            if self._uses_lanes and len(self._table) > self.resting.most_entries:
                self._rest(timestamp_ns)
        was_over = conversation._is_over()
        found = conversation.feed(segment)
        if self._listener is not None:
            self._listener.segment(conversation, segment)
        if found:
            step += found
        if conversation._is_over() and not was_over and conversation.number not in self._closed:
            self._wait_for(conversation, segment.timestamp_ns)
        return self._close_step(conversation, segment.packet, step)

    def _close_step(self, conversation: Conversation, packet: int, step: list[Step]) -> list[Event]:
        """The events of a packet of a connection, after their effects on other connections."""
        if conversation._tls is not None:
            if self._awaited or (not conversation._skips_records and conversation.waits_for_secrets):
                self._awaiting.note(conversation)
            if self.journal is not None:
                self.journal.note_tls(conversation.endpoints)
            if not conversation._skips_records and self.secrets.taught:
                self._retry(self.secrets.take_taught(), packet, step)
        if conversation.held_bytes != conversation.counted_bytes:
            self._count_held(conversation)
            if self._held_bytes > self._most_waiting:
                self._relieve(packet, step)
        return self._publish(step) if step else step  # type: ignore[return-value]  # it is empty

    def _publish(self, step: list[Step]) -> list[Event]:
        """Number the events of one packet, learn from all of them, then return them."""
        told = self._publisher.publish(step)
        if told and self.journal is not None:
            self.journal.note_events(len(told))
        return told

    def _elapse(self, now_ns: int) -> list[Event]:
        """The events caused by the time of a segment that another dissector has."""
        step: list[Step] = []
        self._forget_lingering(now_ns, step)
        return self._publish(step) if step else []

    def _rest(self, now_ns: int) -> None:
        """Let the connections rest that have been silent for long."""
        resting = self.resting
        before_ns = now_ns - resting.silent_ns
        busy = {*self._older, *self._older.values()} if self._older else ()
        for (first, other, *_), conversation in list(self._table.items()):
            if first > other or conversation in busy or conversation.number in self._closed:
                continue
            if conversation.may_rest(before_ns):
                self._put_to_rest(conversation)
        resting.set_most_entries(len(self._table))

    def _put_to_rest(self, conversation: Conversation) -> None:
        first, other = conversation.endpoints
        self._lanes.close(conversation)
        self._table.pop((first, other), None)
        self._table.pop((other, first), None)
        self.resting.put(conversation)

    def _wake(self, ends: Ends) -> Conversation | None:
        """Put the resting connection between two ends into the table again; None if it does not rest."""
        one, other = ends
        conversation = self.resting.take(one, other)
        if conversation is not None:
            self._table[one, other] = self._table[other, one] = conversation
        return conversation

    def _wake_all(self) -> None:
        for each in self.resting.all():
            self._wake(each.ends)

    def _conversations(self) -> list[Conversation]:
        """All remembered connections that do not rest; some occur more than once."""
        return [*self._table.values(), *self._older.values()]

    def _resolve_reopened(self, newer: Conversation, segment: Segment, step: list[Step]) -> Conversation:
        """The connection of a segment, if ``newer`` may have ended the one before it."""
        older = self._older.get(newer)
        if older is None:
            return newer
        is_confirmed = self._reopened.is_confirmed(newer, segment)
        if is_confirmed is None:
            return older
        if is_confirmed:
            self._reuse(older, segment.packet, step)
        return newer

    def _before_reopening(
        self, conversation: Conversation, segment: Segment, step: list[Step]
    ) -> Conversation | None:
        """The connection between the endpoints of a new SYN that may still go on. A connection that has ended
        does not. A SYN that is not confirmed yet is dropped for a newer one."""
        older = self._older.get(conversation)
        going_on = conversation if older is None else older
        if going_on is not conversation:
            self._reuse(conversation, segment.packet, step)
        if not going_on.has_ended:
            return going_on
        self._reuse(going_on, segment.packet, step)
        return None

    def _reuse(self, conversation: Conversation, packet: int, step: list[Step]) -> None:
        """End a connection whose endpoints another connection uses now."""
        step += conversation.close(packet, cut=False)
        self._sum_up(conversation, "reused", step)
        self._remove(conversation)

    def _hand_over(self, conversation: Conversation, other: Conversation) -> None:
        """Give the endpoints of a connection to another one between the same endpoints."""
        first, last = conversation.endpoints
        self._lanes.close(conversation)
        for key in self._tunnelled.replace(conversation, other) or ((first, last), (last, first)):
            self._table[key] = other

    def _count_held(self, conversation: Conversation) -> None:
        held, before = conversation.held_bytes, conversation.counted_bytes
        self._held_bytes += held - before
        self._most_held = max(self._most_held, self._held_bytes)
        conversation.counted_bytes = held
        if not before:
            self._waits += 1
            conversation.waits_since = self._waits

    def _relieve(self, packet: int, step: list[Step]) -> None:
        """End the wait of the connections that hold most; among equal ones, of those that wait longest. This
        makes room for some time. If nothing waits any more and there is still not enough room, connections
        are forgotten."""
        limit = self._limits.waiting_bytes
        step += self._take_late()
        for each in self.resting.all():
            if each.held_bytes:
                self._wake(each.ends)
        holding = {each for each in self._conversations() if each.counted_bytes}
        for conversation in sorted(holding, key=lambda each: (-each.counted_bytes, each.waits_since)):
            if self._held_bytes <= limit - limit // RELIEF:
                return
            step += conversation.give_up(packet, limit)
            self._count_held(conversation)
        while self._held_bytes > limit - limit // RELIEF:
            message = f"more than {limit:,} bytes are buffered in all connections together"
            self._evict("buffer-limit", message, packet, step)

    def _take_late(self) -> list[Step]:
        late, self._late = self._late, []
        self._held_bytes -= self._late_bytes
        self._late_bytes = 0
        return list(late)

    def _remove(self, conversation: Conversation) -> None:
        """Remove a connection from all tables."""
        older = self._reopened.remove(conversation) if self._older else None
        if older is not None:
            self._hand_over(conversation, older)
        first, other = conversation.endpoints
        self._lanes.close(conversation)
        keys = None if self._uses_lanes else self._tunnelled.remove(conversation)
        for key in keys or ((first, other), (other, first)):
            if self._table.get(key) is conversation:
                del self._table[key]
        self._remembered -= 1
        if self._closed:
            self._closed.pop(conversation.number, None)
        self._held_bytes -= conversation.counted_bytes
        conversation.counted_bytes = 0
        if conversation._tls is not None:
            self._awaiting.forget(conversation)

    def _wait_for(self, conversation: Conversation, since_ns: int) -> None:
        """Let a finished connection linger. Less is kept of a reset one, because tens of thousands may be
        reset in a few seconds."""
        if conversation.was_reset:
            self._lanes.close(conversation)
            conversation.drop_kept_bytes()
        self._closed[conversation.number] = conversation
        entry = (since_ns, conversation.number)
        if since_ns > self._latest_lingers_since:  # in nearly all cases
            self._latest_lingers_since = since_ns
            self._lingering.append(entry)
        else:
            insort(self._lingering, entry)
        self._lingers_since = min(self._lingers_since, since_ns)
        if len(self._lingering) > LINGERING + 2 * len(self._closed):
            # Most were evicted, or their endpoints were reused.
            self._lingering = deque([each for each in self._lingering if each[1] in self._closed])
            self._lingers_since = self._lingering[0][0] if self._lingering else _NEVER
            self._latest_lingers_since = self._lingering[-1][0] if self._lingering else BEFORE_ALL

    def _has_lingered(self, now_ns: int) -> bool:
        """Whether the connection that lingers longest must be forgotten."""
        silent_ns = now_ns - self._lingers_since  # compiled, absurd times overflow to a negative time
        return silent_ns > _LINGER_NS or silent_ns < 0

    def _forget_lingering(self, now_ns: int, step: list[Step]) -> None:
        """Forget the connections that have lingered."""
        while self._lingering and self._has_lingered(now_ns):
            since_ns, number = self._lingering.popleft()
            self._lingers_since = self._lingering[0][0] if self._lingering else _NEVER
            if not self._lingering:
                self._latest_lingers_since = BEFORE_ALL
            conversation = self._closed.pop(number, None)
            if conversation is None:
                continue
            before = len(step)
            if conversation.has_lingered(now_ns, _LINGER_NS):
                self._forget(conversation, step)
            elif conversation._is_over():
                self._wait_for(conversation, now_ns)  # it went on
            if self.journal is not None and len(step) > before:
                self.journal.note_forgotten(since_ns, number, len(step) - before)

    def _forget(self, conversation: Conversation, step: list[Step]) -> None:
        """Add the row of a connection that has lingered, and forget the connection."""
        if not conversation._flushed:
            self._close_late(conversation, step)
        self._sum_up(conversation, None, step)
        self._remove(conversation)

    def _sum_up(self, conversation: Conversation, end: str | None, step: list[Step]) -> None:
        """Add the row of a connection. If exchanges may be brief, an ordinary connection has none. A
        connection without bytes has none either, after the first brief."""
        if self.forms is not None and conversation.is_ordinary(self.forms.reports_faults):
            return
        if self._publisher.has_published_briefs and conversation.is_silent():
            return
        step.append(conversation.summary(end, self._adds_tcp))

    def _close_late(self, conversation: Conversation, step: list[Step]) -> None:
        """Close a connection that may still have waiting bytes."""
        events = conversation.close(AT_THE_END, cut=False)
        if not events:
            return  # in nearly all cases
        begun = {id(event.exchange) for event in events if isinstance(event, Recognised)}
        for event in events:
            if not isinstance(event, Recognised | Completed) or id(event.exchange) not in begun:
                step.append(event)
                continue
            self._late.append(event)
            cost = LATE_BYTES + event.exchange.size()
            self._late_bytes += cost
            self._held_bytes += cost

    def _evict(
        self,
        kind: str,
        reason: str,
        packet: int,
        step: list[Step],
        among: Sequence[Conversation] | None = None,
    ) -> None:
        """Forget the tenth of the connections that has been silent longest, of all or of those in
        ``among``."""
        some = self._conversations() if among is None else among
        ages: dict[int, Conversation | RestingConnection] = {c.last_packet: c for c in some}
        if among is None:
            ages.update({each.last_packet: each for each in self.resting.all()})
        by_age = sorted(ages.items())
        silent = by_age[: max(1, len(by_age) // 10)]
        message = f"{reason}; kdissect gave up those that were silent longest: {len(silent):,}"
        step.append(fault(kind, message, packet))
        for _, found in silent:
            conversation = self._wake(found.ends) if isinstance(found, RestingConnection) else found
            assert conversation is not None
            end = None if conversation.is_closed else "evicted"
            step += conversation.close(packet, cut=False, evicted=True)
            self._sum_up(conversation, end, step)
            self._remove(conversation)


def _append(events: list[Event], size: int, out: list[Event]) -> int:
    """Append events. Return the bytes of their messages, including those before."""
    for event in events:
        out.append(event)
        if isinstance(event, Brief):
            brief = event
            size += brief.size()
        elif isinstance(event, Exchange):
            exchange = event
            size += exchange.size()
    return size
