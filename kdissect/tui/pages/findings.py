"""The screen of findings: a time line of the whole capture, and the problems, their causes and their
remedies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.timer import Timer

from kdissect.analysis.fold import Row
from kdissect.faults import KINDS
from kdissect.feed.counting import FINDINGS, LOOKED_AT, MARKS, Asked
from kdissect.feed.statistics import CountedTables, Statistics
from kdissect.feed.stories import CLIENT, GROUP, TOPIC, TRANSACTION, Subject, subject
from kdissect.insight.finding import Finding
from kdissect.present.findings import FINDINGS as TABLE
from kdissect.present.form import plural
from kdissect.present.paragraphs import fold_text
from kdissect.present.whole_record import TextLine
from kdissect.settings.words import ABOUT
from kdissect.tui.host import OF_FILES
from kdissect.tui.keys import bindings_of
from kdissect.tui.lists.figures import Figures
from kdissect.tui.lists.findings import figures, finding_of, is_in, nothing_found, text_of
from kdissect.tui.pages.listed import COPIED_CELLS, Copies, Saved
from kdissect.tui.pages.page import BACK, FILTER_BACK, QUIT
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.pages.summaries import FiguresOverTime
from kdissect.tui.widgets import status
from kdissect.tui.widgets.filter_line import FilterLine
from kdissect.tui.widgets.table import VirtualTable
from kdissect.tui.widgets.text_pane import TextPane
from kdissect.tui.widgets.time_line import TimeLine

ASKED = (FINDINGS,)
_LEAST_ROWS = 3
"""The least rows of the list."""
FIRST_SECONDS = 1.0
"""How long the judging process waits at most for the first picture of the time line."""
TALL, HIGH, HIGHEST = 36, 50, 58
"""The numbers of lines from which on the time line shows bytes too, then more, then still more."""


_TO_TIME = {
    "column-before": "to the time line, a moment earlier",
    "column-after": "to the time line, a moment later",
}
"""The effects of the left and right arrow keys, by the names of their actions."""


def _bindings() -> list[BindingType]:
    return [
        replace(each, tooltip=_TO_TIME[each.id])
        if isinstance(each, Binding) and each.id in _TO_TIME
        else each
        for each in bindings_of("list")
    ]


class ToTimeLine(Message):
    """A key from below the time line to a moment left (-1) or right (1) on it."""

    def __init__(self, step: int) -> None:
        self.step = step
        super().__init__()


class FindingsTable(VirtualTable, inherit_bindings=False):
    """The list. The arrow keys to the left and right lead from it to the time line."""

    BINDINGS: ClassVar[list[BindingType]] = _bindings()

    def action_column(self, step: int) -> None:
        self.post_message(ToTimeLine(step))


class FindingText(TextPane):
    """The text. The left and right arrow keys lead from it to the time line: without a finding it is in the
    list's place."""

    BINDINGS: ClassVar[list[BindingType]] = [
        each for each in _bindings() if isinstance(each, Binding) and each.id in _TO_TIME
    ]

    def action_column(self, step: int) -> None:
        self.post_message(ToTimeLine(step))


