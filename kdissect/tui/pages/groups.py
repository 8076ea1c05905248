"""The screen of groups: their figures, and the members of the one under the cursor as lines of time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from textual import on
from textual.app import ComposeResult

from kdissect.analysis.fold import Row, least, most
from kdissect.present.form import duration, plural
from kdissect.present.sanitise import sanitise
from kdissect.tui.feed.counting import Asked
from kdissect.tui.feed.stories import GROUP, Subject, subject
from kdissect.tui.filtering import quoted
from kdissect.tui.lists.figures import (
    MOST_TEXT,
    Column,
    Figures,
    graded,
    grave_tone,
    listed,
    number,
    rare,
    time_span,
    words,
)
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.statistics import Counted
from kdissect.tui.widgets.table import Heading, VirtualTable

JOINING, WAITING, IN, LEFT = "█", "▒", "─", "╳"
"""From a JoinGroup request to the SyncGroup response; the same, so far, where none came; in the group; the
member left."""
EARLIER, LATER = "‹", "›"
"""Something was before what the line shows, or after it."""
NOT_FINISHED = "not finished"


def _generation(row: Row) -> str:
    first, last = row["first_generation"], row["last_generation"]
    if first is None:
        return ""
    return f"{last:,}" if first == last else f"{first:,}…{last:,}"


def state(row: Row) -> str:
    """What the exchanges show of it: ``joining`` where the last rebalance is not finished, ``all left``."""
    if row["rebalance_last_completed"] is False:
        return "joining"
    if row["members"] and row["leaves"] >= row["members"]:
        return "all left"
    return "stable" if row["members"] else "no members"


def _last(row: Row) -> str:
    """How long the last rebalance took, or has taken so far."""
    if row["rebalance_last_ns"] is None:
        return ""
    so_far = f", {NOT_FINISHED}" if row["rebalance_last_completed"] is False else ""
    return duration(row["rebalance_last_ns"]) + so_far


COLUMNS = (
    words("Group", "group", least=MOST_TEXT),
    listed("Type", "types", 3, most=20),
    listed("Protocol", "protocols", 4, most=28),
    Column("State", state, state, 1, False, is_most_first=False),
    number("Members", "members"),
    rare("Left", "leaves", 2),
    Column("Generation", _generation, lambda row: row["last_generation"], 1),
    number("Rebalances", "rebalances", 1),
    Column("Last", _last, lambda row: row["rebalance_last_ns"], 3),
    time_span("Longest", "rebalance_max_ns", 2),
    rare("Not finished", "not_finished", 4),
    number("Heartbeats", "heartbeats", 6),
    number("Commits", "commits", 5),
    number("Offsets", "committed_partitions", 7),
    *graded(),
)


def figures() -> Figures:
    """The rows, empty."""
    return Figures(COLUMNS, lambda row: row["group"], grave_tone)


def _is_stranger(row: Row) -> bool:
    """Whether it is no member: commits of clients that assign partitions themselves, or of administrators."""
    return not (row["member_id"] or row["instance_id"] or row["joins"])


def _as_one(before: Row, later: Row) -> Row:
    """A static member that came back under another member id: one member, as it was last."""
    first, last = sorted((before, later), key=lambda row: row["first_ns"] or 0)
    sums = {name: before[name] + later[name] for name in ("joins", "heartbeats", "commits", "errors")}
    times = {"first_ns": first["first_ns"], "last_ns": most(before["last_ns"], later["last_ns"])}
    return {**last, **sums, **times}


class Timeline:
    """The members of one group, each with a line of time: from the first that any of them did to the last.

    A static member has one line, however often it came back. What others did, such as an administrator's
    requests a day later, does not squeeze the lines: a mark at the edge stands for it.
    """

    def __init__(self, text_of: Callable[[int], str]) -> None:
        self._text_of = text_of
        """How a time is written."""
        self._members: Sequence[Row] = ()
        self._stays: dict[str, list[Row]] = {}
        """By instance id, else by member id."""
        self._start = self._end = 0
        self._version = 0

    def show(self, group: str | None, members: Sequence[Row], stays: Sequence[Row]) -> None:
        """Take the rows of ``members`` and ``stays`` of a group."""
        self._version += 1
        lines: dict[str, Row] = {}
        names: dict[str, str] = {}
        for row in members:
            if row["group"] == group:
                name = row["instance_id"] or row["member_id"]
                if row["member_id"]:
                    names[row["member_id"]] = name
                lines[name] = _as_one(lines[name], row) if name in lines else row
        self._members = list(lines.values())
        self._stays = {}
        start: int | None = None
        end: int | None = None
        for row in stays:
            if row["group"] == group:
                member_id: str = row["member_id"]
                name = names.get(member_id, member_id)
                self._stays.setdefault(name, []).append(row)
                start = least(start, least(row["join_ns"], row["first_ns"]))
                end = most(end, most(_joined_ns(row), row["last_ns"]))
        own = [row for row in self._members if not _is_stranger(row)]
        for row in own or self._members:
            start, end = least(start, row["first_ns"]), most(end, row["last_ns"])
        self._start, self._end = start or 0, end or 0

    def __len__(self) -> int:
        return len(self._members)

    def member(self, row: int) -> Row:
        """The member of a line."""
        return self._members[row]

    def headings(self, width: int) -> Sequence[Heading]:
        title = f"{self._text_of(self._start)} to {self._text_of(self._end)}" if len(self) else ""
        name = max(16, min(44, width // 4))
        numbers = (Heading("Got", 5, True), Heading("Beats", 6, True), Heading("Commits", 8, True))
        return (Heading("Member", name), *(numbers if width >= 100 else ()), Heading(title, 0))

    def key(self, row: int) -> Hashable:
        return self._version, row

    def tone(self, row: int) -> str | None:
        return grave_tone(self._members[row])

    def cells(self, row: int, width: int) -> Sequence[str]:
        member, headings = self._members[row], self.headings(width)
        room = width - sum(heading.width for heading in headings) - (len(headings) - 1)
        known = [stay["assigned"] for stay in self._stays_of(member)]
        assigned = [each for each in known if each is not None]
        values = {
            "Member": _name(member),
            "Got": str(assigned[-1]) if assigned else "",
            "Beats": f"{member['heartbeats']:,}",
            "Commits": f"{member['commits']:,}",
        }
        return [values.get(heading.title, "") for heading in headings[:-1]] + [self._line(member, room)]

    def _line(self, member: Row, room: int) -> str:
        """The member's line of time, so many cells long, and a word on how it ended."""
        room = max(1, room)
        cells = [" "] * room

        def at(ns: int) -> int:
            place = (ns - self._start) * room // max(1, self._end - self._start)
            return max(0, min(room - 1, place))

        def fill(start: int | None, end: int | None, mark: str) -> None:
            if start is not None and end is not None and start <= self._end and end >= self._start:
                for cell in range(at(start), at(max(start, end)) + 1):
                    cells[cell] = mark

        fill(member["first_ns"], member["last_ns"], IN)
        stays = self._stays_of(member)
        for stay in stays:
            is_open = stay["completed"] is False
            fill(stay["join_ns"], _joined_ns(stay), WAITING if is_open else JOINING)
        for stay in stays:
            start = stay["sync_ns"] if stay["sync_ns"] is not None else stay["first_ns"]
            number = str(stay["generation"])
            if start is not None and len(number) <= room:  # a part of it would be another
                place = min(at(start) + (stay["sync_ns"] is not None), room - len(number))
                cells[max(0, place) : max(0, place) + len(number)] = number
        if member["first_ns"] is not None and member["first_ns"] < self._start:
            cells[0] = EARLIER
        if (most(member["last_ns"], member["left_ns"]) or 0) > self._end:
            cells[-1] = LATER
        if member["left_ns"] is not None and self._start <= member["left_ns"] <= self._end:
            cells[at(member["left_ns"])] = LEFT
        return "".join(cells)[:room]

    def _stays_of(self, member: Row) -> list[Row]:
        return self._stays.get(member["instance_id"] or member["member_id"], [])

    def text(self, row: int) -> str:
        """What is known of the member of a line, in words."""
        member = self._members[row]
        parts = [_name(member)]
        parts += [each for each in (member["client_id"], member["client"]) if each is not None]
        for stay in self._stays_of(member)[-1:]:
            if stay["protocol"]:
                parts.append(stay["protocol"])
            if stay["duration_ns"] is not None:
                took = duration(stay["duration_ns"])
                is_open = stay["completed"] is False
                parts.append(f"joining for {took}, {NOT_FINISHED}" if is_open else f"joined in {took}")
            if stay["reason"]:
                parts.append(f"because: {stay['reason']}")
        if member["left"] is not None:
            reason = f": {member['leave_reason']}" if member["leave_reason"] else ""
            parts.append(f"left by {member['left']} at {self._text_of(member['left_ns'])}{reason}")
        if member["errors"]:
            parts.append(plural(member["errors"], "error"))
        return ", ".join(sanitise(part) for part in parts)


def _joined_ns(stay: Row) -> int | None:
    """When a member was given its assignment; where it was not, the last that is known of it before."""
    if stay["join_ns"] is None or stay["duration_ns"] is None:
        return most(stay["join_ns"], stay["sync_ns"])
    return int(stay["join_ns"] + stay["duration_ns"])


def _name(member: Row) -> str:
    """The static name, else the member id; clients that only commit have neither."""
    return sanitise(
        member["instance_id"] or member["member_id"] or f"(no member) {member['client_id'] or ''}"
    )


ASKED = ("groups", "members", "stays")


class GroupsPage(StatisticsPage):
    """Groups and their members; Enter shows the exchanges of one."""

    DEFAULT_CSS = """
    GroupsPage #list { height: 2fr; }
    GroupsPage #members { height: 3fr; border-top: hkey $panel; }
    """

    def figures(self) -> Figures:
        self.timeline = Timeline(self.clock.text)
        return figures()

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
        meaning = f"{JOINING} join to sync   {WAITING} {NOT_FINISHED}   3 generation or epoch   {LEFT} left"
        return [*super().notes(), meaning]

    def subject_of(self, row: Row) -> Subject | None:
        return subject(GROUP, row["group"])

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
