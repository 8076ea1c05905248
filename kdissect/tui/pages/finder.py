"""Searching in the list of a page: the text, the steps from match to match, and the number of matches."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, Protocol

from textual.timer import Timer

from kdissect.feed.matching import AnswerClient
from kdissect.feed.searching import MatchCount, Pattern
from kdissect.tui.pages.page import Page
from kdissect.tui.widgets import status
from kdissect.tui.widgets.dialogs import Ask
from kdissect.tui.widgets.status import Item
from kdissect.tui.widgets.table import VirtualTable

POLL_SECONDS = 0.05
HINT = "text, hex as de ad be ef, or a regex as /or.ers/"
"""The forms of a search text."""
COUNT_SECONDS = 0.1
"""How often the number of matches is updated."""
MOST_COUNTED = 20_000
"""How much is searched after a match only to count others. The search for the next match comes first."""


class RowSearch(Protocol):
    """The rows of a list that match: :class:`~kdissect.feed.searching.ListSearch`, or
    :class:`~kdissect.tui.pages.record_search.RecordSearch`."""

    @property
    def pattern(self) -> Pattern:
        """The search pattern."""

    def next(self, row: int, step: int) -> int | None:
        """The next matching row after one (or before, with -1). None if no row matches. Also None while it is
        unknown: then :attr:`is_going_on` is true."""

    def count(self, row: int) -> MatchCount | None:
        """The number of a row's match among all matches; None while that is unknown."""

    def ask_others(self, most: int) -> None:
        """Search the rows that are still unknown, to count matches.

        :param most: the most rows to search.
        """

    @property
    def is_going_on(self) -> bool:
        """Whether more results are expected."""

    @property
    def reason(self) -> str | None:
        """Why the search stopped early."""

    def poll(self) -> None:
        """Take in the results so far."""

    def stop(self) -> None:
        """End the search."""


class SearchedPage(Page):
    """A page with a list that can be searched."""

    QUESTION: ClassVar[str]
    """The title of the dialog that asks what to search for."""

    def __init__(self) -> None:
        super().__init__()
        self.finder = Finder(self)

    def on_unmount(self) -> None:
        self.finder.close()

    @property
    def searched_list(self) -> VirtualTable:
        """The list."""
        raise NotImplementedError

    @property
    def searched_rows(self) -> str:
        """The rows of the list, as in `not found in these exchanges`."""
        raise NotImplementedError

    @property
    def row_under_cursor(self) -> Hashable:
        """The identity of the row under the cursor; None without a row."""
        raise NotImplementedError

    def search_for(self, text: str, asker: AnswerClient) -> RowSearch:
        """Begin a search.

        :raises ValueError: the text is not a valid search.
        """
        raise NotImplementedError

    def go_to_match(self, row: int) -> None:
        """Go to a matching row, and show the match."""
        raise NotImplementedError

    def status(self) -> list[Item]:
        out, which = super().status(), self.finder.status_text()
        if which:
            out.append(Item(which, status.ORDER, "bold"))
        return out

    def action_search(self) -> None:
        self.finder.ask()

    def action_match(self, step: int) -> None:
        self.finder.go_to_match(step)


