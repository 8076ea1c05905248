"""The screen of response times, by API and by broker, client or topic: their parts, and how they were over
time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.widgets import Static

from kdissect.analysis.fold import Row
from kdissect.present.form import bars, plural
from kdissect.present.sanitise import sanitise
from kdissect.tui.feed.counting import Asked
from kdissect.tui.feed.stories import CLIENT, TOPIC, Subject, subject
from kdissect.tui.filtering import quoted
from kdissect.tui.lists.figures import Column, Figures, address, number, rare, time_span, words
from kdissect.tui.lists.heat import Heat, places_of
from kdissect.tui.lists.parts import CELLS, INKS, PARTS, bar, in_words
from kdissect.tui.pages.statistics import GroupedPage
from kdissect.tui.statistics import Counted
from kdissect.tui.widgets.table import VirtualTable

ASKED = {"api": "", "broker": ",broker", "client": ",client_id", "topic": ",topic"}
"""Grouping: what follows the names of the statistics."""

_BY = {
    "api": (),
    "broker": (address("Broker", "broker"),),
    "client": (words("Client id", "client_id", least=20),),
    "topic": (words("Topic", "topic", least=24),),
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


def columns(grouping: str) -> Sequence[Column]:
    """The columns of a grouping."""
    return _COLUMNS[grouping]


_COLUMNS = {
    grouping: (
        Column("API", _api, lambda row: (row["api"], row["api_version"] or 0), 0, False, 32, False, 32),
        *by,
        number("Count", "count"),
        Column("Share", lambda row: f"{row['share']:.1f} %", lambda row: row["share"], 4),
        time_span("Min", "min_ns", 5),
        time_span("p50", "p50_ns"),
        time_span("p90", "p90_ns", 2),
        time_span("p99", "p99_ns"),
        time_span("Max", "max_ns", 1),
        Column("Spread", lambda row: bars(row["bands"]), None, 2, False, 11),
        Column("Waited", _waits, lambda row: row["may_wait"] or None, 3),
        time_span("Work p50", "work_p50_ns", 4),
        time_span("Work p99", "work_p99_ns", 3),
        time_span("Work max", "work_max_ns", 8),
        Column("Throttled", _throttle, lambda row: row["throttled"] or None, 6),
        rare("No answer", "unanswered", 5),
        Column("Where it goes", lambda row: bar(row["parts"]), None, 1, False, CELLS, least=CELLS),
    )
    for grouping, by in _BY.items()
}


def figures() -> Figures:
    """The rows, empty."""
    return Inked(_COLUMNS["api"], _about, lambda row: None if row["count"] else "table--dim")


class Inked(Figures):
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


class LatencyPage(GroupedPage):
    """Response times by API, and by broker, client or topic. Below stand the parts of the row under the
    cursor, and its response times over time. Enter shows the exchanges of a row, or of a band of times."""

    DEFAULT_CSS = """
    LatencyPage #parts { height: auto; max-height: 3; padding: 0 1; background: $panel; }
    LatencyPage #heat { height: 14; border-top: hkey $panel; }
    LatencyPage.-low #heat { display: none; }
    """
    GROUPINGS = tuple(ASKED)

    def figures(self) -> Figures:
        return figures()

    def asked_by(self, grouping: str) -> Asked:
        return tuple(f"{name}{ASKED[grouping]}" for name in ("srt", "latency"))

    def body(self) -> ComposeResult:
        yield from super().body()
        yield Static(id="parts", markup=False)
        self.heat = Heat(self.clock.text)
        yield VirtualTable(self.heat, id="heat")

    def cursor_moved(self) -> None:
        row, index, shown = self.chosen_row(), self.kdissect.index, self.kdissect.shown
        said = "" if row is None else f"{_api(row)}: {in_words(row['parts'])}"
        self.query_one("#parts", Static).update(Text(said))
        if row is not None and index.first_ns is not None:
            more = [(name, sanitise(row[name])) for name in ("broker", "client_id") if row[name] is not None]
            places = shown.places if shown.is_filtered else index.order()
            title = " ".join([_api(row), *(text for _, text in more)])
            self.heat.show(index, places_of(index, places, row["api"], row["api_version"], more), title)
            self.query_one("#heat", VirtualTable).rows_changed()

    def fill(self, counted: Counted) -> None:
        rows = with_shares(*(counted.tables[name] for name in self.asked()))
        self.rows.show(rows, columns(self.grouping))

    def what(self) -> str:
        return plural(len(self.rows), "row")

    def notes(self) -> list[str]:
        width = self.list_pane.columns or self.app.size.width  # before it is laid out
        shown = {heading.title for heading in self.rows.headings(width)}
        parts = "   ".join(f"{each.sign} {each.words}" for each in PARTS if each.sign in "▒┄█")
        legends = {
            "Where it goes": parts,
            "Spread": "spread: <100 µs … >3 s",
            "Waited": "waited: sure/maybe",
        }
        return [*super().notes(), *(text for title, text in legends.items() if title in shown)]

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
