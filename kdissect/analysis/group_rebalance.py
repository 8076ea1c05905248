"""What is known of one rebalance of a group, and one group's share of the timeline."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from copy import copy
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import NamedTuple, TypeVar, cast

from kdissect.analysis.clusters import NameAt
from kdissect.analysis.fold import most
from kdissect.analysis.group_marks import Beat, Join, Leave, Mark, RepeatedMark, Sync, Who
from kdissect.analysis.group_timeline import BeatKey, GroupTimeline, RefusalKey
from kdissect.analysis.packed import packed
from kdissect.analysis.speakers import address
from kdissect.analysis.stretches import Stretches

CERTAIN, LIKELY = "certain", "likely"
NOTIFIED, REVOKED, JOINED, ASSIGNED, SYNCED, FETCHED, LEFT, EXPIRED, STATUS = (
    *("notified", "revoked", "joined", "assigned", "synced", "fetched", "left", "expired", "status"),
)
"""Steps."""


class MemberStep(NamedTuple):
    """What a member did, or what was done to it."""

    ns: int
    exchange: int | None
    member: str
    step: str
    who: Who | None
    detail: str | None = None
    revoking: int | None = None
    """How many partitions it is to give back."""
    silent_ns: int | None = None
    """How long it was not heard of."""
    config_offset: int | None = None
    """Of a worker of Connect: up to where it has read the topic with its configurations."""
    overlap: int | None = None
    """How many of its connectors and tasks another worker was given."""


class Moved(NamedTuple):
    """A partition, or a task, of a member."""

    member: str
    topic: str
    partition: int
    change: str | None
    """``kept``, ``gained``, ``lost``; None where what was before is not known."""
    task: str | None = None


@packed
@dataclass(slots=True)
class Rebalance:
    """A rebalance. None is what the capture does not tell."""

    group: NameAt
    kind: str
    generation: int | None
    protocol_type: str | None = None
    """``consumer``, ``connect``; of classic groups only."""
    protocol: str | None = None
    trigger: str | None = None
    trigger_confidence: str | None = None
    trigger_member: str | None = None
    trigger_who: Who | None = None
    trigger_reason: str | None = None
    trigger_exchange: int | None = None
    begin_ns: int | None = None
    notified_ns: int | None = None
    last_join_ns: int | None = None
    joined_ns: int | None = None
    assigned_ns: int | None = None
    synced_ns: int | None = None
    stopped_ns: int | None = None
    waited_for: list[str] = field(default_factory=list)
    missing: list[str] | None = None
    members: int | None = None
    before: int | None = None
    """How many members there were when it began."""
    joined: int | None = None
    left: int | None = None
    partitions: int | None = None
    moved: int | None = None
    revoked: int | None = None
    delay_ms: int | None = None
    completed: bool | None = None
    errors: int = 0
    exchanges: list[int] = field(default_factory=list)
    steps: list[MemberStep] = field(default_factory=list)
    moves: list[Moved] = field(default_factory=list)
    counts: bool = False
    until_ns: int | None = None
    """The last that is known of one that is not completed."""

    def first_ns(self) -> int:
        """The first that is known of it."""
        times = (self.begin_ns, self.notified_ns, self.last_join_ns, self.assigned_ns, self.joined_ns)
        known = [each for each in (*times, *(step.ns for step in self.steps)) if each is not None]
        return min(known, default=0)


class GroupLine:
    """What the timeline holds of one group, sorted."""

    def __init__(
        self,
        timeline: GroupTimeline,
        group: NameAt,
        marks: list[Mark],
        beats: dict[BeatKey, RepeatedMark],
        commits: dict[BeatKey, RepeatedMark],
        refusals: dict[RefusalKey, RepeatedMark],
    ) -> None:
        self.group = group
        self.marks = sorted(marks, key=lambda mark: (mark.ns, mark.number))
        self.beats = beats
        self.commits = commits
        self.refusals = refusals
        self._timeline = timeline
        self.clients: dict[str, Who] = {}
        """Who a member is."""
        for mark in self.marks:
            if isinstance(mark, (Join, Sync, Beat)) and mark.member:
                self.clients[mark.member] = mark.who
        for runs in (beats, commits):
            for key, run in runs.items():
                self.clients.setdefault(key.member, run.who)
        shared: dict[tuple[str, str | None], set[str]] = {}
        for member, who in self.clients.items():
            shared.setdefault((address(who.client), who.client_id), set()).add(member)
        self._members_of = shared
        self.joins = [mark for mark in self.marks if isinstance(mark, Join)]
        self._leaves = [mark for mark in self.marks if isinstance(mark, Leave)]
        self.left = frozenset(leave.member for leave in self._leaves)
        """Members that ever left."""
        self._unanswered = [join for join in self.joins if join.told_ns is None]
        self.workers = {join.member: join.worker for join in self.joins if join.worker}
        """The workers of Connect, by member."""
        self._sessions = _Sessions(self.joins)
        self._joins_of: dict[str, list[Join]] = {}
        for join in self.joins:
            self._joins_of.setdefault(join.member, []).append(join)
        self._refusals_of: dict[int, list[Refusal]] = {}
        self._refusals_to: dict[str, list[Refusal]] = {}
        for refused in refusals.items():
            self._refusals_of.setdefault(refused[0].generation, []).append(refused)
            self._refusals_to.setdefault(refused[0].member, []).append(refused)
        self._marks_of: dict[str, list[Mark]] = {}
        """By member. A group that lives long has thousands, and each member is asked for often."""
        for mark in self.marks:
            if not isinstance(mark, Leave):
                self._marks_of.setdefault(mark.member, []).append(mark)
        self._beats_of = _by_member(beats)
        self._commits_of = _by_member(commits)
        self._heard_in: dict[int, list[tuple[BeatKey, RepeatedMark]]] = {}
        for runs in (beats, commits):
            for one in runs.items():
                self._heard_in.setdefault(one[0].generation, []).append(one)
        connections = {who.connection for who in self.clients.values()}
        connections |= {mark.who.connection for mark in self.marks}
        found = (timeline.holes.get(connection) for connection in connections)
        self._holes = [each for each in found if each is not None]
        self._holes.append(self._ends_with_gaps())
        """Where something is known to be lost of the connections of members, or may be."""

    def _ends_with_gaps(self) -> Stretches:
        """From the last word on a connection to its end, where bytes of the connection are missing. They may
        have been a request to leave, with which a member closes its connection."""
        last: dict[int, int] = {}
        for mark in self.marks:
            ns = mark.ns if isinstance(mark, Leave) or mark.told_ns is None else mark.told_ns
            last[mark.who.connection] = max(ns, last.get(mark.who.connection, ns))
        for run in chain(self.beats.values(), self.commits.values(), self.refusals.values()):
            connection = run.who.connection
            last[connection] = max(run.last_ns, last.get(connection, run.last_ns))
        found = Stretches(0, len(last))
        for connection, ns in last.items():
            end = self._timeline.ends.get(connection)
            if end is not None and end.has_gaps and end.how not in _GOES_ON:
                found.add(ns, end.ns)
        return found

    @property
    def end_ns(self) -> int | None:
        """When the capture ended."""
        return self._timeline.end_ns

    def is_whole(self, first_ns: int, last_ns: int) -> bool:
        """Whether nothing is known to be lost of the connections of members between two times."""
        return not any(each.touches(first_ns, last_ns) for each in self._holes)

    def leaves(self, after_ns: int, until_ns: int) -> list[Leave]:
        """The requests to leave after a time and until another."""
        return _between(self._leaves, after_ns, until_ns)

    def unanswered(self, after_ns: int, until_ns: int) -> list[Join]:
        """The requests to join that were never answered, the same."""
        return _between(self._unanswered, after_ns, until_ns)

    def refusals_of(self, generation: int) -> list[Refusal]:
        """What was refused to members of a generation."""
        return self._refusals_of.get(generation, [])

    def refusals_to(self, member: str) -> list[Refusal]:
        """What was refused to a member."""
        return self._refusals_to.get(member, [])

    def heard_in(self, generation: int) -> list[tuple[BeatKey, RepeatedMark]]:
        """Heartbeats, then commits, of members of a generation."""
        return self._heard_in.get(generation, [])

    def joins_of(self, member: str) -> list[Join]:
        """The requests of a member to join, by time."""
        return self._joins_of.get(member, [])

    def joined_last(self, member: str, before_ns: int) -> Join | None:
        """The last request of a member to join, before a time, that was answered well."""
        joins = self.joins_of(member)
        before = islice(reversed(joins), len(joins) - bisect_left(joins, before_ns, key=_ns), None)
        return next((join for join in before if join.told_ns is not None and join.error == 0), None)

    def epoch_beats_of(self, member: str) -> list[Beat]:
        """The heartbeats of a member of a group of KIP-848 that are told one by one, by time."""
        return [mark for mark in self._marks_of.get(member, ()) if isinstance(mark, Beat)]

    def beats_of(self, member: str) -> list[RepeatedMark]:
        """The heartbeats of a member that repeat."""
        return self._beats_of.get(member, [])

    def commits_of(self, member: str) -> list[RepeatedMark]:
        """The commits of a member."""
        return self._commits_of.get(member, [])

    def session_ms(self, member: str, instance: str | None) -> int | None:
        """The session timeout that a member asked for last; where that was not captured, the longest that any
        other member of the group asks for."""
        return self._sessions.of(member, instance)

    def expired(self, member: str, ns: int, exchange: int | None = None) -> MemberStep:
        """The step of a member that is not heard of any more at a time, with what is known of why."""
        who = self.clients.get(member)
        last_ns = self.last_sign(member, ns - 1)
        end = self._timeline.ends.get(who.connection) if who is not None else None
        if end is not None and end.ns <= ns:
            detail = f"{CONNECTION_ENDED} ({end.how})"
        elif end is not None or who is not None:
            detail = CONNECTION_OPEN
        else:
            detail = "not heard of any more"
        silent_ns = ns - last_ns if last_ns is not None else None
        return MemberStep(ns, exchange, member, EXPIRED, who, detail, silent_ns=silent_ns)

    def is_heard(self, who: Who) -> bool:
        """Whether the broker's side of a connection was captured at all."""
        return who.connection in self._timeline.answered

    def last_sign(self, member: str, until_ns: int) -> int | None:
        """The last time before another at which a member was heard of."""
        found: int | None = None
        refused = (run for _, run in self.refusals_to(member))
        for run in chain(self.beats_of(member), self.commits_of(member), refused):
            if run.first_ns <= until_ns:
                found = most(found, run.last_ns if run.last_ns <= until_ns else run.first_ns)
        for mark in self._marks_of.get(member, ()):
            if not isinstance(mark, Leave) and mark.ns <= until_ns:
                told = mark.told_ns if mark.told_ns is not None and mark.told_ns <= until_ns else mark.ns
                found = most(found, told)
        return found

    def _fetched(self, member: str, alive: set[str]) -> Stretches | None:
        """The Fetches of a member, where no other that lived with it has the same client."""
        who = self.clients.get(member)
        if who is None:
            return None
        whose = address(who.client), who.client_id
        if len(self._members_of.get(whose, set()) & alive) > 1:
            return None
        return self._timeline.fetches.get(whose)

    def fetched_until(self, member: str, alive: set[str], ns: int) -> int | None:
        """The last time before another at which it was fetching."""
        found = self._fetched(member, alive)
        return None if found is None else found.last_until(ns)

    def fetched_from(self, member: str, alive: set[str], ns: int) -> int | None:
        """The first time from another at which it was fetching."""
        found = self._fetched(member, alive)
        return None if found is None else found.first_from(ns)


