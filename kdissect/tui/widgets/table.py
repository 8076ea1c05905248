"""A list of any length, of which only the lines on the screen are made.

Its data comes from :class:`TableRows`, and may grow while it is shown. Textual's own DataTable lays out every
row it has, which takes minutes for a million.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.cache import LRUCache
from textual.geometry import Region, Size, clamp
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from kdissect.present.paragraphs import fold_text
from kdissect.present.sanitise import CUT
from kdissect.settings.coloring import COLORS
from kdissect.settings.places import PLACES
from kdissect.tui.colors import Legible, legible
from kdissect.tui.keys import bindings_of
from kdissect.tui.widgets.adapted import Steady

STRIPS = 512
"""The most drawn lines that are kept: some screens of them. Each consists of a dozen objects."""
RIGHT = 3
"""The number of the right button of the mouse."""
WRONG_TONES = ("table--error", "table--warning")
"""The component classes of rows with a problem."""
_NOTHING_LINE = 2
"""The line from which on the text about an empty list is shown."""


class Heading(NamedTuple):
    """A column's head."""

    title: str
    width: int
    """The width in cells; 0 for the remaining cells."""
    is_right: bool = False
    """Whether values are aligned to the right."""
    is_name: bool = False
    """Whether values are names: if there is no room, their middle is left out, because many names differ at
    the end."""


def _beginning(text: str, cells: int) -> str:
    """The beginning of a text that has room. Half of a wide character has none, and is not replaced by a
    blank."""
    found = set_cell_size(text, cells)
    while not text.startswith(found):
        found = found[:-1]
    return found


def cut_text(text: str, room: int) -> str:
    """A text that is cut to fewer cells than it needs: its beginning."""
    return _beginning(text, room - 1) + CUT


def cut_name(name: str, room: int) -> str:
    """A name that is cut to fewer cells than it needs: its beginning and its end."""
    if room < 5:
        return cut_text(name, room)
    end = (room - 1) // 2
    last = _beginning(name[::-1], end)[::-1]
    while last and not cell_len(last[0]):  # an accent of a letter that has no room
        last = last[1:]
    return _beginning(name, room - 1 - end) + CUT + last


_KEPT = 4
"""The characters before the first difference of two names that are kept of their common beginning."""


def cut_apart(names: Sequence[str], room: int) -> list[str]:
    """Two names, cut if they have no room. If that makes them equal, their beginning is cut instead."""
    found = [each if cell_len(each) <= room else cut_name(each, room) for each in names]
    if len({*found}) == len({*names}):
        return found
    differs = next(at for at, (one, other) in enumerate(zip_longest(*names)) if one != other)
    start = max(0, differs - _KEPT)
    ends = [CUT + each[start:] for each in names]
    return [each if cell_len(each) <= room else cut_text(each, room) for each in ends]


class TableRows(Protocol):
    """The data of a table."""

    def __len__(self) -> int: ...

    def headings(self, width: int) -> Sequence[Heading]:
        """The columns for a table of this width."""

    def cells(self, row: int, width: int) -> Sequence[str]:
        """The values of a row, one for each column, sanitised."""

    def tone(self, row: int) -> str | None:
        """The component class that colours a row: one of the ``table--`` ones, or None."""

    def key(self, row: int) -> Hashable:
        """The identity of the row. It changes when the row must be made again."""


@runtime_checkable
class Inked(Protocol):
    """Rows in which some characters of the last column have their own colours."""

    inks: Mapping[str, str]
    """The component class of each coloured character."""


@runtime_checkable
class ColumnsOnPages(Protocol):
    """Rows whose columns do not always have room: the arrow keys lead to the others."""

    def columns_hint(self, width: int) -> str:
        """The text about the other columns in a table of this width; empty if all have room."""

    def turn_columns(self, step: int, width: int) -> bool:
        """Show other columns, those after them (1) or before them (-1); return whether there are any."""


class TableMessage(Message):
    """A message of a table. If a screen has several tables, its id distinguishes them."""

    def __init__(self, table: VirtualTable) -> None:
        self._table = table
        super().__init__()

    @property
    def control(self) -> VirtualTable:
        """The table."""
        return self._table


