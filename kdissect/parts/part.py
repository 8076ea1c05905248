"""A part of a capture, dissected alone. It gives its edge first, and its events when its seam is known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from kdissect.capture.fragments import Fragments
from kdissect.capture.reader import Item
from kdissect.capture.runs import PacketRun
from kdissect.dissect import Dissector, Event
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Endpoint, Packet, Segment
from kdissect.names import TopicNames
from kdissect.parts.journal import ForgottenConnection, LearnedName, PartJournal, PartNames, PartNumbering
from kdissect.parts.numbers import number_events, speak_tls, true_numbers
from kdissect.parts.packed import Ends, EndsList, PackedNumbers, Segments
from kdissect.parts.ticks import Ticks
from kdissect.session.briefs import Interest
from kdissect.session.conversation import Conversation

VERSION = 6
"""The version of :class:`PartEdge` and :class:`Seam`. The part and the stitcher must have the same."""


_NO_NUMBERS = PackedNumbers()


class PartEdge(NamedTuple):
    """The result of a part for the stitcher: what it could not dissect alone, and its own connections at its
    end."""

    version: int
    packets: int
    given_up_reason: str | None
    """The reason, in words, why the stitcher must dissect the part; then the other fields mean nothing."""
    held_bytes: int = 0
    """The most bytes that waited in the part at one time, as the limits count them."""
    segments: Sequence[Segment] = ()
    """The segments of other connections."""
    other_pairs: int = 0
    """The number of pairs of ends of these segments."""
    own_pairs: Sequence[Ends] = ()
    """The pairs of ends between which its own connections began."""
    first_packets: PackedNumbers = _NO_NUMBERS
    """The first packet of each of its connections."""
    recognised: PackedNumbers = _NO_NUMBERS
    """The packet by which each of its exchanges was recognised."""
    learned_names: Sequence[LearnedName] = ()
    ticks: Ticks | None = None
    tls: Sequence[Endpoint] = ()
    """The endpoints whose connections with TLS were set aside, because only the stitcher has the secrets."""
    conversations: Sequence[tuple[Conversation, int | None]] = ()
    """Its connections that are remembered; for those that are closed, the time since which they linger."""
    had_fragments: bool = False
    """Whether it had fragments of packets."""
    fragments: Fragments | None = None
    """The fragments that wait for others at its end; None if nothing waits."""


class Seam(NamedTuple):
    """The facts from outside a part that it needs to give its events."""

    version: int
    exchanges: int
    """How many exchanges have a number before the part."""
    connections: int
    """How many connections have a number before the part."""
    recognised: PackedNumbers
    """The packets by which exchanges of other connections were recognised in the part."""
    first_packets: PackedNumbers
    """The first packets of other connections that begin in the part."""
    names_before: int
    """How many names were learned before the part."""
    learned_names: Sequence[LearnedName]
    """All names learned in the part, from its own and other connections, in order."""
    events: Sequence[tuple[int, Sequence[Event]]]
    """Events of other connections, by the packet that led to them."""
    forgotten: Sequence[ForgottenConnection]
    """Which of these events are of connections that have lingered."""
    names_are_complete: bool = False


class Dissected:
    """A part that was dissected."""

    def __init__(self, edge: PartEdge, events: list[Event], journal: PartJournal) -> None:
        self.edge = edge
        self._events = events
        self._journal = journal

    def events(self, seam: Seam, names: TopicNames) -> list[Event]:
        """All events of the part in order, as one dissector gives them.

        :param names: the names learned before the part. The names of the part are added.
        """
        assert seam.version == VERSION
        for each in seam.learned_names:
            names.learn(each.topic_id, each.name, each.packet)
        connections = true_numbers(self.edge.first_packets, seam.first_packets, seam.connections)
        self._number(seam, connections, names)
        return self._merged(seam, connections) if seam.events else self._events

    def _number(self, seam: Seam, connections: PackedNumbers, names: TopicNames) -> None:
        """Give events their numbers and names."""
        before, numbers = seam.exchanges, None
        if len(seam.recognised):
            numbers = true_numbers(self.edge.recognised, seam.recognised, before + 1)
        told = None if seam.names_are_complete else [each.step for each in seam.learned_names]
        known = len(names.order) if told is None else seam.names_before
        number_events(self._events, self._journal.steps, before, numbers, connections, names, known, told)

    def _merged(self, seam: Seam, connections: PackedNumbers) -> list[Event]:
        steps, events, at = self._journal.steps, self._events, 0
        mine, theirs = _by_step(self._journal.forgotten), _by_step(seam.forgotten)
        out: list[Event] = []
        for step, others in seam.events:
            end = steps.place_of(step, at)
            out += events[at:end]
            at = end
            end = steps.place_of(step + 1, at)
            if end == at:
                out += others
                continue
            own = [each._replace(number=connections[each.number]) for each in mine.get(step, ())]
            out += _interleaved((events[at:end], own), (others, theirs.get(step, [])))
            at = end
        out += events[at:]
        return out


def dissect_part(
    blocks: Iterable[Sequence[Item | PacketRun]],
    true: Dissector | None,
    going_on: Collection[int] = (),
    limits: Limits = DEFAULTS,
    broker_ports: frozenset[int] = frozenset(),
    *,
    embedded: bool = False,
    adds_tcp: bool = True,
    briefs: Interest | None = None,
    tls: Collection[Endpoint] = (),
) -> Dissected:
    """Dissect a part alone.

    :param blocks: the packets of the part. They are read again if connections turn out to speak TLS.
    :param true: has the secrets and the names that hold from the start. It dissects the same capture, so both
        dissectors share what they learn about the forms of exchanges.
    :param going_on: hashes of the ends, the smaller one first, of connections that may have begun before the
        part. If two connections have the same hash, one of them may be left to the stitcher without need.
    :param briefs: see :class:`~kdissect.dissect.Dissector`.
    :param tls: endpoints to which connections with TLS were opened before.
    """
    known = set(tls)
    while True:
        journal, numbering = PartJournal(going_on, known), PartNumbering()
        dissector = Dissector(
            limits, broker_ports, None, numbering, embedded=embedded, adds_tcp=adds_tcp, briefs=briefs,
            secrets=None if true is None else true.secrets, forms=None if true is None else true.forms,
        )  # fmt: skip
        names = PartNames(journal)
        dissector.names = names
        dissector.journal = journal
        events, why = _events(blocks, dissector, journal)
        if not journal.tls:
            break
        if journal.tls <= known:
            why = "connections speak TLS"
            break
        known |= journal.tls
    if why is None:
        why = _given_up_reason(dissector, journal, events)
    packets = dissector.packets
    if why is not None:
        return Dissected(PartEdge(VERSION, packets, why), [], journal)
    edge = PartEdge(
        VERSION,
        packets,
        None,
        dissector.most_held_bytes,
        Segments(journal.segments),
        journal.other_pairs,
        EndsList(journal.own_pairs),
        *(numbering.first_packets, numbering.recognised, names.learned),
        journal.ticks,
        sorted(known.difference(tls)),
        dissector.handed_over(),
        dissector.had_fragments,
        dissector.fragments,
    )
    return Dissected(edge, events, journal)


def _events(
    blocks: Iterable[Sequence[Item | PacketRun]], dissector: Dissector, journal: PartJournal
) -> tuple[list[Event], str | None]:
    """The events of a part up to the first connection with TLS; and why the part is given up, if that is
    known."""
    events: list[Event] = []
    for items in blocks:
        if not all(isinstance(item, Packet | PacketRun) for item in items):
            return events, "the file has damage, or secrets, there"
        for found in dissector.feed_all(items):
            events += found
        if journal.tls:
            break
    return events, None


def _given_up_reason(dissector: Dissector, journal: PartJournal, events: list[Event]) -> str | None:
    if journal.is_tunnelled:
        return "packets came through tunnels"
    if len(events) != len(journal.steps):
        return "packets have broken headers"
    if journal.has_time_gone_back:
        return "the clock was set back"
    if not dissector.stands_alone:
        return "something is not of one connection"
    if speak_tls(events):
        return "connections speak TLS"
    return None


def _by_step(forgets: Iterable[ForgottenConnection]) -> dict[int, list[ForgottenConnection]]:
    found: dict[int, list[ForgottenConnection]] = {}
    for each in forgets:
        found.setdefault(each.step, []).append(each)
    return found


def _interleaved(*sides: tuple[Sequence[Event], Sequence[ForgottenConnection]]) -> Iterator[Event]:
    """The events that one packet led to on both sides. Events of connections that have lingered come first,
    from the longest time to the shortest."""
    groups: list[tuple[int, int, Sequence[Event]]] = []
    rest: list[Event] = []
    for events, forgets in sides:
        at = 0
        for each in forgets:
            groups.append((each.since_ns, each.number, events[at : at + each.events]))
            at += each.events
        rest += events[at:]
    for _, _, events in sorted(groups, key=lambda group: group[:2]):
        yield from events
    yield from rest
