"""The screen of records: those of the shown exchanges, and the one under the cursor as a whole."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from textual import on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import BindingType
from textual.timer import Timer
from textual.worker import get_current_worker

from kdissect.feed.matching import AnswerClient
from kdissect.feed.records import ListedRecords, RecordLine, records_of
from kdissect.feed.searching import ListSearch, RecordPattern
from kdissect.feed.stories import offset_subject
from kdissect.filter.compiled import Filter
from kdissect.filter.errors import FilterError
from kdissect.present.form import TIMES as TIMES_MEANING
from kdissect.present.form import plural
from kdissect.present.payload import FORMS
from kdissect.present.records import addressed_rows
from kdissect.present.whole_record import COPY_FORMS, TextLine, record_copied, record_lines, value_file
from kdissect.settings.places import PLACES
from kdissect.system.editor import CannotEditError, edit, editor_of
from kdissect.tui.copying import copied_message
from kdissect.tui.keys import bindings_of
from kdissect.tui.lists.records import RecordRows
from kdissect.tui.pages.finder import SearchedPage
from kdissect.tui.pages.page import BACK
from kdissect.tui.pages.record_search import RecordSearch
from kdissect.tui.selecting import filter_of_record, joined
from kdissect.tui.widgets import status
from kdissect.tui.widgets.dialogs import Choose
from kdissect.tui.widgets.filter_line import FilterLine
from kdissect.tui.widgets.panes import DetailPanes
from kdissect.tui.widgets.split_panes import PanesScreen
from kdissect.tui.widgets.status import Item
from kdissect.tui.widgets.table import VirtualTable
from kdissect.tui.widgets.text_pane import TextPane

REST_SECONDS = 0.05
"""How long the cursor must rest before the record under it is shown."""
STEP_SECONDS = 0.1
"""How often new records are fetched while more are expected."""
NARROW, LOW = 100, 30
"""With fewer columns or lines than these, there is room for only one pane."""
TIMES = "uae"
"""The forms of times, in the order in which the key cycles through them; records do not count from a
packet."""


class RecordsPage(SearchedPage, PanesScreen):
    """The screen. It begins to list when it is first shown."""

    DEFAULT_CSS = """
    RecordsPage VirtualTable { height: 3fr; }
    RecordsPage TextPane { height: 2fr; border-top: hkey $panel; }
    RecordsPage.-one-pane TextPane { display: none; border-top: none; }
    RecordsPage.-one-pane.-in TextPane { display: block; height: 1fr; }
    RecordsPage.-one-pane.-in VirtualTable { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("records")
    BINDING_GROUP_TITLE = PLACES["records"]
    QUESTION = "Search in keys, values and headers"

    def __init__(self) -> None:
        super().__init__()
        self._records: ListedRecords | None = None
        self.rows: RecordRows | None = None
        self.record: dict[str, Any] | None = None
        """The row of the record in the pane."""
        self._shown_line: RecordLine | None = None
        self._filter: tuple[Filter | None, bool] | None = None
        """The filter of the list."""
        self._message = ""
        """The last message about the list."""
        self._has_news = False
        """Whether there are records that the list does not show yet."""
        self._steps: Timer | None = None
        self._stepped_at = 0.0
        """The time of the last step, by :func:`time.monotonic`."""
        self._rest: Timer | None = None

    def body(self) -> ComposeResult:
        app = self.kdissect
        self._records = records_of(app.feed, app.options)
        self.rows = RecordRows(app.index, self._records)
        yield VirtualTable(self.rows, id="list", has_columns=True)
        yield TextPane(id="record")

    def on_mount(self) -> None:
        self.query_one(FilterLine).lists_exchanges = False
        self.table.focus()

    def on_unmount(self) -> None:
        if self._records is not None:
            self._records.close()

    @property
    def table(self) -> VirtualTable:
        """The list."""
        return self.query_one("#list", VirtualTable)

    @property
    def pane(self) -> TextPane:
        return self.query_one(TextPane)

    def on_resize(self) -> None:
        size = self.app.size
        self.set_class(size.width < NARROW or size.height < LOW, "-one-pane")

    # -- the list -------------------------------------------------------------------------------------

    def index_grew(self) -> None:
        super().index_grew()
        if self.rows is not None and self.is_mounted and self.is_current:
            self._take()

    def _take(self) -> None:
        """Take in the shown exchanges; restart if the filter has changed."""
        app, rows = self.kdissect, self.rows
        assert rows is not None
        wanted = (app.shown.chosen, app.shown.is_on)
        if wanted != self._filter:
            self._filter = wanted
            self.finder.stop()
            rows.begin(app.shown.chosen)
            self.table.rows_changed(0)
            self.update_status()
        rows.take(app.shown.places_of_records)
        self._step()
        if rows.is_busy and self._steps is None:
            self._steps = self.set_interval(STEP_SECONDS, self._step_unless_answering)

    def _step_unless_answering(self) -> None:
        if not self.kdissect.is_answering(self._stepped_at):
            self._step()

    def _step(self) -> None:
        self._stepped_at = time.monotonic()
        rows = self.rows
        assert rows is not None
        if not self.has_panes:
            return
        self._has_news = rows.step() or self._has_news
        if not rows.is_busy and self._steps is not None:
            self._steps.stop()
            self._steps = None
        if not self.is_current:  # it is listed on, but nothing of it is seen
            return
        has_news, self._has_news = self._has_news, False
        if has_news:
            self.table.rows_changed()
            self.update_status()  # which has the number of records
        if has_news or not rows.is_busy:
            self._rest_at(self.table.cursor)
        self._show_count()

    def _show_count(self) -> None:
        rows = self.rows
        assert rows is not None
        text = plural(len(rows), "record")
        if rows.is_busy:
            text += f", {rows.share:.0%} of the exchanges read"
        elif self.kdissect.shown.is_filtered and not len(rows):
            text += f": {self.kdissect.shown.why_none}"
        if rows.is_full:
            text += " (the list shows no more: use a filter)"
        if rows.reason is not None:
            text += f"; {rows.reason}"
        if rows.is_relative(self.table.cursor):
            text += "   +n: counted from the batch's first record, because no response gives the offset"
        text += f"   values as {rows.form}, v for other forms"
        if text != self._message:  # else a later message would be overwritten
            self._message = text
            self.show_message(text)

    def restore_message(self) -> None:
        if self.rows is not None:
            self._message = ""
            self._show_count()

    @on(VirtualTable.Highlighted)
    def _highlighted(self, event: VirtualTable.Highlighted) -> None:
        if self.finder.has_left_match:
            self.update_status()
        self._rest_at(event.row)
        self._show_count()

    def _rest_at(self, row: int) -> None:
        if self._rest is not None:
            self._rest.stop()
        line = self._line_at(row)
        if line != self._shown_line:
            self._rest = self.set_timer(REST_SECONDS, lambda: self._load(line))

    def chosen_place(self) -> int | None:
        line = self._line_at(self.table.cursor)
        return None if line is None else line.place

    def _line_at(self, row: int) -> RecordLine | None:
        rows = self.rows
        return rows.line(row) if rows is not None and row < len(rows) else None

    @property
    def is_at_rest(self) -> bool:
        """Whether all records are listed, no search runs, and the pane shows the record under the cursor."""
        rows = self.rows
        if rows is None or rows.is_busy or self.finder.is_going_on or self.finder.is_counting:
            return rows is None
        return (self.record is not None) if len(rows) else self.record is None

    # -- the record -----------------------------------------------------------------------------------

    def _load(self, line: RecordLine | None) -> None:
        self._shown_line = line
        if line is None:
            self.record = None
            self.pane.show([TextLine("there is no record to show", "fact")])
            return
        index = self.kdissect.index
        assert self.rows is not None
        spooled, length = index.value("place", line.place), index.value("length", line.place)
        self._decode(line, spooled, length, self.rows.form)

    @work(thread=True, exclusive=True, group="record")
    def _decode(self, line: RecordLine, spooled: int, length: int, form: str) -> None:
        worker, app = get_current_worker(), self.kdissect
        try:
            exchange = app.feed.exchange(spooled, length)
            _, row = next(addressed_rows(exchange, app.options, line.address))
        except (OSError, StopIteration) as error:
            app.call_from_thread(self.show_message, f"the record cannot be shown: {error}")
            return
        if not worker.is_cancelled:
            app.call_from_thread(self._decoded, line, row, form, record_lines(row, form))

    def _decoded(self, line: RecordLine, row: dict[str, Any], form: str, lines: list[TextLine]) -> None:
        if line != self._shown_line or self.rows is None:
            return
        self.record = row
        self.pane.show(lines)
        self._show_match()
        if form != self.rows.form:  # it was switched meanwhile
            self._lay_out(row, self.rows.form)

    @work(thread=True, exclusive=True, group="form")
    def _lay_out(self, row: dict[str, Any], form: str) -> None:
        """Lay the record out in another form. For a large value that takes longer than a frame may."""
        self.app.call_from_thread(self._laid_out, row, record_lines(row, form))

    def _laid_out(self, row: dict[str, Any], lines: list[TextLine]) -> None:
        if row is self.record:
            self.pane.show(lines, stay=True)

    # -- searching ------------------------------------------------------------------------------------

    @property
    def searched_list(self) -> VirtualTable:
        return self.table

    @property
    def searched_rows(self) -> str:
        so_far = self.rows is not None and self.rows.is_busy
        return f"these records{' that are listed so far' if so_far else ''}"

    @property
    def row_under_cursor(self) -> RecordLine | None:
        return self._line_at(self.table.cursor)

    def search_for(self, text: str, asker: AnswerClient) -> RecordSearch:
        app, rows = self.kdissect, self.rows
        assert rows is not None
        pattern = RecordPattern(text, app.options)
        exchanges = ListSearch(pattern, app.index, asker, lambda: rows.places, has_texts=False)
        return RecordSearch(self, rows, pattern, exchanges)

    def go_to_match(self, row: int) -> None:
        if row == self.table.cursor:
            self._show_match()
        self.table.go_to(row)
        self._message = ""  # the message about the list replaces that about the search
        self._show_count()
        self.call_after_refresh(
            self._show_turn
        )  # when the cursor has moved, the message about the list comes

    def _show_turn(self) -> None:
        if self.finder.turn:
            self.show_message(f"the {self.finder.turn}")

    def _show_match(self) -> None:
        """Show the search text in the shown record, if it is there."""
        if self.finder.pattern is not None:
            self.pane.seek(self.finder.pattern.is_in)

    # -- keys -----------------------------------------------------------------------------------------

    @on(VirtualTable.Chosen)
    def _chosen(self) -> None:
        self.add_class("-in")
        self.pane.focus()

    @on(TextPane.Chosen)
    def _into(self) -> None:
        """Go to the record's place in the tree of its exchange, and to its bytes."""
        line = self._shown_line
        if line is not None:
            self.kdissect.show_exchange(line.place, to_tree=True)
            panes = self.kdissect.pages["exchanges"].query_one(DetailPanes)
            panes.reveal_record(self.kdissect.index.value("number", line.place), line.address)

    @property
    def opens(self) -> str:
        return "Record"

    @property
    def way_out(self) -> str:
        return BACK if self.is_in else super().way_out

    @property
    def is_in(self) -> bool:
        """Whether the focus is in the record, not in the list."""
        return self.pane.has_focus or self.has_class("-in")

    def action_out(self) -> None:
        if self.is_in:
            self.remove_class("-in")
            self.table.focus()
        else:
            super().action_out()

    def action_form(self) -> None:
        rows = self.rows
        if rows is None:
            return
        rows.form = FORMS[(FORMS.index(rows.form) + 1) % len(FORMS)]
        self.table.rows_look_different()
        if self.record is not None:
            self._lay_out(self.record, rows.form)
        self._show_count()

    def action_times(self) -> None:
        rows = self.rows
        if rows is None:
            return
        clock = rows.clock
        clock.letter = TIMES[(TIMES.index(clock.letter) + 1) % len(TIMES)]
        self.table.rows_look_different()
        self.show_message(f"times: {TIMES_MEANING[clock.letter]}")

    def action_by(self, operation: str) -> None:
        """Filter by the column under the cursor; by default, the key."""
        rows, line = self.rows, self._shown_line
        if rows is None or line is None or self.record is None:
            self.show_message("there is no record")
            return
        exchange = self.kdissect.exchange_at(line.place)
        if exchange is None:
            return
        titles, at = rows.names(self.table.columns), self.table.column
        column = titles[at] if at is not None and at < len(titles) else "Key"
        text = filter_of_record(column, self.record, exchange)
        shown = self.kdissect.shown
        if text is None:
            self.show_message(f"there is no filter for the {column.lower()} of this record")
            return
        try:
            shown.write(joined(operation, text, shown.written if shown.is_on else ""))
        except FilterError as error:  # the whole of it is too long, or too deep
            self.show_message(error.reason)

    def action_tell(self, kind: str) -> None:
        """Tell the story of this record's offset: its writer and its readers."""
        record = self.record
        if record is None:
            self.show_message("there is no record")
            return
        offset = record["offset"] if record["direction"] == "fetch" else record["assigned_offset"]
        if record["topic"] is None or record["partition"] is None:
            self.show_message("the topic of this record is unknown")
        elif offset is None:
            self.show_message(f"the {kind} of this record is unknown")
        else:
            self.kdissect.open_story(offset_subject(record["topic"], record["partition"], offset))

    def action_editor(self) -> None:
        if self.record is None or self.rows is None:
            self.show_message("there is no value to open")
            return
        suffix, data = value_file(self.record, self.rows.form)
        try:
            command = editor_of()
            with self.app.suspend():
                edit(command, data, suffix)
        except CannotEditError as error:
            self.show_message(str(error))
        except SuspendNotSupported:
            self.show_message("an editor cannot be opened in this terminal")

    def action_copy(self) -> None:
        if self.record is None:
            self.show_message("there is nothing to copy")
            return
        self.app.push_screen(Choose("Copy", COPY_FORMS), self._copy)

    def _copy(self, what: str | None) -> None:
        if what is not None and self.record is not None:
            text = record_copied(self.record, what, self.kdissect.options)
            self.app.copy_to_clipboard(text)
            self.show_message(copied_message(what, text))

    def status(self) -> list[Item]:
        out = super().status()
        if self.rows is not None and len(self.rows):
            out.append(Item(plural(len(self.rows), "record"), status.SHOWN, "bold"))
        return out
