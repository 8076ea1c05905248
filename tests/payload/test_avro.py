"""Avro's schemas and values, against fastavro."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings

from kdissect.model import DecodeError
from kdissect.payload.avro import SchemaError, avro_type, decode_avro
from kdissect.payload.avro_values import DEEPEST
from tests.amount import patient, times
from tests.payload import schemas_made

LIST = {
    "type": "record",
    "name": "List",
    "fields": [{"name": "value", "type": "int"}, {"name": "next", "type": ["null", "List"]}],
}


def written(schema: Any, value: Any) -> bytes:
    """As fastavro writes it."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def decode(schema: Any, data: bytes) -> Any:
    return decode_avro(avro_type(json.dumps(schema)), data)


@patient
@settings(max_examples=times(150, 10_000), deadline=None)
@given(schemas_made.avro())
def test_a_value_is_what_fastavro_reads(made: tuple[Any, Any]) -> None:
    schema, value = made
    data = written(schema, value)
    read = fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(schema), None)
    assert decode(schema, data) == schemas_made.shown(schema, read)


@pytest.mark.parametrize(
    ("logical", "data", "value"),
    [
        ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}, b"\x04\x04\xe2", "12.50"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 3}, b"\x02\xff", "-0.001"),
        (
            {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 4},
            b"\x01\x00",
            "256",
        ),
        (
            {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
            b"\x01\0\0\0\x02\0\0\0\x03\0\0\0",
            {"months": 1, "days": 2, "milliseconds": 3},
        ),
        (
            {"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"},
            bytes(range(16)),
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, b"\x02", 1),
        ("float", b"\0\0\xc0\x7f", "NaN"),
        ("string", b"\x04\xff\xfe", {"base64": "//4="}),
        ({"type": "array", "items": "int"}, b"\x01\x02\x02\x00", [1]),
        ({"type": {"type": "int"}}, b"\x02", 1),
    ],
)
def test_some_values(logical: Any, data: bytes, value: Any) -> None:
    assert decode(logical, data) == value


def test_names_are_found_in_their_namespace() -> None:
    inner = {"type": "enum", "name": "E", "symbols": ["A"]}
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": "E"}, {"name": "c", "type": "x.E"}]
    schema = {"type": "record", "name": "R", "namespace": "x", "fields": fields}
    assert decode(schema, b"\0\0\0") == {"a": "A", "b": "A", "c": "A"}


def test_a_recursive_schema_reads_what_it_writes() -> None:
    value = {"value": 1, "next": {"value": 2, "next": None}}
    assert decode(LIST, written(LIST, value)) == value


@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        (LIST, b"\x02\x02" * 1_000_000, f"deeper than {DEEPEST}"),
        ({"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}, b"", f"than {DEEPEST}"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f", "more values than"),
        ({"type": "array", "items": "null"}, b"\xff" * 9 + b"\x01", "a block of"),
        ("string", b"\xfe\xff\xff\xff\x0fab", "2 bytes are left"),
        ("string", b"\x01", "the length is -1"),
        ("boolean", b"\x02", "a boolean of 2"),
        ("int", b"\x80\x80\x80\x80\x20", "over 32 bits"),
        (["null", "int"], b"\x04", "branch 2 of a union of 2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x03", "symbol -2 of the enum E of 1"),
        ({"type": "fixed", "name": "F", "size": 2**31 - 1}, b"a", "needs"),
        ("int", b"\x02\x02", "1 byte is left after the last field"),
        ("long", b"\xff" * 11, "longer than 10 bytes"),
        ("int", b"", "ends too early"),
    ],
)
def test_hostile_bytes_end_in_one_error(schema: Any, data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode(schema, data)


def test_a_schema_that_makes_much_of_nothing_is_bounded() -> None:
    inner: Any = "null"
    for depth in range(40):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"R{depth - 1}" if depth else "null"}]
        inner = {"type": "record", "name": f"R{depth}", "fields": fields}
    with pytest.raises(DecodeError, match="more values than"):
        decode(inner, b"")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is JSON, and this is not"),
        ("[" * 100_000, "is JSON, and this is not"),
        ('{"type": "record", "name": "R"}', "has no list of fields"),
        ('{"type": "nosuch"}', "no type is named 'nosuch'"),
        ('{"type": "enum", "name": "E", "symbols": 5}', "has no list of symbols"),
        ('{"type": "fixed", "name": "F", "size": -1}', "has no size"),
        ('{"type": "array"}', "without items"),
        ('{"type": "record", "fields": []}', "without a name"),
        ("5", "not 5"),
        ("{}", "without a type"),
        ('{"type": ' * 100 + '"int"' + "}" * 100, "nested deeper"),
    ],
)
def test_what_is_wrong_with_a_schema_is_said(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        avro_type(text)


def test_a_primitive_needs_no_quotes() -> None:
    assert decode_avro(avro_type("string"), b"\x02a") == "a"
