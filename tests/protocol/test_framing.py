"""Framer: frames, gaps and skipped bytes add up to the stream, whatever happens to it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.limits import DEFAULTS
from kdissect.model import Chunk, Direction, Fault, Frame, Gap, Skipped
from kdissect.protocol.framing import Event, Framer, Witness

MARK = b"\xca\xfe"
"""Frames of these tests begin with it; the witness knows a frame by it."""


def frame_bytes(payload: bytes) -> bytes:
    return len(MARK + payload).to_bytes(4, "big") + MARK + payload


def by_mark(data: bytes, position: int, at_segment_start: bool) -> bool | None:
    if len(data) - position < 6:
        return None if at_segment_start else False
    return data[position + 4 : position + 6] == MARK


def never(data: bytes, position: int, at_segment_start: bool) -> bool | None:
    raise AssertionError("a stream that is trusted asks nobody")


def run(pieces: list[Chunk | Gap], witness: Witness = by_mark, trusted: bool = True) -> list[Event]:
    framer = Framer(Direction.TO_BROKER, trusted=trusted)
    out: list[Event] = []
    for piece in pieces:
        out += framer.feed(piece, witness)
    return out + list(framer.close(witness))


def chunks(data: bytes, *cuts: int, start: int = 0) -> list[Chunk | Gap]:
    edges = [0, *cuts, len(data)]
    pairs = itertools.pairwise(edges)
    return [Chunk(start + a, data[a:b], i + 1, (i + 1) * 10) for i, (a, b) in enumerate(pairs) if a < b]


def payloads(events: list[Event]) -> list[bytes]:
    return [e.payload for e in events if isinstance(e, Frame)]


def cut(events: list[Event]) -> list[str]:
    """The faults of frames that are cut."""
    return [e.fault.kind for e in events if isinstance(e, Frame) and e.fault]


def accounted(events: list[Event]) -> int:
    """The length of the stream that the events account for, each byte once."""
    spans = []
    for event in events:
        if isinstance(event, Frame):
            spans.append((event.offset, 4 + len(event.payload)))
        elif isinstance(event, Gap | Skipped):
            spans.append((event.offset, event.length))
    spans.sort()
    at = spans[0][0] if spans else 0
    for offset, length in spans:
        assert offset == at, f"{spans} overlap or leave a hole at {at}"
        at += length
    return at


def test_frames_are_cut_at_their_sizes_wherever_chunks_end() -> None:
    data = frame_bytes(b"one") + frame_bytes(b"") + frame_bytes(b"three")
    for cut in range(1, len(data)):
        events = run(chunks(data, cut), never)
        assert payloads(events) == [MARK + b"one", MARK, MARK + b"three"]
        assert accounted(events) == len(data)


def test_a_frame_knows_its_packets_and_times() -> None:
    data = frame_bytes(b"0123456789")
    (frame,) = run(chunks(data, 5, 9), never)
    assert isinstance(frame, Frame)
    assert (frame.first_packet, frame.last_packet, frame.packets) == (1, 3, (1, 2, 3))
    assert (frame.first_ns, frame.last_ns) == (10, 30)
    assert frame.size == 12


def test_a_gap_inside_a_frame_costs_only_that_frame() -> None:
    data = frame_bytes(b"0123456789") + frame_bytes(b"next")
    pieces: list[Chunk | Gap] = [
        Chunk(0, data[:8], 1, 1),
        Gap(8, 3, "lost", 2, 2),
        Chunk(11, data[11:], 3, 3),
    ]
    events = run(pieces, never)
    assert payloads(events) == [MARK + b"01", MARK + b"next"]
    assert cut(events) == ["cut-frame"]
    assert accounted(events) == len(data)


def test_a_gap_that_ends_with_its_frame_leaves_the_boundary_known() -> None:
    data = frame_bytes(b"0123456789") + frame_bytes(b"next")
    events = run([Chunk(0, data[:8], 1, 1), Gap(8, 8, "lost", 2, 2), Chunk(16, data[16:], 3, 3)], never)
    assert payloads(events) == [MARK + b"01", MARK + b"next"]


def test_a_boundary_inside_a_gap_is_searched_for() -> None:
    first, second, third = frame_bytes(b"first"), frame_bytes(b"second"), frame_bytes(b"third")
    data = first + second + third
    lost = slice(len(first) - 2, len(first) + 5)
    pieces: list[Chunk | Gap] = [
        Chunk(0, data[: lost.start], 1, 1),
        Gap(lost.start, 7, "lost", 2, 2),
        Chunk(lost.stop, data[lost.stop :], 3, 3),
    ]
    events = run(pieces)
    assert payloads(events) == [MARK + b"fir", MARK + b"third"]
    assert [e.searched for e in events if isinstance(e, Frame)] == [False, True]
    assert accounted(events) == len(data)


def test_an_impossible_size_loses_the_boundary_until_a_frame_is_found() -> None:
    data = frame_bytes(b"good") + b"\xff\xff\xff\xff garbage " + frame_bytes(b"found")
    events = run(chunks(data, 10))
    assert payloads(events) == [MARK + b"good", MARK + b"found"]
    assert "bad-size" in [e.kind for e in events if isinstance(e, Fault)]
    assert accounted(events) == len(data)


def test_a_size_over_the_limit_is_never_waited_for() -> None:
    data = (DEFAULTS.frame_bytes + 1).to_bytes(4, "big") + b"GET / HTTP" * 10
    events = run(chunks(data, 20, 40))
    assert payloads(events) == []
    assert accounted(events) == len(data)


def test_a_stream_that_ends_inside_a_frame_gives_what_there_is() -> None:
    data = frame_bytes(b"whole") + frame_bytes(b"cut off")[:-3]
    events = run(chunks(data), never)
    assert payloads(events) == [MARK + b"whole", MARK + b"cut "]
    assert cut(events) == ["cut-frame"]


def test_a_stream_joined_in_the_middle_is_searched_from_its_first_byte() -> None:
    data = b"the tail of something" + frame_bytes(b"first whole")
    events = run(chunks(data, 21), trusted=False)
    assert payloads(events) == [MARK + b"first whole"]
    assert accounted(events) == len(data)


def test_a_witness_that_sees_no_frame_lets_none_through() -> None:
    data = bytes(200)
    events = run(chunks(data, 50, 100), lambda *_: False, trusted=False)
    assert payloads(events) == []
    assert accounted(events) == len(data)


@given(st.data())
def test_every_byte_is_accounted_for_with_any_chopping_and_any_loss(data: st.DataObject) -> None:
    content = b"".join(map(frame_bytes, data.draw(st.lists(st.binary(max_size=12), min_size=1, max_size=8))))
    edges = sorted({0, len(content), *data.draw(st.sets(st.integers(1, len(content)), max_size=10))})
    pieces: list[Chunk | Gap] = []
    for i, (a, b) in enumerate(itertools.pairwise(edges)):
        lost = data.draw(st.booleans()) and data.draw(st.booleans())
        pieces.append(Gap(a, b - a, "lost", i, i) if lost else Chunk(a, content[a:b], i, i))
    events = run(pieces)
    assert accounted(events) == len(content)
    if not any(isinstance(p, Gap) for p in pieces):
        assert b"".join(len(p).to_bytes(4, "big") + p for p in payloads(events)) == content


def test_behind_a_gap_of_unknown_length_the_boundary_is_searched_for() -> None:
    """Its length is an estimate (records of TLS were lost): what is announced cannot be counted off."""
    whole, after = frame_bytes(bytes(100)), frame_bytes(b"after")
    gap = Gap(50, 10, "lost", 2, 2, is_exact=False)
    for before in (whole[:50], frame_bytes(bytes(40))[:50], b"\0\0"):
        start = len(before) + gap.length
        there = gap._replace(offset=len(before))
        out = run([Chunk(0, before, 1, 1), there, Chunk(start, after, 3, 3)])
        frames = [event for event in out if isinstance(event, Frame)]
        assert frames[-1].payload == MARK + b"after"
        assert frames[-1].searched


def test_a_frame_has_every_packet_of_the_records_it_came_in() -> None:
    data = frame_bytes(b"one") + frame_bytes(b"two")
    first, second = run([Chunk(0, data, 9, 9, (7, 8, 9))], never)
    assert isinstance(first, Frame)
    assert isinstance(second, Frame)
    assert first.packets == second.packets == (7, 8, 9)
    (joined,) = run([Chunk(0, data[:5], 2, 2, (1, 2)), Chunk(5, data[5:9], 3, 3)], never)
    assert isinstance(joined, Frame)
    assert (joined.packets, joined.last_packet) == ((1, 2, 3), 3)


@pytest.mark.parametrize("had", [6, 9])
def test_what_is_given_up_costs_its_own_frame_only(had: int) -> None:
    data = frame_bytes(b"given up") + frame_bytes(b"next")
    framer = Framer(Direction.TO_BROKER, trusted=True)
    first, rest = chunks(data, had)
    events = [*framer.feed(first, never), *framer.give_up("too much waits"), *framer.feed(rest, never)]
    assert payloads(events)[-1] == MARK + b"next"
    assert accounted([*events, *framer.close(never)]) == len(data)


def spanned(pieces: list[Chunk | Gap], switch_at: int = -1) -> list[Event]:
    """What the way for frames of several segments gives; from one piece on, what :meth:`Framer.feed` does."""
    framer = Framer(Direction.TO_BROKER, trusted=True)
    out: list[Event] = []
    for number, piece in enumerate(pieces):
        if number == switch_at or isinstance(piece, Gap):
            return [*out, *(event for each in pieces[number:] for event in framer.feed(each, never))]
        at, data = 0, b"before" + piece.data + b"behind"
        while at < len(piece.data):
            taken = framer.span(
                piece.packet, piece.timestamp_ns, piece.offset + at, data, 6 + at, len(piece.data) - at
            )
            assert taken
            at += taken
            if (frame := framer.spanned()) is not None:
                out.append(frame)
    return out


@given(
    st.lists(st.binary(max_size=12), max_size=6),
    st.lists(st.integers(0, 90), max_size=20),
    st.integers(-1, 20),
)
def test_frames_of_several_segments_are_those_that_feed_gives(
    contents: list[bytes], cuts: list[int], switch_at: int
) -> None:
    data = b"".join(map(frame_bytes, contents))
    pieces = chunks(data, *sorted(each for each in cuts if each < len(data)))
    assert spanned(pieces, switch_at) == [event for event in run(pieces, never) if isinstance(event, Frame)]


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff", (DEFAULTS.frame_bytes + 1).to_bytes(4, "big")])
@pytest.mark.parametrize("had", range(4))
def test_a_size_that_cannot_be_is_not_taken(size: bytes, had: int) -> None:
    framer = Framer(Direction.TO_BROKER, trusted=True)
    assert not had or framer.span(1, 1, 0, size, 0, had) == had
    assert framer.span(2, 2, had, size + b"more", had, 8 - had) == 0
    events = [*framer.feed(Chunk(had, size[had:] + b"more", 2, 2), by_mark), *framer.close(by_mark)]
    assert [event.kind for event in events if isinstance(event, Fault)] == ["bad-size"]


def test_what_is_searched_or_skipped_is_not_taken() -> None:
    assert Framer(Direction.TO_BROKER, trusted=False).span(1, 1, 0, b"bytes", 0, 5) == 0
    framer = Framer(Direction.TO_BROKER, trusted=True)
    framer.feed(chunks(frame_bytes(b"given up")[:8])[0], never)
    framer.give_up("too much waits")
    assert framer.span(2, 2, 8, b"bytes", 0, 5) == 0