class VirtualTable(Steady, Legible, can_focus=True):
    """The list, with a cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "table--header",
        "table--cursor",
        "table--odd",
        "table--even",
        "table--error",
        "table--warning",
        "table--dim",
        *(f"table--{color}" for color in COLORS),
    }
    DEFAULT_CSS = """
    VirtualTable { height: 1fr; background: $surface; overflow-x: hidden; overflow-y: scroll;
        scrollbar-background: $surface; scrollbar-background-hover: $surface;
        scrollbar-background-active: $surface; }
    VirtualTable .table--header { background: $panel; color: $foreground; text-style: bold; }
    VirtualTable .table--cursor { background: $primary; color: $text; }
    VirtualTable:focus .table--cursor { background: $accent; color: $text; text-style: bold; }
    VirtualTable .table--odd { background: $surface; color: $foreground; }
    VirtualTable .table--even { background: $surface-lighten-1; color: $foreground; }
    VirtualTable .table--error { color: $text-error; }
    VirtualTable .table--warning { color: $text-warning; }
    VirtualTable .table--dim { color: $text-muted; }
    VirtualTable .table--green { color: #30a030; }
    VirtualTable .table--cyan { color: #20a0b0; }
    VirtualTable .table--blue { color: #5080ff; }
    VirtualTable .table--magenta { color: #d060d0; }
    VirtualTable .table--grey { color: $text-disabled; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("list")
    BINDING_GROUP_TITLE = PLACES["list"]
    cursor: reactive[int] = reactive(0, repaint=False)
    column: reactive[int | None] = reactive(None, repaint=False)
    """The column under the cursor, by its place; None for the whole row."""

    class Highlighted(TableMessage):
        """The cursor is on another row."""

        def __init__(self, table: VirtualTable, row: int) -> None:
            self.row = row
            super().__init__(table)

    class Menu(TableMessage):
        """A right click on a row, which has the cursor now."""

    class AtEnd(TableMessage):
        """The key to the last row was pressed."""

    class Chosen(TableMessage):
        """Enter or a double click on a row."""

        def __init__(self, table: VirtualTable, row: int) -> None:
            self.row = row
            super().__init__(table)

    class Turned(TableMessage):
        """Other columns are shown."""

    class HeadingClicked(TableMessage):
        """A click on the heading of a column, by its place among the shown ones."""

        def __init__(self, table: VirtualTable, column: int) -> None:
            self.column = column
            super().__init__(table)

    def __init__(self, rows: TableRows, *, id: str | None = None, has_columns: bool = False) -> None:
        super().__init__(id=id)
        self._has_columns = has_columns
        """Whether the cursor can go to a column."""
        self.rows = rows
        self._inks: Mapping[str, str] = rows.inks if isinstance(rows, Inked) else {}
        self._strips: LRUCache[Hashable, Strip] = LRUCache(STRIPS)
        self._drawn: Hashable = None
        """The rows on the screen at the last change of rows."""
        self._had_rows = False
        """Whether there was a row at the last change of rows."""
        self._nothing = ""
        """The text below the headings while there is no row."""

    @property
    def page(self) -> int:
        """The number of rows on a screen."""
        return max(1, self.size.height - 1)

    def rows_changed(self, cursor: int | None = None) -> None:
        """Show changed or new rows. The cursor keeps its place unless another is given."""
        self.virtual_size = Size(self.columns, len(self.rows) + 1)
        self.cursor = self.cursor if cursor is None else cursor
        self._show_cursor()
        visible = self._visible()
        if visible != self._drawn:
            self._drawn = visible
            self.refresh()
        if self._had_rows != bool(len(self.rows)):
            self._had_rows = not self._had_rows
            self.screen.refresh_bindings()

    def show_empty(self, why: str) -> None:
        """Show, in place of the rows, why there is no row."""
        if why != self._nothing:
            self._nothing = why
            self.refresh()

    def rows_look_different(self) -> None:
        """Draw the same rows in another form."""
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        self._strips.clear()
        super().notify_style_update()

    def on_resize(self) -> None:
        self.virtual_size = Size(self.columns, len(self.rows) + 1)
        self._show_cursor()

    def _visible(self) -> Hashable:
        """A value that identifies the rows on the screen."""
        top, width = self.scroll_offset.y, self.columns
        rows = range(top, min(top + self.page, len(self.rows)))
        keys = tuple(self.rows.key(row) for row in rows)
        return keys, tuple(self.rows.headings(width)), width, self.cursor

    # -- columns without room -------------------------------------------------------------------------

    @property
    def hint(self) -> str:
        """The text about columns without room."""
        return self.rows.columns_hint(self.columns) if isinstance(self.rows, ColumnsOnPages) else ""

    @property
    def has_room_for_hint(self) -> bool:
        """Whether it has room after the headings; if not, the screen shows it elsewhere."""
        headings = self.rows.headings(self.columns)
        left = self.columns - sum(heading.width for heading in headings) - len(headings) + 1
        last = headings[-1]
        if not last.is_right:
            left += last.width - cell_len(last.title)
        return left > cell_len(self.hint)

    def _turn(self, step: int) -> bool:
        """Show other columns; return whether there are any."""
        if not isinstance(self.rows, ColumnsOnPages) or not self.rows.turn_columns(step, self.columns):
            return False
        self.column = None
        self.rows_look_different()
        self.post_message(self.Turned(self))
        return True

    def _turn_on(self) -> None:
        """Show the next columns; after the last, the first ones."""
        if not self._turn(1):
            while self._turn(-1):
                pass

    # -- drawing --------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.columns
        if y == 0:
            style = self.get_component_rich_style("table--header")
            headings, hint = self.rows.headings(width), self.hint
            line = self._line(headings, [heading.title for heading in headings], style, self.column)
            if not hint or not self.has_room_for_hint:
                return line
            return Strip([*line.crop(0, width - cell_len(hint)), Segment(hint, style)], width)
        row = self.scroll_offset.y + y - 1
        if y >= _NOTHING_LINE and self._nothing and not len(self.rows):
            style = legible(self.rich_style + self.get_component_rich_style("table--dim", partial=True))
            lines = fold_text(self._nothing, max(1, width - 2))
            text = lines[y - _NOTHING_LINE] if y - _NOTHING_LINE < len(lines) else ""
            return Strip([Segment(set_cell_size(f" {text}", width), style)], width)
        if row >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        is_cursor = row == self.cursor
        key = (self.rows.key(row), width, row & 1, is_cursor and (self.has_focus, self.column))
        strip = self._strips.get(key)
        if strip is None:
            style = self._style(row, is_cursor)
            column = self.column if is_cursor else None
            inks = {} if is_cursor else self._inks
            strip = self._line(self.rows.headings(width), self.rows.cells(row, width), style, column, inks)
            self._strips[key] = strip
        return strip

    def _style(self, row: int, is_cursor: bool) -> Style:
        if is_cursor:
            cursor = self.get_component_rich_style("table--cursor")
            # Its background would be one of several greys, and bold means an error.
            return cursor + Style(reverse=True) if self.app.no_color else cursor
        style = self.get_component_rich_style("table--odd" if row & 1 else "table--even")
        tone = self.rows.tone(row)
        if tone is None:
            return style
        if self.app.no_color:  # every colour would be a grey, that of an error a dark one
            is_bad = tone in WRONG_TONES
            by_rule = not is_bad and tone != "table--dim"
            return style + Style(bold=is_bad, dim=tone == "table--dim", underline=by_rule)
        return legible(style + Style(color=self.get_component_rich_style(tone).color))

    def _line(
        self,
        headings: Sequence[Heading],
        cells: Sequence[str],
        style: Style,
        column: int | None,
        inks: Mapping[str, str] = {},
    ) -> Strip:
        width = self.columns
        fixed = sum(heading.width for heading in headings) + len(headings) - 1
        texts = []
        for heading, cell in zip(headings, cells, strict=True):
            columns = heading.width or max(1, width - fixed)
            if cell_len(cell) > columns:
                cell = cut_name(cell, columns) if heading.is_name else cut_text(cell, columns)
            fill = columns - cell_len(cell) if heading.is_right else 0
            texts.append(set_cell_size(" " * fill + cell, columns))
        if column is None or column >= len(texts):
            whole = set_cell_size(" ".join(texts), width)
            if not inks or not texts:
                return Strip([Segment(whole, style)], width)
            before = " ".join([*texts[:-1], ""])
            last = set_cell_size(texts[-1], max(0, width - cell_len(before)))
            return Strip([Segment(before, style), *self._inked(last, style, inks)]).adjust_cell_length(
                width, style
            )
        before = "".join(text + " " for text in texts[:column])
        after = " " + " ".join(texts[column + 1 :])
        parts = (before, style), (texts[column], style + Style(reverse=not style.reverse)), (after, style)
        return Strip([Segment(*part) for part in parts]).adjust_cell_length(width, style)

    def _inked(self, text: str, style: Style, inks: Mapping[str, str]) -> Iterator[Segment]:
        """The line in pieces of one colour; without colours, the characters are clear enough."""
        for ink, characters in groupby(text, inks.get):
            color = None if ink is None else self.get_component_rich_style(ink).color
            is_plain = color is None or self.app.no_color
            yield Segment("".join(characters), style if is_plain else legible(style + Style(color=color)))

    def validate_cursor(self, row: int) -> int:
        return clamp(row, 0, max(0, len(self.rows) - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        if not self.is_mounted:
            return
        if not self._show_cursor():
            for row in (old, new):
                self.refresh(Region(0, row - self.scroll_offset.y + 1, self.columns, 1))
        self.post_message(self.Highlighted(self, new))

    def watch_column(self) -> None:
        if self.is_mounted:
            self.refresh()

    def _show_cursor(self) -> bool:
        """Scroll until the cursor is on the screen; return whether that was needed."""
        top = self.scroll_offset.y
        wanted = min(max(top, self.cursor - self.page + 1), self.cursor)
        if wanted != top:
            self.scroll_to(y=wanted, animate=False, immediate=True)
        return wanted != top

    def go_to(self, row: int) -> None:
        """Move the cursor to a found row, and show the following rows on a third of the screen."""
        self.cursor = row
        top = min(row + 1 + self.page // 3, len(self.rows)) - self.page
        if self.scroll_offset.y < top:
            self.scroll_to(y=top, animate=False, immediate=True)

    def action_move(self, rows: int) -> None:
        self.cursor += rows

    def action_page(self, pages: int) -> None:
        self.cursor += pages * max(1, self.page - 1)

    def action_first(self) -> None:
        self.cursor = 0

    def action_last(self) -> None:
        self.cursor = len(self.rows) - 1
        self.post_message(self.AtEnd(self))

    def action_column(self, step: int) -> None:
        """Go to the column to the right (1) or left; from the first to the whole row. Beyond them come the
        columns without room."""
        at = -1 if self.column is None else self.column
        last = len(self.rows.headings(self.columns)) - 1
        if not self._has_columns or not -1 <= at + step <= last:
            self._turn(step)
        else:
            self.column = at + step if at + step >= 0 else None

    def action_choose(self) -> None:
        if len(self.rows):
            self.post_message(self.Chosen(self, self.cursor))

    def _column_at(self, x: int) -> int | None:
        """The column whose heading is at a cell; None beside them."""
        headings = self.rows.headings(self.columns)
        fixed = sum(heading.width for heading in headings) + len(headings) - 1
        start = 0
        for column, heading in enumerate(headings):
            start += (heading.width or max(1, self.columns - fixed)) + 1
            if x < start:
                return column
        return None

    def on_mouse_scroll_right(self) -> None:
        self._turn(1)

    def on_mouse_scroll_left(self) -> None:
        self._turn(-1)

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None:  # the bar above the list
            return
        hint = cell_len(self.hint) if self.hint and self.has_room_for_hint else 0
        if at.y == 0 and self.columns - hint <= at.x < self.columns:
            self._turn_on()
            return
        if at.y == 0:
            column = self._column_at(at.x)
            if column is not None:
                self.post_message(self.HeadingClicked(self, column))
            return
        row = self.scroll_offset.y + at.y - 1
        if row < len(self.rows):
            # A second click on the row is about the column, and so is a right click.
            if self._has_columns and (row == self.cursor or event.button == RIGHT):
                self.column = self._column_at(at.x)
            self.cursor = row
            if event.button == RIGHT:
                self.post_message(self.Menu(self))
            elif event.chain == 2:
                self.action_choose()
