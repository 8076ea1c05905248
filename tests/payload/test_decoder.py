"""Keys and values, by rule, by schema, by what they look like."""

from __future__ import annotations

import json
import zlib
from typing import Any
from uuid import UUID

import pytest

from kdissect.model import DecodeError
from kdissect.payload.decoder import DecodingRule, PayloadDecoder
from kdissect.payload.schemas import Reference, RegistrySchema, Schemas

ORDER = '{"type": "record", "name": "shop.Order", "fields": [{"name": "id", "type": "int"}]}'
PROTO = 'syntax = "proto3"; package shop; message Other { string s = 1; } message Order { int32 id = 1; }'
ENVELOPE = '{"type": "record", "name": "db.Envelope", "fields": [{"name": "op", "type": "string"}]}'
REFERENCE = b"\x07\x0a\x05Order"
GUID = "12345678-1234-4234-9234-123456789abc"


def schemas() -> Schemas:
    return Schemas(
        [
            RegistrySchema("AVRO", ORDER, "7"),
            RegistrySchema("PROTOBUF", PROTO, "8"),
            RegistrySchema("JSON", '{"type": "object"}', "9"),
            RegistrySchema("AVRO", ORDER, GUID),
            RegistrySchema("AVRO", ORDER, None, "named-value"),
            RegistrySchema("AVRO", "{", "6"),
            RegistrySchema("AVRO", ENVELOPE, "5"),
        ]
    )  # fmt: skip


def framed(id: int, data: bytes) -> bytes:
    return b"\0" + id.to_bytes(4, "big") + data


@pytest.mark.parametrize(
    ("data", "headers", "format", "value", "name"),
    [
        (framed(7, b"\x06"), (), "avro", {"id": 3}, "shop.Order"),
        (framed(8, b"\x02\x02\x08\x03"), (), "protobuf", {"id": 3}, "shop.Order"),
        (framed(8, b"\0\x0a\x01a"), (), "protobuf", {"s": "a"}, "shop.Other"),
        (framed(9, b'{"id": 3}'), (), "json", {"id": 3}, None),
        (framed(5, b"\x02c"), (), "avro", {"op": "c"}, "db.Envelope"),
        (b"\x06", (("__value_schema_id", b"\x01" + UUID(GUID).bytes),), "avro", {"id": 3}, "shop.Order"),
        (b"\x03\0" + UUID(GUID).bytes + b"\x06", (), "avro", {"id": 3}, "shop.Order"),
        (b"\x03\x05" + UUID(GUID).bytes + zlib.compress(b"\x06"), (), "avro", {"id": 3}, "shop.Order"),
        (b"\0" + (7).to_bytes(8, "big") + b"\x06", (), "avro", {"id": 3}, "shop.Order"),
        (b"\0" + (8).to_bytes(8, "big") + REFERENCE + b"\x08\x03", (), "protobuf", {"id": 3}, "shop.Order"),
        (framed(4, b'{"id": 3}'), (), "json", {"id": 3}, None),
        (b'{"id": 3}', (("__value_schema_id", b"\0\0\0\0\x04"),), "json", {"id": 3}, None),
        (b'{"id": 3}', (), "json", {"id": 3}, None),
    ],
)  # fmt: skip
def test_the_schema_of_the_writer_reads(
    data: bytes, headers: Any, format: str, value: Any, name: str | None
) -> None:
    found = PayloadDecoder(schemas()).decode("orders", "value", data, headers)
    assert (found.format, found.value, found.name, found.problem) == (format, value, name, None)


@pytest.mark.parametrize(
    ("data", "problem", "is_unknown"),
    [
        (framed(7, b"\x06\x06"), "does not match its schema: 1 byte is left", False),
        (framed(8, b"\x02\x02\x08"), "does not match its schema: the varint ends too early", False),
        (framed(9, b"{"), "does not match its schema: not JSON", False),
        (framed(4, b"\x06"), "schema 4 is not known", True),
        (framed(6, b"\x06"), "schema 6 cannot be used", False),
        (b"\x03\x05" + UUID(GUID).bytes + b"zz", "zlib behind the schema's id cannot be unpacked", False),
    ],
)
def test_what_cannot_be_read_has_one_problem_and_no_value(
    data: bytes, problem: str, is_unknown: bool
) -> None:
    found = PayloadDecoder(schemas()).decode("orders", "value", data)
    assert found.value is None
    assert (found.problem or "").startswith(problem)
    assert found.is_unknown is is_unknown


def test_a_subject_reads_values_without_framing() -> None:
    found = PayloadDecoder(schemas()).decode("named", "value", b"\x06")
    assert (found.value, found.confidence) == ({"id": 3}, "likely")


def rule(topic: str, format: str, **more: Any) -> DecodingRule:
    reader = None
    if "text" in more:
        reader = Schemas().parsed(RegistrySchema(more.pop("kind"), more.pop("text")))
    return DecodingRule(topic, "value", format, reader, **more)


def test_rules_decide_by_topic_and_the_last_counts() -> None:
    rules = [rule("o*", "raw"), rule("orders", "json"), rule("oak", "auto")]
    decoder = PayloadDecoder(schemas(), rules)
    assert decoder.decode("other", "value", b"{}").format == "raw"
    assert decoder.decode("orders", "value", b"[").problem == "is not JSON: not JSON: Expecting value"
    assert decoder.decode("oak", "value", b"{}").format == "json"
    assert decoder.decode("orders", "key", b"k").value == "k"


@pytest.mark.parametrize("data", [b"\x06", framed(99, b"\x06"), framed(7, b"\x06")])
def test_a_given_schema_reads_with_and_without_framing(data: bytes) -> None:
    decoder = PayloadDecoder(schemas(), [rule("*", "avro", kind="AVRO", text=ORDER)])
    assert decoder.decode("t", "value", data).value == {"id": 3}


