"""The rebalances of consumer (KIP-848), share (KIP-932) and streams groups (KIP-1071).

The coordinator raises the group's epoch when a member joins, leaves or is silent for too long, or when the
subscribed topics change. It gives members their targets in the answers to their heartbeats: first the
partitions that they must give back, then those that they gain. Each rise of the epoch is a row. The rebalance
begins with the event that made the coordinator raise the epoch. It ends when all known members were told the
epoch and own their partitions. No message names a silent member. It follows from two facts: nobody else
acted, and a member was not heard of any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kdissect.analysis.epoch_members import LOST, MemberNow, did_not_poll, holds, silent_member
from kdissect.analysis.group_marks import Beat, Leave, RepeatedMark, places
from kdissect.analysis.group_rebalance import (
    ASSIGNED,
    CERTAIN,
    JOINED,
    LEFT,
    LIKELY,
    REVOKED,
    STATUS,
    SYNCED,
    GroupLine,
    MemberStep,
    Moved,
    Rebalance,
)
from kdissect.analysis.packed import packed
from kdissect.analysis.triggers import DID_NOT_POLL

TIMED_OUT = "session-timeout"
CONSUMER = "consumer"
JOINS, LEAVES, GOES_FOR_NOW = 0, -1, -2
"""Member epochs of requests."""
STATUS_CODES = {
    0: "STALE_TOPOLOGY",
    1: "MISSING_SOURCE_TOPICS",
    2: "INCORRECTLY_PARTITIONED_TOPICS",
    3: "MISSING_INTERNAL_TOPICS",
    4: "SHUTDOWN_APPLICATION",
    5: "ASSIGNMENT_DELAYED",
}
"""Statuses of streams groups (StreamsGroupHeartbeatResponse.Status)."""


@packed
@dataclass(slots=True)
class _OpenRebalance(Rebalance):
    """An unfinished rebalance."""

    is_dark: bool = False
    """Whether the message that gave its generation was not captured."""
    stops: list[tuple[str, int]] = field(default_factory=list)
    """The last owner of each partition that changed hands, and how long it waited for its new owner."""


@packed
@dataclass(slots=True)
class _Unowned:
    """A partition that is between two owners."""

    since_ns: int
    rebalance: _OpenRebalance
    owner: str
    """The last owner."""


class _Replay:
    """The heartbeats of a group, one after another."""

    def __init__(self, line: GroupLine) -> None:
        self.line = line
        self.rows: list[_OpenRebalance] = []
        self.open: list[_OpenRebalance] = []
        """Rebalances whose epoch some members have not reached."""
        self.members: dict[str, MemberNow] = {}
        self.gone: dict[str, str] = {}
        """Static members that will come back: the last member id of each instance id."""
        self.epoch: int | None = None
        self.last_ns: int | None = None
        """When a heartbeat was last answered."""
        self.owners: dict[tuple[str, int], str] = {}
        """The last owner of each partition."""
        self.released: dict[tuple[str, int], int] = {}
        """When the owner of each released partition reported that it gave it up."""
        self.waiting: dict[tuple[str, int], _Unowned] = {}
        """Partitions of new owners that have not yet reported them as owned."""
        beats = [mark for mark in line.marks if isinstance(mark, Beat)]
        first: dict[str, Beat] = {}
        for beat in beats:
            first.setdefault(beat.member, beat)
        self.newer = first.keys()
        """The members that send heartbeats of the newer groups. A group that is being moved to KIP-848 has
        members of classic groups, too."""
        joined = {name for name, beat in first.items() if beat.requested_epoch == JOINS}
        self.has_strangers = not {*first, *(key.member for key in line.beats if key.member)} <= joined
        """Whether the group has members that did not join in the capture."""
        self.first_ns = min((beat.ns for beat in beats), default=0)
        self.interval_ms = next((beat.interval_ms for beat in beats if beat.interval_ms), None)

    def take_repeats(self, name: str, run: RepeatedMark, epoch: int) -> None:
        """Take in a member's repeated heartbeats, which have no news."""
        member = self.members.get(name)
        if member is None:
            member = self.members[name] = MemberNow(run.who, None, epoch, is_known=False)
        if self.epoch is None or epoch > self.epoch:
            self.epoch = epoch  # the message that gave it was not captured
            for each in self.open:
                each.is_dark = each.generation is None
        member.epoch = max(member.epoch, epoch)

    def take(self, beat: Beat) -> None:
        """Take in the next heartbeat."""
        if beat.requested_epoch in (LEAVES, GOES_FOR_NOW):
            self._leave(beat)
            return
        if beat.error in LOST:
            self._lost(beat)
        if beat.error != 0 or beat.epoch is None or beat.answered_ns is None:
            return
        is_new = beat.requested_epoch == JOINS and beat.member not in self.members
        member = self.members.get(beat.member)
        if member is None:
            member = self.members[beat.member] = MemberNow(beat.who, beat.instance, is_known=is_new)
        changed = (
            member.topics is not None and beat.topics is not None and set(beat.topics) != set(member.topics)
        )
        member.topics = beat.topics or member.topics
        member.interval_ms = beat.interval_ms or member.interval_ms
        member.rebalance_ms = beat.rebalance_ms or member.rebalance_ms
        if is_new:
            self._join(beat)
        elif changed:
            self._begin(beat, "subscription-changed", CERTAIN, beat.ns)
        if self.epoch is None or beat.epoch > self.epoch:
            self._rise(beat)
        self._complains(beat)
        self._owns(beat, member)
        self._released(beat, member)
        self._gives(beat, member)
        member.epoch = beat.epoch
        self._finish_reached(beat)
        self.last_ns = beat.answered_ns

    def _begin(
        self, beat: Beat, word: str, confidence: str, ns: int, member: str | None = None
    ) -> _OpenRebalance:
        out = self._add(_OpenRebalance(self.line.group, beat.kind, None), beat, word, confidence, ns)
        out.trigger_member = member or beat.member
        out.before = len(self.members) - (word == "new-member")
        return out

    def _add(
        self, out: _OpenRebalance, mark: Beat | Leave, word: str, confidence: str, ns: int
    ) -> _OpenRebalance:
        """Add a rebalance that begins with what a member sends."""
        out.trigger, out.trigger_confidence, out.begin_ns = word, confidence, ns
        out.trigger_member = mark.member
        out.trigger_who, out.trigger_exchange = mark.who, mark.number
        out.exchanges.append(mark.number)
        out.counts = mark.counts
        self.rows.append(out)
        self.open.append(out)
        return out

    def _join(self, beat: Beat) -> None:
        if beat.instance is not None and beat.instance in self.gone:
            before = self.gone.pop(beat.instance)
            # The partitions of the former member are its own, under another member id.
            own = [place for place, owner in self.owners.items() if owner == before]
            self.owners.update(dict.fromkeys(own, beat.member))
            if self.epoch is not None and (beat.epoch or 0) <= self.epoch:
                self.members[beat.member].target = beat.assignment
                return
            out = self._begin(beat, "static-restart", CERTAIN, beat.ns)
        else:
            out = self._begin(beat, "new-member", CERTAIN, beat.ns)
        out.steps.append(MemberStep(beat.ns, beat.number, beat.member, JOINED, beat.who, beat.instance))

    def _leave(self, beat: Beat) -> None:
        if beat.error in LOST:
            self._was_put_out(beat)
        if beat.error:
            return
        member = self.members.pop(beat.member, None)
        if beat.requested_epoch == GOES_FOR_NOW:
            instance = beat.instance or (member.instance if member is not None else None)
            if instance is not None:
                self.gone[instance] = beat.member
            return
        for each in self.open:
            each.waited_for = [name for name in each.waited_for if name != beat.member]
        stuck = member is not None and did_not_poll(self.line, beat, member)
        left = MemberStep(beat.ns, beat.number, beat.member, LEFT, beat.who, DID_NOT_POLL if stuck else None)
        if not self.members:
            self._close(beat.ns)
            for each in self.rows[-1:] if stuck else ():
                each.steps.append(left)
            return  # no member is left that could be given anything
        word, confidence = ("poll-interval", LIKELY) if stuck else ("member-left", CERTAIN)
        out = self._begin(beat, word, confidence, beat.ns)
        out.before = len(self.members) + (member is not None)
        out.steps.append(left)

    def take_leave(self, leave: Leave) -> None:
        """A member of a classic group leaves. If others send heartbeats of the newer groups, that raises the
        epoch."""
        member = self.members.pop(leave.member, None)
        for each in self.open:
            each.waited_for = [name for name in each.waited_for if name != leave.member]
        others = self.newer & self.members.keys()
        if member is None or not others:
            return
        out = self._add(
            _OpenRebalance(self.line.group, CONSUMER, None), leave, "member-left", CERTAIN, leave.ns
        )
        out.trigger_reason = leave.reason
        out.before = len(self.members) + 1
        out.steps.append(MemberStep(leave.ns, leave.number, leave.member, LEFT, leave.who, leave.reason))

    def _was_put_out(self, beat: Beat) -> None:
        """A member leaves that the coordinator had removed, because within its rebalance timeout it had not
        given back its partitions (KIP-848). If it was not polled, that is what raised the epoch before."""
        member = self.members.pop(beat.member, None)
        if member is None or not self.rows or not did_not_poll(self.line, beat, member):
            return
        row = self.rows[-1]
        row.steps.append(MemberStep(beat.ns, beat.number, beat.member, LEFT, beat.who, DID_NOT_POLL))
        heard_ns = self.line.last_sign(beat.member, beat.ns - 1)
        begun_after = row.begin_ns is not None and heard_ns is not None and row.begin_ns >= heard_ns
        if row.trigger_member is None and begun_after:
            row.trigger, row.trigger_confidence = "poll-interval", LIKELY
            row.trigger_member, row.trigger_who = beat.member, beat.who

    def _lost(self, beat: Beat) -> None:
        """A member gets the error that it is no longer a member."""
        self.members.pop(beat.member, None)

    def _rise(self, beat: Beat) -> None:
        """The group's epoch rose: assign it to the rebalance that raised it, or find the trigger."""
        assert beat.epoch is not None
        first = self.epoch is None
        waiting = [each for each in self.open if each.generation is None and not each.is_dark]
        rise = beat.epoch - (self.epoch if self.epoch is not None else beat.epoch - len(waiting))
        self.epoch = beat.epoch
        if not waiting:
            if not first:
                self._unprompted(beat)
            return
        if first and self.has_strangers:
            for each in waiting:  # it may be an older epoch
                each.is_dark = True
            return
        if rise > len(waiting) and self.line.lacks_bytes:
            for each in waiting:  # the answer with its epoch may be among the missing bytes
                each.is_dark = True
            self._unprompted(beat)
            return
        if rise == len(waiting):
            for at, each in enumerate(waiting, beat.epoch - rise + 1):
                each.generation = at
        else:
            waiting[0 if rise < len(waiting) else -1].generation = beat.epoch

    def _unprompted(self, beat: Beat) -> None:
        """The epoch rose although nobody joined or left."""
        assert beat.answered_ns is not None
        silent = silent_member(self.line, beat, self.members, self.interval_ms)
        if silent is not None:
            out = self._begin(beat, TIMED_OUT, LIKELY, beat.answered_ns, silent)
            out.trigger_who = self.line.clients.get(silent)
            self.members.pop(silent, None)
            out.steps.append(self.line.expired(silent, beat.answered_ns))
        elif self._is_whole(beat.answered_ns) and not any(each.is_dark for each in self.open):
            out = self._begin(beat, *self._grown(beat), beat.answered_ns)
            out.trigger_member = out.trigger_who = None
        else:
            out = self._begin(beat, "unknown", LIKELY, beat.answered_ns)
            out.trigger = out.trigger_confidence = out.trigger_member = out.trigger_who = None
            out.begin_ns = None
        out.generation = beat.epoch
        out.notified_ns = beat.answered_ns

    def _grown(self, beat: Beat) -> tuple[str, str]:
        """The trigger and its confidence: whether there is something new to assign that nobody had before."""
        had = {place for each in self.members.values() for place in places(each.target or ())}
        had.update(self.owners)
        if any(place not in had for place in places(beat.assignment or ())):
            return "metadata-changed", LIKELY
        return "unknown", LIKELY

    def _complains(self, beat: Beat) -> None:
        """The coordinator of a streams group reports a problem of the group."""
        names = sorted({STATUS_CODES.get(code, str(code)) for code in beat.status})
        if names and self.rows:
            detail = ", ".join(names)
            step = MemberStep(beat.answered_ns or beat.ns, beat.number, beat.member, STATUS, beat.who, detail)
            self.rows[-1].steps.append(step)

    def _owns(self, beat: Beat, member: MemberNow) -> None:
        """A member reports the partitions that it owns."""
        if beat.owned is None:
            return
        had, member.owned = set(places(member.owned or ())), beat.owned
        now = set(places(beat.owned))
        gave = had - now
        if not now <= set(places(member.target or ())):  # it was given more, and the answer was not captured
            for each in self.rows[-1:]:
                self._doubt(each, beat.ns)
        for place in now - had:
            self._arrives(place, beat.ns)
        self.released.update(dict.fromkeys(gave, beat.ns))
        if gave:
            for each in self.open[-1:]:
                detail = f"gave {len(gave)} back"
                each.steps.append(MemberStep(beat.ns, beat.number, beat.member, REVOKED, beat.who, detail))
                each.counts |= beat.counts

    def _released(self, beat: Beat, member: MemberNow) -> None:
        """A member gave partitions back in a heartbeat that was not captured. Only after that does the
        coordinator let it reach a later epoch (KIP-848)."""
        if beat.epoch is None or not 0 < member.epoch < beat.epoch or beat.kind != "consumer":
            return
        if member.owned is None or member.target is None:
            return
        if set(places(member.owned)) > set(places(member.target)):
            self._owns(beat._replace(owned=member.target), member)

    def _gives(self, beat: Beat, member: MemberNow) -> None:
        """A member is given partitions."""
        member.tasks.update(beat.tasks or ())
        if beat.assignment is None or beat.answered_ns is None:
            return
        had, now = set(places(member.target or ())), set(places(beat.assignment))
        if member.target is not None and now == had:
            return  # another coordinator repeats it
        member.target = beat.assignment
        lost = len(had - now)
        moved = {place: self.owners[place] for place in now - had if self._changes_hands(place, beat)}
        self.owners.update(dict.fromkeys(now, beat.member))
        if not self.open:
            self._reopen(beat)
        for each in self.open[-1:]:
            detail = f"is to give {lost} back" if lost else f"is given {len(now - had)}"
            revoking = lost or None
            each.steps.append(
                MemberStep(beat.answered_ns, beat.number, beat.member, ASSIGNED, beat.who, detail, revoking)
            )
            each.counts |= beat.counts
            if each.generation is not None and each.assigned_ns is None:
                each.assigned_ns = beat.answered_ns
                each.exchanges.append(beat.number)
            each.revoked = (each.revoked or 0) + lost
            for topic, partition in sorted(now ^ had):
                change = "gained" if (topic, partition) in now else "lost"
                each.moves.append(Moved(beat.member, topic, partition, change, self._task(beat)))
            each.moved = (each.moved or 0) + len(moved)
            since_ns = each.begin_ns if each.begin_ns is not None else beat.answered_ns
            died_ns = self._read_until(each, since_ns)
            for place, owner in moved.items():
                has_died = each.trigger == TIMED_OUT and owner == each.trigger_member
                released_ns = self.released.pop(place, since_ns)
                unread_ns = died_ns if has_died else max(since_ns, released_ns)
                self.waiting[place] = _Unowned(unread_ns, each, owner)
        if beat.kind == "share":
            member.owned = beat.assignment
            for place in moved:
                self._arrives(place, beat.answered_ns)

    def _read_until(self, each: Rebalance, begin_ns: int) -> int:
        """When the silent member that a rebalance is about read for the last time. The rebalance only begins
        when its session ends."""
        silent = each.trigger_member
        if each.trigger != TIMED_OUT or silent is None:
            return begin_ns
        ns = self.line.fetched_until(silent, {silent, *self.members}, begin_ns)
        return begin_ns if ns is None else ns

    def _changes_hands(self, place: tuple[str, int], beat: Beat) -> bool:
        """Whether another member had a partition. Members of share groups share partitions."""
        owner = self.owners.get(place, beat.member)
        before = self.members.get(owner)
        shared = beat.kind == "share" and before is not None and place in set(places(before.target or ()))
        return owner != beat.member and not shared

    def _arrives(self, place: tuple[str, int], ns: int) -> None:
        """The new owner of a partition has it."""
        found = self.waiting.pop(place, None)
        if found is not None:
            found.rebalance.stops.append((found.owner, ns - found.since_ns))

    def _reopen(self, beat: Beat) -> None:
        """Reopen the last rebalance: all members had reached its epoch, and now one is given partitions that
        another gave back before."""
        for each in self.rows[-1:]:
            if each.completed and each.generation is not None and each.generation == beat.epoch:
                each.completed = None
                each.steps = [
                    step for step in each.steps if (step.member, step.step) != (beat.member, SYNCED)
                ]
                self.open.append(each)

    def _task(self, beat: Beat) -> str | None:
        return "active" if beat.kind == "streams" else None

    def _finish_reached(self, beat: Beat) -> None:
        """Finish the open rebalances whose epochs all members have reached."""
        assert beat.answered_ns is not None
        for each in list(self.open):
            generation = each.generation
            if generation is None:
                continue
            behind = [name for name, member in self.members.items() if member.epoch < generation]
            behind += [
                name
                for name, member in self.members.items()
                if name not in behind and member.target is not None and not holds(member)
            ]
            told = any(step.member == beat.member and step.step == SYNCED for step in each.steps)
            if beat.member not in behind and not told:
                each.steps.append(MemberStep(beat.answered_ns, beat.number, beat.member, SYNCED, beat.who))
                each.synced_ns = beat.answered_ns
            if not behind:
                each.completed = True
                each.waited_for = []
                self._finish(each, beat.answered_ns)
                self.open.remove(each)
            else:
                each.waited_for = behind

    def _finish(self, each: _OpenRebalance, ns: int) -> None:
        """Finish a rebalance: at this time, all members are known to have reached its epoch."""
        each.members = len(self.members)
        each.partitions = sum(1 for member in self.members.values() for _ in places(member.target or ()))
        each.moved, each.revoked = each.moved or 0, each.revoked or 0
        if each.begin_ns is not None and each.synced_ns is not None:
            each.stood_still(each.stops)
        self._doubt(each, ns)

    def _doubt(self, each: _OpenRebalance, ns: int) -> None:
        """Remove the results that need the messages of all members, if some were not captured."""
        if self._is_whole(ns) and all(member.is_known for member in self.members.values()):
            return
        each.members = each.before = each.partitions = each.moved = each.revoked = None
        each.assigned_ns = each.stopped_ns = each.stopped = each.synced_ns = each.missing = None
        each.moves, each.waited_for = [], []
        each.completed = True if each.completed else None

    def _is_whole(self, ns: int) -> bool:
        return self.line.is_whole(self.first_ns, ns)

    def _close(self, ns: int) -> None:
        """Close the open rebalances, because no member is left or the capture ended. They are incomplete.
        Those whose generation was not captured may be complete."""
        for each in self.open:
            each.completed = None if each.is_dark else False
            each.until_ns = ns
            self._doubt(each, ns)
        self.open = []

    def end(self) -> None:
        """The capture ended."""
        end_ns = self.line.end_ns
        if end_ns is not None:
            for each in self.open:
                each.missing = list(each.waited_for)
                if each.begin_ns is not None and each.generation is not None and each.moved:
                    waiting = [one for one in self.waiting.values() if one.rebalance is each]
                    each.stood_still(each.stops + [(one.owner, end_ns - one.since_ns) for one in waiting])
            self._close(end_ns)


def epoch_rebalances(line: GroupLine) -> list[Rebalance]:
    """The rebalances of a group of heartbeats, in the order of time."""
    replay = _Replay(line)
    marks = [mark for mark in line.marks if isinstance(mark, (Beat, Leave))]
    runs = sorted(
        ((run.first_ns, key, run) for key, run in line.beats.items() if key.member), key=lambda each: each[:2]
    )
    at = 0
    for mark in marks:
        while at < len(runs) and runs[at][0] < mark.ns:
            replay.take_repeats(runs[at][1].member, runs[at][2], runs[at][1].generation)
            at += 1
        if isinstance(mark, Leave):
            replay.take_leave(mark)
        else:
            replay.take(mark)
    replay.end()
    return list(replay.rows)
