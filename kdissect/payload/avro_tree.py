"""Avro's binary encoding → a tree in which each value has its bytes, for the screens.

The same walk as :mod:`kdissect.payload.avro_values`, with a node for each value. The nodes without children
cover every byte once, up to where the bytes do not have the form of the type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdissect.faults import fault
from kdissect.model import DecodeError, Node
from kdissect.payload.avro_values import (
    ARRAY,
    BYTES,
    DEEPEST,
    FIXED,
    MAP,
    NULL,
    RECORD,
    STRING,
    UNION,
    AvroType,
    read_count,
    read_size,
    read_text,
    read_value,
    shown_bytes,
    spend,
    too_deep,
    values_left,
)
from kdissect.protocol.cursor import Cursor


def draw_avro(avro: AvroType, data: bytes, start: int, name: str) -> Node:
    """The tree of a value.

    :param start: where in ``data`` it begins.
    :param name: what the root is called.
    """
    cursor = Cursor(data, start)
    cursor.elements_left = values_left(len(data) - start)
    root = Node(name, avro.name, None, start, start)
    try:
        _fill(root, avro, cursor, 0)
    except DecodeError as error:
        root.is_decoded = False
        root.fault = fault("payload", error.reason, offset=error.offset)
        _close(root)
    if root.end < cursor.end:
        root.children.append(Node("(rest)", "bytes", data[root.end :], root.end, cursor.end))
        root.end = cursor.end
    return root


def _close(node: Node) -> None:
    """Let nodes that broke off end where the last of their children does."""
    if node.children:
        last = node.children[-1]
        _close(last)
        node.end = last.end


def _child(parent: Node, name: str, avro: AvroType, cursor: Cursor, depth: int) -> Node:
    node = Node(name, avro.name, None, cursor.position, cursor.position)
    parent.children.append(node)
    _fill(node, avro, cursor, depth)
    return node


def _word(parent: Node, name: str, kind: str, cursor: Cursor, read: Callable[[Cursor], Any]) -> Any:
    """A number that frames a value."""
    start = cursor.position
    value = read(cursor)
    parent.children.append(Node(name, kind, value, start, cursor.position))
    return value


def _fill(node: Node, avro: AvroType, cursor: Cursor, depth: int) -> None:
    kind = avro.kind
    if depth > DEEPEST:
        raise too_deep(cursor)
    if kind == RECORD:
        spend(cursor, len(avro.names) + 1)
        for name, field in zip(avro.names, avro.types, strict=True):
            _child(node, name, field, cursor, depth + 1)
    elif kind == UNION:
        _union(node, avro, cursor, depth)
    elif kind in (ARRAY, MAP):
        _collection(node, avro, cursor, depth)
    elif kind in (STRING, BYTES):
        size = _word(node, "(length)", "long", cursor, read_size)
        start = cursor.position
        value = read_text(cursor, size) if kind == STRING else shown_bytes(avro, cursor.read_bytes(size))
        node.children.append(Node("(bytes)", avro.name, value, start, cursor.position))
        node.value = value
    elif kind == FIXED:
        node.value = shown_bytes(avro, cursor.read_bytes(avro.size))
    elif kind != NULL:
        node.value = read_value(avro, cursor)
    node.end = cursor.position


def _union(node: Node, avro: AvroType, cursor: Cursor, depth: int) -> None:
    index = _word(node, "(branch)", "long", cursor, Cursor.read_varlong)
    if not 0 <= index < len(avro.types):
        raise DecodeError(f"branch {index} of a union of {len(avro.types)}", cursor.position)
    branch = avro.types[index]
    if branch.kind != NULL:
        inner = _child(node, "(value)", branch, cursor, depth + 1)
        node.value = inner.value
    node.type = branch.name


def _collection(node: Node, avro: AvroType, cursor: Cursor, depth: int) -> None:
    item = avro.item
    assert item is not None
    at = 0
    while left := _word(node, "(count)", "long", cursor, read_count):
        for _ in range(left):
            if avro.kind == MAP:
                start = cursor.position
                entry = Node("", item.name, None, start, start)
                node.children.append(entry)
                size = _word(entry, "(length)", "long", cursor, read_size)
                key_at = cursor.position
                key = read_text(cursor, size)
                entry.name = str(key)
                entry.children.append(Node("(key)", "string", key, key_at, cursor.position))
                entry.value = _child(entry, "(value)", item, cursor, depth + 1).value
                entry.end = cursor.position
            else:
                _child(node, f"[{at}]", item, cursor, depth + 1)
            at += 1