@pytest.mark.parametrize(
    "data", [b"\x08\x03", framed(99, b"\x02\x02\x08\x03"), framed(8, b"\x02\x02\x08\x03")]
)
def test_a_given_message_reads_with_and_without_framing(data: bytes) -> None:
    reader = Schemas().parsed(RegistrySchema("PROTOBUF", PROTO))
    assert reader.proto is not None
    decoder = PayloadDecoder(
        schemas(), [DecodingRule("*", "value", "protobuf", reader, reader.proto.messages[1])]
    )
    assert decoder.decode("t", "value", data).value == {"id": 3}


def test_another_decoder_may_do_anything() -> None:
    def wrong(data: bytes) -> Any:
        if data == b"1":
            raise DecodeError("no", 1)
        if data == b"2":
            raise KeyError("secret")
        return {"size": len(data)}

    decoder = PayloadDecoder(rules=[DecodingRule("*", "value", "mine", decode=wrong)])
    assert [decoder.decode("t", "value", data).problem for data in (b"1", b"2", b"3")] == [
        *("is not mine: no", "is not mine: KeyError"),
        None,
    ]


def test_what_is_told_beside_the_value_is_json() -> None:
    told = PayloadDecoder(schemas()).decode("orders", "value", framed(7, b"\x80")).columns()
    assert json.loads(json.dumps(told)) == {
        "format": "avro",
        "confidence": "certain",
        "registry": "confluent",
        "schema": 7,
        "name": "shop.Order",
        "problem": "does not match its schema: the varlong ends too early",
        "offset": 5,
    }


@pytest.mark.parametrize(
    ("data", "value", "name", "confidence"),
    [
        (b"\x0a\x01a", {"b": "a"}, "shop.Order.Second", "likely"),
        (b"\x18\x05", {"c": 5}, "shop.Order.Third", "likely"),
        (b"", {"c": 0}, "shop.Order.Third", "possible"),
    ],
)
def test_bytes_say_which_of_two_messages_was_meant(
    data: bytes, value: Any, name: str, confidence: str
) -> None:
    """Java counts nested messages without the entries of maps, others with them."""
    text = """syntax = "proto3"; package shop; message Order {
        message First { int32 a = 1; }
        map<string, int32> counts = 1;
        message Second { string b = 1; }
        message Third { int64 c = 3; } }"""
    decoder = PayloadDecoder(Schemas([RegistrySchema("PROTOBUF", text, "1")]))
    found = decoder.decode("orders", "value", framed(1, b"\x04\0\x04" + data))
    assert (found.value, found.name, found.confidence) == (value, name, confidence)


JSON_ORDER = """{"type": "object", "required": ["id"], "properties":
    {"id": {"type": "integer"}, "code": {"pattern": "^A"}, "line": {"$ref": "line.json"}}}"""


@pytest.mark.parametrize(
    ("value", "problem", "is_unvalidated"),
    [
        ({"id": 3}, None, False),
        ({"id": "secret"}, "id: a string where an integer is needed", False),
        ({"id": 3, "code": "B"}, None, True),
        ({"id": "secret", "code": "B"}, "id: a string where an integer is needed", False),
        ({"id": 3, "line": {"n": "secret"}}, "line.n: a string where a number is needed", False),
    ],
)
def test_json_is_compared_with_its_schema_and_stays_readable(
    value: Any, problem: str | None, is_unvalidated: bool
) -> None:
    line = '{"properties": {"n": {"type": "number"}}}'
    order = RegistrySchema("JSON", JSON_ORDER, "1", "orders-value", 1, (Reference("line.json", "line", 1),))
    file = RegistrySchema("JSON", JSON_ORDER, "3")
    known = Schemas(
        [order, RegistrySchema("JSON", line, "2", "line", 1), file], {"sub/line.json": line, "no.json": "{"}
    )
    data = json.dumps(value).encode()
    whole = None if problem is None else f"does not match its schema: {problem}"
    for given, confidence in ((framed(1, data), "certain"), (framed(3, data), "certain"), (data, "likely")):
        found = PayloadDecoder(known).decode("orders", "value", given)
        assert (found.format, found.value, found.confidence) == ("json", value, confidence)
        assert (found.problem, found.is_unvalidated) == (whole, is_unvalidated)
        assert "secret" not in json.dumps(found.columns())
    assert known.problems == []


def test_a_json_schema_that_cannot_be_used_is_told_once_and_values_stay_readable() -> None:
    known = Schemas(
        [
            RegistrySchema("JSON", "{", "1"),
            RegistrySchema("JSON", '{"$ref": "x"}', "2", references=(Reference("x", "x", 1),)),
        ]
    )
    for id in ("1", "2"):
        found = PayloadDecoder(known).decode("orders", "value", framed(int(id), b"5"))
        assert (found.value, found.problem, found.is_unvalidated) == (5, None, True)
    assert len(known.problems) == 2


def test_a_name_in_a_problem_stays_in_its_line() -> None:
    enum = json.dumps({"type": "enum", "name": "E\n\x1b[31m" + "x" * 1_000, "symbols": ["A"]})
    object = json.dumps({"required": ["\n\u202e" + "x" * 1_000]})
    known = Schemas([RegistrySchema("AVRO", enum, "1"), RegistrySchema("JSON", object, "2")])
    for id, data in ((1, b"\x04"), (2, b"{}")):
        problem = PayloadDecoder(known).decode("orders", "value", framed(id, data)).problem
        assert problem is not None
        assert problem.isprintable()
        assert len(problem) < 300
