"""Figures that are computed beside the screen, as often as that takes little of the time.

Those of the listed exchanges are for the status and for the scroll bar. Those of all exchanges, and of the
filtered ones, are for the time line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.color import Color
from rich.segment import Segment, Segments
from rich.style import Style
from textual.scrollbar import ScrollBarRender
from textual.worker import get_current_worker

from kdissect.analysis.fold import MILLISECOND
from kdissect.feed.columns import limits_of, slowness_of
from kdissect.feed.index import Places
from kdissect.feed.summary import NOTHING, OverTime, Summary, over_same_time, over_time, summarise, where_bad
from kdissect.present.form import bars, duration
from kdissect.tui.colors import legible
from kdissect.tui.lists import WIDE_WIDTH
from kdissect.tui.lists.exchanges import Exchanges
from kdissect.tui.pages.arranging import Sparing
from kdissect.tui.pages.page import Page
from kdissect.tui.pages.split import SplitPage
from kdissect.tui.widgets import status
from kdissect.tui.widgets.status import Item
from kdissect.tui.widgets.time_line import TimeLine

PARTS = 512
"""The number of equal parts of the list that are distinguished: more than a screen has lines."""
SIGN = "▪"


class BadMarks:
    """Draws a scroll bar, in place of Textual's own renderer.

    :param color: gives the colour of a mark in the current theme.
    """

    def __init__(self, color: Callable[[], Color | None]) -> None:
        self._color = color
        self._parts: Sequence[int] = ()

    def show(self, parts: Sequence[int]) -> bool:
        """Mark these of the :data:`PARTS` of the list; return whether the marks changed."""
        before, self._parts = self._parts, parts
        return before != parts

    def __call__(self, **given: Any) -> ScrollBarRender:
        return _MarkedBar(self._parts, self._color(), given)


class _MarkedBar(ScrollBarRender):
    """Textual's bar, with signs on it."""

    def __init__(self, parts: Sequence[int], mark: Color | None, given: Mapping[str, Any]) -> None:
        super().__init__(**given)
        self._parts, self._mark = parts, mark

    def render_bar(self, **given: Any) -> Segments:  # type: ignore[override]
        bar = super().render_bar(**given)
        size, thickness = given["size"], given["thickness"]
        segments = list(bar.segments)
        if not given["window_size"] or len(segments) < size:
            return bar  # all of the list is on the screen
        for line in {part * size // PARTS for part in self._parts}:
            under = segments[line].style or Style()
            behind = given["bar_color"] if under.reverse else given["back_color"]
            style = legible(Style(color=self._mark, bgcolor=behind)) + Style(meta=under.meta)
            segments[line] = Segment(f"{SIGN:<{thickness}}", style)
        return Segments(segments, new_lines=True)


class ListSummary:
    """The figures of the list of a page.

    :param came: called after a change of the figures.
    """

    def __init__(self, page: SplitPage, rows: Exchanges, came: Callable[[], None]) -> None:
        self._page, self._rows, self._came = page, rows, came
        self.figures: Summary = NOTHING
        self._making = Sparing()
        self._wanted: Places | None = None
        """The view whose figures were last requested."""

    def put_on_scroll_bar(self) -> None:
        """Mark errors and faults on the scroll bar."""
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
            out.append(status.shown_errors_text(found.graded, page.alarm))
        if page.app.size.width >= WIDE_WIDTH and found.per_second is not None:
            over_time = f"exchanges over time {bars(found.counts)} {found.per_second:,.0f}/s"
            out.append(Item(over_time, status.RATE))
        return out

    def make_if_due(self, is_last: bool) -> None:
        """Compute them again if the list has changed, as often as that takes little of the time.

        :param is_last: no more exchanges are expected.
        """
        if self._wanted is not self._rows.view and (is_last or self._making.is_due):
            self.make()

    def make(self) -> None:
        """Compute the figures again."""
        self._wanted = self._rows.view
        make = partial(self._make, self._rows.view)
        self._page.run_worker(make, thread=True, exclusive=True, group="summary")

    def _make(self, view: Places) -> None:
        app, began = self._page.kdissect, time.monotonic()
        slow_ms = app.settings.slow_ms
        slowness = slowness_of(app.index, None if slow_ms is None else slow_ms * MILLISECOND)
        found, slow = summarise(app.index, view), limits_of(app.index, slowness)
        bad = where_bad(app.index, view, PARTS)
        self._making.done(began)
        if not get_current_worker().is_cancelled:
            app.call_from_thread(self._show, found, slow, bad)

    def _show(self, found: Summary, slow: NDArray[np.int64], bad: tuple[int, ...]) -> None:
        self.figures, self._rows.texts.slow = found, slow
        if self._bad_marks.show(bad):
            self._page.list_pane.vertical_scrollbar.refresh()
        self._page.list_pane.rows_changed()  # which draws it only if another row on the screen is slow
        self._came()


class FiguresOverTime:
    """The figures of the time line of a page.

    :param came: called when the time line shows other figures, with whether there are any.
    """

    def __init__(self, page: Page, came: Callable[[bool], None]) -> None:
        self._page, self._came = page, came
        self._making = Sparing()
        self._wanted: tuple[tuple[int, int], tuple[str, int] | None] = (-1, -1), None
        """The request of the last figures: the number of exchanges, the number of columns, and the filter."""
        self._made = -1, -1
        """The number of exchanges and of columns of the drawn figures of all exchanges."""

    @property
    def _time_line(self) -> TimeLine:
        return self._page.query_one(TimeLine)

    def make(self) -> None:
        """Compute them again if there are more exchanges, as often as that takes little of the time."""
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
        """Compute the figures of all exchanges, unless they exist, and of the filtered ones."""
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
