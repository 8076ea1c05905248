"""Protobuf's messages, against Protobuf's own library."""

from __future__ import annotations

import json
import math
import struct
import time
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import cache, lru_cache
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
from kdissect.payload.proto_text import LONGEST_NAME, parse_proto
from kdissect.payload.proto_types import UNKNOWN, ProtoFile, ProtoMessage
from kdissect.payload.protobuf import decode_protobuf, messages_at, raw_fields
from tests.amount import patient, times

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


@lru_cache(maxsize=8)
def _descriptors(text: str, *imported: tuple[str, str]) -> Any:
    """What protoc makes of a file.

    :param imported: paths and texts of others.
    """
    import importlib.resources

    from grpc_tools import protoc

    with TemporaryDirectory() as folder:
        google = importlib.resources.files("grpc_tools") / "_proto"
        path = Path(folder, "made.proto")
        path.write_text(text)
        for name, other in imported:
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_text(other)
        out = Path(folder, "made.bin")
        command = [
            "protoc",
            f"-I{folder}",
            f"-I{google}",
            f"--descriptor_set_out={out}",
            "--include_imports",
            str(path),
        ]
        assert protoc.main(command) == 0
        found = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    return found


def pool_of(text: str, imported: Mapping[str, str] | None = None) -> Any:
    """The pool with all types of a file and of what it imports."""
    pool = descriptor_pool.DescriptorPool()
    for file in _descriptors(text, *(imported or {}).items()).file:
        pool.Add(file)
    return pool


def compiled(text: str) -> Any:
    """The class that protoc and Protobuf make of the first message of a file."""
    last = _descriptors(text).file[-1]
    full = f"{last.package}.{last.message_type[0].name}"
    return message_factory.GetMessageClass(pool_of(text).FindMessageTypeByName(full))


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


@patient
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


def test_a_float_has_as_many_digits_as_tell_it_from_its_neighbours() -> None:
    message = parse_proto(HEAD + "message M { float f = 1; }").messages[0]
    for value in (0.1, 0.10811113566160202, 16777216.0, 1.17549435e-38):
        bytes_of = struct.pack("<f", value)
        found = decode_protobuf(message, b"\x0d" + bytes_of)["f"]
        assert struct.pack("<f", found) == bytes_of
        assert len(repr(found)) <= 15


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
            assert [each.name for each in messages_at(shop(), data)[0]] == [name]
        else:
            assert messages_at(shop(), data) == ((shop().named[name],), len(data))
    for wrong in (b"\x02\x08", b"\x01", b"\x02", b""):
        with pytest.raises(DecodeError):
            messages_at(shop(), wrong)


NESTED = """
message Order {
  message First { int32 a = 1; }
  map<string, int32> counts = 1;
  message Second { string b = 2; }
  message Third { int64 c = 3; }
}
"""


def test_serializers_count_nested_messages_behind_a_map_in_two_ways() -> None:
    """Java counts in the schema's text, others in descriptors, which have a message for the map's entries."""
    described = compiled(HEAD + NESTED).DESCRIPTOR
    assert [each.name for each in described.nested_types] == ["First", "CountsEntry", "Second", "Third"]
    file = parse_proto(HEAD + NESTED)
    for index, names in enumerate((["First"], ["Second"], ["Third", "Second"], ["Third"])):
        found, at = messages_at(file, bytes((4, 0, index * 2)))
        assert [each.name.rpartition(".")[2] for each in found] == names
        assert at == 3
    with pytest.raises(DecodeError, match="no message has the indexes 0, 4"):
        messages_at(file, b"\x04\0\x08")


