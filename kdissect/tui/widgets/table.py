"""A list of any length, of which only the lines on the screen are made.

What it shows comes from :class:`Rows`; it may grow while it is shown. Textual's own DataTable lays out
every row it has, which takes minutes for a million.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar, NamedTuple, Protocol

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size, clamp
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kdissect.present.sanitise import CUT


class Heading(NamedTuple):
    """A column's head."""

    title: str
    width: int
    """In cells; 0 takes what the others leave."""
    is_right: bool = False
    """Whether values stand at the right edge."""


class Rows(Protocol):
    """What a table shows."""

    def __len__(self) -> int: ...

    def headings(self, width: int) -> Sequence[Heading]:
        """The columns for a table that is so wide."""

    def cells(self, row: int, width: int) -> Sequence[str]:
        """The values of a row, one for each column, sanitised."""

    def tone(self, row: int) -> str | None:
        """The component class that colours a row: one of the ``table--`` ones, or None."""

    def key(self, row: int) -> Hashable:
        """What tells the row from all others, and changes when it has to be made anew."""


class VirtualTable(ScrollView, can_focus=True):
    """The list, with a cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "table--header",
        "table--cursor",
        "table--odd",
        "table--even",
        "table--error",
        "table--warning",
        "table--dim",
    }
    DEFAULT_CSS = """
    VirtualTable { height: 1fr; background: $surface; overflow-x: hidden; overflow-y: scroll; }
    VirtualTable .table--header { background: $panel; color: $foreground; text-style: bold; }
    VirtualTable .table--cursor { background: $primary; color: $background; }
    VirtualTable:focus .table--cursor { background: $accent; color: $background; text-style: bold; }
    VirtualTable .table--odd { background: $surface; color: $foreground; }
    VirtualTable .table--even { background: $surface-lighten-1; color: $foreground; }
    VirtualTable .table--error { color: $text-error; }
    VirtualTable .table--warning { color: $text-warning; }
    VirtualTable .table--dim { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "first", "First", show=False),
        Binding("end,G", "last", "Last", show=False),
        Binding("enter", "choose", "Open", show=False),
    ]
    cursor: reactive[int] = reactive(0, repaint=False)

    class Highlighted(Message):
        """The cursor is on another row."""

        def __init__(self, row: int) -> None:
            self.row = row
            super().__init__()

    class Chosen(Message):
        """Enter or a double click on a row."""

        def __init__(self, row: int) -> None:
            self.row = row
            super().__init__()

    def __init__(self, rows: Rows, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows = rows
        self._strips: LRUCache[Hashable, Strip] = LRUCache(2048)

    @property
    def page(self) -> int:
        """Rows on a screen."""
        return max(1, self.size.height - 1)

    @property
    def columns(self) -> int:
        """Cells of a line, beside the scroll bar."""
        return self.scrollable_content_region.width

    def rows_changed(self, cursor: int | None = None) -> None:
        """The rows are others, or more. Keeps the cursor in its place unless another is given."""
        self.virtual_size = Size(self.columns, len(self.rows) + 1)
        self.cursor = self.cursor if cursor is None else cursor
        self._show_cursor()
        self.refresh()

    def rows_look_different(self) -> None:
        """The same rows are to be written in another way."""
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        self._strips.clear()
        super().notify_style_update()

    def on_resize(self) -> None:
        self.virtual_size = Size(self.columns, len(self.rows) + 1)
        self._show_cursor()

    def render_line(self, y: int) -> Strip:
        width = self.columns
        if y == 0:
            style = self.get_component_rich_style("table--header")
            headings = self.rows.headings(width)
            return self._line(headings, [heading.title for heading in headings], style)
        row = self.scroll_offset.y + y - 1
        if row >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        is_cursor = row == self.cursor
        key = (self.rows.key(row), width, row & 1, is_cursor, is_cursor and self.has_focus)
        strip = self._strips.get(key)
        if strip is None:
            style = self._style(row, is_cursor)
            strip = self._line(self.rows.headings(width), self.rows.cells(row, width), style)
            self._strips[key] = strip
        return strip

    def _style(self, row: int, is_cursor: bool) -> Style:
        if is_cursor:
            return self.get_component_rich_style("table--cursor")
        style = self.get_component_rich_style("table--odd" if row & 1 else "table--even")
        tone = self.rows.tone(row)
        return style + Style(color=self.get_component_rich_style(tone).color) if tone else style

    def _line(self, headings: Sequence[Heading], cells: Sequence[str], style: Style) -> Strip:
        width = self.columns
        fixed = sum(heading.width for heading in headings) + len(headings) - 1
        texts = []
        for heading, cell in zip(headings, cells, strict=True):
            columns = heading.width or max(1, width - fixed)
            if cell_len(cell) > columns:
                cell = set_cell_size(cell, columns - 1) + CUT
            fill = columns - cell_len(cell) if heading.is_right else 0
            texts.append(set_cell_size(" " * fill + cell, columns))
        text = set_cell_size(" ".join(texts), width)
        return Strip([Segment(text, style)], width)

    def validate_cursor(self, row: int) -> int:
        return clamp(row, 0, max(0, len(self.rows) - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        if not self.is_mounted:
            return
        if not self._show_cursor():
            for row in (old, new):
                self.refresh(Region(0, row - self.scroll_offset.y + 1, self.columns, 1))
        self.post_message(self.Highlighted(new))

    def _show_cursor(self) -> bool:
        """Scroll so far that the cursor is on the screen; gives whether that was needed."""
        top = self.scroll_offset.y
        wanted = min(max(top, self.cursor - self.page + 1), self.cursor)
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True)
        return wanted != top

    def action_move(self, rows: int) -> None:
        self.cursor += rows

    def action_page(self, pages: int) -> None:
        self.cursor += pages * max(1, self.page - 1)

    def action_first(self) -> None:
        self.cursor = 0

    def action_last(self) -> None:
        self.cursor = len(self.rows) - 1

    def action_choose(self) -> None:
        if len(self.rows):
            self.post_message(self.Chosen(self.cursor))

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y - 1
        if event.y >= 1 and row < len(self.rows):
            self.cursor = row
            if event.chain == 2:
                self.action_choose()
