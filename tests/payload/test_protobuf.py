"""Protobuf's messages, against Protobuf's own library."""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.model import DecodeError
from kdissect.payload.avro import SchemaError
from kdissect.payload.proto_known import KNOWN
from kdissect.payload.proto_text import LONGEST_NAME, UNKNOWN, ProtoFile, parse_proto
from kdissect.payload.protobuf import decode_protobuf, message_at, raw_fields
from tests.amount import times

NUMBERS = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), st.integers(-(1 << 31), (1 << 31) - 1)),
    **dict.fromkeys(("uint32", "fixed32"), st.integers(0, (1 << 32) - 1)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), st.integers(-(1 << 63), (1 << 63) - 1)),
    **dict.fromkeys(("uint64", "fixed64"), st.integers(0, (1 << 64) - 1)),
}
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    **NUMBERS,
    "bool": st.booleans(),
    "double": st.floats(),
    "float": st.floats(width=32),
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    "bytes": st.binary(max_size=6),
}
HEAD = 'syntax = "proto3";\npackage made;\n'
TYPES = "enum Colour { NONE = 0; RED = 1; BLUE = 7; }\n"


@st.composite
def message(draw: st.DrawFn, name: str = "M", depth: int = 0) -> tuple[str, dict[str, Any]]:
    """The text of a message, and values as JSON of Protobuf takes them."""
    lines: list[str] = []
    values: dict[str, Any] = {}
    for number in range(1, draw(st.integers(1, 5)) + 1):
        field = f"f{number}"
        kinds = [*SCALARS, "Colour", *(["message"] if depth < 2 else [])]
        kind = draw(st.sampled_from(kinds))
        label = draw(st.sampled_from(["", "optional ", "repeated ", "map"]))
        value: Any
        if kind == "message":
            kind = f"{name}{number}"
            text, value = draw(message(kind, depth + 1))
            lines.append(text)
        else:
            value = _json(kind, draw(SCALARS.get(kind, st.sampled_from(["NONE", "RED", "BLUE"]))))
        if label == "map":
            lines.append(f"map<string, {kind}> {field} = {number};")
            whole: Any = {"k": value, "": value}
        else:
            lines.append(f"{label}{kind} {field} = {number};")
            whole = [value, value] if label == "repeated " else value
        if draw(st.booleans()):
            values[field] = whole
    return f"message {name} {{ {' '.join(lines)} }}", values


def _json(kind: str, value: Any) -> Any:
    if kind == "bytes":
        return b64encode(value).decode()
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, float) and abs(value) == float("inf"):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def compiled(text: str) -> Any:
    """The class that protoc and Protobuf make of the first message of a file."""
    from grpc_tools import protoc

    with TemporaryDirectory() as folder:
        path = Path(folder, "made.proto")
        path.write_text(text)
        out = Path(folder, "made.bin")
        command = ["protoc", f"-I{folder}", f"--descriptor_set_out={out}", "--include_imports", str(path)]
        assert protoc.main(command) == 0
        found = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in found.file:
        pool.Add(file)
    first = found.file[-1].message_type[0].name
    full = f"{found.file[-1].package}.{first}"
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(full))


