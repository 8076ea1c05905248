"""The tree of an exchange and the bytes beside it, each of which leads to the other.

The bytes of the line under the cursor are in colour; the line of the byte under the cursor is selected. The
lines below a line are made by a worker when it is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, cast

from rich.cells import cell_len
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from kdissect.model import Node
from kdissect.present.arrival import packet_lines, timing_lines
from kdissect.present.detail import Detail, TreeSpot
from kdissect.present.form import plural
from kdissect.present.records import Address
from kdissect.settings.places import PLACES
from kdissect.system.heap import uncollected
from kdissect.tui.host import Host
from kdissect.tui.keys import bindings_of
from kdissect.tui.selecting import word_of_line
from kdissect.tui.widgets.bars import PaneLine, SaidLine
from kdissect.tui.widgets.bytes_pane import BytesPane
from kdissect.tui.widgets.field_tree import (
    FieldTree,
    Opened,
    Whole,
    add,
    fill,
    holds,
    is_all_open,
    label_of,
    open_again,
    opened_of,
    opened_whole,
    show_whole,
)
from kdissect.tui.widgets.split_panes import Sides
from kdissect.tui.widgets.tree_state import KeptOpen, Path, path_of

OPEN_AT_FIRST = 40
"""Parts of a message with at most this number of lines are open at first."""


TABS = {"request": "Request", "response": "Response", "records": "Records", "timing": "Timing", "tcp": "TCP"}
"""The tabs of an exchange. Request and response are in one tree."""

_IN_TREE = ("request", "response")


class DetailPanes(Vertical):
    """Tree and bytes of one exchange."""

    DEFAULT_CSS = """
    DetailPanes { height: 1fr; }
    DetailPanes FieldTree { width: 1fr; min-width: 20; background: $surface; padding: 0; }
    DetailPanes BytesPane { width: 46; min-width: 30; border-left: vkey $panel; }
    DetailPanes.-hex-wide BytesPane { width: 78; }
    DetailPanes.-held { border-top: hkey $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("panes")
    BINDING_GROUP_TITLE = PLACES["panes"]

    class Dragged(Message):
        """The mouse holds the bar above, at a line of the screen."""

        def __init__(self, y: int) -> None:
            self.y = y
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._is_held = False
        """Whether the mouse holds the bar."""
        self.detail: Detail | None = None
        self.tab = "request"
        """One of :data:`TABS`; it stays when another exchange is shown, if that has it."""
        self._opened_lines_of: dict[str, Opened] = {}
        """For each tab of this exchange, the lines that were open, and that under the cursor."""
        self._kept = KeptOpen()
        self._has_fields = False
        """Whether the tree shows the fields of request and response."""
        self._selected_before: Path = ()
        """The line that was selected in an exchange of this API, until the cursor is there."""
        self._opened_in_part: int | None = None
        """The line that could not be opened with everything below it, because there was too much."""
        self._requested: tuple[int, Address] | None = None
        """A record to show as soon as its exchange is shown."""

    def compose(self) -> ComposeResult:
        yield PaneLine()
        yield Sides(FieldTree(id="tree"), BytesPane(id="bytes"))

    @property
    def sides(self) -> Sides:
        """Tree and bytes, with the bar between them."""
        return self.query_one(Sides)

    @property
    def tree_pane(self) -> FieldTree:
        return self.query_one(FieldTree)

    @property
    def bytes_pane(self) -> BytesPane:
        return self.query_one(BytesPane)

    def show(self, detail: Detail | None) -> None:
        """Show an exchange, or nothing."""
        self._keep()
        self.detail, self._opened_in_part = detail, None
        self._opened_lines_of.clear()
        self.bytes_pane.show(b"", (), 0, 0)
        wanted, self._requested = self._requested, None
        if detail is not None and wanted is not None and wanted[0] == detail.exchange.number:
            self.tab = "request"
            self._fill_tab(detail)
            self._find_record(detail, wanted[1])
        elif detail is not None and self.tab in self.tabs():
            self._fill_tab(detail, selects_again=True)
        elif detail is not None:
            self._fill_tree(detail)
            self._show_line()
        else:
            self.tree_pane.clear()
            self._show_line()

    def _fill_tree(self, detail: Detail) -> None:
        """Show request and response, with small parts open."""
        tree = self.tree_pane
        tree.clear()
        self._kept.begin()
        for spot in detail.spots:
            node = add(tree.root, spot)
            if spot.can_open:
                fill(node, detail.open(spot))  # header and body: two lines, ready
                self._kept.open_usual(node)
                for part in node.children:
                    self._open_if_small(part)
        self._kept.open_again(detail, tree.root)
        self._has_fields = True
        tree.root.expand()
        tree.cursor_line = 0
        self._show_bytes(tree.root.children[0] if tree.root.children else None)

    def _open_if_small(self, node: TreeNode[TreeSpot]) -> None:
        spot = node.data
        if spot is None or spot.branch is None or not 0 < len(spot.branch.node.children) <= OPEN_AT_FIRST:
            return
        if self.detail is not None:
            fill(node, self.detail.open(spot))
            self._kept.open_usual(node)

    # -- what the user opened -------------------------------------------------------------------------

    def _keep(self) -> None:
        """Keep what the user opened and closed, for the next exchange of the API."""
        if self.detail is not None and self._has_fields:
            tree = self.tree_pane
            # If not, the exchange has no such tab, and its fields are shown although the user did not ask for
            # them.
            cursor = tree.cursor_node if self.tab in _IN_TREE else None
            self._kept.keep(self.detail.exchange.api, tree.root, cursor)
        self._has_fields = False

    def _select_again(self, detail: Detail) -> bool:
        """Put the cursor on the line that was selected in an exchange of this API; return whether there is
        one."""
        before = self._selected_before = self._kept.cursor(detail.exchange.api)
        top = next((node for node in self.tree_pane.root.children if path_of(node) == before[:1]), None)
        if top is not None:
            self._go_down(detail, top, detail.path_to_names(before), at_once=True)
        return top is not None

    def _go_on_to_selected(self, detail: Detail, record_set: TreeNode[TreeSpot]) -> None:
        """Put the cursor on the line that was selected in a record set, whose lines exist now."""
        before, way = self._selected_before, path_of(record_set)
        if self.tree_pane.cursor_node is record_set and way == before[: len(way)]:
            self._selected_before = ()
            nodes = detail.path_to_names(before)[len(way) - 1 :]
            self._go_down(detail, record_set, nodes, at_once=True)

    @on(Tree.NodeCollapsed)
    def _was_closed(self, event: Tree.NodeCollapsed[TreeSpot]) -> None:
        event.stop()
        self._kept.note_closed(event.node)

    # -- tabs -----------------------------------------------------------------------------------------

    def tabs(self) -> list[str]:
        """The tabs that the exchange has."""
        if self.detail is None:
            return []
        there = [message.kind for message in self.detail.exchange.messages]
        sides = [name for name in _IN_TREE if name in there]
        # A token is in the place of a request or response.
        sides = sides or ["request"]
        has_records = any(True for each in self.detail.exchange.messages for _ in each.record_fields())
        return [*sides, *(["records"] if has_records else []), "timing", "tcp"]

    def action_turn_tab(self, step: int) -> None:
        there = self.tabs()
        if there:
            at = there.index(self.tab) if self.tab in there else 0
            self.turn_to(there[(at + step) % len(there)])

    @on(PaneLine.Chosen)
    def _tab_clicked(self, event: PaneLine.Chosen) -> None:
        event.stop()
        self.turn_to(event.name)

    def turn_to(self, tab: str) -> None:
        """Show a tab."""
        before, self.tab = self.tab, tab
        if self.detail is None:
            return
        if tab in _IN_TREE and before in _IN_TREE:
            self._go_to_side()
            return
        self._opened_lines_of[_kept_as(before)] = opened_of(self.tree_pane)
        self._keep()
        self._fill_tab(self.detail)
        self._open_again(self.detail)

    def _open_again(self, detail: Detail) -> None:
        """Open the lines that were open when the tab was left."""
        opened = self._opened_lines_of.get(_kept_as(self.tab))
        if opened is not None:
            open_again(self.tree_pane, opened, detail.open)

    def _fill_tab(self, detail: Detail, *, selects_again: bool = False) -> None:
        """Fill the tree for the current tab.

        :param selects_again: whether to select the line that was selected in an exchange of this API.
        """
        if self.tab in _IN_TREE:
            self._fill_tree(detail)
            if not (selects_again and self._select_again(detail)):
                self._go_to_side()
        elif self.tab == "records":
            self._fill_with((TreeSpot("reading …"),))
            self._read_records(detail)
        else:
            exchange = detail.exchange
            first_ns = cast(Host, self.app).index.first_ns
            lines = timing_lines(exchange, first_ns) if self.tab == "timing" else packet_lines(exchange)
            self._fill_with([TreeSpot(line) for line in lines])
        self._show_line()

    @work(thread=True, exclusive=True, group="records")
    def _read_records(self, detail: Detail) -> None:
        self.app.call_from_thread(self._records_read, detail, detail.records())

    def _records_read(self, detail: Detail, spots: list[TreeSpot]) -> None:
        if self.detail is detail and self.tab == "records":
            self._fill_with(spots)
            if len(spots) == 1:
                self.tree_pane.root.children[0].expand()
            self._open_again(detail)

    def _fill_with(self, spots: Sequence[TreeSpot]) -> None:
        tree, self._has_fields = self.tree_pane, False
        tree.clear()
        fill(tree.root, spots)
        tree.root.expand()
        tree.cursor_line = 0
        self._show_bytes(tree.root.children[0] if tree.root.children else None)

    def _go_to_side(self) -> None:
        for node in self.tree_pane.root.children:
            spot = node.data
            if spot is not None and spot.message is not None and spot.message.kind == self.tab:
                self.call_after_refresh(partial(self.tree_pane.move_cursor, node))

    def _show_line(self) -> None:
        there = [(name, TABS[name]) for name in self.tabs()]
        data = self.bytes_pane.data
        name = self.detail.name_of(data) if self.detail is not None and data else ""
        self.query_one(PaneLine).show(there, self.tab, name)

    # -- opening ------------------------------------------------------------------------------------

    @on(Tree.NodeExpanded)
    def _opened(self, event: Tree.NodeExpanded[TreeSpot]) -> None:
        event.stop()
        node = event.node
        if self.detail is not None and node.data is not None and node.data.can_open and not node.children:
            self._open(self.detail, node, node.data)

    @work(thread=True, group="open")
    def _open(self, detail: Detail, node: TreeNode[TreeSpot], spot: TreeSpot) -> None:
        with uncollected():
            lines = detail.open(spot)
        self.app.call_from_thread(self._opened_lines, detail, node, lines)

    def _opened_lines(self, detail: Detail, node: TreeNode[TreeSpot], lines: list[TreeSpot]) -> None:
        if self.detail is not detail or node.children:
            return
        fill(node, lines)
        if self._has_fields:
            self._kept.open_again(detail, self.tree_pane.root, node)
            self._go_on_to_selected(detail, node)

    def action_open_all(self) -> None:
        """Open the line under the cursor with everything below it; if all of that is open, close it."""
        node, detail = self.tree_pane.cursor_node, self.detail
        if node is None or node.data is None or detail is None:
            return
        if node.data.rest is not None:
            self.unfold(node)
        elif not node.allow_expand:
            self._say("there is nothing below this line")
        elif node.is_expanded and (node.id == self._opened_in_part or is_all_open(node)):
            node.collapse_all()
        else:
            self._open_all(detail, node, node.data)

    @work(thread=True, exclusive=True, group="open-all")
    def _open_all(self, detail: Detail, node: TreeNode[TreeSpot], spot: TreeSpot) -> None:
        with uncollected():
            whole = opened_whole(spot, detail.open)
        self.app.call_from_thread(self._opened_all, detail, node, whole)

    def _opened_all(self, detail: Detail, node: TreeNode[TreeSpot], whole: Whole) -> None:
        if self.detail is not detail or node.data is None:
            return
        show_whole(node, whole)
        self.tree_pane.land_at_once(node)
        self._opened_in_part = None if whole.is_all else node.id
        if not whole.is_all:
            self._say(f"{whole.size:,} lines are open; there are more below this line")

    def show_meaning(self) -> None:
        """Write the meaning of the line under the cursor."""
        node = self.tree_pane.cursor_node
        if node is not None and node.data is not None:
            self._show_line_meaning(node, node.data)

    def _show_line_meaning(self, node: TreeNode[TreeSpot], spot: TreeSpot) -> None:
        if spot.is_fault:
            self._say(spot.text)
        elif spot.data and self.detail is not None:
            self._say(self._with_word(self.detail.meaning_of(spot) or where_text(spot), node))

    def _say(self, text: str) -> None:
        self.screen.query_one("#where", SaidLine).say(text)

    @on(Tree.NodeSelected)
    def _selected(self, event: Tree.NodeSelected[TreeSpot]) -> None:
        event.stop()
        self.unfold(event.node)

    def unfold(self, node: TreeNode[TreeSpot], wanted: Node | None = None) -> TreeNode[TreeSpot] | None:
        """Replace a line by the lines that it represents; return the first of them."""
        if node.data is None or node.data.rest is None or node.parent is None:
            return None
        first = None
        for spot in node.data.unfold(wanted):
            made = node.parent.add(label_of(spot), spot, before=node, allow_expand=spot.can_open)
            first = first or made
        node.remove()
        if first is not None and wanted is None:
            self.call_after_refresh(partial(self.tree_pane.move_cursor, first))
        return first

    # -- tree → bytes ---------------------------------------------------------------------------------

    @on(Tree.NodeHighlighted)
    def _highlighted(self, event: Tree.NodeHighlighted[TreeSpot]) -> None:
        event.stop()
        self._show_bytes(event.node)

    def _show_bytes(self, node: TreeNode[TreeSpot] | None) -> None:
        spot = node.data if node is not None else None
        if spot is None or node is None or self.detail is None:
            return
        self._show_line_meaning(node, spot)
        if spot.is_fault:
            return
        if spot.data:
            self.bytes_pane.show(spot.data, self.detail.hidden(spot.data), spot.start, spot.end)
        if self.tab in _IN_TREE:
            self.tab = _side_of(node) or self.tab
        self._show_line()

    def _with_word(self, text: str, node: TreeNode[TreeSpot]) -> str:
        """The text about a line and its name in filters, if there is room for both."""
        word = word_of_line(self.detail, _spots_to(node)) if self.detail is not None else None
        whole = f"{text}   filter: {word}"
        return whole if word is not None and cell_len(whole) < self.app.size.width else text

    def action_next_bytes(self) -> None:
        """Show the bytes of the next message, or the next unpacked bytes."""
        if self.detail is None:
            return
        there, data = self.detail.buffers(), self.bytes_pane.data
        at = next((at for at, each in enumerate(there) if each is data), -1)
        if there:
            following = there[(at + 1) % len(there)]
            self.bytes_pane.show(following, self.detail.hidden(following), 0, 0)
            self._show_line()

    # -- bytes → tree ---------------------------------------------------------------------------------

    @on(BytesPane.Moved)
    def _moved(self, event: BytesPane.Moved) -> None:
        event.stop()
        if self.detail is not None and self.bytes_pane.has_focus:
            self._find(self.detail, self.bytes_pane.data, event.offset)

    @work(thread=True, exclusive=True, group="find")
    def _find(self, detail: Detail, data: bytes, offset: int) -> None:
        nodes = detail.path_to(data, offset)
        self.app.call_from_thread(self._go_to, detail, nodes)

    def point_at(self, data: bytes, start: int, end: int) -> None:
        """Show bytes of a message, and go to their line."""
        if self.detail is not None:
            self.bytes_pane.show(data, self.detail.hidden(data), start, end)
            self._find(self.detail, data, start)

    def point_at_line(self, find: Callable[[Detail], list[Node]]) -> None:
        """Go to the line of the nodes that ``find`` returns."""
        if self.detail is not None:
            self._find_line(self.detail, find)

    @work(thread=True, exclusive=True, group="find")
    def _find_line(self, detail: Detail, find: Callable[[Detail], list[Node]]) -> None:
        nodes = find(detail)
        self.app.call_from_thread(self._go_to, detail, nodes)

    def reveal_record(self, number: int, address: Address) -> None:
        """Go to a record in the tree, as soon as its exchange is shown."""
        self.screen.add_class("-in")
        self.tree_pane.focus()
        if self.detail is not None and self.detail.exchange.number == number:
            self._find_record(self.detail, address)
        else:
            self._requested = number, address

    @work(thread=True, exclusive=True, group="find")
    def _find_record(self, detail: Detail, address: Address) -> None:
        nodes = detail.path_to_record(address)
        self.app.call_from_thread(self._go_to, detail, nodes)

    def _go_to(self, detail: Detail, nodes: list[Node]) -> None:
        """Move the cursor to the last of these nodes, each of which is in the one before."""
        if self.detail is not detail or not nodes:
            return
        if self.tab not in _IN_TREE:
            self.tab = "request"
            self._fill_tree(detail)
        here = next(
            (
                top
                for top in self.tree_pane.root.children
                if any(holds(each, nodes[0]) for each in top.children)
            ),
            None,
        )
        if here is not None:
            self._go_down(detail, here, nodes)

    def _go_down(
        self, detail: Detail, here: TreeNode[TreeSpot], nodes: list[Node], *, at_once: bool = False
    ) -> None:
        """Move the cursor to the last of these nodes, which are below a line.

        :param at_once: in the same frame.
        """
        for wanted in nodes:
            below = self._below(detail, here, wanted)
            if below is None:
                break
            here = below
        if at_once:
            self.tree_pane.land_at_once(here)
        else:
            self.call_after_refresh(partial(self.tree_pane.land, here))

    def _below(self, detail: Detail, here: TreeNode[TreeSpot], wanted: Node) -> TreeNode[TreeSpot] | None:
        """The line of a node below another line, which is opened and unfolded for it."""
        if here.data is not None and not here.children and here.data.can_open:
            fill(here, detail.open(here.data))
        self._kept.open_on_the_way(here)
        found = next((child for child in here.children if holds(child, wanted)), None)
        if found is not None and found.data is not None and found.data.rest is not None:
            self.unfold(found, wanted)
            found = next((child for child in here.children if holds(child, wanted)), None)
        return found

    # -- for copying ----------------------------------------------------------------------------------

    def chosen(self) -> list[TreeSpot]:
        """The line under the cursor, after the lines around it."""
        return _spots_to(self.tree_pane.cursor_node)

    # -- the bar above --------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.screen_y == self.region.y and self.styles.border_top[0]:
            event.stop()
            self._hold(True)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._is_held:
            event.stop()
            self.post_message(self.Dragged(int(event.screen_y)))

    def on_mouse_up(self) -> None:
        if self._is_held:
            self._hold(False)

    def _hold(self, is_held: bool) -> None:
        self._is_held = is_held
        self.set_class(is_held, "-held")
        self.capture_mouse(is_held)


def _kept_as(tab: str) -> str:
    """The tab under which the open lines are kept: request and response are in one tree."""
    return _IN_TREE[0] if tab in _IN_TREE else tab


def _spots_to(node: TreeNode[TreeSpot] | None) -> list[TreeSpot]:
    """A line, after the lines around it."""
    out: list[TreeSpot] = []
    while node is not None and node.data is not None:
        out.append(node.data)
        node = node.parent
    return out[::-1]


def _side_of(node: TreeNode[TreeSpot]) -> str | None:
    """The tab of a line's message."""
    here: TreeNode[TreeSpot] | None = node
    while here is not None and here.data is not None:
        if here.data.message is not None and here.data.message.kind in _IN_TREE:
            return here.data.message.kind
        here = here.parent
    return None


def where_text(spot: TreeSpot) -> str:
    """The text about the bytes of a line."""
    count = plural(spot.end - spot.start, "byte")
    name = spot.text.partition(": ")[0]
    return f"{name}: {count} at {spot.start:,} to {spot.end:,} of {len(spot.data):,}  {spot.type}"
