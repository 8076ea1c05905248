"""The known facts of one rebalance of a group, and one group's share of the timeline."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
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
"""The steps of a rebalance."""


class MemberStep(NamedTuple):
    """An action of a member, or of the coordinator on it."""

    ns: int
    exchange: int | None
    member: str
    step: str
    who: Who | None
    detail: str | None = None
    revoking: int | None = None
    """The number of partitions that it must give back."""
    silent_ns: int | None = None
    """How long there was no sign of it."""
    config_offset: int | None = None
    """For a worker of Connect, the offset up to which it has read the topic with its configurations."""
    overlap: int | None = None
    """The number of its connectors and tasks that another worker was given."""


class Moved(NamedTuple):
    """A partition, or a task, of a member."""

    member: str
    topic: str
    partition: int
    change: str | None
    """``kept``, ``gained``, ``lost``; None if the assignment before is unknown."""
    task: str | None = None


@packed
@dataclass(slots=True)
class Rebalance:
    """A rebalance. None means unknown from the capture."""

    group: NameAt
    kind: str
    generation: int | None
    protocol_type: str | None = None
    """``consumer``, ``connect``; only classic groups have it."""
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
    stopped: Counter[str] | None = None
    """The members whose partitions stood still for at least half of ``stopped_ns``, each with the number of
    these partitions."""
    waited_for: list[str] = field(default_factory=list)
    missing: list[str] | None = None
    members: int | None = None
    before: int | None = None
    """The number of members when it began."""
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
    """The last known time of a rebalance that did not complete."""

    def stood_still(self, stops: list[tuple[str, int]]) -> None:
        """Take in how long partitions were without a reader.

        :param stops: for each partition that stood still its last owner and the time.
        """
        self.stopped_ns = max(0, max((ns for _, ns in stops), default=0))
        self.stopped = Counter(owner for owner, ns in stops if ns > 0 and 2 * ns >= self.stopped_ns)

    def first_ns(self) -> int:
        """Its first known time."""
        times = (self.begin_ns, self.notified_ns, self.last_join_ns, self.assigned_ns, self.joined_ns)
        known = [each for each in (*times, *(step.ns for step in self.steps)) if each is not None]
        return min(known, default=0)


class GroupLine:
    """The part of the timeline that belongs to one group, sorted."""

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
        """The client of each member."""
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
        self._unanswered = [join for join in self.joins if join.answered_ns is None]
        self.workers = {join.member: join.worker for join in self.joins if join.worker}
        """The worker of each member, for Connect."""
        self._sessions = _Sessions(self.joins)
        self._joins_of: dict[str, list[Join]] = {}
        for join in self.joins:
            self._joins_of.setdefault(join.member, []).append(join)
        self._refusals_of: dict[int, list[Refusal]] = {}
        self._refusals_to: dict[str, list[Refusal]] = {}
        for refused in refusals.items():
            self._refusals_of.setdefault(refused[0].generation, []).append(refused)
            self._refusals_to.setdefault(refused[0].member, []).append(refused)
        self._beats_by_epoch: dict[str, list[Beat]] = {}
        """The single heartbeats of each member. A group that lives long has thousands of marks, and each
        member is looked up often."""
        signs: dict[str, _Signs] = {}
        for mark in self.marks:
            if isinstance(mark, Leave):
                continue
            if isinstance(mark, Beat):
                self._beats_by_epoch.setdefault(mark.member, []).append(mark)
            signs.setdefault(mark.member, _Signs()).add(mark.ns, mark.answered_ns)
        self._signs = signs
        self._beats_of = _by_member(beats)
        self._commits_of = _by_member(commits)
        self._heard_in: dict[int, list[tuple[BeatKey, RepeatedMark]]] = {}
        for runs in (beats, commits):
            for one in runs.items():
                self._heard_in.setdefault(one[0].generation, []).append(one)
        connections = {who.connection for who in self.clients.values()}
        connections |= {mark.who.connection for mark in self.marks}
        ends = (timeline.ends.get(connection) for connection in connections)
        self.lacks_bytes = any(each is not None and each.has_gaps for each in ends)
        """Whether bytes are missing of the members' connections. No message shows when they were sent if both
        a request and its answer are among them."""
        found = (timeline.holes.get(connection) for connection in connections)
        self._holes = [each for each in found if each is not None]
        self._holes.append(self._ends_with_gaps())
        """Spans in which messages on the members' connections are known to be lost, or may be."""

    def _ends_with_gaps(self) -> Stretches:
        """The spans from the last message on a connection to its end, if bytes of the connection are missing.
        They may have been a LeaveGroup, which a member sends before it closes its connection."""
        last: dict[int, int] = {}
        for mark in self.marks:
            if isinstance(mark, Leave):
                ns = mark.ns + 1  # the span says nothing against the LeaveGroup itself
            else:
                ns = mark.ns if mark.answered_ns is None else mark.answered_ns
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
        """The end of the capture."""
        return self._timeline.end_ns

    def may_have_left(self, member: str, ns: int) -> bool:
        """Whether the LeaveGroup of a member may be among the missing bytes of its connection, which had
        ended at a time."""
        who = self.clients.get(member)
        end = self._timeline.ends.get(who.connection) if who is not None else None
        return end is not None and end.has_gaps and end.how not in _GOES_ON and end.ns <= ns

    def is_whole(self, first_ns: int, last_ns: int) -> bool:
        """Whether no loss is known on the members' connections between two times."""
        return not any(each.touches(first_ns, last_ns) for each in self._holes)

    def leaves(self, after_ns: int, until_ns: int) -> list[Leave]:
        """The LeaveGroup marks after a time and until another."""
        return _between(self._leaves, after_ns, until_ns)

    def unanswered(self, after_ns: int, until_ns: int) -> list[Join]:
        """The joins after a time and until another that were never answered."""
        return _between(self._unanswered, after_ns, until_ns)

    def refusals_of(self, generation: int) -> list[Refusal]:
        """The requests that were refused to members of a generation."""
        return self._refusals_of.get(generation, [])

    def refusals_to(self, member: str) -> list[Refusal]:
        """The requests that were refused to a member."""
        return self._refusals_to.get(member, [])

    def heartbeats_in(self, generation: int) -> list[tuple[BeatKey, RepeatedMark]]:
        """Heartbeats, then commits, of members of a generation."""
        return self._heard_in.get(generation, [])

    def joins_of(self, member: str) -> list[Join]:
        """The joins of a member, by time."""
        return self._joins_of.get(member, [])

    def joined_last(self, member: str, before_ns: int) -> Join | None:
        """The last join of a member before a time that was answered without an error."""
        joins = self.joins_of(member)
        before = islice(reversed(joins), len(joins) - bisect_left(joins, before_ns, key=_ns), None)
        return next((join for join in before if join.answered_ns is not None and join.error == 0), None)

    def epoch_beats_of(self, member: str) -> list[Beat]:
        """The single heartbeats of a member of a KIP-848 group, by time."""
        return self._beats_by_epoch.get(member, [])

    def beats_of(self, member: str) -> list[RepeatedMark]:
        """The repeated heartbeats of a member."""
        return self._beats_of.get(member, [])

    def commits_of(self, member: str) -> list[RepeatedMark]:
        """The commits of a member."""
        return self._commits_of.get(member, [])

    def session_ms(self, member: str, instance: str | None) -> int | None:
        """The last session timeout that a member asked for. If it was not captured, the longest that any
        other member of the group asks for."""
        return self._sessions.of(member, instance)

    def expired(self, member: str, ns: int, exchange: int | None = None) -> MemberStep:
        """The step of a member without a sign of it at a time, with the known facts about the reason."""
        who = self.clients.get(member)
        last_ns = self.last_sign(member, ns - 1)
        detail = "not heard of any more" if who is None else self._end_of(who, ns) or CONNECTION_OPEN
        silent_ns = ns - last_ns if last_ns is not None else None
        return MemberStep(ns, exchange, member, EXPIRED, who, detail, silent_ns=silent_ns)

    def not_joined(self, member: str, ns: int) -> MemberStep:
        """The step of a member that a rebalance goes on without, because it did not join again."""
        who = self.clients.get(member)
        end = self._end_of(who, ns) if who is not None else None
        return MemberStep(ns, None, member, EXPIRED, who, f"{NOT_JOINED}: {end}" if end else NOT_JOINED)

    def _end_of(self, who: Who, ns: int) -> str | None:
        """The text about the connection of a member, if it had ended at a time."""
        end = self._timeline.ends.get(who.connection)
        return f"{CONNECTION_ENDED} ({end.how})" if end is not None and end.ns <= ns else None

    def has_broker_side(self, who: Who) -> bool:
        """Whether the broker's side of a connection was captured at all."""
        return who.connection in self._timeline.answered

    def last_sign(self, member: str, until_ns: int) -> int | None:
        """The last sign of a member before a time."""
        found: int | None = None
        refused = (run for _, run in self.refusals_to(member))
        for run in chain(self.beats_of(member), self.commits_of(member), refused):
            if run.first_ns <= until_ns:
                found = most(found, run.last_ns if run.last_ns <= until_ns else run.first_ns)
        signs = self._signs.get(member)
        return found if signs is None else most(found, signs.last_until(until_ns))

    def _fetched(self, member: str, alive: set[str]) -> Stretches | None:
        """The Fetches of a member, if no other member of its time has the same client."""
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
        """The first time from another on at which it was fetching."""
        found = self._fetched(member, alive)
        return None if found is None else found.first_from(ns)


