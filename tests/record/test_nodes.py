from __future__ import annotations

from itertools import pairwise

import pytest

from kdissect.faults import fault
from kdissect.model import Node
from kdissect.protocol.cursor import Cursor
from kdissect.record.nodes import FIELDS_OF_MAGIC, attributes_text, fixed_fields, record_node, rest
from kdissect.record.records import Record
from kdissect.record.write import write_record


@pytest.mark.parametrize(
    ("attributes", "magic", "text"),
    [
        (0, 0, "0x00: none"),
        (1, 1, "0x01: gzip, CreateTime"),
        (0x0B, 1, "0x0b: lz4, LogAppendTime"),
        (0x14, 2, "0x0014: zstd, CreateTime, transactional"),
        (0x60, 2, "0x0060: none, CreateTime, control, delete horizon"),
        (7, 2, "0x0007: unknown(7), CreateTime"),
        (0x80, 2, "0x0080: none, CreateTime, unused bits 0x80"),
        (-0x80, 1, "0x80: none, CreateTime, unused bits 0x80"),
        (0x08, 0, "0x08: none, unused bits 0x8"),
    ],
)
def test_attributes_are_told_by_name(attributes: int, magic: int, text: str) -> None:
    assert attributes_text(attributes, magic) == text


def test_as_many_fields_as_the_bytes_hold_are_drawn() -> None:
    parent = Node("[0]", "RecordBatch", None, 100, 100)
    data = bytes(8) + b"\0\0\0\x31" + bytes(3)
    assert fixed_fields(parent, FIELDS_OF_MAGIC[2], data, 0, 100, 2) == 12
    drawn = [(node.name, node.type, node.value, node.start, node.end) for node in parent.children]
    assert drawn == [("baseOffset", "int64", 0, 100, 108), ("batchLength", "int32", 49, 108, 112)]


def drawn(data: bytes, room: int = 10) -> tuple[Node, int]:
    cursor = Cursor(data)
    size = cursor.read_varint()
    return record_node("[0]", cursor, 0, size, 0, 61, room)


def leaves(node: Node) -> list[Node]:
    return [leaf for child in node.children for leaf in leaves(child)] if node.children else [node]


def test_a_record_is_drawn_field_by_field() -> None:
    data = write_record(Record(3, 7, b"k", None, (("a", b"b"), ("c", None))), 3, 7)
    node, headers = drawn(data)
    assert (node.fault, headers, node.start, node.end) == (None, 2, 0, len(data))
    assert [(leaf.name, leaf.value) for leaf in leaves(node)] == [
        ("length", len(data) - 1),
        ("attributes", 0),
        ("timestampDelta", 7),
        ("offsetDelta", 3),
        ("key", b"k"),
        ("value", None),
        ("(count)", 2),
        ("key", "a"),
        ("value", b"b"),
        ("key", "c"),
        ("value", None),
    ]
    ends = [leaf.end for leaf in leaves(node)]
    assert [leaf.start for leaf in leaves(node)] == [0, *ends[:-1]]


@pytest.mark.parametrize(
    ("hexed", "reason"),
    [
        ("04 0000", "a record announces only 2 bytes"),
        ("0e 00 00 00 01 01 00 ff", "1 byte follows the last header"),
        ("0c 00 00 00 01 01 04", "2 headers in 0 bytes"),
        ("0c 00 00 00 01 64 00", "needs 50 bytes, but 1 is left"),
        ("0c 00 00 00 01 01 01", "-1 headers in 0 bytes"),
    ],
)
def test_a_broken_record_keeps_what_could_be_read_and_covers_its_bytes(hexed: str, reason: str) -> None:
    data = bytes.fromhex(hexed)
    node, _ = drawn(data)
    assert node.fault is not None
    assert (node.fault.kind, node.fault.layer, node.fault.offset) == ("bad-record", "records", 61)
    assert node.fault.message == reason
    found = leaves(node)
    assert found[0].start == 0
    assert node.end == len(data)
    assert all(one.end == two.start for one, two in pairwise(found))
    assert max(leaf.end for leaf in found) == len(data)


def test_headers_beyond_what_may_be_drawn_are_a_remainder() -> None:
    data = write_record(Record(0, 0, None, None, (("a", b""),) * 3), 0, 0)
    node, headers = drawn(data, room=2)
    assert headers == 0
    assert node.fault is not None
    assert (node.fault.kind, node.fault.message) == ("too-many-elements", "3 headers are not drawn")
    assert leaves(node)[-1].name == "(remainder)"
    assert drawn(data, room=3)[0].fault is None


def test_a_rest_without_bytes_is_the_fault_alone() -> None:
    parent, problem = Node("records", "[]Record", None, 0, 4), fault("bad-record", "x")
    rest(parent, b"abcd", 4, 4, 0, problem)
    assert (parent.children, parent.fault) == ([], problem)
    rest(parent, b"abcd", 2, 4, 10, problem)
    (node,) = parent.children
    assert (node.name, node.value, node.start, node.end, node.fault) == (
        "(remainder)",
        b"cd",
        12,
        14,
        problem,
    )