class _Sessions:
    """The session timeouts that the members of a group asked for."""

    def __init__(self, joins: list[Join]) -> None:
        self._of_member: dict[str, int] = {}
        self._of_instance: dict[str | None, int] = {}
        self._longest: int | None = None
        for mark in joins:
            if mark.session_ms is not None:
                self._of_member[mark.member] = mark.session_ms
                self._of_instance[mark.instance] = mark.session_ms
                self._longest = most(self._longest, mark.session_ms)

    def of(self, member: str, instance: str | None) -> int | None:
        found = self._of_member.get(member)
        if found is None and instance is not None:
            found = self._of_instance.get(instance)
        return self._longest if found is None else found


_GOES_ON = ("open", "evicted")
"""Ends of a connection that its client and broker know nothing of."""
CONNECTION_ENDED, CONNECTION_OPEN = "its connection had ended", "its connection stayed open"
"""What is told of the connection of a member that is silent: the beginning of the text, and all of it."""
Refusal = tuple[RefusalKey, RepeatedMark]
"""What was refused, and when."""
K = TypeVar("K", BeatKey, RefusalKey)
M = TypeVar("M", Leave, Join)


def _by_member(runs: dict[BeatKey, RepeatedMark]) -> dict[str, list[RepeatedMark]]:
    found: dict[str, list[RepeatedMark]] = {}
    for key, run in runs.items():
        found.setdefault(key.member, []).append(run)
    return found


