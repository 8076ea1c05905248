"""Other protocols on a broker's port give no exchange, however the capture cuts them."""

from __future__ import annotations

import random

import pytest

from kdissect.exchange import Exchange
from kdissect.model import Endpoint, Fault, Segment
from kdissect.session.conversation import Connection, Conversation
from kdissect.session.pairing import Completed
from tests.acceptance.other_protocols import (
    CONVERSATIONS,
    Turn,
    protobuf_frames,
    pulsar,
    random_bytes,
    rocketmq,
    rpc_with_its_number_first,
    rpc_with_names,
    small_integers,
    smb,
    thrift,
    zookeeper,
)
from tests.amount import LONG, times
from tests.kafka import Talk

MAKERS = (
    *(zookeeper, small_integers, protobuf_frames, rpc_with_names, rpc_with_its_number_first),
    *(thrift, pulsar, rocketmq, smb),
)
CLIENT: Endpoint = bytes((10, 0, 0, 1)) + (50_000).to_bytes(2, "big")
SERVER: Endpoint = bytes((10, 0, 0, 2)) + (9_092).to_bytes(2, "big")


def segments(turns: list[Turn], syn: bool = True, mss: int = 1460) -> list[Segment]:
    talk = Talk(CLIENT, SERVER, syn, mss)
    for who, data in turns:
        talk.say(CLIENT if who == "client" else SERVER, data)
    return talk.segments


LOOKS_ALIKE = "RPC with its number first"
"""Its small numbers are read as those of Produce and its versions, before a text: that may be told."""


def seen(segments: list[Segment], looks_alike: bool = False) -> tuple[list[Exchange], Connection]:
    """What kdissect makes of a connection. Frames and faults of Kafka would be made up, too."""
    conversation = Conversation(0, segments[0])
    events = [event for segment in segments for event in conversation.feed(segment)]
    events += conversation.close(10**9, cut=True)
    summary = conversation.summary()
    layers = {"tcp", "tls"} if summary.protocol == "tls" else {"tcp"}  # its handshake here is made up
    told = [event for event in events if isinstance(event, Fault) and event.layer not in layers]
    assert [event.kind for event in told] in ([], ["broken-request"] if looks_alike else [])
    return [event.exchange for event in events if isinstance(event, Completed)], summary


@pytest.mark.parametrize("mss", [1460, 100, 1])
@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_is_named_and_gives_no_exchange(name: str, mss: int) -> None:
    protocol, turns = CONVERSATIONS[name]
    if mss == 1:
        turns = [(who, data[:300]) for who, data in turns]
    exchanges, connection = seen(segments(turns, mss=mss), name == LOOKS_ALIKE)
    assert exchanges == []
    assert connection.protocol == protocol
    said = sum(len(data) for _, data in turns)
    assert connection.skipped_bytes == connection.bytes_to_broker + connection.bytes_from_broker == said


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation_that_is_captured_in_part_gives_no_exchange(name: str) -> None:
    _, turns = CONVERSATIONS[name]
    whole = segments(turns, syn=False, mss=300)
    for first in range(0, min(40, len(whole) - 1), 1 if LONG else 6):
        assert seen(whole[first:], name == LOOKS_ALIKE)[0] == []
    for side in (CLIENT, SERVER):
        for syn in (True, False):
            one_side = [segment for segment in segments(turns, syn=syn) if segment.source == side]
            assert seen(one_side, name == LOOKS_ALIKE)[0] == []


@pytest.mark.parametrize("seed", range(times(4, 30)))
def test_framings_like_kafkas_are_not_taken_for_it(seed: int) -> None:
    randomly = random.Random(seed)
    made = ((make(seed), make is rpc_with_its_number_first) for make in MAKERS)
    for turns, looks_alike in (*made, (random_bytes(seed, 3_000), False)):
        whole = segments(turns)
        assert seen(whole, looks_alike)[0] == []
        for _ in range(8):
            first = randomly.randrange(len(whole) - 1)
            assert seen(whole[first:], looks_alike)[0] == []
        for side in (CLIENT, SERVER):
            one_side = [segment for segment in whole if segment.source == side]
            assert seen(one_side, looks_alike)[0] == []
