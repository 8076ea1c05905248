"""The tree of fields: its keys, and how its lines look."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from kdissect.model import Node
from kdissect.tui.actions import PLACES
from kdissect.tui.detail import Spot
from kdissect.tui.keys import bindings_of


class FieldTree(Tree[Spot], inherit_bindings=False):
    """The tree."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("tree")
    BINDING_GROUP_TITLE = PLACES["tree"]

    def action_open(self) -> None:
        node = self.cursor_node
        if node is None:
            return
        if node.allow_expand:
            node.expand()
        elif node.data is not None and node.data.rest is not None:
            self.post_message(Tree.NodeSelected(node))

    def action_shut(self) -> None:
        node = self.cursor_node
        if node is None:
            return
        if node.is_expanded and node.allow_expand:
            node.collapse()
        elif node.parent is not None and not node.parent.is_root:
            self.move_cursor(node.parent)


def holds(node: TreeNode[Spot], wanted: Node) -> bool:
    """Whether a line is that of a node of the message, or stands for it."""
    return node.data is not None and node.data.holds(wanted)


def fill(node: TreeNode[Spot], lines: Iterable[Spot]) -> None:
    """Put lines below one."""
    for spot in lines:
        add(node, spot)


def add(node: TreeNode[Spot], spot: Spot) -> TreeNode[Spot]:
    """Put a line below one; gives it."""
    return node.add(label_of(spot), spot, allow_expand=spot.can_open)


def label_of(spot: Spot) -> Text:
    """A line with its colours; never markup."""
    name, colon, value = spot.text.partition(": ")
    is_bad = spot.is_fault or (spot.branch is not None and spot.branch.node.fault is not None)
    label = Text(("! " if is_bad else "") + name, "bold red" if is_bad else "", no_wrap=True, end="")
    if colon:
        label.append(": ")
        label.append(value, "bold" if not is_bad else "red")
    if spot.type:
        label.append(f"  {spot.type}", "dim")
    return label
