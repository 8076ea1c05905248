"""Searching in the list of exchanges: what for, and from match to match."""

from __future__ import annotations

from textual.timer import Timer

from kdissect.feed.asking import Asker
from kdissect.feed.searching import ListSearch, Pattern
from kdissect.present.detail import Detail
from kdissect.tui.lists.exchanges import Exchanges
from kdissect.tui.pages.chosen import SplitPage
from kdissect.tui.widgets.dialogs import Ask

POLL_SECONDS = 0.05
HINT = "text, hex as de ad be ef, or a regex as /or.ers/"
"""What may be typed."""
COUNT_SECONDS = 0.1
"""How often it is looked how many matches there are."""
MOST_COUNTED = 20_000
"""Exchanges that are searched after a match was found, only to count others. The next match has its turn
first."""


class Finder:
    """The search of a page."""

    def __init__(self, page: SplitPage, rows: Exchanges) -> None:
        self._page, self._rows = page, rows
        self._asker: Asker | None = None
        self._search: ListSearch | None = None
        self._step = 1
        self._from = 0
        """The row from which is being searched."""
        self._has_turned = False
        """Whether the search went on from the other end of the list."""
        self._timer: Timer | None = None
        self._counting: Timer | None = None
        """While matches are counted."""
        self._match: int | None = None
        """The place in the index of the match that was found last."""
        self._told = ""
        """Which match it is of how many, as the status has it."""

    def ask(self) -> None:
        """Ask what to search for."""
        app = self._page.kdissect
        if self._asker is None:
            self._asker = Asker(app.index, app.feed.descriptor, app.feed.source.limits)
        self._asker.start()
        self._page.app.push_screen(Ask("Search", HINT), self._begin)

    def _begin(self, text: str | None) -> None:
        if text is None or self._asker is None:
            return
        app = self._page.kdissect
        try:
            pattern = Pattern(text, app.options)
        except ValueError as error:
            self._page.say(str(error))
            return
        self._search = ListSearch(pattern, app.index, self._asker)
        # The exchange under the cursor is the first that can be found.
        self._look(1, self._page.list_pane.cursor - 1)

    def go(self, step: int) -> None:
        """To the next match, or the one before."""
        if self._search is None:
            self.ask()
        else:
            self._look(step, self._page.list_pane.cursor)

    def _look(self, step: int, start: int) -> None:
        self.stop()
        self._match = None
        self._step, self._from, self._has_turned = step, start, False
        self._look_on()

    def _look_on(self) -> None:
        search, page = self._search, self._page
        assert search is not None
        search.poll()
        view = self._rows.view
        row = search.next(view, self._from, self._step)
        if row is None and not search.is_going_on and search.reason is None and not self._has_turned:
            self._has_turned, self._from = True, -1 if self._step > 0 else len(view)
            row = search.next(view, self._from, self._step)
        if row is None and search.is_going_on:
            if self._timer is None:
                page.say(f"searching for {search.pattern.text} …")
                self._timer = page.set_interval(POLL_SECONDS, self._look_on)
            return
        self.stop()
        if row is not None:
            if row == page.list_pane.cursor and page.panes.detail is not None:
                self.show_match(page.panes.detail)
            page.leap_to(row)
            self._count_others(row)
            page.tell_status()
        elif search.reason is not None:
            page.say(search.reason)
        else:
            page.say(f"{search.pattern.text} is not found in these exchanges")

    def stop(self) -> None:
        """Search no further."""
        for timer in (self._timer, self._counting):
            if timer is not None:
                timer.stop()
                assert self._search is not None
                self._search.stop()
        self._timer = self._counting = None

    # -- how many there are -------------------------------------------------------------------------

    def _count_others(self, row: int) -> None:
        """Search the exchanges that were not on the way to a match, to tell how many matches there are."""
        search, view = self._search, self._rows.view
        assert search is not None
        self._match = int(view[row])
        search.ask_others(view, MOST_COUNTED)
        if search.is_going_on:
            self._counting = self._page.set_interval(COUNT_SECONDS, self._count_on)

    def _count_on(self) -> None:
        search = self._search
        assert search is not None
        search.poll()
        if not search.is_going_on and self._counting is not None:
            self._counting.stop()
            self._counting = None
        if self.which != self._told:
            self._page.tell_status()

    @property
    def which(self) -> str:
        """Which match is under the cursor, of how many; empty if that is not known."""
        if self._search is None or not self._is_on_match:
            return ""
        count = self._search.count(self._rows.view, self._page.list_pane.cursor)
        return "" if count is None else count.text

    def tell(self) -> str:
        """The same for the status, which has it now."""
        self._told = self.which
        return self._told

    @property
    def has_left_match(self) -> bool:
        """Whether the status still tells of a match that is not under the cursor any more."""
        return bool(self._told) and not self._is_on_match

    @property
    def _is_on_match(self) -> bool:
        row = self._page.list_pane.cursor
        return self._match is not None and row < len(self._rows) and self._rows.place(row) == self._match

    @property
    def is_counting(self) -> bool:
        """Whether matches are being counted."""
        return self._counting is not None

    @property
    def turn(self) -> str:
        """That the last match was found from the other end of the list; empty if it was not."""
        if not self._has_turned or self.is_going_on:
            return ""
        return f"search went on from the {'top' if self._step > 0 else 'end'}"

    @property
    def is_going_on(self) -> bool:
        """Whether the next match is being searched for."""
        return self._timer is not None

    def show_match(self, detail: Detail) -> None:
        """Where the match is in the exchange that is shown, if there is one."""
        if self._search is None:
            return
        pattern = self._search.pattern
        spot = pattern.spot(detail.exchange, detail)
        if spot is not None:
            self._page.panes.point_at(*spot)
        else:
            self._page.panes.point_at_line(pattern.line)

    def close(self) -> None:
        """Stop the process."""
        if self._asker is not None:
            self._asker.close()
