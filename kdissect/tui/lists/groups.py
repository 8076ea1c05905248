"""Groups as columns of figures, and the members of one as lines of time. Nothing here draws."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from kdissect.analysis.fold import Row, least, most
from kdissect.present.form import duration, plural
from kdissect.present.sanitise import sanitise
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
from kdissect.tui.widgets.table import Heading

JOINING, IN, LEFT = "█", "─", "╳"
"""From a JoinGroup request to the SyncGroup response; in the group; the member left."""


def _generation(row: Row) -> str:
    first, last = row["first_generation"], row["last_generation"]
    if first is None:
        return ""
    return f"{last:,}" if first == last else f"{first:,}…{last:,}"


def state(row: Row) -> str:
    """What the exchanges show of it: ``joining`` where the last rebalance had not ended, ``all left``."""
    if row["rebalances"] and row["rebalance_last_ns"] is None:
        return "joining"
    if row["members"] and row["leaves"] >= row["members"]:
        return "all left"
    return "stable" if row["members"] else "no members"


COLUMNS = (
    words("Group", "group", least=MOST_TEXT),
    listed("Type", "types", 3, most=20),
    listed("Protocol", "protocols", 4, most=28),
    Column("State", state, state, 1, False, is_most_first=False),
    number("Members", "members"),
    rare("Left", "leaves", 2),
    Column("Generation", _generation, lambda row: row["last_generation"], 1),
    number("Rebalances", "rebalances", 1),
    time_span("Last", "rebalance_last_ns", 3),
    time_span("Longest", "rebalance_max_ns", 2),
    number("Heartbeats", "heartbeats", 6),
    number("Commits", "commits", 5),
    number("Offsets", "committed_partitions", 7),
    *graded(),
)


def figures() -> Figures:
    """The rows, empty."""
    return Figures(COLUMNS, lambda row: row["group"], grave_tone)


class Timeline:
    """The members of one group, each with a line of time from the group's first exchange to its last."""

    def __init__(self, text_of: Callable[[int], str]) -> None:
        self._text_of = text_of
        """How a time is written."""
        self._members: Sequence[Row] = ()
        self._stays: dict[str, list[Row]] = {}
        self._start = self._end = 0
        self._version = 0

    def show(self, group: str | None, members: Sequence[Row], stays: Sequence[Row]) -> None:
        """Take the rows of ``members`` and ``rebalances`` of a group."""
        self._version += 1
        self._members = [row for row in members if row["group"] == group]
        self._stays = {}
        start: int | None = None
        end: int | None = None
        for row in stays:
            if row["group"] == group:
                self._stays.setdefault(row["member_id"], []).append(row)
                start = least(start, least(row["join_ns"], row["first_ns"]))
                end = most(end, most(row["sync_ns"], row["last_ns"]))
        for row in self._members:
            start, end = least(start, row["first_ns"]), most(end, most(row["last_ns"], row["left_ns"]))
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
        known = [stay["assigned"] for stay in self._stays.get(member["member_id"], ())]
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
            return min(room - 1, (ns - self._start) * room // max(1, self._end - self._start))

        def fill(start: int | None, end: int | None, mark: str) -> None:
            if start is not None and end is not None:
                for cell in range(at(start), at(max(start, end)) + 1):
                    cells[cell] = mark

        fill(member["first_ns"], most(member["last_ns"], member["left_ns"]), IN)
        stays = self._stays.get(member["member_id"], ())
        for stay in stays:
            fill(stay["join_ns"], stay["sync_ns"], JOINING)
        for stay in stays:
            start = stay["sync_ns"] if stay["sync_ns"] is not None else stay["first_ns"]
            number = str(stay["generation"])
            if start is not None and len(number) <= room:  # a part of it would be another
                place = min(at(start) + (stay["sync_ns"] is not None), room - len(number))
                cells[max(0, place) : max(0, place) + len(number)] = number
        if member["left_ns"] is not None:
            cells[at(member["left_ns"])] = LEFT
        return "".join(cells)[:room]

    def text(self, row: int) -> str:
        """What is known of the member of a line, in words."""
        member = self._members[row]
        parts = [_name(member)]
        parts += [each for each in (member["client_id"], member["client"]) if each is not None]
        for stay in self._stays.get(member["member_id"], [])[-1:]:
            if stay["protocol"]:
                parts.append(stay["protocol"])
            if stay["duration_ns"] is not None:
                parts.append(f"joined in {duration(stay['duration_ns'])}")
            if stay["reason"]:
                parts.append(f"because: {stay['reason']}")
        if member["left"] is not None:
            reason = f": {member['leave_reason']}" if member["leave_reason"] else ""
            parts.append(f"left by {member['left']}{reason}")
        if member["errors"]:
            parts.append(plural(member["errors"], "error"))
        return ", ".join(sanitise(part) for part in parts)


def _name(member: Row) -> str:
    """The static name, else the member id; clients that only commit have neither."""
    return sanitise(
        member["instance_id"] or member["member_id"] or f"(no member) {member['client_id'] or ''}"
    )
