"""Keys and values, and the schemas that decode them, as a target.

The first byte says what the rest is: a value that is recognised, one of a schema that is known, or a schema
of either kind with a value behind it. Whatever it is, there is a value that JSON can hold or one problem, and
a tree that covers every byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

from kdissect.model import Node
from kdissect.payload.avro_tree import draw_avro
from kdissect.payload.decoder import PayloadDecoder
from kdissect.payload.schemas import AVRO, JSON, PROTOBUF, RegistrySchema, Schemas
from kdissect.payload.tree import draw
from kdissect.protocol.json_form import dumps

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "next", "type": ["null", "Order"]},
        {"name": "lines", "type": {"type": "array", "items": {"type": "map", "values": "string"}}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "cost", "type": {"type": "bytes", "logicalType": "decimal", "scale": 2}},
        {"name": "nothing", "type": {"type": "array", "items": "null"}},
    ],
}
SHOP = """syntax = "proto3"; package shop; import "google/protobuf/struct.proto";
message Order { int64 id = 1; optional string who = 2; repeated sint32 n = 3; map<string, Order> m = 4;
  oneof pay { Order card = 5; bytes cash = 6; } enum Kind { NONE = 0; ONE = 1; } Kind kind = 7;
  google.protobuf.Struct more = 8; float f = 9; message Line { double d = 1; } Line line = 10; }
"""
_TOPICS = ("orders", "app-store-changelog")


@cache
def _known() -> Schemas:
    return Schemas([RegistrySchema(AVRO, json.dumps(ORDER), "1"), RegistrySchema(PROTOBUF, SHOP, "2")])


LINES = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer"},
        "next": {"$ref": "#"},
        "code": {"oneOf": [{"pattern": "^A"}, {}]},
    },
}


def payload(data: bytes) -> None:
    """One input."""
    mode, rest = data[0] % 7 if data else 0, data[1:]
    if mode < 2:
        _decode(PayloadDecoder(_known()), rest, ("value", "key")[mode], _TOPICS[mode])
    elif mode < 4:
        _decode(PayloadDecoder(_known()), bytes([0, 0, 0, 0, mode - 1]) + rest, "value", "orders")
        if mode == 2:
            reader = _known().reader("1")
            assert reader is not None
            assert reader.avro is not None
            _look(draw_avro(reader.avro, rest, 0, "value"), 0, len(rest))
    else:
        text, _, value = rest.partition(b"\xff")
        kind = (AVRO, PROTOBUF, JSON)[mode - 4]
        schemas = Schemas([RegistrySchema(kind, text.decode("utf-8", "replace"), "3")])
        _decode(PayloadDecoder(schemas), b"\0\0\0\0\3" + value, "value", "orders")
        schemas.learn(b'{"keytype": "SCHEMA"}', rest)
        assert all(problem.isprintable() for problem in schemas.problems)


def _decode(decoder: PayloadDecoder, data: bytes, side: str, topic: str) -> None:
    found = decoder.decode(topic, side, data, ())
    json.loads(dumps(found.value))
    told = json.loads(dumps(found.columns()))
    assert "\n" not in told.get("problem", "")
    assert found.problem is None or found.value is None or found.format == "json"
    at = 0
    nodes = draw(decoder, topic, side, data, ())
    for node in nodes:
        if node.buffer is None:
            _look(node, at, node.end)
        at = node.end
    assert not nodes or at == len(data)


def _look(node: Node, start: int, end: int) -> None:
    """That the leaves cover the bytes, each once."""
    assert node.start == start
    assert node.end == end
    at = start
    for child in node.children:
        _look(child, at, child.end)
        at = child.end
    assert not node.children or at == end


def payload_seeds() -> Iterator[bytes]:
    """Values of all forms, whole and damaged, and schemas."""
    order = b"\x02\x02\x04\0\0\0\x04\x02a\x02b\0\0\x02\x02\x04\x04\xe2\x04\0\x02\x02\x04\0\0\0\0"
    values = [
        *(b"", b"text", b'{"a": [1, null, {"b": "c"}]}', b"<a/>", b"12345678-1234-4234-9234-123456789abc"),
        b"\xa1\x61a\x82\x01\xf9\x3c\0",
        b"\x82\xa1a\x93\x01\xc0\xca\x3f\x80\0\0\xa1b\xc4\x01x",
        *(b"\xd9\xd9\xf7\x05", b"\x1f\x8b\x08", b"\xac\xed\0\x05"),
        *(b"\x08\x05\x12\x03abc\x1a\x02\x08\x01", b"\0\0\0\0\x07\x02abc", b"\x03\0" + bytes(range(40, 60))),
        *(b"\0\0\0\0" + b"0" * 32 + b"x", b"\0\0\0\0\0\0\0\0\x01x", b"\xc3\x01" + bytes(9)),
        *(b"Obj\x01\x02\x16avro.schema", b'{"schema": {"type": "int32"}, "payload": 5}'),
        b"k" + (1_763_800_000_000).to_bytes(8, "big") + bytes(4),
    ]
    for value in values:
        yield b"\0" + value
        yield b"\1" + value
    yield b"\2" + order
    yield b"\2" + order[:7]
    message = b"\0\x08\x05\x12\x01a\x1a\x02\x01\x02\x22\x07\x0a\x01k\x12\x02\x08\x01\x2a\x02\x08\x01"
    yield b"\3" + message + b"\x4d\0\0\x80\x3f"
    yield b"\3" + message[:9]
    yield b"\4" + json.dumps(ORDER).encode() + b"\xff" + order
    for schema in ('"string"', '["null", "int"]', '{"type": "fixed", "name": "F", "size": 3}'):
        yield b"\4" + schema.encode() + b"\xff\x02\x02"
    yield b"\5" + SHOP.encode() + b"\xff" + message
    yield b"\6" + json.dumps(LINES).encode() + b'\xff{"id": 1, "next": {"id": "a"}, "code": null}'
    yield b'\6{"allOf": [{"$ref": "#"}, {"enum": [1]}], "not": {"const": 2}}\xff[1, {"a": 2.5}]'
    old = b'syntax = "proto2"; message A { required group G = 1 { optional A a = 2; } extensions 4 to max; }'
    yield b"\5" + old + b"\xff\0"
