"""What waits behind a hole: no byte twice, the first copy stays, what it costs is known."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kdissect.tcp.waiting import PIECE_BYTES, OutOfOrderBytes, Piece


def piece(offset: int, data: bytes, length: int | None = None, packet: int = 1) -> Piece:
    return Piece(offset, len(data) if length is None else length, data, packet, packet)


def taken(waiting: OutOfOrderBytes, offset: int) -> list[tuple[int, bytes]]:
    return [(each.offset, each.data) for each in waiting.take(offset)]


def test_pieces_come_out_in_order_as_far_as_they_join() -> None:
    waiting = OutOfOrderBytes()
    for each in (piece(12, b"cd"), piece(10, b"ab"), piece(20, b"far")):
        assert waiting.add(each) == (0, True)
    assert (waiting.first_offset, waiting.end) == (10, 23)
    assert taken(waiting, 9) == []
    assert taken(waiting, 10) == [(10, b"ab"), (12, b"cd")]
    assert taken(waiting, 20) == [(20, b"far")]
    assert not waiting


def test_of_an_overlap_the_first_copy_stays_however_small_it_is() -> None:
    for new, again in ((piece(11, b"XYZ"), 1), (piece(8, b"XYZ"), 1), (piece(8, b"VWXYZ"), 2)):
        waiting = OutOfOrderBytes()
        waiting.add(piece(10, b"ab"))
        assert waiting.add(new) == (again, False)
        pieces = taken(waiting, 20)
        for (offset, data), (following, _) in pairwise(pieces):
            assert offset + len(data) == following
        assert (10, b"ab") in pieces


def test_a_copy_that_says_the_same_agrees_as_far_as_both_were_captured() -> None:
    waiting = OutOfOrderBytes()
    waiting.add(piece(10, b"ab", length=4))  # the snap length cut two bytes
    assert waiting.add(piece(10, b"abXY")) == (4, True)
    assert waiting.add(piece(9, b"?aZ")) == (2, False)


def test_a_piece_costs_its_captured_bytes_and_what_keeping_it_takes() -> None:
    waiting = OutOfOrderBytes()
    waiting.add(piece(10, b"ab", length=1000, packet=3))
    waiting.add(piece(2000, b"", length=7, packet=4))
    assert waiting.cost == 2 + 2 * PIECE_BYTES
    assert waiting.packets() == {3, 4}
    waiting.take(10)
    assert waiting.cost == PIECE_BYTES


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), max_size=20))
def test_whatever_is_added_no_byte_is_there_twice_and_none_is_lost(ranges: list[tuple[int, int]]) -> None:
    stream, waiting, known = bytes(range(60)), OutOfOrderBytes(), set[int]()
    for start, length in ranges:
        wanted = set(range(start, start + length))
        assert waiting.add(piece(start, stream[start : start + length])) == (len(wanted & known), True)
        known |= wanted
    out = [(offset + at, byte) for offset, data in taken(waiting, 1000) for at, byte in enumerate(data)]
    assert out == [(at, stream[at]) for at in sorted(known)]
    assert waiting.cost == 0
