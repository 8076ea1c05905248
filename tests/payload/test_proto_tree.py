"""The tree of a Protobuf message."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.model import Node
from kdissect.payload import proto_tree
from kdissect.payload.proto_text import parse_proto
from kdissect.payload.proto_tree import draw_protobuf
from tests.amount import patient, times
from tests.payload.test_protobuf import HEAD, TYPES, compiled, message
from tests.payload.trees import see_that_leaves_cover

SHOP = """syntax = "proto2"; package shop; message Order {
  optional int64 id = 1; optional string who = 2; repeated sint32 n = 3 [packed = true];
  optional group Result = 4 { optional bool ok = 1; } map<string, int32> by = 5; repeated Line lines = 6;
  enum Kind { NONE = 0; SOME = 1; } optional Kind kind = 7; optional double d = 8; }
message Line { optional fixed32 f = 1; }"""
DATA = bytes.fromhex(
    "0805" "12024142" "1a03010204" "2308012 4".replace(" ", "") + "2a050a01781007" "32050d01000000" "3200"
    "3801" "41000000000000f83f" "5009" "0806"
)  # fmt: skip


def drawn(data: bytes = DATA, start: int = 0) -> Node:
    return draw_protobuf(parse_proto(SHOP).messages[0], data, start, "value")


def test_fields_have_their_values_and_bytes() -> None:
    root = drawn()
    assert [(each.name, each.type, each.value, each.start, each.end) for each in root.children] == [
        ("id", "int64", 5, 0, 2),
        ("who", "string", "AB", 2, 6),
        ("n", "repeated sint32", None, 6, 11),
        ("result", "message shop.Order.Result", None, 11, 15),
        ("by", "message shop.Order.byEntry", None, 15, 22),
        ("lines", "message shop.Line", None, 22, 29),
        ("lines", "message shop.Line", None, 29, 31),
        ("kind", "enum shop.Order.Kind", "SOME", 31, 33),
        ("d", "double", 1.5, 33, 42),
        ("(field 10)", "varint", 9, 42, 44),
        ("id", "int64", 6, 44, 46),
    ]
    packed, group, entry, line = root.children[2:6]
    assert [(each.name, each.value) for each in packed.children] == [
        *(("(tag)", 3), ("[0]", -1), ("[1]", 1), ("[2]", 2)),
    ]
    assert [(each.name, each.value) for each in group.children] == [("(tag)", 4), ("ok", True), ("(end)", 4)]
    assert [(each.name, each.value) for each in entry.children] == [("(tag)", 5), ("key", "x"), ("value", 7)]
    assert [(each.name, each.value) for each in line.children] == [("(tag)", 6), ("f", 1)]
    see_that_leaves_cover([root], 0, len(DATA))


@patient
@settings(max_examples=times(30, 3_000), deadline=None)
@given(message(), st.binary(max_size=4))
def test_leaves_cover_every_byte_once(made: tuple[str, dict[str, Any]], before: bytes) -> None:
    text, values = made
    whole = HEAD + TYPES + text
    data = before + json_format.ParseDict(values, compiled(whole)()).SerializeToString()
    root = draw_protobuf(parse_proto(whole).messages[0], data, len(before), "value")
    assert root.fault is None
    see_that_leaves_cover([root], len(before), len(data))


@patient
@settings(max_examples=times(300, 5_000), deadline=None)
@given(st.binary(max_size=30))
def test_bytes_that_are_something_else_are_covered_too(data: bytes) -> None:
    for schema in (parse_proto(SHOP).messages[0], None):
        see_that_leaves_cover([draw_protobuf(schema, data, 0, "value")], 0, len(data))


def test_what_breaks_off_inside_is_drawn_up_to_there_and_what_follows_too() -> None:
    root = drawn(bytes.fromhex("32030d01000805"))
    line, id = root.children
    assert line.fault is not None
    assert (line.children[-1].name, line.end) == ("(rest)", 5)
    assert (id.name, id.value) == ("id", 5)
    broken = drawn(bytes.fromhex("080512ff"))
    assert broken.fault is not None
    assert [each.name for each in broken.children] == ["id", "(rest)"]


def test_without_a_schema_there_are_numbers() -> None:
    root = draw_protobuf(None, DATA, 0, "value")
    assert [each.name for each in root.children][:3] == ["(field 1)", "(field 2)", "(field 3)"]
    assert root.children[1].value == "AB"


@pytest.mark.parametrize("data", [b"\x08\x01" * 50, b"\x1a\x32" + b"\1" * 50])
def test_only_so_many_are_drawn(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proto_tree, "MOST_NODES", 10)
    root = drawn(data)
    see_that_leaves_cover([root], 0, len(data))
    assert len(root.children) + sum(len(each.children) for each in root.children) < 20
