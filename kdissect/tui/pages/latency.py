"""The screen of response times."""

from __future__ import annotations

from kdissect.analysis.fold import Row
from kdissect.present.form import plural
from kdissect.tui.feed.counting import Asked
from kdissect.tui.filtering import quoted
from kdissect.tui.lists import latency
from kdissect.tui.lists.figures import Figures
from kdissect.tui.pages.grouped import GroupedPage
from kdissect.tui.statistics import Counted

_FIELDS = ("broker", "client_id", "topic")


class LatencyPage(GroupedPage):
    """Response times by API, and by broker, client or topic; Enter shows the exchanges of a row."""

    GROUPINGS = tuple(latency.ASKED)

    def figures(self) -> Figures:
        return latency.figures()

    def asked_by(self, grouping: str) -> Asked:
        return (latency.ASKED[grouping],)

    def fill(self, counted: Counted) -> None:
        rows = latency.with_shares(counted.tables[latency.ASKED[self.grouping]])
        self.rows.show(rows, latency.columns(self.grouping))

    def what(self) -> str:
        return plural(len(self.rows), "row")

    def notes(self) -> list[str]:
        width = self.list_pane.columns or self.app.size.width  # before it is laid out
        shown = {heading.title for heading in self.rows.headings(width)}
        legends = {"Spread": "spread: <100 µs … >3 s", "Waited": "waited: sure/maybe"}
        return [*super().notes(), *(text for title, text in legends.items() if title in shown)]

    def filter_of(self, row: Row) -> str | None:
        parts = [f"api == {quoted(row['api'])}"]
        if row["api_version"] is not None:
            parts.append(f"api_version == {row['api_version']}")
        parts += [f"{name} == {quoted(row[name])}" for name in _FIELDS if row[name] is not None]
        return " and ".join(parts)
