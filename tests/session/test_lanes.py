"""Lanes: the connection of a packet, by the bytes of its ends."""

from __future__ import annotations

import pytest

from kdissect.model import Endpoint
from kdissect.session.conversation import Conversation
from kdissect.session.lanes import RECENT_LANES, LaneTable
from tests.kafka import Talk


def a_talk(port: int, address: bytes = bytes((10, 0, 0))) -> Talk:
    client, broker = (
        address + bytes((host,)) + number.to_bytes(2, "big") for host, number in ((1, port), (2, 9092))
    )
    return Talk(client=client, broker=broker)


def ends_of(source: Endpoint, destination: Endpoint) -> bytes:
    """As a packet has them: both addresses, both ports."""
    return source[:-2] + destination[:-2] + source[-2:] + destination[-2:]


def opened(lanes: LaneTable, talk: Talk, number: int = 0) -> Conversation:
    conversation = Conversation(number, talk.segments[0])
    lanes.open(conversation, talk.segments[0])
    return conversation


@pytest.mark.parametrize("address", [bytes((10, 0, 0)), bytes(15)])
def test_packets_of_both_directions_find_their_connection_and_side(address: bytes) -> None:
    lanes, talk = LaneTable(), a_talk(1001, address)
    conversation = opened(lanes, talk)
    for source, destination, side in ((talk.client, talk.broker, 0), (talk.broker, talk.client, 1)):
        ends = ends_of(source, destination)
        for data, place in ((ends, 0), (b"before" + ends + b"behind", 6)):
            lane = lanes.find(data, place, len(ends))
            assert lane is not None
            assert lane.conversation is conversation
            assert lane.side == side


def test_other_ends_find_nothing() -> None:
    lanes, talk = LaneTable(), a_talk(1001)
    opened(lanes, talk)
    ends = ends_of(talk.client, talk.broker)
    assert lanes.find(ends, 0, len(ends)) is not None  # it is a recent one now
    for at in range(len(ends)):
        other = ends[:at] + bytes((ends[at] ^ 1,)) + ends[at + 1 :]
        assert lanes.find(other, 0, len(other)) is None


def test_a_connection_that_is_closed_is_found_no_more_and_others_are() -> None:
    lanes, talks = LaneTable(), [a_talk(port) for port in range(1, RECENT_LANES + 100)]
    all_of_them = [opened(lanes, talk, number) for number, talk in enumerate(talks)]
    for _ in range(2):
        for talk, conversation in zip(talks, all_of_them, strict=True):
            lane = lanes.find(ends_of(talk.client, talk.broker), 0, 12)
            assert lane is not None
            assert lane.conversation is conversation
    for conversation in all_of_them[1:]:
        lanes.close(conversation)
    found = [lanes.find(ends_of(talk.broker, talk.client), 0, 12) for talk in talks]
    assert [lane is not None for lane in found] == [True] + [False] * (len(talks) - 1)
    assert len(lanes.by_ends) == 2


def test_ends_that_another_connection_has_stay_its_own() -> None:
    lanes, talk = LaneTable(), a_talk(1001)
    older = opened(lanes, talk)
    lanes.close(older)
    newer = opened(lanes, talk, 1)
    lanes.close(older)
    lane = lanes.find(ends_of(talk.client, talk.broker), 0, 12)
    assert lane is not None
    assert lane.conversation is newer


def test_no_packet_takes_the_short_way_once_all_are_cleared() -> None:
    lanes, talk = LaneTable(), a_talk(1001)
    opened(lanes, talk)
    ends = ends_of(talk.client, talk.broker)
    assert lanes.find(ends, 0, len(ends)) is not None
    lanes.clear()
    assert lanes.find(ends, 0, len(ends)) is None
