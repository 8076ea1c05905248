"""Avro written as JSON text at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from kdissect.model import DecodeError
from kdissect.payload.avro import avro_type, decode_avro
from kdissect.payload.avro_text import can_be_written, write_value
from kdissect.payload.avro_values import values_left
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText
from tests.amount import patient, times
from tests.payload import schemas_made
from tests.payload.test_avro import LIST, written


def text(schema: Any, data: bytes) -> str:
    out, cursor = JsonText(), Cursor(data)
    cursor.elements_left = values_left(len(data))
    write_value(out, avro_type(json.dumps(schema)), cursor)
    assert cursor.position == cursor.end
    return out.take().decode("ascii")


@patient
@settings(max_examples=times(100, 10_000), deadline=None)
@given(schemas_made.avro())
def test_the_text_is_that_of_the_value(made: tuple[Any, Any]) -> None:
    schema, value = made
    data = written(schema, value)
    assert text(schema, data) == dumps(decode_avro(avro_type(json.dumps(schema)), data))


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("string", b"\x04\xff\xfe"),
        ("string", '\x0c"\u00e9\u2028'.encode()),
        ("double", b"\0\0\0\0\0\0\xf8\x7f"),
        ({"type": "bytes", "logicalType": "decimal", "scale": 2}, b"\x04\x04\xe2"),
        ({"type": "record", "name": "R", "fields": []}, b""),
        ({"type": "array", "items": "int"}, b"\x01\x02\x02\x00"),
        (LIST, b"\x02\x02\x04\x00"),
        ({"type": "map", "values": "int"}, b"\0"),
        ({"type": "map", "values": "int"}, b"\x03\x06\x02a\x02\x02b\x04\0"),
    ],
)
def test_some_texts(schema: Any, data: bytes) -> None:
    assert text(schema, data) == dumps(decode_avro(avro_type(json.dumps(schema)), data))


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        (LIST, b"\x02\x02" * 100_000),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f"),
        (["null", "int"], b"\x04"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02"),
        ({"type": "fixed", "name": "F", "size": 100}, b"a"),
        ({"type": "map", "values": "int"}, b"\x04\x02a\x02\x02a\x04\0"),
        ({"type": "map", "values": "int"}, b"\x02\x02\xff\x02\0"),
        ({"type": "map", "values": "null"}, b"\xfe\xff\xff\xff\x0f"),
    ],
)
def test_hostile_bytes_end_in_an_error(schema: Any, data: bytes) -> None:
    with pytest.raises(DecodeError):
        text(schema, data)


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        (LIST, True),
        ("null", False),
        (["null", "int"], False),
        ({"type": "array", "items": {"type": "map", "values": "int"}}, True),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}] * 2}, False),
    ],
)
def test_what_may_be_another_text_is_not_written(schema: Any, answer: bool) -> None:
    assert can_be_written(avro_type(json.dumps(schema))) is answer
