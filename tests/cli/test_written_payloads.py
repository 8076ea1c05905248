"""Captures whose records the formats' own libraries wrote: each is what was written, in every form."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf import json_format, message_factory

from kdissect.record.records import Record
from tests.cli.run import run
from tests.payload.made import produced, record
from tests.payload.test_protobuf import as_shown, pool_of, same

Capsys = pytest.CaptureFixture[bytes]

NODE = {
    "type": "record",
    "name": "Node",
    "namespace": "shop.tree",
    "aliases": ["OldNode"],
    "fields": [
        {"name": "label", "type": "string", "aliases": ["name"]},
        {"name": "next", "type": ["null", "Node"], "default": None},
    ],
}
TYPES = {
    "type": "record",
    "name": "shop.All",
    "fields": [
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {
            "name": "fixed_price",
            "type": {
                **{"type": "fixed", "name": "Price", "size": 6, "logicalType": "decimal"},
                **{"precision": 12, "scale": 3},
            },
        },
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "ns", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
        {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "span", "type": {"type": "fixed", "name": "Span", "size": 12, "logicalType": "duration"}},
        {"name": "raw", "type": {"type": "fixed", "name": "other.Raw", "size": 3}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"], "default": "A"}},
        {"name": "either", "type": ["null", "int", "string", {"type": "array", "items": "Kind"}]},
        {"name": "by", "type": {"type": "map", "values": {"type": "map", "values": "double"}}},
        {"name": "tree", "type": "shop.tree.Node"},
        {"name": "more", "type": "long", "default": 7},
    ],
}
UTC_TIME = datetime(2025, 11, 22, 10, 0, 0, 123000, UTC)
NS = 1_763_805_600_123_456_789
AVRO = [
    (
        {
            **{"price": Decimal("-12.50"), "fixed_price": Decimal("1.005"), "day": date(2025, 11, 22)},
            **{"ms": UTC_TIME, "us": UTC_TIME, "ns": NS, "time": 5, "id": UUID(int=5)},
            **{"span": b"\1\0\0\0\2\0\0\0\3\0\0\0", "raw": b"abc", "kind": "B", "either": either},
            **{
                "by": {"x": {"y": 1.5}},
                "tree": {"label": "a", "next": {"label": "b", "next": None}},
                "more": 8,
            },
        },
        {
            **{"price": "-12.50", "fixed_price": "1.005", "day": 20_414},
            **{"ms": 1_763_805_600_123, "us": 1_763_805_600_123_000, "ns": NS, "time": 5},
            **{"id": str(UUID(int=5)), "span": {"months": 1, "days": 2, "milliseconds": 3}, "raw": "YWJj"},
            **{"kind": "B", "either": either, "by": {"x": {"y": 1.5}}},
            **{"tree": {"label": "a", "next": {"label": "b", "next": None}}, "more": 8},
        },
    )
    for either in (None, 5, "text", ["A", "B"])
]
COMMON = """syntax = "proto2"; package shop.common;
message Money { required string currency = 1; optional int64 units = 2 [default = 9]; }
enum Colour { NONE = 0; RED = 5; }
message Old { optional group Result = 1 { optional string url = 2; repeated int32 n = 3 [packed = true]; } }
"""
SHOP = """syntax = "proto3"; package shop;
import "common/money.proto"; import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto"; import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
message First { string s = 1; }
message Order {
  message Line { string sku = 1; uint32 count = 2; message Deep { bool yes = 1; } }
  enum State { UNKNOWN = 0; PAID = 1; }
  int64 id = 1; State state = 2; repeated Line lines = 3; map<string, Line> by_sku = 4;
  map<int64, State> states = 5;
  oneof payment { string card = 6; shop.common.Money cash = 7; bool none = 8; }
  repeated sint32 packed = 9; repeated sint32 loose = 10 [packed = false]; bytes raw = 11; double d = 12;
  float f = 13;
  google.protobuf.Timestamp at = 14; google.protobuf.Duration took = 15;
  google.protobuf.Int64Value maybe = 16;
  optional int32 set = 17; google.protobuf.Struct more = 18; fixed64 big = 19; shop.common.Old old = 20;
}
"""
ORDER: dict[str, Any] = {
    **{"id": -5, "state": "PAID", "lines": [{"sku": "A", "count": 1}, {}], "by_sku": {"A": {"sku": "A"}}},
    **{"states": {"-7": "PAID"}, "cash": {"currency": "EUR"}, "packed": [-1, 300], "loose": [1, -2]},
    **{
        "raw": "AAE=",
        "d": 1e300,
        "f": 0.1,
        "at": "2025-11-22T10:00:00.120Z",
        "took": "-1.500s",
        "maybe": "0",
    },
    **{
        "set": 0,
        "more": {"a": [1, None]},
        "big": str((1 << 64) - 1),
        "old": {"result": {"url": "u", "n": [1, 2]}},
    },
}
PROTOBUF: list[tuple[str, bytes, dict[str, Any]]] = [
    ("shop.Order", b"\x02\x02", ORDER),
    ("shop.Order", b"\x02\x02", {}),
    ("shop.Order", b"\x02\x02", {"card": "x"}),
    ("shop.First", b"\0", {"s": "zero"}),
    ("shop.Order.Line", b"\x04\x02\0", {"sku": "nested"}),
    ("shop.Order.Line.Deep", b"\x06\x02\0\0", {"yes": True}),
]
JSON_SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "ref": {"$ref": "other.json"}},
    "required": ["id"],
}
JSON = [{"id": (1 << 53) + 1}, {"id": -(1 << 70), "ref": {"n": 1.5}}, {"id": 1, "text": "ü \u2028"}]


def framed(id: int, data: bytes) -> bytes:
    return b"\0" + id.to_bytes(4, "big") + data


def avro(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, list[Any]]]:
    """A capture, the folder of its schemas, and what its values are by topic."""
    folder = tmp_path_factory.mktemp("written")
    schemas = folder / "schemas"
    (schemas / "common").mkdir(parents=True)
    (schemas / "common" / "money.proto").write_text(COMMON)
    (schemas / "8.proto").write_text(SHOP)
    (schemas / "7.avsc").write_text(json.dumps(TYPES))
    (schemas / "node.avsc").write_text(json.dumps(NODE))
    (schemas / "6.avsc").write_text(json.dumps(TYPES["fields"][10]["type"]))  # type: ignore[index]
    (schemas / "9.json").write_text(json.dumps(JSON_SCHEMA))
    topics: dict[str, list[Record]] = {}
    truth: dict[str, list[Any]] = {}

    def add(topic: str, key: bytes | None, value: bytes, meant: Any) -> None:
        topics.setdefault(topic, []).append(record(key, value))
        truth.setdefault(topic, []).append(meant)

    named: dict[str, Any] = {}
    fastavro.parse_schema(NODE, named)
    parsed = fastavro.parse_schema(TYPES, named)
    for value, meant in AVRO:
        add("avro", framed(6, b"\x02"), framed(7, avro(parsed, value)), meant)
    pool = pool_of(SHOP, {"common/money.proto": COMMON})
    for name, indexes, value in PROTOBUF:
        made = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))()
        json_format.ParseDict(value, made, descriptor_pool=pool)
        add("protobuf", None, framed(8, indexes + made.SerializeToString()), as_shown(made))
    checker = jsonschema.Draft202012Validator({**JSON_SCHEMA, "properties": {"id": {"type": "integer"}}})
    for each in JSON:
        checker.validate(each)
        add("json", b"k", framed(9, json.dumps(each).encode()), each)
    # In one topic, what each of the others has.
    for topic in ("avro", "protobuf", "json"):
        for each, meant in zip(list(topics[topic]), truth[topic], strict=True):
            add("mixed", each.key, each.value or b"", meant)
    add("mixed", None, b"plain", "plain")
    return produced(folder / "c.pcapng", topics, codec=4), schemas, truth


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet", "arrow"])
def test_every_record_is_what_was_written(
    form: str, written: tuple[Path, Path, dict[str, list[Any]]], tmp_path: Path, capsysbinary: Capsys
) -> None:
    capture, schemas, truth = written
    out = tmp_path / f"out.{form}"
    ran = run(capsysbinary, "read", capture, "-T", f"records.{form}", "--schemas", schemas, "-o", out)
    assert (ran.code, ran.err) == (0, "")
    if form == "ndjson":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    elif form == "csv":
        rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    elif form == "parquet":
        rows = pq.read_table(out).to_pylist()
    else:
        with pa.ipc.open_stream(out) as stream:
            rows = stream.read_all().to_pylist()
    found: dict[str, list[Any]] = {}
    for row in rows:
        value = row["valueDecoded"]
        if form != "ndjson":
            value = value if value == "plain" else json.loads(value)
        found.setdefault(row["topic"], []).append(value)
        if row["topic"] == "avro":
            assert row["keyDecoded"] in ("B", '"B"')
    assert found.keys() == truth.keys()
    for topic, wanted in truth.items():
        assert len(found[topic]) == len(wanted)
        for value, meant in zip(found[topic], wanted, strict=True):
            assert same(value, meant), (topic, value, meant)


def test_each_can_be_asked_for(
    written: tuple[Path, Path, dict[str, list[Any]]], capsysbinary: Capsys
) -> None:
    capture, schemas, _ = written
    for text, count in (
        ("record.value.tree.next.label == b", 8),
        ("record.value.cash.currency == EUR", 2),
        ("record.value.at contains 2025-11", 2),
        (f"record.value.id == {(1 << 53) + 1}", 2),
        ("record.key == B", 0),
    ):
        ran = run(capsysbinary, "read", capture, "-T", "records", "--schemas", schemas, "-Y", text)
        assert ran.code == 0, ran.err
        assert len(ran.out.splitlines()) == count, text
