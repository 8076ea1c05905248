"""The screen of facts: every statistic that no other screen shows, and the rows of the chosen one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from threading import Lock, Thread
from typing import Any

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.declared import (
    BANDS,
    BROKER_COLUMN,
    CLIENT_ID_COLUMN,
    EXCHANGE,
    GROUP_COLUMN,
    ID,
    PARTITION_COLUMN,
    PLAIN,
    TIME,
    TOPIC_COLUMN,
)
from kdissect.analysis.fold import Row
from kdissect.feed.counting import Asked
from kdissect.feed.filtering import quoted
from kdissect.feed.statistics import CountedTables
from kdissect.present.columns import Column as Written
from kdissect.present.form import Clock, plural
from kdissect.present.options import PLAIN as PLAIN_VALUES
from kdissect.present.statistics import STATISTICS as TABLES
from kdissect.present.statistics_text import NUMBERS, shown
from kdissect.tui.lists.figures import ADDRESS, LEAST_TEXT, NICE, USEFUL, FigureColumn, Figures
from kdissect.tui.pages.page import BACK
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.widgets.table import VirtualTable

_FIRST, _SECOND = 6, 12
"""The columns after these first numbers of columns are left out earlier if there is little room."""
_NTH = "\N{NUMBER SIGN}"
"""Beside the columns of a row: its number among the rows with the same names."""
_FIELDS = {
    GROUP_COLUMN: "group",
    TOPIC_COLUMN: "topic",
    PARTITION_COLUMN: "partition",
    CLIENT_ID_COLUMN: "client_id",
    BROKER_COLUMN: "broker",
}
"""Columns that several statistics have, and the filter's field for their values."""
_NAMES = (
    *_FIELDS.values(),
    "client",
    "topics",
    "subject",
    "coordinator",
    "transactional_id",
    "member",
    "principal",
)
"""Columns with names, which differ at the end as often as at the beginning."""
_ADDRESSES = ("broker", "client", "coordinator")
"""Those of them with an address, which is never cut."""
_API, _API_CELLS = "api", 28
"""The column with names of APIs, and its least width in cells. Only one name is longer."""


def list_of(names: Iterable[str]) -> Figures:
    """The list of statistics, by their names."""
    figures = Figures(
        (
            FigureColumn("Table", lambda row: str(row["name"]), None, 0, False, 24, False, 20),
            FigureColumn("What it shows", lambda row: str(row["about"]), None, 0, False, 100),
        ),
        lambda row: row["name"],
    )
    figures.show([{"name": name, "about": STATISTICS[name].about} for name in names])
    return figures


def figures() -> Figures:
    """The empty rows of any statistic."""
    return Figures((), lambda row: row[_NTH])


def columns_of(name: str, clock: Clock) -> tuple[FigureColumn, ...]:
    """The columns of a statistic.

    :param clock: writes times.
    """
    columns = TABLES[name].columns
    names = {each.name for each in columns}
    # The cells have units, so a title needs none. If another column has that title, this one is a time.
    titles = [
        each.name if short == each.name else f"{short}_time" if short in names else short
        for each in columns
        for short in (each.name.removesuffix("_ns"),)
    ]
    return tuple(
        _column(at, each, title, clock) for at, (each, title) in enumerate(zip(columns, titles, strict=True))
    )


def _column(at: int, column: Written, title: str, clock: Clock) -> FigureColumn:
    empty = ("", "0", "0 B") if column.rare else ("",)

    def text(row: Row) -> str:
        said = shown(column, column.value(row, PLAIN_VALUES), clock)
        return "" if said in empty else said

    is_right = column.type in NUMBERS
    return FigureColumn(
        title,
        text,
        _order(column),
        _rank(at, column),
        is_right,
        is_most_first=is_right and column.unit not in (TIME, ID, EXCHANGE),
        is_name=column.name in (*_NAMES, _API),
        least=_least(column.name),
    )


def _least(name: str) -> int:
    """The least width of the texts of a column, in cells."""
    if name == _API:
        return _API_CELLS
    return ADDRESS if name in _ADDRESSES else LEAST_TEXT


def _rank(at: int, column: Written) -> int:
    """How soon a column is left out if there is little room; the first never is."""
    if at == 0:
        return 0
    if at < _FIRST:
        return 1
    if column.kept:
        return 2
    return USEFUL if at < _SECOND else NICE


def _order(column: Written) -> Callable[[Row], Any] | None:
    if column.unit == BANDS or column.type == "json":
        return None
    if column.type in NUMBERS or column.type in ("text", "bool"):
        return lambda row: row[column.name]
    return lambda row: tuple(row[column.name]) if row[column.name] else None


