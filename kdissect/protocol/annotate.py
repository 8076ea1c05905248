"""Bytes → tree: the walk of ``decode`` again, with the bytes that each value was read from.

The nodes without children, in order, cover every byte read once. Bytes that frame values have nodes of their
own, with names in parentheses. An array has ``(count)``, a nullable struct ``(present)``. Tagged fields have
``(tagged fields)`` (their number), then ``(tag)`` and ``(size)`` each. A string or bytes is one leaf together
with its length. Its contents are the last ``len(value)`` bytes; :func:`expand` replaces them by a tree. A
tagged field is in its struct under its own name, an unknown one as ``(tag n)``.

The defects that ``decode`` notes are the ``fault`` of the node where they are.

A tree is many times larger than its bytes. After ``Limits.tree_nodes`` nodes, the remaining elements of an
array are still read, but become one leaf, ``(not drawn)``. Its fault gives the reason.
"""

from __future__ import annotations

from typing import Any

from kdissect.faults import fault
from kdissect.model import DecodeError, Node
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import (
    find_tag,
    note_broken_tag,
    note_remainder,
    read_count,
    read_elements,
    read_fixed,
    read_presence,
    read_tag_count,
    read_tag_head,
    read_variable,
)
from kdissect.protocol.plan import (
    ARRAY,
    COMPACT_ARRAY,
    NULLABLE_STRUCT,
    STRING,
    STRUCT,
    TYPE_NAMES,
    Plan,
)
from kdissect.protocol.schema import Struct
from kdissect.wording import plural


class _Pen:
    """Draws one tree, and counts the nodes that it may still have."""

    __slots__ = ("nodes_left",)

    def __init__(self, cursor: Cursor) -> None:
        self.nodes_left = cursor.limits.tree_nodes


def annotate(struct: Struct, cursor: Cursor, into: Node | None = None) -> Node:
    """The tree of one struct, read from the cursor's position.

    :param into: the node to fill; after an error it has the tree so far, each node with the bytes
        that were read for it.
    :raises DecodeError: as ``decode``.
    """
    cursor.elements_left = cursor.limits.message_elements
    node = into or Node(struct.name, struct.name, None, cursor.position, cursor.position)
    try:
        _struct(struct.plan, cursor, node, _Pen(cursor))
    except DecodeError:
        _close(node)
        raise
    return node


def expand(leaf: Node, contents: list[Node]) -> None:
    """Show the decoded contents of a bytes or records leaf: its length, then the nodes of the contents."""
    assert isinstance(leaf.value, bytes)
    start = leaf.end - len(leaf.value)
    leaf.children = [Node("(length)", "length", len(leaf.value), leaf.start, start), *contents]


def _struct(form: Plan, cursor: Cursor, node: Node, pen: _Pen) -> None:
    node.is_decoded = False
    pen.nodes_left -= 1 + len(form[1])
    for opcode, name, argument in form[1]:
        if opcode < ARRAY:
            _leaf(cursor, opcode, name, argument, node, pen)
        else:
            child = Node(name, _type_name(opcode, argument), None, cursor.position, cursor.position)
            node.children.append(child)
            _compound(cursor, opcode, argument, child, pen)
    if form[2] is not None:
        _tagged(form[2], cursor, node, pen)
    node.end = cursor.position
    node.is_decoded = True


def _leaf(cursor: Cursor, opcode: int, name: str, nullable: Any, parent: Node, pen: _Pen) -> Any:
    start, known = cursor.position, len(cursor.notes)
    value = read_fixed(cursor, opcode) if opcode < STRING else read_variable(cursor, opcode, nullable)
    leaf = Node(name, TYPE_NAMES[opcode], value, start, cursor.position)
    parent.children.append(leaf)
    _blame(leaf, cursor, known)
    return value


