"""The screen of response times, by API and by broker, client or topic: their parts, and how they were over
time.

The heat map below the list has a line for each band of time, the longest above. It is darker where there are
more exchanges. The more lines it has, the narrower the bands are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from kdissect.analysis.fold import Row
from kdissect.analysis.histogram import BANDS_NS
from kdissect.feed.counting import Asked
from kdissect.feed.filtering import quoted
from kdissect.feed.index import Index, Places
from kdissect.feed.rows import HAS_LATENCY
from kdissect.feed.statistics import CountedTables
from kdissect.feed.stories import CLIENT, TOPIC, Subject, subject
from kdissect.present.form import bars, duration, plural
from kdissect.present.lanes import CELLS, INKS, PARTS, bar, in_words
from kdissect.present.paragraphs import fold_text
from kdissect.present.sanitise import sanitise
from kdissect.tui.lists.figures import FigureColumn, Figures, address, named, number, rare, time_span
from kdissect.tui.pages.page import BARS, LOW, TINY
from kdissect.tui.pages.rooms import LEAST_LINES
from kdissect.tui.pages.statistics import GroupedPage
from kdissect.tui.widgets.table import Heading, VirtualTable

SHADES = " ·░▒▓█"
"""None, few … as many as anywhere."""
_LABEL, _COUNT = 10, 9
"""Cells of the first columns."""
_PADDING = 2
"""Cells beside the text of the parts."""
_OTHER_LINES = 7
"""Lines of the screen that are neither of the list nor of the heat map: the parts have up to three."""


def _edges(parts: int) -> NDArray[np.int64]:
    """Where bands end, with each of the usual ones in so many parts."""
    usual = np.log(np.array(BANDS_NS, np.float64))
    at = np.linspace(0, len(usual) - 1, (len(usual) - 1) * parts + 1)
    found = np.exp(np.interp(at, np.arange(len(usual)), usual)).round().astype(np.int64)
    found[::parts] = BANDS_NS
    return found


WIDE_EDGES_NS, EDGES_NS = np.array(BANDS_NS[::2]), np.array(BANDS_NS)
"""Where bands end if every ten times as long begins another, and where the usual ones do."""
EDGES_BY_ROOM = (WIDE_EDGES_NS, EDGES_NS, *map(_edges, (2, 3, 4, 5)))
"""From few lines to many."""


def places_of(
    index: Index, places: Places, api: str, version: int | None, more: Sequence[tuple[str, str]]
) -> Places:
    """Those exchanges of an API and version that have a response time.

    :param more: names of text columns, and the text that they have.
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