def test_a_map_may_be_written_as_messages_of_its_entries() -> None:
    """So registries write the schemas that they got as descriptors."""
    written = (
        HEAD
        + """
    message Order {
      repeated .made.Order.CountsEntry counts = 1;
      repeated Pair pairs = 2;
      message CountsEntry { option map_entry = true; string key = 1; Line value = 2; }
      message Pair { string key = 1; Line value = 2; }
    }
    message Line { int32 n = 1; }
    """
    )
    made = compiled(HEAD + "message Order { map<string, Line> counts = 1; } message Line { int32 n = 1; }")()
    made.counts["a"].n, made.counts["b"].n = 1, 2
    file = parse_proto(written)
    found = decode_protobuf(file.messages[0], made.SerializeToString())
    assert found == {"counts": {"a": {"n": 1}, "b": {"n": 2}}, "pairs": []}
    assert messages_at(file, b"\x04\0\x02")[0] == (file.named["made.Order.Pair"],)


@pytest.mark.parametrize(
    "fields", ["string key = 1;", "Line key = 1; int32 value = 2;", "int32 a = 1; int32 b = 2;"]
)
def test_what_says_that_it_is_an_entry_and_has_not_the_form_is_a_message(fields: str) -> None:
    text = f"message M {{ repeated E es = 1; message E {{ option map_entry = true; {fields} }} }}"
    found = decode_protobuf(parse_proto(HEAD + text + "message Line {}").messages[0], b"\x0a\0")
    assert isinstance(found["es"], list)


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


KNOWN_ONES = """syntax = "proto3"; package made;
import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
import "google/protobuf/field_mask.proto"; import "google/protobuf/any.proto";
import "google/protobuf/struct.proto"; import "google/protobuf/wrappers.proto";
import "google/protobuf/empty.proto";
message M {
  google.protobuf.Timestamp at = 1; google.protobuf.Duration took = 2; google.protobuf.FieldMask mask = 3;
  repeated google.protobuf.Any any = 4; google.protobuf.Struct more = 5; google.protobuf.Int64Value count = 6;
  map<string, google.protobuf.Timestamp> times = 7; google.protobuf.Empty none = 8;
  google.protobuf.Value value = 9;
}
message Inner { int32 n = 1; }
"""


@pytest.mark.parametrize(
    "values",
    [
        {"at": "2025-11-22T10:00:00Z", "took": "1.500s"},
        {"at": "1965-01-01T00:00:00.000001Z", "took": "-0.000000001s"},
        {"at": "0001-01-01T00:00:00Z", "took": "-315576000000s"},
        {"at": "9999-12-31T23:59:59.999999999Z", "took": "3s"},
        {"mask": "user.displayName,photo"},
        {"mask": ""},
        {"any": [{"@type": "type.googleapis.com/made.Inner", "n": 5}]},
        {"any": [{"@type": "type.googleapis.com/google.protobuf.Duration", "value": "2s"}]},
        {"any": [{"@type": "a/made.M", "any": [{"@type": "b/made.Inner"}]}]},
        {"more": {"a": [1, None, {"b": True}]}, "count": "7", "times": {"x": "2000-01-01T00:00:00.120Z"}},
        {"none": {}, "value": [1, "a"]},
    ],
)
def test_types_of_google_are_shown_as_in_protobufs_json(values: dict[str, Any]) -> None:
    theirs = json_format.ParseDict(values, compiled(KNOWN_ONES)(), descriptor_pool=pool_of(KNOWN_ONES))
    found = decode_protobuf(_parsed(KNOWN_ONES).messages[0], theirs.SerializeToString())
    shown = json_format.MessageToDict(
        theirs,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
        descriptor_pool=pool_of(KNOWN_ONES),
    )
    assert same(found, shown), (found, shown)


def _parsed(text: str) -> ProtoFile:
    return parse_proto(text, KNOWN.get)