class Finder:
    """The search of a page."""

    def __init__(self, page: SearchedPage) -> None:
        self._page = page
        self._asker: AnswerClient | None = None
        self._search: RowSearch | None = None
        self._step = 1
        self._from = 0
        """The row from which the search began."""
        self._has_turned = False
        """Whether the search continued from the other end of the list."""
        self._timer: Timer | None = None
        self._counting: Timer | None = None
        """The timer while matches are counted."""
        self._match: Hashable = None
        """The last found row."""
        self._shown_text = ""
        """The number of the match and of all matches, as shown in the status."""
        self._is_turn_told = False
        """Whether the status says that the search continued from the other end."""

    @property
    def pattern(self) -> Pattern | None:
        """The last search pattern."""
        return None if self._search is None else self._search.pattern

    def ask(self) -> None:
        """Ask for the search text."""
        app = self._page.kdissect
        if self._asker is None:
            self._asker = AnswerClient(app.index, app.feed.descriptor, app.feed.source.limits)
        self._asker.start()
        asker, made = self._asker, list[RowSearch]()

        def why_not(text: str) -> str:
            try:
                made.append(self._page.search_for(text, asker))
            except ValueError as error:
                return str(error)
            return ""

        def given(text: str | None) -> None:
            if text is not None and made:
                self._begin(made[-1])

        app.push_screen(Ask(self._page.QUESTION, HINT, why_not=why_not), given)

    def _begin(self, search: RowSearch) -> None:
        self.stop()
        self._search = search
        # The row under the cursor is the first that can be found.
        self._look(1, self._page.searched_list.cursor - 1)

    def go_to_match(self, step: int) -> None:
        """Go to the next match, or the one before."""
        if self._search is None:
            self.ask()
        else:
            self._look(step, self._page.searched_list.cursor)

    def _look(self, step: int, start: int) -> None:
        self.stop()
        self._match = None
        self._step, self._from, self._has_turned = step, start, False
        self._look_on()

    def _look_on(self) -> None:
        search, page = self._search, self._page
        assert search is not None
        search.poll()
        row = search.next(self._from, self._step)
        if row is None and not search.is_going_on and search.reason is None and not self._has_turned:
            self._has_turned, self._from = True, -1 if self._step > 0 else len(page.searched_list.rows)
            row = search.next(self._from, self._step)
        if row is None and search.is_going_on:
            if self._timer is None:
                page.show_message(f"searching for {search.pattern.text} …")
                self._timer = page.set_interval(POLL_SECONDS, self._look_on)
            return
        self.stop()
        if row is not None:
            page.go_to_match(row)
            self._match = page.row_under_cursor
            self._count_others()
            page.update_status()
        elif search.reason is not None:
            page.show_message(search.reason)
        else:
            page.show_message(f"{search.pattern.text} is not found in {page.searched_rows}")

    def stop(self) -> None:
        """End the search."""
        for timer in (self._timer, self._counting):
            if timer is not None:
                timer.stop()
        self._timer = self._counting = None
        if self._search is not None:
            self._search.stop()

    @property
    def turn(self) -> str:
        """The note that the last match was found from the other end of the list; otherwise empty."""
        if not self._has_turned or self.is_going_on or not self._is_on_match:
            return ""
        return f"search went on from the {'top' if self._step > 0 else 'end'}"

    def forget_turn(self) -> None:
        """Forget that note, because other rows are listed."""
        self._has_turned = False

    @property
    def is_going_on(self) -> bool:
        """Whether the search for the next match is running."""
        return self._timer is not None

    # -- the number of matches ----------------------------------------------------------------------

    def _count_others(self) -> None:
        """Search the rows that were not searched on the way to a match, to count the matches."""
        search = self._search
        assert search is not None
        search.ask_others(MOST_COUNTED)
        if search.is_going_on:
            self._counting = self._page.set_interval(COUNT_SECONDS, self._count_on)

    def _count_on(self) -> None:
        search = self._search
        assert search is not None
        search.poll()
        if not search.is_going_on and self._counting is not None:
            self._counting.stop()
            self._counting = None
        if self.which != self._shown_text:
            self._page.update_status()

    @property
    def is_counting(self) -> bool:
        """Whether matches are being counted."""
        return self._counting is not None

    @property
    def which(self) -> str:
        """The number of the match under the cursor among all; empty if unknown."""
        if self._search is None or not self._is_on_match:
            return ""
        count = self._search.count(self._page.searched_list.cursor)
        return "" if count is None else count.text

    def status_text(self) -> str:
        """The text of :meth:`which` for the status. It counts as shown from now on."""
        self._shown_text, self._is_turn_told = self.which, bool(self.turn)
        return self._shown_text

    @property
    def has_left_match(self) -> bool:
        """Whether the status still names a match that is not under the cursor any more."""
        return (bool(self._shown_text) or self._is_turn_told) and not self._is_on_match

    @property
    def _is_on_match(self) -> bool:
        return self._match is not None and self._page.row_under_cursor == self._match

    def close(self) -> None:
        """Stop the process."""
        if self._asker is not None:
            self._asker.close()
