"""The pane of the heat map: a cursor that goes through bands of response times, and through moments."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import clamp
from textual.reactive import reactive
from textual.strip import Strip

from kdissect.settings.actions import HEAT_HELP
from kdissect.tui.keys import bindings_of
from kdissect.tui.lists.heat import BEFORE, Heat, HeatCell
from kdissect.tui.widgets.table import TableMessage, VirtualTable

CROSS = "┼"
"""Stands in the cell under the cursor, whatever its shade is: a full one would look like an empty one where
colours are reversed."""


def _bindings() -> list[BindingType]:
    return [
        replace(each, tooltip=HEAT_HELP[each.id])
        if isinstance(each, Binding) and each.id in HEAT_HELP
        else each
        for each in bindings_of("list")
    ]


class HeatTable(VirtualTable, inherit_bindings=False):
    """The heat map: its bands are as many as it has lines. Until the cursor is moved, it is at the slowest
    band that has an exchange."""

    BINDINGS: ClassVar[list[BindingType]] = _bindings()
    rows: Heat
    moment: reactive[int | None] = reactive(None, repaint=False)
    """When the column of time under the cursor begins, ns since the epoch; None for the whole band."""
    _put = 0
    """The line to which the cursor was put."""

    class Moved(TableMessage):
        """The cursor is in another column, or the focus came or went."""

    @property
    def room(self) -> int:
        """How many columns of time there are."""
        return max(1, self.columns - BEFORE)

    @property
    def moment_column(self) -> int | None:
        """The column of time under the cursor; None for the whole band."""
        return None if self.moment is None else self.rows.column_of(self.moment, self.room)

    @property
    def cell(self) -> HeatCell | None:
        """What is under the cursor; None without any."""
        return self.rows.cell(self.cursor, self.moment_column, self.room) if len(self.rows) else None

    @property
    def _is_moved(self) -> bool:
        return self.moment is not None or self.cursor != self._put

    def show_others(self, is_of_other: bool) -> None:
        """The rows are others.

        :param is_of_other: whether they are of something else than before, where the cursor begins anew.
        """
        if is_of_other:
            self.moment = None
        is_moved = self._is_moved and not is_of_other
        self._put = self.rows.slowest_row()
        self.rows_changed(self.cursor if is_moved else self._put)

    def on_resize(self) -> None:
        (lowest, _), is_moved = self.rows.band(self.cursor), self._is_moved
        self.rows.fit(self.page)
        self._put = self.rows.slowest_row()
        self.rows_changed(self.rows.row_of(lowest) if is_moved else self._put)

    # -- drawing --------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        strip, column = super().render_line(y), self.moment_column
        is_head = y == 0
        if column is None or not (is_head or self.scroll_offset.y + y - 1 == self.cursor):
            return strip
        x = BEFORE + column
        here = strip.crop(x, x + 1)
        style = next((each.style for each in here if each.style is not None), Style())
        mark = Segment(here.text if is_head else CROSS, style + Style(reverse=not style.reverse))
        return Strip.join([strip.crop(0, x), Strip([mark]), strip.crop(x + 1)])

    def watch_moment(self) -> None:
        if self.is_mounted:
            self.refresh()
            self.post_message(self.Moved(self))

    # -- keys and mouse -------------------------------------------------------------------------------

    def on_focus(self) -> None:
        self.post_message(self.Moved(self))

    def on_blur(self) -> None:
        self.post_message(self.Moved(self))

    def action_column(self, step: int) -> None:
        """Go to the moment after (1) or before (-1). From the whole band, go to the first or the last one in
        which it has exchanges; before the first moment is the whole band."""
        if not len(self.rows):
            return
        at, room = self.moment_column, self.room
        if at is None:
            found = self.rows.columns_with_any(self.cursor, room) or (0, room - 1)
            at = found[0 if step > 0 else -1]
        else:
            at += step
        self._go_to_column(at)

    def _go_to_column(self, at: int) -> None:
        room = self.room
        self.moment = None if at < 0 else self.rows.span(clamp(at, 0, room - 1), room)[0]

    def on_click(self, event: events.Click) -> None:
        """Choose the cell; the list does all else that a click does. A click on the words before the cells
        chooses the band."""
        at = event.get_content_offset(self)
        if at is not None and at.y and self.scroll_offset.y + at.y - 1 < len(self.rows):
            self._go_to_column(min(at.x - BEFORE, self.room - 1))
