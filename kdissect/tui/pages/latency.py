"""The screen of response times, by API and by broker, client or topic."""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.analysis.fold import Row
from kdissect.present.form import bars, plural
from kdissect.present.sanitise import sanitise
from kdissect.tui.feed.counting import Asked
from kdissect.tui.feed.stories import CLIENT, TOPIC, Subject, subject
from kdissect.tui.filtering import quoted
from kdissect.tui.lists.figures import Column, Figures, address, number, rare, time_span, words
from kdissect.tui.pages.statistics import GroupedPage
from kdissect.tui.statistics import Counted

ASKED = {"api": "srt", "broker": "srt,broker", "client": "srt,client_id", "topic": "srt,topic"}
"""Grouping: the statistic."""

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
    )
    for grouping, by in _BY.items()
}


def figures() -> Figures:
    """The rows, empty."""
    names = ("api", "api_version", "broker", "client", "client_id", "topic")
    return Figures(
        _COLUMNS["api"],
        lambda row: tuple(row[name] for name in names),
        lambda row: None if row["count"] else "table--dim",
    )


def with_shares(rows: Sequence[Row]) -> list[Row]:
    """The rows with the share that each has of all exchanges with an answer."""
    total = sum(row["count"] for row in rows) or 1
    return [{**row, "share": 100 * row["count"] / total} for row in rows]


_FIELDS = ("broker", "client_id", "topic")


class LatencyPage(GroupedPage):
    """Response times by API, and by broker, client or topic; Enter shows the exchanges of a row."""

    GROUPINGS = tuple(ASKED)

    def figures(self) -> Figures:
        return figures()

    def asked_by(self, grouping: str) -> Asked:
        return (ASKED[grouping],)

    def fill(self, counted: Counted) -> None:
        rows = with_shares(counted.tables[ASKED[self.grouping]])
        self.rows.show(rows, columns(self.grouping))

    def what(self) -> str:
        return plural(len(self.rows), "row")

    def notes(self) -> list[str]:
        width = self.list_pane.columns or self.app.size.width  # before it is laid out
        shown = {heading.title for heading in self.rows.headings(width)}
        legends = {"Spread": "spread: <100 µs … >3 s", "Waited": "waited: sure/maybe"}
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
