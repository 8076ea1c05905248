"""The screen of exchanges: the list, and the exchange under its cursor as a tree and as bytes."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import Footer, Static
from textual.worker import get_current_worker

from kdissect.present.form import TIMES as TIMES_MEANING
from kdissect.tui.copying import FORMS as COPY_FORMS
from kdissect.tui.copying import copied
from kdissect.tui.detail import Detail
from kdissect.tui.lists.exchanges import SORTS, TIMES, Exchanges
from kdissect.tui.pages.page import Page
from kdissect.tui.saving import CannotSaveError, save
from kdissect.tui.widgets.bytes_pane import BytesPane
from kdissect.tui.widgets.dialogs import Ask, Choose
from kdissect.tui.widgets.panes import DetailPanes, FieldTree
from kdissect.tui.widgets.table import VirtualTable

REST_SECONDS = 0.05
"""How long the cursor must rest before the exchange under it is shown."""
NARROW, LOW, HEX_WIDE = 100, 30, 158
"""Fewer columns or lines than these have room for one pane; from the last there are 16 bytes a line."""
SORT_SHARE = 0.1
"""How much of the time, at most, goes into ordering a list that grows."""


class ExchangesPage(Page):
    """The screen."""

    DEFAULT_CSS = """
    ExchangesPage #panes { border-top: hkey $panel; }
    ExchangesPage.-one-pane #panes { display: none; border-top: none; }
    ExchangesPage.-one-pane.-in #panes { display: block; }
    ExchangesPage.-one-pane.-in VirtualTable { display: none; }
    ExchangesPage.-one-pane #bytes { display: none; width: 1fr; border-left: none; }
    ExchangesPage.-one-pane.-hex #bytes { display: block; }
    ExchangesPage.-one-pane.-hex #tree { display: none; }
    ExchangesPage.-no-bytes #bytes { display: none; }
    ExchangesPage.-zoom-table #panes { display: none; }
    ExchangesPage.-zoom-tree VirtualTable, ExchangesPage.-zoom-tree #bytes { display: none; }
    ExchangesPage.-zoom-bytes VirtualTable, ExchangesPage.-zoom-bytes #tree { display: none; }
    ExchangesPage.-zoom-bytes #bytes { width: 1fr; border-left: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "next_bad(1)", "Next error"),
        Binding("E", "next_bad(-1)", "Error before", show=False),
        Binding("s", "sort", "Sort"),
        Binding("S", "turn", "Turn", show=False),
        Binding("f", "connection", "Connection", show=False),
        Binding("F", "follow", "Follow", show=False),
        Binding("t", "times", "Times", show=False),
        Binding("x", "bytes", "Bytes"),
        Binding("backslash", "zoom", "Zoom", show=False),
        Binding("plus,equals_sign", "room(1)", "More list", show=False),
        Binding("minus", "room(-1)", "Less list", show=False),
        Binding("y", "copy", "Copy"),
        Binding("w", "save", "Save"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.sort, self.descending = "number", False
        self.only_connection: int | None = None
        self.follow = False
        self._share = 5
        self._rest: Timer | None = None
        self._place: int | None = None
        """Of the exchange that is shown."""
        self._ordered = 0
        """How many exchanges there were when the list was put in order."""
        self._ordered_at = self._order_seconds = 0.0

    def compose(self) -> ComposeResult:
        self.rows = Exchanges(self.kdissect.index)
        self.rows.clock.letter = self.kdissect.time_form
        yield Static(id="status", markup=False)
        yield VirtualTable(self.rows, id="list")
        yield DetailPanes(id="panes")
        yield Static(id="where", markup=False)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.list_pane.focus()
        self.set_room()
        self.index_grew()

    @property
    def list_pane(self) -> VirtualTable:
        return self.query_one("#list", VirtualTable)

    @property
    def panes(self) -> DetailPanes:
        return self.query_one(DetailPanes)

    def on_resize(self) -> None:
        size = self.app.size
        self.set_class(size.width < NARROW or size.height < LOW, "-one-pane")
        self.panes.set_class(size.width >= HEX_WIDE, "-hex-wide")

    @property
    def is_one_pane(self) -> bool:
        """Whether there is room for one pane only."""
        return self.has_class("-one-pane")

    # -- the list -----------------------------------------------------------------------------------

    def shown(self) -> int:
        return len(self.rows)

    def status(self) -> Text:
        out = super().status()
        if self.only_connection is not None:
            out.append(f"  connection {self.only_connection} only", "bold")
        if (self.sort, self.descending) != ("number", False):
            first = "largest" if self.descending else "smallest"
            out.append(f"  by {SORTS[self.sort]}, {first} first", "bold")
        if self.follow:
            out.append("  following", "bold")
        return out

    def index_grew(self) -> None:
        index = self.kdissect.index
        grew = self._ordered != len(index)
        is_time = time.monotonic() - self._ordered_at >= self._order_seconds / SORT_SHARE
        if grew and (is_time or self.kdissect.ended is not None):
            self.order()
        super().index_grew()

    def order(self) -> None:
        """Make the view anew; the cursor stays on its exchange."""
        table, rows = self.list_pane, self.rows
        before = rows.place(table.cursor) if len(rows) and table.cursor < len(rows) else None
        began = time.monotonic()
        self._ordered = len(self.kdissect.index)
        rows.view = self.kdissect.index.view(self.sort, self.descending, self.only_connection)
        self._ordered_at = time.monotonic()
        self._order_seconds = self._ordered_at - began
        if self.follow:
            row: int | None = len(rows) - 1
        else:
            row = None if before is None else rows.row_of(before)
        table.rows_changed(row if row is not None else 0)
        self._rest_at(table.cursor)

    @on(VirtualTable.Highlighted)
    def _highlighted(self, event: VirtualTable.Highlighted) -> None:
        if event.row != len(self.rows) - 1:
            self._stop_following()
        self._rest_at(event.row)

    def _stop_following(self) -> None:
        if self.follow:
            self.follow = False
            self.index_grew()

    def _rest_at(self, row: int) -> None:
        if self._rest is not None:
            self._rest.stop()
        place = self.rows.place(row) if row < len(self.rows) else None
        if place != self._place:
            self._rest = self.set_timer(REST_SECONDS, lambda: self._load(place))

    def go_to(self, place: int) -> None:
        """Show the exchange at a place of the index."""
        row = self.rows.row_of(place)
        if row is None:
            self.only_connection = None
            self.order()
            row = self.rows.row_of(place)
        if row is not None:
            self.list_pane.cursor = row

    def only(self, connection: int | None) -> None:
        """Show one connection, or all."""
        self.only_connection = connection
        self.order()
        self.index_grew()

    @property
    def is_at_rest(self) -> bool:
        """Whether the exchange under the cursor is the one that the panes show."""
        detail = self.panes.detail
        if not len(self.rows):
            return detail is None
        number = self.kdissect.index.value("number", self.rows.place(self.list_pane.cursor))
        return detail is not None and detail.exchange.number == number

    # -- the exchange ---------------------------------------------------------------------------------

    def _load(self, place: int | None) -> None:
        self._place = place
        if place is None:
            self.panes.show(None)
            self.say("there is no exchange to show")
            return
        index = self.kdissect.index
        self._decode(place, index.value("place", place), index.value("length", place))

    @work(thread=True, exclusive=True, group="decode")
    def _decode(self, place: int, spooled: int, length: int) -> None:
        worker, app = get_current_worker(), self.kdissect
        try:
            detail = Detail(app.feed.exchange(spooled, length), app.options)
        except OSError as error:
            app.call_from_thread(self.say, f"the exchange cannot be shown: {error.strerror or error}")
            return
        if not worker.is_cancelled:
            app.call_from_thread(self._decoded, place, detail)

    def _decoded(self, place: int, detail: Detail) -> None:
        if place == self._place:
            self.panes.show(detail)

    @on(VirtualTable.Chosen)
    def _chosen(self) -> None:
        self.add_class("-in")
        self.remove_class("-zoom-table")
        self.query_one(FieldTree).focus()

    # -- keys -----------------------------------------------------------------------------------------

    def action_out(self) -> None:
        self._leave()

    def action_out_or_end(self) -> None:
        if not self._leave():
            self.app.exit()

    def _leave(self) -> bool:
        """Go one level out; gives whether there was one."""
        if self._leave_zoom():
            return True
        if self.has_class("-in") or not self.list_pane.has_focus:
            self.remove_class("-in", "-hex")
            self.list_pane.focus()
        elif self.only_connection is not None:
            self.only(None)
        else:
            return False
        return True

    def action_next_bad(self, step: int) -> None:
        row = self.rows.next_bad(self.list_pane.cursor, step)
        if row is None:
            self.say("no exchange with an error or fault " + ("after this" if step > 0 else "before this"))
        else:
            self.list_pane.cursor = row

    def action_sort(self) -> None:
        names = list(SORTS)
        self.sort = names[(names.index(self.sort) + 1) % len(names)]
        self.descending = self.sort in ("latency_ns", "response_size", "request_size")
        self._say_order()

    def action_turn(self) -> None:
        self.descending = not self.descending
        self._say_order()

    def _say_order(self) -> None:
        self.order()
        self.index_grew()

    def action_connection(self) -> None:
        if len(self.rows):
            place = self.rows.place(self.list_pane.cursor)
            self.only(self.kdissect.index.value("connection", place))

    def action_follow(self) -> None:
        self.follow = not self.follow
        if self.follow:
            self.list_pane.action_last()
        self.index_grew()

    def action_times(self) -> None:
        clock = self.rows.clock
        clock.letter = TIMES[(TIMES.index(clock.letter) + 1) % len(TIMES)] if clock.letter in TIMES else "r"
        self.list_pane.rows_look_different()
        self.say(f"times: {TIMES_MEANING[clock.letter]}")

    def action_bytes(self) -> None:
        if not self.is_one_pane:
            self.toggle_class("-no-bytes")
        else:
            self.add_class("-in")
            self.toggle_class("-hex")
            self.query_one(BytesPane if self.has_class("-hex") else FieldTree).focus()

    def action_zoom(self) -> None:
        if self._leave_zoom() or self.is_one_pane:
            return
        focused = self.focused
        tree, in_bytes = isinstance(focused, FieldTree), isinstance(focused, BytesPane)
        self.add_class("-zoom-tree" if tree else "-zoom-bytes" if in_bytes else "-zoom-table")

    def _leave_zoom(self) -> bool:
        zooms = [name for name in self.classes if name.startswith("-zoom-")]
        self.remove_class(*zooms)
        return bool(zooms)

    def action_room(self, step: int) -> None:
        self._share = min(9, max(1, self._share + step))
        self.set_room()

    def set_room(self) -> None:
        """Share the height between the list and the panes, in tenths."""
        self.list_pane.styles.height = f"{self._share}fr"
        self.panes.styles.height = f"{10 - self._share}fr"

    def action_copy(self) -> None:
        if self.panes.detail is None or not self.panes.chosen():
            self.say("there is nothing to copy")
            return
        self.app.push_screen(Choose("Copy", COPY_FORMS), self._copy)

    def _copy(self, form: str | None) -> None:
        detail, spots = self.panes.detail, self.panes.chosen()
        if form is not None and detail is not None and spots:
            text = copied(form, detail, spots, self.kdissect.options)
            self.app.copy_to_clipboard(text)
            self.say(f"copied the {form}: {text[:60]}")

    def action_save(self) -> None:
        hint = "name.pcapng, name.ndjson or name.csv"
        self.app.push_screen(Ask(f"Save {len(self.rows):,} exchanges", hint), self._save)

    def _save(self, path: str | None) -> None:
        if path is not None:
            self.say(f"saving {path} …")
            self._save_to(path, self.rows.view.copy())

    @work(thread=True, group="save")
    def _save_to(self, path: str, view: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> None:
        app = self.kdissect
        try:
            said = save(path, app.feed, app.index, view, app.options)
        except CannotSaveError as error:
            said = str(error)
        app.call_from_thread(self.say, said)
