from __future__ import annotations

from collections.abc import Iterator

import pytest

from kdissect.limits import DEFAULTS
from kdissect.model import DecodeError, Node
from kdissect.protocol.annotate import annotate, expand
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.schema import Struct, message_struct
from tests.protocol.structs import struct_of

FLEXIBLE = """data 1 of 9.9; flexible 0+
    name   string    0+
    ids    []int32   0+
    one    One       0+  nullable
        id int8      0+
    level  int32     0+  tag 2
    list   []string  0+  nullable, tag 3
    rare   One       0+  nullable, tag 5
"""


def drawn(struct: Struct, text: str) -> list[tuple[str, str, object, int, int]]:
    """The tree as lines, indented by depth."""

    def lines(node: Node, depth: int) -> list[tuple[str, str, object, int, int]]:
        line = ("  " * depth + node.name, node.type, node.value, node.start, node.end)
        return [line, *(inner for child in node.children for inner in lines(child, depth + 1))]

    return lines(annotate(struct, Cursor(bytes.fromhex(text))), 0)


def test_every_node_has_kafkas_name_its_type_its_value_and_its_bytes() -> None:
    assert drawn(struct_of(FLEXIBLE), "03 6869 02 00000007 01 05 00 03 02 04 00000009 03 01 00 64 01 aa") == [
        ("Sample", "Sample", None, 0, 24),
        ("  name", "compact string", "hi", 0, 3),
        ("  ids", "[]int32", None, 3, 8),
        ("    (count)", "unsigned varint", 1, 3, 4),
        ("    [0]", "int32", 7, 4, 8),
        ("  one", "One", None, 8, 11),
        ("    (present)", "int8", True, 8, 9),
        ("    id", "int8", 5, 9, 10),
        ("    (tagged fields)", "unsigned varint", 0, 10, 11),
        ("  (tagged fields)", "unsigned varint", 3, 11, 12),
        ("  level", "int32", 9, 12, 18),
        ("    (tag)", "unsigned varint", 2, 12, 13),
        ("    (size)", "unsigned varint", 4, 13, 14),
        ("    (value)", "int32", 9, 14, 18),
        ("  list", "[]compact string", None, 18, 21),
        ("    (tag)", "unsigned varint", 3, 18, 19),
        ("    (size)", "unsigned varint", 1, 19, 20),
        ("    (null)", "[]compact string", None, 20, 21),
        ("  (tag 100)", "unknown tagged field", b"\xaa", 21, 24),
        ("    (tag)", "unsigned varint", 100, 21, 22),
        ("    (size)", "unsigned varint", 1, 22, 23),
        ("    (data)", "bytes", b"\xaa", 23, 24),
    ]


def test_null_is_a_leaf() -> None:
    lines = drawn(struct_of(FLEXIBLE), "01 00 ff 00")
    assert lines[2:4] == [("  ids", "[]int32", None, 1, 2), ("  one", "One", None, 2, 3)]


def test_offsets_are_those_of_the_buffer() -> None:
    tree = annotate(struct_of(FLEXIBLE), Cursor(bytes.fromhex("ffff 01 01 ff 00"), 2))
    assert (tree.start, tree.end, tree.children[0].start) == (2, 6, 2)


def test_defects_are_the_fault_of_the_node_where_they_lie() -> None:
    tree = annotate(struct_of(FLEXIBLE), Cursor(bytes.fromhex("00 01 ff 02 02 06 00000009 beef 02 02 0009")))
    name, level, again = tree.children[0], tree.children[4], tree.children[5]
    assert name.fault is not None
    assert (name.fault.layer, name.fault.kind, name.fault.offset) == ("message", "unexpected-null", 0)
    remainder = level.children[-1]
    assert (remainder.name, remainder.value) == ("(remainder)", b"\xbe\xef")
    assert remainder.fault is not None
    assert (remainder.fault.kind, remainder.fault.offset) == ("remainder", 10)
    assert again.fault is not None
    assert again.fault.kind == "tag-order"
    assert again.children[-1].fault is not None
    assert again.children[-1].fault.kind == "truncated"


def test_a_defect_inside_a_tagged_field_is_the_fault_of_the_value_alone() -> None:
    tree = annotate(struct_of(FLEXIBLE), Cursor(bytes.fromhex("01 01 ff 01 03 04 02 03 61ff")))
    listed = tree.children[4]
    assert listed.name == "list"
    assert listed.fault is None
    assert listed.children[-1].fault is not None
    assert listed.children[-1].fault.kind == "not-utf8"


def test_after_an_error_every_node_ends_where_its_last_child_does() -> None:
    tree = Node("Sample", "Sample", None, 0, 0)
    with pytest.raises(DecodeError):
        annotate(struct_of(FLEXIBLE), Cursor(bytes.fromhex("01 01 01 05 01")), tree)
    one = tree.children[-1]
    assert (one.name, one.start, one.end, one.children[-1].end) == ("one", 2, 4, 4)
    assert tree.end == 4


def test_the_contents_of_bytes_can_be_shown_in_their_place() -> None:
    struct = message_struct(0, 3, "request")
    data = bytes.fromhex("ffff 0001 00000064 00000001 0001 74 00000001 00000000 00000003 010203")
    tree = annotate(struct, Cursor(data))
    records = tree.children[3].children[1].children[1].children[1].children[1]
    assert (records.name, records.type, records.value) == ("records", "records", b"\x01\x02\x03")
    expand(records, [Node("batch", "record batch", None, records.end - 3, records.end)])
    assert [(node.name, node.start, node.end) for node in records.children] == [
        ("(length)", records.start, records.start + 4),
        ("batch", records.end - 3, records.end),
    ]


LISTS = """data 1 of 9.9
    lists      []List   1+
        numbers []int8  1+
        name    string  1+
    last       int8     1+
"""


def uncovered(node: Node, position: int) -> int:
    """Where the leaves of a tree end, each of which must begin where the one before it ended."""
    if not node.children:
        assert node.start == position
        return node.end
    for child in node.children:
        position = uncovered(child, position)
    return position


def test_a_tree_over_the_limit_of_nodes_has_the_rest_of_an_array_as_one_leaf() -> None:
    one = bytes.fromhex("00000003 010203 0001 61")
    data = (1000).to_bytes(4, "big") + one * 1000 + b"\x07"
    limits = DEFAULTS._replace(tree_nodes=100)
    tree = annotate(struct_of(LISTS, 1), Cursor(data, limits=limits))
    lists, last = tree.children
    rest = lists.children[-1]
    assert (last.name, last.value, last.end) == ("last", 7, len(data))
    assert rest.name == "(not drawn)"
    assert rest.value == data[rest.start : rest.end]
    assert rest.fault is not None
    assert rest.fault.kind == "too-many-elements"
    assert f"{1000 - len(lists.children) + 2} elements" in rest.fault.message
    assert uncovered(tree, 0) == len(data)
    assert 80 < sum(1 for _ in nodes_of(tree)) <= 110


def nodes_of(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from nodes_of(child)


def test_an_error_among_elements_that_are_not_drawn_is_an_error_all_the_same() -> None:
    data = (1000).to_bytes(4, "big") + bytes.fromhex("00000003 010203 0001 61") * 998 + bytes(12)
    tree = Node("", "", None, 0, 0)
    cursor = Cursor(data, limits=DEFAULTS._replace(tree_nodes=100))
    with pytest.raises(DecodeError) as error:
        annotate(struct_of(LISTS, 1), cursor, tree)
    assert error.value.kind == "truncated"
    assert uncovered(tree, 0) == cursor.position == len(data)