@pytest.mark.parametrize(
    ("message", "data", "value"),
    [
        ("Timestamp", "08ffffffffffffffff7f", {"seconds": (1 << 63) - 1, "nanos": 0}),
        ("Timestamp", "10ffffffffffffffffff01", {"seconds": 0, "nanos": -1}),
        ("Duration", "080110ffffffffffffffffff01", {"seconds": 1, "nanos": -1}),
        ("FieldMask", "0a0141", {"paths": ["A"]}),
        ("Any", "0a03612f62", {"type_url": "a/b", "value": ""}),
        ("Any", "0a08612f6d6164652e4d12010a", {"type_url": "a/made.M", "value": "Cg=="}),
    ],
)
def test_what_has_no_form_in_json_stays_an_object(message: str, data: str, value: Any) -> None:
    found = _parsed(KNOWN_ONES).named[f"google.protobuf.{message}"]
    assert isinstance(found, ProtoMessage)
    assert decode_protobuf(found, bytes.fromhex(data)) == value


@pytest.mark.parametrize("name", ["Timestamp", "Duration", "FieldMask", "Any"])
@pytest.mark.parametrize(
    "fields", ["", "string seconds = 1; bytes nanos = 2;", "int32 paths = 1;", "int32 type_url = 1;"]
)
def test_another_type_with_googles_name_is_shown_as_it_is(name: str, fields: str) -> None:
    file = parse_proto(f'syntax = "proto3"; package google.protobuf; message {name} {{ {fields} }}')
    assert isinstance(decode_protobuf(file.messages[0], b""), dict)


def test_any_in_any_is_bounded() -> None:
    file = _parsed(KNOWN_ONES)
    data, url = b"", b"a/google.protobuf.Any"
    for _ in range(300):
        data = b"\x0a" + bytes([len(url)]) + url + b"\x12" + _varint(len(data)) + data
    found = file.named["google.protobuf.Any"]
    assert isinstance(found, ProtoMessage)
    value, depth = decode_protobuf(found, data), 0
    while isinstance(value, dict) and "@type" in value:
        value, depth = value["value"], depth + 1
    assert 90 < depth <= 101


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def test_the_last_field_of_a_oneof_counts_however_many_there_are() -> None:
    fields = " ".join(f"int32 f{n} = {n};" for n in range(1, 3_001))
    message = parse_proto(f'syntax = "proto3"; message A {{ oneof x {{ {fields} }} }}').messages[0]
    data = b"".join(_varint(n << 3) + b"\1" for n in range(1, 3_001)) * 10
    begin = time.process_time()
    assert decode_protobuf(message, data) == {"f3000": 1}
    assert time.process_time() - begin < 5, "30,000 fields take milliseconds, unless each costs all of them"


CLOSED = """syntax = "proto2"; package made; message M { enum E { Z = 0; A = 1; B = 2; }
  optional E one = 1; repeated E many = 2 [packed = true]; map<string, E> by = 3;
  oneof x { E left = 4; string right = 5; } }"""


def test_numbers_that_a_closed_enum_lacks_are_unknown_each_by_itself() -> None:
    message = parse_proto(CLOSED).messages[0]
    data = bytes.fromhex("0802080712030107021a050a016b10072a01612009")
    found = decode_protobuf(message, data)
    unknown = found.pop(UNKNOWN)
    theirs = compiled(CLOSED)()
    theirs.ParseFromString(data)
    assert same(found, as_shown(theirs))
    assert found == {"one": "B", "many": ["A", "B"], "by": {}, "right": "a"}
    assert [each["field"] for each in unknown] == [1, 2, 3, 4]


EDITION = """edition = "2023"; package made; option features.field_presence = IMPLICIT;
message M { int32 a = 1; int32 b = 2 [features.field_presence = EXPLICIT]; Colour c = 3; }
enum Colour { option features.enum_type = CLOSED; RED = 0; BLUE = 1; }"""


def test_features_of_editions_count_for_file_field_and_enum() -> None:
    file = parse_proto(EDITION)
    assert decode_protobuf(file.messages[0], b"") == {"a": 0, "c": "RED"}
    assert decode_protobuf(file.messages[0], b"\x18\x05")[UNKNOWN][0]["field"] == 3
