"""The screen of connections, and of the clients that made them."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from kdissect.analysis.connections import row_of
from kdissect.analysis.fold import Row
from kdissect.present.connection_lines import connection_lines
from kdissect.present.form import plural
from kdissect.present.tls import Line
from kdissect.session.conversation import Connection
from kdissect.tui.feed.counting import Asked
from kdissect.tui.filtering import quoted
from kdissect.tui.lists import connections
from kdissect.tui.lists.figures import Figures
from kdissect.tui.pages.grouped import GroupedPage
from kdissect.tui.statistics import Counted

_NAMES = 20
"""Cells for the names of what is known of it."""


class ConnectionsPage(GroupedPage):
    """The connections, or the clients; Enter shows the exchanges of one. Below the list stands what a proxy
    said of the connection under the cursor, and what its handshake showed, where it speaks TLS. What speaks
    TLS and has no exchange yet is listed too."""

    DEFAULT_CSS = """
    ConnectionsPage #tls { height: auto; max-height: 45%; border-top: hkey $panel; background: $surface;
        display: none; }
    ConnectionsPage #tls.-shown { display: block; }
    ConnectionsPage #lines { height: auto; }
    """
    GROUPINGS = ("connection", "client")

    def __init__(self) -> None:
        self._activity: connections.Activity | None = None
        self._going_on: Mapping[int, Connection] = {}
        """What was listed of those that go on."""
        self._columns = connections.connection_columns(self._sparks)
        super().__init__()

    def _sparks(self, row: Row) -> str:
        return self._activity.text(row["connection"]) if self._activity is not None else ""

    def body(self) -> ComposeResult:
        yield from super().body()
        with VerticalScroll(id="tls"):
            yield Static(id="lines", markup=False)

    def cursor_moved(self) -> None:
        known: list[Line] = []
        cursor = self.list_pane.cursor
        if self.grouping == "connection" and cursor < len(self.rows):
            number = self.rows.row(cursor)["connection"]
            index = self.kdissect.index
            connection = index.connections.get(number) or index.going_on.get(number)
            known = [] if connection is None else list(connection_lines(connection))
        self.query_one("#tls").set_class(bool(known), "-shown")
        lines = Table.grid()
        for each in known:
            sign = "! " if each.is_warning else "  "
            style = self.alarm if each.is_warning else ""
            lines.add_row(Text(f" {each.name:<{_NAMES}}", "bold"), Text(sign, style), Text(each.text, style))
        self.query_one("#lines", Static).update(lines)

    def figures(self) -> Figures:
        return connections.figures()

    def asked_by(self, grouping: str) -> Asked:
        return connections.BY_CONNECTION if grouping == "connection" else connections.BY_CLIENT

    def fill(self, counted: Counted) -> None:
        if self.grouping == "connection":
            self._activity = connections.Activity(self.kdissect.index, self.kdissect.shown.places)
            self.rows.show(self._with_those_going_on(counted.tables["connections"]), self._columns)
        else:
            self.rows.show(counted.tables["clients"], connections.CLIENT_COLUMNS)

    def _with_those_going_on(self, rows: list[Row]) -> list[Row]:
        self._going_on = self.kdissect.index.going_on
        if self.kdissect.shown.is_filtered:
            return rows
        listed = {row["connection"] for row in rows}
        others = (each for number, each in self._going_on.items() if number not in listed)
        return sorted((*rows, *map(row_of, others)), key=itemgetter("connection"))

    def index_grew(self) -> None:
        super().index_grew()
        if self.grouping == "connection" and self._going_on is not self.kdissect.index.going_on:
            self.refill()
            self.tell()

    def what(self) -> str:
        return plural(len(self.rows), self.grouping)

    def filter_of(self, row: Row) -> str | None:
        if self.grouping == "connection":
            return f"connection == {row['connection']}"
        text = f"client_id == {quoted(row['client_id'])}" if row["client_id"] is not None else "not client_id"
        return f"{text} and client.ip == {quoted(row['client'].strip('[]'))}"
