"""The tree of an exchange and the bytes beside it, each of which leads to the other.

The line under the cursor has its bytes in colour; the byte under the cursor has its line chosen. What is
below a line is made by a worker when it is opened.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Static, Tree
from textual.widgets.tree import TreeNode

from kdissect.model import Node
from kdissect.present.form import plural
from kdissect.tui.detail import Detail, Spot
from kdissect.tui.widgets.bytes_pane import BytesPane

OPEN_AT_FIRST = 40
"""A message's parts that have no more lines than this are open when it is shown."""


class FieldTree(Tree[Spot]):
    """The tree."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "cursor_up", "Up", show=False),
        Binding("j", "cursor_down", "Down", show=False),
        Binding("g,home", "scroll_home", "First", show=False),
        Binding("G,end", "scroll_end", "Last", show=False),
        Binding("right,l", "open", "Open", show=False),
        Binding("left,h", "shut", "Shut", show=False),
    ]

    def action_open(self) -> None:
        if self.cursor_node is not None and self.cursor_node.allow_expand:
            self.cursor_node.expand()

    def action_shut(self) -> None:
        node = self.cursor_node
        if node is None:
            return
        if node.is_expanded and node.allow_expand:
            node.collapse()
        elif node.parent is not None and not node.parent.is_root:
            self.move_cursor(node.parent)


class DetailPanes(Horizontal):
    """Tree and bytes of one exchange."""

    DEFAULT_CSS = """
    DetailPanes { height: 1fr; }
    DetailPanes FieldTree { width: 1fr; background: $surface; padding: 0; }
    DetailPanes BytesPane { width: 46; border-left: vkey $panel; }
    DetailPanes.-hex-wide BytesPane { width: 78; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.detail: Detail | None = None

    def compose(self) -> ComposeResult:
        tree: FieldTree = FieldTree("", id="tree")
        tree.show_root = False
        tree.guide_depth = 2
        tree.auto_expand = True
        yield tree
        yield BytesPane(id="bytes")

    @property
    def tree_pane(self) -> FieldTree:
        return self.query_one(FieldTree)

    @property
    def bytes_pane(self) -> BytesPane:
        return self.query_one(BytesPane)

    def show(self, detail: Detail | None) -> None:
        """Show an exchange, or nothing."""
        self.detail = detail
        tree = self.tree_pane
        tree.clear()
        self.bytes_pane.show(b"", (), 0, 0)
        if detail is None:
            return
        for spot in detail.spots:
            node = _add(tree.root, spot)
            if spot.can_open:
                _fill(node, detail.open(spot))  # header and body: two lines, ready
                node.expand()
                for part in node.children:
                    self._open_if_small(part)
        tree.root.expand()
        tree.cursor_line = 0
        self._show_bytes(tree.root.children[0] if tree.root.children else None)

    def _open_if_small(self, node: TreeNode[Spot]) -> None:
        spot = node.data
        if spot is None or spot.branch is None or not 0 < len(spot.branch.node.children) <= OPEN_AT_FIRST:
            return
        if self.detail is not None:
            _fill(node, self.detail.open(spot))
            node.expand()

    # -- opening ------------------------------------------------------------------------------------

    @on(Tree.NodeExpanded)
    def _opened(self, event: Tree.NodeExpanded[Spot]) -> None:
        event.stop()
        node = event.node
        if self.detail is not None and node.data is not None and node.data.can_open and not node.children:
            self._open(self.detail, node, node.data)

    @work(thread=True, group="open")
    def _open(self, detail: Detail, node: TreeNode[Spot], spot: Spot) -> None:
        self.app.call_from_thread(self._opened_lines, detail, node, detail.open(spot))

    def _opened_lines(self, detail: Detail, node: TreeNode[Spot], lines: list[Spot]) -> None:
        if self.detail is detail and not node.children:
            _fill(node, lines)

    # -- tree → bytes ---------------------------------------------------------------------------------

    @on(Tree.NodeHighlighted)
    def _highlighted(self, event: Tree.NodeHighlighted[Spot]) -> None:
        event.stop()
        self._show_bytes(event.node)

    def _show_bytes(self, node: TreeNode[Spot] | None) -> None:
        spot = node.data if node is not None else None
        if spot is None or self.detail is None or spot.is_fault:
            return
        self.bytes_pane.show(spot.data, self.detail.hidden(spot.data), spot.start, spot.end)
        self.screen.query_one("#where", Static).update(Text(where_text(spot), no_wrap=True))

    # -- bytes → tree ---------------------------------------------------------------------------------

    @on(BytesPane.Moved)
    def _moved(self, event: BytesPane.Moved) -> None:
        event.stop()
        if self.detail is not None and self.bytes_pane.has_focus:
            self._find(self.detail, self.bytes_pane.data, event.offset)

    @work(thread=True, exclusive=True, group="find")
    def _find(self, detail: Detail, data: bytes, offset: int) -> None:
        nodes = detail.path_to(data, offset)
        self.app.call_from_thread(self._found, detail, nodes)

    def _found(self, detail: Detail, nodes: list[Node]) -> None:
        if self.detail is not detail or not nodes:
            return
        here: TreeNode[Spot] | None = None
        for top in self.tree_pane.root.children:
            if any(_holds(child, nodes[0]) for child in top.children):
                here = top
        waiting = list(nodes)
        while here is not None and waiting:
            if here.data is not None and not here.children and here.data.can_open:
                _fill(here, detail.open(here.data))
            here.expand()
            below = next((child for child in here.children if _holds(child, waiting[0])), None)
            if below is None:
                break
            here = below
            if below.data is not None and below.data.branch is not None:
                waiting.pop(0)
        if here is not None:
            chosen = here
            self.call_after_refresh(partial(self.tree_pane.move_cursor, chosen))

    # -- for who copies -------------------------------------------------------------------------------

    def chosen(self) -> list[Spot]:
        """The line under the cursor, after those around it."""
        out: list[Spot] = []
        node: TreeNode[Spot] | None = self.tree_pane.cursor_node
        while node is not None and node.data is not None:
            out.append(node.data)
            node = node.parent
        return out[::-1]


def _holds(node: TreeNode[Spot], wanted: Node) -> bool:
    return node.data is not None and node.data.holds(wanted)


def _fill(node: TreeNode[Spot], lines: list[Spot]) -> None:
    for spot in lines:
        _add(node, spot)


def _add(node: TreeNode[Spot], spot: Spot) -> TreeNode[Spot]:
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


def where_text(spot: Spot) -> str:
    """Which bytes a line stands for."""
    count = plural(spot.end - spot.start, "byte")
    name = spot.text.partition(": ")[0]
    return f" {name}: {count} at {spot.start:,} to {spot.end:,} of {len(spot.data):,}  {spot.type}"
