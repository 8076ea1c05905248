"""Resting: connections that rest are told as if they had not, and take little memory."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kdissect.dissect import Dissector, Event
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Endpoint, Segment
from kdissect.session.briefs import Interest
from tests.cli.run import CAPTURES
from tests.kafka import Talk
from tests.session.runs import metadata, metadata_answer
from tests.test_dissect_short import runs_of, told

SHIPPED = sorted(CAPTURES.glob("*.pcap*"))
FEW = DEFAULTS._replace(connections=10)


def restful(dissector: Dissector) -> Dissector:
    """Let connections rest as soon as a new one begins."""
    dissector.resting.silent_ns = dissector.resting.fewest = dissector.resting.most_entries = 0
    return dissector


def made(briefs: bool, limits: Limits = DEFAULTS) -> Dissector:
    return Dissector(limits, briefs=Interest() if briefs else None)


@pytest.mark.parametrize("briefs", [False, True])
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_events_of_a_capture_are_the_same(path: Path, briefs: bool) -> None:
    usual, resting = made(briefs), restful(made(briefs))
    expected = [told(event) for events in usual.feed_all(runs_of(path)) for event in events]
    found = [told(event) for events in resting.feed_all(runs_of(path)) for event in events]
    assert (resting.held_bytes, resting.remembered) == (usual.held_bytes, usual.remembered)
    assert sorted(resting.pairs()) == sorted(usual.pairs())
    expected += [told(event) for event in usual.close()]
    found += [told(event) for event in resting.close()]
    assert found == expected
    assert (resting.remembered, len(resting.resting)) == (0, 0)


@pytest.mark.parametrize("limits", [DEFAULTS, FEW], ids=["many", "few"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("briefs", [False, True])
def test_connections_that_go_on_after_a_rest_are_the_same(briefs: bool, seed: int, limits: Limits) -> None:
    segments = shuffled([talk(number) for number in range(20)], Random(seed))
    usual, resting = made(briefs, limits), restful(made(briefs, limits))
    rested = 0
    for segment in segments:
        assert told_all(resting.feed(segment)) == told_all(usual.feed(segment))
        assert resting.remembered == usual.remembered
        rested += len(resting.resting)
    assert rested
    assert told_all(resting.close()) == told_all(usual.close())


def test_a_packet_from_a_tunnel_ends_all_rests() -> None:
    segments = [segment for number in range(6) for segment in talk(number)[:-2]]
    usual, resting = made(False), restful(made(False))
    for segment in segments:
        assert told_all(resting.feed(segment)) == told_all(usual.feed(segment))
    assert len(resting.resting) > 3
    for segment in [talk(9)[0], *(talk(number)[-2] for number in range(6))]:  # the first FIN of each
        inside = segment._replace(network=7)
        assert told_all(resting.feed(inside)) == told_all(usual.feed(inside))
        assert not len(resting.resting)
    assert told_all(resting.close()) == told_all(usual.close())


def test_connections_that_rest_are_found_and_handed_over() -> None:
    resting = restful(made(True))
    for number in range(5):
        for segment in talk(number)[:-2]:
            resting.feed(segment)
    assert len(resting.resting) == 4
    assert resting.remembers_any([ends_of(talk(0)[0])])
    assert not resting.remembers_any([ends_of(talk(7)[0])])
    assert [each.number for each, _ in resting.handed_over()] == [0, 1, 2, 3, 4]


def test_a_dissector_that_was_pickled_goes_on_with_its_resting_connections() -> None:
    usual, resting = made(False), restful(made(False))
    segments = shuffled([talk(number) for number in range(20)], Random(1))
    rested = 0
    dictionaries: set[bytes] = set()
    for at, segment in enumerate(segments):
        if at % 10 == 5:
            rested += len(resting.resting)
            dictionaries.add(resting.resting._dictionary)
            resting = pickle.loads(pickle.dumps(resting))
        assert told_all(resting.feed(segment)) == told_all(usual.feed(segment))
    assert rested
    assert len(dictionaries) == 2  # none at first, then one
    kept = resting.resting._shared
    assert resting.resting._places == {id(each): at for at, each in enumerate(kept) if each is not None}
    assert told_all(resting.close()) == told_all(usual.close())


def test_connections_that_hold_nothing_rest_while_others_make_room() -> None:
    limits = DEFAULTS._replace(waiting_bytes=20_000)
    usual, resting = made(True, limits), restful(made(True, limits))
    segments = [segment for number in range(6) for segment in talk(number)[:-2]]
    holder = talk(9)
    hole = next(each for each in holder if each.length)
    late = [
        hole._replace(seq=(hole.seq + 2_000 * at) & 0xFFFFFFFF, payload=b"x" * 1_000, length=1_000)
        for at in range(1, 60)
    ]
    held = list(chain(segments, holder[:3], late))
    for at, segment in enumerate(held):
        numbered = segment._replace(packet=at + 1, timestamp_ns=(at + 1) * 1_000_000)
        assert told_all(resting.feed(numbered)) == told_all(usual.feed(numbered))
    assert len(resting.resting) >= 5
    assert told_all(resting.close()) == told_all(usual.close())


def test_few_connections_do_not_rest() -> None:
    dissector = made(True)
    dissector.resting.silent_ns = 0
    for number in range(100):
        for segment in talk(number)[:-2]:
            dissector.feed(segment)
    assert len(dissector.resting) == 0


def test_a_silent_connection_takes_less_than_a_sixth_of_the_memory() -> None:
    assert memory(restful(made(True))) < memory(made(True)) / 6


def memory(dissector: Dissector) -> int:
    """The bytes that 300 silent connections take."""
    talks = [talk(number)[:-2] for number in range(300)]
    tracemalloc.start()
    try:
        for segments in talks:
            for segment in segments:
                dissector.feed(segment)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def talk(number: int) -> list[Segment]:
    """A connection with three exchanges, which both ends close, after those with lower numbers."""
    client = bytes((10, 0, 1, 1)) + (20_000 + number).to_bytes(2, "big")
    said = Talk(client=client)
    for correlation in range(3):
        said.ask(metadata(correlation)).answer(metadata_answer(correlation))
    before = 100 * number
    return [
        each._replace(packet=before + each.packet, timestamp_ns=(before + each.packet) * 1_000_000)
        for each in said.close().segments
    ]


def ends_of(segment: Segment) -> tuple[Endpoint, Endpoint]:
    return segment.source, segment.destination


def shuffled(talks: list[list[Segment]], dice: Random) -> list[Segment]:
    """The segments of all talks in any order among each other, as packets of one capture."""
    queues = [list(each) for each in talks]
    found: list[Segment] = []
    while queues:
        queue = dice.choice(queues[:8])
        packet = len(found) + 1
        found.append(queue.pop(0)._replace(packet=packet, timestamp_ns=packet * 1_000_000))
        queues = [each for each in queues if each]
    return found


def told_all(events: Iterable[Event]) -> list[Any]:
    return [told(event) for event in events]
