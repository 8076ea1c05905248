from __future__ import annotations

import struct
import zlib

import pytest

from kdissect.model import Fault
from kdissect.record.messages import short_crc
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.record.write import write_message_set
from tests.record.build import PLAIN_RECORDS, message, wrapper


def inner(magic: int, offsets: list[int], attributes: int = 0) -> bytes:
    return b"".join(
        message(magic, attributes, offset, b"v%d" % offset, timestamp=1_000 + offset) for offset in offsets
    )


def read(data: bytes) -> tuple[list[Record], list[Fault]]:
    found = read_record_set(data)
    records = list(found.records())
    return records, found.faults


def offsets_of(data: bytes) -> list[int]:
    records, faults = read(data)
    assert not faults
    return [record.offset for record in records]


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_wrapper_at_105_with_five_messages_holds_101_to_105(codec: int) -> None:
    data = wrapper(1, codec, 105, inner(1, [0, 1, 2, 3, 4]))
    assert offsets_of(data) == [101, 102, 103, 104, 105]
    (one,) = read_record_set(data).batches
    assert (one.base_offset, one.last_offset, one.count) == (101, 105, 5)


@pytest.mark.parametrize("magic", [0, 1])
def test_bits_of_magic_2_mean_nothing_before_it(magic: int) -> None:
    """Transactional, control and delete horizon are attributes of magic 2."""
    (one,) = read_record_set(message(magic, 0x70, 0, b"value")).batches
    assert not one.is_control
    assert not one.is_transactional
    assert one.delete_horizon_ms is None


def test_relative_offsets_keep_their_gaps() -> None:
    assert offsets_of(wrapper(1, 1, 105, inner(1, [0, 3, 7]))) == [98, 101, 105]


def test_wrapper_at_0_as_producers_send_it_has_base_0() -> None:
    assert offsets_of(wrapper(1, 1, 0, inner(1, [0, 1, 2]))) == [0, 1, 2]


def test_magic_0_has_absolute_offsets_inside() -> None:
    assert offsets_of(wrapper(0, 1, 105, inner(0, [101, 103, 105]))) == [101, 103, 105]


def test_wrapper_with_log_append_time_gives_its_time_to_all() -> None:
    records, _ = read(wrapper(1, 2, 4, inner(1, [0, 1, 2, 3, 4]), log_append=True, timestamp=99))
    assert {record.timestamp for record in records} == {99}


def test_wrapper_with_create_time_leaves_theirs() -> None:
    records, _ = read(wrapper(1, 2, 2, inner(1, [0, 1, 2]), timestamp=99))
    assert [record.timestamp for record in records] == [1_000, 1_001, 1_002]


def test_magic_0_inside_a_wrapper_of_magic_1_has_no_timestamp() -> None:
    records, faults = read(wrapper(1, 1, 11, inner(0, [0]) + inner(1, [1]), log_append=True, timestamp=99))
    assert not faults
    assert [(record.offset, record.timestamp) for record in records] == [(10, -1), (11, 99)]


def test_wrapper_in_a_wrapper_is_a_fault_and_not_opened() -> None:
    data = wrapper(1, 1, 2, inner(1, [0]) + wrapper(1, 1, 1, inner(1, [0])) + inner(1, [2]))
    records, faults = read(data)
    assert [record.value for record in records] == [b"v0", b"v2"]
    assert [problem.kind for problem in faults] == ["nested-compression"]


def test_a_thousand_wrappers_in_each_other_cost_nothing() -> None:
    data = inner(0, [0])
    for _ in range(1_000):
        data = wrapper(0, 1, 0, data)
    records, faults = read(data)
    assert records == []
    assert [problem.kind for problem in faults] == ["nested-compression"]


def test_wrappers_that_double_at_each_level_are_not_opened() -> None:
    data = inner(0, [0]) * 1_000
    for _ in range(12):
        data = wrapper(0, 1, 0, data * 2)
    records, faults = read(data)
    assert records == []
    assert [problem.kind for problem in faults] == ["nested-compression"]


