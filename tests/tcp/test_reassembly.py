"""Reassembler: what each shape of a direction's segments must yield."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.limits import DEFAULTS
from kdissect.model import FIN, SYN, Chunk, Fault, Gap, Segment
from kdissect.tcp.reassembly import FARTHEST_AHEAD, PATIENCE_NS, PATIENCE_SEGMENTS, Reassembler
from tests.tcp.segments import CLIENT, Wire, stream

Pieces = list[Chunk | Gap | Fault]


def opened(wire: Wire) -> Reassembler:
    reassembler = Reassembler()
    assert not reassembler.feed(wire.segment(CLIENT, -1, ack=None, flags=SYN))
    return reassembler


def feed(reassembler: Reassembler, *segments: Segment) -> Pieces:
    out: Pieces = []
    for segment in segments:
        out += reassembler.feed(segment)
    return out


def acknowledge(reassembler: Reassembler, wire: Wire, offset: int, at_ns: int = 10_000) -> Pieces:
    return list(reassembler.acknowledge((wire.isn[CLIENT] + 1 + offset) & 0xFFFFFFFF, wire.packet, at_ns))


def test_bytes_in_order_pass_straight_through() -> None:
    wire = Wire()
    pieces = feed(opened(wire), wire.segment(CLIENT, 0, b"ab"), wire.segment(CLIENT, 2, b"cd"))
    assert pieces == [Chunk(0, b"ab", 2, 2000), Chunk(2, b"cd", 3, 3000)]


def test_swapped_segments_come_out_in_order() -> None:
    wire = Wire()
    reassembler = opened(wire)
    assert feed(reassembler, wire.segment(CLIENT, 2, b"cd")) == []
    assert stream(feed(reassembler, wire.segment(CLIENT, 0, b"ab"))) == b"abcd"


def test_a_retransmission_is_counted_and_not_delivered_again() -> None:
    wire = Wire()
    reassembler = opened(wire)
    pieces = feed(reassembler, wire.segment(CLIENT, 0, b"abcd"), wire.segment(CLIENT, 0, b"abcd"))
    assert stream(pieces) == b"abcd"
    assert reassembler.retransmitted == 4


def test_bytes_that_were_let_go_are_not_held_against_what_comes_again() -> None:
    wire = Wire()
    reassembler = opened(wire)
    feed(reassembler, wire.segment(CLIENT, 0, b"ab"))
    reassembler.drop_kept_bytes()
    assert not feed(reassembler, wire.segment(CLIENT, 0, b"XY"))
    assert feed(reassembler, wire.segment(CLIENT, 1, b"Ycd")) == [Chunk(2, b"cd", 4, 4000)]
    pieces = feed(reassembler, wire.segment(CLIENT, 2, b"ZZ"))
    assert [p.kind for p in pieces if isinstance(p, Fault)] == ["different-retransmission"]
    assert reassembler.retransmitted == 5


def test_an_overlap_adds_only_its_new_bytes() -> None:
    wire = Wire()
    pieces = feed(opened(wire), wire.segment(CLIENT, 0, b"abcd"), wire.segment(CLIENT, 2, b"cdef"))
    assert stream(pieces) == b"abcdef"


def test_the_first_copy_counts_where_copies_differ() -> None:
    wire = Wire()
    pieces = feed(opened(wire), wire.segment(CLIENT, 0, b"abcd"), wire.segment(CLIENT, 0, b"aXcd"))
    assert stream(pieces) == b"abcd"
    assert [p.kind for p in pieces if isinstance(p, Fault)] == ["different-retransmission"]


def test_the_first_copy_counts_among_waiting_segments_too() -> None:
    wire = Wire()
    reassembler = opened(wire)
    pieces = feed(
        reassembler,
        wire.segment(CLIENT, 4, b"EF"),
        wire.segment(CLIENT, 2, b"cdxyGH"),
        wire.segment(CLIENT, 0, b"ab"),
    )
    assert stream(pieces) == b"abcdEFGH"
    assert [p.kind for p in pieces if isinstance(p, Fault)] == ["different-retransmission"]


def test_a_keep_alive_probe_is_neither_data_nor_a_retransmission() -> None:
    wire = Wire()
    reassembler = opened(wire)
    pieces = feed(reassembler, wire.segment(CLIENT, 0, b"ab"), wire.segment(CLIENT, 1, b"\0"))
    assert stream(pieces) == b"ab"
    assert reassembler.retransmitted == 0


def test_a_zero_window_probe_is_data() -> None:
    wire = Wire()
    pieces = feed(opened(wire), wire.segment(CLIENT, 0, b"a"), wire.segment(CLIENT, 0, b"ab"))
    assert stream(pieces) == b"ab"


def test_a_hole_is_a_gap_once_the_peer_acknowledged_past_it() -> None:
    wire = Wire()
    reassembler = opened(wire)
    assert feed(reassembler, wire.segment(CLIENT, 0, b"ab"), wire.segment(CLIENT, 4, b"ef")) == [
        Chunk(0, b"ab", 2, 2000)
    ]
    declared: Pieces = []
    for _ in range(PATIENCE_SEGMENTS + 1):
        assert declared == []
        declared = acknowledge(reassembler, wire, 6)
    assert [type(p) for p in declared] == [Gap, Chunk]
    assert (declared[0].offset, declared[0].length) == (2, 2)  # type: ignore[union-attr]
    assert declared[1].data == b"ef"  # type: ignore[union-attr]


def test_a_hole_is_a_gap_once_patience_ran_out() -> None:
    wire = Wire()
    reassembler = opened(wire)
    feed(reassembler, wire.segment(CLIENT, 4, b"ef"))
    assert acknowledge(reassembler, wire, 6, at_ns=1000) == []
    assert stream(acknowledge(reassembler, wire, 6, at_ns=1001 + PATIENCE_NS)) == b"....ef"


def test_a_hole_that_the_peer_has_not_acknowledged_stays_open() -> None:
    wire = Wire()
    reassembler = opened(wire)
    feed(reassembler, wire.segment(CLIENT, 4, b"ef"))
    for _ in range(100):
        assert acknowledge(reassembler, wire, 0) == []
    assert stream(feed(reassembler, wire.segment(CLIENT, 0, b"abcd"))) == b"abcdef"


def test_bytes_acknowledged_and_never_seen_are_a_gap_at_the_end() -> None:
    wire = Wire()
    reassembler = opened(wire)
    pieces = feed(reassembler, wire.segment(CLIENT, 0, b"ab"))
    acknowledge(reassembler, wire, 6)
    assert stream(pieces + list(reassembler.close(9, 9))) == b"ab...."


def test_the_acknowledgement_of_a_fin_is_not_a_gap() -> None:
    wire = Wire()
    reassembler = opened(wire)
    pieces = feed(reassembler, wire.segment(CLIENT, 0, b"ab"))
    acknowledge(reassembler, wire, 3)
    assert stream(pieces + list(reassembler.close(9, 9))) == b"ab"


def test_a_fin_far_ahead_shows_what_is_missing() -> None:
    wire = Wire()
    reassembler = opened(wire)
    feed(reassembler, wire.segment(CLIENT, 6, flags=FIN))
    assert not reassembler.done
    assert stream(list(reassembler.close(9, 9))) == b"......"
    assert reassembler.done


@pytest.mark.parametrize("fin", [1, 2])
def test_acknowledged_numbers_after_a_fin_are_not_a_gap(fin: int) -> None:
    wire = Wire()
    reassembler = opened(wire)
    feed(reassembler, wire.segment(CLIENT, 0, b"ab"), wire.fin(CLIENT, fin))
    acknowledge(reassembler, wire, 9)
    assert list(reassembler.close(9, 9)) == []
    assert (reassembler.next, reassembler.gaps, reassembler.gap_bytes) == (2, 0, 0)


def test_bytes_that_the_snap_length_cut_are_a_gap_at_once() -> None:
    wire = Wire()
    pieces = feed(opened(wire), wire.segment(CLIENT, 0, b"ab", length=5), wire.segment(CLIENT, 5, b"fg"))
    assert stream(pieces) == b"ab...fg"


def test_a_stream_without_syn_begins_at_its_first_segment() -> None:
    wire = Wire()
    assert stream(feed(Reassembler(), wire.segment(CLIENT, 700, b"ab"))) == b"ab"


def test_a_stream_without_syn_may_begin_at_what_the_peer_acknowledged() -> None:
    wire = Wire()
    reassembler = Reassembler()
    reassembler.acknowledge(wire.isn[CLIENT] + 1 + 700, 1, 1)
    assert (
        stream(feed(reassembler, wire.segment(CLIENT, 702, b"cd"), wire.segment(CLIENT, 700, b"ab")))
        == b"abcd"
    )


def test_a_captured_segment_just_before_the_acknowledged_position_counts() -> None:
    wire = Wire()
    reassembler = Reassembler()
    reassembler.acknowledge(wire.isn[CLIENT] + 1 + 702, 1, 1)
    assert (
        stream(feed(reassembler, wire.segment(CLIENT, 700, b"ab"), wire.segment(CLIENT, 702, b"cd")))
        == b"abcd"
    )


def test_a_wild_acknowledgement_declares_nothing() -> None:
    wire = Wire()
    reassembler = opened(wire)
    pieces = feed(reassembler, wire.segment(CLIENT, 0, b"ab"))
    for _ in range(50):
        pieces += acknowledge(reassembler, wire, 0x7000_0000)
    assert stream(pieces + list(reassembler.close(9, 9))) == b"ab"


def test_without_any_acknowledgement_the_limit_declares_the_hole() -> None:
    wire = Wire()
    reassembler = opened(wire)
    pieces: Pieces = []
    block = bytes(65_536)
    for i in range(20):
        pieces += feed(reassembler, wire.segment(CLIENT, 10 + i * len(block), block))
    assert any(isinstance(p, Gap) and p.length == 10 for p in pieces)


def test_how_much_waits_without_any_acknowledgement_can_be_set() -> None:
    wire = Wire()
    reassembler = Reassembler(DEFAULTS._replace(reorder_one_sided_bytes=1_000))
    feed(reassembler, wire.segment(CLIENT, -1, ack=None, flags=SYN))
    assert feed(reassembler, wire.segment(CLIENT, 2, b"x" * 500)) == []
    assert stream(feed(reassembler, wire.segment(CLIENT, 502, b"y" * 500))) == b".." + b"x" * 500 + b"y" * 500


def test_more_waiting_bytes_than_the_limit_give_the_hole_up() -> None:
    wire = Wire()
    reassembler = Reassembler(DEFAULTS._replace(reorder_bytes=8))
    feed(reassembler, wire.segment(CLIENT, -1, ack=None, flags=SYN))
    acknowledge(reassembler, wire, 0)
    assert stream(feed(reassembler, wire.segment(CLIENT, 2, b"cdefghijkl"))) == b"..cdefghijkl"


@pytest.mark.parametrize("isn", [0, 1, 2**31 - 3, 2**31, 2**32 - 1, 2**32 - 5])
@given(data=st.data())
def test_any_chopping_order_and_repetition_gives_the_same_bytes(isn: int, data: st.DataObject) -> None:
    content = bytes(range(1, 61))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(content) - 1), max_size=12)))
    edges = [0, *cuts, len(content)]
    parts = [(a, b) for a, b in itertools.pairwise(edges)]
    extra = data.draw(st.lists(st.tuples(st.integers(0, 59), st.integers(1, 20)), max_size=6))
    parts += [(a, min(a + n, len(content))) for a, n in extra]
    order = data.draw(st.permutations(parts))
    wire = Wire(client_isn=isn)
    reassembler = opened(wire)
    pieces = feed(reassembler, *(wire.segment(CLIENT, a, content[a:b]) for a, b in order))
    assert stream(pieces) == content
    assert reassembler.next == len(content)
    assert not any(isinstance(p, Fault) for p in pieces)


@given(data=st.data())
def test_with_losses_every_byte_is_delivered_or_in_a_gap(data: st.DataObject) -> None:
    content = bytes(range(1, 101))
    lost = data.draw(st.sets(st.integers(0, 9), max_size=6))
    wire = Wire()
    reassembler = opened(wire)
    order = data.draw(st.permutations([i for i in range(10) if i not in lost]))
    pieces = feed(reassembler, *(wire.segment(CLIENT, i * 10, content[i * 10 : i * 10 + 10]) for i in order))
    acknowledge(reassembler, wire, 100)
    pieces += reassembler.close(99, 99)
    got = stream(pieces)
    want = b"".join(b"." * 10 if i in lost else content[i * 10 : i * 10 + 10] for i in range(10))
    assert got == want


def test_bytes_beyond_a_fin_that_a_hole_parts_from_it_are_delivered_and_the_end_is_reached() -> None:
    wire = Wire()
    stream_of = Reassembler()
    pieces = [*stream_of.feed(wire.segment(CLIENT, -1, ack=None, flags=SYN))]
    for segment in (wire.segment(CLIENT, 0, b"ab"), wire.fin(CLIENT, 2), wire.segment(CLIENT, 6, b"xy")):
        pieces += stream_of.feed(segment)
    pieces += stream_of.close(9, 9)
    assert stream(pieces) == b"ab....xy"


def test_the_numbers_of_a_reset_do_not_place_a_stream() -> None:
    wire = Wire()
    reassembler = Reassembler()
    assert not reassembler.feed(wire.rst(CLIENT, -5_000_000))
    assert stream([*reassembler.feed(wire.segment(CLIENT, 0, b"ab"))]) == b"ab"


def test_a_segment_far_beyond_everything_known_is_left_out_and_reported() -> None:
    wire = Wire()
    reassembler = opened(wire)
    acknowledge(reassembler, wire, 0)
    pieces = feed(
        reassembler,
        wire.segment(CLIENT, 0, b"ab"),
        wire.segment(CLIENT, 2**29, b"forged"),
        wire.segment(CLIENT, 2, b"cd"),
    )
    pieces += reassembler.close(9, 9)
    assert stream(pieces) == b"abcd"
    assert [p.kind for p in pieces if isinstance(p, Fault)] == ["out-of-window"]


def test_bytes_from_before_the_first_that_was_captured_are_left_out_and_reported() -> None:
    wire = Wire()
    reassembler = Reassembler()
    pieces = feed(
        reassembler,
        wire.segment(CLIENT, 100, b"ab"),
        wire.segment(CLIENT, 90, b"late"),
        wire.segment(CLIENT, 98, b"..abcd"),
        wire.segment(CLIENT, 103, b"d"),
    )
    assert stream(pieces) == b"abcd"
    faults = [(p.kind, p.packet, p.message[:25]) for p in pieces if isinstance(p, Fault)]
    assert faults == [
        ("out-of-window", 2, "kdissect left out 4 bytes"),
        ("out-of-window", 3, "kdissect left out 2 bytes"),
    ]
    assert reassembler.retransmitted == 2  # "ab"; "d" is a keep-alive probe


def test_a_probe_before_the_first_byte_that_was_captured_is_no_data() -> None:
    wire = Wire()
    reassembler = Reassembler()
    acknowledge(reassembler, wire, 100)
    assert feed(reassembler, wire.segment(CLIENT, 99, b"\0")) == []
    assert stream(feed(reassembler, wire.segment(CLIENT, 100, b"ab"))) == b"ab"


def test_a_long_run_of_lost_bytes_is_a_gap_once_the_peer_acknowledged_beyond_it() -> None:
    wire = Wire()
    reassembler = opened(wire)
    far = FARTHEST_AHEAD * 2
    pieces = feed(reassembler, wire.segment(CLIENT, 0, b"ab"))
    acknowledge(reassembler, wire, far)
    pieces += feed(reassembler, wire.segment(CLIENT, far, b"cd"))
    for _ in range(PATIENCE_SEGMENTS + 1):
        pieces += acknowledge(reassembler, wire, far + 2)
    assert [(type(p), getattr(p, "length", 2)) for p in pieces] == [(Chunk, 2), (Gap, far - 2), (Chunk, 2)]


def test_without_the_peer_a_second_segment_that_joins_the_first_shows_the_jump() -> None:
    wire = Wire()
    reassembler = opened(wire)
    far = FARTHEST_AHEAD * 2
    segments = [wire.segment(CLIENT, far + i, b"x") for i in range(3)]
    pieces = feed(reassembler, *segments)
    pieces += reassembler.close(9, 9)
    assert sum(len(p.data) for p in pieces if isinstance(p, Chunk)) == 2
    assert [p.kind for p in pieces if isinstance(p, Fault)] == ["out-of-window"]


def test_the_acknowledged_part_of_a_hole_is_given_up() -> None:
    wire = Wire()
    reassembler = opened(wire)
    feed(reassembler, wire.segment(CLIENT, 8, b"ij"))
    pieces: Pieces = []
    for _ in range(PATIENCE_SEGMENTS + 1):
        pieces += acknowledge(reassembler, wire, 4)
    assert [(p.offset, p.length) for p in pieces if isinstance(p, Gap)] == [(0, 4)]
    assert stream(pieces + feed(reassembler, wire.segment(CLIENT, 4, b"efgh"))) == b"....efghij"


def test_a_limit_that_gave_a_hole_up_is_reported() -> None:
    wire = Wire()
    reassembler = Reassembler(DEFAULTS._replace(reorder_bytes=8))
    feed(reassembler, wire.segment(CLIENT, -1, ack=None, flags=SYN))
    acknowledge(reassembler, wire, 0)
    pieces = feed(reassembler, wire.segment(CLIENT, 2, b"cdefghijkl"))
    assert [p.kind for p in pieces if isinstance(p, Fault)] == ["buffer-limit"]


def test_segments_without_captured_bytes_count_for_the_limit_too() -> None:
    wire = Wire()
    reassembler = Reassembler(DEFAULTS._replace(reorder_bytes=100_000))
    feed(reassembler, wire.segment(CLIENT, -1, ack=None, flags=SYN))
    acknowledge(reassembler, wire, 0)
    pieces: Pieces = []
    for i in range(1000):
        pieces += feed(reassembler, wire.segment(CLIENT, 10 + i * 2, b"", length=1))
    assert "buffer-limit" in [p.kind for p in pieces if isinstance(p, Fault)]


def test_a_fin_that_more_data_follows_was_none() -> None:
    wire = Wire()
    reassembler = opened(wire)
    pieces = feed(
        reassembler, wire.segment(CLIENT, 0, b"ab"), wire.fin(CLIENT, 2), wire.segment(CLIENT, 2, b"cd")
    )
    assert stream(pieces) == b"abcd"
    assert not reassembler.done


def test_a_fin_ends_the_stream_behind_the_bytes_it_carries() -> None:
    wire = Wire()
    reassembler = opened(wire)
    feed(reassembler, wire.segment(CLIENT, 2, b"cd", flags=FIN))
    assert (reassembler.ended_at, reassembler.done) == (4, False)
    assert stream(feed(reassembler, wire.segment(CLIENT, 0, b"ab"))) == b"abcd"
    assert reassembler.done


def test_the_number_of_a_fin_that_was_not_captured_is_never_a_gap() -> None:
    wire = Wire()
    reassembler = opened(wire)
    pieces = feed(reassembler, wire.segment(CLIENT, 0, b"ab"))
    for _ in range(2 * PATIENCE_SEGMENTS):
        pieces += acknowledge(reassembler, wire, 3)
    assert stream(pieces) == b"ab"
    assert reassembler.gaps == 0


def test_one_segment_over_many_that_wait_keeps_the_limit_too() -> None:
    wire = Wire()
    limit = 20_000
    reassembler = Reassembler(DEFAULTS._replace(reorder_bytes=limit))
    feed(reassembler, wire.segment(CLIENT, -1, ack=None, flags=SYN))
    acknowledge(reassembler, wire, 0)
    pieces = feed(reassembler, *(wire.segment(CLIENT, 10 + 2 * i, b"x") for i in range(60)))
    pieces += feed(reassembler, wire.segment(CLIENT, 9, b"-x" * 60))
    assert reassembler.held_bytes <= limit
    assert stream(pieces) == b"." * 9 + b"-x" * 60


def test_a_hole_before_the_end_is_as_long_as_the_bytes_and_does_not_count_the_fin() -> None:
    wire = Wire()
    reassembler = opened(wire)
    feed(reassembler, wire.segment(CLIENT, 0, b"ab"), wire.segment(CLIENT, 6, flags=FIN))
    pieces: Pieces = []
    for _ in range(2 * PATIENCE_SEGMENTS):
        pieces += acknowledge(reassembler, wire, 7)  # the FIN has a number of its own
    (gap,) = pieces
    assert isinstance(gap, Gap)
    assert (gap.offset, gap.length) == (2, 4)
    assert (reassembler.gaps, reassembler.gap_bytes) == (1, 4)
