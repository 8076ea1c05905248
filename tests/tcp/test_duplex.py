"""Duplex: two directions in the order of cause and effect."""

from __future__ import annotations

import pickle
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from kdissect.limits import DEFAULTS
from kdissect.model import SYN, Chunk, Fault, Gap, Segment
from kdissect.tcp.copies import COPY_NS
from kdissect.tcp.duplex import Duplex
from kdissect.tcp.reassembly import PATIENCE_SEGMENTS
from tests.tcp.segments import BROKER, CLIENT, Wire

Said = list[tuple[int, Chunk | Gap | Fault]]


def run(segments: list[Segment], close: bool = True) -> Said:
    duplex = Duplex(segments[0])
    out: Said = []
    for segment in segments:
        out += duplex.feed(segment)
    if close:
        out += duplex.close()
    return out


def text(said: Said) -> list[tuple[int, bytes]]:
    return [(s, p.data if isinstance(p, Chunk) else b".") for s, p in said if not isinstance(p, Fault)]


def dialogue(wire: Wire) -> list[Segment]:
    return [
        *wire.handshake(),
        wire.segment(CLIENT, 0, b"ask1", ack=0),
        wire.segment(BROKER, 0, b"answer1", ack=4),
        wire.segment(CLIENT, 4, b"ask2", ack=7),
        wire.segment(BROKER, 7, b"answer2", ack=8),
    ]


SPOKEN = [(0, b"ask1"), (1, b"answer1"), (0, b"ask2"), (1, b"answer2")]


def assert_answers_follow(said: list[tuple[int, bytes]], first_question: bytes) -> None:
    """Everything was said once, each side's in its order, and each answer after its question."""
    assert [data for side, data in said if side == 0] == [first_question, b"ask2"]
    assert [data for side, data in said if side == 1] == [b"answer1", b"answer2"]
    assert said.index((0, first_question)) < said.index((1, b"answer1"))
    assert said.index((0, b"ask2")) < said.index((1, b"answer2"))


def test_bytes_come_in_the_order_in_which_they_were_said() -> None:
    assert text(run(dialogue(Wire()))) == SPOKEN


def test_an_answer_captured_before_its_question_waits_for_it() -> None:
    segments = dialogue(Wire())
    segments[3], segments[4] = segments[4], segments[3]
    assert text(run(segments)) == SPOKEN


def test_a_question_captured_several_packets_late_is_not_taken_for_lost() -> None:
    segments = dialogue(Wire())
    segments.append(segments.pop(3))
    assert_answers_follow(text(run(segments)), b"ask1")


def test_a_lost_question_is_a_gap_before_its_answer() -> None:
    segments = dialogue(Wire())
    del segments[3]
    assert_answers_follow(text(run(segments)), b".")


def test_a_lost_question_holds_its_answer_no_longer_than_patience() -> None:
    wire = Wire()
    segments = dialogue(wire)
    del segments[3]
    segments += [wire.segment(BROKER, 14, ack=8) for _ in range(PATIENCE_SEGMENTS + 1)]
    assert_answers_follow(text(run(segments, close=False)), b".")


def test_the_side_that_opens_is_the_first() -> None:
    wire = Wire()
    syn, syn_ack, ack = wire.handshake()
    assert Duplex(syn).endpoints == (CLIENT, BROKER)
    assert Duplex(syn_ack).endpoints == (CLIENT, BROKER)
    assert Duplex(ack).endpoints == (CLIENT, BROKER)


def test_it_is_finished_when_both_said_so_and_nothing_waits() -> None:
    wire = Wire()
    duplex = Duplex(wire.segment(CLIENT, -1, ack=None, flags=SYN))
    for segment in dialogue(wire)[1:]:
        duplex.feed(segment)
    duplex.feed(wire.fin(CLIENT, 8, ack=14))
    assert not duplex.finished
    duplex.feed(wire.fin(BROKER, 14, ack=9))
    assert duplex.finished