def test_messages_of_a_cut_wrapper_are_left_out_where_their_offsets_cannot_be_told() -> None:
    whole = inner(1, [0, 1, 2])
    records, faults = read(wrapper(1, 1, 102, whole[:-3]))
    assert records == []
    assert [problem.kind for problem in faults] == ["bad-record", "bad-batch"]
    (one,) = read_record_set(wrapper(1, 1, 102, whole[:-3])).batches
    assert (one.base_offset, one.count) == (None, None)


def test_messages_of_a_cut_wrapper_of_magic_0_are_kept() -> None:
    records, faults = read(wrapper(0, 1, 102, inner(0, [100, 101, 102])[:-3]))
    assert [record.offset for record in records] == [100, 101]
    assert [problem.kind for problem in faults] == ["bad-record"]


def test_inner_offsets_beyond_the_wrappers_are_a_fault() -> None:
    records, faults = read(wrapper(1, 1, 3, inner(1, [5, 6, 7])))
    assert records == []
    assert [problem.kind for problem in faults] == ["bad-batch"]


def test_empty_wrapper_and_wrapper_without_value_are_faults() -> None:
    assert [problem.kind for problem in read(wrapper(1, 1, 3, b""))[1]] == ["bad-batch"]
    assert [problem.kind for problem in read(message(1, 1, 3, None))[1]] == ["bad-batch"]


def test_wrong_checksum_inside_a_wrapper_is_reported_and_the_message_read() -> None:
    records, faults = read(wrapper(1, 1, 0, message(1, 0, 0, b"x", crc=1)))
    assert [record.value for record in records] == [b"x"]
    assert [problem.kind for problem in faults] == ["bad-crc"]


def test_magic_2_inside_a_wrapper_is_a_fault() -> None:
    _, faults = read(wrapper(0, 1, 1, inner(0, [0]) + message(2, 0, 1, b"x" * 40)))
    assert [problem.kind for problem in faults] == ["bad-magic"]


def test_zstd_in_old_messages_is_a_fault_and_unpacked() -> None:
    records, faults = read(wrapper(1, 4, 1, inner(1, [0, 1])))
    assert len(records) == 2
    assert [problem.kind for problem in faults] == ["bad-batch"]


@pytest.mark.parametrize("length", [-2, 5, 2**31 - 1])
def test_length_that_the_message_cannot_hold_is_a_fault_of_that_message_alone(length: int) -> None:
    good = message(0, 0, 1, b"abcd", b"k")
    bad = good[:18] + length.to_bytes(4, "big", signed=True) + good[22:]
    records, faults = read(good + bad + good)
    assert len(records) == (3 if length == 1 else 2)
    assert [problem.kind for problem in faults] == ["bad-crc", "bad-record"]


def test_bytes_after_the_value_are_reported() -> None:
    body = message(0, 0, 1, b"abcd")[16:] + b"rest"
    data = struct.pack(">qiI", 1, 4 + len(body), zlib.crc32(body)) + body
    records, faults = read(data)
    assert [record.value for record in records] == [b"abcd"]
    assert [problem.kind for problem in faults] == ["bad-record"]
    records, faults = read(wrapper(0, 1, 1, data))
    assert [record.value for record in records] == [b"abcd"]
    assert [problem.kind for problem in faults] == ["bad-record"]


@pytest.mark.parametrize("magic", [0, 1])
def test_lz4_with_the_old_header_checksum_is_read_and_written_for_magic_0(magic: int) -> None:
    records = [record._replace(timestamp=record.timestamp if magic else -1) for record in PLAIN_RECORDS]
    assert read(write_message_set(records, magic, 3)) == (records, [])


def test_the_checksum_of_few_bytes_is_that_of_zlib() -> None:
    data = bytes(range(256)) * 2
    for start in (0, 1, 17):
        for size in (*range(40), 160, 300):
            assert short_crc(data, start, start + size) == zlib.crc32(data[start : start + size])
