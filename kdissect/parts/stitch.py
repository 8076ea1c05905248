"""Takes the true dissector over a part by its edge, and returns the seam that the part needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdissect.dissect import LINGER_NS, Dissector, Event
from kdissect.limits import Limits
from kdissect.model import Segment
from kdissect.parts.journal import LearnedName, SeamJournal
from kdissect.parts.packed import PackedNumbers
from kdissect.parts.part import VERSION, PartEdge, Seam
from kdissect.parts.ticks import Ticks
from kdissect.session.pending import REQUEST_BYTES
from kdissect.tcp.waiting import PIECE_BYTES

SHORTEST_REQUEST = 14
"""The fewest bytes of a request with its size."""
COST = 16 + REQUEST_BYTES // SHORTEST_REQUEST
"""The most bytes of memory that one byte takes while it waits, besides the cost of its packet."""


SHORTEST_NAME = 18
"""The fewest bytes with the id and the name of a topic."""


class Stitcher:
    """Has the true state at a seam.

    :param dissector: has dissected all packets before the seam.
    """

    def __init__(self, dissector: Dissector, limits: Limits) -> None:
        self._dissector = dissector
        self._limits = limits

    def refusal_reason(self, edge: PartEdge) -> str | None:
        """The reason why a part must be dissected with the true state; None if its edge is enough."""
        dissector, limits = self._dissector, self._limits
        if edge.version != VERSION:
            return "it is of another version"
        if edge.given_up_reason is not None:
            return edge.given_up_reason
        if dissector.is_crossed(edge.had_fragments):
            return "something waits that is not of one connection"
        if dissector.remembered + len(edge.first_packets) + edge.other_pairs > limits.connections:
            return "there may be too many connections"
        length = sum([each.length for each in edge.segments])
        others_held = PIECE_BYTES * len(edge.segments) + COST * length
        if dissector.held_bytes + edge.held_bytes + others_held > limits.waiting_bytes:
            return "too much may wait"
        most_told = len(edge.learned_names) + length // SHORTEST_NAME
        if len(dissector.names) + most_told > limits.topic_names:
            return "there may be too many names"
        if dissector.remembers_any(edge.own_pairs):
            return "a connection began between ends that have one"
        return None

    def take(self, edge: PartEdge) -> Seam:
        """Dissect the edge of a part, and return the part's seam."""
        dissector = self._dissector
        numbering = dissector.numbering
        exchanges, connections = numbering.exchanges, numbering.connections
        known, learned = len(dissector.names.order), _Learned(edge.learned_names)
        journal = SeamJournal()
        recognised, firsts = PackedNumbers(), PackedNumbers()
        events: list[tuple[int, Sequence[Event]]] = []
        own_exchanges = own_connections = 0
        every_exchange, every_connection = edge.recognised, edge.first_packets
        most_exchanges, most_connections = every_exchange.count(), every_connection.count()
        dissector.journal = journal
        try:
            for step, thing in self._stops(edge):
                while own_exchanges < most_exchanges and every_exchange.at(own_exchanges) < step:
                    own_exchanges += 1
                    numbering.exchanges += 1
                while own_connections < most_connections and every_connection.at(own_connections) < step:
                    own_connections += 1
                    numbering.connections += 1
                learned.up_to(step, dissector)
                journal.now = step
                exchanges_before, connections_before = numbering.exchanges, numbering.connections
                names_before = len(dissector.names.order)
                found = dissector.feed(thing)
                if numbering.exchanges != exchanges_before:
                    recognised.fill(step, numbering.exchanges - exchanges_before)
                if numbering.connections != connections_before:
                    firsts.fill(step, numbering.connections - connections_before)
                learned.note(step, names_before, dissector)
                if found:
                    events.append((step, found))
        finally:
            dissector.journal = None
        numbering.exchanges += most_exchanges - own_exchanges
        numbering.connections += most_connections - own_connections
        learned.up_to(None, dissector)
        dissector.packets += edge.packets
        if edge.fragments is not None:
            dissector.take_fragments(edge.fragments)
        self._adopt(edge, exchanges, connections, recognised, firsts)
        return Seam(
            *(VERSION, exchanges, connections, recognised, firsts, known, learned.all, events),
            *(journal.forgotten, dissector.names_are_complete),
        )

    def _stops(self, edge: PartEdge) -> Iterator[tuple[int, Segment | int]]:
        """The inputs of the true dissector, each with its packet: segments, and times at which connections
        have lingered long enough."""
        expiries = _Expiries(self._dissector, edge.ticks)
        for segment in edge.segments:
            packet = segment.packet
            while (expiry := expiries.before(packet)) is not None:
                yield expiry
            yield packet, segment
        while (expiry := expiries.before(None)) is not None:
            yield expiry

    def _adopt(
        self,
        edge: PartEdge,
        exchanges: int,
        connections: int,
        recognised: PackedNumbers,
        firsts: PackedNumbers,
    ) -> None:
        """Take in the part's own connections, with their true numbers."""

        def exchange_number(local: int) -> int:
            return exchanges + local + recognised.place_of(edge.recognised.at(local - 1))

        def connection_number(local: int) -> int:
            return connections + local + firsts.place_of(edge.first_packets.at(local))

        for conversation, since_ns in edge.conversations:
            conversation.renumber(connection_number(conversation.number), exchange_number)
            self._dissector.adopt(conversation, since_ns)


class _Expiries:
    """The packets of a part at which connections of the true dissector have lingered long enough.

    :param ticks: the ticks of the part; None if it has none.
    """

    def __init__(self, dissector: Dissector, ticks: Ticks | None) -> None:
        self._dissector = dissector
        self._ticks = ticks
        self._since_ns: int | None = None
        self._next: tuple[int, int] | None = None
        """The next such packet. It is valid while the connection that lingers longest stays the same.
        Searching at every segment took a third of the time of stitching."""

    def before(self, packet: int | None) -> tuple[int, int] | None:
        """The next such packet before ``packet`` (None: anywhere), and its time. Return None without one."""
        ticks, since_ns = self._ticks, self._dissector.lingers_since
        if ticks is None or since_ns is None:
            return None
        if since_ns != self._since_ns:
            self._since_ns, self._next = since_ns, ticks.later_than(since_ns + LINGER_NS)
        if self._next is None or (packet is not None and self._next[0] >= packet):
            return None
        return self._next


class _Learned:
    """Merges the names of the part and of other connections, in the order in which they were learned."""

    def __init__(self, own: Sequence[LearnedName]) -> None:
        self.all: list[LearnedName] = []
        """The names that were new."""
        self._own = own
        self._at = 0

    def up_to(self, step: int | None, dissector: Dissector) -> None:
        """Learn the part's names up to a packet; None: all of them."""
        while self._at < len(self._own) and (step is None or self._own[self._at].step <= step):
            told = self._own[self._at]
            known = len(dissector.names.order)
            if not dissector.names_are_complete:
                dissector.names.learn(told.topic_id, told.name, told.packet)
            self.note(told.step, known, dissector)
            self._at += 1

    def note(self, step: int, known: int, dissector: Dissector) -> None:
        """Note the names that are new since the dissector had ``known`` of them."""
        order = dissector.names.order
        if len(order) > known:  # hardly ever
            self.all += [LearnedName(step, *each) for each in order[known:]]
