"""The tree of fields: its keys, how its lines look, and a line that is opened at once with all below it.

A worker makes the lines of that, because record sets are unpacked for it. They are made in the order of the
tree, and their number is bounded. What does not fit stays closed.
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
from kdissect.tui.widgets.mended import Steady


class FieldTree(Tree[TreeSpot], Steady, inherit_bindings=False):
    """The tree."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("tree")
    BINDING_GROUP_TITLE = PLACES["tree"]

    def __init__(self, *, id: str | None = None) -> None:
        self._looks: dict[Hashable, Style] | None = None
        """While it is drawn: its style, and those of its parts. Textual's tree asks for them at each line."""
        super().__init__("", id=id)
        self.show_root = False
        self.guide_depth = 2
        self.auto_expand = True
        self._pseudo_class_state = self.get_pseudo_class_state()
        """Textual's tree has it from its first frame on; the mouse may ask before."""

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> Self:
        """Draw it anew. Textual's tree would lay out the screen for each line that comes or goes."""
        return super().refresh(*regions, repaint=repaint, recompose=recompose)

    def on_resize(self) -> None:
        """The line under the cursor stays on the screen if there is less room: more may be said below it."""
        top = self.scroll_offset.y
        if not top <= self.cursor_line < top + self.scrollable_content_region.height:
            self.scroll_to_line(self.cursor_line, animate=False)

    def land(self, node: TreeNode[TreeSpot]) -> None:
        """Move the cursor to a line, and show what is below it: a third of the room, if the tree goes on."""
        self.move_cursor(node)
        room = self.scrollable_content_region.height
        last = node.line + room // 3
        if last >= self.scroll_offset.y + room:
            self.scroll_to(y=last - room + 1, animate=False)

    def land_at_once(self, node: TreeNode[TreeSpot]) -> None:
        """The same for a line that has come just now; others are not drawn under the cursor before it."""
        if self.last_line >= 0:  # which builds the lines: a line that is new has no place yet
            self.land(node)

    def render_lines(self, crop: Region) -> list[Strip]:
        self._looks = {}
        try:
            return super().render_lines(crop)
        finally:
            self._looks = None

    @property
    def rich_style(self) -> Style:
        return self._look(None, lambda: super(FieldTree, self).rich_style)

    def get_component_rich_style(
        self, *names: str, partial: bool = False, default: Style | None = None
    ) -> Style:
        def made() -> Style:
            return super(FieldTree, self).get_component_rich_style(*names, partial=partial, default=default)

        return self._look((names, partial, default), made)

    def _look(self, key: Hashable, make: Callable[[], Style]) -> Style:
        if self._looks is None:
            return make()
        found = self._looks.get(key)
        if found is None:
            found = self._looks[key] = make()
        return found

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
    """The lines of a tree that are open, and that under the cursor, by what tells them from others."""

    lines: frozenset[Hashable]
    cursor: Hashable


def opened_of(tree: FieldTree) -> Opened:
    """Which lines are open now."""
    found: set[Hashable] = set()
    for node in _lines(tree.root):
        if node.is_expanded and node.children:
            found.add(_identity(node))
    return Opened(frozenset(found), None if tree.cursor_node is None else _identity(tree.cursor_node))


def open_again(tree: FieldTree, opened: Opened, below: Callable[[TreeSpot], list[TreeSpot]]) -> None:
    """Open those lines, and shut all others; ``below`` gives the lines below one."""
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
    """What tells a line from all others of an exchange: the node that it shows, which is drawn once."""
    spot = node.data
    if spot is None or spot.branch is None:
        return None if spot is None else spot.text
    return id(spot.branch.node)


def holds(node: TreeNode[TreeSpot], wanted: Node) -> bool:
    """Whether a line is that of a node of the message, or stands for it."""
    return node.data is not None and node.data.holds(wanted)


def fill(node: TreeNode[TreeSpot], lines: Iterable[TreeSpot]) -> None:
    """Put lines below one."""
    for spot in lines:
        add(node, spot)


def add(node: TreeNode[TreeSpot], spot: TreeSpot) -> TreeNode[TreeSpot]:
    """Put a line below one; gives it."""
    return node.add(label_of(spot), spot, allow_expand=spot.can_open)


def label_of(spot: TreeSpot) -> Text:
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
