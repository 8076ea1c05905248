from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.json_form import dumps, from_json, java_double, to_json
from kdissect.protocol.schema import Field, Struct, message_struct
from tests.protocol.structs import EVERYTHING, struct_of

NEW = struct_of(EVERYTHING, 5)


def test_fields_stand_in_the_order_of_the_definition_tagged_ones_too() -> None:
    struct = message_struct(1, 17, "request")
    values = {"maxWaitMs": 1, "topics": [], "clusterId": "c"}
    assert list(to_json(struct, values)) == ["clusterId", "maxWaitMs", "topics"]


def test_a_tagged_field_that_has_its_default_is_left_out() -> None:
    values: dict[str, Any] = {"tagged": -1, "rare": None, "plain": {"id": 0}, "list": None}
    assert to_json(NEW, values) == {}
    values = {"tagged": 0, "rare": {"id": 0}, "plain": {"id": 1}, "list": []}
    assert to_json(NEW, values) == values


def test_bytes_records_and_text() -> None:
    values = {"bytes": b"\xff", "records": b"abc", "string": "é", "uuid": "AAAAAAAAAAAAAAAAAAAAAA"}
    assert to_json(NEW, values) == {
        "uuid": "AAAAAAAAAAAAAAAAAAAAAA",
        "string": "é",
        "bytes": "/w==",
        "recordsSizeInBytes": 3,
    }
    assert to_json(NEW, {"bytes": None, "records": None}) == {"bytes": None, "records": None}


def test_a_string_that_is_not_utf8_is_base64() -> None:
    broken = b"a\xff".decode("utf-8", "surrogateescape")
    assert to_json(NEW, {"string": broken, "words": ["x", broken]}) == {
        "string": {"base64": "Yf8="},
        "words": ["x", {"base64": "Yf8="}],
    }
    assert from_json(struct_of("data 1 of 9.9\n    a  string  0+\n"), {"a": {"base64": "Yf8="}}) == {
        "a": broken
    }


def test_unknown_tagged_fields_are_printed_last() -> None:
    values = {"_unknownTaggedFields": [{"tag": 9, "data": b"\xff"}], "int8": 1}
    assert list(to_json(NEW, values).items()) == [
        ("int8", 1),
        ("_unknownTaggedFields", [{"tag": 9, "data": "/w=="}]),
    ]


def test_a_hook_sees_leaves_with_their_ancestors_and_may_write_them() -> None:
    seen = []

    def hook(
        ancestors: list[dict[str, Any]], struct: Struct, field: Field, value: Any, out: dict[str, Any]
    ) -> bool:
        seen.append((len(ancestors), struct.name, field.name, value))
        out["mine"] = value
        return field.name == "string"

    values = {"int8": 1, "string": "s", "things": [{"name": "n"}]}
    assert to_json(NEW, values, hook) == {"int8": 1, "mine": "s", "things": [{"mine": "n", "name": "n"}]}
    assert seen == [(1, "Sample", "string", "s"), (2, "Thing", "name", "n")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1e300, "1.0E300"),
        (-1.5e-10, "-1.5E-10"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (12345678.9, "1.23456789E7"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (5e-324, "5.0E-324"),
        (math.inf, '"Infinity"'),
        (-math.inf, '"-Infinity"'),
        (math.nan, '"NaN"'),
    ],
)
def test_doubles_print_as_in_java(value: float, text: str) -> None:
    assert java_double(value) == text
    assert dumps(to_json(NEW, {"float64": value})) == f'{{"float64":{text}}}'


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value: float) -> None:
    assert float(java_double(value)) == value


def test_text_is_one_line_of_ascii() -> None:
    text = dumps({"a": "\u2028é\n", "b": [1.5, "x: 1.5", None, True, {}], "c": 1e9})
    assert text == '{"a":"\\u2028\\u00e9\\n","b":[1.5,"x: 1.5",null,true,{}],"c":1.0E9}'
    assert dumps(1e-33) == "1.0E-33"
    assert dumps({"a": ": 1.5"}) == '{"a":": 1.5"}'
    assert dumps({"a": float("nan"), "b": [-float("inf")]}) == '{"a":"NaN","b":["-Infinity"]}'
    assert json.loads(text)["a"] == "\u2028é\n"


@pytest.mark.parametrize(
    ("obj", "complaint"),
    [
        ({}, "name: missing"),
        ([], "Sample: an object is needed"),
        ({"name": "a", "data": "no base64!"}, "data: base64 is needed"),
        ({"name": "a", "data": 7}, "data: base64 is needed"),
        ({"name": "\ud800", "data": ""}, "name: lone surrogates"),
        ({"name": "a", "data": "", "records": None, "list": {}}, "list: an array is needed"),
        ({"name": "a", "data": "", "records": None, "list": [{"id": 1}, {}]}, r"list\[1\]\.id: missing"),
        ({"name": "a", "data": "", "recordsSizeInBytes": 3}, "records: the records themselves"),
        (
            {"name": "a", "data": "", "records": "", "list": [], "_unknownTaggedFields": [1]},
            "_unknown.*an object",
        ),
        (
            {"name": "a", "data": "", "records": "", "list": [], "_unknownTaggedFields": 1},
            "_unknown.*an array",
        ),
    ],
)
def test_json_that_does_not_have_the_form_is_refused_with_the_path(obj: Any, complaint: str) -> None:
    fields = ["name string", "data bytes", "records records", "list []Item"]
    struct = struct_of(
        "data 1 of 9.9\n" + "".join(f"    {field} 0+\n" for field in fields) + "        id int8 0+\n"
    )
    with pytest.raises(ValueError, match=f"^{complaint}"):
        from_json(struct, obj)


def test_no_records_are_known_from_their_size() -> None:
    struct = struct_of("data 1 of 9.9\n    records  records  0+\n")
    assert from_json(struct, {"recordsSizeInBytes": 0}) == {"records": b""}


def test_a_message_that_broke_off_prints_what_was_read() -> None:
    struct = message_struct(18, 3, "response")
    values: dict[str, Any] = {"errorCode": 0, "apiKeys": [{"apiKey": 1}]}
    assert to_json(struct, values) == values


def test_fields_of_other_versions_reach_the_encoder() -> None:
    struct = message_struct(18, 0, "request")
    assert from_json(struct, {"clientSoftwareName": "x"}) == {"clientSoftwareName": "x"}
    assert decode(struct, Cursor(b"")) == {}
