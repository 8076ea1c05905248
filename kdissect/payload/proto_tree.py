"""Protobuf's wire format → a tree in which each field has its bytes, for trees and screens.

A field's bytes include its tag. Fields are in the order of the bytes, and each occurrence is a node. Without
a schema, fields have numbers and wire types, never names. The nodes without children cover every byte once,
up to the first bytes that are not Protobuf's.
"""

from __future__ import annotations

from kdissect.faults import fault
from kdissect.model import DecodeError, Node
from kdissect.payload.proto_types import ProtoField, ProtoMessage
from kdissect.payload.protobuf import (
    DEEPEST,
    I64,
    LEN,
    SCALARS,
    SGROUP,
    VARINT,
    WIRE_TYPES,
    Wire,
    raw_value,
    read_scalar,
    read_varint,
    wire_fields,
)
from kdissect.protocol.cursor import Cursor

MOST_NODES = 20_000
"""The most fields of one key or value that are drawn."""


def draw_protobuf(message: ProtoMessage | None, data: bytes, start: int, name: str) -> Node:
    """The tree of a message.

    :param message: None if no schema is known.
    :param start: where in ``data`` it begins.
    :param name: the name of the root.
    """
    cursor = Cursor(data, start)
    cursor.elements_left = MOST_NODES
    root = Node(name, _type_name(message), None, start, start)
    try:
        _fill(root, message, cursor, 0, 0)
    except DecodeError as error:
        reason = error.reason
        if error.kind == "too-many-elements" and cursor.elements_left <= 0:
            reason = f"more than {MOST_NODES:,} fields are not drawn"
        root.is_decoded = False
        root.fault = fault("payload", reason, offset=error.offset)
    _close(root)
    if root.end < len(data):
        root.children.append(Node("(rest)", "bytes", data[root.end :], root.end, len(data)))
        root.end = len(data)
    return root


def _type_name(message: ProtoMessage | None) -> str:
    return "message" if message is None else f"message {message.name}"


def _close(node: Node) -> None:
    """Set a node's end to the end of its last child."""
    if node.children:
        node.end = node.children[-1].end


def _fill(node: Node, message: ProtoMessage | None, cursor: Cursor, depth: int, group: int) -> None:
    for wire in wire_fields(cursor, depth, group):
        field = None if message is None else message.by_number.get(wire.number)
        node.children.append(_drawn(field, wire, cursor, depth))


def _drawn(field: ProtoField | None, wire: Wire, cursor: Cursor, depth: int) -> Node:
    if field is None:
        return _unknown(wire, depth)
    kind = field.kind
    if kind in ("message", "group"):
        if wire.type != (LEN if kind == "message" else SGROUP):
            return _unknown(wire, depth)
        return _inner(field.name, field.message, wire, cursor, depth)
    wanted, _ = SCALARS["int32" if kind == "enum" else kind]
    shown = kind if field.enum is None else f"enum {field.enum.name}"
    if wire.type == wanted:
        return Node(field.name, shown, read_scalar(field, wire.value), wire.start, wire.end)
    if wire.type == LEN and field.is_repeated:
        return _packed(field, f"repeated {shown}", wanted, wire, cursor)
    return _unknown(wire, depth)


def _unknown(wire: Wire, depth: int) -> Node:
    value = raw_value(wire, depth)
    return Node(f"(field {wire.number})", WIRE_TYPES[wire.type], value, wire.start, wire.end)


def _inner(name: str, message: ProtoMessage | None, wire: Wire, cursor: Cursor, depth: int) -> Node:
    node = Node(name, _type_name(message), None, wire.start, wire.end)
    node.children.append(Node("(tag)", "varint", wire.number, wire.start, wire.at))
    if depth >= DEEPEST:
        raise DecodeError(f"messages nested deeper than {DEEPEST}", wire.start, "too-many-elements")
    inner = Cursor(cursor.data, wire.at, wire.end)
    inner.elements_left = cursor.elements_left
    try:
        _fill(node, message, inner, depth + 1, wire.number if wire.type == SGROUP else 0)
    except DecodeError as error:
        # The message around it can still be read.
        node.is_decoded = False
        node.fault = fault("payload", error.reason, offset=error.offset)
    cursor.elements_left = inner.elements_left
    at = node.children[-1].end
    if at < wire.end:
        is_end = wire.type == SGROUP and node.fault is None
        name, kind = ("(end)", "varint") if is_end else ("(rest)", "bytes")
        value = wire.number if is_end else cursor.data[at : wire.end]
        node.children.append(Node(name, kind, value, at, wire.end))
    return node


def _packed(field: ProtoField, shown: str, wanted: int, wire: Wire, cursor: Cursor) -> Node:
    node = Node(field.name, shown, None, wire.start, wire.end)
    node.children.append(Node("(tag)", "varint", wire.number, wire.start, wire.at))
    inner = Cursor(cursor.data, wire.at, wire.end)
    while inner.position < inner.end:
        start = inner.position
        cursor.elements_left -= 1
        if cursor.elements_left < 0:
            node.children.append(Node("(rest)", "bytes", cursor.data[start : wire.end], start, wire.end))
            break
        try:
            raw = read_varint(inner) if wanted == VARINT else inner.read_bytes(8 if wanted == I64 else 4)
        except DecodeError as error:
            node.fault = fault("payload", error.reason, offset=error.offset)
            node.children.append(Node("(rest)", "bytes", cursor.data[start : wire.end], start, wire.end))
            break
        at = len(node.children) - 1
        kind = shown.partition(" ")[2]
        node.children.append(Node(f"[{at}]", kind, read_scalar(field, raw), start, inner.position))
    return node
