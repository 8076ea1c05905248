"""Pages with a list of exchanges and panes for the one under its cursor: their division of the room."""

from __future__ import annotations

from textual import on

from kdissect.settings.session import LEAST_SHARE, MOST_SHARE
from kdissect.tui.pages.selected_exchange import ChosenPage
from kdissect.tui.widgets.bytes_pane import BytesPane
from kdissect.tui.widgets.field_tree import FieldTree
from kdissect.tui.widgets.panes import DetailPanes
from kdissect.tui.widgets.table import VirtualTable

USUAL_SHARE = 5
NARROW, LOW, HEX_WIDE = 100, 30, 158
"""With fewer columns or lines than these, there is room for only one pane; from the last width on there are
16 bytes in a line."""


class SplitPage(ChosenPage):
    """The page. Its body has a list with the id ``list`` and panes with the id ``panes``."""

    DEFAULT_CSS = """
    SplitPage #panes { border-top: hkey $panel; }
    SplitPage.-one-pane #panes { display: none; border-top: none; }
    SplitPage.-one-pane.-in #panes { display: block; }
    SplitPage.-one-pane.-in VirtualTable { display: none; }
    SplitPage.-one-pane #bytes { display: none; width: 1fr; border-left: none; }
    SplitPage.-one-pane.-hex #bytes { display: block; }
    SplitPage.-one-pane.-hex #tree { display: none; }
    SplitPage.-no-bytes #bytes { display: none; }
    SplitPage.-zoom-table #panes { display: none; }
    SplitPage.-zoom-tree VirtualTable, SplitPage.-zoom-tree #bytes { display: none; }
    SplitPage.-zoom-bytes VirtualTable, SplitPage.-zoom-bytes #tree { display: none; }
    SplitPage.-zoom-bytes #bytes { width: 1fr; border-left: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.share = USUAL_SHARE
        """The share of the height for the list, in tenths."""

    def on_mount(self) -> None:
        before = self.kdissect.settings.before
        self.share = before.share or USUAL_SHARE
        self.panes.sides.share(before.bytes_percent)
        self.list_pane.focus()
        self._set_room()

    @property
    def list_pane(self) -> VirtualTable:
        return self.query_one("#list", VirtualTable)

    def action_mark_on(self, step: int) -> None:
        """Mark the exchange and the one below (1) or above (-1) it, and move the cursor to the latter."""
        if self.chosen_place() is None:
            self.show_message("there is nothing to mark")
            return
        for moves in (0, step):
            self.list_pane.action_move(moves)
            number = self.chosen_number
            if number is not None:
                self.kdissect.marks.numbers.add(number)
        self.marks_changed()

    def leap_to(self, row: int) -> None:
        """Go to a row of the list that may be far from the cursor."""
        self.list_pane.go_to(row)

    @property
    def panes(self) -> DetailPanes:
        return self.query_one(DetailPanes)

    def on_resize(self) -> None:
        size = self.app.size
        self.set_class(size.width < NARROW or size.height < LOW, "-one-pane")
        self.panes.set_class(size.width >= HEX_WIDE, "-hex-wide")

    @property
    def is_one_pane(self) -> bool:
        """Whether there is room for one pane only."""
        return self.has_class("-one-pane")

    def go_in(self) -> None:
        """Go from the list to the tree."""
        self.add_class("-in")
        self.remove_class("-zoom-table")
        self.query_one(FieldTree).focus()

    def leave_pane(self) -> bool:
        """Go from the panes to the list, or from one pane back to all; return whether anything changed."""
        if self._leave_zoom():
            return True
        if not self.is_in:
            return False
        self.remove_class("-in", "-hex")
        self.list_pane.focus()
        return True

    @property
    def is_in(self) -> bool:
        """Whether the focus is in the panes, not in the list."""
        return self.has_class("-in") or not self.list_pane.has_focus

    @property
    def is_zoomed(self) -> bool:
        """Whether one pane has all the room."""
        return any(name.startswith("-zoom-") for name in self.classes)

    def action_bytes(self) -> None:
        if not self.is_one_pane:
            self.toggle_class("-no-bytes")
        else:
            self.add_class("-in")
            self.toggle_class("-hex")
            self.query_one(BytesPane if self.has_class("-hex") else FieldTree).focus()

    def action_zoom(self) -> None:
        if self._leave_zoom() or self.is_one_pane:
            return
        focused = self.focused
        tree, in_bytes = isinstance(focused, FieldTree), isinstance(focused, BytesPane)
        self.refresh_bindings()
        self.add_class("-zoom-tree" if tree else "-zoom-bytes" if in_bytes else "-zoom-table")

    def _leave_zoom(self) -> bool:
        self.refresh_bindings()
        zooms = [name for name in self.classes if name.startswith("-zoom-")]
        self.remove_class(*zooms)
        return bool(zooms)

    def action_room(self, step: int) -> None:
        self.share = min(MOST_SHARE, max(LEAST_SHARE, self.share + step))
        self._set_room()

    @on(DetailPanes.Dragged)
    def _bar_dragged(self, event: DetailPanes.Dragged) -> None:
        top = self.list_pane.region.y
        height = self.panes.region.bottom - top
        if height > 0:
            share = round(10 * (event.y - top) / height)
            self.share = min(MOST_SHARE, max(LEAST_SHARE, share))
            self._set_room()

    def action_bytes_room(self, step: int) -> None:
        if self.panes.display and self.panes.sides.has_bar:
            self.panes.sides.step(step)
        else:
            self.show_message("the screen is too narrow for tree and bytes side by side")

    def _set_room(self) -> None:
        self.list_pane.styles.height = f"{self.share}fr"
        self.panes.styles.height = f"{10 - self.share}fr"
