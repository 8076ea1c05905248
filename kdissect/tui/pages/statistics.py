"""Screens with a list of figures that are counted beside them; some can be grouped in other ways."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer

from kdissect.analysis.fold import Row
from kdissect.feed.counting import Asked
from kdissect.feed.statistics import CountedTables, Statistics
from kdissect.feed.stories import Subject
from kdissect.filter.errors import FilterError
from kdissect.present.form import Clock, plural
from kdissect.present.options import Options
from kdissect.present.statistics import STATISTICS
from kdissect.tui.copying import shown_command
from kdissect.tui.keys import bindings_of
from kdissect.tui.lists.figures import Figures
from kdissect.tui.pages.listed import Copies, OrderedScreen, Saved, no_row
from kdissect.tui.pages.page import Page
from kdissect.tui.widgets import status
from kdissect.tui.widgets.status import Item
from kdissect.tui.widgets.table import VirtualTable

TICK_SECONDS = 0.1


WHOLE, SHOWN = "the capture", "what the filter shows"
"""The basis of figures, in words."""
OF_ALL_CLUSTERS = (
    "Several clusters use this name. No filter tells them apart: the exchanges of all of them are shown."
)
ALL_ROWS = "All rows"
"""The word in the footer for leaving a list that shows only some rows."""


class StatisticsPage(Page, OrderedScreen):
    """A screen with a table of figures."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("statistics")
    OF_WHAT = "figures of what the filter shows"
    """The text about the figures, if there is a filter."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.rows = self.figures()
        self.counted: CountedTables | None = None
        """The counts from which the rows were made."""
        self._polling: Timer | None = None
        self._polled_at = 0.0
        """The time of the last poll, by :func:`time.monotonic`."""
        self._waited_for_filter: float | None = None
        """The progress of the filter at the last poll."""

    # -- defined by each screen ---------------------------------------------------------------------

    def figures(self) -> Figures:
        """The empty rows of the table."""
        raise NotImplementedError

    def needed_statistics(self) -> Asked:
        """The statistics to count, by their names in ``stats -z``."""
        raise NotImplementedError

    def fill(self, counted: CountedTables) -> None:
        """Make the rows from the counted statistics."""
        raise NotImplementedError

    def filter_of(self, row: Row) -> str | None:
        """The filter that shows the exchanges of a row; None if no filter does."""
        return None

    def opened(self) -> Iterable[Row]:
        """All rows whose exchanges can be shown."""
        return self.rows.all

    def note_of(self, row: Row) -> str:
        """What the user must know about the filter of a row; empty for nothing. No filter tells clusters
        apart, because an exchange does not say its cluster."""
        text, cluster = self.filter_of(row), row.get("cluster_id")
        others = (each for each in self.opened() if each.get("cluster_id") != cluster)
        return OF_ALL_CLUSTERS if any(self.filter_of(each) == text for each in others) else ""

    def subject_of(self, row: Row) -> Subject | None:
        """The subject of a row's story; None for that of its exchange."""
        return None

    def exchange_of(self, row: Row) -> int | None:
        """The number of the exchange that a row points to; None without one."""
        return None

    def near(self, row: Row) -> int | None:
        """The place in the index of the exchange to which the cursor goes among the exchanges of a row; None
        for the first."""
        return None

    def rows_text(self) -> str:
        """The kind and the number of the rows, for the line below."""
        raise NotImplementedError

    def listed(self) -> str:
        """The subject of a row, in the singular, for the line of an empty list; if it is empty, there is no
        such line."""
        return ""

    def saved(self) -> list[Saved]:
        """The tables that can be saved."""
        found = self.counted.tables if self.counted is not None else {}
        return [Saved(text, STATISTICS[text.partition(",")[0]], rows) for text, rows in found.items()]

    @property
    def statistics(self) -> Statistics:
        """The counter of this screen's statistics."""
        return self.kdissect.statistics

    # -- showing --------------------------------------------------------------------------------------

    def body(self) -> ComposeResult:
        yield VirtualTable(self.rows, id="list")

    @property
    def list_pane(self) -> VirtualTable:
        return self.query_one("#list", VirtualTable)

    @property
    def options(self) -> Options:
        return self.kdissect.options

    @property
    def first_pane(self) -> VirtualTable:
        """The widget that has the focus at first."""
        return self.list_pane

    @property
    def names(self) -> frozenset[str]:
        """The statistics that the screen may show."""
        return frozenset(text.partition(",")[0] for text in self.needed_statistics())

    def show_table(self, name: str) -> None:
        """Show the rows of one of :attr:`names`, now or when this screen is made. Here they are always
        shown."""

    def on_mount(self) -> None:
        self.clock.letter = self.kdissect.settings.time
        self.first_pane.focus()

    def on_screen_resume(self) -> None:
        self.request_judgement()

    def request_judgement(self) -> None:
        """Ask for the statistics of the screen."""
        self.statistics.request(self.needed_statistics())

    def on_screen_suspend(self) -> None:
        self.statistics.release(self.needed_statistics())
        self._stop_polling()

    def shown(self) -> int:
        shown = self.kdissect.shown
        return len(shown.places) if shown.is_filtered else len(self.kdissect.index)

    def index_grew(self) -> None:
        super().index_grew()
        if self.clock.first_ns is None:
            self.clock.first_ns = self.kdissect.index.first_ns
        self._poll()
        if self._polling is None and self.statistics.is_busy:
            self._polling = self.set_interval(TICK_SECONDS, self._poll_unless_answering)

    @property
    def is_at_rest(self) -> bool:
        """Whether all requested statistics are shown."""
        return not self.statistics.is_busy

    def _stop_polling(self) -> None:
        if self._polling is not None:
            self._polling.stop()
            self._polling = None

    def _poll_unless_answering(self) -> None:
        if not self.kdissect.is_answering(self._polled_at):
            self._poll(only_news=True)

    def _poll(self, *, only_news: bool = False) -> None:
        """Take in results.

        :param only_news: whether to write about the list only if there are any, or a filter has gone on.
        """
        if not self.has_panes:
            return
        self._polled_at = time.monotonic()
        statistics, waited = self.statistics, self._waited_for_filter
        has_news = statistics.poll()
        self._waited_for_filter = statistics.waits_for_filter
        counted = statistics.result(self.needed_statistics())
        if counted is not None and counted is not self.counted:
            self.counted = counted
            self.refill()
        if has_news or not only_news or waited != self._waited_for_filter or not statistics.is_busy:
            self.update_message()
        if not statistics.is_busy:
            self._stop_polling()

    def refill(self) -> None:
        """Make the rows again; the cursor stays on its row, or on the first."""
        if self.counted is None:
            return
        with_cursor = self.row_with_cursor()
        self.fill(self.counted)
        self.rows_changed(with_cursor)

    def update_message(self) -> None:
        """Write the listed rows and the necessary notes below, as many as there is room for."""
        self.list_pane.show_empty(self.why_empty())
        self.show_notes(self.notes())

    def restore_message(self) -> None:
        self.update_message()

    @property
    def way_out(self) -> str:
        return ALL_ROWS if self.rows.is_narrow else super().way_out

    def take_back(self) -> bool:
        return self.show_all_rows() or super().take_back()

    @property
    def made_of(self) -> str:
        """The basis of the figures: :data:`WHOLE` or :data:`SHOWN`. The filter may hide data that seems
        absent."""
        is_narrow = self.statistics is self.kdissect.statistics and self.kdissect.shown.is_filtered
        return SHOWN if is_narrow else WHOLE

    def why_empty(self) -> str:
        """The text below the headings if counting is finished and there are no rows."""
        listed = self.listed()
        if not listed or self.counted is None or self.statistics.is_busy:
            return ""
        if self.rows.is_narrow:
            return no_row(self.rows)
        if self.made_of == SHOWN:
            return f"No {listed} is in {SHOWN}."
        so_far = " so far" if self.kdissect.ended is None else ""
        return f"No {listed} was captured{so_far}."

    def notes(self) -> list[str]:
        """The notes, the most important first."""
        statistics, counted = self.statistics, self.counted
        parts = [self.rows_text()] if counted is not None else []
        if statistics.reason is not None:
            parts.append(f"stopped: {statistics.reason}; leave the screen and come back to count again")
        elif statistics.waits_for_filter is not None:
            parts.append(f"waiting for the filter: {100 * statistics.waits_for_filter:.0f} %")
        elif statistics.is_busy:
            done = 100 * counted.exchanges // counted.of if counted is not None and counted.of else 0
            parts.append(f"counting: {done} %")
        elif self.kdissect.shown.is_filtered and not self.shown():
            parts = [self.kdissect.shown.why_none]
        if counted is not None and counted.left_out:
            most = self.kdissect.feed.source.limits.rows
            parts.append(
                f"only the first {most:,} rows are kept; {plural(counted.left_out, 'count')} left out"
            )
        return parts

    @property
    def of_what(self) -> str:
        """The text at the top if there is a filter."""
        return self.OF_WHAT

    @property
    def of_what_rank(self) -> int:
        """The importance of that text among all facts at the top."""
        return status.ORDER

    def status(self) -> list[Item]:
        out = super().status()
        if self.kdissect.shown.is_filtered:
            out.append(Item(self.of_what, self.of_what_rank, "bold"))
        return out

    @property
    def has_story(self) -> bool:
        return bool(len(self.rows))

    def chosen_subject(self) -> Subject | None:
        row = self.chosen_row()
        return None if row is None else self.subject_of(row)

    def chosen_place(self) -> int | None:
        row = self.chosen_row()
        number = None if row is None else self.exchange_of(row)
        return None if number is None else self.kdissect.place_of(number)

    def copies(self, row: Row) -> Copies:
        text, source = self.filter_of(row), self.kdissect.feed.source
        more: dict[str, Callable[[], str]] = {}
        if text is not None:
            more["filter"] = lambda: text
            if not source.is_live:
                more["kdissect read"] = partial(shown_command, text, source.paths)
        return {**super().copies(row), **more}

    def open(self, row: Row) -> None:
        """Show the exchanges of a row."""
        text = self.filter_of(row)
        if text is None:
            self.show_message("no filter can select the exchanges of this row")
            return
        try:
            self.kdissect.filter_by(text, self.near(row), self.note_of(row))
        except FilterError as error:
            self.show_message(f"there is no filter for this: {error}")


