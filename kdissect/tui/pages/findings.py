"""The screen of findings: what is wrong, why, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult

from kdissect.analysis.fold import Row
from kdissect.insight.finding import Finding
from kdissect.present.findings import FINDINGS as TABLE
from kdissect.present.form import plural
from kdissect.tui.feed.counting import FINDINGS, LOOKED_AT, Asked
from kdissect.tui.lists import findings
from kdissect.tui.lists.figures import Figures
from kdissect.tui.lists.findings import finding_of
from kdissect.tui.pages.statistics import Saved, StatisticsPage
from kdissect.tui.record_text import Line
from kdissect.tui.statistics import Counted, Statistics
from kdissect.tui.widgets.text_pane import TextPane

ASKED = (FINDINGS,)


class FindingsPage(StatisticsPage):
    """Findings in the whole capture, worst first, each effect below its cause; below the list all that is
    said of the one under the cursor. Enter shows its exchanges."""

    DEFAULT_CSS = """
    FindingsPage #list { height: 2fr; }
    FindingsPage #finding { height: 3fr; border-top: hkey $panel; }
    FindingsPage.-none #list { display: none; }
    """

    OF_WHAT = "of all, not of what the filter shows"

    def __init__(self) -> None:
        self._of: object = None
        """What the text is about."""
        super().__init__()

    def figures(self) -> Figures:
        return findings.figures(self.clock)

    def body(self) -> ComposeResult:
        yield from super().body()
        yield TextPane(id="finding")

    @property
    def text_pane(self) -> TextPane:
        """All that is said of one."""
        return self.query_one("#finding", TextPane)

    @property
    def statistics(self) -> Statistics:
        return self.kdissect.judging

    def shown(self) -> int:
        return len(self.kdissect.index)

    def asked(self) -> Asked:
        return ASKED

    def fill(self, counted: Counted) -> None:
        self.rows.show(counted.tables[FINDINGS])

    def index_grew(self) -> None:
        super().index_grew()
        if not len(self.rows):
            self.cursor_moved()  # what is said of it changes when all is read

    def cursor_moved(self) -> None:
        looked_at = self._looked_at()
        if looked_at is None:
            return
        cursor = self.list_pane.cursor
        self._show_list(bool(len(self.rows)))
        if cursor >= len(self.rows):
            is_whole = self._is_whole

            def nothing(room: int) -> Sequence[Line]:
                return findings.nothing_found(looked_at, is_whole, room)

            self._show(None, nothing)
            return
        finding = finding_of(self.rows.row(cursor))
        because = self._finding(finding.because)

        def text(room: int) -> Sequence[Line]:
            return findings.text_of(finding, because, looked_at["first_ns"], room)

        self._show(finding.key, text)

    def _show(self, of: object, make: Callable[[int], Sequence[Line]]) -> None:
        self.text_pane.show_folded(make, stay=of == self._of)
        self._of = of

    def _show_list(self, has_rows: bool) -> None:
        """Without a row the text has all the room, and the focus."""
        if has_rows is not self.has_class("-none"):
            return
        had_focus = self.focused in (None, self.list_pane, self.text_pane)
        self.set_class(not has_rows, "-none")
        if had_focus:
            (self.list_pane if has_rows else self.text_pane).focus()

    @property
    def _is_whole(self) -> bool:
        return self.kdissect.ended is not None and not self.statistics.is_busy

    def _looked_at(self) -> Row | None:
        """What was judged; None before the first time."""
        return None if self.counted is None else self.counted.tables[LOOKED_AT][0]

    def _finding(self, key: str | None) -> Finding | None:
        rows = map(self.rows.row, range(len(self.rows)))
        return next((each for each in map(finding_of, rows) if each.key == key), None)

    def what(self) -> str:
        if not len(self.rows):
            return "nothing found" if self._is_whole else "nothing found so far"
        return plural(len(self.rows), "finding")

    def notes(self) -> list[str]:
        looked_at = self._looked_at()
        notes = super().notes()
        if looked_at is not None and len(self.rows):
            is_wide = cell_len("   ".join([*notes, looked_at["judged"]])) < self.app.size.width
            notes.append(looked_at["judged"] if is_wide else looked_at["short"])
        return notes

    def filter_of(self, row: Row) -> str | None:
        return findings.filter_of(finding_of(row))

    def saved(self) -> list[Saved]:
        rows = [finding_of(self.rows.row(at)) for at in range(len(self.rows))]
        return [Saved(FINDINGS, TABLE, rows)]

    @on(TextPane.Chosen)
    def _text_chosen(self) -> None:
        if len(self.rows):
            self.open(self.rows.row(self.list_pane.cursor))
