"""The screen of facts: every statistic that no other screen shows, and the rows of the one that is chosen."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.fold import Row
from kdissect.present.form import plural
from kdissect.tui.feed.counting import Asked
from kdissect.tui.lists import facts
from kdissect.tui.lists.figures import Figures
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.statistics import Counted
from kdissect.tui.widgets.table import VirtualTable


class FactsPage(StatisticsPage):
    """The list of statistics with what each tells, and the rows of the one under its cursor. Enter goes to
    the rows, and from a row to its exchanges.

    :param elsewhere: statistics that other screens show.
    """

    DEFAULT_CSS = """
    FactsPage #tables { height: 2fr; max-height: 16; }
    FactsPage #list { height: 3fr; border-top: hkey $panel; }
    """

    def __init__(self, elsewhere: frozenset[str]) -> None:
        self.tables = facts.list_of(name for name in STATISTICS if name not in elsewhere)
        self.chosen: str = self.tables.row(0)["name"]
        """The statistic whose rows are shown."""
        super().__init__()

    def figures(self) -> Figures:
        return facts.figures()

    def body(self) -> ComposeResult:
        yield VirtualTable(self.tables, id="tables")
        yield from super().body()

    @property
    def tables_pane(self) -> VirtualTable:
        """The list of statistics."""
        return self.query_one("#tables", VirtualTable)

    @property
    def first_pane(self) -> VirtualTable:
        return self.tables_pane

    def asked(self) -> Asked:
        return (self.chosen,)

    def fill(self, counted: Counted) -> None:
        rows = facts.numbered(self.chosen, counted.tables[self.chosen])
        self.rows.show(rows, facts.columns_of(self.chosen, self.clock))

    @on(VirtualTable.Highlighted, "#tables")
    def _table_highlighted(self, event: VirtualTable.Highlighted) -> None:
        name = self.tables.row(event.row)["name"]
        if name == self.chosen:
            return
        self.chosen, self.counted = name, None
        self.rows.show((), ())
        self.list_pane.rows_changed(0)
        self.statistics.ask(self.asked())
        self.index_grew()

    @on(VirtualTable.Chosen, "#tables")
    def _table_chosen(self) -> None:
        self.list_pane.focus()

    def action_out(self) -> None:
        if self.list_pane.has_focus:
            self.tables_pane.focus()
        else:
            super().action_out()

    def what(self) -> str:
        return f"{self.chosen}: {plural(len(self.rows), 'row')}"

    def notes(self) -> list[str]:
        hidden = self.rows.without_room(self.list_pane.columns)
        parts = super().notes()
        if hidden:
            parts.append(f"no room for {plural(hidden, 'column')}: w saves all")
        return parts

    def filter_of(self, row: Row) -> str | None:
        return facts.filter_of(self.chosen, row)
