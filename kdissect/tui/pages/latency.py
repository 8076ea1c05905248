"""The screen of response times, by API and by broker, client or topic: their parts, and their course over
time (:mod:`kdissect.tui.pages.heat_map`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from kdissect.analysis.fold import Row
from kdissect.feed.counting import Asked
from kdissect.feed.filtering import quoted, span_text
from kdissect.feed.index import Index, Places
from kdissect.feed.rows import HAS_LATENCY
from kdissect.feed.statistics import CountedTables
from kdissect.feed.stories import CLIENT, TOPIC, Subject, subject
from kdissect.present.form import bars, plural
from kdissect.present.lanes import CELLS, INKS, PARTS, bar, in_words
from kdissect.present.paragraphs import fold_text
from kdissect.present.sanitise import sanitise
from kdissect.tui.lists.figures import FigureColumn, Figures, address, name_column, number, rare, time_span
from kdissect.tui.pages.heat_map import EDGES_NS, WIDE_EDGES_NS, Heat, HeatCell, HeatTable
from kdissect.tui.pages.page import BACK, BARS, LOW, TINY
from kdissect.tui.pages.statistics import GroupedPage
from kdissect.tui.widgets.split_panes import LEAST_LINES
from kdissect.tui.widgets.table import VirtualTable

_PADDING = 2
"""The cells besides the text of the parts."""
_OTHER_LINES = 7
"""The lines of the screen besides those of the list and of the heat map. The parts have up to three."""


def places_of(
    index: Index, places: Places, api: str, version: int | None, more: Sequence[tuple[str, str]]
) -> Places:
    """The exchanges of an API and version that have a response time.

    :param more: names of text columns, with the texts to match.
    """
    flags = index.column("flags")[places]
    here = (flags & HAS_LATENCY) != 0
    if version is not None:
        here &= index.column("api_version")[places] == version
    for name, text in (("api", api), *more):
        numbers = [at for at, each in enumerate(index.texts) if each == text]
        here &= np.isin(index.column(name)[places], numbers)
    found: Places = places[here]
    return found


ASKED = {"api": "", "broker": ",broker", "client": ",client_id", "topic": ",topic"}
"""For each grouping, the text after the names of the statistics."""

_BY = {
    "api": (),
    "broker": (address("Broker", "broker"),),
    "client": (name_column("Client id", "client_id", least=12),),
    "topic": (name_column("Topic", "topic", least=12),),
}


def _api(row: Row) -> str:
    version = row["api_version"]
    return sanitise(row["api"]) + (f" v{version}" if version is not None else "")


def _api_order(row: Row) -> tuple[str, int]:
    return row["api"], row["api_version"] or 0


def _waits(row: Row) -> str:
    """The number of exchanges in which the broker waited as requested, and of those in which it may have
    waited."""
    if not row["may_wait"]:
        return ""
    return f"{row['waited_out']:,}/{row['may_wait']:,}"


def _throttle(row: Row) -> str:
    return f"{row['throttled']:,}× {row['throttle_max_ms']:,} ms" if row["throttled"] else ""


def _bar(row: Row, room: int = CELLS) -> str:
    return bar(row["parts"], room)


def columns(grouping: str) -> Sequence[FigureColumn]:
    """The columns of a grouping."""
    return _COLUMNS[grouping]


_COLUMNS = {
    grouping: (
        FigureColumn("API", _api, _api_order, 0, False, 32, False, 26 if by else 32, is_name=True),
        *by,
        number("Count", "count"),
        FigureColumn("Share", lambda row: f"{row['share']:.1f} %", lambda row: row["share"], 4),
        time_span("Min", "min_ns", 5),
        time_span("p50", "p50_ns", 2),
        time_span("p90", "p90_ns", 3),
        time_span("p99", "p99_ns"),
        time_span("Max", "max_ns", 2),
        FigureColumn("Spread", lambda row: bars(row["bands"]), None, 3, False, 11),
        FigureColumn("Waited", _waits, lambda row: row["may_wait"] or None, 3),
        time_span("Work p50", "work_p50_ns", 4),
        time_span("Work p99", "work_p99_ns", 3),
        time_span("Work max", "work_max_ns", 8),
        FigureColumn("Throttled", _throttle, lambda row: row["throttled"] or None, 6),
        rare("No answer", "unanswered", 5),
        FigureColumn("Where it goes", _bar, None, 0, False, CELLS, least=13, fitted=_bar),
    )
    for grouping, by in _BY.items()
}


def figures() -> Figures:
    """The empty rows."""
    return InkedBand(_COLUMNS["api"], _about, lambda row: None if row["count"] else "table--dim")


class InkedBand(Figures):
    """The rows, with colours for the parts in the last column."""

    inks: Mapping[str, str] = INKS


_NAMES = ("api", "api_version", "broker", "client", "client_id", "topic")


def _about(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in _NAMES)


def with_shares(rows: Sequence[Row], parts: Sequence[Row] = ()) -> list[Row]:
    """The rows with the share of each in all exchanges with an answer.

    :param parts: rows of ``latency`` with the same subjects, which become their ``parts``.
    """
    total = sum(row["count"] for row in rows) or 1
    by_name = {_about(row): row for row in parts}
    return [{**row, "share": 100 * row["count"] / total, "parts": by_name.get(_about(row))} for row in rows]


_FIELDS = ("broker", "client_id", "topic")
_WITH_STORY = ("client", "topic")
"""Groupings whose rows have a story: an API or a broker has none."""


class LatencyPage(GroupedPage):
    """Response times by API, and by broker, client or topic. Below are the parts of the row under the cursor,
    and its response times over time. Enter shows the exchanges of a row, of a band of times, or of a band at
    a moment."""

    DEFAULT_CSS = """
    LatencyPage #parts { height: auto; max-height: 3; padding: 0 1; background: $panel; }
    LatencyPage #heat { height: 1fr; border-top: hkey $panel; }
    LatencyPage.-no-bars #heat { border-top: none; }
    LatencyPage.-tiny #heat { display: none; }
    """
    GROUPINGS = tuple(ASKED)
    _drawn: frozenset[str] = frozenset()
    """The signs of parts in the bars of all rows."""
    _room_of_parts = 0, 0
    """The width of the text about the parts, and the most lines that it had at this width. It keeps these
    lines: with fewer, the cursor would move the heat map, and each key would need a layout of the screen."""

    def __init__(self) -> None:
        self._heat_of: tuple[object, ...] | None = None
        """The subject of the heat map."""
        super().__init__()
        self.heat = Heat(self.clock.text)
        self.heat_pane = HeatTable(self.heat, id="heat")

    def figures(self) -> Figures:
        return figures()

    def regroup(self) -> None:
        super().regroup()
        self.refresh_bindings()

    def statistics_by(self, grouping: str) -> Asked:
        return tuple(f"{name}{ASKED[grouping]}" for name in ("srt", "latency"))

    def body(self) -> ComposeResult:
        yield from super().body()
        yield Static(id="parts", markup=False)
        yield self.heat_pane

    def on_resize(self) -> None:
        self._share_room()
        self._show_parts()

    def _share_room(self) -> None:
        """Give the list as many lines as it needs, but leave the heat map room for the usual bands."""
        height = self.app.size.height
        bands = 0 if height < TINY else len(WIDE_EDGES_NS if height < LOW else EDGES_NS) + 1
        bands += 1 if height >= BARS else 0
        room = height - _OTHER_LINES - (bands + 1 if bands else 0)
        self.wish(self.list_pane, max(LEAST_LINES, min(len(self.rows) + 2, room)) if bands else "1fr")

    def cursor_moved(self) -> None:
        row, index, shown = self.chosen_row(), self.kdissect.index, self.kdissect.shown
        self._show_parts()
        if row is None or index.first_ns is None:
            self.heat.show(index, index.order()[:0], "")
        else:
            more = [(name, sanitise(row[name])) for name in ("broker", "client_id") if row[name] is not None]
            places = shown.places if shown.is_filtered else index.order()
            title = " ".join([_api(row), *(text for _, text in more)])
            if row["topic"] is not None:  # the rows of the index do not have the topics of every exchange
                title += ", all topics"
            found = places_of(index, places, row["api"], row["api_version"], more)
            self.heat.show(index, found, title, shown.span)
        of = None if row is None else _about(row)
        self.heat_pane.show_others(of != self._heat_of)
        self._heat_of = of
        if self.heat_pane.has_focus:
            self.update_message()

    def _show_parts(self) -> None:
        """Write the parts of the row under the cursor in lines, with each sign before its words."""
        row = self.chosen_row()
        said = "" if row is None else f"{_api(row)}: {in_words(row['parts'])}"
        lines = fold_text(said, self.app.size.width - _PADDING) if said else []
        parts, (width, most) = self.query_one("#parts", Static), self._room_of_parts
        keeps_room = lines and width == self.app.size.width
        self._room_of_parts = self.app.size.width, max(len(lines), most if keeps_room else 0)
        parts.update(Text("\n".join(lines)), layout=False)
        if self._room_of_parts[1] != most:
            parts.styles.height = self._room_of_parts[1] or "auto"

    def fill(self, counted: CountedTables) -> None:
        rows = with_shares(*(counted.tables[name] for name in self.needed_statistics()))
        self.rows.show(rows, columns(self.grouping))
        self._drawn = frozenset("".join(bar(row["parts"]) for row in rows))
        self._share_room()

    def listed(self) -> str:
        return "exchange"

    def show_notes(self, notes: Sequence[str]) -> None:
        """In the heat map, describe the cell under its cursor."""
        cell = self.heat_pane.cell if self.heat_pane.has_focus else None
        if cell is None:
            super().show_notes(notes)
        else:
            self.show_message(cell.words(self.clock.text))

    def rows_text(self) -> str:
        return plural(len(self.rows), "row")

    def notes(self) -> list[str]:
        width = self.list_pane.columns or self.app.size.width  # before it is laid out
        shown = {heading.title for heading in self.rows.headings(width)}
        legends = {
            "Where it goes": [f"{each.sign} {each.brief}" for each in PARTS if each.sign in self._drawn],
            "Spread": ["spread: <100 µs … >3 s"],
            "Waited": ["waited: sure/maybe"],
        }
        # If there is no room for the heat map, a note says so.
        hidden = [] if self.heat_pane.display else [f"over time: from {TINY} lines"]
        texts = (text for title, each in legends.items() if title in shown for text in each)
        return [*super().notes(), *hidden, *texts]

    @property
    def has_story(self) -> bool:
        return super().has_story and self.grouping in _WITH_STORY

    def subject_of(self, row: Row) -> Subject | None:
        for name, kind in (("client_id", CLIENT), ("topic", TOPIC)):
            if row[name] is not None:
                return subject(kind, row[name])
        return None

    def filter_of(self, row: Row) -> str | None:
        parts = [f"api == {quoted(row['api'])}"]
        if row["api_version"] is not None:
            parts.append(f"api_version == {row['api_version']}")
        parts += [f"{name} == {quoted(row[name])}" for name in _FIELDS if row[name] is not None]
        return " and ".join(parts)

    @on(VirtualTable.Highlighted, "#heat")
    @on(HeatTable.Moved)
    def _heat_moved(self) -> None:
        self.update_message()
        if self.way_out != self._quit_word:
            self._quit_word = self.way_out
            self.refresh_bindings()

    @on(VirtualTable.Chosen, "#heat")
    def _cell_chosen(self) -> None:
        """Show the exchanges of the cell. The range of time is put on top of the filter for the band, so that
        Esc removes it first."""
        row, cell, shown = self.chosen_row(), self.heat_pane.cell, self.kdissect.shown
        text = None if row is None or cell is None else self._filter_of_band(row, cell)
        if text is None or cell is None:
            return
        if not cell.exchanges:
            self.show_message("nothing is in this cell; ↑ ↓ ← → lead to others")
            return
        self.kdissect.filter_by(text)
        if cell.span is not None and shown.span is None:
            shown.narrow_to(*cell.span)
        elif cell.span is not None:  # within the range that was chosen before, which comes back
            shown.narrow(span_text(*cell.span))

    def _filter_of_band(self, row: Row, cell: HeatCell) -> str | None:
        """The filter for the drawn exchanges: among the shown ones, those of the row and of the band."""
        text, shown = self.filter_of(row), self.kdissect.shown
        if text is None:
            return None
        written = shown.written if shown.is_filtered else ""
        return " and ".join([*([f"({written})"] if written else []), text, cell.band])

    # -- keys -----------------------------------------------------------------------------------------

    @property
    def _has_moment(self) -> bool:
        return self.heat_pane.has_focus and self.heat_pane.moment is not None

    @property
    def way_out(self) -> str:
        return BACK if self._has_moment else super().way_out

    def action_out(self) -> None:
        """Go from a moment to the whole band, before any other undoing."""
        if self._has_moment:
            self.heat_pane.moment = None
        else:
            super().action_out()
