from __future__ import annotations

import base64
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.faults import KINDS
from kdissect.limits import Limits
from kdissect.record.sets import RecordSet, read_record_set
from kdissect.record.write import write_batch, write_message_set
from tests.amount import each_of, times
from tests.record.build import PLAIN_RECORDS, RECORDS, batch, bodies, message, packed_batch
from tests.record.official import Vector, batch_row, record_row, vector, vectors
from tests.shared import requires_shared, shared

WHOLE = st.deferred(lambda: st.sampled_from([each for each in vectors() if len(each.data) < 3_000]))
"""Without the large ones, where a test goes over every byte."""


@each_of(vectors, lambda wanted: wanted.id)
def test_official_record_set_is_read_as_kafkas_iterators_read_it(wanted: Vector) -> None:
    found = read_record_set(wanted.data)
    whole = [each for each in found.batches if not each.partial]
    assert [batch_row(each) for each in whole] == wanted.batches
    assert [
        record_row(record) for each in whole if each.crc_valid for record in each.records()
    ] == wanted.records
    assert len(wanted.data) - sum(each.size for each in whole) == wanted.trailing_bytes


@each_of(vectors, lambda wanted: wanted.id)
def test_official_record_set_has_faults_only_where_it_is_broken(wanted: Vector) -> None:
    found = read_record_set(wanted.data)
    list(found.records())
    kinds = {problem.kind for problem in found.faults}
    if "flipped" in wanted.id:
        assert "bad-crc" in kinds
    else:
        assert kinds == ({"partial-batch"} if wanted.trailing_bytes else set())


@requires_shared
def test_batches_of_other_authors_match_the_plan_they_were_made_from() -> None:
    made = json.loads(shared("testdata/vectors/records/vectors.json").read_text())["vectors"]
    plans = json.loads(shared("testdata/vectors/records/plans.json").read_text())["batches"]
    assert [each["name"] for each in made] == [plan["name"] for plan in plans]
    assert len(made) == 18

    def data(text: str | None) -> bytes | None:
        return None if text is None else base64.b64decode(text)

    for each, plan in zip(made, plans, strict=True):
        found = read_record_set(bytes.fromhex(each["hex"]))
        (one,) = found.batches
        records = one.records()
        assert not found.faults
        assert one.base_offset == plan.get("baseOffset", 0)
        assert one.codec == plan["compression"]
        assert one.is_transactional == plan.get("transactional", False)
        assert one.is_control == plan.get("control", False)
        assert one.delete_horizon_ms == plan.get("deleteHorizonMs")
        assert one.timestamp_type == plan.get("timestampType", "CreateTime")
        assert one.producer_id == plan.get("producerId", -1)
        assert one.partition_leader_epoch == plan.get("partitionLeaderEpoch", -1)
        assert len(records) == one.count == len(plan["records"])
        for index, (record, wish) in enumerate(zip(records, plan["records"], strict=True)):
            assert record.offset == plan.get("baseOffset", 0) + wish.get("offsetDelta", index)
            if "timestampType" not in plan:
                assert record.timestamp == wish["timestamp"]
            if "controlType" not in wish:
                assert (record.key, record.value) == (data(wish.get("key")), data(wish.get("value")))
            assert record.headers == tuple((h["key"], data(h["value"])) for h in wish.get("headers", ()))
        if "baseSequence" in plan:
            assert one.base_sequence == plan["baseSequence"]
            assert [r.sequence for r in records] == [plan["baseSequence"] + i for i in range(len(records))]


@requires_shared
def test_what_kafka_read_from_batches_that_another_author_packed_is_read_here_too() -> None:
    for each in json.loads(shared("testdata/vectors/records/verified.json").read_text())["verified"]:
        (one,) = read_record_set(bytes.fromhex(each["hex"])).batches
        (wish,) = each["kafka"]["batches"]
        assert (one.base_offset, one.last_offset, one.codec) == (
            wish["baseOffset"],
            wish["lastOffset"],
            wish["compression"],
        )
        wanted = [(r["offset"], r["timestamp"], r["key"], r["value"]) for r in wish["records"]]
        rows = [record_row(record) for record in one.records()]
        assert [(r["offset"], r["timestamp"], r["key_hex"], r["value_hex"]) for r in rows] == wanted


def decode(data: bytes, limits: Limits | None = None) -> tuple[RecordSet, list[Any]]:
    found = read_record_set(data, limits) if limits else read_record_set(data)
    records = [list(each.records()) for each in found.batches]
    for problem in found.faults:
        assert problem.kind in KINDS
        assert problem.layer == "records"
        assert problem.offset is not None
        assert 0 <= problem.offset <= len(data)
    for each in found.batches:
        batch_row(each)
    assert 0 <= found.remainder <= len(data)
    position = 0
    for each in found.batches:
        assert each.position == position
        position = each.end
    assert found.remainder == position
    assert position == len(data) or found.own_faults, "bytes that nobody speaks of"
    return found, records


