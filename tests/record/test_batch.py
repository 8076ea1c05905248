from __future__ import annotations

import resource
import time

import pytest

from kdissect.limits import DEFAULTS, Limits
from kdissect.record.compression import compress
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.record.write import write_batch, write_message_set
from tests.amount import times
from tests.record.build import RECORDS, batch, bodies, packed_batch

MIB = 1 << 20


def kinds(data: bytes, limits: Limits | None = None) -> list[str]:
    found = read_record_set(data, limits or Limits())
    list(found.records())
    return [problem.kind for problem in found.faults]


def test_w3_timestamps_of_a_batch_are_milliseconds() -> None:
    (one,) = read_record_set(write_batch(RECORDS)).batches
    assert one.base_timestamp == 1_700_000_000_000
    assert one.max_timestamp == 1_700_000_100_000
    assert [record.timestamp for record in one.records()] == [record.timestamp for record in RECORDS]


def test_w4_five_mib_uncompressed_batch_is_read() -> None:
    record = Record(0, 1, b"k", bytes(5 * MIB))
    found = read_record_set(write_batch([record]))
    assert list(found.records()) == [record]
    assert not found.faults


@pytest.mark.parametrize("codec", [2, 3], ids=["snappy", "lz4"])
def test_w5_more_than_a_hundred_chunks_are_ordinary(codec: int) -> None:
    records = [Record(i, i, None, bytes([i % 251]) * 70_000) for i in range(150)]
    data = write_batch(records, codec)
    if codec == 2:
        assert 150 * 70_000 > 100 * 32 * 1024
    found = read_record_set(data)
    assert list(found.records()) == records
    assert not found.faults


def test_w9_log_append_time_gives_every_record_the_batchs_time() -> None:
    data = write_batch(RECORDS, log_append_time=True, max_timestamp=1_800_000_000_000)
    (one,) = read_record_set(data).batches
    assert one.timestamp_type == "LogAppendTime"
    assert {record.timestamp for record in one.records()} == {1_800_000_000_000}


@pytest.mark.parametrize("codec", [0, 1])
def test_the_timestamps_that_log_append_time_hides_can_be_asked_for(codec: int) -> None:
    data = write_batch(RECORDS, codec, log_append_time=True, max_timestamp=1_800_000_000_000)
    for asked_first in (True, False):
        (one,) = read_record_set(data).batches
        if asked_first:
            assert {record.timestamp for record in one.records()} == {1_800_000_000_000}
        assert one.stored_timestamps() == [record.timestamp for record in RECORDS]
        assert not one.faults


def test_w9_delete_horizon_is_told_and_timestamps_count_from_it() -> None:
    (one,) = read_record_set(write_batch(RECORDS, delete_horizon_ms=1_700_003_600_000)).batches
    assert one.delete_horizon_ms == 1_700_003_600_000
    assert [record.timestamp for record in one.records()] == [record.timestamp for record in RECORDS]


@pytest.mark.parametrize("codec", range(5))
def test_w9_empty_compacted_batch_is_faultless(codec: int) -> None:
    data = batch(b"", count=0, attributes=codec, last_delta=11, base_offset=50)
    found = read_record_set(data)
    assert list(found.records()) == []
    assert not found.faults
    assert (found.batches[0].base_offset, found.batches[0].last_offset, found.batches[0].count) == (50, 61, 0)


@pytest.mark.parametrize("codec", range(4))
def test_w10_messages_of_magic_1_have_their_timestamps_and_are_unwrapped(codec: int) -> None:
    records = [record._replace(headers=()) for record in RECORDS]
    found = read_record_set(write_message_set(records, 1, codec))
    assert list(found.records()) == records
    assert not found.faults


@pytest.mark.parametrize("announced", [-(2**31), -1, 0, 3, 5, 2**31 - 1])
def test_another_number_of_records_than_announced_is_a_fault_and_all_are_read(announced: int) -> None:
    for codec in (0, 1):
        found = read_record_set(packed_batch(codec, bodies(), announced))
        assert len(list(found.records())) == 4
        assert [problem.kind for problem in found.faults] == ["record-count"]


