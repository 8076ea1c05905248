"""Copies are of one exchange where sizes and places in the streams agree."""

from __future__ import annotations

from kdissect.exchange import Exchange
from kdissect.message import parse_request
from kdissect.model import Direction, Frame
from kdissect.points.copies import Sighting
from kdissect.points.traces import APART_NS, Trace
from tests.kafka import request
from tests.tcp.segments import BROKER, CLIENT


def beat(offset: int, member: str = "m") -> Exchange:
    """A request at a place in its stream."""
    payload = request("Heartbeat", 1, 7, groupId="g", generationId=1, memberId=member)
    frame = Frame(Direction.TO_BROKER, offset, payload, len(payload), 1, 1, 1, 1, (1,))
    return Exchange(0, CLIENT, BROKER, request=parse_request(frame))


def sighting(trace: Trace, first: Exchange) -> Sighting:
    """What point 0 saw first."""
    found = Sighting(1, trace, (0, 7), 0)
    found.begin(0, first)
    return found


def trace() -> Trace:
    return Trace(0, (CLIENT, BROKER), 0)


def test_a_message_of_another_size_is_another() -> None:
    assert not sighting(trace(), beat(0)).takes(1, beat(0, "another"), 0)
    assert sighting(trace(), beat(0)).takes(1, beat(0), 0)


def test_offsets_of_two_points_differ_by_one_number_all_the_time() -> None:
    """A point that begins in mid-stream counts from elsewhere: an id that comes again has another place."""
    known = trace()
    assert sighting(known, beat(1_000)).takes(1, beat(400), 0)
    assert sighting(known, beat(1_500)).takes(1, beat(900), 0)
    assert not sighting(known, beat(1_500)).takes(1, beat(901), 0)


def test_a_point_sees_an_exchange_once_and_not_much_later() -> None:
    found = sighting(trace(), beat(0))
    assert not found.takes(0, beat(0), 0)
    assert not found.takes(1, beat(0), APART_NS + 1)
    assert found.takes(1, beat(0), APART_NS)


def test_a_complete_exchange_may_be_another_object_than_the_one_that_began() -> None:
    """A connection that rested goes on with a copy of its waiting request."""
    first = sighting(trace(), beat(0))
    first.complete(0, beat(100))
    side = first.outlines[0].sides()[0]
    assert side is not None
    assert side[1] == 100
