"""The rebalances of a classic group: JoinGroup, SyncGroup, LeaveGroup, Heartbeat; Connect's too.

A rebalance begins with its trigger (:mod:`kdissect.analysis.triggers`). The members are notified, and join
again. The coordinator answers all of them at once: when the last member has joined, or when its wait is over.
Then they get the leader's assignment. A generation without any answer between two known ones was that of an
empty group. If a rebalance is unfinished at the end of the capture, it has a row too, without a generation if
no answer contained one.
"""

from __future__ import annotations

from kdissect.analysis.assignment import Held
from kdissect.analysis.classic_rounds import REBALANCE_IN_PROGRESS, Round, rounds_of
from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.group_marks import Join, Leave, Sync, places
from kdissect.analysis.group_rebalance import (
    ASSIGNED,
    EXPIRED,
    FETCHED,
    JOINED,
    LEFT,
    NOTIFIED,
    STATUS,
    SYNCED,
    GroupLine,
    MemberStep,
    Moved,
    Rebalance,
)
from kdissect.analysis.triggers import (
    EARLY,
    UNKNOWN_MEMBER_ID,
    Window,
    identity,
    notified,
    trigger_of,
    was_not_polled,
)

EAGER = ("range", "roundrobin", "sticky")
"""Assignors whose members give up all partitions before they join again (KIP-429)."""


def classic_rebalances(line: GroupLine) -> list[Rebalance]:
    """The rebalances of a classic group, in the order of time."""
    rounds = rounds_of(line)
    found: list[Rebalance] = []
    before: Round | None = None
    for at, each in enumerate(rounds):
        after = rounds[at + 1] if at + 1 < len(rounds) else None
        if each.is_seen:
            found.append(_rebalance(line, before, each, after))
        emptied = _emptied(line, each, after)
        if emptied is not None:
            found.append(emptied)
        before = each
    unfinished = _unfinished(line, before)
    return found if unfinished is None else [*found, unfinished]


def _emptied(line: GroupLine, before: Round, after: Round | None) -> Rebalance | None:
    """The generation that begins when the last members left because they were not polled. It has no members,
    so no answer contains it. Other groups without members are no trouble, and have no row."""
    if after is not None and after.generation == before.generation + 1:
        return None
    joins = after.joins if after is not None else []
    until_ns = min((join.ns for join in joins), default=after.told_ns if after is not None else line.end_ns)
    if until_ns is None or not before.is_seen:
        return None
    window = _window(line, before, None, [], None, until_ns)
    gone = {identity(leave.member, leave.instance, window.members) for leave in window.leaves}
    if not window.is_full or not window.leaves or not gone >= set(window.members):
        return None
    out = _begun(line, window)
    if out.trigger != "poll-interval":
        return None
    out.generation = before.generation + 1
    out.before, out.members, out.joined, out.left = len(window.members), 0, 0, len(window.members)
    out.missing, out.completed = [], True
    return out


def _rebalance(line: GroupLine, before: Round | None, now: Round, after: Round | None) -> Rebalance:
    """A rebalance whose generation members were told."""
    joined_ns = now.joined_ns
    window = _window(line, before, now.generation, now.joins, now.roster, joined_ns or now.told_ns)
    out = _begun(line, window)
    told: list[Join | Sync] = [*now.joins, *now.syncs]
    protocols = [each.protocol for each in told if each.protocol]
    out.protocol = protocols[0] if protocols else None
    own = [sync for sync in now.syncs if not now.joins or sync.member in {join.member for join in now.joins}]
    good = [sync for sync in own if sync.error == 0 and sync.answered_ns is not None]
    leader = next((sync for sync in own if sync.assigned), None)
    out.joined_ns = joined_ns
    out.assigned_ns = leader.ns if leader is not None else None
    out.synced_ns = max((sync.answered_ns for sync in good if sync.answered_ns is not None), default=None)
    delays = [sync.delay_ms for sync in own if sync.delay_ms is not None]
    out.delay_ms = max(delays, default=None)
    until_ns = after.told_ns if after is not None else line.end_ns or now.told_ns
    if good:
        out.completed = True
    elif any(sync.is_lost or not line.has_broker_side(sync.who) for sync in own) or not line.is_whole(
        now.told_ns, until_ns
    ):
        out.completed = None
    else:
        out.completed = False
        out.until_ns = until_ns
    if before is not None:
        _removed(line, out, before, joined_ns or now.told_ns)
        if now.generation > before.generation + 1:
            _died_out(line, out, before, now)
    _roster(line, out, before, now, window)
    _assignments(out, before, now)
    _stopped(line, out, before, now, after)
    out.errors += sum(bool(each.error) and not each.routine for each in own)
    out.counts |= any(join.counts for join in now.joins) or any(sync.counts for sync in own)
    numbers = [join.number for join in now.joins[-1:]]
    out.exchanges += numbers + ([leader.number] if leader is not None else [])
    for sync in good:
        out.steps.append(MemberStep(sync.answered_ns or sync.ns, sync.number, sync.member, SYNCED, sync.who))
        if sync.failed is not None:
            told_ns = sync.answered_ns or sync.ns
            out.steps.append(MemberStep(told_ns, sync.number, sync.member, STATUS, sync.who, sync.failed))
    if leader is not None:
        gives = f"assigns to {len(leader.assigned)}"
        out.steps.append(MemberStep(leader.ns, leader.number, leader.member, ASSIGNED, leader.who, gives))
    members = set(now.later())
    for sync in good:
        ns = line.fetched_from(sync.member, members, sync.answered_ns or sync.ns)
        if ns is not None and (after is None or ns < after.told_ns):
            out.steps.append(MemberStep(ns, None, sync.member, FETCHED, line.clients.get(sync.member)))
    return out


