"""The members of a group as rows of a table: their partitions, lag and time lines. Nothing here draws.

A line shows the whole capture, or the time of one rebalance. Marks differ by shape; colours only help.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kdissect.analysis.fold import Row, least, most
from kdissect.present.form import bars, duration, plural
from kdissect.present.lanes import POINTS, CellSpan, TextLane, thinned
from kdissect.present.sanitise import sanitise
from kdissect.tui.lists.figures import grave_tone
from kdissect.tui.widgets.table import Heading

JOINING, WAITING, STOPPED, IN, LEFT, EXPIRED = "█", "▒", "░", "─", "╳", "†"
"""The marks: from a JoinGroup request to the SyncGroup response; a join without a response so far; stopped,
from the notification to the next fetch; in the group; the member left; the coordinator removed it without a
sign of it."""
EARLIER, LATER = "‹", "›"
"""Something happened before the time of the line, or after it."""
NOT_FINISHED = "not finished"
CHOSEN = "▼"
"""In the heading of the lines, the beginning of the chosen rebalance."""
_RANKS = {IN: 1, STOPPED: 2, JOINING: 3, WAITING: 4, LEFT: 5, EXPIRED: 6, EARLIER: 7, LATER: 7}
_LEAST_FACTS, _LEAST_ALL = 70, 150
"""The widths, in cells, of a table with room for the partitions and the lag, and of one with room for all
columns."""
_WIDE = 110
"""From this width on, names, partitions and the line of lag have more room."""
_FEW_POINTS = 9
"""The points of the line of lag in a table with fewer cells."""


class MemberStatistics(NamedTuple):
    """Rows of these statistics about groups, besides their members."""

    rebalances: Sequence[Row] = ()
    steps: Sequence[Row] = ()
    assignments: Sequence[Row] = ()
    lag: Sequence[Row] = ()
    """The lag over time."""


def _is_stranger(row: Row) -> bool:
    """Whether the row is no member: commits of clients that assign partitions themselves, or of
    administrators."""
    return not (row["member_id"] or row["instance_id"] or row["joins"])


def _as_one(before: Row, later: Row) -> Row:
    """A static member that came back under another member id: one member, in its last state."""
    first, last = sorted((before, later), key=lambda row: row["first_ns"] or 0)
    sums = {name: before[name] + later[name] for name in ("joins", "heartbeats", "commits", "errors")}
    times = {"first_ns": first["first_ns"], "last_ns": most(before["last_ns"], later["last_ns"])}
    return {**last, **sums, **times}


class MemberLines:
    """The members of one group, each with a time line: from the first to the last event of any of them.

    A static member has one line, however often it came back. The lines do not cover actions of others, such
    as an administrator's requests a day later: a mark at the edge shows these.
    """

    inks: Mapping[str, str] = {
        **dict.fromkeys((WAITING, STOPPED, EXPIRED), "table--error"),
        JOINING: "table--warning",
    }

    def __init__(self, text_of: Callable[[int], str]) -> None:
        self._text_of = text_of
        """Writes a time."""
        self._chosen: Row | None = None
        """The rebalance whose time the lines show; None for the whole time."""
        self._statistics = MemberStatistics()
        self._ids: dict[str, list[str]] = {}
        """The member ids of a line, by its name."""
        self._owned: dict[str, list[tuple[str, int, str | None]]] = {}
        """For each member id: topic, partition, and its change in the shown generation."""
        self._members: Sequence[Row] = ()
        self._stays: dict[str, list[Row]] = {}
        """The stays by instance id, else by member id."""
        self._start = self._end = 0
        self._span = CellSpan(0, 0)
        self._version = 0

    def show(
        self,
        group: str | None,
        members: Sequence[Row],
        stays: Sequence[Row],
        told: MemberStatistics = MemberStatistics(),  # noqa: B008 - it cannot be changed
        chosen: Row | None = None,
        not_before: int | None = None,
    ) -> None:
        """Take the rows of ``members`` and ``stays`` of a group.

        :param told: further rows, of any group.
        :param chosen: the rebalance to show; None for the whole time.
        :param not_before: when the capture begins. A rebalance is shown with a little time around it, but not
            with time before that.
        """
        self._chosen = chosen
        self._statistics = MemberStatistics(
            *([row for row in rows if row["group"] == group] for rows in told)
        )
        self._owned = _owned(self._statistics.assignments, None if chosen is None else chosen["generation"])
        self._version += 1
        self._ids = {}
        lines: dict[str, Row] = {}
        names: dict[str, str] = {}
        for row in members:
            if row["group"] == group:
                name = row["instance_id"] or row["member_id"]
                if row["member_id"]:
                    names[row["member_id"]] = name
                    self._ids.setdefault(name, []).append(row["member_id"])
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
        if chosen is not None:
            self._start, self._end = span_of(chosen)
            if not_before is not None:
                self._start = max(self._start, min(not_before, began_ns(chosen)))
        self._span = CellSpan(self._start, self._end)

    def __len__(self) -> int:
        return len(self._members)

    def member(self, row: int) -> Row:
        """The member of a line."""
        return self._members[row]

    def headings(self, width: int) -> Sequence[Heading]:
        name = max(16, min(44, width // 4)) if width >= _WIDE else 16
        member = Heading("Member", name, is_name=True)
        return (member, *self._facts(width), Heading(self._title(width, name), 0))

    def _facts(self, width: int) -> tuple[Heading, ...]:
        """The columns between the name and the time line."""
        out: list[Heading] = []
        if width >= _LEAST_FACTS and self._owned:
            longest = max((len(self._owns(at)) for at in range(len(self))), default=0)
            out.append(Heading("Owns", max(4, min(longest, width // (6 if width >= _WIDE else 9)))))
        elif width >= _LEAST_FACTS:
            out.append(Heading("Got", 5, True))
        if width >= _LEAST_FACTS and self._statistics.lag:
            out.append(Heading("Lag", 7, True))
            out.append(Heading("over time", POINTS if width >= _WIDE else _FEW_POINTS))
        if width >= _LEAST_ALL:
            out += (Heading("Beats", 6, True), Heading("Commits", 8, True))
        return tuple(out)

    def _title(self, width: int, name: int) -> str:
        """The time that the lines show, with the beginning of the chosen rebalance."""
        if not len(self):
            return ""
        text = f"{self._text_of(self._start)} to {self._text_of(self._end)}"
        if self._chosen is None:
            return text
        room = width - name - sum(each.width + 1 for each in self._facts(width)) - 1
        at = self._span.at(began_ns(self._chosen), max(1, room))
        return f"{CHOSEN:>{at + 1}} {text}" if at + len(text) + 2 <= room else f"{CHOSEN:>{at + 1}}"

    def key(self, row: int) -> Hashable:
        return self._version, row

    def tone(self, row: int) -> str | None:
        return grave_tone(self._members[row])

    def cells(self, row: int, width: int) -> Sequence[str]:
        member, headings = self._members[row], self.headings(width)
        room = width - sum(heading.width for heading in headings) - (len(headings) - 1)
        known = [stay["assigned"] for stay in self._stays_of(member)]
        assigned = [each for each in known if each is not None]
        lag = self._lag(member) if "Lag" in [each.title for each in headings] else []
        values = {
            "Member": _name(member),
            "Owns": self._owns(row),
            "Got": str(assigned[-1]) if assigned else "",
            "Lag": f"{lag[-1]:,}" if lag else "",
            "over time": bars(thinned(lag, POINTS if width >= _WIDE else _FEW_POINTS)),
            "Beats": f"{member['heartbeats']:,}",
            "Commits": f"{member['commits']:,}",
        }
        return [values.get(heading.title, "") for heading in headings[:-1]] + [self._line(member, room)]

    def _owns(self, row: int) -> str:
        """The partitions: gained ones with a plus, lost ones with a minus."""
        found = self._owned_by(self._members[row])
        many = len({topic for topics in self._owned.values() for topic, _, _ in topics}) > 1
        signs = {"gained": "+", "lost": "-"}
        return " ".join(
            f"{signs.get(change or '', '')}{sanitise(topic) + '-' if many else ''}{partition}"
            for topic, partition, change in found
        )

    def _owned_by(self, member: Row) -> list[tuple[str, int, str | None]]:
        """The partitions of a member; those of a static member that came back may be under an older id."""
        ids = (member["member_id"], *self._ids.get(member["instance_id"] or "", ()))
        return next((self._owned[each] for each in ids if each in self._owned), [])

    def _lag(self, member: Row) -> list[int]:
        """The sum over time of the lag of its partitions."""
        owned = {
            (topic, partition) for topic, partition, change in self._owned_by(member) if change != "lost"
        }
        by_time: dict[int, int] = {}
        for row in self._statistics.lag:
            if (row["topic"], row["partition"]) in owned and row["lag"] is not None and row["ns"] is not None:
                by_time[row["ns"]] = by_time.get(row["ns"], 0) + max(0, row["lag"])
        return [lag for _, lag in sorted(by_time.items())]

    def _line(self, member: Row, room: int) -> str:
        """The member's time line in the given number of cells, with marks for its events."""
        lane = TextLane(self._span, room, _RANKS)
        if member["first_ns"] is not None and member["last_ns"] is not None:
            lane.fill(member["first_ns"], member["last_ns"], IN)
        for first, last in self._stops(member):
            lane.fill(first, last, STOPPED)
        stays = self._stays_of(member)
        for stay in stays:
            joined = _joined_ns(stay)
            if stay["join_ns"] is not None and joined is not None:
                lane.fill(stay["join_ns"], joined, WAITING if stay["completed"] is False else JOINING)
        for stay in stays:
            start = stay["sync_ns"] if stay["sync_ns"] is not None else stay["first_ns"]
            if start is not None:
                text, after = str(stay["generation"]), int(stay["sync_ns"] is not None)
                if member["left_ns"] is not None:  # its mark would cover the number: it is put before that
                    at, left = (self._span.at(ns, room) for ns in (start, member["left_ns"]))
                    place = min(at + after, room - len(text))
                    after = left - len(text) - at if place <= left < place + len(text) else after
                lane.write(start, text, after)
        for step in self._steps_of(member):
            if step["step"] == "expired":
                lane.mark(step["ns"], EXPIRED)
        if member["left_ns"] is not None:
            lane.mark(member["left_ns"], LEFT)
        if member["first_ns"] is not None and member["first_ns"] < self._start:
            lane.mark(self._start, EARLIER)
        if (most(member["last_ns"], member["left_ns"]) or 0) > self._end:
            lane.mark(self._end, LATER)
        return lane.text()

    def _steps_of(self, member: Row) -> Iterator[Row]:
        names = {member["member_id"], member["instance_id"]} - {None, ""}
        return (step for step in self._statistics.steps if step["member_id"] in names)

    def _stops(self, member: Row) -> Iterator[tuple[int, int]]:
        """The times in which a member fetched nothing: from the notification to join again, or to give
        partitions back, to its next fetch."""
        since: int | None = None
        for step in sorted(self._steps_of(member), key=lambda row: int(row["ns"])):
            if step["step"] in ("notified", "revoked"):
                since = step["ns"] if since is None else since
            elif step["step"] == "fetched" and since is not None:
                yield since, step["ns"]
                since = None
        if (
            since is not None
            and self._statistics.rebalances
            and self._statistics.rebalances[-1]["completed"] is False
        ):
            yield since, self._end

    def _stays_of(self, member: Row) -> list[Row]:
        return self._stays.get(member["instance_id"] or member["member_id"], [])

    def text(self, row: int) -> str:
        """The known facts about the member of a line, in words."""
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
    """When a member was given its assignment; without one, the last known time before it."""
    if stay["join_ns"] is None or stay["duration_ns"] is None:
        return most(stay["join_ns"], stay["sync_ns"])
    return int(stay["join_ns"] + stay["duration_ns"])


