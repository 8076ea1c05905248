"""The tree of an Avro value."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.payload.avro import avro_type
from kdissect.payload.avro_tree import draw_avro
from tests.amount import patient, times
from tests.payload import schemas_made
from tests.payload.test_avro import decode, written
from tests.payload.trees import see_that_leaves_cover, value_of


@patient
@settings(max_examples=times(80, 5_000), deadline=None)
@given(schemas_made.avro())
def test_leaves_cover_every_byte_once(made: tuple[Any, Any]) -> None:
    schema, value = made
    data = b"\0\0\0\0\x05" + written(schema, value)
    root = draw_avro(avro_type(json.dumps(schema)), data, 5, "value")
    see_that_leaves_cover([root], 5, len(data))
    assert root.fault is None


@patient
@settings(max_examples=times(80, 5_000), deadline=None)
@given(schemas_made.avro(), st.binary(max_size=3), st.integers(0, 9))
def test_leaves_cover_bytes_that_do_not_fit_too(made: tuple[Any, Any], more: bytes, cut: int) -> None:
    schema, value = made
    data = b"\0\0\0\0\x05" + written(schema, value) + more
    data = data[: max(5, len(data) - cut)]
    root = draw_avro(avro_type(json.dumps(schema)), data, 5, "value")
    see_that_leaves_cover([root], 5, len(data))


def test_fields_have_their_values_and_bytes() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "m", "type": {"type": "map", "values": ["null", "int"]}},
        ],
    }
    value = {"id": 3, "tags": ["a", "bc"], "m": {"k": 5, "l": None}}
    root = draw_avro(avro_type(json.dumps(schema)), written(schema, value), 0, "value")
    assert [(child.name, child.type, child.start, child.end) for child in root.children] == [
        ("id", "int", 0, 1),
        ("tags", "array", 1, 8),
        ("m", "map", 8, 17),
    ]
    assert value_of(root.children[1]) == ["a", "bc"]
    assert value_of(root.children[2])["k"] == 5
    assert decode(schema, written(schema, value)) == value


def test_what_breaks_off_is_drawn_up_to_there() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": "string"} for name in "ab"]}
    root = draw_avro(avro_type(json.dumps(schema)), b"\x02x\x10yz", 0, "value")
    assert root.fault is not None
    assert root.children[0].value == "x"
    assert (root.children[-1].name, root.end) == ("(rest)", 5)
