"""Jumps in the list of exchanges: to errors, along a connection, and back and forth as in browsers."""

from __future__ import annotations

from collections.abc import Callable

from kdissect.tui.lists.exchanges import Exchanges
from kdissect.tui.pages.split import SplitPage

MOST = 200
"""The most places that are kept. The oldest are forgotten first."""


class Trail:
    """Places of exchanges, in the order in which they were left."""

    def __init__(self) -> None:
        self._behind: list[int] = []
        self._ahead: list[int] = []

    def leave(self, place: int) -> None:
        """Note the start of a jump. The places ahead are forgotten."""
        self._ahead.clear()
        if not self._behind or self._behind[-1] != place:
            self._behind = [*self._behind, place][-MOST:]

    def back(self, here: int) -> int | None:
        """The place that the last jump left; None without a jump."""
        return _step(self._behind, self._ahead, here)

    def forward(self, here: int) -> int | None:
        """The place that the last :meth:`back` left; None without one."""
        return _step(self._ahead, self._behind, here)


def _step(to: list[int], other: list[int], here: int) -> int | None:
    while to:
        place = to.pop()
        if place != here:
            other.append(here)
            return place
    return None


class Jumps:
    """The jumps of a page.

    :param uncover: makes the list show the exchange at a place of the index.
    """

    def __init__(self, page: SplitPage, rows: Exchanges, uncover: Callable[[int], None]) -> None:
        self._page, self._rows, self._uncover = page, rows, uncover
        self._trail = Trail()
        """The places where jumps began."""
        self._wanted_error: int | None = None
        """The number of the exchange in which the tree's cursor has to go to the error."""

    def to(self, row: int) -> None:
        """Go to a row; a key leads back."""
        here = self._page.chosen_place()
        if here is not None and row != self._page.list_pane.cursor:
            self._trail.leave(here)
        self._page.list_pane.go_to(row)

    def to_bad(self, step: int) -> None:
        """Go to the next exchange with an error or a fault (1), or the one before (-1)."""
        row = self._rows.next_bad(self._page.list_pane.cursor, step)
        if row is None:
            self._page.show_message(self._why_no_error(step))
        else:
            self._wanted_error = self._page.kdissect.index.value("number", self._rows.place(row))
            self.to(row)

    def _why_no_error(self, step: int) -> str:
        """The message if no error follows (1) or comes before (-1), with the key that leads back to one."""
        cursor, rows = self._page.list_pane.cursor, self._rows
        back = ""
        if rows.next_bad(cursor, -step) is not None:
            back = "; E goes to the previous one" if step > 0 else "; e goes to the next one"
        if cursor < len(rows) and rows.is_bad(cursor):
            which = ("last" if step > 0 else "first") if back else "only"
            return f"this is the {which} exchange with an error or fault{back}"
        return f"no exchange with an error or fault {'after' if step > 0 else 'before'} this{back}"

    def led_to_error(self, number: int) -> bool:
        """Whether a jump to an error led to the shown exchange. That is true only once."""
        wanted, self._wanted_error = self._wanted_error, None
        return number == wanted

    def to_same_connection(self, step: int) -> None:
        """Go to the next exchange of the same connection (1), or the one before (-1)."""
        row = self._rows.next_of_connection(self._page.list_pane.cursor, step)
        if row is not None:
            self.to(row)
        elif len(self._rows):
            where = "after" if step > 0 else "before"
            self._page.show_message(f"the list has no exchange of this connection {where} this one")

    def back_or_forward(self, here: int, step: int) -> None:
        """Go back to the start of the last jump (-1), or forward again (1).

        :param here: the place in the index of the exchange under the cursor.
        """
        place = self._trail.back(here) if step < 0 else self._trail.forward(here)
        if place is None:
            self._page.show_message(f"there is no jump to go {'back' if step < 0 else 'forward'} to")
            return
        self._uncover(place)
        row = self._rows.row_of(place)
        if row is not None:
            self._page.list_pane.go_to(row)
