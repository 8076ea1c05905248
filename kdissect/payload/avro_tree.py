"""Avro's binary encoding → a tree in which each value has its bytes, for trees and screens.

The same walk as :mod:`kdissect.payload.avro_values`, with a node for each value. The nodes without children
cover every byte once, up to the first bytes that do not fit the type. A value's bytes include the length of a
string and the branch of a union.
"""

from __future__ import annotations

from kdissect.faults import fault
from kdissect.model import DecodeError, Node
from kdissect.payload.avro_values import (
    ARRAY,
    DEEPEST,
    ENUM,
    FIXED,
    MAP,
    RECORD,
    UNION,
    AvroType,
    read_count,
    read_size,
    read_text,
    read_value,
    spend,
    too_deep,
    values_left,
)
from kdissect.protocol.cursor import Cursor

MOST_NODES = 20_000
"""The most values of one key or value that are drawn."""
_NAMED = {RECORD: "record", ENUM: "enum", FIXED: "fixed"}
_COMPOUND = (RECORD, ARRAY, MAP, UNION)


def draw_avro(avro: AvroType, data: bytes, start: int, name: str) -> Node:
    """The tree of a value.

    :param start: where in ``data`` it begins.
    :param name: the name of the root.
    """
    cursor = Cursor(data, start)
    allowed = values_left(len(data) - start)
    cursor.elements_left = min(allowed, MOST_NODES)
    root = Node(name, type_name(avro), None, start, start)
    try:
        _fill(root, avro, cursor, 0)
    except DecodeError as error:
        reason = error.reason
        if error.kind == "too-many-elements" and allowed > MOST_NODES:
            reason = f"more than {MOST_NODES:,} values are not drawn"
        root.is_decoded = False
        root.fault = fault("payload", reason, offset=error.offset)
        _close(root)
    if root.end < cursor.end:
        if root.end > start and not root.children:  # a plain value keeps its bytes for itself
            root.children.append(Node("(whole)", root.type, root.value, start, root.end))
            root.value = None
        root.children.append(Node("(rest)", "bytes", data[root.end :], root.end, cursor.end))
        root.end = cursor.end
    return root


def type_name(avro: AvroType) -> str:
    """A type in words: ``record shop.Order``, ``long``, ``bytes decimal``."""
    kind = _NAMED.get(avro.kind)
    name = f"{kind} {avro.name}" if kind is not None else avro.name
    return f"{name} {avro.logical}" if avro.logical else name


def _close(node: Node) -> None:
    """Set the end of incomplete nodes to the end of their last child."""
    if node.children:
        last = node.children[-1]
        _close(last)
        node.end = last.end


def _child(parent: Node, name: str, avro: AvroType, cursor: Cursor, depth: int) -> None:
    node = Node(name, type_name(avro), None, cursor.position, cursor.position)
    parent.children.append(node)
    _fill(node, avro, cursor, depth)


def _fill(node: Node, avro: AvroType, cursor: Cursor, depth: int) -> None:
    kind = avro.kind
    if depth > DEEPEST:
        raise too_deep(cursor)
    spend(cursor, 1)
    node.is_decoded = False
    if kind == RECORD:
        for name, field in zip(avro.names, avro.types, strict=True):
            _child(node, name, field, cursor, depth + 1)
    elif kind == UNION:
        _union(node, avro, cursor, depth)
    elif kind in (ARRAY, MAP):
        _collection(node, avro, cursor, depth)
    else:
        node.value = read_value(avro, cursor)
    node.end = cursor.position
    node.is_decoded = True


def _union(node: Node, avro: AvroType, cursor: Cursor, depth: int) -> None:
    start = cursor.position
    index = cursor.read_varlong()
    if not 0 <= index < len(avro.types):
        raise DecodeError(f"branch {index} of a union of {len(avro.types)}", cursor.position)
    branch = avro.types[index]
    node.type = type_name(branch)
    if branch.kind in _COMPOUND:
        node.children.append(Node("(branch)", "long", index, start, cursor.position))
    _fill(node, branch, cursor, depth + 1)


def _collection(node: Node, avro: AvroType, cursor: Cursor, depth: int) -> None:
    item = avro.item
    assert item is not None
    at = 0
    while True:
        start = cursor.position
        left = read_count(cursor)
        cursor.elements_left += left  # each item is counted when it is drawn
        node.children.append(Node("(count)", "long", left, start, cursor.position))
        if not left:
            return
        for _ in range(left):
            if avro.kind == MAP:
                _entry(node, item, cursor, depth)
            else:
                _child(node, f"[{at}]", item, cursor, depth + 1)
            at += 1


def _entry(node: Node, item: AvroType, cursor: Cursor, depth: int) -> None:
    """Add the entry of a map, with its key as the name."""
    start = cursor.position
    key = read_text(cursor, read_size(cursor))
    entry = Node(str(key), type_name(item), None, start, start)
    node.children.append(entry)
    after = cursor.position
    try:
        _fill(entry, item, cursor, depth + 1)
    finally:
        if entry.children:  # else the entry's own bytes have the key
            entry.children.insert(0, Node("(key)", "string", key, start, after))
