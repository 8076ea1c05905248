from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.record.records import Columns, Record, wrap64
from kdissect.record.scan import MOST_BROKEN, RecordsFound, read_records
from kdissect.record.write import write_record, write_varint
from tests.amount import each_of, times

EDGES = sorted(
    {
        sign * (1 << bits) + step
        for bits in (0, 6, 7, 13, 14, 20, 21, 27, 28, 31, 34, 35, 41, 48, 55, 62, 63)
        for sign in (-1, 1)
        for step in (-1, 0, 1)
    }
)


def read(data: bytes, limit: int = 1_000_000) -> RecordsFound:
    return read_records(data, 0, len(data), 0, 0, None, -1, limit)


@each_of(lambda: [each for each in EDGES if -(2**63) <= each < 2**63])
def test_timestamp_deltas_of_every_width(delta: int) -> None:
    (record,) = read(write_record(Record(0, 0, None, None), 0, delta)).records
    assert record.timestamp == delta


@each_of(lambda: [each for each in EDGES if -(2**31) <= each < 2**31])
def test_offset_deltas_of_every_width(delta: int) -> None:
    (record,) = read(write_record(Record(0, 0, None, None), delta, 0)).records
    assert record.offset == delta


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8_191, 8_192, 1_048_575, 1_048_576])
def test_lengths_of_every_width(size: int) -> None:
    wanted = Record(0, 0, bytes(size), bytes(size), (("n" * size, bytes(size)),))
    assert read(write_record(wanted, 0, 0)).records == [wanted]


@pytest.mark.parametrize(
    ("value", "width"),
    [
        (63, 1),
        (64, 2),
        (-64, 1),
        (-65, 2),
        (8_191, 2),
        (8_192, 3),
        (2**31 - 1, 5),
        (-(2**31), 5),
        (2**63 - 1, 10),
        (-(2**63), 10),
    ],
)
def test_varints_are_as_short_as_they_can_be(value: int, width: int) -> None:
    assert len(write_varint(value)) == width


NULLABLE = st.none() | st.binary(max_size=150)
LISTS = st.lists(
    st.builds(
        Record,
        st.integers(-(2**31), 2**31 - 1),
        st.integers(-(2**63), 2**63 - 1),
        NULLABLE,
        NULLABLE,
        st.lists(st.tuples(st.text(max_size=20), NULLABLE), max_size=3).map(tuple),
        st.just(-1),
    ),
    max_size=6,
)


@settings(max_examples=times(60, 200), deadline=None)
@given(LISTS)
def test_records_written_are_read(records: list[Record]) -> None:
    body = read(b"".join(write_record(record, record.offset, record.timestamp) for record in records))
    assert body.records == records
    assert (body.found, body.broken, body.stopped) == (len(records), 0, None)


GOOD_RECORD = Record(5, 6, b"key", b"value", (("name", b"x"),))
GOOD = write_record(GOOD_RECORD, 5, 6)


@pytest.mark.parametrize("place", range(1, len(GOOD)))
def test_broken_record_costs_only_itself(place: int) -> None:
    for byte in (0x00, 0x7F, 0x80, 0xFF):
        bad = GOOD[:place] + bytes([byte]) + GOOD[place + 1 :]
        body = read(GOOD + bad + GOOD)
        assert body.found == 3
        assert body.records[0] == body.records[-1] == Record(5, 6, b"key", b"value", (("name", b"x"),))
        assert len(body.records) == 3 - body.broken


@pytest.mark.parametrize("cut", range(len(GOOD)))
def test_last_record_cut_short_is_told(cut: int) -> None:
    body = read(GOOD + GOOD[:cut])
    assert len(body.records) == 1
    assert (body.stopped is None) == (cut == 0)
    assert body.end == len(GOOD)


@pytest.mark.parametrize(
    "size", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x80\x80", b"\x01", b"\xfe\xff\xff\xff\x0f"]
)
def test_impossible_length_ends_the_reading(size: bytes) -> None:
    body = read(GOOD + size + b"rest")
    assert len(body.records) == 1
    assert body.stopped is not None
    assert body.end == len(GOOD)