class FindingsPage(StatisticsPage):
    """The findings of the whole capture. At the top is a time line; a range of it can be chosen. Then come
    the findings, worst first, each effect below its cause. At the bottom is the whole text of the finding
    under the cursor. Enter shows its exchanges."""

    DEFAULT_CSS = """
    FindingsPage #list { height: 2fr; max-height: 40%; border-top: hkey $panel; }
    FindingsPage #finding { height: 3fr; border-top: hkey $panel; }
    FindingsPage.-none #list { display: none; }
    FindingsPage.-whole #list, FindingsPage.-whole #time { display: none; }
    FindingsPage.-low #time { height: 5; }
    FindingsPage.-least #time { height: 2; }
    FindingsPage.-no-bars #list, FindingsPage.-no-bars #finding { border-top: none; }
    FindingsPage.-tall #time { height: 9; }
    FindingsPage.-high #time { height: 12; }
    FindingsPage.-highest #time { height: 18; }
    FindingsPage.-highest.-none #time { height: 2fr; max-height: 30; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("findings")

    def __init__(self) -> None:
        self._of: object = None
        """The subject of the text."""
        self._over_time = FiguresOverTime(self, self._take_over_time)
        self._waits: Timer | None = None
        """The timer until the judging process starts."""
        self._may_judge = False
        super().__init__()

    def figures(self) -> Figures:
        return figures(self.clock)

    def body(self) -> ComposeResult:
        yield TimeLine(id="time")
        yield FindingsTable(self.rows, id="list")
        yield FindingText(id="finding")

    def on_mount(self) -> None:
        self.query_one(FilterLine).apply = self._filter_written

    def _filter_written(self, text: str) -> None:
        """Show the exchanges: findings are of all of them, so only the time line would change here."""
        if text.strip():
            self.kdissect.filter_by(text)
        else:
            self.kdissect.shown.write(text)

    @property
    def text_pane(self) -> TextPane:
        """The pane with the whole text of a finding."""
        return self.query_one("#finding", TextPane)

    @property
    def time_line(self) -> TimeLine:
        """The whole capture."""
        return self.query_one("#time", TimeLine)

    @property
    def statistics(self) -> Statistics:
        return self.kdissect.judging

    def shown(self) -> int:
        return len(self.kdissect.index)

    def needed_statistics(self) -> Asked:
        return ASKED

    def request_judgement(self) -> None:
        """Have the capture judged by a process with all rules. It waits until this screen was drawn for the
        first time, because both need the processor."""
        if self._may_judge or self.kdissect.ended is not None:
            self._begin_to_judge()
        elif self._waits is None:
            self._waits = self.set_timer(FIRST_SECONDS, self._begin_to_judge)

    def _begin_to_judge(self) -> None:
        self._may_judge = True
        if self._waits is not None:
            self._waits.stop()
            self._waits = None
        if self.is_current:
            super().request_judgement()
            self.index_grew()

    @property
    def is_at_rest(self) -> bool:
        return self._waits is None and super().is_at_rest

    def fill(self, counted: CountedTables) -> None:
        span = self.kdissect.shown.span
        found = counted.tables[FINDINGS]
        self.rows.show(found if span is None else [row for row in found if is_in(finding_of(row), span)])
        self.wish(self.list_pane, max(_LEAST_ROWS, len(self.rows)) + 2)  # its heading, and a line above it
        self.time_line.show(self.time_line.over_time, counted.tables[MARKS], self.time_line.shown)

    def index_grew(self) -> None:
        super().index_grew()
        self.time_line.set_empty_text(self._without_any())
        self._over_time.make()
        if not len(self.rows):
            self.cursor_moved()  # its text changes when all is read

    def filter_changed(self) -> None:
        self.refill()
        super().filter_changed()

    def note_filter_progress(self, found: bool) -> None:
        super().note_filter_progress(found)
        self._over_time.make()  # make the last one at once

    # -- the time line -----------------------------------------------------------------------------

    def on_resize(self) -> None:
        self.set_class(self.app.size.height >= TALL, "-tall")
        self.set_class(self.app.size.height >= HIGH, "-high")
        self.set_class(self.app.size.height >= HIGHEST, "-highest")
        self.call_after_refresh(self._over_time.make)

    def _take_over_time(self, has_any: bool) -> None:
        self._point()
        if has_any and self._waits is not None:
            self.call_after_refresh(self._begin_to_judge)

    def chosen_time(self) -> int | None:
        row = self.chosen_row()
        return None if row is None else finding_of(row).first_ns

    def _point(self) -> None:
        """Mark the chosen range on the time line, and the finding under the cursor."""
        cursor, chosen = self.list_pane.cursor, None
        if cursor < len(self.rows):
            finding = finding_of(self.rows.row(cursor))
            if finding.first_ns is not None:
                chosen = finding.first_ns, finding.last_ns or finding.first_ns
        self.time_line.point_at(self.kdissect.shown.span, chosen)

    @on(ToTimeLine)
    def _to_time(self, event: ToTimeLine) -> None:
        if self.has_class("-whole"):  # which leaves no room for it
            return
        self.time_line.focus()
        self.time_line.cursor += event.step

    @on(TimeLine.Moved)
    def _time_moved(self) -> None:
        words = self.time_line.words()
        if words and self.time_line.has_focus:
            self.show_message(words)

    @on(TimeLine.Chosen)
    def _time_chosen(self, event: TimeLine.Chosen) -> None:
        over = self.time_line.over_time
        if over is not None:
            self.kdissect.shown.narrow_to(*over.span(event.first, event.last))
            words = self.time_line.words((event.first, event.last))
            if len(self.rows):  # then Enter is about a finding again, not about one moment of the range
                self.list_pane.focus()
            self.show_message(f"all screens show only this time, Esc shows all: {words}")

    # -- the findings ---------------------------------------------------------------------------------

    def near(self, row: Row) -> int | None:
        numbers = finding_of(row).exchanges
        return self.kdissect.place_of(numbers[0]) if numbers else None

    def exchange_of(self, row: Row) -> int | None:
        numbers = finding_of(row).exchanges
        return numbers[-1] if numbers else None

    def subject_of(self, row: Row) -> Subject | None:
        about = finding_of(row).subject
        named = (
            (TRANSACTION, about.transactional_id),
            (GROUP, about.group),
            (TOPIC, about.topic),
            (CLIENT, about.client_id or about.client),
        )
        return next((subject(kind, name) for kind, name in named if name is not None), None)

    def cursor_moved(self) -> None:
        self._point()
        looked_at = self._looked_at()
        if looked_at is None:
            of = "before the first", self.kdissect.ended is None
            if of != self._of:
                self._show(of, self._before_the_first)
            return
        cursor = self.list_pane.cursor
        self._show_list(bool(len(self.rows)))
        if cursor >= len(self.rows):
            is_whole, found = self._is_whole, len(self._all())

            def nothing(room: int) -> Sequence[TextLine]:
                if found and self.rows.is_narrow:
                    return [TextLine(f"{self.why_empty()}", "heading")]
                if found:
                    return [
                        TextLine(f"None of {plural(found, 'finding')} is in this range of time.", "heading")
                    ]
                return nothing_found(looked_at, is_whole, room)

            self._show(None, nothing)
            return
        finding = finding_of(self.rows.row(cursor))
        because = self._finding(finding.because)

        def text(room: int) -> Sequence[TextLine]:
            return text_of(finding, because, looked_at["first_ns"], room)

        self._show(finding.key, text)

    def _without_any(self) -> str:
        """The text in place of the time line if there is nothing to draw."""
        app = self.kdissect
        if app.ended is None:
            return "nothing captured so far" if app.feed.source.is_live else "reading …"
        return "no exchange was captured" if app.index.packets else "nothing was read"

    def _before_the_first(self, room: int) -> Sequence[TextLine]:
        """The text before the first judgement: the purpose of the screen."""
        if self.kdissect.ended is None:
            heading = "Reading; findings come as they are known …"
        else:
            heading = "Judging what was captured …" if self.kdissect.index.packets else "Nothing was read."
        lines = [TextLine(part) for line in ABOUT["findings"] for part in fold_text(line, room)]
        return [TextLine(heading, "heading"), TextLine(""), *lines]

    def why_empty(self) -> str:
        return "" if self._looked_at() is not None else "No finding so far."

    def _show(self, of: object, make: Callable[[int], Sequence[TextLine]]) -> None:
        self.text_pane.show_folded(make, stay=of == self._of)
        self._of = of

    def _show_list(self, has_rows: bool) -> None:
        """Show or hide the list. Without a row, the text has all the room, and the focus."""
        if has_rows is not self.has_class("-none"):
            return
        had_focus = self.focused in (None, self.list_pane, self.text_pane)
        self.set_class(not has_rows, "-none")
        self.refresh_bindings()
        if had_focus:
            (self.list_pane if has_rows else self.text_pane).focus()

    @property
    def _is_whole(self) -> bool:
        return self.kdissect.ended is not None and not self.statistics.is_busy

    def _looked_at(self) -> Row | None:
        """The row about the judged parts; None before the first time."""
        return None if self.counted is None else self.counted.tables[LOOKED_AT][0]

    def _all(self) -> Sequence[Row]:
        """All findings, of this range of time or not."""
        return () if self.counted is None else self.counted.tables[FINDINGS]

    def _finding(self, key: str | None) -> Finding | None:
        return next((each for each in map(finding_of, self._all()) if each.key == key), None)

    def rows_text(self) -> str:
        found = len(self._all())
        if len(self.rows) != found and not self.rows.is_narrow:
            return f"{len(self.rows)} of {plural(found, 'finding')} in this range of time"
        looked_at = self._looked_at()
        if looked_at is not None and looked_at["is_unread"]:
            return "nothing judged"
        if not found:
            return "nothing found" if self._is_whole else "nothing found so far"
        return plural(len(self.rows), "finding")

    @property
    def of_what(self) -> str:
        """The note about the basis. Findings are judged from the whole capture. A range of time only takes
        some from the list. The time line shows the filtered exchanges."""
        shown = self.kdissect.shown
        if not shown.written:
            return "in this range of time, judged from all exchanges"
        return f"filtered time line, {'all findings' if shown.span is None else 'findings of this range'}"

    @property
    def of_what_rank(self) -> int:
        """The importance of that note. The screen has figures with the filter and without it, so users must
        know."""
        return status.SHOWN if self.kdissect.shown.written else super().of_what_rank

    def notes(self) -> list[str]:
        looked_at = self._looked_at()
        notes = super().notes()
        if self.kdissect.ended is not None and len(self.kdissect.index):
            damaged = [kind for kind in KINDS if kind not in OF_FILES]  # which is shown above
            notes[1:1] = [f"not all was read: {each}" for each in self.kdissect.unread(damaged)]
        if looked_at is not None and len(self.rows):
            # A blank before it and one after it: a line up to the edge looks cut.
            is_wide = cell_len("   ".join([*notes, looked_at["judged"]])) + 2 <= self.app.size.width
            notes.append(looked_at["judged"] if is_wide else looked_at["short"])
        return notes

    def filter_of(self, row: Row) -> str | None:
        return finding_of(row).shown_by

    def saved(self) -> list[Saved]:
        rows = [finding_of(self.rows.row(at)) for at in range(len(self.rows))]
        return [Saved(FINDINGS, TABLE, rows)]

    def copies(self, row: Row) -> Copies:
        finding, looked_at = finding_of(row), self._looked_at()
        first_ns = None if looked_at is None else looked_at["first_ns"]

        def text() -> str:
            lines = text_of(finding, self._finding(finding.because), first_ns, COPIED_CELLS)
            return "\n".join(line.text for line in lines)

        return {"whole text": text, **super().copies(row)}

    # -- keys -----------------------------------------------------------------------------------------

    @property
    def words(self) -> dict[str, str]:
        has_more = bool(len(self.rows)) or self.has_class("-whole")
        return super().words | ({} if has_more else {"explain": ""})

    @property
    def way_out(self) -> str:
        app, out = self.kdissect, super().way_out
        if self.has_class("-whole"):
            return BACK
        if self.time_line.begun is not None:
            return FILTER_BACK
        return QUIT if out == BACK and app.is_home(self) and app.is_outermost else out

    def action_out(self) -> None:
        self._leave()

    def action_out_or_end(self) -> None:
        if not self._leave():
            self.kdissect.end_or_ask()

    def _leave(self) -> bool:
        """Undo one thing: the whole text, a begun range, a chosen range or a filter, the screen; return
        whether there was any."""
        app = self.kdissect
        if self.has_class("-whole"):
            self.action_explain()
        elif self.time_line.begun is not None:
            self.time_line.action_begin()
        elif not self.take_back() and not app.go_back():
            if app.is_home(self):
                return False
            app.action_page(app.home)
        return True

    def action_bars(self) -> None:
        if not self.time_line.swap_bars():
            self.show_message("the time line has room for requests and bytes")

    def action_explain(self) -> None:
        self.toggle_class("-whole")
        (self.text_pane if self.has_class("-whole") else self.list_pane).focus()
        self.refresh_bindings()

    @on(TextPane.Chosen)
    def _text_chosen(self) -> None:
        if len(self.rows):
            self.open(self.rows.row(self.list_pane.cursor))
