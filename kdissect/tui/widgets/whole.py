"""A line of the tree, and everything below it, opened at once.

A worker makes the lines, because record sets are unpacked for it. They are made in the order of the tree, and
their number is bounded. What does not fit stays closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from textual.widgets.tree import TreeNode

from kdissect.present.detail import TreeSpot
from kdissect.tui.widgets.field_tree import fill

MOST_LINES = 400
"""Lines that are opened at once. With more of them a key would have to wait, and nobody reads them."""


class Whole(NamedTuple):
    """What is below a line."""

    lines: list[tuple[TreeSpot, Whole | None]]
    """Each line with what is below it; None if it has nothing, or stays closed."""
    size: int
    """Lines, also of those below."""
    is_all: bool
    """Whether nothing stays closed."""


def opened_whole(
    spot: TreeSpot, below: Callable[[TreeSpot], list[TreeSpot]], most: int = MOST_LINES
) -> Whole:
    """Everything below a line. The first lines are made in any case, as when it is opened alone.

    :param below: gives the lines below one.
    """
    spots = below(spot)
    count, is_all = len(spots), all(each.rest is None for each in spots)
    lines: list[tuple[TreeSpot, Whole | None]] = []
    for each in spots:
        inner = None
        if each.can_open:
            inner = opened_whole(each, below, most - count) if _fits(each, most - count) else None
            is_all = is_all and inner is not None and inner.is_all
            count += 0 if inner is None else inner.size
        lines.append((each, inner))
    return Whole(lines, count, is_all)


def _fits(spot: TreeSpot, room: int) -> bool:
    """Whether the lines of the line itself are not too many. Nobody knows that of a closed record set: it has
    few batches."""
    return room > 0 and (spot.branch is None or len(spot.branch.node.children) <= room)


def show_whole(node: TreeNode[TreeSpot], whole: Whole) -> None:
    """Open a line with all of it. Lines that are there already stay."""
    if not node.children:
        fill(node, (spot for spot, _ in whole.lines))
    there = {_field(child.data): child for child in node.children}
    for spot, inner in whole.lines:
        child = there.get(_field(spot))
        if inner is not None and child is not None:
            show_whole(child, inner)
    node.expand()


def _field(spot: TreeSpot | None) -> int | None:
    """What tells a field from all others; None for a line that is none."""
    return None if spot is None or spot.branch is None else id(spot.branch.node)


def is_all_open(node: TreeNode[TreeSpot]) -> bool:
    """Whether a line is open, and every line below it."""
    if not node.allow_expand:
        return node.data is None or node.data.rest is None
    return node.is_expanded and all(map(is_all_open, node.children))