def test_overlong_varints_cost_their_record() -> None:
    data = b"\x00" + b"\x80" * 50 + b"\x00" * 5
    body = read(write_varint(len(data)) + data + GOOD)
    assert body.broken == 1
    assert len(body.records) == 1


def test_records_of_no_length_end_it_after_a_while() -> None:
    body = read(b"\0" * 1_000_000)
    assert body.records == []
    assert body.broken == MOST_BROKEN
    assert body.stopped is not None


def test_headers_that_the_record_cannot_hold_are_refused_before_anything_is_made() -> None:
    for count in (-1, 3, 2**31 - 1):
        data = b"\0\0\0\1\1" + write_varint(count) + b"\0\1"
        body = read(write_varint(len(data)) + data)
        assert body.broken == 1
        assert "headers" in (body.first_problem or "")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("00 80808001 80808001", "the record ends before its key"),
        ("00 80808001 00 8001 00", "a key announces 64 bytes, but 1 is left"),
        ("00 00 00 1c 616263", "a key announces 14 bytes, but 3 are left"),
        ("00 00 00 06 616263", "the record ends before its value"),
        ("00 00 00 01 02 61 00 00", "1 byte follows the last header"),
        ("00 00 00 01 0c 6161", "a value announces 6 bytes, but 2 are left"),
        ("00 00 00 00 00 02 00 02", "needs 1 byte, but 0 are left"),
        ("00 00 808080808000", "the varint is longer than 5 bytes"),
        ("00 00 00 808080", "the varint ends too early"),
        ("00 8080808080", "the varlong ends too early"),
        ("00 00 00", "a record announces only 3 bytes"),
    ],
)
@pytest.mark.parametrize("behind", [b"", GOOD, b"\0" * 40], ids=["nothing", "a record", "zeros"])
def test_a_record_never_reaches_for_bytes_behind_it(body: str, reason: str, behind: bytes) -> None:
    data = bytes.fromhex(body)
    found = read(write_varint(len(data)) + data + behind)
    assert (found.first_problem, found.first_position) == (reason, 0)
    assert found.records == ([GOOD_RECORD] if behind == GOOD else [])


def test_more_headers_than_there_is_room_for_are_refused() -> None:
    data = write_record(Record(0, 0, None, None, (("a", None),) * 5), 0, 0)
    assert len(read(data, limit=5).records) == 1
    body = read(data, limit=4)
    assert (body.records, body.first_problem) == ([], "5 headers where 4 are within the limit")


def test_limit_counts_records_and_headers() -> None:
    body = read(GOOD * 10, limit=7)
    assert len(body.records) == 4
    assert body.over_limit


def test_negative_lengths_but_null_are_no_records() -> None:
    for at in (4, 5):
        data = bytearray(b"\0\0\0\0\0\0")
        data[at - 1] = 3  # zigzag of -2
        assert read(write_varint(6) + bytes(data)).broken == 1


def test_wrapping() -> None:
    assert wrap64(2**63) == -(2**63)
    assert wrap64(-(2**63) - 1) == 2**63 - 1
    assert wrap64(5) == 5


def test_small_records_take_time_in_line_with_their_number() -> None:
    def seconds(count: int) -> float:
        data = write_record(Record(0, 0, None, None), 0, 0) * count
        started = time.process_time()
        assert len(read(data).records) == count
        return time.process_time() - started

    few = min(seconds(30_000) for _ in range(3))
    assert seconds(150_000) < 20 * few + 0.5


def columns_at(*offsets: int) -> Columns:
    found = Columns(b"kv", 5, -1)
    for offset in offsets:
        found.add(offset, 7, 0, 1, 1, 1)
    return found


def test_columns_are_added_to_and_shifted() -> None:
    found = columns_at(*range(5, 25))
    found.shift(100)
    assert found.records() == [Record(offset, 7, b"k", b"v") for offset in range(105, 125)]
    found = columns_at((1 << 63) - 1)
    found.shift(1)
    assert [record.offset for record in found.records()] == [-(1 << 63)]


@pytest.mark.parametrize(
    ("offsets", "count_up"), [((), True), ((5, 6, 7), True), ((5, 6, 6), False), ((6, 7), False)]
)
def test_whether_offsets_count_up(offsets: tuple[int, ...], count_up: bool) -> None:
    assert columns_at(*offsets).is_consecutive() is count_up
