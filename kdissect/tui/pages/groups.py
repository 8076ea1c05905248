"""The screen of groups: their figures, then the rebalances and members of the group under the cursor.

Each member has a time line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from kdissect.analysis.fold import Row
from kdissect.feed.counting import Asked
from kdissect.feed.filtering import quoted, span_text
from kdissect.feed.statistics import CountedTables
from kdissect.feed.stories import GROUP, Subject, subject
from kdissect.present.form import Clock, duration, plural
from kdissect.present.lanes import USUAL_LAG_STEP, lag_step
from kdissect.present.names_of_clusters import NamesOfClusters, with_ambiguous_clusters
from kdissect.present.paragraphs import fold_text
from kdissect.present.sanitise import sanitise
from kdissect.present.whole_record import TextLine
from kdissect.tui.keys import bindings_of
from kdissect.tui.lists.figures import (
    CLUSTER,
    MOST_TEXT,
    FigureColumn,
    Figures,
    error_columns,
    grave_tone,
    list_column,
    name_column,
    number,
    rare,
    time_span,
)
from kdissect.tui.lists.members import (
    EXPIRED,
    JOINING,
    LEFT,
    NOT_FINISHED,
    STOPPED,
    WAITING,
    MemberLines,
    MemberStatistics,
    began_ns,
    span_of,
)
from kdissect.tui.pages.page import BACK, LOW
from kdissect.tui.pages.statistics import OF_ALL_CLUSTERS, WHOLE, StatisticsPage
from kdissect.tui.widgets.table import VirtualTable
from kdissect.tui.widgets.text_pane import TextPane


def _generation(row: Row) -> str:
    first, last = row["first_generation"], row["last_generation"]
    if first is None:
        return ""
    return f"{last:,}" if first == last else f"{first:,}…{last:,}"


def state(row: Row) -> str:
    """The state by the exchanges: ``joining`` if the last rebalance is not finished, ``all left``."""
    if row["rebalance_last_completed"] is False:
        return "joining"
    if row["members"] and row["leaves"] >= row["members"]:
        return "all left"
    return "stable" if row["members"] else "no members"


def _last(row: Row) -> str:
    """The duration of the last rebalance, so far if it is not finished."""
    if row["rebalance_last_ns"] is None:
        return ""
    so_far = f", {NOT_FINISHED}" if row["rebalance_last_completed"] is False else ""
    return duration(row["rebalance_last_ns"]) + so_far


COLUMNS = (
    name_column("Group", "group", least=MOST_TEXT),
    CLUSTER,
    list_column("Type", "types", 3, most=20),
    list_column("Protocol", "protocols", 4, most=28),
    FigureColumn("State", state, state, 1, False, is_most_first=False),
    number("Members", "members"),
    rare("Have left", "leaves", 4),
    FigureColumn("Generation", _generation, lambda row: row["last_generation"], 1),
    number("Rebalances", "rebalances", 1),
    FigureColumn("Last", _last, lambda row: row["rebalance_last_ns"], 3),
    time_span("Longest", "rebalance_max_ns", 2),
    rare("Not finished", "not_finished", 4),
    number("Heartbeats", "heartbeats", 6),
    number("Commits", "commits", 5),
    number("Offsets", "committed_partitions", 7),
    *error_columns(),
)


def figures() -> Figures:
    """The empty rows."""
    return Figures(COLUMNS, lambda row: (row["group"], row["cluster_id"]), grave_tone)


def text_of(
    rebalances: Sequence[Row], chosen: int | None, clock: Clock, room: int, within: str = WHOLE
) -> list[TextLine]:
    """The text of the chosen rebalance; without one, a line for each rebalance.

    :param rebalances: of one group.
    :param clock: writes times.
    :param room: cells of a line.
    :param within: where rebalances were looked for.
    """
    if chosen is None:
        title = f"{plural(len(rebalances), 'rebalance')}: [ and ] go from one to the next"
        none = "no rebalance was captured" if within == WHOLE else f"no rebalance is in {within}"
        out = [TextLine(title if rebalances else none, "heading")]
        for row in reversed(rebalances):
            out += [TextLine(part) for part in fold_text(_short(row, clock), room)]
        return out
    row, before = rebalances[chosen], rebalances[chosen - 1]["generation"] if chosen else None
    title = f"{_named(row, before)}  {_stood(row)}  ({chosen + 1} of {len(rebalances)})"
    out = [TextLine(part, "heading") for part in fold_text(title, room)]
    for text in (f"began {clock.text(began_ns(row))}: {_trigger(row)}", _phases(row), _people(row)):
        out += [TextLine(part) for part in fold_text(text, room)] if text else []
    return out


def _named(row: Row, before: int | None = None) -> str:
    after = "?" if row["generation"] is None else row["generation"]
    return f"generation {after}" if before is None else f"generation {before} → {after}"


def _stood_still(ns: int | None) -> str:
    """How long the partition that waited longest had no reader; empty if unknown. It differs from the
    duration of the rebalance if a member left, or with an eager protocol."""
    if ns is None:
        return ""
    return f"partitions stood still up to {duration(ns)}" if ns else "no partition stood still"


def _stood(row: Row) -> str:
    stood = _stood_still(row["stopped_ns"])
    unfinished = NOT_FINISHED if row["completed"] is False else ""
    return ", ".join(each for each in (stood, unfinished) if each)


def _short(row: Row, clock: Clock) -> str:
    parts = clock.text(began_ns(row)), _named(row), _stood(row), _trigger(row)
    return sanitise("  ".join(parts), None)


def _trigger(row: Row) -> str:
    """The trigger, and the client that caused it."""
    if row["trigger"] is None:
        return "the capture does not show the cause"
    who = row["trigger_client_id"] or row["trigger_member"]
    by = f" by {who}" if who is not None else ""
    reason = f": {row['trigger_reason']}" if row["trigger_reason"] else ""
    sure = f" ({row['trigger_confidence']})" if row["trigger_confidence"] else ""
    return sanitise(f"{row['trigger']}{by}{reason}{sure}", None)


def _phases(row: Row) -> str:
    names = {
        "join_phase_ns": "until all joined",
        "assign_phase_ns": "assign",
        "sync_phase_ns": "sync",
        "delay_ns": "delay",
    }
    told = [f"{word} {duration(row[name])}" for name, word in names.items() if row[name] is not None]
    return " · ".join(told)


def _people(row: Row) -> str:
    parts = []
    for name, word in (("waited_for", "waited for"), ("missing", "did not come")):
        if row[name]:
            parts.append(f"{word} {', '.join(row[name][:3])}" + (" …" if len(row[name]) > 3 else ""))
    if row["members"] is not None:
        before = "" if row["members_before"] is None else f"{row['members_before']} → "
        parts.append(f"members {before}{row['members']}")
    for name, word in (("moved", "moved"), ("revoked", "revoked")):
        if row[name]:
            parts.append(f"{plural(row[name], 'partition')} {word}")
    return sanitise(" · ".join(parts), None)


HIGH = 50
"""From this number of lines on, more of the rebalances is shown."""


class GroupsPage(StatisticsPage):
    """Groups; below, the rebalances of the one under the cursor, and its members: the partitions, lag and
    time line of each. Two keys go from rebalance to rebalance, Esc back to the whole time. Enter shows the
    exchanges of the group, or of the rebalance."""

    DEFAULT_CSS = """
    GroupsPage #list { max-height: 30%; }
    GroupsPage #rebalance { border-top: hkey $panel; }
    GroupsPage #members { height: 1fr; border-top: hkey $panel; }
    GroupsPage.-no-bars #rebalance, GroupsPage.-no-bars #members { border-top: none; }
    GroupsPage.-none #list { height: 1fr; max-height: 100%; }
    GroupsPage.-none #rebalance, GroupsPage.-none #members { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("groups")

    def __init__(self) -> None:
        self._step = USUAL_LAG_STEP
        """The seconds between the points of a line of lag."""
        self._names = NamesOfClusters((), "group")
        self._of_groups: Sequence[Mapping[object, Sequence[Row]]] = [{}] * (len(self.needed_statistics()) - 1)
        """The rows of each group, for each table after that of the groups."""
        self._whose: object = None
        """The identity of the group under the cursor."""
        self.rebalances: Sequence[Row] = ()
        """The rebalances of the group under the cursor."""
        self.chosen: int | None = None
        """The index of the shown rebalance."""
        super().__init__()

    def figures(self) -> Figures:
        self.timeline = MemberLines(self.clock.text)
        return figures()

    def body(self) -> ComposeResult:
        yield from super().body()
        said = TextPane(id="rebalance")
        said.can_focus = False  # Tab goes from the groups to the members
        yield said
        yield VirtualTable(self.timeline, id="members")

    @property
    def members_pane(self) -> VirtualTable:
        """The time lines."""
        return self.query_one("#members", VirtualTable)

    def on_screen_resume(self) -> None:
        if self.kdissect.ended is not None:
            self._step = lag_step(self.kdissect.index.first_ns, self.kdissect.index.last_ns)

    def needed_statistics(self) -> Asked:
        facts = ("rebalances", "rebalance_steps", "assignments")
        return ("groups", "members", "stays", *facts, f"lag,{self._step}s")

    def fill(self, counted: CountedTables) -> None:
        rows = with_ambiguous_clusters(counted.tables["groups"], "group")
        self._names = NamesOfClusters(rows, "group")
        self._of_groups = [self._by_group(counted.tables[name]) for name in self.needed_statistics()[1:]]
        self.rows.show(rows)
        self.set_class(not rows, "-none")
        self.wish(self.list_pane, len(rows) + 2 if rows else "1fr")

    def _by_group(self, rows: Sequence[Row]) -> Mapping[object, Sequence[Row]]:
        """The rows of each group, in their order."""
        found: dict[object, list[Row]] = defaultdict(list)
        for row in rows:
            found[self._names.name_of(row)].append(row)
        return found

    def on_resize(self) -> None:
        self.call_after_refresh(self._share_room)

    def _share_room(self) -> None:
        """Give the text as many lines as it needs, if the members keep room for theirs."""
        if not self.is_attached:
            return
        said, members = self.query_one("#rebalance", TextPane), self.members_pane
        height = self.app.size.height
        least = 5 if height < LOW else 6 if height < HIGH else 12
        room = said.outer_size.height + members.outer_size.height - len(self.timeline) - 2
        self.wish(said, max(least, min(said.lines + 1, room)))

    def cursor_moved(self) -> None:
        row = self.chosen_row()
        whose = None if row is None else self._names.name_of(row)
        members, stays, *others = (rows.get(whose, ()) for rows in self._of_groups)
        told = MemberStatistics(*others)
        self.rebalances = sorted(told.rebalances, key=began_ns)
        if whose != self._whose or (self.chosen or 0) >= len(self.rebalances):
            self._whose, self.chosen = whose, None
        chosen = None if self.chosen is None else self.rebalances[self.chosen]
        group = None if row is None else row["group"]
        self.timeline.show(group, members, stays, told, chosen, self.kdissect.index.first_ns)
        self.members_pane.rows_changed(0)

        def text(room: int) -> Sequence[TextLine]:
            return text_of(self.rebalances, self.chosen, self.clock, room, self.made_of)

        self.query_one("#rebalance", TextPane).show_folded(text)
        self.call_after_refresh(self._share_room)
        self.update_message()

    def listed(self) -> str:
        return "consumer group"

    def rows_text(self) -> str:
        return plural(len(self.rows), "group")

    def notes(self) -> list[str]:
        signs = {
            JOINING: "join to sync",
            STOPPED: "stopped",
            WAITING: NOT_FINISHED,
            EXPIRED: "silent too long",
        }
        told = [f"{sign} {word}" for sign, word in {**signs, LEFT: "left"}.items()]
        return [*super().notes(), *told, "3 generation"]

    def subject_of(self, row: Row) -> Subject | None:
        return subject(GROUP, row["group"])

    def chosen_time(self) -> int | None:
        return None if self.chosen is None else began_ns(self.rebalances[self.chosen])

    def filter_of(self, row: Row) -> str | None:
        text = f"group == {quoted(row['group'])}"
        if self.chosen is not None:
            text += f" and {span_text(*span_of(self.rebalances[self.chosen]))}"
        return text

    # -- keys -----------------------------------------------------------------------------------------

    def action_rebalance(self, step: int) -> None:
        """Show the next rebalance, or the one before; at first, the first or the last. In a group without
        any, the key has its usual effect."""
        if not self.rebalances:
            if not self.is_at_rest:
                self.show_message("no rebalance so far: counting is not finished")
                return
            self.kdissect.action_turn_page(step)
            return
        last = len(self.rebalances) - 1
        wanted = (0 if step > 0 else last) if self.chosen is None else self.chosen + step
        if not 0 <= wanted <= last:
            self.show_message(f"no rebalance {'after' if step > 0 else 'before'} this")
            return
        self.chosen = wanted
        self.cursor_moved()

    def action_out(self) -> None:
        if self.chosen is None:
            super().action_out()
        else:
            self.chosen = None
            self.cursor_moved()

    @property
    def way_out(self) -> str:
        return super().way_out if self.chosen is None else BACK

    @on(VirtualTable.Highlighted, "#members")
    def _member_highlighted(self, event: VirtualTable.Highlighted) -> None:
        if self.members_pane.has_focus and event.row < len(self.timeline):
            self.show_message(self.timeline.text(event.row))

    @on(VirtualTable.Chosen, "#members")
    def _member_chosen(self, event: VirtualTable.Chosen) -> None:
        member = self.timeline.member(event.row)
        text = f"group == {quoted(member['group'])}"
        if member["client_id"] is not None:
            text += f" and client_id == {quoted(member['client_id'])}"
        name = member["group"], member["client_id"]
        members = self.counted.tables["members"] if self.counted is not None else ()
        clusters = {each["cluster_id"] for each in members if (each["group"], each["client_id"]) == name}
        self.kdissect.filter_by(text, note=OF_ALL_CLUSTERS if len(clusters) > 1 else "")
