"""Numbers that grow."""

from __future__ import annotations

from array import array

import pytest

from kdissect.limits import DEFAULTS
from kdissect.record.batch import Batch
from kdissect.record.records import ROW, Columns, Record
from kdissect.record.rows import Int64Rows
from kdissect.record.scan import read_records
from kdissect.record.sets import BatchReader, read_record_set
from kdissect.record.write import write_batch, write_message_set


def test_there_is_no_part_where_there_is_no_room() -> None:
    rows = Int64Rows()
    assert rows.part(0, 0) == array("q")
    for start, end in ((0, 1), (-1, 0), (1, 0)):
        with pytest.raises(IndexError):
            rows.part(start, end)
    rows.reserve(1)
    assert len(rows.part(0, 1)) == 1


def test_numbers_stay_when_there_is_more_room() -> None:
    columns = Columns(b"kv", 5, -1)
    for offset in range(1_000):
        columns.add(offset, -offset, 0, 1, 1, 1)
    columns.rows.reserve(100_000)
    numbers = columns.numbers()
    assert len(numbers) == 1_000 * ROW
    assert list(numbers[::ROW]) == list(range(1_000))
    assert list(numbers[1::ROW]) == [-offset for offset in range(1_000)]


def test_columns_that_are_used_again_have_nothing_of_before() -> None:
    used = Columns(b"", 0, -1)
    for count in (100, 3, 0, 20):
        data = write_batch([Record(at, at, None, b"v" * at) for at in range(count)])[61:]
        found = read_records(data, 0, len(data), 7, 0, None, -1, 1_000, True, used)
        assert found.columns is used
        assert found.records == read_records(data, 0, len(data), 7, 0, None, -1, 1_000).records
        assert len(found.records) == count


def test_one_batch_can_be_all_of_a_set_one_after_the_other() -> None:
    records = [Record(at, -1, None, b"v") for at in range(3)]
    bad = bytearray(write_batch(records))
    bad[-1] ^= 1
    data = (
        write_message_set(records, 1, 1)
        + bytes(bad)
        + write_batch(records, 4)
        + write_message_set(records, 0)
    )
    for size in (len(data), len(data) - 1, len(data) - 40, 70):
        part = data[:size]
        reader, batch, used = BatchReader(part, DEFAULTS), Batch.__new__(Batch), Columns(b"", 0, -1)
        told = []
        while reader.read(batch):
            told.append(
                (batch.columns(used).records(), batch.faults, batch.base_offset, batch.count, batch.codec)
            )
        whole = read_record_set(part)
        assert told == [
            (each.records(), each.faults, each.base_offset, each.count, each.codec) for each in whole.batches
        ]
        assert (reader.faults, reader.position) == (whole.own_faults, whole.remainder)
