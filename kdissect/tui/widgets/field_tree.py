"""The tree of fields: its keys, the look of its lines, and opening a line with everything below it.

A worker makes the lines below such a line, because record sets are unpacked for it. They are made in the
order of the tree, and their number is bounded. Lines beyond that stay closed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from typing import ClassVar, NamedTuple, Self

from rich.style import Style
from rich.text import Text
from textual.binding import BindingType
from textual.geometry import Region
from textual.strip import Strip
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from kdissect.model import Node
from kdissect.present.detail import TreeSpot
from kdissect.settings.places import PLACES
from kdissect.tui.colors import legible_strip
from kdissect.tui.keys import bindings_of
from kdissect.tui.widgets.adapted import Steady


class FieldTree(Tree[TreeSpot], Steady, inherit_bindings=False):
    """The tree."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("tree")
    BINDING_GROUP_TITLE = PLACES["tree"]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id)
        self.show_root = False
        self.guide_depth = 2
        self.auto_expand = True
        self._pseudo_class_state = self.get_pseudo_class_state()
        """Textual's tree has it from its first frame on; the mouse may ask before."""

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """Draw it again. Textual's tree would lay out the screen for each new or removed line."""
        return super().refresh(*regions, repaint=repaint, recompose=recompose)

    def on_resize(self) -> None:
        """Keep the line under the cursor on the screen if there is less room, because the text below it has
        become longer."""
        top = self.scroll_offset.y
        if not top <= self.cursor_line < top + self.scrollable_content_region.height:
            self.scroll_to_line(self.cursor_line, animate=False)

    def land(self, node: TreeNode[TreeSpot]) -> None:
        """Move the cursor to a line, and show the lines below it: a third of the room, if the tree goes
        on."""
        self.move_cursor(node)
        room = self.scrollable_content_region.height
        last = node.line + room // 3
        if last >= self.scroll_offset.y + room:
            self.scroll_to(y=last - room + 1, animate=False)

    def land_at_once(self, node: TreeNode[TreeSpot]) -> None:
        """Move the cursor to a line that has just been added, in the same frame: otherwise other lines would
        be drawn under the cursor first."""
        if self.last_line >= 0:  # which builds the lines: a line that is new has no place yet
            self.land(node)

    def get_component_rich_style(
        self, *names: str, partial: bool = False, default: Style | None = None
    ) -> Style:
        def made() -> Style:
            return super(FieldTree, self).get_component_rich_style(*names, partial=partial, default=default)

        return self._look((names, partial, default), made)

    def render_line(self, y: int) -> Strip:
        return legible_strip(super().render_line(y), self.app)

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


class Opened(NamedTuple):
    """The open lines of a tree, and the line under the cursor, by their identities."""

    lines: frozenset[Hashable]
    cursor: Hashable


def opened_of(tree: FieldTree) -> Opened:
    """The lines that are open now."""
    found: set[Hashable] = set()
    for node in _lines(tree.root):
        if node.is_expanded and node.children:
            found.add(_identity(node))
    return Opened(frozenset(found), None if tree.cursor_node is None else _identity(tree.cursor_node))


def open_again(tree: FieldTree, opened: Opened, below: Callable[[TreeSpot], list[TreeSpot]]) -> None:
    """Open those lines, and close all others; ``below`` gives the lines below one."""
    waiting, cursor = list(tree.root.children), None
    while waiting:
        node = waiting.pop()
        if _identity(node) == opened.cursor:
            cursor = node
        if _identity(node) not in opened.lines:
            node.collapse()
            continue
        if node.data is not None and not node.children:
            fill(node, below(node.data))
        node.expand()
        waiting += node.children
    if cursor is not None:
        tree.call_after_refresh(partial(tree.move_cursor, cursor))


def _lines(node: TreeNode[TreeSpot]) -> Iterator[TreeNode[TreeSpot]]:
    for child in node.children:
        yield child
        yield from _lines(child)


def _identity(node: TreeNode[TreeSpot]) -> Hashable:
    """The identity of a line among all of an exchange: its node, which is drawn once."""
    spot = node.data
    if spot is None or spot.branch is None:
        return None if spot is None else spot.text
    return id(spot.branch.node)


def holds(node: TreeNode[TreeSpot], wanted: Node) -> bool:
    """Whether a line is that of a node of the message, or represents it."""
    return node.data is not None and node.data.holds(wanted)


def fill(node: TreeNode[TreeSpot], lines: Iterable[TreeSpot]) -> None:
    """Add lines below one."""
    for spot in lines:
        add(node, spot)


def add(node: TreeNode[TreeSpot], spot: TreeSpot) -> TreeNode[TreeSpot]:
    """Add a line below one, and return it."""
    return node.add(label_of(spot), spot, allow_expand=spot.can_open)


def label_of(spot: TreeSpot) -> Text:
    """The text of a line with its colours; never markup."""
    name, colon, value = spot.text.partition(": ")
    is_bad = spot.is_fault or (spot.branch is not None and spot.branch.node.fault is not None)
    label = Text(("! " if is_bad else "") + name, "bold red" if is_bad else "", no_wrap=True, end="")
    if colon:
        label.append(": ")
        label.append(value, "bold" if not is_bad else "red")
    if spot.type:
        label.append(f"  {spot.type}", "dim")
    return label


MOST_LINES = 400
"""The most lines that are opened at once. With more of them a key would have to wait, and nobody reads
them."""


class Whole(NamedTuple):
    """The lines below a line."""

    lines: list[tuple[TreeSpot, Whole | None]]
    """Each line with the lines below it; None if it has none, or stays closed."""
    size: int
    """The number of lines, with those further below."""
    is_all: bool
    """Whether nothing stays closed."""


def opened_whole(
    spot: TreeSpot, below: Callable[[TreeSpot], list[TreeSpot]], most: int = MOST_LINES
) -> Whole:
    """All lines below a line. Its direct lines are always made, as when it is opened alone.

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
    """Whether a line's direct lines fit in the room. For a closed record set that is unknown, but it has few
    batches."""
    return room > 0 and (spot.branch is None or len(spot.branch.node.children) <= room)


def show_whole(node: TreeNode[TreeSpot], whole: Whole) -> None:
    """Open a line with everything below it. Lines that already exist stay."""
    if not node.children:
        fill(node, (spot for spot, _ in whole.lines))
    there = {_field(child.data): child for child in node.children}
    for spot, inner in whole.lines:
        child = there.get(_field(spot))
        if inner is not None and child is not None:
            show_whole(child, inner)
    node.expand()


def _field(spot: TreeSpot | None) -> int | None:
    """The identity of a field; None for a line that is no field."""
    return None if spot is None or spot.branch is None else id(spot.branch.node)


def is_all_open(node: TreeNode[TreeSpot]) -> bool:
    """Whether a line is open, and every line below it."""
    if not node.allow_expand:
        return node.data is None or node.data.rest is None
    return node.is_expanded and all(map(is_all_open, node.children))