def test_a_syn_with_another_number_opens_a_new_connection() -> None:
    wire = Wire()
    segments = dialogue(wire)
    duplex = Duplex(segments[0])
    for segment in segments:
        duplex.feed(segment)
    assert not duplex.is_reopened_by(segments[0]), "a retransmitted SYN"
    assert duplex.is_reopened_by(segments[0]._replace(seq=77))


def test_the_same_number_opens_a_new_connection_after_the_end() -> None:
    wire = Wire()
    segments = [*dialogue(wire), wire.fin(CLIENT, 8, ack=14), wire.fin(BROKER, 14, ack=9)]
    duplex = Duplex(segments[0])
    for segment in segments:
        duplex.feed(segment)
    assert duplex.is_reopened_by(segments[0])


def test_a_reset_with_made_up_numbers_declares_nothing_lost() -> None:
    wire = Wire()
    segments = [*dialogue(wire), wire.rst(BROKER, 14)._replace(ack=12345)]
    assert text(run(segments)) == SPOKEN


@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_reordering_within_a_few_packets_changes_nothing(random, reach: int) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    wire = Wire(client_isn=2**32 - 10)
    segments = wire.handshake()
    want = [b"", b""]
    for i in range(12):
        ask, answer = b"question %d " % i, b"answer %d " % i
        segments.append(wire.segment(CLIENT, len(want[0]), ask, ack=len(want[1])))
        want[0] += ask
        segments.append(wire.segment(BROKER, len(want[1]), answer, ack=len(want[0])))
        want[1] += answer
    at = random.randrange(3, len(segments))
    segments.insert(min(len(segments) - 1, at + min(reach, PATIENCE_SEGMENTS)), segments.pop(at))
    said = run(segments)
    for side in (0, 1):
        assert b"".join(p.data for s, p in said if s == side and isinstance(p, Chunk)) == want[side]


def test_its_state_can_be_stored_and_taken_up_again() -> None:
    segments = dialogue(Wire())
    duplex = Duplex(segments[0])
    out: Said = []
    for segment in segments:
        duplex = pickle.loads(pickle.dumps(duplex))
        out += duplex.feed(segment)
    assert text(out) == SPOKEN


def test_what_a_hole_held_back_comes_in_the_order_in_which_it_was_said_whoever_opened() -> None:
    for opener in (CLIENT, BROKER):
        wire = Wire()
        opening = wire.segment(opener, -1, ack=None, flags=SYN)
        lost = 4
        segments = [opening]
        for i in range(1, 5):
            segments.append(wire.segment(CLIENT, lost * i, b"ask%d" % i, ack=7 * i))
            segments.append(wire.segment(BROKER, 7 * i, b"answer%d" % i, ack=lost * (i + 1)))
        side = int(opener == BROKER)
        said = [(s ^ side, data) for s, data in text(run(segments)) if data != b"."]
        assert said == [pair for i in range(1, 5) for pair in ((0, b"ask%d" % i), (1, b"answer%d" % i))]


def test_acknowledgements_that_contradict_each_other_cost_no_byte() -> None:
    wire = Wire()
    segments = [
        *wire.handshake(),
        wire.segment(CLIENT, 4, b"ask2", ack=14),
        wire.segment(BROKER, 7, b"answer2", ack=8),
        wire.fin(CLIENT, 2),
        wire.segment(BROKER, 0, b"answer1", ack=8),
        wire.segment(CLIENT, 0, b"ask1", ack=14),
    ]
    said = [(side, data) for side, data in text(run(segments)) if data != b"."]
    assert sorted(said) == [(0, b"ask1"), (0, b"ask2"), (1, b"answer1"), (1, b"answer2")]


def held_up(wire: Wire) -> tuple[Duplex, list[Segment]]:
    """A connection whose client acknowledges an answer that was not captured, and then never again."""
    segments = [
        *wire.handshake(),
        wire.segment(CLIENT, 0, b"ask1", ack=0),
        wire.segment(CLIENT, 4, b"ask2", ack=7),
    ]
    return Duplex(segments[0], DEFAULTS._replace(reorder_bytes=20_000)), segments


