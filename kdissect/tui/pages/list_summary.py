"""Figures of the exchanges that a list shows, made beside the screen: for the status and the scroll bar."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from textual.worker import get_current_worker

from kdissect.analysis.fold import MILLISECOND
from kdissect.feed.columns import limits_of, slowness_of
from kdissect.feed.index import Places
from kdissect.feed.summary import NOTHING, Summary, summarise, where_bad
from kdissect.present.form import bars, duration
from kdissect.tui.lists import WIDE_WIDTH
from kdissect.tui.lists.exchanges import Exchanges
from kdissect.tui.pages.ordering import Sparing
from kdissect.tui.pages.split import SplitPage
from kdissect.tui.widgets import bad_marks, status
from kdissect.tui.widgets.bad_marks import BadMarks
from kdissect.tui.widgets.status import Item


class ListSummary:
    """The figures of the list of a page.

    :param came: called when there are other figures.
    """

    def __init__(self, page: SplitPage, rows: Exchanges, came: Callable[[], None]) -> None:
        self._page, self._rows, self._came = page, rows, came
        self.figures: Summary = NOTHING
        self._making = Sparing()
        self._wanted: Places | None = None
        """The view of which figures were made last."""

    def put_on_scroll_bar(self) -> None:
        """Draw on the scroll bar where something is wrong."""
        table = self._page.list_pane
        self._bad_marks = BadMarks(lambda: table.get_component_rich_style("table--error").color)
        bar: Any = table.vertical_scrollbar
        bar.renderer = self._bad_marks

    def items(self) -> list[Item]:
        """The figures for the status."""
        page, found, out = self._page, self.figures, []
        if found.p50_ns is not None and found.p99_ns is not None:
            out.append(Item(f"work p99 {duration(found.p99_ns)}", status.WORK))
            out.append(Item(f"p50 {duration(found.p50_ns)}", status.MEDIAN))
        if page.kdissect.shown.is_filtered:
            out.append(status.errors_of_them(found.graded, page.alarm))
        if page.app.size.width >= WIDE_WIDTH and found.per_second is not None:
            over_time = f"exchanges over time {bars(found.counts)} {found.per_second:,.0f}/s"
            out.append(Item(over_time, status.RATE))
        return out

    def make_if_due(self, is_last: bool) -> None:
        """Make them anew if the list shows others, as often as that takes little of the time.

        :param is_last: nothing more is expected to come.
        """
        if self._wanted is not self._rows.view and (is_last or self._making.is_due):
            self.make()

    def make(self) -> None:
        """Make them anew."""
        self._wanted = self._rows.view
        make = partial(self._make, self._rows.view)
        self._page.run_worker(make, thread=True, exclusive=True, group="summary")

    def _make(self, view: Places) -> None:
        app, began = self._page.kdissect, time.monotonic()
        slow_ms = app.settings.slow_ms
        slowness = slowness_of(app.index, None if slow_ms is None else slow_ms * MILLISECOND)
        found, slow = summarise(app.index, view), limits_of(app.index, slowness)
        bad = where_bad(app.index, view, bad_marks.PARTS)
        self._making.done(began)
        if not get_current_worker().is_cancelled:
            app.call_from_thread(self._show, found, slow, bad)

    def _show(self, found: Summary, slow: NDArray[np.int64], bad: tuple[int, ...]) -> None:
        self.figures, self._rows.texts.slow = found, slow
        if self._bad_marks.show(bad):
            self._page.list_pane.vertical_scrollbar.refresh()
        self._page.list_pane.rows_changed()  # which draws it only if another row on the screen is slow
        self._came()
