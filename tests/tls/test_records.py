"""Records are cut at their headers, however they arrive, and found again after a gap."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from kdissect.model import Chunk, Gap
from kdissect.tls.records import LONGEST_FRAGMENT, MOST_DEFECTS, Item, Loss, RecordReader, TlsRecord
from tests.tls.forge import record

records = st.lists(st.tuples(st.sampled_from((20, 21, 22, 23)), st.binary(max_size=60)), max_size=12)


def chunks(data: bytes, cuts: list[int], offset: int = 0, packet: int = 1) -> list[Chunk]:
    """``data`` in segments of these sizes, over and over."""
    out, at, turn = [], 0, 0
    while at < len(data):
        size = cuts[turn % len(cuts)]
        out.append(Chunk(offset + at, data[at : at + size], packet + turn, packet + turn))
        at += size
        turn += 1
    return out


def read(pieces: Sequence[Chunk | Gap]) -> list[Item]:
    reader = RecordReader()
    out = [item for piece in pieces for item in reader.feed(piece)]
    return [*out, *reader.close()]


def whole(items: list[Item]) -> list[tuple[int, bytes]]:
    return [(item.type, item.fragment) for item in items if isinstance(item, TlsRecord)]


def assert_every_byte_is_somewhere(items: list[Item], size: int) -> None:
    at = 0
    for item in items:
        assert item.offset == at
        at += len(item.header) + len(item.fragment) if isinstance(item, TlsRecord) else item.length
    assert at == size


@given(records, st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_records_do_not_depend_on_segments(said: list[tuple[int, bytes]], cuts: list[int]) -> None:
    data = b"".join(record(kind, body) for kind, body in said)
    items = read(chunks(data, cuts))
    assert whole(items) == said
    assert_every_byte_is_somewhere(items, len(data))


@given(st.binary(max_size=400), st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_every_byte_of_anything_is_a_record_or_lost(data: bytes, cuts: list[int]) -> None:
    assert_every_byte_is_somewhere(read(chunks(data, cuts)), len(data))


@given(records, st.integers(0, 700), st.integers(1, 300), st.lists(st.integers(1, 40), min_size=1))
def test_every_byte_around_a_gap_is_a_record_or_lost(
    said: list[tuple[int, bytes]], start: int, length: int, cuts: list[int]
) -> None:
    data = b"".join(record(kind, body) for kind, body in said)
    start = min(start, len(data))
    end = min(start + length, len(data))
    pieces: list[Chunk | Gap] = [*chunks(data[:start], cuts)]
    if end > start:
        pieces.append(Gap(start, end - start, "lost", 1, 1))
    items = read([*pieces, *chunks(data[end:], cuts, end)])
    assert_every_byte_is_somewhere(items, len(data))
    assert set(whole(items)) <= set(said) or not said


def test_a_record_has_all_its_packets_and_is_whole_when_the_latest_came() -> None:
    data = record(23, bytes(25)) + record(23, b"next")
    first, late, last = data[:10], data[10:20], data[20:]
    items = read([Chunk(0, first, 1, 100), Chunk(10, late, 7, 700), Chunk(20, last, 3, 300)])
    one, two = (item for item in items if isinstance(item, TlsRecord))
    assert (one.packet, one.timestamp_ns, one.packets) == (7, 700, (1, 7, 3))
    assert (two.packet, two.timestamp_ns, two.packets) == (3, 300, (3,))


def test_a_gap_inside_a_record_costs_that_record() -> None:
    data = record(23, bytes(100)) + record(22, b"next")
    items = read([Chunk(0, data[:50], 1, 1), Gap(50, 20, "lost", 2, 2), Chunk(70, data[70:], 3, 3)])
    lost, after = items
    assert isinstance(lost, Loss)
    assert (lost.type, lost.fragment_bytes, lost.length) == (23, 100, 105)
    assert whole([after]) == [(22, b"next")]


def test_after_a_gap_a_header_at_the_start_of_a_segment_counts() -> None:
    data = record(23, bytes(range(100)))
    items = read([Gap(0, 500, "lost", 1, 1), Chunk(500, data, 2, 2)])
    assert (items[0].offset, items[1].offset) == (0, 500)
    assert whole(items) == [(23, bytes(range(100)))]


def test_after_a_gap_another_header_counts_where_a_third_stands_behind_it() -> None:
    looks_like = b"\x17\x03\x03\0\x03abcdefg"
    data = bytes(33) + looks_like + record(23, b"one") + record(21, b"22") + record(23, b"three")
    for size in (7, 1000):
        items = read([Gap(0, 10, "lost", 1, 1), *chunks(data, [size], 10)])
        assert whole(items) == [(23, b"one"), (21, b"22"), (23, b"three")]
        assert_every_byte_is_somewhere(items, 10 + len(data))


def test_a_length_that_no_record_has_is_no_header() -> None:
    data = b"\x17\x03\x03" + (LONGEST_FRAGMENT + 1).to_bytes(2, "big") + bytes(30)
    (lost,) = read([Chunk(0, data, 1, 1)])
    assert isinstance(lost, Loss)
    assert lost.is_defect


def test_a_stream_that_loses_its_boundary_again_and_again_is_given_up() -> None:
    data = (record(23, b"x") + b"?") * (3 * MOST_DEFECTS)
    items = read(chunks(data, [5000]))
    assert len(whole(items)) <= 2 * MOST_DEFECTS
    assert_every_byte_is_somewhere(items, len(data))


@given(records, st.lists(st.integers(1, 40), min_size=1, max_size=6), st.sampled_from((20, 23)))
def test_records_that_are_passed_over_are_those_of_their_types(
    said: list[tuple[int, bytes]], cuts: list[int], least_type: int
) -> None:
    data = b"".join(record(kind, content) for kind, content in said)
    reader, items = RecordReader(), list[Item]()
    for piece in chunks(data, cuts):
        passed = reader.skip(b"-" + piece.data + b"-", 1, len(piece.data), least_type)
        if passed < len(piece.data):
            items += reader.feed(piece._replace(offset=piece.offset + passed, data=piece.data[passed:]))
    items += reader.close()
    fed = whole(items)
    kept = [each for each in said if each[0] < least_type]
    assert [each for each in fed if each[0] < least_type] == kept
    assert len(items) == len(fed)
    if min(cuts) >= 5 + 60:
        assert fed == kept


def test_a_record_in_whole_segments_is_passed_over_without_being_held() -> None:
    reader = RecordReader()
    data = record(23, bytes(5000)) + record(21, b"ab")
    for piece in chunks(data[:-7], [1000]):
        assert reader.skip(piece.data, 0, len(piece.data), 23) == len(piece.data)
        assert reader.held_bytes == 0
    assert reader.skip(data[-7:], 0, 7, 23) == 0
    assert whole(list(reader.feed(Chunk(len(data) - 7, data[-7:], 9, 9)))) == [(21, b"ab")]


def test_a_held_record_is_passed_over_once_its_header_is_known() -> None:
    data = record(23, bytes(3000)) + record(23, bytes(3000)) + record(21, b"ab")
    (first, second, *others) = chunks(data, [3003])
    reader = RecordReader()
    assert [each[0] for each in whole(list(reader.feed(first)))] == []
    reader.skip_held(24)
    assert reader.held_bytes
    reader.skip_held(23)
    assert not reader.held_bytes
    items: list[Item] = []
    for piece in (second, *others):
        passed = reader.skip(piece.data, 0, len(piece.data), 23)
        if passed < len(piece.data):
            items += reader.feed(piece._replace(offset=piece.offset + passed, data=piece.data[passed:]))
            reader.skip_held(23)
    assert whole([*items, *reader.close()]) == [(21, b"ab")]


def test_a_header_that_is_not_complete_stays_held() -> None:
    reader = RecordReader()
    data = record(23, bytes(100))
    reader.feed(Chunk(0, data[:4], 1, 1))
    reader.skip_held(20)
    assert reader.held_bytes
    assert whole(list(reader.feed(Chunk(4, data[4:], 2, 2)))) == [(23, bytes(100))]