class GroupedTable(VirtualTable, inherit_bindings=False):
    """A table that leaves the key of ``first`` to the screen, which uses it for the grouping; Home still goes
    to the first row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        replace(each, key="home") if isinstance(each, Binding) and each.id == "first" else each
        for each in bindings_of("list")
    ]


class GroupedScreen(StatisticsPage):
    """A screen whose rows can be grouped in several ways."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("grouped")
    GROUPINGS: ClassVar[tuple[str, ...]]
    """The groupings in the order in which the key cycles through them."""

    def __init__(self) -> None:
        self.grouping = self.GROUPINGS[0]
        super().__init__()

    @property
    def other_groupings(self) -> list[str]:
        """The groupings that are not chosen now."""
        return [each for each in self.GROUPINGS if each != self.grouping]

    def action_group(self) -> None:
        at = self.GROUPINGS.index(self.grouping)
        self.grouping = self.GROUPINGS[(at + 1) % len(self.GROUPINGS)]
        self.regroup()

    def regroup(self) -> None:
        """Handle a change of the grouping."""
        raise NotImplementedError


class GroupedPage(GroupedScreen):
    """A screen whose groupings are counted separately."""

    def needed_statistics(self) -> Asked:
        return self.statistics_by(self.grouping)

    def statistics_by(self, grouping: str) -> Asked:
        """The statistics that a grouping needs."""
        raise NotImplementedError

    @property
    def names(self) -> frozenset[str]:
        asked = (text for grouping in self.GROUPINGS for text in self.statistics_by(grouping))
        return frozenset(text.partition(",")[0] for text in asked)

    def body(self) -> ComposeResult:
        yield GroupedTable(self.rows, id="list")

    def show_table(self, name: str) -> None:
        """Use the grouping of the table. If the rows are already from this table, keep their grouping."""
        before = self.grouping

        def how_well(grouping: str) -> tuple[bool, bool, bool]:
            names = [text.partition(",")[0] for text in self.statistics_by(grouping)]
            return names[0] == name, name in names, grouping == before

        self.grouping = max(self.GROUPINGS, key=how_well)
        if self.grouping != before and self.is_mounted:
            self.regroup()

    def regroup(self) -> None:
        self.counted = None
        self.statistics.request(self.needed_statistics())
        self.list_pane.cursor = 0
        self.index_grew()

    def notes(self) -> list[str]:
        return [*super().notes(), f"by {self.grouping} (g: {', '.join(self.other_groupings)})"]
