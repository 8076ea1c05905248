"""The short way for ordinary packets: the results do not depend on which packets take it, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kdissect.capture.files import read_packets
from kdissect.capture.reader import Item
from kdissect.capture.runs import PacketRun
from kdissect.capture.segments import SegmentReader
from kdissect.dissect import Dissector, Event
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.message import Message
from kdissect.model import ACK, PSH, RST, SYN, Packet, parts
from kdissect.present.text import Lines
from kdissect.protocol.entities import GROUP, TRANSACTIONAL_ID
from kdissect.protocol.json_text import JsonText
from kdissect.session.briefs import Brief, Interest
from kdissect.session.conversation import Connection, Listener
from tests.amount import fewer_again, times
from tests.capture.build import ends_of, ethernet, ipv4, packet, tcp
from tests.cli.run import CAPTURES
from tests.damaged import packets_left, packets_of
from tests.lab import LAB
from tests.shared import SHARED

SHIPPED = sorted(CAPTURES.glob("*.pcap*"))
OTHERS = sorted(LAB.glob("*/capture.pcap*"))
if SHARED is not None:
    OTHERS += sorted((SHARED / "testdata/tcp").glob("*.pcap*"))
    OTHERS += sorted((SHARED / "testdata/captures/lab").glob("*/capture.pcap*"))
"""Further captures, if they are available."""
LARGE = 1_500_000
SEEDS = fewer_again((None, 1, 2), 2, None)
"""Of damages; the first is none."""


def by_the_short_way(dissector: Dissector, items: Iterable[Item]) -> Iterator[Event]:
    for events in dissector.feed_all(items):
        yield from events


def by_the_long_way(dissector: Dissector, items: Iterable[Item]) -> Iterator[Event]:
    for item in items:
        yield from dissector.feed(item)


def now_by_one_now_by_the_other(dissector: Dissector, items: Iterable[Item], dice: Random) -> Iterator[Event]:
    for item in items:
        way = by_the_short_way if dice.random() < 0.5 else by_the_long_way
        yield from way(dissector, [item])


def in_runs(dissector: Dissector, items: Iterable[Item | PacketRun]) -> Iterator[Event]:
    """Dissect as the command line does."""
    for events in dissector.feed_all(items):
        yield from events


def in_runs_of_any_length(
    dissector: Dissector, items: Iterable[Item | PacketRun], dice: Random
) -> Iterator[Event]:
    """Some packets in runs, some alone, some by the long way."""
    for item in items:
        for each in parts_of(item, dice) if isinstance(item, PacketRun) else [item]:
            if dice.random() < 0.6:
                yield from in_runs(dissector, [each])
            else:
                alone: Iterable[Any] = each if isinstance(each, PacketRun) else [each]
                yield from now_by_one_now_by_the_other(dissector, alone, dice)


def parts_of(run: PacketRun, dice: Random) -> Iterator[PacketRun]:
    """The same packets in shorter runs."""
    while run.at < run.stop:
        part = run.copy()
        for _ in range(dice.randrange(1, 40)):
            run.next()
        part.stop = run.at
        yield part


def packets_in_order(path: Path) -> Iterable[Item]:
    return read_packets([str(path)])


def runs_of(path: Path) -> Iterator[Item | PacketRun]:
    for items in read_packets([str(path)]).in_runs():
        yield from items


def told(event: Event) -> Any:
    """All facts of an event."""
    event = in_full(event)
    if not isinstance(event, Exchange):
        return event
    names = [each for each in Exchange.__slots__ if each not in ("request", "response", "topic_names")]
    values = {each: getattr(event, each) for each in names}
    return values, said(event.request), said(event.response), event.topics, event.error


def said(message: Message | None) -> Any:
    if message is None:
        return None
    head = (message.api_key, message.api_version, message.correlation_id, message.header_version)
    return head, message.body_start, message.header_faults, parts(message.frame)


def everything(
    path: Path, way: Any, dissector: Dissector | None = None, read: Any = packets_in_order
) -> list[Any]:
    """All events of a capture, in order, with those of its connections at the end."""
    dissector = Dissector() if dissector is None else dissector
    events = [told(event) for event in way(dissector, list(read(path)))]
    return [*events, *(told(event) for event in dissector.close()), dissector.packets, dissector.held_bytes]


def without_rows(expected: Iterable[Any], found: Iterable[Any]) -> list[Any]:
    """The events that are expected from a dissector that may give exchanges in brief. They lack the rows of
    ordinary connections of Kafka, also of those that were decrypted, and of some connections without data."""
    have_rows = {each.connection for each in found if isinstance(each, Connection)}
    return [each for each in expected if not may_have_no_row(each) or each.connection in have_rows]


def may_have_no_row(event: Any) -> bool:
    if not isinstance(event, Connection):
        return False
    said = event.bytes_to_broker + event.bytes_from_broker + event.gap_bytes
    if event.protocol == "kafka":
        is_read = event.tls is None or (event.tls["decrypted"] and event.tls["dark"] is None)
        return is_read and not (event.skipped_bytes or event.gaps or event.proxies)
    return event.protocol == "unknown" and not said


def in_full(event: Event | Brief) -> Event:
    """The exchange of a brief, which must name the same topics."""
    if not isinstance(event, Brief):
        return event
    exchange = event.exchange()
    assert event.topics() == exchange.topics
    assert event.latency_ns == exchange.latency_ns or exchange.response is None
    return exchange


def leaving_at_random(dissector: Dissector, items: Iterable[Item], dice: Random) -> Iterator[Event]:
    """Dissect by both ways at random. From any packet on, a connection may go the long way."""
    yield from now_by_one_now_by_the_other(dissector, _shaken(dissector, items, dice), dice)


def _shaken(dissector: Dissector, items: Iterable[Item], dice: Random) -> Iterator[Item]:
    for item in items:
        if dice.random() < 0.02:
            for conversation in dissector._conversations():
                if dice.random() < 0.5:
                    conversation.leave_quick()
        yield item


@pytest.mark.parametrize(
    "path", fewer_again([*SHIPPED, *OTHERS], 10), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_the_short_way_tells_what_the_long_one_tells(path: Path) -> None:
    if path.stat().st_size > LARGE:
        pytest.skip("large")
    expected = everything(path, by_the_long_way)
    assert everything(path, by_the_short_way) == expected
    dice = Random(path.stem)
    assert (
        everything(path, lambda dissector, items: now_by_one_now_by_the_other(dissector, items, dice))
        == expected
    )
    for way in (in_runs, partial(in_runs_of_any_length, dice=dice)):
        assert everything(path, way, read=runs_of) == expected


@pytest.mark.parametrize(
    "path", fewer_again([*SHIPPED, *OTHERS], 10), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_briefs_tell_what_exchanges_tell(path: Path) -> None:
    if path.stat().st_size > LARGE:
        pytest.skip("large")
    expected = everything(path, by_the_short_way)
    dice = Random(path.stem)
    for way in (by_the_short_way, partial(leaving_at_random, dice=dice)):
        found = everything(path, way, Dissector(briefs=Interest()))
        assert found == without_rows(expected, found)
    for way in (in_runs, partial(in_runs_of_any_length, dice=dice)):
        found = everything(path, way, Dissector(briefs=Interest()), runs_of)
        assert found == without_rows(expected, found)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_briefs_whose_bodies_nobody_looked_at_tell_the_same(path: Path) -> None:
    """This includes damaged messages. Which of their errors are routine is not compared."""
    asked = Interest(errors=False, records=False, bodies=False)
    for seed in SEEDS:
        pages = []
        for briefs in (asked._replace(bodies=True), asked):
            events = by_the_short_way(Dissector(briefs=briefs), packets_of(path, seed))
            pages.append([_but_routine(event) for event in events])
        assert pages[0] == pages[1]


def _but_routine(event: Event | Brief) -> Any:
    """All facts of an event, except which of its errors are routine; for a brief, also the names in it."""
    if not isinstance(event, Exchange | Brief):
        return told(event)
    exchange = in_full(event)
    assert isinstance(exchange, Exchange)
    exchange.routine = ()
    assert list(event.taught_topics()) == list(exchange.taught_topics())
    if isinstance(event, Brief):
        assert event.named(GROUP) == exchange.groups
        assert event.named(TRANSACTIONAL_ID) == exchange.transactional_ids
        assert event.has_records() or not any(place.data for place in exchange.record_sets())
    return told(exchange)


def test_connections_told_in_brief_have_no_rows_and_others_have_one() -> None:
    path = next(each for each in SHIPPED if each.stem.startswith("basic"))
    events = everything(path, by_the_short_way, Dissector(briefs=Interest()))
    usual = everything(path, by_the_short_way)
    rows, all_rows = ([each for each in some if isinstance(each, Connection)] for some in (events, usual))
    assert len(rows) < len(all_rows)
    assert [each for each in all_rows if not may_have_no_row(each)] == [
        each for each in rows if not may_have_no_row(each)
    ]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_lines_of_briefs_are_those_of_exchanges(path: Path) -> None:
    """This includes damaged messages, whose lines have their faults."""
    for seed in SEEDS:
        pages = []
        for briefs in (None, Interest()):
            lines, out = Lines(colour=True), JsonText()
            dissector = Dissector(briefs=briefs)
            for event in by_the_short_way(dissector, packets_of(path, seed)):
                if isinstance(event, Brief):
                    lines.write_brief(out, event)
                elif isinstance(event, Exchange):
                    lines.write(out, event)
            pages.append((out.take(), lines.widths))
        assert pages[0] == pages[1]


def test_most_exchanges_are_told_in_brief() -> None:
    path = next(each for each in SHIPPED if each.stem.startswith("basic"))
    found: list[type] = [
        type(event) for event in by_the_short_way(Dissector(briefs=Interest()), read_packets([str(path)]))
    ]
    assert found.count(Brief) > 2 * found.count(Exchange)


def test_a_login_and_what_is_behind_it_are_told_in_brief_and_say_who_is_logged_in() -> None:
    path = next(each for each in SHIPPED if each.stem == "sasl-scram")
    found: list[object] = list(by_the_short_way(Dissector(briefs=Interest()), read_packets([str(path)])))
    assert not [each for each in found if isinstance(each, Exchange)]
    last = [each for each in found if isinstance(each, Brief)][-1]
    assert last.principal
    assert last.exchange().principal == last.principal


def test_what_is_lost_around_a_login_is_told_as_on_the_long_way() -> None:
    path = next(each for each in SHIPPED if each.stem == "sasl-scram")
    for seed in range(times(40, 40)):
        pages = []
        for briefs in (None, Interest()):
            dissector = Dissector(briefs=briefs)
            events = [*by_the_short_way(dissector, packets_left(path, seed)), *dissector.close()]
            pages.append([told(each) for each in events if not isinstance(each, Connection) or each.gaps])
        assert pages[0] == pages[1]


def test_who_hears_or_looks_into_messages_gets_no_briefs() -> None:
    path = next(each for each in SHIPPED if each.stem.startswith("basic"))
    for dissector in (
        Dissector(briefs=Interest(), embedded=True),
        Dissector(briefs=Interest(), listener=Listener()),
    ):
        assert not [
            each for each in by_the_long_way(dissector, read_packets([str(path)])) if isinstance(each, Brief)
        ]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_most_packets_are_ordinary_and_their_connections_have_the_short_way(path: Path) -> None:
    dissector, reader = Dissector(), SegmentReader()
    packets = [item for item in read_packets([str(path)]) if isinstance(item, Packet)]
    for _ in dissector.feed_all(packets):
        pass
    ends = [found for packet in packets if (found := ends_of(reader, packet)) is not None]
    assert len(ends) > len(packets) / 2
    assert len(dissector._lanes.by_ends) % 2 == 0  # both directions of a connection
    assert set(ends) & set(dissector._lanes.by_ends)


def test_a_connection_that_is_forgotten_leaves_no_short_way() -> None:
    path = next(each for each in SHIPPED if each.stem.startswith("basic"))
    dissector = Dissector(DEFAULTS._replace(connections=2))
    for _ in dissector.feed_all(read_packets([str(path)])):
        pass
    assert len(dissector._lanes.by_ends) <= 4
    assert list(dissector.close())
    assert not dissector._lanes.by_ends


def test_a_connection_that_was_reset_has_no_short_way_until_data_come() -> None:
    dissector = Dissector()

    def feed(seq: int, flags: int, payload: bytes = b"") -> None:
        number = dissector.packets + 1
        given = packet(ethernet(ipv4(tcp(payload, seq, flags=flags))), number=number, timestamp_ns=number)
        for _ in dissector.feed_all([given]):
            pass

    feed(999, SYN)
    feed(1_000, ACK | PSH, b"GET / HTTP/1.1")
    assert len(dissector._lanes.by_ends) == 2
    feed(1_014, RST)
    assert not dissector._lanes.by_ends
    feed(1_014, RST | ACK)
    assert not dissector._lanes.by_ends
    feed(1_014, ACK | PSH, b"more")
    assert len(dissector._lanes.by_ends) == 2
    (row,) = [each for each in dissector.close() if isinstance(each, Connection)]
    assert (row.packets, row.end, row.bytes_to_broker) == (5, "rst", 18)