def test_bytes_that_wait_for_the_other_direction_are_bounded() -> None:
    wire = Wire()
    duplex, segments = held_up(wire)
    segments += [wire.segment(CLIENT, 8 + i * 100, b"x" * 100, ack=None) for i in range(200)]
    said: Said = []
    for segment in segments:
        said += duplex.feed(segment)
        assert duplex.held_bytes <= 20_000
    kinds = [piece.kind for _, piece in said if isinstance(piece, Fault)]
    assert set(kinds) == {"buffer-limit"}
    said += duplex.close()
    data = b"".join(p.data for side, p in said if side == 0 and isinstance(p, Chunk))
    assert data == b"ask1ask2" + b"x" * 20_000


def test_a_stream_that_is_never_whole_leaves_nothing_behind() -> None:
    """Every other segment is lost, so that something waits at all times."""
    wire = Wire()
    segments = wire.handshake()
    segments += [wire.segment(CLIENT, 200 * i, b"x" * 100, ack=0) for i in range(1, 3_000)]
    duplex = Duplex(segments[0], DEFAULTS._replace(reorder_bytes=5_000))
    tracemalloc.start()
    try:
        for segment in segments:
            duplex.feed(segment)
        assert duplex.streams[0].gaps > 2_900
        assert duplex.streams[0].is_waiting
        assert tracemalloc.get_traced_memory()[0] < 50_000
    finally:
        tracemalloc.stop()


def test_what_is_given_up_says_so_and_comes_with_its_gap() -> None:
    wire = Wire()
    segments = [*wire.handshake(), wire.segment(CLIENT, 4, b"ask2", ack=0)]
    duplex = Duplex(segments[0])
    for segment in segments:
        assert not duplex.feed(segment)
    assert duplex.held_bytes > 4
    (_, fault), (_, gap), (_, chunk) = duplex.give_up(3)
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.offset, fault.packet) == ("buffer-limit", 0, 4)
    assert isinstance(gap, Gap)
    assert (gap.offset, gap.length) == (0, 4)
    assert isinstance(chunk, Chunk)
    assert chunk.data == b"ask2"
    assert duplex.held_bytes == 0
    assert not duplex.give_up(3)
    assert text(list(duplex.feed(wire.segment(CLIENT, 8, b"ask3", ack=0)))) == [(0, b"ask3")]


def test_a_copy_of_a_packet_that_waits_is_no_retransmission_either() -> None:
    wire = Wire()
    late = wire.segment(CLIENT, 4, b"ask2", ack=0)._replace(identity=77)
    segments = [*wire.handshake(), late, late, wire.segment(CLIENT, 0, b"ask1")]
    duplex = Duplex(segments[0])
    for segment in segments:
        duplex.feed(segment)
    assert (duplex.streams[0].copied, duplex.streams[0].retransmitted) == (4, 0)


def test_the_same_packet_long_after_is_a_retransmission() -> None:
    wire = Wire()
    ask = wire.segment(CLIENT, 0, b"ask1", ack=0)._replace(identity=77)
    duplex = Duplex(ask)
    for segment in (*wire.handshake(), ask, ask._replace(timestamp_ns=ask.timestamp_ns + COPY_NS + 1)):
        duplex.feed(segment)
    assert (duplex.streams[0].copied, duplex.streams[0].retransmitted) == (0, 4)


def test_a_connection_that_never_says_anything_takes_little() -> None:
    wire = Wire()
    syn = wire.handshake()[0]
    # So many that what Python has put aside for small objects counts for little: other tests change it.
    count = 10_000
    tracemalloc.start()
    try:
        kept = [Duplex(syn) for _ in range(count)]
        for duplex in kept:
            duplex.feed(syn)
        assert tracemalloc.get_traced_memory()[0] < 1120 * count
    finally:
        tracemalloc.stop()
