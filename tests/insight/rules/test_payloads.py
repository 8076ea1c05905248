"""Rules on what is in records."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterConfigs, ClusterTopics
from kdissect.analysis.fold import Row
from kdissect.analysis.payloads import Payloads
from kdissect.exchange import Exchange
from kdissect.insight.judge import of_captures
from kdissect.payload.decoder import PayloadDecoder
from kdissect.payload.schemas import RegistrySchema, Schemas
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.analysis.folds import fold
from tests.analysis.produced import START_MS, fetch, produce
from tests.insight.made import row, said


def sent(
    ms: int, *values: bytes | None, topic: str = "t", codec: int = 0, key: bytes | None = None
) -> Exchange:
    records = [Record(at, START_MS, key, value) for at, value in enumerate(values)]
    return produce(ms, write_batch(records, codec=codec), topic=topic, offset=ms * 100)


def counted(*exchanges: Exchange) -> dict[Any, list[Row]]:
    return {Payloads: fold("payloads", exchanges).result()}


def keyed(*keys: bytes | None, partitions: int = 4) -> dict[Any, list[Row]]:
    """Records with these keys in one batch, in a topic with so many partitions."""
    records = [Record(at, START_MS, key, b"v") for at, key in enumerate(keys)]
    topics = [row(ClusterTopics, topic="t", partitions=partitions)]
    return {**counted(produce(0, write_batch(records), topic="t", offset=500)), ClusterTopics: topics}


def test_a_key_of_many_records_is_named_by_the_first_of_them() -> None:
    others = [b"key %d" % number for number in range(800)]
    (found,) = said("hot-key", keyed(*others, *[b"secret"] * 200))
    assert (found.subject.topic, found.subject.partition, found.count) == ("t", 0, 200)
    assert "One key is in 20 % of the records of t (200 of 1,000)." in found.message
    assert "The record at offset 1,300 of t-0 has this key." in found.message
    assert "secret" not in repr(found)


def test_a_key_in_several_partitions_makes_none_hot() -> None:
    rows = keyed(*[b"hot"] * 1_000)
    assert said("hot-key", rows)
    rows[Payloads] = [each | {"top_partition": None, "top_offset": None} for each in rows[Payloads]]
    assert not said("hot-key", rows)


@pytest.mark.parametrize(
    ("hot", "others", "nulls", "partitions"),
    [(199, 801, 0, 4), (999, 0, 0, 4), (500, 0, 500, 1), (150, 0, 850, 4)],
)
def test_few_records_or_one_partition_make_no_hot_key(
    hot: int, others: int, nulls: int, partitions: int
) -> None:
    keys = [*[b"hot"] * hot, *[b"key %d" % number for number in range(others)], *[None] * nulls]
    assert not said("hot-key", keyed(*keys, partitions=partitions))


JSON = b'{"a": 1}'
FRAMED = b"\0\0\0\0\x07\x02abc"


@pytest.mark.parametrize(
    ("usual", "odd", "kinds"),
    [
        (JSON, b"hello", "JSON, but 1 is text"),
        (JSON, FRAMED, "JSON, but 1 is with a schema id"),
        (FRAMED, JSON, "with a schema id, but 1 is JSON"),
        (b"hello", gzip.compress(b"x", mtime=0), "text, but 1 is packed with gzip"),
        (JSON, b"\xff\xfe\xfd", "JSON, but 1 is binary"),
    ],
)
def test_the_odd_record_and_its_producer_are_named(usual: bytes, odd: bytes, kinds: str) -> None:
    (found,) = said("payload-mixed", counted(sent(0, *[usual] * 20), sent(1, odd)))
    assert f"20 values of t are {kinds}, the first at offset 100 of partition 0." in found.message
    assert "wrote it" in found.message
    assert (found.subject.topic, found.exchanges, found.count) == ("t", (2,), 1)


@pytest.mark.parametrize(
    ("usual", "other"),
    [
        (b"hello", JSON),
        (b"hello", b"<a></a>"),
        (b"hello", b"\xff\xfe\xfd"),
        (FRAMED, b"\0\0\0\0\x08\x02abc"),
        (b"\xff\xfe\xfd\xfc", b"abcd"),
        ((5).to_bytes(8, "big"), (1 << 40).to_bytes(8, "big")),
        (JSON, None),
        (JSON, b""),
    ],
)
def test_what_may_stand_beside_each_other_is_no_mixture(usual: bytes, other: bytes | None) -> None:
    for key in (None, usual):
        assert not said("payload-mixed", counted(sent(0, *[usual] * 20, key=key), sent(1, other)))


def test_few_records_and_halves_are_no_mixture() -> None:
    assert not said("payload-mixed", counted(sent(0, *[JSON] * 8), sent(1, b"hello")))
    assert not said("payload-mixed", counted(sent(0, *[JSON] * 20), sent(1, *[b"hello"] * 15)))


def test_a_record_that_is_also_fetched_counts_once() -> None:
    records = [Record(at, START_MS, None, JSON) for at in range(20)]
    fetched = fetch(2, write_batch(records), 20)
    (found,) = said("payload-mixed", counted(sent(0, *[JSON] * 20), sent(1, b"hello"), fetched))
    assert found.message.startswith("20 values")
    (only,) = said(
        "payload-mixed", counted(fetch(0, write_batch([*records, Record(20, 0, None, b"x y")]), 21))
    )
    assert "at offset 20 of partition 0" in only.message
    assert "wrote" not in only.message


@pytest.mark.parametrize("codec", [0, 1])
def test_values_that_are_packed_twice(codec: int) -> None:
    packed = gzip.compress(JSON, mtime=0)
    found = said("payload-compressed-twice", counted(sent(0, *[packed] * 20, codec=codec)))
    assert [each.count for each in found] == ([20] if codec else [])
    mixed = sent(0, *[packed] * 10, *[JSON] * 10, codec=1)
    assert not said("payload-compressed-twice", counted(mixed))


def schema_record(id: int, offset: int) -> Record:
    key = json.dumps({"keytype": "SCHEMA", "subject": "t-value", "version": 1}).encode()
    said = {"subject": "t-value", "version": 1, "id": id, "schema": '"string"'}
    return Record(offset, START_MS, key, json.dumps(said).encode())


def test_schemas_that_the_registry_does_not_have() -> None:
    registry = fetch(5, write_batch([schema_record(7, 0)]), 1, topic="_schemas")
    unknown = b"\0\0\0\0\x09\x02abc"
    rows = counted(sent(0, FRAMED, FRAMED, unknown), registry)
    (found,) = said("schema-unknown", rows)
    assert found.message.startswith("1 value of t names schema 9, which is not in the schema registry.")
    known = next(each for each in rows[Payloads] if each["schema_id"] == 7)
    assert known["subject"] == "t-value version 1"
    assert not said("schema-unknown", counted(sent(0, FRAMED, unknown)))
    later = fetch(5, write_batch([schema_record(7, 3)], base_offset=3), 4, topic="_schemas")
    assert not said("schema-unknown", counted(sent(0, FRAMED, unknown), later))


def test_numbers_that_begin_as_a_framing_does_are_no_schemas() -> None:
    registry = fetch(5, write_batch([schema_record(7, 0)]), 1, topic="_schemas")
    numbers = [(1_763_800_000_000 + at * 100_000_000).to_bytes(8, "big") for at in range(20)]
    assert not said("schema-unknown", counted(sent(0, *numbers), registry))


def given(*exchanges: Exchange) -> dict[Any, list[Row]]:
    statistic = Payloads()
    statistic.use(PayloadDecoder(Schemas([RegistrySchema("AVRO", '"string"', "7")])))
    for each in exchanges:
        statistic.feed(each)
    return {Payloads: statistic.result()}


def test_records_that_do_not_fit_their_schema_are_told_without_what_they_hold() -> None:
    rows = given(sent(0, b"\0\0\0\0\x07\x06abc", b"\0\0\0\0\x07\x20secret"))
    (found,) = said("payload-undecodable", rows)
    assert found.message.startswith("1 value of t does not match its schema: the length is 16, but")
    assert "secret" not in json.dumps(rows[Payloads]) + found.message
    (unknown,) = said("schema-unknown", given(sent(0, b"\0\0\0\0\x09\x06abc")))
    assert (unknown.confidence, "among the schemas that are given" in unknown.message) == ("likely", True)


@pytest.mark.parametrize(
    "value",
    [
        b"\0\0\0\0\x07\x06abc",  # it fits
        b"\0\0\0\0\x09\x20abc",  # nobody has its schema: another finding
        b'{"a": 1}',
        b"\x20secret",
        b"",
        None,
    ],
)
def test_what_fits_or_names_no_known_schema_is_not_undecodable(value: bytes | None) -> None:
    rows = given(*(sent(ms, value) for ms in range(20)))
    assert not said("payload-undecodable", rows)
    assert not said("payload-undecodable", counted(sent(0, value)))


def test_a_broken_schema_is_not_unknown() -> None:
    statistic = Payloads()
    statistic.use(PayloadDecoder(Schemas([RegistrySchema("AVRO", "{", "7")])))
    statistic.feed(sent(0, b"\0\0\0\0\x07\x06abc"))
    rows: dict[Any, list[Row]] = {Payloads: statistic.result()}
    assert not said("schema-unknown", rows)
    (found,) = said("payload-undecodable", rows)
    assert found.message == "1 value of t cannot be decoded: schema 7 cannot be used."


def test_schemas_inside_each_message_are_counted() -> None:
    schema = {"type": "struct", "fields": [{"field": "a", "type": "int32"}], "optional": False}
    value = json.dumps({"schema": schema, "payload": {"a": 1}}).encode()
    rows = counted(sent(0, *[value] * 20))
    (found,) = said("payload-schema-inside", rows)
    assert found.count == 20
    assert f"{20 * len(json.dumps(schema)):,} of {20 * len(value):,} bytes" in found.message
    assert not said("payload-schema-inside", counted(sent(0, value)))


def config(value: str) -> Row:
    return row(ClusterConfigs, resource_type="topic", resource="t", config="cleanup.policy", value=value)


def test_null_values_of_a_topic_that_is_not_compacted() -> None:
    rows = counted(sent(0, *[None] * 20, JSON))
    (found,) = said("tombstones", {**rows, ClusterConfigs: [config("delete")]})
    assert found.message.startswith("20 of 21 values of t are null")
    for configs in ([], [config("compact")], [config("compact,delete")]):
        assert not said("tombstones", {**rows, ClusterConfigs: configs})


def test_rules_that_unpack_records_run_only_where_that_is_asked_for() -> None:
    shallow, deep = ({each.id for each in of_captures(deep)} for deep in (False, True))
    assert deep - shallow == {
        *("payload-mixed", "payload-compressed-twice", "schema-unknown", "payload-undecodable"),
        *("payload-schema-inside", "tombstones", "hot-key"),
    }


def test_bytes_that_begin_with_ever_other_numbers_have_no_schema_id() -> None:
    numbers = [(number << 20 | 1 << 40).to_bytes(8, "big") for number in range(1_000)]
    (row,) = [
        each for each in counted(sent(0, *numbers), sent(1, *numbers))[Payloads] if each["part"] == "value"
    ]
    assert (row["format"], row["registry"], row["schema_id"], row["confidence"]) == (
        *("binary", None, None),
        "possible",
    )
    assert (row["records"], row["bytes"]) == (2_000, 16_000)
    assert (row["first_offset"], row["last_offset"]) == (0, 1_099)