def _removed(line: GroupLine, out: Rebalance, before: Round, until_ns: int) -> None:
    """Members that were silent for too long and then got the error that they are no longer members."""
    told = {step.member for step in out.steps if step.step == EXPIRED}
    for key, run in line.refusals_of(before.generation):
        if key.error != UNKNOWN_MEMBER_ID or not before.told_ns <= run.first_ns <= until_ns:
            continue
        if key.member in told or key.member in line.left:
            continue
        step = line.expired(key.member, run.first_ns, run.first)
        session_ms = line.session_ms(key.member, key.instance)
        if step.silent_ns and session_ms and step.silent_ns >= EARLY * session_ms * MILLISECOND:
            out.steps.append(step)
            told.add(key.member)


def _died_out(line: GroupLine, out: Rebalance, before: Round, now: Round) -> None:
    """Members that were silent until the group was empty, if others join it later."""
    ns = min((join.ns for join in now.joins), default=None)
    members = before.later()
    if ns is None or before.roster is None:
        return
    leaves = line.leaves(before.told_ns, ns)
    if not _is_over(line, before, members, True, leaves, ns):
        return
    told = {step.member for step in out.steps if step.step == EXPIRED}
    told |= {identity(leave.member, leave.instance, members) or leave.member for leave in leaves}
    gone = (each for each in members if each not in told and not line.may_have_left(each, ns))
    out.steps += (line.expired(member, ns) for member in gone)


def _window(
    line: GroupLine,
    before: Round | None,
    generation: int | None,
    joins: list[Join],
    roster: dict[str, str | None] | None,
    until_ns: int,
) -> Window:
    """The known facts about how the rebalance began."""
    since = before.told_ns if before is not None else 0
    leaves, waiting = line.leaves(since, until_ns), line.unanswered(since, until_ns)
    members = before.later() if before is not None else {}
    is_full = before is not None and before.roster is not None
    if before is not None and not is_full:
        for key, _ in line.heartbeats_in(before.generation):
            if key.member:
                members.setdefault(key.member, None)
    if before is not None and generation is not None and generation != before.generation + 1:
        first_ns = min((join.ns for join in joins), default=until_ns)
        if _is_over(line, before, members, is_full, leaves, first_ns):
            return Window(None, {}, True, generation, joins, [], roster, until_ns)
        return Window(None, members, False, generation, [], [], roster, until_ns)
    answered = {join.number for join in joins}
    asked = [*joins, *(join for join in waiting if join.number not in answered)]
    asked.sort(key=lambda join: (join.ns, join.number))
    return Window(before, members, is_full, generation, asked, leaves, roster, until_ns)


def _is_over(
    line: GroupLine,
    before: Round,
    members: dict[str, str | None],
    is_full: bool,
    leaves: list[Leave],
    ns: int,
) -> bool:
    """Whether all members of a generation had left, or were silent for their session timeouts."""
    gone = {identity(leave.member, leave.instance, members) for leave in leaves if leave.ns < ns}
    gone |= {
        key.member
        for key, run in line.refusals.items()
        if key.error == UNKNOWN_MEMBER_ID and before.told_ns <= run.first_ns <= ns
    }
    for member, instance in members.items():
        if member in gone:
            continue
        last_ns, session_ms = line.last_sign(member, ns), line.session_ms(member, instance)
        if last_ns is None or session_ms is None or ns - last_ns < EARLY * session_ms * MILLISECOND:
            return False
    return is_full and before.is_seen


