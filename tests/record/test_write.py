from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.model import Node
from kdissect.record.annotate import annotate_record_set
from kdissect.record.batch import Batch
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.record.write import write_batch, write_message, write_message_set
from tests.amount import each_of, times
from tests.record.build import RECORDS
from tests.record.official import Vector, vectors


def value_of(node: Node, name: str) -> Any:
    return next(each.value for each in node.children if each.name == name)


def write_again(batch: Batch, node: Node) -> bytes:
    """What was read, written. The stored timestamps come from the tree: where the broker put its own,
    reading does not give them."""
    records = batch.records()
    if batch.magic < 2:
        append = batch.max_timestamp if batch.timestamp_type == "LogAppendTime" else None
        return write_message_set(
            records,
            batch.magic,
            batch.attributes & 7 if batch.magic else batch.attributes & 3,
            append_timestamp=append,
        )
    assert batch.base_timestamp is not None
    deltas = [value_of(each, "timestampDelta") for each in node.children[-1].children]
    return write_batch(
        [
            record._replace(timestamp=batch.base_timestamp + delta)
            for record, delta in zip(records, deltas, strict=True)
        ],
        batch.attributes & 7,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        base_timestamp=batch.base_timestamp,
        max_timestamp=batch.max_timestamp,
        log_append_time=batch.timestamp_type == "LogAppendTime",
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        partition_leader_epoch=batch.partition_leader_epoch,
        transactional=batch.is_transactional,
        control=batch.is_control,
        delete_horizon_ms=batch.delete_horizon_ms,
    )


@each_of(vectors, lambda wanted: wanted.id)
def test_official_sets_written_again(wanted: Vector) -> None:
    """Uncompressed batches are the same bytes; compressed ones, whose packing is the library's, hold
    the same records."""
    found = read_record_set(wanted.data)
    nodes = annotate_record_set(wanted.data)
    for batch, node in zip(found.batches, nodes, strict=False):
        if batch.partial or not batch.crc_valid:
            continue
        written = write_again(batch, node)
        if batch.codec == "none":
            assert written == wanted.data[batch.position : batch.end]
            continue
        (again,) = read_record_set(written).batches
        assert again.records() == batch.records()
        assert not again.faults
        for name in (
            "magic",
            "attributes",
            "last_offset",
            "base_offset",
            "count",
            "max_timestamp",
            "base_timestamp",
        ):
            assert getattr(again, name) == getattr(batch, name)


NULLABLE = st.none() | st.binary(max_size=150)
PAIRS = st.tuples(st.integers(0, 1_000), st.integers(0, 2**41), NULLABLE, NULLABLE)
HEADERS = st.lists(st.tuples(st.text(max_size=20), NULLABLE), max_size=3).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn, headers: bool = False) -> list[Record]:
    offset, records = draw(st.integers(0, 2**40)), []
    for step, timestamp, key, value in draw(st.lists(PAIRS, min_size=1, max_size=6)):
        offset += step + 1
        records.append(Record(offset, timestamp, key, value, draw(HEADERS) if headers else ()))
    return records


@settings(max_examples=times(50, 150), deadline=None)
@given(record_lists(headers=True), st.integers(0, 4))
def test_batches_written_are_read(records: list[Record], codec: int) -> None:
    found = read_record_set(write_batch(records, codec))
    assert list(found.records()) == records
    assert not found.faults
    (one,) = found.batches
    assert (one.base_offset, one.last_offset, one.count) == (
        records[0].offset,
        records[-1].offset,
        len(records),
    )
    assert one.max_timestamp == max(record.timestamp for record in records)


@settings(max_examples=times(50, 150), deadline=None)
@given(record_lists(), st.sampled_from([0, 1]), st.integers(0, 3))
def test_message_sets_written_are_read(records: list[Record], magic: int, codec: int) -> None:
    if magic == 0:
        records = [record._replace(timestamp=-1) for record in records]
    found = read_record_set(write_message_set(records, magic, codec))
    assert list(found.records()) == records
    assert not found.faults


def test_no_records_give_an_empty_batch_and_no_messages() -> None:
    (one,) = read_record_set(write_batch([], 1, base_offset=50, last_offset=61, producer_id=7)).batches
    assert (one.base_offset, one.last_offset, one.count, one.producer_id) == (50, 61, 0, 7)
    assert one.records() == []
    assert write_message_set([], 1, 1) == b""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"producer_id": 2**63}, "cannot hold"),
        ({"base_offset": -(2**40)}, "offset delta"),
        ({"base_sequence": 2**31}, "cannot hold"),
        ({"base_timestamp": -(2**63)}, "timestamp delta"),
        ({"codec": 9}, "codec"),
        ({"codec": 5}, "codec"),
    ],
)
def test_numbers_that_a_batch_has_no_room_for_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        write_batch(RECORDS, **arguments)


def test_what_old_messages_have_no_room_for_is_refused() -> None:
    plain = Record(1, 1, None, b"x")
    with pytest.raises(ValueError, match="headers"):
        write_message(RECORDS[0], 1)
    with pytest.raises(ValueError, match="zstd"):
        write_message_set([plain], 1, 4)
    with pytest.raises(ValueError, match="timestamps"):
        write_message_set([plain], 0, append_timestamp=5)
    with pytest.raises(ValueError, match="magic"):
        write_message_set([plain], 2)
    with pytest.raises(ValueError, match="64 bits"):
        write_message(Record(1, 2**63, None, None), 1)
