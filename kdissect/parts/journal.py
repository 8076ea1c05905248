"""Journals of a dissector that works on a part of a capture: which packet led to which event, and which
segments were set aside."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kdissect.dissect import BEFORE_ALL, LINGER_NS, Journal
from kdissect.exchange import Exchange
from kdissect.model import ACK, SYN, Endpoint, Segment
from kdissect.names import TopicNames
from kdissect.numbering import Numbering
from kdissect.parts.packed import Ends, PackedNumbers
from kdissect.parts.ticks import Ticks
from kdissect.session.briefs import Brief

_BEFORE_ALL = BEFORE_ALL
_LINGER_NS = LINGER_NS


class ForgottenConnection(NamedTuple):
    """Events of a connection that has lingered long enough."""

    step: int
    """The packet that led to them."""
    since_ns: int
    """The time since which the connection lingered."""
    number: int
    """The connection's number."""
    events: int
    """The number of events."""


class LearnedName(NamedTuple):
    """A name of a topic id that was learned."""

    step: int
    topic_id: str
    name: str
    packet: int
    """The packet with the name."""


class PartJournal(Journal):
    """The journal of a part. Steps are packets, by their numbers in the whole capture.

    :param going_on: hashes of the ends of connections that may have begun before the part. Among thousands
        of connections, a question to another process's dissector for each took as long as dissecting a
        thirtieth of the part.
    :param set_aside: connections to these endpoints are set aside, too.
    """

    def __init__(self, going_on: Collection[int] = (), set_aside: Collection[Endpoint] = ()) -> None:
        super().__init__()
        self.steps = PackedNumbers()
        """The step of each event, in order."""
        self.forgotten: list[ForgottenConnection] = []
        self.ticks = Ticks()
        self.segments: list[Segment] = []
        """The segments that were set aside."""
        self.own_pairs: dict[Ends, None] = {}
        """The pairs of ends between which connections began."""
        self.is_tunnelled = False
        self.has_time_gone_back = False
        """Whether times went back by more than connections linger."""
        self.tls: set[Endpoint] = set()
        """Endpoints to which connections with TLS were opened."""
        self._going_on = frozenset(going_on)
        self._set_aside = frozenset(set_aside)
        self._other_pairs: set[Ends] = set()
        self._latest_ns = _BEFORE_ALL

    @property
    def other_pairs(self) -> int:
        """The number of pairs of ends of the segments that were set aside."""
        return len(self._other_pairs)

    def tick(self, packet: int, timestamp_ns: int) -> None:
        self.now = packet
        if timestamp_ns > self._latest_ns:
            self._latest_ns = timestamp_ns
            self.ticks.add(packet, timestamp_ns)
        else:
            back_ns = (
                self._latest_ns - timestamp_ns
            )  # compiled, it overflows for absurd times and becomes negative
            if back_ns > _LINGER_NS or back_ns < 0:
                self.has_time_gone_back = True

    def is_set_aside(self, segment: Segment) -> bool:
        if segment.network:
            self.is_tunnelled = True
        one, other = segment.source, segment.destination
        ends = (one, other) if one < other else (other, one)
        if ends in self.own_pairs:
            return False
        if ends not in self._other_pairs:
            begins = segment.flags & (SYN | ACK) == SYN
            if begins and other not in self._set_aside and hash(ends) not in self._going_on:
                self.own_pairs[ends] = None
                return False
            self._other_pairs.add(ends)
        self.segments.append(segment)
        return True

    def note_tls(self, ends: Ends) -> None:
        self.tls.add(ends[1])

    def note_forgotten(self, since_ns: int, number: int, events: int) -> None:
        self.forgotten.append(ForgottenConnection(self.now, since_ns, number, events))

    def note_events(self, events: int) -> None:
        self.steps.fill(self.now, events)


class SeamJournal(Journal):
    """The journal of the true dissector while it works on a part."""

    def __init__(self) -> None:
        super().__init__()
        self.forgotten: list[ForgottenConnection] = []

    def note_forgotten(self, since_ns: int, number: int, events: int) -> None:
        self.forgotten.append(ForgottenConnection(self.now, since_ns, number, events))


class PartNumbering(Numbering):
    """The numbers in a part: 0, 1, … for connections and 1, 2, … for exchanges. They have the same order as
    in the whole capture."""

    def __init__(self) -> None:
        super().__init__()
        self.first_packets = PackedNumbers()
        """The first packet of each connection."""
        self.recognised = PackedNumbers()
        """The packet by which each exchange was recognised."""

    def connection(self, packet: int) -> int:
        self.first_packets.add(packet)
        self.connections += 1
        return self.connections - 1

    def exchange(self, begun: Exchange | Brief) -> int:
        if isinstance(begun, Brief):
            brief = begun
            self.recognised.add(brief.recognised_packet)
        else:
            self.recognised.add(begun.recognised[0])
        self.exchanges += 1
        return self.exchanges


class PartNames(TopicNames):
    """The names that are learned in a part."""

    def __init__(self, journal: PartJournal) -> None:
        super().__init__()
        self._journal = journal
        self.learned: list[LearnedName] = []
        """The names that were new, in order."""

    def learn(self, topic_id: str, name: str, packet: int) -> None:
        known = len(self.order)
        super().learn(topic_id, name, packet)
        if len(self.order) > known:
            self.learned.append(LearnedName(self._journal.now, topic_id, name, packet))
