"""The screen of errors and faults."""

from __future__ import annotations

from kdissect.analysis.fold import Row
from kdissect.present.form import plural
from kdissect.tui.feed.counting import Asked
from kdissect.tui.lists import problems
from kdissect.tui.lists.figures import Figures
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.statistics import Counted

ASKED = ("errors",)


class ProblemsPage(StatisticsPage):
    """What brokers refused, and what is wrong with the bytes; Enter shows the exchanges with it."""

    def __init__(self) -> None:
        self._made_of: tuple[object, ...] = ()
        super().__init__()

    def figures(self) -> Figures:
        return problems.figures(problems.columns(self.clock.text))

    def asked(self) -> Asked:
        return ASKED

    def fill(self, counted: Counted) -> None:
        app = self.kdissect
        errors = counted.tables["errors"]
        self.rows.show(problems.problem_rows(errors, app.index, app.shown.places, app.shown.is_filtered))

    def index_grew(self) -> None:
        super().index_grew()
        index, shown = self.kdissect.index, self.kdissect.shown
        made_of = (len(index), index.fault_count(), shown.version, shown.is_filtered)
        if made_of != self._made_of and self.counted is not None:
            self._made_of = made_of
            self.refill()
            self.tell()

    def what(self) -> str:
        if not len(self.rows):
            return "no errors and no faults" if self.kdissect.ended is not None else "none so far"
        return plural(len(self.rows), "row")

    def notes(self) -> list[str]:
        cursor = self.list_pane.cursor
        said = self.rows.row(cursor)["said"] if cursor < len(self.rows) else None
        return [*super().notes(), *([said] if said else [])]

    def cursor_moved(self) -> None:
        self.tell()

    def filter_of(self, row: Row) -> str | None:
        text: str | None = row["filter"]
        return text

    def open(self, row: Row) -> None:
        if row["filter"] is None:
            self.say(f"this stands in no exchange: {row['said']}")
        else:
            super().open(row)
