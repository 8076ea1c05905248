"""A part of a capture, dissected alone: its edge first; its events when the seam before it is known."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kdissect.capture.fragments import Fragments
from kdissect.capture.reader import Item
from kdissect.capture.runs import PacketRun
from kdissect.dissect import Dissector, Event
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Endpoint, Packet, Segment
from kdissect.names import TopicNames
from kdissect.parts.journal import Ends, Forgot, PartJournal, PartNumbering, Told, ToldNames
from kdissect.parts.numbers import exchange_numbers, number_events
from kdissect.parts.ticks import Ticks
from kdissect.session.briefs import Interest
from kdissect.session.conversation import Connection, Conversation

VERSION = 4
"""Of :class:`PartEdge` and :class:`Seam`: both ends of a seam must be of the same."""


class PartEdge(NamedTuple):
    """What a part cannot settle alone, and how its own connections stand at its end."""

    version: int
    packets: int
    why_given_up: str | None
    """Why the part is to be dissected with the true state, in words; then the rest says nothing."""
    held_bytes: int = 0
    """The most that waited in it at a time, as the limits count it."""
    segments: Sequence[Segment] = ()
    """Those of other connections."""
    others: int = 0
    """Between how many pairs of ends these are."""
    own: Sequence[Ends] = ()
    """The ends between which its own connections began."""
    firsts: Sequence[int] = ()
    """First packets of its connections."""
    recognised: Sequence[int] = ()
    """Of each of its exchanges, the packet by which it was recognised."""
    told: Sequence[Told] = ()
    ticks: Ticks | None = None
    tls: Sequence[Endpoint] = ()
    """Endpoints whose connections with TLS were set aside, for the stitcher has the secrets."""
    conversations: Sequence[tuple[Conversation, int | None]] = ()
    """Its connections that are remembered; and since when they linger, where they are over."""
    had_fragments: bool = False
    """Whether it had fragments of packets."""
    fragments: Fragments | None = None
    """Those that wait for others at its end; None where nothing waits."""


class Seam(NamedTuple):
    """What a part must know of all others to give its events."""

    version: int
    exchanges: int
    """How many have a number before it."""
    connections: int
    recognised: Sequence[int]
    """Packets by which exchanges of other connections were recognised in it."""
    firsts: Sequence[int]
    """First packets of other connections that begin in it."""
    known: int
    """How many tellings of names there were before it."""
    told: Sequence[Told]
    """All of it, its own and others, as they were learned."""
    events: Sequence[tuple[int, Sequence[Event]]]
    """What came to light of other connections, by the packet that brought it."""
    forgets: Sequence[Forgot]
    """Which of these tell of connections that have lingered."""
    names_are_complete: bool = False


class Dissected:
    """A part that was dissected."""

    def __init__(self, edge: PartEdge, events: list[Event], journal: PartJournal) -> None:
        self.edge = edge
        self._events = events
        self._journal = journal

    def events(self, seam: Seam, names: TopicNames) -> list[Event]:
        """All events of the part in order, as one dissector gives them.

        :param names: what was told before the part; it learns what the part told.
        """
        assert seam.version == VERSION
        for each in seam.told:
            names.learn(each.topic_id, each.name, each.packet)
        connections = connection_numbers(self.edge, seam.connections, seam.firsts)
        self._number(seam, connections, names)
        return self._merged(seam, connections) if seam.events else self._events

    def _number(self, seam: Seam, connections: Mapping[int, int], names: TopicNames) -> None:
        """Give events their numbers and names."""
        before, numbers = seam.exchanges, None
        if seam.recognised:
            numbers = exchange_numbers(self.edge.recognised, seam.recognised, before)
        told = None if seam.names_are_complete else [each.step for each in seam.told]
        known = len(names.order) if told is None else seam.known
        number_events(self._events, self._journal.steps, before, numbers, connections, names, known, told)

    def _merged(self, seam: Seam, connections: Mapping[int, int]) -> list[Event]:
        steps, events, at = self._journal.steps, self._events, 0
        mine, theirs = _by_step(self._journal.forgets), _by_step(seam.forgets)
        out: list[Event] = []
        for step, others in seam.events:
            end = bisect_left(steps, step, at)
            out += events[at:end]
            at = end
            end = bisect_right(steps, step, at)
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
    may_go_on: Callable[[Ends], bool],
    limits: Limits = DEFAULTS,
    broker_ports: frozenset[int] = frozenset(),
    *,
    embedded: bool = False,
    tells_tcp: bool = True,
    briefs: Interest | None = None,
    tls: Collection[Endpoint] = (),
) -> Dissected:
    """Dissect a part alone.

    :param blocks: the packets of it. Where connections turn out to speak TLS, they are gone through again.
    :param true: has the secrets and the names that hold from the start. It dissects the same reading, so that
        what it knows of the forms of exchanges is of use here, and the other way round.
    :param briefs: as a :class:`~kdissect.dissect.Dissector` has it.
    :param tls: endpoints to which connections with TLS were opened before.
    """
    known = set(tls)
    while True:
        journal, numbering = PartJournal(may_go_on, known), PartNumbering()
        dissector = Dissector(
            limits, broker_ports, None, numbering, embedded=embedded, tells_tcp=tells_tcp, briefs=briefs,
            secrets=None if true is None else true.secrets, forms=None if true is None else true.forms,
        )  # fmt: skip
        names = ToldNames(journal)
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
        why = _why_given_up(dissector, journal, events)
    packets = dissector.packets
    if why is not None:
        return Dissected(PartEdge(VERSION, packets, why), [], journal)
    edge = PartEdge(
        VERSION,
        packets,
        None,
        dissector.most_held_bytes,
        journal.segments,
        journal.others,
        list(journal.own),
        *(_packed(numbering.firsts), _packed(numbering.recognised), names.news),
        journal.ticks,
        sorted(known.difference(tls)),
        dissector.handed_over(),
        dissector.had_fragments,
        dissector.fragments,
    )
    return Dissected(edge, events, journal)


def _packed(numbers: list[int]) -> Sequence[int]:
    """The same, as it is small on its way to another process."""
    return array("q", numbers)


def _events(
    blocks: Iterable[Sequence[Item | PacketRun]], dissector: Dissector, journal: PartJournal
) -> tuple[list[Event], str | None]:
    """What a part brings to light, up to the first connection with TLS; and why it is given up already."""
    events: list[Event] = []
    for items in blocks:
        if not all(isinstance(item, Packet | PacketRun) for item in items):
            return events, "the file has damage, or secrets, there"
        for found in dissector.feed_all(items):
            events += found
        if journal.tls:
            break
    return events, None


def _why_given_up(dissector: Dissector, journal: PartJournal, events: Sequence[Event]) -> str | None:
    if journal.is_tunnelled:
        return "packets came through tunnels"
    if len(events) != len(journal.steps):
        return "packets have broken headers"
    if journal.went_back:
        return "the clock was set back"
    if not dissector.stands_alone:
        return "something is not of one connection"
    if any(isinstance(each, Connection) and each.tls is not None for each in events):
        return "connections speak TLS"
    return None


def connection_numbers(edge: PartEdge, before: int, others: Sequence[int]) -> dict[int, int]:
    """The numbers of a part's connections in the whole capture, by their first packets.

    :param before: how many have a number before the part.
    :param others: first packets of other connections in it.
    """
    return {first: before + place + bisect_left(others, first) for place, first in enumerate(edge.firsts)}


def _by_step(forgets: Iterable[Forgot]) -> dict[int, list[Forgot]]:
    found: dict[int, list[Forgot]] = {}
    for each in forgets:
        found.setdefault(each.step, []).append(each)
    return found


def _interleaved(*sides: tuple[Sequence[Event], Sequence[Forgot]]) -> Iterator[Event]:
    """What one packet brought to light on both sides: connections that have lingered come first, the one that
    did so longest before the others."""
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
