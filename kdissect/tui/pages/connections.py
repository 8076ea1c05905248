"""The screen of connections."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.widgets import Footer, Static

from kdissect.present.form import plural
from kdissect.tui.lists.connections import Connections
from kdissect.tui.pages.page import Page
from kdissect.tui.widgets.table import VirtualTable


class ConnectionsPage(Page):
    """The connections; Enter shows the exchanges of one."""

    def compose(self) -> ComposeResult:
        self.rows = Connections(self.kdissect.index)
        yield Static(id="status", markup=False)
        yield VirtualTable(self.rows, id="list")
        yield Static(id="where", markup=False)
        yield Footer(show_command_palette=False)

    def index_grew(self) -> None:
        super().index_grew()
        self.rows.refresh()
        self.query_one(VirtualTable).rows_changed()
        waiting = "" if self.kdissect.ended is not None else "; a connection is listed when it is over"
        self.say(f"{plural(len(self.rows), 'connection')}{waiting}")

    @on(VirtualTable.Chosen)
    def _chosen(self, event: VirtualTable.Chosen) -> None:
        self.kdissect.show_connection(self.rows.connection(event.row).connection)