def _begun(line: GroupLine, window: Window) -> Rebalance:
    """A rebalance with its trigger, and the steps that members took before they joined."""
    kinds = [join.kind for join in window.joins if join.kind]
    out = Rebalance(line.group, "classic", window.generation, protocol_type=kinds[0] if kinds else None)
    trigger = trigger_of(line, window)
    if trigger is not None:
        out.trigger, out.trigger_confidence = trigger.word, trigger.confidence
        out.trigger_member, out.trigger_who = trigger.member, trigger.who
        out.trigger_reason, out.trigger_exchange = trigger.reason, trigger.exchange
        out.begin_ns = trigger.begin_ns
        if trigger.exchange is not None:
            out.exchanges.append(trigger.exchange)
        if trigger.word == "session-timeout" and trigger.member is not None:
            out.steps.append(line.expired(trigger.member, trigger.begin_ns))
    told = notified(line, window)
    if told is not None:
        out.notified_ns = told.first_ns
        out.exchanges.append(told.first)
    since = window.before.told_ns if window.before is not None else 0
    generation = window.before.generation if window.before is not None else (window.generation or 0) - 1
    first: dict[str, MemberStep] = {}
    for key, run in line.refusals_of(generation):
        if key.error == REBALANCE_IN_PROGRESS and key.api != "JoinGroup":
            out.counts |= run.counts
            if since <= run.first_ns <= window.until_ns:
                step = MemberStep(run.first_ns, run.first, key.member, NOTIFIED, run.who)
                if key.member not in first or first[key.member].ns > step.ns:
                    first[key.member] = step
    out.steps += first.values()
    for join in window.joins:
        detail = join.reason or (f"instance {join.instance}" if join.instance else None)
        member = join.member or join.instance or ""
        step = MemberStep(join.ns, join.number, member, JOINED, join.who, detail)
        if join.worker is not None:
            overlap = _overlap(line, window.before, join)
            step = step._replace(config_offset=join.config_offset, overlap=overlap)
        out.steps.append(step)
        out.counts |= join.counts
    for leave in window.leaves:
        member = (
            identity(leave.member, leave.instance, window.members) or leave.member or leave.instance or ""
        )
        reason = leave.reason
        if reason is None:
            reason = was_not_polled(line, leave, member)
        out.steps.append(MemberStep(leave.ns, leave.number, member, LEFT, leave.who, reason))
        out.counts |= leave.counts
    out.last_join_ns = max((join.ns for join in window.joins), default=None)
    return out


def _overlap(line: GroupLine, before: Round | None, join: Join) -> int | None:
    """How many of the connectors and tasks that a worker of Connect says it owns were given to another worker
    in the generation before. None if the worker lists none, or if no captured assignment gave any."""
    if join.owned is None or before is None:
        return None
    given = [pair for sync in before.syncs for pair in sync.assigned]
    given += [(sync.member, sync.assignment) for sync in before.syncs if sync.error == 0]
    others: set[tuple[str, int]] = set()
    for member, held in given:
        if held is not None and line.workers.get(member, join.worker) != join.worker:
            others.update(places(held))
    return len(others & set(places(join.owned))) if given else None


def _roster(line: GroupLine, out: Rebalance, before: Round | None, now: Round, window: Window) -> None:
    """The members before and after, and the members that the group waited for."""
    roster = now.roster
    out.members = len(roster) if roster is not None else None
    known = window.members if window.is_full else None
    if known is None and now.generation == 1:
        known = {}
    gone = {identity(leave.member, leave.instance, window.members) for leave in window.leaves}
    if out.trigger == "session-timeout":
        gone.add(out.trigger_member)
    if known is not None:
        out.before = len(known)
    if roster is not None and known is not None:
        out.joined = sum(identity(each, name, known) is None for each, name in roster.items())
        lost = [each for each, name in known.items() if identity(each, name, roster) is None]
        out.left = len(lost)
        if out.trigger is not None:
            out.missing = [each for each in lost if each not in gone]
        for member in out.missing or ():
            out.steps.append(line.not_joined(member, now.joined_ns or now.told_ns))
    waits = sorted(window.joins, key=lambda join: (join.ns, join.number))
    if roster is None or not set(roster) <= {join.member for join in waits}:
        out.last_join_ns = None  # another may have joined later
    elif len(waits) > 1:
        out.waited_for.append(waits[-1].member)
    out.waited_for += [each for each in out.missing or () if each not in out.waited_for]


def _assignments(out: Rebalance, before: Round | None, now: Round) -> None:
    """The partitions that each member got."""
    assigned = now.assigned
    if assigned is None:
        return
    last = before.assigned if before is not None and before.generation == now.generation - 1 else None
    if before is not None and last is not None:
        last = _renamed(last, before)
    if out.before == 0:
        last = {}
    out.moves = moves_of(assigned, last)
    out.partitions = sum(len(each) for held in assigned.values() for _, each in held)
    if last is not None:
        owners = {place: member for member, held in last.items() for place in places(held)}
        moved = [
            (owners[place], member)
            for member, held in assigned.items()
            for place in places(held)
            if owners.get(place, member) != member
        ]
        out.moved = len(moved)
        stay = set(assigned)
        out.revoked = sum(change.change == "lost" and change.member in stay for change in out.moves)