def _name(member: Row) -> str:
    """The instance id, else the member id; clients that only commit have neither."""
    return sanitise(
        member["instance_id"] or member["member_id"] or f"(no member) {member['client_id'] or ''}"
    )


def _owned(
    assignments: Sequence[Row], generation: int | None
) -> dict[str, list[tuple[str, int, str | None]]]:
    """The partitions of members, by their ids: those of a generation, or of the last assignment.

    :param assignments: of one group, in the order of generations.
    """
    latest: dict[str, int] = {}
    for row in assignments:
        if row["generation"] is not None and (generation is None or row["generation"] <= generation):
            latest[row["member_id"]] = max(row["generation"], latest.get(row["member_id"], -1))
    out: dict[str, list[tuple[str, int, str | None]]] = {}
    for row in assignments:
        if row["generation"] == latest.get(row["member_id"]) and row["partition"] is not None:
            if generation is None and row["change"] == "lost":
                continue
            out.setdefault(row["member_id"], []).append(
                (row["topic"] or "", row["partition"], row["change"] if generation is not None else None)
            )
    return {name: sorted(owned, key=lambda each: each[:2]) for name, owned in out.items()}


_TIMES = ("begin_ns", "notified_ns", "last_join_ns", "joined_ns", "assigned_ns", "synced_ns")


def _times(rebalance: Row) -> list[int]:
    """The known moments of a rebalance."""
    return [rebalance[name] for name in _TIMES if rebalance[name] is not None]


def began_ns(rebalance: Row) -> int:
    """When it began, or its first known moment; 0 without any."""
    return min(_times(rebalance), default=0)


def span_of(rebalance: Row) -> tuple[int, int]:
    """The shown time of a rebalance: from its beginning to its end, and a little around."""
    first, last = began_ns(rebalance), max(_times(rebalance), default=0)
    if rebalance["completed"] is False and rebalance["stopped_ns"] is not None:
        last = max(last, first + rebalance["stopped_ns"])
    around = max((last - first) // 5, 1_000_000)
    return first - around, last + around