class Heat:
    """The lines.

    :param text_of: writes a time.
    """

    def __init__(self, text_of: Callable[[int], str]) -> None:
        self._text_of = text_of
        self._times: NDArray[Any] = np.zeros(0, np.int64)
        self._latencies: NDArray[Any] = np.zeros(0, np.int64)
        self._edges: NDArray[Any] = EDGES_NS
        self._bands: NDArray[Any] = np.zeros(0, np.int64)
        """The band of each exchange."""
        self._counts: list[int] = []
        """How many exchanges each band has."""
        self._span = 0, 1
        self._title = ""
        self._version = 0
        self._made: dict[int, list[str]] = {}
        """Lines by how many cells they have."""

    def show(self, index: Index, places: Places, title: str) -> None:
        """Take other exchanges.

        :param title: what they are, sanitised.
        """
        self._times = index.column("time_ns")[places]
        self._latencies = index.column("latency_ns")[places]
        start = index.first_ns or 0
        self._span = start, max(start + 1, index.last_ns or 0)
        self._title = title
        self._sort_in()

    def fit(self, lines: int) -> None:
        """Have as many bands as there are lines for, or the fewest there can be."""
        edges = next((each for each in reversed(EDGES_BY_ROOM) if len(each) < lines), EDGES_BY_ROOM[0])
        if edges is not self._edges:
            self._edges = edges
            self._sort_in()

    def _sort_in(self) -> None:
        self._bands = np.searchsorted(self._edges, self._latencies, side="right")
        self._counts = np.bincount(self._bands, minlength=len(self._edges) + 1).tolist()
        self._version += 1
        self._made.clear()

    def __len__(self) -> int:
        return len(self._edges) + 1 if len(self._times) else 0

    def band(self, row: int) -> tuple[int | None, int | None]:
        """The times of a line: from, in ns, and below; None for no end."""
        edges = self._edges.tolist()
        at = len(edges) - row
        return edges[at - 1] if at else None, edges[at] if at < len(edges) else None

    def row_of(self, lowest: int | None) -> int:
        """The line of the band that has a time, or the last one for none."""
        at = 0 if lowest is None else int(np.searchsorted(self._edges, lowest, side="right"))
        return len(self._edges) - at

    def headings(self, width: int) -> Sequence[Heading]:
        first, last = map(self._text_of, self._span)
        return (
            Heading("Latency", _LABEL, True),
            Heading("Count", _COUNT, True),
            Heading(f"{first} to {last}   {self._title}" if len(self) else "no response times", 0),
        )

    def key(self, row: int) -> Hashable:
        return self._version, row

    def tone(self, row: int) -> str | None:
        return None

    def cells(self, row: int, width: int) -> Sequence[str]:
        lowest, below = self.band(row)
        label = f"≥ {duration(lowest)}" if lowest is not None else f"< {duration(below or 0)}"
        count = self._counts[len(self._edges) - row]
        room = max(1, width - _LABEL - _COUNT - 2)
        return [label, f"{count:,}" if count else "", self._lines(room)[row]]

    def _lines(self, room: int) -> list[str]:
        found = self._made.get(room)
        if found is None:
            start, end = self._span
            columns = np.clip((self._times - start) * room // max(1, end - start), 0, room - 1)
            grid = np.zeros((len(self), room), np.int64)
            np.add.at(grid, (len(self._edges) - self._bands, columns), 1)
            scale = np.log1p(grid) / max(
                1.0, float(np.log1p(grid.max()))
            )  # one is still seen among thousands
            shades = np.where(grid > 0, np.maximum(1, np.ceil(scale * (len(SHADES) - 1))), 0).astype(int)
            found = self._made[room] = ["".join(SHADES[at] for at in line) for line in shades]
        return found


ASKED = {"api": "", "broker": ",broker", "client": ",client_id", "topic": ",topic"}
"""Grouping: what follows the names of the statistics."""

_BY = {
    "api": (),
    "broker": (address("Broker", "broker"),),
    "client": (named("Client id", "client_id", least=20),),
    "topic": (named("Topic", "topic", least=24),),
}


def _api(row: Row) -> str:
    version = row["api_version"]
    return sanitise(row["api"]) + (f" v{version}" if version is not None else "")


def _waits(row: Row) -> str:
    """Of how many it is known that the broker waited as asked, of how many it may be."""
    if not row["may_wait"]:
        return ""
    return f"{row['waited_out']:,}/{row['may_wait']:,}"


def _throttle(row: Row) -> str:
    return f"{row['throttled']:,}× {row['throttle_max_ms']:,} ms" if row["throttled"] else ""


def columns(grouping: str) -> Sequence[FigureColumn]:
    """The columns of a grouping."""
    return _COLUMNS[grouping]


_COLUMNS = {
    grouping: (
        FigureColumn("API", _api, lambda row: (row["api"], row["api_version"] or 0), 0, False, 32, False, 32),
        *by,
        number("Count", "count"),
        FigureColumn("Share", lambda row: f"{row['share']:.1f} %", lambda row: row["share"], 4),
        time_span("Min", "min_ns", 5),
        time_span("p50", "p50_ns"),
        time_span("p90", "p90_ns", 2),
        time_span("p99", "p99_ns"),
        time_span("Max", "max_ns", 1),
        FigureColumn("Spread", lambda row: bars(row["bands"]), None, 2, False, 11),
        FigureColumn("Waited", _waits, lambda row: row["may_wait"] or None, 3),
        time_span("Work p50", "work_p50_ns", 4),
        time_span("Work p99", "work_p99_ns", 3),
        time_span("Work max", "work_max_ns", 8),
        FigureColumn("Throttled", _throttle, lambda row: row["throttled"] or None, 6),
        rare("No answer", "unanswered", 5),
        FigureColumn("Where it goes", lambda row: bar(row["parts"]), None, 1, False, CELLS, least=CELLS),
    )
    for grouping, by in _BY.items()
}


def figures() -> Figures:
    """The rows, empty."""
    return InkedBand(_COLUMNS["api"], _about, lambda row: None if row["count"] else "table--dim")


class InkedBand(Figures):
    """The rows; parts in the last column have their colours."""

    inks: Mapping[str, str] = INKS


_NAMES = ("api", "api_version", "broker", "client", "client_id", "topic")


def _about(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in _NAMES)


def with_shares(rows: Sequence[Row], parts: Sequence[Row] = ()) -> list[Row]:
    """The rows with the share that each has of all exchanges with an answer.

    :param parts: rows of ``latency`` about the same, which become their ``parts``.
    """
    total = sum(row["count"] for row in rows) or 1
    by_name = {_about(row): row for row in parts}
    return [{**row, "share": 100 * row["count"] / total, "parts": by_name.get(_about(row))} for row in rows]


_FIELDS = ("broker", "client_id", "topic")
_WITH_STORY = ("client", "topic")
"""Groupings whose rows have a story: an API or a broker has none."""


class HeatTable(VirtualTable):
    """The heat map: its bands are as many as it has lines."""

    rows: Heat

    def on_resize(self) -> None:
        lowest, _ = self.rows.band(self.cursor)
        self.rows.fit(self.page)
        self.rows_changed(self.rows.row_of(lowest))


class LatencyPage(GroupedPage):
    """Response times by API, and by broker, client or topic. Below stand the parts of the row under the
    cursor, and its response times over time. Enter shows the exchanges of a row, or of a band of times."""

    DEFAULT_CSS = """
    LatencyPage #parts { height: auto; max-height: 3; padding: 0 1; background: $panel; }
    LatencyPage #heat { height: 1fr; border-top: hkey $panel; }
    LatencyPage.-no-bars #heat { border-top: none; }
    LatencyPage.-tiny #heat { display: none; }
    """
    GROUPINGS = tuple(ASKED)
    _drawn: frozenset[str] = frozenset()
    """The signs of parts in the bars of all rows."""

    def figures(self) -> Figures:
        return figures()

    def regroup(self) -> None:
        super().regroup()
        self.refresh_bindings()

    def asked_by(self, grouping: str) -> Asked:
        return tuple(f"{name}{ASKED[grouping]}" for name in ("srt", "latency"))

    def body(self) -> ComposeResult:
        yield from super().body()
        yield Static(id="parts", markup=False)
        self.heat = Heat(self.clock.text)
        yield HeatTable(self.heat, id="heat")

    def on_resize(self) -> None:
        self._share_room()
        self._tell_parts()

    def _share_room(self) -> None:
        """The list has as many lines as it needs, as far as the heat map has room for the usual bands."""
        height = self.app.size.height
        bands = 0 if height < TINY else len(WIDE_EDGES_NS if height < LOW else EDGES_NS) + 1
        bands += 1 if height >= BARS else 0
        room = height - _OTHER_LINES - (bands + 1 if bands else 0)
        self.wish(self.list_pane, max(LEAST_LINES, min(len(self.rows) + 2, room)) if bands else "1fr")

    def cursor_moved(self) -> None:
        row, index, shown = self.chosen_row(), self.kdissect.index, self.kdissect.shown
        self._tell_parts()
        if row is not None and index.first_ns is not None:
            more = [(name, sanitise(row[name])) for name in ("broker", "client_id") if row[name] is not None]
            places = shown.places if shown.is_filtered else index.order()
            title = " ".join([_api(row), *(text for _, text in more)])
            self.heat.show(index, places_of(index, places, row["api"], row["api_version"], more), title)
            self.query_one("#heat", VirtualTable).rows_changed()

    def _tell_parts(self) -> None:
        """Write the parts of the row under the cursor in lines in which each sign stands before its words."""
        row = self.chosen_row()
        said = "" if row is None else f"{_api(row)}: {in_words(row['parts'])}"
        lines = fold_text(said, self.app.size.width - _PADDING) if said else []
        self.query_one("#parts", Static).update(Text("\n".join(lines)))

    def fill(self, counted: CountedTables) -> None:
        rows = with_shares(*(counted.tables[name] for name in self.asked()))
        self.rows.show(rows, columns(self.grouping))
        self._drawn = frozenset("".join(bar(row["parts"]) for row in rows))
        self._share_room()

    def listed(self) -> str:
        return "exchange"

    def what(self) -> str:
        return plural(len(self.rows), "row")

    def notes(self) -> list[str]:
        width = self.list_pane.columns or self.app.size.width  # before it is laid out
        shown = {heading.title for heading in self.rows.headings(width)}
        legends = {
            "Where it goes": [f"{each.sign} {each.brief}" for each in PARTS if each.sign in self._drawn],
            "Spread": ["spread: <100 µs … >3 s"],
            "Waited": ["waited: sure/maybe"],
        }
        # Where there is no room for the heat map, that is said.
        hidden = [] if self.query_one("#heat").display else [f"over time: from {TINY} lines"]
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

    @on(VirtualTable.Chosen, "#heat")
    def _band_chosen(self, event: VirtualTable.Chosen) -> None:
        row = self.chosen_row()
        text = None if row is None else self.filter_of(row)
        if text is None:
            return
        lowest, below = self.heat.band(event.row)
        parts = [text]
        parts += [f"latency_ns >= {lowest}"] if lowest is not None else []
        parts += [f"latency_ns < {below}"] if below is not None else []
        self.kdissect.filter_by(" and ".join(parts))
