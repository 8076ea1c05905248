"""The object under the cursor of a page with exchanges.

It is an exchange: it is decoded beside the screen, and shown when the cursor rests. It is also a column of
the list, or a field of the tree. Both give a filter, a column, and a coloring rule for similar rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from textual.timer import Timer
from textual.worker import get_current_worker

from kdissect.present.detail import Detail
from kdissect.present.sanitise import sanitise
from kdissect.settings.coloring import COLORS, ColoringRule
from kdissect.tui.lists.exchanges import Exchanges
from kdissect.tui.pages.split import SplitPage
from kdissect.tui.selecting import field_of_line, filter_of_column, filter_of_field, filter_of_line
from kdissect.tui.widgets.dialogs import Choose

REST_SECONDS, REST_IN_A_ROW = 0.05, 0.12
"""How long the cursor must rest before the exchange under it is shown; longer after repeated moves, because
drawing an exchange takes as long as two moves."""


class Resting:
    """Waits until the cursor of a page rests.

    :param none: called if there is no exchange under the cursor.
    :param shown: called with an exchange when the panes show it.
    """

    def __init__(self, page: SplitPage, none: Callable[[], None], shown: Callable[[Detail], None]) -> None:
        self._page, self._none, self._shown = page, none, shown
        self._rest: Timer | None = None
        self._awaited: int | None = None
        """The exchange that is shown if the cursor rests."""
        self._moved_at = 0.0
        """The time of the cursor's last move, by :func:`time.monotonic`."""
        self._place: int | None = None
        """The place of the shown exchange."""

    def rest_at(self, place: int | None) -> None:
        """Handle a move of the cursor to the exchange at a place of the index, or to none."""
        if self._rest is not None:
            if place == self._awaited:
                return  # it rests there, whatever comes elsewhere
            self._rest.stop()
            self._rest = None
        self._awaited = place
        if place != self._place or self._page.panes.detail is None:
            now, before = time.monotonic(), self._moved_at
            self._moved_at = now
            rest = REST_IN_A_ROW if now - before < 2 * REST_IN_A_ROW else REST_SECONDS
            self._rest = self._page.set_timer(rest, lambda: self._load(place))

    def _load(self, place: int | None) -> None:
        self._rest, self._place = None, place
        if place is None:
            self._page.panes.show(None)
            self._none()
            return
        index = self._page.kdissect.index
        decode = partial(self.decode, place, index.value("place", place), index.value("length", place))
        self._page.run_worker(decode, thread=True, exclusive=True, group="decode")

    def decode(self, place: int, spooled: int, length: int) -> None:
        """Decode an exchange, and show it if the cursor is still there.

        :param spooled: its position in the spool, where it has ``length`` bytes.
        """
        worker, app = get_current_worker(), self._page.kdissect
        try:
            detail = Detail(app.feed.exchange(spooled, length), app.options, app.index.all_names())
        except OSError as error:
            why = error.strerror or error
            app.call_from_thread(self._page.show_message, f"the exchange cannot be shown: {why}")
            return
        if not worker.is_cancelled:
            app.call_from_thread(self._decoded, place, detail)

    def _decoded(self, place: int, detail: Detail) -> None:
        if place == self._place:
            self._page.panes.show(detail)
            self._shown(detail)


class UnderCursor:
    """The column, exchange and field under the cursor of a page."""

    def __init__(self, page: SplitPage, rows: Exchanges) -> None:
        self._page, self._rows = page, rows

    def column(self) -> str | None:
        """The name of the column; None if none was chosen."""
        names = self._rows.names(self._page.list_pane.columns)
        at = self._page.list_pane.column
        return names[at] if at is not None and at < len(names) else None

    def detail(self) -> Detail | None:
        """The exchange under the cursor as a tree; None while the panes show another one, or none."""
        detail = self._page.panes.detail
        return detail if detail is not None and detail.exchange.number == self._page.chosen_number else None

    def filter(self, usual: str) -> str | None:
        """The filter for the field under the cursor of the tree, or else for the list's column under the
        cursor. If there is no filter, say so, and return None.

        :param usual: the column if none was chosen.
        """
        if self._page.list_pane.has_focus:
            # The panes may still show another row: their exchange is decoded beside the screen.
            place, app = self._page.chosen_place(), self._page.kdissect
            exchange = None if place is None else app.exchange_at(place)
            if exchange is None:
                return None
            column = self.column() or usual
            shown = self._rows.fields.shown.get(column)
            if shown is None:
                text = filter_of_column(column, exchange)
            else:
                text = filter_of_field(shown.field, exchange, app.field_values.options)
        else:
            detail = self.detail()
            if detail is None:
                return None
            text = filter_of_line(detail, self._page.panes.chosen())
        if text is None:
            self._page.show_message("there is no filter for this")
        return text

    def field(self) -> str | None:
        """The name of the field that becomes, or is, a column. If there is no field, say so, and return
        None."""
        if self._page.list_pane.has_focus:
            name = self.column()
            if name is not None and name in self._rows.fields.shown:
                return name
            self._page.show_message(
                "Enter goes to the fields, where this key makes one a column; c chooses other columns"
            )
            return None
        detail = self.detail()
        if detail is None:
            return None
        name = field_of_line(detail, self._page.panes.chosen())
        if name is None:
            self._page.show_message("no column can show this line")
        return name


NO_COLOR = "no colour"


def choose_color(page: SplitPage, filter: str) -> None:
    """Choose a colour for all rows that a filter matches."""
    coloring = page.kdissect.coloring

    def chosen(color: str | None) -> None:
        if color == NO_COLOR:
            had_one = coloring.remove(filter)
            page.show_message(
                f"no colour for {filter}" if had_one else "these rows have no colour from this key"
            )
        elif color is not None:
            coloring.add(ColoringRule(filter, filter, color))
            page.show_message(f"{color}: {filter}   [coloring] in config.toml keeps a rule")
        page.list_pane.rows_changed()

    page.app.push_screen(Choose(f"Colour rows with {sanitise(filter, 40)}", (*COLORS, NO_COLOR)), chosen)