def numbered(name: str, rows: Sequence[Row]) -> list[Row]:
    """The rows of a statistic, each with a key that does not change while more is counted. The key is the
    subject of the row, and its number among the rows with the same subject."""
    names = [
        each.name
        for each in STATISTICS[name].columns
        if each.type == "text" or (each.unit == PLAIN and each.type in ("int16", "int32"))
    ]
    seen: Counter[Hashable] = Counter()
    out = []
    for row in rows:
        about = tuple(row[each] for each in names)
        seen[about] += 1
        out.append({**row, _NTH: (about, seen[about])})
    return out


def filter_of(name: str, row: Row) -> str | None:
    """The filter that shows the exchanges of a row's subject; None if a filter cannot express it."""
    parts = []
    for column in STATISTICS[name].columns:
        field, value = _FIELDS.get(column), row[column.name]
        if field is not None and value is not None:
            parts.append(f"{field} == {quoted(value) if isinstance(value, str) else value}")
    return " and ".join(parts) or None


def exchange_of(name: str, row: Row) -> int | None:
    """The number of the first exchange that a row names; None if it names none."""
    for column in STATISTICS[name].columns:
        value = row[column.name] if column.unit == EXCHANGE else None
        found: int | None = (value[0] if value else None) if column.type == "int64s" else value
        if found is not None:
            return found
    return None


class FactsPage(StatisticsPage):
    """The list of statistics with their texts, and the rows of the one under its cursor. Enter goes to the
    rows, and from a row to its exchanges.

    :param elsewhere: statistics that other screens show.
    """

    DEFAULT_CSS = """
    FactsPage #tables { height: 2fr; max-height: 16; }
    FactsPage #list { height: 3fr; border-top: hkey $panel; }
    """

    def __init__(self, elsewhere: frozenset[str]) -> None:
        self._names = tuple(name for name in STATISTICS if name not in elsewhere)
        self.chosen = self._names[0]
        """The statistic whose rows are shown."""
        self._is_made_ready = False
        self._tables: Figures | None = None
        self._making = Lock()
        super().__init__()

    def figures(self) -> Figures:
        return figures()

    @property
    def tables(self) -> Figures:
        """The list of statistics. Their texts are in their modules; importing these takes time, so only this
        screen does it."""
        with self._making:  # a thread may make it while a key opens the screen
            if self._tables is None:
                self._tables = list_of(self._names)
            return self._tables

    @property
    def is_ready(self) -> bool:
        return self._tables is not None

    def make_ready(self) -> None:
        if not self._is_made_ready:
            self._is_made_ready = True
            Thread(target=lambda: self.tables, daemon=True).start()

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

    def on_mount(self) -> None:
        self.tables_pane.cursor = self._names.index(self.chosen)

    def show_table(self, name: str) -> None:
        """Show the rows of a statistic, now or when this screen is made."""
        if self.is_mounted:
            self.tables_pane.go_to(self._names.index(name))
        else:
            self.chosen = name

    def needed_statistics(self) -> Asked:
        return (self.chosen,)

    def fill(self, counted: CountedTables) -> None:
        rows = numbered(self.chosen, counted.tables[self.chosen])
        self.rows.show(rows, columns_of(self.chosen, self.clock))

    @on(VirtualTable.Highlighted, "#tables")
    def _table_highlighted(self, event: VirtualTable.Highlighted) -> None:
        name = self.tables.row(event.row)["name"]
        if name == self.chosen:
            return
        self.chosen, self.counted = name, None
        self.rows.narrow("")
        self.rows.show((), ())
        self.list_pane.rows_changed(0)
        self.statistics.request(self.needed_statistics())
        self.index_grew()

    @on(VirtualTable.Chosen, "#tables")
    def _table_chosen(self) -> None:
        self.list_pane.focus()

    @property
    def opens(self) -> str:
        return "Open" if self.list_pane.has_focus else "Rows"

    @property
    def way_out(self) -> str:
        return BACK if self.list_pane.has_focus and not self.rows.is_narrow else super().way_out

    def action_out(self) -> None:
        if self.show_all_rows():
            return
        if self.list_pane.has_focus:
            self.tables_pane.focus()
        else:
            super().action_out()

    def rows_text(self) -> str:
        return f"{self.chosen}: {plural(len(self.rows), 'row')}"

    def update_message(self) -> None:
        """In the list of statistics, write the whole text of one if the list has no room for it."""
        about, table = STATISTICS[self.chosen].about, self.tables_pane
        widest = table.columns - sum(each.width + 1 for each in self.tables.headings(table.columns)[:-1])
        super().update_message()
        if table.has_focus and cell_len(about) > widest > 0:
            self.show_message(f"{self.rows_text()}   {about}")

    @property
    def has_story(self) -> bool:
        return super().has_story and any(each.unit == EXCHANGE for each in STATISTICS[self.chosen].columns)

    def exchange_of(self, row: Row) -> int | None:
        return exchange_of(self.chosen, row)

    def near(self, row: Row) -> int | None:
        number = self.exchange_of(row)
        return None if number is None else self.kdissect.place_of(number)

    def filter_of(self, row: Row) -> str | None:
        return filter_of(self.chosen, row)
