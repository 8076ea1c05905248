"""The tree of a message, with subtrees in place of its embedded bytes."""

from __future__ import annotations

from typing import Any

from kdissect.embedded.decoded import Context, Embedded
from kdissect.embedded.envelope import EmbeddedMessage
from kdissect.embedded.fields import NO_CONTEXT, decode_field
from kdissect.model import Node
from kdissect.protocol.annotate import expand


def expand_embedded(
    message: str, values: dict[str, Any], node: Node, buffer: bytes, context: Context = NO_CONTEXT
) -> None:
    """Replace nodes of bytes from ``annotate`` by the content of the bytes, at every depth.

    :param values: the result of ``decode`` for the struct that ``node`` draws.
    :param buffer: the buffer in which the nodes' ranges count.
    :param context: as for :func:`decode_field`.
    """
    _struct(message, [values], node, buffer, context)


def _struct(
    message: str, ancestors: list[dict[str, Any]], node: Node, buffer: bytes, context: Context
) -> None:
    for child in node.children:
        value = ancestors[-1].get(child.name)
        if isinstance(value, bytes):
            _bytes(message, ancestors, child.name, value, child, buffer, context)
        elif isinstance(value, dict):
            _struct(message, [*ancestors, value], child, buffer, context)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            elements = [element for element in child.children if element.name.startswith("[")]
            for item, element in zip(value, elements, strict=False):
                _struct(message, [*ancestors, item], element, buffer, context)


def _bytes(
    message: str,
    ancestors: list[dict[str, Any]],
    name: str,
    value: bytes,
    leaf: Node,
    buffer: bytes,
    context: Context,
) -> None:
    if leaf.children or leaf.value != value:
        return
    found = decode_field(message, ancestors, name, value, context)
    if found is None:
        return
    nodes = found.draw(buffer, leaf.end - len(value))
    expand(leaf, nodes)
    if found.faults and leaf.fault is None and not any(map(_has_fault, nodes)):
        leaf.fault = found.faults[0]  # a fault of the whole, not of a place in it: a newer version
    if isinstance(found, EmbeddedMessage):
        found, nodes = found.body, nodes[-1].children
    if isinstance(found, Embedded) and found.struct is not None:
        inside = nodes[len(found.words)]
        expand_embedded(found.struct.name, found.values, inside, buffer, found.context)


def _has_fault(node: Node) -> bool:
    return node.fault is not None or any(map(_has_fault, node.children))
