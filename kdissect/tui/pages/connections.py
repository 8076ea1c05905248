"""The screen of connections, and of the clients that made them."""

from __future__ import annotations

from kdissect.analysis.fold import Row
from kdissect.present.form import plural
from kdissect.tui.feed.counting import Asked
from kdissect.tui.filtering import quoted
from kdissect.tui.lists import connections
from kdissect.tui.lists.figures import Figures
from kdissect.tui.pages.grouped import GroupedPage
from kdissect.tui.statistics import Counted


class ConnectionsPage(GroupedPage):
    """The connections, or the clients; Enter shows the exchanges of one."""

    GROUPINGS = ("connection", "client")

    def __init__(self) -> None:
        self._activity: connections.Activity | None = None
        self._columns = connections.connection_columns(self._sparks)
        super().__init__()

    def _sparks(self, row: Row) -> str:
        return self._activity.text(row["connection"]) if self._activity is not None else ""

    def figures(self) -> Figures:
        return connections.figures()

    def asked(self) -> Asked:
        return connections.BY_CONNECTION if self.grouping == "connection" else connections.BY_CLIENT

    def fill(self, counted: Counted) -> None:
        if self.grouping == "connection":
            self._activity = connections.Activity(self.kdissect.index, self.kdissect.shown.places)
            self.rows.show(counted.tables["connections"], self._columns)
        else:
            self.rows.show(counted.tables["clients"], connections.CLIENT_COLUMNS)

    def what(self) -> str:
        return plural(len(self.rows), self.grouping)

    def filter_of(self, row: Row) -> str | None:
        if self.grouping == "connection":
            return f"connection == {row['connection']}"
        text = f"client_id == {quoted(row['client_id'])}" if row["client_id"] is not None else "not client_id"
        return f"{text} and client.ip == {quoted(row['client'].strip('[]'))}"
