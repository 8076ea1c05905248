"""Nodes for trees of record sets: fields of fixed width, and one record of magic 2."""

from __future__ import annotations

from struct import Struct

from kdissect.faults import fault
from kdissect.model import DecodeError, Fault, Node
from kdissect.protocol.cursor import Cursor
from kdissect.record.batch import (
    CODEC_BITS,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    codec_name,
)
from kdissect.record.scan import SMALLEST_RECORD
from kdissect.wording import plural

_Fields = tuple[tuple[str, str, Struct], ...]
_INT8, _INT16, _INT32, _UINT32, _INT64 = (Struct(">" + form) for form in "bhiIq")

_BATCH_FIELDS: _Fields = (
    ("baseOffset", "int64", _INT64),
    ("batchLength", "int32", _INT32),
    ("partitionLeaderEpoch", "int32", _INT32),
    ("magic", "int8", _INT8),
    ("crc", "uint32", _UINT32),
    ("attributes", "int16", _INT16),
    ("lastOffsetDelta", "int32", _INT32),
    ("baseTimestamp", "int64", _INT64),
    ("maxTimestamp", "int64", _INT64),
    ("producerId", "int64", _INT64),
    ("producerEpoch", "int16", _INT16),
    ("baseSequence", "int32", _INT32),
    ("recordsCount", "int32", _INT32),
)
_MESSAGE_FIELDS: _Fields = (
    ("offset", "int64", _INT64),
    ("messageSize", "int32", _INT32),
    ("crc", "uint32", _UINT32),
    ("magic", "int8", _INT8),
    ("attributes", "int8", _INT8),
)
_TIMESTAMP_FIELD: _Fields = (("timestamp", "int64", _INT64),)
FIELDS_OF_MAGIC = (_MESSAGE_FIELDS, _MESSAGE_FIELDS + _TIMESTAMP_FIELD, _BATCH_FIELDS)


def attributes_text(attributes: int, magic: int) -> str:
    """``0x0014: zstd, CreateTime, transactional``."""
    words = [codec_name(attributes)]
    if magic > 0:
        words.append("LogAppendTime" if attributes & LOG_APPEND_TIME else "CreateTime")
    known = CODEC_BITS | (LOG_APPEND_TIME if magic > 0 else 0)
    if magic == 2:
        flags = ((TRANSACTIONAL, "transactional"), (CONTROL, "control"), (DELETE_HORIZON, "delete horizon"))
        words += [word for bit, word in flags if attributes & bit]
        known |= TRANSACTIONAL | CONTROL | DELETE_HORIZON
    width = 16 if magic == 2 else 8
    bits = attributes & (1 << width) - 1
    if bits & ~known:
        words.append(f"unused bits 0x{bits & ~known:x}")
    return f"0x{bits:0{width // 4}x}: {', '.join(words)}"


def fixed_fields(parent: Node, fields: _Fields, data: bytes, position: int, shift: int, magic: int) -> int:
    """Add as many of ``fields`` as the bytes hold; return the position after them."""
    for name, kind, form in fields:
        if position + form.size > len(data):
            break
        value: object = form.unpack_from(data, position)[0]
        if name == "attributes" and isinstance(value, int):
            value = attributes_text(value, magic)
        leaf(parent, name, kind, value, position + shift, position + shift + form.size)
        position += form.size
    return position


def leaf(
    parent: Node, name: str, kind: str, value: object, start: int, end: int, problem: Fault | None = None
) -> None:
    parent.children.append(Node(name, kind, value, start, end, fault=problem))


def rest(parent: Node, data: bytes, start: int, end: int, shift: int, problem: Fault) -> None:
    """The bytes from ``start`` to ``end`` as a remainder; without bytes, the fault alone."""
    if start < end:
        leaf(parent, "(remainder)", "bytes", data[start:end], start + shift, end + shift, problem)
    else:
        parent.fault = parent.fault or problem


def record_node(
    name: str, cursor: Cursor, start: int, size: int, shift: int, where: int, room: int
) -> tuple[Node, int]:
    """The record that begins at ``start`` and whose length has been read, and its number of headers.

    :param shift: what to add to positions for the nodes' ranges.
    :param where: the offset for its fault.
    :param room: the most headers to draw.
    """
    headers = 0
    data, end = cursor.data, cursor.position + size
    node = Node(name, "Record", None, start + shift, end + shift)
    leaf(node, "length", "varint", size, start + shift, cursor.position + shift)
    cursor.end = end
    at = cursor.position
    parent = node
    try:
        if size < SMALLEST_RECORD:
            raise DecodeError(f"a record announces only {plural(size, 'byte')}", start)
        readers = (
            ("attributes", "int8", cursor.read_int8),
            ("timestampDelta", "varlong", cursor.read_varlong),
            ("offsetDelta", "varint", cursor.read_varint),
            ("key", "bytes", lambda: _nullable_bytes(cursor)),
            ("value", "bytes", lambda: _nullable_bytes(cursor)),
        )
        for field_name, kind, read in readers:
            value = read()
            leaf(node, field_name, kind, value, at + shift, cursor.position + shift)
            at = cursor.position
        parent = Node("headers", "[]Header", None, at + shift, at + shift)
        node.children.append(parent)
        count = cursor.read_varint()
        leaf(parent, "(count)", "varint", count, at + shift, cursor.position + shift)
        at = cursor.position
        if count < 0 or count > cursor.remaining() // 2:
            raise DecodeError(f"{plural(count, 'header')} in {plural(cursor.remaining(), 'byte')}", at)
        if count > room:
            text = f"{plural(count, 'header is', 'headers are')} not drawn"
            raise DecodeError(text, at, "too-many-elements")
        headers = count
        for index in range(count):
            header = Node(f"[{index}]", "Header", None, at + shift, at + shift)
            key = cursor.read_text(cursor.read_varint())
            leaf(header, "key", "string", key, at + shift, cursor.position + shift)
            if cursor.notes:
                _, text, _ = cursor.notes.pop()
                header.children[0].fault = fault("not-utf8", text, offset=where, layer="records")
            key_end = cursor.position
            value = _nullable_bytes(cursor)
            leaf(header, "value", "bytes", value, key_end + shift, cursor.position + shift)
            at = cursor.position
            header.end = at + shift
            parent.children.append(header)
        parent.end = at + shift
        if at != end:
            parent = node
            raise DecodeError(f"{plural(end - at, 'byte follows', 'bytes follow')} the last header", at)
    except DecodeError as error:
        limited = error.kind == "too-many-elements"
        kind = "too-many-elements" if limited else "bad-record"
        node.fault = fault(kind, error.reason, offset=where, layer="records")
        if parent is not node:
            parent.end = end + shift
        if at < end:
            leaf(parent, "(remainder)", "bytes", data[at:end], at + shift, end + shift)
    return node, headers


def _nullable_bytes(cursor: Cursor) -> bytes | None:
    size = cursor.read_varint()
    return None if size == -1 else cursor.read_bytes(size)
