"""What is under the cursor of a page with exchanges: a column of the list, or a field of the tree."""

from __future__ import annotations

from kdissect.present.detail import Detail
from kdissect.tui.lists.exchanges import Exchanges
from kdissect.tui.pages.split import SplitPage
from kdissect.tui.selecting import field_of_line, filter_of_column, filter_of_field, filter_of_line


class UnderCursor:
    """What is under the cursor of a page."""

    def __init__(self, page: SplitPage, rows: Exchanges) -> None:
        self._page, self._rows = page, rows

    def column(self) -> str | None:
        """The name of the column; None where none was chosen."""
        names = self._rows.names(self._page.list_pane.columns)
        at = self._page.list_pane.column
        return names[at] if at is not None and at < len(names) else None

    def detail(self) -> Detail | None:
        """The exchange under the cursor as a tree; None while the panes show another one, or none."""
        detail = self._page.panes.detail
        return detail if detail is not None and detail.exchange.number == self._page.chosen_number else None

    def filter(self, usual: str) -> str | None:
        """The filter for the field under the cursor of the tree, or else for the column under that of the
        list. If there is no filter, it is said, and None given.

        :param usual: the column that is meant where none was chosen.
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
            self._page.say("there is no filter for this")
        return text

    def field(self) -> str | None:
        """The name of the field that is to be a column, or is one. If there is no field, it is said, and None
        given."""
        if self._page.list_pane.has_focus:
            name = self.column()
            if name is not None and name in self._rows.fields.shown:
                return name
            self._page.say(
                "Enter goes to the fields, where this key makes one a column; c chooses other columns"
            )
            return None
        detail = self.detail()
        if detail is None:
            return None
        name = field_of_line(detail, self._page.panes.chosen())
        if name is None:
            self._page.say("no column can show this line")
        return name