def _between(marks: list[M], after_ns: int, until_ns: int) -> list[M]:
    first = bisect_right(marks, after_ns, key=_ns)
    return marks[first : bisect_right(marks, until_ns, first, key=_ns)] if until_ns > after_ns else []


def _ns(mark: Mark) -> int:
    return mark.ns


@dataclass
class _GroupShare:
    """What there is of a group."""

    marks: list[Mark] = field(default_factory=list)
    beats: dict[BeatKey, RepeatedMark] = field(default_factory=dict)
    commits: dict[BeatKey, RepeatedMark] = field(default_factory=dict)
    refusals: dict[RefusalKey, RepeatedMark] = field(default_factory=dict)


def lines_of(timeline: GroupTimeline) -> list[GroupLine]:
    """Each group's share. A group is one, whichever broker of its cluster coordinates it."""
    asked = {*timeline.lines, *(refusal.group for refusal in timeline.refusals)}
    asked |= {key.group for runs in (timeline.beats, timeline.commits) for key in runs}
    places = timeline.latest.clusters.apart(asked)
    found: defaultdict[NameAt, _GroupShare] = defaultdict(_GroupShare)
    for place in timeline.lines:
        found[places[place]].marks += cast("list[Mark]", timeline.lines.line(place))
    for key, run in timeline.beats.items():
        group = places[key.group]
        _put(found[group].beats, key._replace(group=group), run)
    for key, run in timeline.commits.items():
        group = places[key.group]
        _put(found[group].commits, key._replace(group=group), run)
    for refusal, run in timeline.refusals.items():
        group = places[refusal.group]
        _put(found[group].refusals, refusal._replace(group=group), run)
    return [
        GroupLine(timeline, group, each.marks, each.beats, each.commits, each.refusals)
        for group, each in sorted(found.items())
    ]


def _put(kept: dict[K, RepeatedMark], key: K, run: RepeatedMark) -> None:
    """Add marks that repeat to those of other brokers. The timeline's own stay as they are."""
    one = kept.setdefault(key, run)
    if one is not run:
        kept[key] = copy(one)
        kept[key].merge(run)