@pytest.mark.parametrize(
    "identity",
    [
        "mixed-magic",
        "m0-gzip-CreateTime-several",
        "m1-lz4-LogAppendTime-several",
        "m2-none-CreateTime-headers",
        "m2-zstd-CreateTime-transactional",
    ],
)
def test_set_cut_at_any_byte_gives_its_whole_batches_and_names_the_rest(identity: str) -> None:
    wanted = vector(identity)
    for cut in range(len(wanted.data)):
        found, _ = decode(wanted.data[:cut])
        whole = [each for each in found.batches if not each.partial]
        assert [batch_row(each) for each in whole] == [
            row for row in wanted.batches if row["position"] + row["size"] <= cut
        ]
        ends = {0, *(row["position"] + row["size"] for row in wanted.batches)}
        assert (not found.faults) == (cut in ends)


def test_partial_batch_gives_the_records_that_are_whole() -> None:
    data = write_batch(RECORDS)
    found, (records,) = decode(data[:-5])
    (one,) = found.batches
    assert one.partial
    assert one.crc_valid is None
    assert records == list(RECORDS[:3])
    assert [problem.kind for problem in found.faults] == ["partial-batch"]


def assert_accounted_for(data: bytes) -> None:
    """No byte is left without a batch or a fault that says where the rest begins."""
    found, _ = decode(data)
    told = [problem.offset for problem in found.faults]
    assert found.remainder == len(data) or found.remainder in told, (found.remainder, told)


@settings(max_examples=times(100, 300), deadline=None)
@given(WHOLE, st.data())
def test_mutated_sets_give_faults_and_never_an_exception(wanted: Vector, draw: st.DataObject) -> None:
    data = bytearray(wanted.data)
    for _ in range(draw.draw(st.integers(1, 4))):
        if data:
            data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    assert_accounted_for(bytes(data))


@settings(max_examples=times(60, 200), deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_batches_and_a_named_remainder(data: bytes) -> None:
    assert_accounted_for(data)
    assert_accounted_for(batch(data, count=3))
    assert_accounted_for(message(1, 1, 5, data))


def test_broken_body_costs_only_its_batch() -> None:
    broken = packed_batch(4, bodies(), 4)
    broken = broken[:70] + b"\xff" * 20 + broken[90:]
    found, records = decode(write_batch(RECORDS) + broken + write_batch(RECORDS))
    assert [len(each) for each in records] == [4, 0, 4]
    assert [problem.kind for problem in found.faults] == ["bad-crc", "bad-compressed-data"]


def test_reading_headers_unpacks_nothing() -> None:
    junk = batch(b"not zstd at all", count=3, attributes=4)
    found = read_record_set(junk)
    assert found.batches[0].count == 3
    assert not found.faults
    assert found.batches[0].records() == []
    assert [problem.kind for problem in found.faults] == ["bad-compressed-data"]


def test_records_read_again_are_the_same_and_add_no_faults() -> None:
    found = read_record_set(packed_batch(1, bodies() + b"\x02", 5))
    first = found.batches[0].records()
    faults = found.faults
    assert faults
    assert found.batches[0].records() == first
    assert found.faults == faults


def test_record_sets_survive_a_pickle() -> None:
    found = pickle.loads(pickle.dumps(read_record_set(vector("mixed-magic").data)))
    assert [record_row(record) for record in found.records()] == vector("mixed-magic").records


@pytest.mark.parametrize("magic", [3, 9, 127, 128, 255])
def test_unknown_magic_ends_the_set_and_names_the_remainder(magic: int) -> None:
    good = write_batch(RECORDS)
    bad = bytearray(good)
    bad[16] = magic
    found, _ = decode(good + bytes(bad))
    assert len(found.batches) == 1
    assert found.remainder == len(good)
    (problem,) = found.faults
    assert (problem.kind, problem.offset) == ("bad-magic", len(good))


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 48])
def test_impossible_length_ends_the_set(length: int) -> None:
    found, _ = decode(batch(bodies(), count=4, length=length))
    assert not found.batches
    assert [problem.kind for problem in found.faults] == ["bad-batch"]


def test_wrong_checksum_is_reported_and_the_batch_decoded_all_the_same() -> None:
    for data in (write_batch(RECORDS), write_batch(RECORDS, 1)):
        flipped = bytearray(data)
        flipped[17] ^= 1
        found, (records,) = decode(bytes(flipped))
        assert [problem.kind for problem in found.faults] == ["bad-crc"]
        assert records == list(RECORDS)
        assert found.batches[0].crc_valid is False


def test_more_batches_than_the_limit_are_named_and_not_read() -> None:
    data = write_message_set(PLAIN_RECORDS, 0)
    found, records = decode(data, Limits(elements=2))
    assert len(records) == 2
    assert [problem.kind for problem in found.faults] == ["too-many-elements"]