def _compound(cursor: Cursor, opcode: int, argument: Any, node: Node, pen: _Pen) -> None:
    """The contents of an array or a struct."""
    node.is_decoded = False
    start, noted = cursor.position, len(cursor.notes)
    if opcode == STRUCT:
        _struct(argument, cursor, node, pen)
        return
    if opcode > COMPACT_ARRAY:
        present = read_presence(cursor, opcode)
        kind = "int8" if opcode == NULLABLE_STRUCT else "unsigned varint"
        framing = Node("(present)", kind, True, start, cursor.position) if present else None
    else:
        nullable, element, inner, least = argument
        count = read_count(cursor, opcode, nullable, least)
        kind = "unsigned varint" if opcode == COMPACT_ARRAY else "int32"
        framing = Node("(count)", kind, count, start, cursor.position) if count >= 0 else None
    node.end = cursor.position
    if framing is None:
        # Null is the node itself, a leaf. But a tagged field already has its tag and size as leaves.
        null = Node("(null)", node.type, None, start, node.end) if node.children else node
        node.children += [null] if null is not node else []
        _blame(null, cursor, noted)
        node.is_decoded = True
        return
    node.children.append(framing)
    pen.nodes_left -= 1
    _blame(framing, cursor, noted)
    if opcode > COMPACT_ARRAY:
        _struct(argument, cursor, node, pen)
        return
    for index in range(count):
        if pen.nodes_left <= 0:
            _pass_over(cursor, node, element, inner, count - index, pen)
            break
        if element == STRUCT:
            child = Node(f"[{index}]", inner[0], None, cursor.position, cursor.position)
            node.children.append(child)
            _struct(inner, cursor, child, pen)
        else:
            pen.nodes_left -= 1
            _leaf(cursor, element, f"[{index}]", inner, node, pen)
    node.end = cursor.position
    node.is_decoded = True


def _pass_over(cursor: Cursor, parent: Node, element: int, inner: Any, count: int, pen: _Pen) -> None:
    """Read the last elements of an array as one leaf."""
    start = cursor.position
    rest = Node("(not drawn)", "bytes", None, start, start)
    message = (
        f"{plural(count, 'element')} not drawn: the tree has {cursor.limits.tree_nodes:,} nodes, the limit"
    )
    rest.fault = fault("too-many-elements", message, offset=start)
    parent.children.append(rest)
    try:
        for _ in range(count):
            read_elements(cursor, element, inner, 1, [])
    finally:
        rest.end = cursor.position
        rest.value = cursor.data[start : rest.end]


def _tagged(
    tags: tuple[tuple[int, tuple[int, str, Any]], ...], cursor: Cursor, parent: Node, pen: _Pen
) -> None:
    start = cursor.position
    count = read_tag_count(cursor)
    parent.children.append(Node("(tagged fields)", "unsigned varint", count, start, cursor.position))
    pen.nodes_left -= 4 * count
    previous = -1
    for _ in range(count):
        start, noted = cursor.position, len(cursor.notes)
        tag, size_at, size = read_tag_head(cursor, previous)
        previous = tag
        known = find_tag(tags, tag)
        name = known[1] if known else f"(tag {tag})"
        kind = _type_name(known[0], known[2]) if known else "unknown tagged field"
        node = Node(name, kind, None, start, cursor.position)
        parent.children.append(node)
        _blame(node, cursor, noted)
        node.children.append(Node("(tag)", "unsigned varint", tag, start, size_at))
        node.children.append(Node("(size)", "unsigned varint", size, size_at, cursor.position))
        if known:
            _known_tagged(cursor, known[0], known[2], size, node, pen)
        else:
            data_at = cursor.position
            node.value = cursor.read_bytes(size)
            node.children.append(Node("(data)", "bytes", node.value, data_at, cursor.position))
        node.end = cursor.position


def _known_tagged(cursor: Cursor, opcode: int, argument: Any, size: int, node: Node, pen: _Pen) -> None:
    """Read the contents of a tagged field. They end at their declared size, whatever they are."""
    outer_end, noted = cursor.end, len(cursor.notes)
    cursor.end = end = cursor.position + size
    blamed = node.children[-1]
    try:
        if opcode < ARRAY:
            node.value = _leaf(cursor, opcode, "(value)", argument, node, pen)
        else:
            _compound(cursor, opcode, argument, node, pen)
    except DecodeError as error:
        _close(node)
        note_broken_tag(cursor, node.name, error)
    else:
        noted = len(cursor.notes)
        note_remainder(cursor, node.name)
    if cursor.position < end:
        blamed = Node("(remainder)", "bytes", cursor.data[cursor.position : end], cursor.position, end)
        node.children.append(blamed)
    _blame(blamed, cursor, noted)
    cursor.position, cursor.end = end, outer_end


def _close(node: Node) -> None:
    """End the nodes that were being read when an error occurred, each at the end of its last child."""
    if node.children:
        _close(node.children[-1])
        node.end = max(node.end, node.children[-1].end)


def _blame(node: Node, cursor: Cursor, known: int) -> None:
    """Set the newest defect as the node's fault, if one was noted after the first ``known``."""
    if len(cursor.notes) > known and node.fault is None:
        kind, message, offset = cursor.notes[-1]
        node.fault = fault(kind, message, offset=offset)


def _type_name(opcode: int, argument: Any) -> str:
    if opcode < ARRAY:
        return TYPE_NAMES[opcode]
    if opcode > COMPACT_ARRAY:
        return str(argument[0])
    return f"[]{TYPE_NAMES[argument[1]] if argument[1] < ARRAY else argument[2][0]}"
