"""The ladder: the exchanges of a client, or those that are marked, as arrows between lanes."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType

from kdissect.present.form import plural
from kdissect.settings.actions import PLACES
from kdissect.tui.keys import bindings_of
from kdissect.tui.lists.ladder import (
    Events,
    Ladder,
    Lanes,
    Snapshot,
    events_of,
    hosts_of,
    lanes_of,
    of_client,
    of_numbers,
    snapshot,
)
from kdissect.tui.pages.page import Page
from kdissect.tui.widgets.table import VirtualTable

REBUILD_SHARE = 0.1
"""How much of the time, at most, goes into building a ladder that grows."""

TIMES = "ra"
"""Forms of times, in the order in which the key goes through them."""

Hosts = tuple[NDArray[np.uint32], list[str]]


class LadderPage(Page):
    """The screen. What a filter hides elsewhere is shown here: a ladder with missing arrows misleads."""

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("ladder")
    BINDING_GROUP_TITLE = PLACES["ladder"]

    def __init__(self) -> None:
        super().__init__()
        self._place: int | None = None
        """Of the exchange whose client is shown."""
        self._marked: tuple[int, ...] = ()
        """Numbers of the exchanges that are shown instead."""
        self._built: tuple[int, int | None, tuple[int, ...]] | None = None
        """How many exchanges there were, and what was asked for, when the ladder was built last."""
        self._built_at = self._build_seconds = 0.0
        self._shown_for: tuple[int | None, tuple[int, ...]] | None = None
        """What was asked for that is shown."""

    def body(self) -> ComposeResult:
        self.rows = Ladder(self.kdissect.index)
        yield VirtualTable(self.rows, id="list")

    def on_mount(self) -> None:
        self.table.focus()

    @property
    def table(self) -> VirtualTable:
        return self.query_one("#list", VirtualTable)

    def show_client_of(self, place: int) -> None:
        """Show all connections of the client of an exchange."""
        self._place, self._marked = place, ()

    def show_marked(self, place: int | None) -> None:
        """Show the marked exchanges, the cursor on one of them."""
        self._place, self._marked = place, tuple(sorted(self.kdissect.marks.numbers))

    def is_of_marks_on(self, screen: object) -> bool:
        """Whether it is the screen that is shown, with the marked exchanges."""
        return screen is self and bool(self._marked)

    def index_grew(self) -> None:
        super().index_grew()
        wanted = (len(self.kdissect.index), self._place, self._marked)
        is_other = self._built is None or wanted[1:] != self._built[1:]
        waited = time.monotonic() - self._built_at
        is_time = waited >= self._build_seconds / REBUILD_SHARE or self.kdissect.ended is not None
        if self.is_mounted and self.is_current and (is_other or (wanted != self._built and is_time)):
            self._built, self._built_at = wanted, time.monotonic()
            self._build(snapshot(self.kdissect.index), list(self.kdissect.index.texts), wanted[1], wanted[2])

    @work(thread=True, exclusive=True, group="ladder")
    def _build(self, columns: Snapshot, texts: list[str], place: int | None, marked: tuple[int, ...]) -> None:
        hosts = hosts_of(texts)
        if marked:
            places = of_numbers(columns, marked)
        elif place is not None and place < len(columns.number):
            places = of_client(columns, place, hosts[0])
        else:
            places = np.zeros(0, np.uint32)
        events = events_of(columns, places)
        lanes = lanes_of(columns, places, hosts[0], is_one_client=not marked)
        self.app.call_from_thread(self._show, events, lanes, hosts, place)

    def _show(self, events: Events, lanes: Lanes, hosts: Hosts, place: int | None) -> None:
        self._build_seconds = time.monotonic() - self._built_at
        is_first = not len(self.rows) or self._shown_for != (place, self._marked)
        self._shown_for = (place, self._marked)
        self.rows.show(events, lanes, hosts)
        row = self.rows.row_of(place) if is_first and place is not None else None
        self.table.rows_changed(row)
        if not len(self.rows):
            shown = self.kdissect.shown
            self.say(shown.why_none if shown.is_filtered else "there is no exchange to show")
            return
        what = f"{len(self._marked):,} marked" if self._marked else f"all connections of {self._client()}"
        brokers = plural(len(lanes.brokers), "broker")
        self.say(f"{what}, {brokers}, {plural(len(self.rows), 'message')}; Enter shows the exchange")

    def _client(self) -> str:
        index, place = self.kdissect.index, self._place
        if place is None:
            return ""
        return index.text("client_id", place) or index.text("client", place)

    def chosen_place(self) -> int | None:
        return self.rows.place(self.table.cursor) if len(self.rows) else None

    @property
    def is_at_rest(self) -> bool:
        """Whether what was asked for is shown."""
        return self._shown_for == (self._place, self._marked)

    @on(VirtualTable.Chosen)
    def _chosen(self, event: VirtualTable.Chosen) -> None:
        self.kdissect.show_exchange(self.rows.place(event.row))

    def action_times(self) -> None:
        clock = self.rows.clock
        clock.letter = TIMES[(TIMES.index(clock.letter) + 1) % len(TIMES)]
        self.table.rows_look_different()

    def action_next_bad(self, step: int) -> None:
        """Go to the next response with an error."""
        rows, index = self.rows, self.kdissect.index
        which = rows.events.which
        bad = np.flatnonzero(index.has_errors()[which >> 1] & ((which & 1) == 1))
        cursor = self.table.cursor
        bad = bad[bad > cursor] if step > 0 else bad[bad < cursor][::-1]
        if len(bad):
            self.table.cursor = int(bad[0])
        else:
            self.say("no error after this" if step > 0 else "no error before this")