class _Signs:
    """The times of the requests of a member, and of the answers to them."""

    def __init__(self) -> None:
        self._times: list[int] = []
        self._is_sorted = True
        self._before: list[tuple[int, int]] = []
        """Request and answer, if the clock was set back between them. Then only the answer is a sign."""

    def add(self, ns: int, answered_ns: int | None) -> None:
        """Add a request."""
        if answered_ns is not None and answered_ns < ns:
            self._before.append((ns, answered_ns))
            return
        self._times.append(ns)
        if answered_ns is not None:
            self._times.append(answered_ns)
        self._is_sorted = False

    def last_until(self, until_ns: int) -> int | None:
        """The last sign until a time."""
        if not self._is_sorted:
            self._times.sort()
            self._is_sorted = True
        at = bisect_right(self._times, until_ns)
        found = self._times[at - 1] if at else None
        for ns, answered_ns in self._before:
            if ns <= until_ns:
                found = most(found, answered_ns)
        return found


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
"""Ends of a connection that exist only in the capture, not for its client and broker."""
CONNECTION_ENDED, CONNECTION_OPEN = "its connection had ended", "its connection stayed open"
"""Texts about the connection of a silent member: the beginning of the first, and the whole second."""
NOT_JOINED = "did not join again"
"""The text about a member that a rebalance went on without. If its connection had ended, more follows."""
Refusal = tuple[RefusalKey, RepeatedMark]
"""The refused request, and when it was refused."""
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
    """The marks of a group."""

    marks: list[Mark] = field(default_factory=list)
    beats: dict[BeatKey, RepeatedMark] = field(default_factory=dict)
    commits: dict[BeatKey, RepeatedMark] = field(default_factory=dict)
    refusals: dict[RefusalKey, RepeatedMark] = field(default_factory=dict)


def lines_of(timeline: GroupTimeline) -> list[GroupLine]:
    """The share of each group. A group stays one when another broker of its cluster coordinates it."""
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
    """Add repeated marks to those at other brokers. The timeline's own marks are not changed."""
    one = kept.setdefault(key, run)
    if one is not run:
        kept[key] = copy(one)
        kept[key].merge(run)
