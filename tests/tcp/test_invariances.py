"""What must not change the bytes of a connection: how they were cut into segments, the order in which a few
of those were captured, copies and retransmissions, the initial sequence numbers. And what any segments at
all, forged ones among them, must keep to."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from kdissect.limits import DEFAULTS
from kdissect.model import ACK, FIN, RST, SYN, Chunk, Fault, Gap, Segment
from kdissect.tcp.duplex import Duplex
from kdissect.tcp.reassembly import PATIENCE_SEGMENTS
from tests.tcp.segments import BROKER, CLIENT, Wire

ENDS = (CLIENT, BROKER)
ISNS = st.one_of(st.sampled_from([0, 1, 2**31 - 3, 2**31, 2**32 - 40, 2**32 - 1]), st.integers(0, 2**32 - 1))
MESSAGES = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8)
SIZES = st.integers(1, 17)


class Heard(NamedTuple):
    """What a Duplex gave out."""

    data: tuple[bytes, bytes]
    """Of both sides."""
    turns: list[tuple[int, bytes]]
    """Neighbours of the same side joined: who spoke when."""
    faults: list[str]
    gaps: int
    retransmitted: int
    copied: int


def hear(segments: Iterable[Segment], stored_at: int | None = None) -> Heard:
    """Feed the segments; check on the way that chunks and gaps join, and the cost of what waits."""
    duplex: Duplex | None = None
    data, at, faults, gaps = [b"", b""], [0, 0], [], 0
    turns: list[tuple[int, bytes]] = []
    pieces: list[tuple[int, Chunk | Gap | Fault]] = []
    for number, segment in enumerate(segments):
        duplex = duplex or Duplex(segment)
        if number == stored_at:
            duplex = pickle.loads(pickle.dumps(duplex))
        pieces += duplex.feed(segment)
        assert duplex.held_bytes >= 0
    assert duplex is not None
    pieces += duplex.close()
    assert duplex.held_bytes == 0
    for side, piece in pieces:
        if isinstance(piece, Fault):
            faults.append(piece.kind)
            continue
        assert piece.offset == at[side]
        if isinstance(piece, Chunk):
            at[side] += len(piece.data)
            data[side] += piece.data
            if turns and turns[-1][0] == side:
                turns[-1] = (side, turns[-1][1] + piece.data)
            else:
                turns.append((side, piece.data))
        else:
            at[side] += piece.length
            gaps += 1
    streams = duplex.streams
    retransmitted = streams[0].retransmitted + streams[1].retransmitted
    return Heard(
        (data[0], data[1]), turns, faults, gaps, retransmitted, streams[0].copied + streams[1].copied
    )


def dialogue(messages: list[bytes], sizes: list[int], isns: tuple[int, int] = (1000, 9000)) -> list[Segment]:
    """Client and broker speak in turns, in segments of these sizes, each turn acknowledging the last."""
    wire = Wire(*isns)
    segments, said = wire.handshake(), [0, 0]
    cuts = 0
    for turn, message in enumerate(messages):
        side, start = turn % 2, 0
        while start < len(message):
            part = message[start : start + sizes[cuts % len(sizes)]]
            segments.append(wire.segment(ENDS[side], said[side], part, ack=said[1 - side]))
            said[side] += len(part)
            start += len(part)
            cuts += 1
    for side in (0, 1):
        segments.append(wire.fin(ENDS[side], said[side], ack=said[1 - side]))
    return [segment._replace(identity=number) for number, segment in enumerate(segments, 1)]


def numbered(segments: Iterable[Segment]) -> list[Segment]:
    """The same as captured in this order."""
    return [s._replace(packet=number, timestamp_ns=number * 1000) for number, s in enumerate(segments, 1)]


def spoken(messages: list[bytes]) -> tuple[bytes, bytes]:
    return b"".join(messages[::2]), b"".join(messages[1::2])


@given(MESSAGES, st.lists(SIZES, min_size=1, max_size=6), ISNS, ISNS)
def test_cuts_and_initial_numbers_change_nothing(
    messages: list[bytes], sizes: list[int], client_isn: int, broker_isn: int
) -> None:
    heard = hear(dialogue(messages, sizes, (client_isn, broker_isn)))
    assert heard == Heard(spoken(messages), [(i % 2, m) for i, m in enumerate(messages)], [], 0, 0, 0)


@given(MESSAGES, SIZES, ISNS, st.randoms(use_true_random=False), st.integers(1, PATIENCE_SEGMENTS // 2))
def test_order_within_a_few_packets_changes_nothing(
    messages: list[bytes], size: int, isn: int, random: Random, reach: int
) -> None:
    segments = dialogue(messages, [size], (isn, 9000))
    late = sorted(range(3, len(segments)), key=lambda at: at + random.uniform(0, reach))
    heard = hear(numbered([*segments[:3], *(segments[at] for at in late)]))
    assert heard == Heard(spoken(messages), heard.turns, [], 0, 0, 0)


@given(MESSAGES, SIZES, st.integers(1, 4), st.data())
def test_the_copies_of_several_interfaces_are_no_retransmissions(
    messages: list[bytes], size: int, copies: int, data: st.DataObject
) -> None:
    segments = dialogue(messages, [size])
    alone = hear(segments)
    several = [segment for segment in segments for _ in range(1 + data.draw(st.integers(0, copies)))]
    heard = hear(numbered(several))
    assert heard._replace(copied=0) == alone
    longer = [sum(s.length for s in each if s.length > 1) for each in (several, segments)]
    assert heard.copied <= sum(s.length for s in several) - sum(s.length for s in segments)
    # One byte just before the next one is taken for a keep-alive probe.
    assert heard.copied >= longer[0] - longer[1]


@given(MESSAGES, SIZES, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60), SIZES), max_size=8))
def test_retransmissions_of_any_size_change_only_their_count(
    messages: list[bytes], size: int, again: list[tuple[int, int, int]]
) -> None:
    segments, total = dialogue(messages, [size]), 0
    wire = Wire()
    wire.packet = 1000
    for when, offset, length in again:
        at = 3 + when % (len(segments) - 3)
        sent = b"".join(s.payload for s in segments[:at] if s.source == CLIENT and s.packet < 1000)
        if part := sent[offset : offset + length]:
            repeated = wire.segment(CLIENT, offset, part, ack=None)
            segments.insert(at, repeated._replace(identity=10_000 + wire.packet))
            # One byte just before the next one is a keep-alive probe.
            total += 0 if len(part) == 1 and offset + 1 == len(sent) else len(part)
    heard = hear(numbered(segments))
    assert heard._replace(turns=[]) == Heard(spoken(messages), [], [], 0, total, 0)


@given(MESSAGES, SIZES, st.integers(0, 40))
def test_a_state_that_was_stored_goes_on_alike(messages: list[bytes], size: int, stored_at: int) -> None:
    segments = dialogue(messages, [size])
    segments[3:5] = reversed(segments[3:5])
    assert hear(segments, stored_at) == hear(segments)


NUMBERS = st.one_of(st.integers(900, 1100), st.integers(0, 2**32 - 1), st.sampled_from([0, 2**31, 2**32 - 1]))
FORGED = st.builds(
    lambda side, seq, ack, flags, payload, cut, identity: Segment(
        0, 0, ENDS[side], ENDS[1 - side], seq, ack if flags & ACK else None, flags, payload,
        len(payload) + cut, identity,
    ),
    st.integers(0, 1),
    NUMBERS,
    NUMBERS,
    st.sampled_from([ACK, ACK, ACK, 0, SYN, SYN | ACK, FIN | ACK, RST, RST | ACK, SYN | FIN | RST]),
    st.binary(max_size=30),
    st.sampled_from([0, 0, 0, 1, 100]),
    st.integers(0, 3),
)  # fmt: skip


@given(st.lists(FORGED, min_size=1, max_size=60))
def test_any_segments_give_bytes_that_join_and_no_byte_that_was_not_captured(forged: list[Segment]) -> None:
    heard = hear(numbered(forged))
    captured = sum(len(segment.payload) for segment in forged)
    assert len(heard.data[0]) + len(heard.data[1]) <= captured


@given(st.lists(FORGED, min_size=1, max_size=60))
def test_no_segments_make_more_wait_than_the_limits(forged: list[Segment]) -> None:
    limit = 2_000
    limits = DEFAULTS._replace(reorder_bytes=limit, reorder_one_sided_bytes=limit)
    duplex = Duplex(forged[0], limits)
    for segment in numbered(forged):
        duplex.feed(segment)
        waiting = [stream.held_bytes for stream in duplex.streams]
        assert max(waiting) <= limit
        assert duplex.held_bytes - sum(waiting) <= limit
    duplex.give_up(0)
    assert duplex.held_bytes == 0
