"""Figures for a time line, made beside the screen: of all exchanges, and of those that a filter shows."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from textual.worker import get_current_worker

from kdissect.feed.index import Places
from kdissect.feed.summary import OverTime, over_same_time, over_time
from kdissect.tui.pages.ordering import Sparing
from kdissect.tui.pages.page import Page
from kdissect.tui.widgets.time_line import TimeLine


class FiguresOverTime:
    """The figures of the time line of a page.

    :param came: called when the time line shows other figures, with whether there are any.
    """

    def __init__(self, page: Page, came: Callable[[bool], None]) -> None:
        self._page, self._came = page, came
        self._making = Sparing()
        self._wanted: tuple[tuple[int, int], tuple[str, int] | None] = (-1, -1), None
        """Of how many exchanges figures were made last, and in how many columns; and with which filter."""
        self._made = -1, -1
        """Of how many exchanges the figures of all are that are drawn, and in how many columns."""

    @property
    def _time_line(self) -> TimeLine:
        return self._page.query_one(TimeLine)

    def make(self) -> None:
        """Make them anew if there are more exchanges, as often as that takes little of the time."""
        app = self._page.kdissect
        shown = app.shown
        # The axis shows a range of time: it is no filter here.
        filtered = (shown.text, shown.version) if shown.is_filtered and shown.written else None
        wanted = (len(app.index), self._time_line.spans), filtered
        (_, spans), before = self._wanted
        is_other = wanted[0][1] != spans or (filtered or ("",))[0] != (before or ("",))[0]
        is_whole = app.ended is not None and shown.progress is None
        if wanted != self._wanted and (is_whole or is_other or self._making.is_due):
            self._wanted = wanted
            whole = self._time_line.over_time if wanted[0] == self._made else None
            places = None if filtered is None else shown.places
            make = partial(self._make, wanted[0], whole, places)
            self._page.run_worker(make, thread=True, exclusive=True, group="time")

    def _make(self, of: tuple[int, int], whole: OverTime | None, places: Places | None) -> None:
        """Make the figures of all, unless they are there, and of those that the filter shows."""
        began = time.monotonic()
        app = self._page.kdissect
        found = over_time(app.index, of[1]) if whole is None else whole
        some = None if places is None or found is None else over_same_time(app.index, places, found)
        self._making.done(began)
        if not get_current_worker().is_cancelled:
            app.call_from_thread(self._show, of, found, some)

    def _show(self, of: tuple[int, int], found: OverTime | None, some: OverTime | None) -> None:
        self._made = of
        self._time_line.show(found, self._time_line.marks, some)
        self._came(found is not None)
