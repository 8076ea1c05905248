"""A capture → what must be known of all of it before a part of it can be dissected alone.

A bucket is the connections whose two endpoints fall into it. Each packet is read for each bucket, but only
those of its own connections are dissected. They are dissected first to tell the facts below, and again to
make the rows when all buckets' facts are in order. Facts are told in the order in which things come to light:

``connection``  its first packet, by which connections are numbered
``exchange``    what exchanges are numbered by: the packet that settled it, its connection's first packet,
                the stream offset, and its place among those that are equal in all of this
``name``        a topic id's name, the packet that told it, and the packet at which that came to light.
``load``        the most connections and the most held-back bytes at a time. Limits over all connections
                apply to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from kdissect.capture.segments import SegmentReader
from kdissect.dissect import AT_THE_END, Dissector, Event, Numbering
from kdissect.exchange import Exchange
from kdissect.model import Endpoint, Fault, Secrets, Segment
from kdissect.names import TopicNames
from kdissect.spark.progress import Note
from kdissect.spark.replay import new_dissector, packets_of
from kdissect.spark.settings import Settings

CONNECTION, EXCHANGE, NAME, LOAD = 0, 1, 2, 3


class Fact(NamedTuple):
    """One fact; what its numbers are depends on the kind."""

    kind: int
    packet: int
    """Of a name the packet at which it came to light; of a load the most connections."""
    first: int = 0
    """The first packet of the connection; of a name the packet that told it; of a load the most bytes."""
    offset: int = 0
    place: int = 0
    topic_id: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Bucket:
    """The connections that one task dissects."""

    index: int
    count: int

    def has(self, one: Endpoint, other: Endpoint) -> bool:
        """Whether the connection between these endpoints falls into it."""
        return self.index_of(one, other) == self.index

    def index_of(self, one: Endpoint, other: Endpoint) -> int:
        """The bucket, among as many, into which that connection falls."""
        return crc32(one + other if one < other else other + one) % self.count


class _FirstPackets(Numbering):
    """Calls connections by their first packet, which puts them in the same order; tells the facts."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: list[Fact] = []

    def connection(self, packet: int) -> int:
        super().connection(packet)
        self.facts.append(Fact(CONNECTION, packet))
        return packet

    def exchange(self, exchange: Exchange) -> int:
        place = super().exchange(exchange)
        packet, first, offset = exchange.recognised
        self.facts.append(Fact(EXCHANGE, packet, first, offset, place))
        return place


class _Told(TopicNames):
    """Names that come to light."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.facts: list[Fact] = []

    def learn(self, topic_id: str, name: str, packet: int) -> None:
        known = len(self.order)
        super().learn(topic_id, name, packet)
        if len(self.order) > known:
            self.facts.append(Fact(NAME, self.now, packet, topic_id=topic_id, name=name))


class Facts(Numbering):
    """Numbers that were counted over all buckets, in the order in which this one asks."""

    def __init__(self, numbers: Iterator[tuple[int, int, int]]) -> None:
        """:param numbers: kind, packet and number of this bucket's connections and exchanges."""
        super().__init__()
        self._numbers = numbers

    def connection(self, packet: int) -> int:
        super().connection(packet)
        return self._next(CONNECTION, packet) - 1

    def exchange(self, exchange: Exchange) -> int:
        super().exchange(exchange)
        return self._next(EXCHANGE, exchange.recognised[0])

    def _next(self, kind: int, packet: int) -> int:
        found = next(self._numbers, None)
        if found is None or found[:2] != (kind, packet):
            raise RuntimeError("the captures changed while they were read: run it again")
        return found[2]


Thing = tuple[int, Segment | Fault | int | Secrets]
"""A packet, and what it is to a bucket: its own segment, a fault, the time of somebody else's, or keys."""


def things_of(paths: Sequence[str], settings: Settings, bucket: Bucket, note: Note) -> Iterator[Thing]:
    """A capture as a bucket needs it. What belongs to no connection is the first bucket's."""
    segments = SegmentReader(settings.limits)
    is_first = bucket.index == 0
    for item in packets_of(paths, settings):
        if isinstance(item, Secrets):
            yield 0, item
            continue
        if isinstance(item, Fault):
            if is_first:
                yield 0, item
            continue
        note.packet(len(item.data))
        segment = segments.feed(item)
        if segment is None:
            continue
        if isinstance(segment, Fault):
            if is_first:
                yield item.number, segment
        elif bucket.has(segment.source, segment.destination):
            yield item.number, segment
        else:
            yield item.number, segment.timestamp_ns
    if is_first:
        for each in segments.close():
            yield AT_THE_END, each


def facts_of(things: Iterable[Thing], settings: Settings) -> Iterator[Fact]:
    """The facts of a bucket. Keys in the capture bring to light what waited in many connections at once. That
    has no order by packets, so a load above all limits says it.
    """
    numbering, told = _FirstPackets(), _Told()
    dissector = new_dissector(settings, numbering=numbering, learned=told)
    connections = held_bytes = 0
    for events in _steps(things, dissector, told):
        if events is None:
            connections = AT_THE_END
            break
        for _ in events:
            pass
        if numbering.facts:
            yield from numbering.facts
            numbering.facts.clear()
        if told.facts:
            yield from told.facts
            told.facts.clear()
        connections = max(connections, dissector.remembered)
        held_bytes = max(held_bytes, dissector.held_bytes)
    yield Fact(LOAD, connections, held_bytes)


def events_of(
    things: Iterable[Thing],
    settings: Settings,
    numbers: Iterator[tuple[int, int, int]],
    names: Sequence[tuple[int, int, str, str]],
) -> Iterator[Event]:
    """The events of a bucket, as if all had been dissected.

    :param numbers: kind, packet and number of its connections and exchanges, in the order of the packets.
    :param names: packet at which it came to light, packet that told it, topic id and name, of the names of
        all buckets, in that order.
    """
    complete = None
    if settings.two_pass:
        complete = TopicNames()
        for _, told, topic_id, name in names:
            complete.learn(topic_id, name, told)
    learned = _Ahead(() if settings.two_pass else names)
    dissector = new_dissector(settings, complete, Facts(numbers), None if settings.two_pass else learned)
    for events in _steps(things, dissector, learned):
        yield from events or ()


class _Ahead(TopicNames):
    """Learns what other buckets told, when it came to light."""

    def __init__(self, names: Sequence[tuple[int, int, str, str]]) -> None:
        super().__init__()
        self._names = names
        self._known = 0

    @property
    def now(self) -> int:
        """The packet that is dissected."""
        return self._names[self._known - 1][0] if self._known else 0

    @now.setter
    def now(self, packet: int) -> None:
        while self._known < len(self._names) and self._names[self._known][0] <= packet:
            _, told, topic_id, name = self._names[self._known]
            self.learn(topic_id, name, told)
            self._known += 1


def _steps(
    things: Iterable[Thing], dissector: Dissector, names: _Told | _Ahead
) -> Iterator[Iterable[Event] | None]:
    """Packet by packet what it brings to light; None for keys."""
    for packet, thing in things:
        if isinstance(thing, Fault):
            yield (thing,)
            continue
        if isinstance(thing, Secrets):
            yield None
            continue
        names.now = packet
        yield dissector.feed(thing)
    names.now = AT_THE_END
    yield dissector.close()
