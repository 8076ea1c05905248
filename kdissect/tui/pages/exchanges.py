"""The screen of exchanges: the list, and the exchange under its cursor as a tree and as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from kdissect.feed.frame_time import FRAME_SECONDS
from kdissect.feed.index import Places
from kdissect.feed.matching import AnswerClient
from kdissect.feed.searching import ListSearch, Pattern
from kdissect.filter.errors import FilterError
from kdissect.present.detail import Detail, TreeSpot
from kdissect.present.form import TIMES as TIMES_MEANING
from kdissect.session.conversation import Connection
from kdissect.tui.keys import bindings_of
from kdissect.tui.lists.exchange_columns import SORT_TITLES
from kdissect.tui.lists.exchanges import TIMES, Exchanges
from kdissect.tui.pages.arranging import USUAL, ColumnChoice, Ordering
from kdissect.tui.pages.finder import SearchedPage
from kdissect.tui.pages.jumps import Jumps
from kdissect.tui.pages.page import BACK, QUIT
from kdissect.tui.pages.split import SplitPage
from kdissect.tui.pages.summaries import ListSummary
from kdissect.tui.pages.under_cursor import Resting, UnderCursor, choose_color
from kdissect.tui.selecting import joined
from kdissect.tui.widgets import status
from kdissect.tui.widgets.dialogs import Choose
from kdissect.tui.widgets.panes import DetailPanes
from kdissect.tui.widgets.status import Item
from kdissect.tui.widgets.table import VirtualTable


class ExchangesPage(SplitPage, SearchedPage):
    """The screen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("exchanges")
    QUESTION = "Search"

    def __init__(self) -> None:
        super().__init__()
        self.follow = False
        self.resting = Resting(self, self._show_why_none, self._shown_in_panes)
        self._sought: int | None = None
        """The place in the index of the exchange to which the cursor goes as soon as the list has it."""
        self._sought_from: int | None = None
        """The row of the cursor meanwhile. If the cursor leaves that row, the search for the exchange
        ends."""
        self._sought_with = ""
        """The filter during that search. With another filter the search ends."""
        self._reference: int | None = None
        """The number of the exchange that times count from; None for the start."""
        self._going_on: Mapping[int, Connection] = {}
        """The open connections for which the reason for an empty list was found."""

    def body(self) -> ComposeResult:
        app = self.kdissect
        self.rows = Exchanges(app.index, app.marks, app.columns, app.coloring, app.field_values)
        app.columns = self.rows.chosen  # without those that no longer exist
        self.rows.clock.letter = app.settings.time
        self.order = Ordering(app.index, app.shown, self.rows)
        before = app.settings.before.sort
        if before is not None and before[0] in SORT_TITLES:
            self.order.set(*before)
        self.summary = ListSummary(self, self.rows, self._figures_came)
        self.jumps = Jumps(self, self.rows, self.uncover)
        self.under_cursor = UnderCursor(self, self.rows)
        self.column_choice = ColumnChoice(self, self.rows)
        yield VirtualTable(self.rows, id="list", has_columns=True)
        yield DetailPanes(id="panes")

    def on_mount(self) -> None:
        self.summary.put_on_scroll_bar()
        self.kdissect.frame_time.when_behind = self._draw_the_rest_later
        self.index_grew()

    # -- the list -----------------------------------------------------------------------------------

    def look_at_new(self) -> None:
        """Measure the room that new exchanges need, whether or not this page is shown."""
        if self.is_mounted:
            self.rows.needs.look()

    def shown(self) -> int:
        return len(self.rows)

    def status(self) -> list[Item]:
        out = super().status()
        if self.follow:
            out.insert(0, Item("following", status.PAUSED, "bold reverse"))
        if self.order.is_paused:
            out.insert(0, Item(f"paused, {self.order.waiting:,} more", status.PAUSED, "bold reverse"))
        if self.finder.turn:
            out.append(Item(self.finder.turn, status.ORDER, "bold"))
        if self.order.text():
            out.append(Item(self.order.text(), status.ORDER, "bold"))
        if self._reference is not None and self.rows.clock.letter == "r":
            out.append(Item(f"times since No. {self._reference}", status.ORDER, "bold"))
        out += self.summary.items()
        return out

    def index_grew(self) -> None:
        has_ended = self.kdissect.ended is not None
        if self.order.is_due(has_ended):
            self.rearrange()
        if not len(self.kdissect.index) and self._going_on is not self.kdissect.index.going_on:
            self._show_why_no_exchange()
        self.summary.make_if_due(has_ended)
        super().index_grew()

    def _figures_came(self) -> None:
        super().index_grew()

    def on_screen_resume(self) -> None:
        if not len(self.rows):
            self._show_why_none()
        if self.order.is_due(True) or self._sought is not None:
            self.reorder()

    def note_filter_progress(self, found: bool) -> None:
        if self.order.is_due(self.kdissect.shown.progress is None):
            self.reorder()
        super().index_grew()
        if self.kdissect.shown.progress is None and not len(self.rows):
            self._show_why_none()

    def filter_changed(self) -> None:
        self.finder.forget_turn()
        self.restore_message()
        self.reorder()
        super().filter_changed()

    def marks_changed(self) -> None:
        self.list_pane.refresh()

    def reorder(self) -> None:
        """Sort the list, and show its figures."""
        self.rearrange()
        self.summary.make()

    def rearrange(self) -> None:
        """Sort the list; the cursor stays on its exchange, or at its place."""
        table, rows = self.list_pane, self.rows
        if self._sought_from not in (None, table.cursor) or self._sought_with != self.kdissect.shown.text:
            self._sought = None
        before = self.chosen_place() if self._sought is None else self._sought
        self.order.arrange()
        is_usual = not self.order.text()
        rows.sorted_by = None if is_usual else (self.order.sort, self.order.descending)
        found = None if before is None else rows.row_of(before)
        if self.follow:
            row = len(rows) - 1
        elif before is None:
            row = 0
        else:
            row = found if found is not None else rows.row_after(before) if len(rows) else 0
        table.rows_changed(row)
        if self._sought is not None and len(rows):
            table.go_to(row)
            self._sought_from = table.cursor
            if found is not None or self.kdissect.shown.progress is None:
                self._sought = None
        self._rest_at(table.cursor)

    @on(VirtualTable.Highlighted)
    def _highlighted(self, event: VirtualTable.Highlighted) -> None:
        if self.follow and event.row != len(self.rows) - 1:
            self.follow = False
            super().index_grew()
        if self.finder.has_left_match:
            self.update_status()
        self._rest_at(event.row)

    @on(VirtualTable.AtEnd)
    def _at_end(self) -> None:
        if self.kdissect.ended is None and not self.follow:
            self.action_follow()

    def _rest_at(self, row: int) -> None:
        self.resting.rest_at(self.rows.place(row) if row < len(self.rows) else None)

    def uncover(self, place: int) -> None:
        """Make the list show the exchange at a place of the index, without the filter if necessary."""
        if self.rows.row_of(place) is None:
            self.kdissect.shown.push("")
            self.order.is_paused = False
            self.reorder()

    def seek(self, place: int | None) -> None:
        """Go to the exchange at a place of the index, or to the next one, as soon as the list has it. A
        change of the filter ends this."""
        self._sought, self._sought_from, self._sought_with = place, None, self.kdissect.shown.text
        if place is not None:
            self.follow = False

    def go_to(self, place: int) -> None:
        """Show the exchange at a place of the index."""
        self.uncover(place)
        row = self.rows.row_of(place)
        if row is not None:
            self.leap_to(row)

    def leap_to(self, row: int) -> None:
        self.jumps.to(row)

    @property
    def order_of_list(self) -> tuple[str, bool]:
        """The column that orders the list, and whether the largest stand first."""
        return self.order.sort, self.order.descending

    def order_by(self, sort: str, descending: bool) -> None:
        """Give the list an earlier order, or its usual one."""
        if self.order.set(sort, descending):
            self.reorder()

    def order_as_usual(self) -> None:
        """Give the list its usual order, because another screen leads to it."""
        if self.order.set(*USUAL, is_own=False):
            self.reorder()

    def chosen_place(self) -> int | None:
        cursor = self.list_pane.cursor
        return self.rows.place(cursor) if cursor < len(self.rows) else None

    @property
    def is_at_rest(self) -> bool:
        """Whether the panes show the exchange under the cursor, and nothing is being filtered or searched."""
        if self.finder.is_going_on or self.kdissect.shown.progress is not None:
            return False
        shows_none = self.chosen_place() is None and self.panes.detail is None
        return shows_none or self.under_cursor.detail() is not None

    # -- searching ----------------------------------------------------------------------------------

    @property
    def searched_list(self) -> VirtualTable:
        return self.list_pane

    @property
    def searched_rows(self) -> str:
        return "these exchanges"

    @property
    def row_under_cursor(self) -> int | None:
        return self.chosen_place()

    def search_for(self, text: str, asker: AnswerClient) -> ListSearch:
        app = self.kdissect
        return ListSearch(Pattern(text, app.options), app.index, asker, lambda: self.rows.view)

    def go_to_match(self, row: int) -> None:
        if row == self.list_pane.cursor and self.panes.detail is not None:
            self._show_match(self.panes.detail)
        self.leap_to(row)

    def _show_match(self, detail: Detail) -> None:
        """Show the position of the match in the shown exchange, if there is one."""
        pattern = self.finder.pattern
        if pattern is None:
            return
        spot = pattern.spot(detail.exchange, detail)
        if spot is not None:
            self.panes.point_at(*spot)
        else:
            self.panes.point_at_line(pattern.line)

    # -- the exchange -------------------------------------------------------------------------------

    def restore_message(self) -> None:
        """Show the text about the tree line under the cursor again."""
        self.show_message("")
        self.panes.show_meaning()

    def _show_why_none(self) -> None:
        if self.kdissect.shown.is_filtered:
            self.show_message(self.kdissect.shown.why_none)
        else:
            self._show_why_no_exchange()

    def _show_why_no_exchange(self) -> None:
        index = self.kdissect.index
        self._going_on = index.going_on
        is_over = self.kdissect.ended is not None or self.kdissect.why_nothing()
        self.show_message("there is no exchange to show" if is_over else "decoding …")

    def _shown_in_panes(self, detail: Detail) -> None:
        if self.jumps.led_to_error(detail.exchange.number):
            self.panes.point_at_line(Detail.path_to_error)
        else:
            self._show_match(detail)

    @on(VirtualTable.Chosen)
    def _chosen(self) -> None:
        self.go_in()

    # -- keys ---------------------------------------------------------------------------------------

    def action_out(self) -> None:
        self._leave()

    def action_out_or_end(self) -> None:
        if not self._leave():
            self.kdissect.end_or_ask()

    def _leave(self) -> bool:
        """Go one level out, or to the screen before; return whether there was any."""
        step = self.kdissect.way.last
        if step is not None and step.to_tree and self.is_in:
            self.leave_pane()
            return self.kdissect.go_back()
        if self.leave_pane():
            return True
        return self.take_back() or self.kdissect.go_back()

    @property
    def opens(self) -> str:
        return "Fields"

    @property
    def way_out(self) -> str:
        app, out = self.kdissect, super().way_out
        if self.is_in or self.is_zoomed:
            return BACK
        return QUIT if out == BACK and app.is_home(self) and app.is_outermost else out

    def action_next_bad(self, step: int) -> None:
        self.jumps.to_bad(step)

    def action_next_of_connection(self, step: int) -> None:
        self.jumps.to_same_connection(step)

    def action_jump(self, step: int) -> None:
        """Go back to the start of the last jump (-1), or forward again (1)."""
        here = self.chosen_place()
        if here is None:
            self._show_why_none()
        else:
            self.jumps.back_or_forward(here, step)

    def action_sort(self) -> None:
        column = self.under_cursor.column()
        if column is not None:
            self._sort_by(column)
        else:
            self.order.by_next()
            self._sorted()

    def action_order(self) -> None:
        names = {title: sort for sort, title in SORT_TITLES.items()}

        def chosen(title: str | None) -> None:
            if title is not None:
                self.order.by(names[title])
                self._sorted()

        self.app.push_screen(Choose("Order by", list(names)), chosen)

    def action_turn(self) -> None:
        self.order.turn()
        self._sorted()

    @on(VirtualTable.HeadingClicked)
    def _heading_clicked(self, event: VirtualTable.HeadingClicked) -> None:
        self._sort_by(self.rows.names(self.list_pane.columns)[event.column])

    def _sort_by(self, column: str) -> None:
        sort = self.rows.column(column).sort
        if sort is None:
            self.show_message("the list cannot be ordered by this column")
        else:
            self.order.by(sort)
            self._sorted()

    def _sorted(self) -> None:
        """Show the other order. On the first row the cursor stays there, because a user who sorts wants to
        see the first rows."""
        is_first = self.list_pane.cursor == 0 and not self.follow
        self.reorder()
        if is_first:
            self.list_pane.cursor = 0
        super().index_grew()

    def action_connection(self) -> None:
        place = self.chosen_place()
        if place is not None:
            self.kdissect.shown.write(f"connection == {self.kdissect.index.value('connection', place)}")

    def action_by(self, operation: str) -> None:
        """Filter by the field under the cursor of the tree, or else by the list's column under the cursor."""
        text, shown = self.under_cursor.filter("what"), self.kdissect.shown
        if text is None:
            return
        try:
            shown.write(joined(operation, text, shown.written if shown.is_on else ""))
        except FilterError as error:  # the whole of it is too long, or too deep
            self.show_message(error.reason)

    def action_color(self) -> None:
        """Choose a colour for all rows with the value under the cursor."""
        filter = self.under_cursor.filter("who")
        if filter is not None:
            choose_color(self, filter)

    def _draw_the_rest_later(self) -> None:
        """Draw the parts that waited for the rows' exchanges: colours, and values of fields."""
        self.set_timer(FRAME_SECONDS, self._draw_the_rest)

    def _draw_the_rest(self) -> None:
        self.rows.fields.grow()
        self.list_pane.rows_changed()

    def action_follow(self) -> None:
        self.follow = not self.follow
        self.order.is_paused = False
        if self.follow:
            self.order_by(*USUAL)  # the last row should be the latest
            self.index_grew()
            self.list_pane.action_last()
        super().index_grew()

    def action_pause(self) -> None:
        self.order.is_paused = not self.order.is_paused
        self.index_grew()

    def action_times(self) -> None:
        clock = self.rows.clock
        clock.letter = TIMES[(TIMES.index(clock.letter) + 1) % len(TIMES)] if clock.letter in TIMES else "r"
        self.list_pane.rows_look_different()
        self.update_status()
        self.show_message(f"times: {TIMES_MEANING[clock.letter]}")

    def action_reference(self) -> None:
        """Count times from the exchange under the cursor, or from the start again."""
        place, clock = self.chosen_place(), self.rows.clock
        if place is None:
            return
        number = self.chosen_number
        self._reference = None if self._reference == number else number
        clock.first_ns = None if self._reference is None else self.kdissect.index.value("time_ns", place)
        if self._reference is not None:
            clock.letter = "r"
        self.list_pane.rows_look_different()
        self.update_status()
        self.show_message(f"times count from {'the start' if self._reference is None else f'No. {number}'}")

    def action_other_side(self) -> None:
        other = "request" if self.panes.tab == "response" else "response"
        if other in self.panes.tabs():
            self.panes.turn_to(other)
        else:
            self.show_message(f"there is no {other} in the capture")

    def action_columns(self) -> None:
        self.column_choice.ask()

    def action_field_column(self) -> None:
        """Make the field under the cursor of the tree a column of the list, or remove the column."""
        name = self.under_cursor.field()
        if name is not None:
            self.column_choice.add_or_remove(name)

    # -- actions on the exchange ----------------------------------------------------------------------

    def chosen_line(self) -> tuple[Detail, list[TreeSpot]] | None:
        detail, spots = self.panes.detail, self.panes.chosen()
        return (detail, spots) if detail is not None and spots else None

    def listed(self) -> Places:
        return self.rows.view
