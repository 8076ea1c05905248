"""The tree of an Avro value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings

from kdissect.model import Node
from kdissect.payload.avro import avro_type
from kdissect.payload.avro_tree import draw_avro
from tests.amount import times
from tests.payload import schemas_made
from tests.payload.test_avro import decode, written


def leaves(node: Node) -> Iterator[Node]:
    if not node.children:
        yield node
    for child in node.children:
        yield from leaves(child)


def value_of(node: Node) -> Any:
    """The value that the nodes say."""
    fields = [child for child in node.children if not child.name.startswith("(")]
    inner = next((child for child in node.children if child.name == "(value)"), None)
    if inner is not None:
        return value_of(inner)
    if any(child.name.startswith("[") for child in fields):
        return [value_of(child) for child in fields]
    return {child.name: value_of(child) for child in fields} if fields else node.value


@settings(max_examples=times(80, 5_000), deadline=None)
@given(schemas_made.avro())
def test_leaves_cover_every_byte_once(made: tuple[Any, Any]) -> None:
    schema, value = made
    data = b"\0\0\0\0\x05" + written(schema, value)
    root = draw_avro(avro_type(json.dumps(schema)), data, 5, "value")
    ranges = [(leaf.start, leaf.end) for leaf in leaves(root) if leaf.end > leaf.start]
    assert [start for start, _ in ranges] == [5, *(end for _, end in ranges)][: len(ranges)]
    assert (ranges[-1][1] if ranges else 5) == len(data)
    assert root.fault is None


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
