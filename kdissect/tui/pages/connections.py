"""The screen of connections, and of their clients."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter

import numpy as np
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from kdissect.analysis.connections import row_of
from kdissect.analysis.fold import Row
from kdissect.feed.counting import Asked
from kdissect.feed.filtering import quoted
from kdissect.feed.index import Index, Places
from kdissect.feed.statistics import CountedTables
from kdissect.feed.stories import CLIENT, Subject, subject
from kdissect.present.connection_lines import connection_lines
from kdissect.present.form import bars, plural
from kdissect.present.sanitise import sanitise
from kdissect.present.tls import TlsLine
from kdissect.session.conversation import Connection
from kdissect.tui.lists.figures import (
    MOST_TEXT,
    FigureColumn,
    Figures,
    address,
    error_columns,
    grave_tone,
    in_bytes,
    list_column,
    name_column,
    number,
    rare,
    time_span,
    words,
)
from kdissect.tui.lists.figures import (
    Text as Cell,
)
from kdissect.tui.pages.statistics import GroupedPage

SPARKS = 16
"""The number of bars that show the exchanges of a connection over time."""

BY_CONNECTION, BY_CLIENT = ("connections",), ("clients",)


def connection_columns(sparks: Cell) -> tuple[FigureColumn, ...]:
    """The columns of ``connections``; ``sparks`` gives the bars of a row."""
    return (
        number("Conn", "connection"),
        address("Client", "client"),
        name_column("Client id", "client_id", 3, most=28),
        address("Broker", "broker"),
        FigureColumn("State", _state, _state, 0, False, is_most_first=False),
        number("Requests", "requests"),
        number("Responses", "responses", 9),
        in_bytes("To broker", "request_bytes", 4),
        in_bytes("From", "response_bytes", 4),
        time_span("p50", "p50_ns", 2),
        time_span("p99", "p99_ns", 1),
        time_span("Max", "max_ns", 7),
        number("In flight", "in_flight_max", 5),
        *error_columns(),
        rare("Gap B", "gap_bytes", 6),
        rare("Skip B", "skipped_bytes", 6),
        FigureColumn("Activity", sparks, None, 8, False, least=MOST_TEXT),
        words("Software", "software", 4, most=32),
    )


CLIENT_COLUMNS = (
    address("Client", "client"),
    name_column("Client id", "client_id"),
    words("Software", "software", 1),
    words("Version", "software_version", 1, most=14),
    number("Conns", "connections"),
    number("Requests", "exchanges"),
    in_bytes("To broker", "request_bytes", 2),
    in_bytes("From", "response_bytes", 2),
    list_column("Speaks", "apis", 3, most=200),
)


def _state(row: Row) -> str:
    """How it ended; its protocol if it is not Kafka, and why TLS is not decrypted."""
    end = row["end"] or "going on"
    if row["protocol"] == "kafka":
        return end
    speaks = row.get("tls") if row["protocol"] == "tls" else None
    return f"{end} ({sanitise(speaks or row['protocol'] or '?')})"


def connection_key(row: Row) -> object:
    """The key of a connection in both tables."""
    if "connection" in row:
        return row["connection"]
    return row["client"], row["client_id"], row["software"], row["software_version"]


def connection_tone(row: Row) -> str | None:
    """Red with fatal errors, amber with others or with missing bytes, dim if it is not Kafka."""
    if tone := grave_tone(row):
        return tone
    if row.get("gap_bytes") or row.get("skipped_bytes"):
        return "table--warning"
    return "table--dim" if row.get("protocol", "kafka") != "kafka" else None


def figures() -> Figures:
    """The empty rows."""
    return Figures((), connection_key, connection_tone)


class Activity:
    """The numbers of exchanges in each of :data:`SPARKS` parts of the capture's time, by connection."""

    def __init__(self, index: Index, places: Places) -> None:
        connection, times = index.column("connection"), index.column("time_ns")
        if len(places) != len(index):  # else all of them, in any order
            connection, times = connection[places], times[places]
        self._counts = np.zeros((0, SPARKS), np.int64)
        if len(places):
            whole = index.column("time_ns")
            first, last = int(whole.min()), int(whole.max())
            share = (times.astype(np.float64) - first) / max(1, last - first)  # perhaps 2^64 apart
            part = np.minimum((share * SPARKS).astype(np.int64), SPARKS - 1)
            most = int(connection.max()) + 1
            cells = connection.astype(np.int64) * SPARKS + part
            self._counts = np.bincount(cells, minlength=most * SPARKS).reshape(-1, SPARKS)

    def text(self, connection: int) -> str:
        """The bars of a connection."""
        if connection >= len(self._counts) or not self._counts[connection].any():
            return ""
        return bars(self._counts[connection].tolist())


