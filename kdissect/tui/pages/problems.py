"""The screen of errors and faults."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.widgets import Footer, Static

from kdissect.tui.lists.problems import Problems
from kdissect.tui.pages.page import Page
from kdissect.tui.widgets.table import VirtualTable


class ProblemsPage(Page):
    """What brokers refused, and what is wrong with the bytes; Enter shows the first of a kind."""

    def compose(self) -> ComposeResult:
        self.rows = Problems(self.kdissect.index)
        yield Static(id="status", markup=False)
        yield VirtualTable(self.rows, id="list")
        yield Static(id="where", markup=False)
        yield Footer(show_command_palette=False)

    def index_grew(self) -> None:
        super().index_grew()
        self.rows.refresh()
        self.query_one(VirtualTable).rows_changed()
        if not len(self.rows):
            self.say("no errors and no faults" if self.kdissect.ended is not None else "none so far")
        else:
            self._say(self.query_one(VirtualTable).cursor)

    @on(VirtualTable.Highlighted)
    def _highlighted(self, event: VirtualTable.Highlighted) -> None:
        if len(self.rows):
            self._say(event.row)

    def _say(self, row: int) -> None:
        problem = self.rows.problem(row)
        text = (
            "error of a broker"
            if problem.fault is None
            else f"{problem.fault.layer}: {problem.fault.message}"
        )
        self.say(text)

    @on(VirtualTable.Chosen)
    def _chosen(self, event: VirtualTable.Chosen) -> None:
        place = self.rows.problem(event.row).place
        if place is None:
            self.say("this stands in no exchange")
        else:
            self.kdissect.show_exchange(place)