def test_bytes_after_the_records_are_reported() -> None:
    found = read_record_set(batch(bodies() + b"\xff\xff\xff", count=4))
    assert len(list(found.records())) == 4
    (problem,) = found.faults
    assert problem.kind == "bad-record"
    assert "3 bytes" in problem.message


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codec_that_kafka_does_not_have_is_named(codec: int) -> None:
    (one,) = read_record_set(batch(b"whatever", count=1, attributes=codec)).batches
    assert one.codec == f"unknown({codec})"
    assert one.records() == []
    assert [problem.kind for problem in one.faults] == ["unknown-codec"]


def test_records_before_damage_in_compressed_data_are_kept() -> None:
    body = bodies()
    packed = compress(1, body)
    found = read_record_set(batch(packed[:-8] + b"\0" * 8, count=4, attributes=1))
    assert next(found.records()).value == b"value-one"
    assert [problem.kind for problem in found.faults] == ["bad-compressed-data"]


def test_negative_last_offset_delta_is_a_fault() -> None:
    assert kinds(batch(bodies(), count=4, last_delta=-1)) == ["bad-batch"]


def test_offsets_and_timestamps_overflow_as_kafkas_do() -> None:
    data = bytearray(write_batch([Record(0, 0, None, b""), Record(1, 1, None, b"")]))
    data[0:8] = (2**63 - 1).to_bytes(8, "big")
    (one,) = read_record_set(bytes(data)).batches
    assert [record.offset for record in one.records()] == [2**63 - 1, -(2**63)]


def test_sequence_numbers_wrap_after_the_largest_int32() -> None:
    records = [Record(i, 0, None, b"") for i in range(4)]
    (one,) = read_record_set(write_batch(records, base_sequence=2**31 - 2, producer_id=9)).batches
    assert [record.sequence for record in one.records()] == [2**31 - 2, 2**31 - 1, 0, 1]


def test_records_without_idempotence_have_no_sequence() -> None:
    (one,) = read_record_set(write_batch(RECORDS)).batches
    assert {record.sequence for record in one.records()} == {-1}


def test_unpacked_bytes_are_bounded_for_the_set_as_a_whole() -> None:
    body = bodies((Record(0, 0, None, bytes(900_000)),))
    data = packed_batch(4, body, 1) * 50
    limits = Limits(decompressed_bytes=2 * MIB)
    found = read_record_set(data, limits)
    assert len(list(found.records())) == 2
    assert [problem.kind for problem in found.faults] == ["decompression-limit"] * 48


def test_partial_packed_batch_gives_what_unpacks_and_hides_no_limit() -> None:
    data = packed_batch(1, bodies(), 4)[:-12]
    found = read_record_set(data)
    assert next(found.records()).value == b"value-one"
    assert [problem.kind for problem in found.faults] == ["partial-batch"]
    assert kinds(data, Limits(decompressed_bytes=50)) == ["decompression-limit", "partial-batch"]


def test_records_are_bounded_for_the_set_as_a_whole() -> None:
    body = bodies((Record(0, 0, None, None),) * 600)
    found = read_record_set(packed_batch(4, body, 600) * 3, Limits(elements=1_000))
    assert [len(one.records()) for one in found.batches] == [600, 400, 0]
    assert [problem.kind for problem in found.faults] == ["too-many-elements"] * 2


def test_header_names_that_are_not_utf8_keep_their_bytes() -> None:
    name = b"a\xffb".decode("utf-8", "surrogateescape")
    found = read_record_set(write_batch([Record(0, 0, None, None, ((name, b"x"),))]))
    assert [record.headers for record in found.records()] == [((name, b"x"),)]
    assert [problem.kind for problem in found.faults] == ["not-utf8"]


@pytest.mark.parametrize(
    ("codec", "most"),
    [(1, 100_000), (2, 100_000), (3, 100_000), (4, times(100_000, 1_000_000))],
    ids=["gzip", "snappy", "lz4", "zstd"],
)
def test_small_records_without_end_in_a_nutshell_are_bounded(codec: int, most: int) -> None:
    """Nine times as many records of seven bytes as are made of each batch; by default a million are made."""
    data = packed_batch(codec, b"\x0c\0\0\0\1\1\0" * (9 * most), 9 * most) * 3
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    found = read_record_set(data, DEFAULTS._replace(elements=most))
    made = sum(len(one.records()) for one in found.batches)
    assert made <= 3 * most
    assert {"too-many-elements"} <= {problem.kind for problem in found.faults}
    assert time.process_time() - started < 25  # some 6 on a machine that does nothing else
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 400
