"""Searching in the list of records: which exchanges have a match, and which of their records.

A line of the list has the beginnings of key and value only. So a process asks the exchanges, as it does for
the list of exchanges (:mod:`kdissect.feed.searching`). The records of one with a match are looked at here.
"""

from __future__ import annotations

import time
from functools import partial

from textual.timer import Timer

from kdissect.feed.asking import Asker
from kdissect.feed.index import Places
from kdissect.feed.searching import ListSearch, RecordPattern
from kdissect.present.records import Address
from kdissect.tui.lists.records import RecordRows
from kdissect.tui.pages.finder import HINT, POLL_SECONDS
from kdissect.tui.pages.page import Page
from kdissect.tui.widgets.dialogs import Ask
from kdissect.tui.widgets.table import VirtualTable

LOOK_SECONDS = 0.01
"""How long rows are looked at before keys have their turn."""
ROWS_AT_ONCE = 1_000
"""Rows of one exchange that are looked at before the time is."""


class SearchedPage(Page):
    """A page with records that can be searched."""

    rows: RecordRows | None
    """What its list shows; None before it is made."""

    @property
    def table(self) -> VirtualTable:
        """The list."""
        return self.query_one("#list", VirtualTable)

    def show_match(self) -> None:
        """Show what was searched for in the record that is shown, if it is there."""
        raise NotImplementedError

    def tell_again(self) -> None:
        """Say what is listed, in the place of what was said since."""
        raise NotImplementedError

    def say_next(self, text: str) -> None:
        """Write it when the cursor has moved, which tells what is listed."""
        self.call_after_refresh(self.say, text)


class RecordFinder:
    """The search of the screen."""

    def __init__(self, page: SearchedPage) -> None:
        self._page = page
        self._asker: Asker | None = None
        self._search: ListSearch | None = None
        self.pattern: RecordPattern | None = None
        """What was searched for last."""
        self._step = 1
        self._from = 0
        """The row from which is being searched."""
        self._has_turned = False
        """Whether the search went on from the other end of the list."""
        self._timer: Timer | None = None
        self._found: tuple[int, frozenset[Address]] | None = None
        """An exchange, by its place in the index, and those of its records that match."""
        self._is_looking = False
        """Whether the records of an exchange are being looked at."""
        self._asked = 0
        """How often a match was asked for, or was not wanted any more."""

    def ask(self) -> None:
        """Ask what to search for."""
        app = self._page.kdissect
        if self._asker is None:
            self._asker = Asker(app.index, app.feed.descriptor, app.feed.source.limits)
        self._asker.start()
        self._page.app.push_screen(Ask("Search in keys, values and headers", HINT), self._begin)

    def _begin(self, text: str | None) -> None:
        if text is None or self._asker is None:
            return
        app = self._page.kdissect
        try:
            pattern = RecordPattern(text, app.options)
        except ValueError as error:
            self._page.say(str(error))
            return
        self.stop()
        self.pattern, self._found = pattern, None
        self._search = ListSearch(pattern, app.index, self._asker, has_texts=False)
        # The record under the cursor is the first that can be found.
        self._look(1, self._page.table.cursor - 1)

    def go(self, step: int) -> None:
        """To the next match, or the one before."""
        if self._search is None:
            self.ask()
        else:
            self._look(step, self._page.table.cursor)

    def _look(self, step: int, start: int) -> None:
        self.stop()
        self._step, self._from, self._has_turned = step, start, False
        self._look_on()

    def _look_on(self) -> None:
        search, rows = self._search, self._page.rows
        if search is None or rows is None or self._is_looking:
            return
        search.poll()
        began = time.monotonic()
        if not rows.read_places():
            self._look_on_later()
            return
        view = rows.places
        while True:
            if time.monotonic() - began > LOOK_SECONDS:
                self._look_on_later()
                return
            row = search.next(view, self._from, self._step)
            if row is None:
                if search.is_going_on or search.reason is not None or self._has_turned:
                    break
                self._has_turned, self._from = True, -1 if self._step > 0 else len(view)
                continue
            place = int(view[row])
            if self._found is None or self._found[0] != place:
                self._is_looking = True
                self._page.run_worker(partial(self._look_into, place, self._asked), thread=True, group="find")
                return
            hit = self._hit_from(row, view, self._found[1])
            if hit is not None:
                self._arrive(hit)
                return
        if row is None and search.is_going_on:
            self._look_on_later()
            return
        self.stop()
        so_far = " that are listed so far" if rows.is_busy else ""
        self._page.say(search.reason or f"{search.pattern.text} is not found in these records{so_far}")

    def _look_on_later(self) -> None:
        """Let keys have their turn."""
        if self._timer is None and self._search is not None:
            self._page.say(f"searching for {self._search.pattern.text} …")
            self._timer = self._page.set_interval(POLL_SECONDS, self._look_on)

    def _hit_from(self, row: int, view: Places, found: frozenset[Address]) -> int | None:
        """The first row with a match of some that follow in one exchange, from one of them on. Without one,
        the search goes on after them."""
        rows, place = self._page.rows, view[row]
        assert rows is not None
        last = row + self._step * ROWS_AT_ONCE
        while 0 <= row < len(view) and view[row] == place and row != last:
            line = rows.line(row)
            if line is not None and line.address in found:
                return row
            self._from = row
            row += self._step
        return None

    def _look_into(self, place: int, asked: int) -> None:
        """See which records of an exchange match. Of a large one that takes longer than a frame may."""
        app, pattern = self._page.kdissect, self.pattern
        found: frozenset[Address] = frozenset()
        if pattern is not None:
            try:
                spooled, length = app.index.value("place", place), app.index.value("length", place)
                found = frozenset(pattern.addresses(app.feed.exchange(spooled, length)))
            except OSError:
                pass  # it is told of the record itself, when it is to be shown
        app.call_from_thread(self._looked_into, place, found, pattern, asked)

    def _looked_into(
        self, place: int, found: frozenset[Address], pattern: RecordPattern | None, asked: int
    ) -> None:
        if pattern is self.pattern:
            self._found = place, found
        if asked == self._asked:
            self._is_looking = False
            self._look_on()

    def _arrive(self, row: int) -> None:
        has_turned, table = self._has_turned, self._page.table
        self.stop()
        if row == table.cursor:
            self._page.show_match()
        table.go_to(row)
        self._page.tell_again()
        if has_turned:
            self._page.say_next(f"the search went on from the {'top' if self._step > 0 else 'end'}")

    def stop(self) -> None:
        """Search no further."""
        self._asked += 1
        self._is_looking = False
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self._search is not None:
            self._search.stop()

    @property
    def is_going_on(self) -> bool:
        """Whether the next match is being searched for."""
        return self._timer is not None or self._is_looking

    def close(self) -> None:
        """Stop the process."""
        if self._asker is not None:
            self._asker.close()