_NAMES = 20
"""The cells for the names of facts about it."""


class ConnectionsPage(GroupedPage):
    """The connections, or the clients; Enter shows the exchanges of one. The text below the list is about the
    connection under the cursor: the facts from a proxy and from its TLS handshake. A connection with TLS is
    listed too if it has no exchange yet."""

    DEFAULT_CSS = """
    ConnectionsPage #tls { height: auto; max-height: 45%; border-top: hkey $panel; background: $surface;
        display: none; }
    ConnectionsPage #tls.-shown { display: block; }
    ConnectionsPage #lines { height: auto; }
    """
    GROUPINGS = ("connection", "client")

    def __init__(self) -> None:
        self._activity: Activity | None = None
        self._going_on: Mapping[int, Connection] = {}
        """The open connections that were listed."""
        self._known: list[TlsLine] = []
        """The text below the list."""
        self._columns = connection_columns(self._sparks)
        super().__init__()

    def _sparks(self, row: Row) -> str:
        return self._activity.text(row["connection"]) if self._activity is not None else ""

    def body(self) -> ComposeResult:
        yield from super().body()
        with VerticalScroll(id="tls"):
            yield Static(id="lines", markup=False)

    def cursor_moved(self) -> None:
        known: list[TlsLine] = []
        cursor = self.list_pane.cursor
        if self.grouping == "connection" and cursor < len(self.rows):
            number = self.rows.row(cursor)["connection"]
            index = self.kdissect.index
            connection = index.connections.get(number) or index.going_on.get(number)
            known = [] if connection is None else list(connection_lines(connection))
        if known == self._known:
            return  # Textual would lay out the whole screen again
        self._known = known
        self.query_one("#tls").set_class(bool(known), "-shown")
        lines = Table.grid()
        for each in known:
            sign = "! " if each.is_warning else "  "
            style = self.alarm if each.is_warning else ""
            lines.add_row(Text(f" {each.name:<{_NAMES}}", "bold"), Text(sign, style), Text(each.text, style))
        self.query_one("#lines", Static).update(lines)

    def figures(self) -> Figures:
        return figures()

    def statistics_by(self, grouping: str) -> Asked:
        return BY_CONNECTION if grouping == "connection" else BY_CLIENT

    def fill(self, counted: CountedTables) -> None:
        if self.grouping == "connection":
            self._activity = Activity(self.kdissect.index, self.kdissect.shown.places)
            self.rows.show(self._with_those_going_on(counted.tables["connections"]), self._columns)
        else:
            self.rows.show(counted.tables["clients"], CLIENT_COLUMNS)

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
            self.update_message()

    def listed(self) -> str:
        return "connection"

    def rows_text(self) -> str:
        return plural(len(self.rows), self.grouping)

    def subject_of(self, row: Row) -> Subject | None:
        return subject(CLIENT, row["client_id"] or row["client"])

    def filter_of(self, row: Row) -> str | None:
        if self.grouping == "connection":
            return f"connection == {row['connection']}"
        text = f"client_id == {quoted(row['client_id'])}" if row["client_id"] is not None else "not client_id"
        return f"{text} and client.ip == {quoted(row['client'].strip('[]'))}"
