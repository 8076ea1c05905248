"""Segments: whole, torn, damaged, and larger than what is read at a time."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.limits import DEFAULTS
from kdissect.logdir.search import HEAD, PART
from kdissect.logdir.segment import read_batches
from kdissect.model import Fault
from kdissect.wording import plural
from tests.amount import each_of, times
from tests.logdir.build import batch_of, read
from tests.record.build import message

BATCHES = tuple(batch_of(offset) for offset in (0, 2, 4, 6))
SEGMENT = b"".join(BATCHES)
STARTS = [sum(map(len, BATCHES[:at])) for at in range(len(BATCHES))]
OFFSETS = [(start, offset) for start, offset in zip(STARTS, (1, 3, 5, 7), strict=True)]
LEADER_EPOCH = range(12, 16)


def test_a_whole_segment_has_its_batches_and_no_faults() -> None:
    found = read(SEGMENT)
    assert found.offsets == OFFSETS
    assert found.faults == []


def test_an_empty_segment_has_nothing() -> None:
    assert read(b"") == ([], [])


def test_a_torn_tail_is_told_at_every_byte(logdirs: Path) -> None:
    whole = (logdirs / "broker-3.9.2/java39-transactions-out-1/00000000000000000000.log").read_bytes()
    offsets = read(whole).offsets
    last = offsets[-1][0]
    for cut in range(last + 1, len(whole)):
        found = read(whole[:cut])
        there = cut - last
        assert [position for position, batch in found.batches if not batch.partial] == [
            p for p, _ in offsets[:-1]
        ]
        assert [position for position, batch in found.batches if batch.partial] == [last] * (there >= 61)
        assert [(position, fault.kind) for position, fault in found.faults] == [(last, "torn-tail")]
        assert found.faults[0][1].layer == "file"
        assert found.faults[0][1].offset == last
        assert f"after {plural(there, 'byte')} " in found.faults[0][1].message


def test_a_torn_message_of_magic_0_is_no_batch() -> None:
    whole = message(0, 0, 0, b"one")
    found = read(whole + message(0, 0, 1, b"two")[:-1])
    assert found.offsets == [(0, 0)]
    assert [(position, fault.kind) for position, fault in found.faults] == [(len(whole), "torn-tail")]


@each_of(lambda: product(range(len(BATCHES[1])), (0x01, 0x80, 0xFF)))
def test_a_flipped_byte_costs_at_most_its_own_batch(flipped: tuple[int, int]) -> None:
    at, flip = flipped
    data = bytearray(SEGMENT)
    data[STARTS[1] + at] ^= flip
    found = read(bytes(data))
    assert [each for each in found.offsets if each[0] != STARTS[1]] == [OFFSETS[0], *OFFSETS[2:]]
    assert bool(found.faults) == (at not in LEADER_EPOCH), "all but the leader epoch is checked"


def test_zeros_up_to_the_end_are_one_fault() -> None:
    found = read(SEGMENT + bytes(3 * PART))
    assert found.offsets == OFFSETS
    assert [(fault.kind, fault.offset) for _, fault in found.faults] == [("trailing-bytes", len(SEGMENT))]


def test_bytes_that_are_no_batch_are_passed_over_up_to_the_next() -> None:
    for garbage in (b"\xff" * 100, b"\0" * 100, b"\xff" * (PART - 5), b"\0" * (2 * PART + HEAD)):
        found = read(BATCHES[0] + garbage + BATCHES[1])
        assert found.offsets == [(0, 1), (len(BATCHES[0]) + len(garbage), 3)]
        assert [(fault.kind, fault.layer, fault.offset) for _, fault in found.faults] == [
            ("bad-batch", "file", len(BATCHES[0]))
        ]


def test_bytes_that_are_no_batch_up_to_the_end_are_one_fault() -> None:
    found = read(SEGMENT + b"\xff" * 100)
    assert found.offsets == OFFSETS
    assert found.kinds == ["bad-batch"]
    assert "100 bytes up to the end" in found.faults[0][1].message


def test_after_a_damaged_length_only_offsets_that_go_on_count() -> None:
    """Copies of older batches, in a record's value or in a file that was reused, are not batches here."""
    found = read(BATCHES[2] + b"\xff" * 50 + BATCHES[0] + BATCHES[3])
    assert [last for _, last in found.offsets] == [5, 7]


def test_a_batch_with_a_wrong_checksum_is_not_where_reading_goes_on() -> None:
    wrong = bytearray(BATCHES[1])
    wrong[-1] ^= 1
    found = read(BATCHES[0] + b"\xff" * 50 + bytes(wrong) + BATCHES[2])
    assert [last for _, last in found.offsets] == [1, 5]


