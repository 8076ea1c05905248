from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.limits import Limits
from kdissect.model import Node
from kdissect.record.annotate import annotate_record_set
from kdissect.record.nodes import attributes_text
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.record.write import write_batch
from tests.amount import each_of, times
from tests.record.build import RECORDS, batch, message, packed_batch, wrapper
from tests.record.official import Vector, vector, vectors

SMALL = st.deferred(lambda: st.sampled_from([each for each in vectors() if len(each.data) < 3_000]))


def walk(nodes: list[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        yield from walk(node.children)


def leaves(nodes: list[Node], of_buffer: bool = True) -> Iterator[Node]:
    """The nodes that show bytes of the nodes' own buffer: what hangs below another buffer does not."""
    for node in nodes:
        if node.children and node.buffer is None:
            yield from leaves(node.children)
        else:
            yield node


def check_cover(nodes: list[Node], start: int, end: int) -> None:
    position = start
    for leaf in leaves(nodes):
        assert leaf.start == position, (leaf.name, leaf.start, position)
        assert leaf.end >= leaf.start
        position = leaf.end
    assert position == end
    for node in walk(nodes):
        if node.buffer is not None:
            check_cover(node.children, 0, len(node.buffer))
        elif node.children:
            assert node.children[0].start >= node.start
            assert node.children[-1].end <= node.end


def child(node: Node, name: str) -> Node:
    return next(each for each in node.children if each.name == name)


def drawn_records(nodes: list[Node]) -> list[tuple[object, object]]:
    """Key and value of every record in the tree that is whole."""
    found: list[tuple[object, object]] = []
    for node in nodes:
        names = [each.name for each in node.children]
        if node.type in ("Record", "Message") and node.fault is None and "value" in names:
            value = child(node, "value")
            if value.buffer is not None:
                found += drawn_records(value.children)
            elif value.fault is None and "none" in str(attribute_words(node)):
                found.append((child(node, "key").value, value.value))
        elif node.type in ("RecordBatch", "[]Record"):
            found += drawn_records(node.children)
    return found


def attribute_words(node: Node) -> object:
    return "none" if node.type == "Record" else child(node, "attributes").value


@each_of(vectors, lambda wanted: wanted.id)
def test_official_sets_are_covered_byte_by_byte_with_the_values_that_reading_gives(wanted: Vector) -> None:
    nodes = annotate_record_set(wanted.data, 1_000)
    check_cover(nodes, 1_000, 1_000 + len(wanted.data))
    found = read_record_set(wanted.data)
    assert len([node for node in nodes if node.name != "(remainder)"]) == len(found.batches)
    if "flipped" not in wanted.id and not found.own_faults:
        assert drawn_records(nodes) == [(record.key, record.value) for record in found.records()]
        assert not any(node.fault for node in walk(nodes))
    for node, each in zip(nodes, found.batches, strict=False):
        assert child(node, "magic").value == each.magic
        assert child(node, "crc").value == each.crc
        assert (child(node, "crc").fault is None) == (each.crc_valid is not False)
        if each.magic == 2:
            assert child(node, "baseOffset").value == each.base_offset
            assert child(node, "batchLength").value == each.size - 12
            assert child(node, "baseTimestamp").value == each.base_timestamp
            assert child(node, "maxTimestamp").value == each.max_timestamp
            assert child(node, "producerId").value == each.producer_id
            assert child(node, "recordsCount").value == each.count


def test_fields_of_a_batch_have_kafkas_names_and_places() -> None:
    (node,) = annotate_record_set(write_batch(RECORDS[:1], transactional=True))
    assert [(each.name, each.type, each.start, each.end) for each in node.children] == [
        ("baseOffset", "int64", 0, 8),
        ("batchLength", "int32", 8, 12),
        ("partitionLeaderEpoch", "int32", 12, 16),
        ("magic", "int8", 16, 17),
        ("crc", "uint32", 17, 21),
        ("attributes", "int16", 21, 23),
        ("lastOffsetDelta", "int32", 23, 27),
        ("baseTimestamp", "int64", 27, 35),
        ("maxTimestamp", "int64", 35, 43),
        ("producerId", "int64", 43, 51),
        ("producerEpoch", "int16", 51, 53),
        ("baseSequence", "int32", 53, 57),
        ("recordsCount", "int32", 57, 61),
        ("records", "[]Record", 61, node.end),
    ]
    (record,) = child(node, "records").children
    assert [(each.name, each.type, each.value) for each in record.children] == [
        ("length", "varint", record.end - record.start - 1),
        ("attributes", "int8", 0),
        ("timestampDelta", "varlong", 0),
        ("offsetDelta", "varint", 0),
        ("key", "bytes", b"k1"),
        ("value", "bytes", b"value-one"),
        ("headers", "[]Header", None),
    ]
    count, *headers = child(record, "headers").children
    assert (count.name, count.value) == ("(count)", 3)
    assert [(child(each, "key").value, child(each, "value").value) for each in headers] == [
        *RECORDS[0].headers
    ]


def test_fields_of_a_message_have_kafkas_names() -> None:
    (old, new) = annotate_record_set(message(0, 0, 1, b"v", b"k") + message(1, 8, 1, None))
    names = ["offset", "messageSize", "crc", "magic", "attributes", "key", "value"]
    assert [each.name for each in old.children] == names
    assert [each.name for each in new.children] == [*names[:5], "timestamp", *names[5:]]
    assert [each.value for each in new.children[4:]] == ["0x08: none, LogAppendTime", 7, None, None]


@pytest.mark.parametrize(
    ("attributes", "magic", "text"),
    [
        (0, 0, "0x00: none"),
        (0x09, 1, "0x09: gzip, LogAppendTime"),
        (0x14, 2, "0x0014: zstd, CreateTime, transactional"),
        (0x70, 2, "0x0070: none, CreateTime, transactional, control, delete horizon"),
        (-0x80, 2, "0xff80: none, CreateTime, unused bits 0xff80"),
        (6, 2, "0x0006: unknown(6), CreateTime"),
    ],
)
def test_attributes_are_spelled_out(attributes: int, magic: int, text: str) -> None:
    assert attributes_text(attributes, magic) == text


def test_compressed_records_hang_below_a_buffer_of_their_own() -> None:
    (node,) = annotate_record_set(write_batch(RECORDS, 4))
    records = child(node, "records")
    assert records.buffer is not None
    assert [each.name for each in records.children] == ["[0]", "[1]", "[2]", "[3]"]
    assert records.children[0].start == 0
    assert records.children[-1].end == len(records.buffer)
    assert (records.start, records.end) == (61, node.end)


def test_wrapped_messages_hang_below_the_value() -> None:
    (node,) = annotate_record_set(wrapper(1, 1, 105, message(1, 0, 0, b"a") + message(1, 0, 1, b"b")))
    value = child(node, "value")
    assert value.buffer is not None
    assert [child(each, "offset").value for each in value.children] == [0, 1]


@pytest.mark.parametrize(
    ("data", "kind", "name"),
    [
        (write_batch(RECORDS)[:-1], "partial-batch", "[0]"),
        (write_batch(RECORDS)[:40], "partial-batch", "(remainder)"),
        (batch(b"junk", count=1, attributes=4), "bad-compressed-data", "records"),
        (batch(b"junk", count=1, attributes=7), "unknown-codec", "records"),
        (batch(b"\x0c\0\0\0\1\1\0", count=2), "record-count", "records"),
        (batch(b"\x0e\0\0\0\1\1\0\0", count=1), "bad-record", "[0]"),
        (batch(b"\xff\xff", count=1), "bad-record", "(remainder)"),
        (message(1, 1, 5, None), "bad-batch", "value"),
        (wrapper(1, 1, 5, wrapper(1, 1, 5, b"")), "nested-compression", "value"),
        (message(0, 0, 1, b"x", crc=1), "bad-crc", "crc"),
        (b"\0" * 16 + b"\7" + b"\0" * 9, "bad-batch", "(remainder)"),
    ],
)
def test_defects_stand_at_the_place_they_concern(data: bytes, kind: str, name: str) -> None:
    found = [(node.name, node.fault.kind) for node in walk(annotate_record_set(data)) if node.fault]
    assert (name, kind) in found


def test_fields_of_a_message_that_breaks_off_are_named() -> None:
    (node,) = annotate_record_set(message(1, 0, 5, b"x" * 20)[:-4])
    assert [each.name for each in node.children] == [
        *("offset", "messageSize", "crc", "magic", "attributes", "timestamp"),
        "(cut)",
    ]


@pytest.mark.parametrize(
    "identity", ["mixed-magic", "m2-none-CreateTime-headers", "m1-gzip-CreateTime-several"]
)
def test_cut_sets_are_covered(identity: str) -> None:
    data = vector(identity).data
    for cut in range(len(data)):
        check_cover(annotate_record_set(data[:cut]), 0, cut)


@settings(max_examples=times(100, 300), deadline=None)
@given(SMALL, st.data())
def test_mutated_sets_are_covered_and_hold_what_reading_gives(wanted: Vector, draw: st.DataObject) -> None:
    data = bytearray(wanted.data)
    for _ in range(draw.draw(st.integers(1, 3))):
        if data:
            data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    nodes = annotate_record_set(bytes(data))
    check_cover(nodes, 0, len(data))
    found = read_record_set(bytes(data))
    records = list(found.records())
    if all(each.magic == 2 for each in found.batches):
        drawn = [
            (child(node, "key").value, child(node, "value").value)
            for node in walk(nodes)
            if node.type == "Record" and node.fault is None
        ]
        assert drawn == [(record.key, record.value) for record in records]
    kinds = {problem.kind for problem in found.faults} - {"bad-batch"}
    assert kinds - {"not-utf8"} <= {node.fault.kind for node in walk(nodes) if node.fault} | {"record-count"}


@settings(max_examples=times(60, 200), deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_covered(data: bytes) -> None:
    for each in (data, batch(data, count=2), packed_batch(1, data, 2), wrapper(1, 1, 9, data)):
        check_cover(annotate_record_set(each, 7), 7, 7 + len(each))


def test_what_is_drawn_is_bounded_and_the_rest_named() -> None:
    body = b"\x0c\0\0\0\1\1\0" * 2_000_000
    started = time.process_time()
    (node,) = annotate_record_set(packed_batch(4, body, 2_000_000), 0, Limits(decompressed_ratio=100_000))
    assert time.process_time() - started < 15  # some 2 on a machine that does nothing else
    records = child(node, "records")
    assert len(records.children) == 1_000_000 // 16 + 1
    rest = records.children[-1]
    assert (rest.name, rest.fault and rest.fault.kind) == ("(remainder)", "too-many-elements")


def test_headers_without_end_are_not_drawn() -> None:
    record = Record(0, 0, None, None, (("", None),) * 100_000)
    (node,) = annotate_record_set(write_batch([record]))
    assert len(list(walk([node]))) < 100
    check_cover([node], 0, node.end)
