"""The pipeline: packets → exchanges, connections and faults.

    for item in read_packets(paths):
        for event in dissector.feed(item): …

Numbers are given here, because they count over all connections, and names of topic ids are attached
here, because they cross connections: a client learns a topic's id on one connection and uses it on
another.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from os import PathLike

from kdissect.capture.files import read_packets
from kdissect.capture.segments import SegmentReader
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import SYN, Endpoint, Fault, Packet, Secrets, Segment
from kdissect.names import TopicNames
from kdissect.session.conversation import Connection, Conversation, recognised_in_order
from kdissect.session.pairing import Completed, Recognised
from kdissect.session.pairing import Event as SessionEvent

Event = Exchange | Connection | Fault

LINGER_NS = 60_000_000_000
"""How long the endpoints of a connection that both ends closed stay its own: late acknowledgements and
retransmissions come in that time (RFC 9293's TIME-WAIT), and what comes later is another connection."""

AT_THE_END = sys.maxsize
"""The packet number by which things are known that only the capture's end settles."""


class Dissector:
    """The machine of a whole capture."""

    def __init__(
        self,
        limits: Limits = DEFAULTS,
        broker_ports: frozenset[int] = frozenset(),
        names: TopicNames | None = None,
    ) -> None:
        self._limits = limits
        self._ports = broker_ports
        self._segments = SegmentReader(limits)
        self._table: dict[tuple[Endpoint, Endpoint], Conversation] = {}
        """Each connection under both orders of its endpoints."""
        self._closed: deque[Conversation] = deque()
        """Those that are over, in that order: forgotten when they have lingered."""
        self._late: list[SessionEvent] = []
        """What only came to light when a connection was forgotten. When that is depends on the packets of
        others, and numbers must not: these exchanges are numbered at the end."""
        self._connections = 0
        self._exchanges = 0
        self.packets = 0
        self.names = TopicNames() if names is None else names
        self._names_are_complete = names is not None

    @property
    def connections(self) -> int:
        """How many connections were seen so far."""
        return self._connections

    def feed(self, item: Packet | Secrets | Fault) -> Iterable[Event]:
        """What one packet brings to light, in order."""
        if isinstance(item, Fault):
            return (item,)
        if isinstance(item, Secrets):
            return ()
        self.packets += 1
        segment = self._segments.feed(item)
        if segment is None:
            return ()
        if isinstance(segment, Fault):
            return (segment,)
        return self.feed_segment(segment)

    def close(self) -> Iterator[Event]:
        """The capture is over: what still waits comes out, then every connection's row."""
        yield from self._segments.close()
        conversations = sorted(set(self._table.values()), key=lambda c: c.number)
        events, self._late = self._late, []
        for conversation in conversations:
            events += conversation.close(AT_THE_END, cut=True)
        yield from self._publish(events)
        for conversation in conversations:
            yield conversation.summary()
        self._table.clear()

    def feed_segment(self, segment: Segment) -> Iterable[Event]:
        """As :meth:`feed`, for who has segments already."""
        key = (segment.source, segment.destination)
        out: list[Event] = []
        while self._closed and not self._closed[0].is_waited_for(segment.timestamp_ns, LINGER_NS):
            out += self._forget(self._closed.popleft(), segment.timestamp_ns)
        conversation = self._table.get(key)
        if conversation is not None and conversation.has_lingered(segment.timestamp_ns, LINGER_NS):
            out += self._forget(conversation, segment.timestamp_ns)
            conversation = None
        elif conversation is not None and segment.flags & SYN and conversation.is_reopened_by(segment):
            out += self._publish(conversation.close(segment.packet, cut=False))
            out.append(conversation.summary("reused"))
            conversation = None
        if conversation is None:
            if len(self._table) >= 2 * self._limits.connections:
                out += self._evict(segment.packet)
            conversation = Conversation(self._connections, segment, self._limits, self._ports)
            self._connections += 1
            self._table[key] = self._table[key[1], key[0]] = conversation
        was_over = conversation.is_over
        events = conversation.feed(segment)
        if events:
            out += self._publish(events)
        if conversation.is_over and not was_over:
            self._closed.append(conversation)
        return out

    def _forget(self, conversation: Conversation, now_ns: int) -> Iterator[Event]:
        """Give out the row of a connection that is over, unless it went on or its endpoints are in use
        for another."""
        first, other = conversation.endpoints
        if self._table.get((first, other)) is not conversation:
            return
        if not conversation.has_lingered(now_ns, LINGER_NS):
            return
        events = conversation.close(AT_THE_END, cut=False)
        begun = {id(event.exchange) for event in events if isinstance(event, Recognised)}
        for event in events:
            late = not isinstance(event, Fault) and id(event.exchange) in begun
            if late:
                self._late.append(event)
            else:
                yield from self._publish([event])
        yield conversation.summary()
        del self._table[first, other], self._table[other, first]

    def _evict(self, packet: int) -> Iterator[Event]:
        """Forget the tenth of the connections that has been silent longest."""
        by_age = sorted({c.last_packet: c for c in self._table.values()}.items())
        for _, conversation in by_age[: max(1, len(by_age) // 10)]:
            end = None if conversation.is_closed else "evicted"
            yield from self._publish(conversation.close(packet, cut=False, evicted=True))
            yield conversation.summary(end)
            first, other = conversation.endpoints
            del self._table[first, other], self._table[other, first]

    def _publish(self, events: list[SessionEvent]) -> Iterator[Event]:
        for begun in recognised_in_order(events):
            self._exchanges += 1
            begun.exchange.number = self._exchanges
            self._learn(begun.exchange)
        for event in events:
            if isinstance(event, Fault):
                yield event
            elif isinstance(event, Completed):
                exchange = event.exchange
                self._learn(exchange)
                packet = AT_THE_END if self._names_are_complete else exchange.last_packet
                exchange.topic_names = self.names.up_to(packet)
                yield exchange

    def _learn(self, exchange: Exchange) -> None:
        if not self._names_are_complete:
            for topic_id, name, packet in exchange.taught_topics():
                self.names.learn(topic_id, name, packet)


def dissect(
    items: Iterable[Packet | Secrets | Fault],
    limits: Limits = DEFAULTS,
    broker_ports: frozenset[int] = frozenset(),
    names: TopicNames | None = None,
) -> Iterator[Event]:
    """Everything that a capture holds, in the order in which it is complete.

    ``names`` are those of an earlier pass over the same capture, which then count from its start.
    """
    dissector = Dissector(limits, broker_ports, names)
    for item in items:
        yield from dissector.feed(item)
    yield from dissector.close()


def read(
    paths: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    ports: Iterable[int] = (),
    two_pass: bool = False,
    limits: Limits = DEFAULTS,
    on_fault: Callable[[Fault], None] | None = None,
    on_connection: Callable[[Connection], None] | None = None,
) -> Iterator[Exchange]:
    """The exchanges of a capture, each as soon as it is complete; bodies are decoded when asked for.

    :param paths: capture files, which together are one capture; ``"-"`` is standard input.
    :param ports: ports whose connections are taken for Kafka's whatever they look like.
    :param two_pass: read twice, so that names of topic ids hold from the start.
    :param on_fault: is given every fault that is no exchange's own, damage of the files among them; those
        of an exchange are its ``faults``.
    :param on_connection: is given what is known of every connection when it is over.
    :raises CaptureError: none of the files can be read as a capture.
    """
    files = [paths] if isinstance(paths, str | PathLike) else list(paths)
    broker_ports = frozenset(ports)
    names = None
    if two_pass:
        first = Dissector(limits, broker_ports)
        for item in read_packets(files, limits):
            for _ in first.feed(item):
                pass
        for _ in first.close():
            pass
        names = first.names
    for event in dissect(read_packets(files, limits), limits, broker_ports, names):
        if isinstance(event, Exchange):
            yield event
        elif isinstance(event, Fault):
            if on_fault is not None:
                on_fault(event)
        elif on_connection is not None:
            on_connection(event)
