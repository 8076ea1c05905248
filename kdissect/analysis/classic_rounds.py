"""The rounds of a classic group: the JoinGroups that were answered together, with their generation.

A JoinGroup that is answered with the generation in force belongs to no round. A static member that comes back
(KIP-345) sends one, or a member that asks again. The coordinator answers all JoinGroups of a round at once,
so a request after the first answer does not belong to the round.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kdissect.analysis.assignment import Held
from kdissect.analysis.fold import least
from kdissect.analysis.group_marks import Join, Sync
from kdissect.analysis.group_rebalance import GroupLine
from kdissect.analysis.packed import packed


@packed
@dataclass(slots=True)
class Round:
    """A generation, by the JoinGroups of its members."""

    generation: int
    told_ns: int
    """When the first answer gave it; its first sign, if no JoinGroup was captured."""
    joins: list[Join] = field(default_factory=list)
    again: list[Join] = field(default_factory=list)
    """JoinGroups that were answered with it while it was in force."""
    syncs: list[Sync] = field(default_factory=list)
    is_seen: bool = True
    """Whether it began in the capture. Otherwise it was already in force at its first sign."""

    @property
    def joined_ns(self) -> int | None:
        """When the last member got its answer."""
        return max((join.answered_ns for join in self.joins if join.answered_ns is not None), default=None)

    @property
    def roster(self) -> dict[str, str | None] | None:
        """All members with their instance ids, as the answer lists them for the leader; None if that was not
        captured."""
        for join in (*self.joins, *self.again):
            if join.roster:
                return dict(join.roster)
        leader = next((sync for sync in self.syncs if sync.assigned), None)
        if leader is None:
            return None
        known = {join.member: join.instance for join in (*self.joins, *self.again)}
        return {member: known.get(member) for member, _ in leader.assigned}

    def later(self) -> dict[str, str | None]:
        """All its known members, with the ids that static members had in the end."""
        found = dict(self.roster or {join.member: join.instance for join in self.joins})
        for sync in self.syncs:
            found.setdefault(sync.member, sync.instance)
        for join in self.again:
            if join.instance is not None:
                found = {each: name for each, name in found.items() if name != join.instance}
            found[join.member] = join.instance
        return found

    @property
    def assigned(self) -> dict[str, Held] | None:
        """The assignment of each member; None if it is not known for all."""
        leader = next((sync for sync in self.syncs if sync.assigned), None)
        if leader is not None:
            if any(held is None for _, held in leader.assigned):
                return None
            return {member: held for member, held in leader.assigned if held is not None}
        roster = self.roster
        given = {sync.member: sync.assignment for sync in self.syncs if sync.assignment is not None}
        if roster is None or not set(roster) <= set(given):
            return None
        return given


def rounds_of(line: GroupLine) -> list[Round]:
    """The rounds of a group, in the order of time."""
    joins = [mark for mark in line.marks if isinstance(mark, Join)]
    answered = [
        join for join in joins if join.error == 0 and join.generation >= 0 and join.answered_ns is not None
    ]
    answered.sort(key=lambda join: (join.answered_ns or 0, join.number))
    syncs = [mark for mark in line.marks if isinstance(mark, Sync) and mark.generation >= 0]
    signs = _signs(line)
    found: list[Round] = []
    for join in answered:
        assert join.answered_ns is not None
        current = found[-1] if found else None
        if current is not None and current.generation == join.generation:
            (current.joins if join.ns <= current.told_ns else current.again).append(join)
            continue
        sign = signs.get(join.generation)
        in_force = sign is not None and sign < join.ns and (current is None or sign > current.told_ns)
        if in_force:
            assert sign is not None
            found.append(Round(join.generation, sign, again=[join], is_seen=False))
        elif current is None and _may_be_in_force(join, answered):
            found.append(Round(join.generation, join.answered_ns, again=[join], is_seen=False))
        else:
            found.append(Round(join.generation, join.answered_ns, [join]))
    of: dict[int, list[Round]] = {}
    for each in found:
        of.setdefault(each.generation, []).append(each)
    for sync in syncs:
        made = _place(sync, of.get(sync.generation, []), signs)
        if made is not None:
            of[made.generation] = [made]
            found.append(made)
    for generation, ns in signs.items():
        if generation not in of:
            found.append(Round(generation, ns, is_seen=False))
    found.sort(key=lambda each: (each.told_ns, each.generation))
    return found


def _signs(line: GroupLine) -> dict[int, int]:
    """When each generation was first seen in force, by requests that only its members send."""
    found: dict[int, int] = {}
    for runs in (line.beats, line.commits):
        for key, run in runs.items():
            if key.generation >= 0 and key.member:
                found[key.generation] = min(run.first_ns, found.get(key.generation, run.first_ns))
    for refusal, run in line.refusals.items():
        if refusal.generation >= 0 and refusal.error == REBALANCE_IN_PROGRESS and refusal.api != "JoinGroup":
            first = min(run.first_ns, found.get(refusal.generation, run.first_ns))
            found[refusal.generation] = first
    return found


REBALANCE_IN_PROGRESS = 27


def _may_be_in_force(join: Join, answered: list[Join]) -> bool:
    """Whether the first JoinGroup of a capture may come from a static member that came back: it follows
    another leader, and nobody else joins with it."""
    others = [each for each in answered if each.generation == join.generation and each is not join]
    together = any(each.ns <= (join.answered_ns or 0) for each in others)
    return join.instance is not None and join.leader != join.member and not together


def _place(sync: Sync, same: list[Round], signs: dict[int, int]) -> Round | None:
    """Add a SyncGroup to its round. If no JoinGroup of the round was captured, return a new round.

    :param same: the rounds of its generation.
    """
    fitting = [each for each in same if each.told_ns <= (sync.answered_ns or sync.ns)]
    if same:
        (fitting or same)[-1].syncs.append(sync)
        return None
    sign = signs.get(sync.generation)
    in_force = sign is not None and sign < sync.ns
    first = least(sign, sync.ns)
    assert first is not None
    return Round(sync.generation, first, syncs=[sync], is_seen=not in_force and bool(sync.assigned))
