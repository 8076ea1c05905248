"""The ladder: exchanges as arrows between lanes. They are of a client, of a story, marked, or all shown."""

from __future__ import annotations

import time
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType

from kdissect.feed.index import Places
from kdissect.present.form import plural
from kdissect.present.sanitise import sanitise
from kdissect.settings.places import PLACES
from kdissect.tui.keys import bindings_of
from kdissect.tui.lists.ladder import (
    Ladder,
    LadderEvents,
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
"""The greatest share of the time for building a growing ladder."""

TIMES = "ra"
"""The forms of times, in the order in which the key cycles through them."""

Hosts = tuple[NDArray[np.uint32], list[str]]

OF_CLIENT, OF_MARKED, OF_SHOWN, OF_STORY = "client", "marked", "shown", "story"


class Drawn(NamedTuple):
    """The exchanges of a ladder."""

    kind: str
    """One of the four kinds."""
    place: int | None = None
    """The place in the index of the exchange on which the cursor begins, and whose client is drawn."""
    numbers: tuple[int, ...] = ()
    """The numbers of the marked exchanges, or of those of the story."""
    title: str = ""
    """The title of the story."""


class LadderPage(Page):
    """The screen. A ladder of a client ignores the filter, because missing arrows would mislead.

    The key goes on to the ladder of all shown exchanges.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings_of("ladder")
    BINDING_GROUP_TITLE = PLACES["ladder"]

    def __init__(self) -> None:
        super().__init__()
        self._drawn = Drawn(OF_CLIENT)
        self._others: tuple[Drawn, ...] = ()
        """The ladders to which the key goes on."""
        self._built: tuple[object, ...] | None = None
        """The data and the request for which the ladder was last built."""
        self._built_at = self._build_seconds = 0.0
        self._shown_for: Drawn | None = None
        """The request whose ladder is shown."""
        self._brokers = 0

    def body(self) -> ComposeResult:
        self.rows = Ladder(self.kdissect.index, self.kdissect.exchange_at)
        yield VirtualTable(self.rows, id="list")

    def on_mount(self) -> None:
        self.table.focus()

    @property
    def table(self) -> VirtualTable:
        return self.query_one("#list", VirtualTable)

    def draw(self, place: int | None, story: Drawn | None = None) -> None:
        """Draw the story; else the marked exchanges; else those of the client of an exchange. The key goes on
        to the others, and to all shown exchanges.

        :param place: the place of the exchange under the cursor.
        """
        numbers = tuple(sorted(self.kdissect.marks.numbers))
        marked = Drawn(OF_MARKED, place, numbers) if numbers else None
        ways = (story, marked, Drawn(OF_CLIENT, place), Drawn(OF_SHOWN, place))
        self._drawn, *others = (each for each in ways if each is not None)
        self._others = tuple(others)

    def draw_next(self) -> None:
        """Draw the next of the ladders."""
        place = self.chosen_place()
        self._others = (*self._others, self._drawn)
        self._drawn, *others = self._others
        self._drawn = self._drawn._replace(place=self._drawn.place if place is None else place)
        self._others = tuple(others)
        self.index_grew()

    def index_grew(self) -> None:
        super().index_grew()
        version = self.kdissect.shown.version if self._drawn.kind == OF_SHOWN else 0
        wanted = (self._drawn, version, len(self.kdissect.index))
        is_other = self._built is None or wanted[:2] != self._built[:2]
        waited = time.monotonic() - self._built_at
        is_time = waited >= self._build_seconds / REBUILD_SHARE or self.kdissect.ended is not None
        if self.is_mounted and self.is_current and (is_other or (wanted != self._built and is_time)):
            self._built, self._built_at = wanted, time.monotonic()
            shown = self.kdissect.shown.places if self._drawn.kind == OF_SHOWN else None
            self._build(snapshot(self.kdissect.index), list(self.kdissect.index.texts), self._drawn, shown)

    @work(thread=True, exclusive=True, group="ladder")
    def _build(self, columns: Snapshot, texts: list[str], drawn: Drawn, shown: Places | None) -> None:
        hosts = hosts_of(texts)
        if shown is not None:
            places = shown
        elif drawn.numbers:
            places = of_numbers(columns, drawn.numbers)
        elif drawn.place is not None and drawn.place < len(columns.number):
            places = of_client(columns, drawn.place, hosts[0])
        else:
            places = np.zeros(0, np.uint32)
        events = events_of(columns, places)
        lanes = lanes_of(columns, places, hosts[0], is_one_client=drawn.kind == OF_CLIENT)
        self.app.call_from_thread(self._show, events, lanes, hosts, drawn)

    def _show(self, events: LadderEvents, lanes: Lanes, hosts: Hosts, drawn: Drawn) -> None:
        self._build_seconds = time.monotonic() - self._built_at
        is_first = not len(self.rows) or self._shown_for != drawn
        self._shown_for = drawn
        self.rows.show(events, lanes, hosts)
        row = self.rows.row_of(drawn.place) if is_first and drawn.place is not None else None
        self.table.rows_changed(row)
        if row is not None:
            self.table.go_to(row)
        if not len(self.rows):
            filtered = self.kdissect.shown
            self.show_message(filtered.why_none if filtered.is_filtered else "there is no exchange to show")
            return
        self._brokers = len(lanes.brokers)
        self.restore_message()

    def restore_message(self) -> None:
        if self._shown_for is None or not len(self.rows):
            super().restore_message()
            return
        drawn, brokers = self._shown_for, plural(self._brokers, "broker")
        following = f"; L draws {self._title(self._others[0])}" if self._others else ""
        self.show_message(f"{self._title(drawn)}, {brokers}, {plural(len(self.rows), 'message')}{following}")

    def _title(self, drawn: Drawn) -> str:
        """The title of a ladder."""
        if drawn.kind == OF_MARKED:
            return f"the {len(drawn.numbers):,} marked"
        if drawn.kind == OF_STORY:
            return f"the story of {sanitise(drawn.title, 60)}"
        if drawn.kind == OF_SHOWN:
            return f"all {len(self.kdissect.shown.places):,} that are shown"
        return f"all connections of {self._client(drawn.place)}"

    def _client(self, place: int | None) -> str:
        index = self.kdissect.index
        if place is None:
            return ""
        return index.text("client_id", place) or index.text("client", place)

    def chosen_place(self) -> int | None:
        return self.rows.place(self.table.cursor) if len(self.rows) else None

    @property
    def is_at_rest(self) -> bool:
        """Whether the requested ladder is shown."""
        return self._shown_for == self._drawn

    @property
    def opens(self) -> str:
        return "Exchange"

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
        after, before = bad[bad > cursor], bad[bad < cursor][::-1]
        if len(after if step > 0 else before):
            self.table.go_to(int((after if step > 0 else before)[0]))
        elif step > 0:
            self.show_message("no error after this" + ("; E goes to the previous one" if len(before) else ""))
        else:
            self.show_message("no error before this" + ("; e goes to the next one" if len(after) else ""))