def as_shown(made: Any) -> Any:
    """Protobuf's own JSON, with its integers of 64 bits as numbers."""
    return json_format.MessageToDict(
        made, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def same(left: Any, right: Any) -> bool:
    """Whether values are equal; Protobuf's JSON has 64 bits as text."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, int) and isinstance(right, str):
        return str(left) == right
    return bool(left == right)


@settings(max_examples=times(40, 10_000), deadline=None)
@given(message())
def test_a_message_is_what_protobuf_reads(made: tuple[str, dict[str, Any]]) -> None:
    text, values = made
    whole = HEAD + TYPES + text
    theirs = json_format.ParseDict(values, compiled(whole)())
    found = decode_protobuf(parse_proto(whole).messages[0], theirs.SerializeToString())
    assert same(found, as_shown(theirs)), (found, as_shown(theirs))


SHOP = """
syntax = "proto2";  // old
package shop;
import "google/protobuf/wrappers.proto";
/* all
   at once */
message Order {
  option deprecated = true;
  required int64 id = 1 [(x).y = { a: "}" }, default = 5];
  optional Status status = 2;
  optional group Result = 3 { optional string url = 4; }
  oneof payment { string card = 5; Line cash = 6; }
  repeated int32 packed = 7 [packed = true];
  optional google.protobuf.StringValue note = 8;
  optional .shop.Order parent = 9;
  map<int32, Line> lines = 0xA;
  reserved 100 to max, 50; reserved "old";
  extensions 200 to 300;
  enum Status { option allow_alias = true; NEW = 3; PAID = 4; DONE = 4; }
  message Line { optional string sku = 1; message Deep { optional bool is = 1; } }
}
extend Order { optional int32 extra = 200; }
message Other { optional Order.Line line = 1; optional Order.Line.Deep deep = 2; }
service Shop { rpc Buy (Order) returns (stream Other) { option (http) = { get: "/x" }; } }
"""


@cache
def shop() -> ProtoFile:
    return parse_proto(SHOP, KNOWN.get)


@pytest.mark.parametrize(
    ("hex", "value"),
    [
        ("", {"packed": [], "lines": {}}),
        ("0801", {"id": 1, "packed": [], "lines": {}}),
        ("1004", {"status": "PAID", "packed": [], "lines": {}}),
        ("1b2201611c", {"result": {"url": "a"}, "packed": [], "lines": {}}),
        ("2a01613200", {"cash": {}, "packed": [], "lines": {}}),
        ("3a020102 3803", {"packed": [1, 2, 3], "lines": {}}),
        ("42030a0161", {"packed": [], "note": "a", "lines": {}}),
        ("4a020801 4a0a 5208 0805 1204 0a026162", None),
        ("52080805 12040a026162", {"packed": [], "lines": {"5": {"sku": "ab"}}}),
    ],
)
def test_fields_of_all_kinds(hex: str, value: Any) -> None:
    found = decode_protobuf(shop().messages[0], bytes.fromhex(hex))
    if value is not None:
        assert found == value
    else:
        assert found["parent"]["id"] == 1
        assert found["parent"]["lines"] == {"5": {"sku": "ab"}}  # a message that comes twice grows


def test_what_the_schema_does_not_have_stays() -> None:
    found = decode_protobuf(shop().messages[0], bytes.fromhex("1063 f80701 2d00000000"))
    assert found[UNKNOWN] == [
        {"field": 2, "wire": "varint", "value": 99},
        {"field": 127, "wire": "varint", "value": 1},
        {"field": 5, "wire": "i32", "value": "00000000"},
    ]


def test_indexes_name_a_message_of_the_file() -> None:
    for data, name in (
        (b"\0", "shop.Order"),
        (b"\x02\x02", "shop.Other"),
        (b"\x06\0\x02\0", "shop.Order.Line.Deep"),
    ):
        if name.endswith("Deep"):  # the group is the first message inside
            assert message_at(shop(), data)[0].name == name
        else:
            assert message_at(shop(), data) == (shop().named[name], len(data))
    for wrong in (b"\x02\x08", b"\x01", b"\x02", b""):
        with pytest.raises(DecodeError):
            message_at(shop(), wrong)


def test_without_a_schema_there_are_numbers_and_wire_types() -> None:
    assert raw_fields(bytes.fromhex("0805 12026162 1a020801 22027fff")) == [
        {"field": 1, "wire": "varint", "value": 5},
        {"field": 2, "wire": "len", "value": "ab"},
        {"field": 3, "wire": "len", "value": [{"field": 1, "wire": "varint", "value": 1}]},
        {"field": 4, "wire": "len", "value": {"base64": b64encode(b"\x7f\xff").decode()}},
    ]
    assert b64decode("f/8=") == b"\x7f\xff"


TREE = parse_proto('syntax = "proto3"; message T { T t = 1; repeated T many = 2; int32 n = 3; }').messages[0]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x0a\xff\xff\xff\xff\x07", "bytes are left"),
        (b"\x00\x01", "field number 0"),
        (b"\x0f", "wire type 7"),
        (b"\x0c", "the end of group"),
        (b"\x0b", "does not end"),
        (b"\x18" + b"\xff" * 11, "longer than 10 bytes"),
        (b"\x0b" * 5_000, "nested deeper"),
    ],
)
def test_hostile_bytes_end_in_one_error(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_protobuf(TREE, data)


def test_deep_messages_are_refused() -> None:
    data = b""
    for _ in range(200):
        size = len(data)
        head = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
        data = b"\x0a" + head + data
    with pytest.raises(DecodeError, match="nested deeper"):
        decode_protobuf(TREE, data)


def test_values_can_be_written_as_json() -> None:
    assert json.dumps(raw_fields(b"\x0b\x10\x01\x0c"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"message A {{ optional int32 {UNKNOWN} = 1; }}", "stands for unknown fields"),
        (f"package {'a.' * LONGEST_NAME}a; message A {{}}", "characters at most"),
    ],
)
def test_names_that_would_do_harm_are_refused(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        parse_proto(text)
