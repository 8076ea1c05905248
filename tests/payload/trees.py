"""What every tree of a key or value must be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.model import Node


def leaves(node: Node) -> Iterator[Node]:
    """The nodes without children, in order."""
    if not node.children:
        yield node
    for child in node.children:
        yield from leaves(child)


def see_that_leaves_cover(nodes: list[Node], start: int, end: int) -> None:
    """Every byte once, in order, and each node what its children do; unpacked bytes for themselves."""
    at = start
    for node in nodes:
        assert node.start == at, (node.name, node.start, at)
        if node.buffer is not None:
            see_that_leaves_cover(node.children, 0, len(node.buffer))
        elif node.children:
            see_that_leaves_cover(node.children, node.start, node.end)
        at = node.end
    assert at == end, (at, end)


def value_of(node: Node) -> Any:
    """The value that nodes say."""
    fields = [child for child in node.children if not child.name.startswith("(")]
    if fields and all(child.name.startswith("[") for child in fields):
        return [value_of(child) for child in fields]
    if node.value is None and node.children and node.type == "array":
        return []
    return {child.name: value_of(child) for child in fields} if node.children else node.value
