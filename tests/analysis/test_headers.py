"""Headers of batches: one reader for all that need no record."""

from __future__ import annotations

from kdissect.analysis.headers import HEADER_BYTES, headers, sets_of, stamps_of
from kdissect.record.batch import BATCH_HEADER
from kdissect.record.records import Record
from kdissect.record.write import write_batch

MS = 1_700_000_000_000


def records(count: int, apart_ms: int = 1) -> list[Record]:
    return [Record(at, MS + at * apart_ms, None, b"value", (), -1) for at in range(count)]


def test_a_set_of_two_batches() -> None:
    data = write_batch(records(3), producer_id=7, base_sequence=4) + write_batch(records(2), 1)
    one, two = headers(data)
    assert (one.position, two.position, two.position + two.size) == (0, one.size, len(data))
    assert (one.records, one.length, one.last_offset, one.producer_id, one.base_sequence) == (3, 3, 2, 7, 4)
    assert (one.first_ms, one.last_ms, one.codec, two.codec) == (MS, MS + 2, "none", "gzip")
    assert one.content_crc == one.crc
    assert sets_of(data) == [one, two]


def test_every_field_of_a_header_is_read_with_its_sign() -> None:
    """Values that differ in every byte, and negative ones: the struct of Kafka's format decides."""
    spread: tuple[int, ...] = (0x0102_0304_0506_0708, 60, 3, 2, 0xF1F2_F3F4, 0x0013, 5, 0x1112_1314_1516_1718)
    spread += (0x2122_2324_2526_2728, 0x3132_3334_3536_3738, 0x4142, 0x5152_5354, 0x6162_6364)
    below = (-2, 60, -1, 2, 7, -0x8000, -3, -4, -5, -6, -7, -8, -9)
    found = [
        *headers(BATCH_HEADER.pack(*spread) + bytes(11)),
        *headers(BATCH_HEADER.pack(*below) + bytes(11)),
    ]
    for each, told in zip(found, (spread, below), strict=True):
        base, length, _, magic, crc, attributes, delta, first, last, producer, epoch, sequence, count = told
        assert (each.base_offset, each.size, each.magic, each.crc) == (base, length + 12, magic, crc)
        assert (each.attributes, each.last_offset) == (attributes, base + delta)
        assert (each.base_timestamp, each.max_timestamp) == (first, last)
        assert (each.producer_id, each.producer_epoch, each.base_sequence) == (producer, epoch, sequence)
        assert each.records == (count if count >= 0 else None)
    assert headers(BATCH_HEADER.pack(0, 48, *spread[2:]) + bytes(11)) == []  # too short for a batch


def test_a_batch_whose_end_is_cut_is_told_only_where_that_is_asked_for() -> None:
    whole = write_batch(records(3))
    data = whole + write_batch(records(2))[:-1]
    assert [each.position for each in headers(data)] == [0]
    assert [each.is_whole for each in sets_of(data)] == [True, False]
    assert not headers(data[: HEADER_BYTES - 1])


def test_times_of_records_that_lie_apart_are_sampled() -> None:
    near, far = write_batch(records(3)), write_batch(records(3, 1000))
    packed = write_batch(records(3, 1000), 1)
    assert stamps_of(headers(near)[0], near) == []
    assert stamps_of(headers(far)[0], far) == [MS, MS + 1000, MS + 2000]
    assert stamps_of(headers(packed)[0], packed) == []  # only unpacking would tell
    many = write_batch(records(1000, 10))
    assert len(stamps_of(headers(many)[0], many)) == 64


def message(offset: int, value: bytes, magic: int = 1) -> bytes:
    from zlib import crc32

    body = bytes((magic, 0)) + (MS.to_bytes(8, "big") if magic else b"")
    body += (-1).to_bytes(4, "big", signed=True) + len(value).to_bytes(4, "big") + value
    body = crc32(body).to_bytes(4, "big") + body
    return offset.to_bytes(8, "big") + len(body).to_bytes(4, "big") + body


def test_old_messages_in_a_row_are_one_set() -> None:
    data = message(5, b"a") + message(6, b"b") + write_batch(records(2))
    assert [(each.magic, each.records) for each in headers(data)] == [(1, 1), (1, 1), (2, 2)]
    old, new = sets_of(data)
    assert (old.base_offset, old.last_offset, old.records) == (5, 6, 2)
    assert (old.first_ms, old.content_crc) == (MS, None)
    assert (new.magic, new.position) == (2, old.size)
    assert [each.first_ms for each in sets_of(message(0, b"a", magic=0))] == [None]
