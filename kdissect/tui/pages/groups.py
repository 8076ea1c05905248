"""The screen of groups: their figures, and the members of the one under the cursor as lines of time."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult

from kdissect.analysis.fold import Row
from kdissect.present.form import plural
from kdissect.tui.feed.counting import Asked
from kdissect.tui.filtering import quoted
from kdissect.tui.lists import groups
from kdissect.tui.lists.figures import Figures
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.statistics import Counted
from kdissect.tui.widgets.table import VirtualTable

ASKED = ("groups", "members", "stays")


class GroupsPage(StatisticsPage):
    """Groups and their members; Enter shows the exchanges of one."""

    DEFAULT_CSS = """
    GroupsPage #list { height: 2fr; }
    GroupsPage #members { height: 3fr; border-top: hkey $panel; }
    """

    def figures(self) -> Figures:
        self.timeline = groups.Timeline(self.clock.text)
        return groups.figures()

    def body(self) -> ComposeResult:
        yield from super().body()
        yield VirtualTable(self.timeline, id="members")

    @property
    def members_pane(self) -> VirtualTable:
        """The lines of time."""
        return self.query_one("#members", VirtualTable)

    def asked(self) -> Asked:
        return ASKED

    def fill(self, counted: Counted) -> None:
        self.rows.show(counted.tables["groups"])

    def cursor_moved(self) -> None:
        cursor = self.list_pane.cursor
        group = self.rows.row(cursor)["group"] if cursor < len(self.rows) else None
        tables = self.counted.tables if self.counted is not None else {}
        self.timeline.show(group, tables.get("members", ()), tables.get("stays", ()))
        self.members_pane.rows_changed(0)

    def what(self) -> str:
        return plural(len(self.rows), "group")

    def notes(self) -> list[str]:
        meaning = (
            f"{groups.JOINING} join to sync   {groups.WAITING} {groups.NOT_FINISHED}   "
            f"3 generation or epoch   {groups.LEFT} left"
        )
        return [*super().notes(), meaning]

    def filter_of(self, row: Row) -> str | None:
        return f"group == {quoted(row['group'])}"

    @on(VirtualTable.Highlighted, "#members")
    def _member_highlighted(self, event: VirtualTable.Highlighted) -> None:
        if self.members_pane.has_focus and event.row < len(self.timeline):
            self.say(self.timeline.text(event.row))

    @on(VirtualTable.Chosen, "#members")
    def _member_chosen(self, event: VirtualTable.Chosen) -> None:
        member = self.timeline.member(event.row)
        text = f"group == {quoted(member['group'])}"
        if member["client_id"] is not None:
            text += f" and client_id == {quoted(member['client_id'])}"
        self.kdissect.filter_by(text)