def _renamed(assigned: dict[str, Held], before: Round) -> dict[str, Held]:
    """The assignments of members, under the ids that static members had in the end."""
    names = {join.member: join.instance for join in (*before.joins, *before.again) if join.instance}
    latest = {instance: member for member, instance in before.later().items() if instance}
    return {latest.get(names.get(member) or "", member): held for member, held in assigned.items()}


def moves_of(assigned: dict[str, Held], last: dict[str, Held] | None) -> list[Moved]:
    """The partitions that each member kept, gained and lost."""
    out: list[Moved] = []
    for member in sorted({*assigned, *(last or ())}):
        now = set(places(assigned.get(member, ())))
        had = set(places(last.get(member, ()))) if last is not None else None
        for topic, partition in sorted(now | (had or set())):
            place = topic, partition
            if had is None:
                change = None
            else:
                change = "lost" if place not in now else "kept" if place in had else "gained"
            out.append(Moved(member, topic, partition, change))
    return out


def _stopped(line: GroupLine, out: Rebalance, before: Round | None, now: Round, after: Round | None) -> None:
    """How long consumption stopped, for the partition that waited longest.

    The time runs from the last Fetch of its old member to the first Fetch of its new one. If the old member
    lives, the time starts no earlier than the rebalance. If the Fetches are unknown, it runs from the
    beginning to the last assignment.
    """
    until_ns = out.synced_ns if out.completed else out.until_ns
    if out.begin_ns is None or until_ns is None or not _consumed(before):
        return
    out.stopped_ns = max(0, until_ns - out.begin_ns)
    assigned = now.assigned
    last = before.assigned if before is not None else None
    if assigned is None or before is None or last is None or not out.completed:
        return
    last = _renamed(last, before)
    alive = {*before.later(), *now.later()}
    joined = {join.member: join.ns for join in now.joins}
    from_ns: dict[str, int] = {}
    for member, held in last.items():
        if not any(True for _ in places(held)):
            continue
        ns = line.fetched_until(member, alive, joined.get(member, until_ns))
        if ns is None and member in joined and out.protocol in EAGER:
            ns = joined[member]
        if ns is not None:
            has_died = out.trigger == "session-timeout" and member == out.trigger_member
            from_ns[member] = ns if has_died else max(ns, out.begin_ns)
    to_ns: dict[str, int] = {}
    for sync in now.syncs:
        if sync.error == 0 and sync.answered_ns is not None:
            ns = line.fetched_from(sync.member, alive, sync.answered_ns)
            to_ns[sync.member] = sync.answered_ns if ns is None or (after and ns >= after.told_ns) else ns
    owners = {place: member for member, held in last.items() for place in places(held)}
    stops: list[tuple[str, int]] = []
    for member, held in assigned.items():
        for place in places(held):
            owner = owners.get(place)
            if owner is None or (owner == member and out.protocol not in EAGER):
                continue
            if owner not in from_ns or member not in to_ns:
                return
            stops.append((owner, to_ns[member] - from_ns[owner]))
    out.stood_still(stops)


def _consumed(before: Round | None) -> bool:
    """Whether members of the generation before had partitions, as far as is known."""
    if before is None or not before.is_seen:
        return True
    assigned = before.assigned
    if assigned is None:
        return any(sync.error == 0 and sync.assignment != () for sync in before.syncs)
    return any(True for held in assigned.values() for _ in places(held))


def _unfinished(line: GroupLine, before: Round | None) -> Rebalance | None:
    """The rebalance that is unfinished at the end of the capture: members are told to join again, have left,
    or wait."""
    end_ns = line.end_ns
    if end_ns is None:
        return None
    window = _window(line, before, None, [], None, end_ns)
    heard = [join for join in window.joins if not join.is_lost and line.has_broker_side(join.who)]
    window = window._replace(joins=heard)
    told = notified(line, window) if before is not None else None
    gone = {identity(leave.member, leave.instance, window.members) for leave in window.leaves}
    rest = [member for member in window.members if member not in gone]
    left = [leave for leave in window.leaves if identity(leave.member, leave.instance, window.members)]
    if not window.joins and told is None and (not left or not rest):
        return None
    out = _begun(line, window)
    out.completed = False
    out.until_ns = end_ns
    if before is not None and window.is_full:
        out.before = len(window.members)
        came = {join.member for join in window.joins}
        out.missing = [each for each in rest if each not in came and each != out.trigger_member]
        out.waited_for = list(out.missing)
    since_ns = out.begin_ns if out.begin_ns is not None or told is None else told.first_ns
    if since_ns is not None and (told is not None or window.joins) and _consumed(before):
        out.stopped_ns = max(0, end_ns - since_ns)
    return out