def test_offsets_of_a_batch_with_a_wrong_checksum_are_not_believed() -> None:
    data = bytearray(SEGMENT)
    data[STARTS[1] + 24] ^= 0x40  # of the last offset delta
    found = read(bytes(data))
    assert [last for _, last in found.offsets] == [1, 3 + (0x40 << 16), 5, 7]
    assert {position for position, _ in found.faults} == {STARTS[1]}


def test_searches_end_however_often_a_segment_asks_for_them() -> None:
    """Every batch here has a wrong checksum, and what follows it does not go on."""
    wrong = bytearray(BATCHES[0])
    wrong[-1] ^= 1
    asked = 0
    data = bytes(wrong) * 20_000

    def read_at(position: int, count: int) -> bytes:
        nonlocal asked
        asked += min(count, len(data) - position)
        return data[position : position + count]

    found = list(read_batches(read_at, len(data), base_offset=50))
    assert sum(not isinstance(each, Fault) for _, each in found) == 20_000
    assert asked < 30 * len(data)


def test_offsets_that_do_not_ascend_are_told_and_read() -> None:
    found = read(BATCHES[1] + BATCHES[0] + BATCHES[2])
    assert [last for _, last in found.offsets] == [3, 1, 5]
    assert [(fault.kind, fault.offset) for _, fault in found.faults] == [("bad-batch", len(BATCHES[1]))]


def test_an_offset_before_that_of_the_name_is_told() -> None:
    assert read(SEGMENT, base_offset=3).kinds == ["bad-batch"]
    assert read(SEGMENT, base_offset=0).kinds == []
    assert read(SEGMENT, base_offset=None).kinds == []


def test_a_batch_over_the_limit_is_left_out_and_costs_nothing_else() -> None:
    large = batch_of(2, 2, 5_000)
    found = read(BATCHES[0] + large + BATCHES[2], limits=DEFAULTS._replace(frame_bytes=1_000))
    # What is read at a time may hold it all the same; one that does not fit is not read for it.
    assert [last for _, last in found.offsets] == [1, 3, 5]
    huge = batch_of(2, 2, PART)
    found = read(BATCHES[0] + huge + BATCHES[2], limits=DEFAULTS._replace(frame_bytes=PART))
    assert [last for _, last in found.offsets] == [1, 5]
    assert [(fault.kind, fault.offset) for _, fault in found.faults] == [("bad-length", len(BATCHES[0]))]


def test_memory_does_not_grow_with_the_segment() -> None:
    """Only so much is asked for at a time; a larger batch is asked for as a whole."""
    many = b"".join(batch_of(offset, 1, 70_000) for offset in range(60))
    large = batch_of(60, 1, 2 * PART)
    data = many + large + batch_of(61)
    asked = []

    def read_at(position: int, count: int) -> bytes:
        asked.append(count)
        return data[position : position + count]

    found = list(read_batches(read_at, len(data)))
    assert len(found) == 62
    assert not any(isinstance(each, Fault) for _, each in found)
    assert max(asked) == len(large)
    assert sorted(asked)[-2] <= PART


def test_a_file_that_gets_shorter_while_it_is_read_ends_there() -> None:
    data = SEGMENT
    size = len(data) + 1_000
    found = list(read_batches(lambda position, count: data[position : position + count], size))
    assert [each.kind for _, each in found if isinstance(each, Fault)] == ["cut-short"]
    assert sum(not isinstance(each, Fault) for _, each in found) == len(BATCHES)


@settings(max_examples=times(100, 300), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, len(SEGMENT) - 1), st.integers(0, 255)), max_size=8),
    st.integers(0, len(SEGMENT)),
    st.binary(max_size=60),
)
def test_no_bytes_raise_and_batches_come_in_order(
    changes: list[tuple[int, int]], cut: int, more: bytes
) -> None:
    data = bytearray(SEGMENT)
    for at, value in changes:
        data[at] = value
    data = data[:cut] + more + data[cut:]
    found = read(bytes(data))
    positions = [position for position, _ in found.batches]
    assert positions == sorted(set(positions))
    assert all(0 <= position < len(data) for position in positions)
    if data and not found.faults:
        assert found.batches[0][0] == 0
        ends = [position + batch.size for position, batch in found.batches]
        assert ends == [*positions[1:], len(data)], "without a fault, every byte is in a batch"


@settings(max_examples=times(60, 200), deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_raising(data: bytes) -> None:
    found = read(data, base_offset=None)
    assert bool(data) == bool(found.batches or found.faults)


@pytest.mark.parametrize("there", [1, 8, 12, HEAD - 1])
def test_a_batch_of_which_few_bytes_end_what_was_read_is_whole(there: int) -> None:
    wanted = PART - there
    value = wanted - 100
    while len(first := batch_of(0, 1, value)) < wanted:
        value += 1
    assert len(first) == wanted
    found = read(first + BATCHES[1])
    assert (found.offsets, found.faults) == ([(0, 0), (wanted, 3)], [])
