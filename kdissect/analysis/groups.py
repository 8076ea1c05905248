"""Groups, their members, and their rebalances: three tables of one reading of the same exchanges.

A rebalance of a classic group is a generation that a member was seen joining. It lasts, for a member, from
its JoinGroup request to its SyncGroup response; for the group, from the first of the former to the last
of the latter. The other groups do not stop for a rebalance: their members have epochs, and no duration.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kdissect.analysis.fold import Row, Span, least, most
from kdissect.analysis.grades import Grades
from kdissect.analysis.membership import Membership, Stay


class Members(Membership):
    """The statistic ``members``: a row a member."""

    def result(self) -> list[Row]:
        generations: dict[tuple[str, str], list[int]] = {}
        for group, generation, member_id in self._stays.rows:
            generations.setdefault((group, member_id), []).append(generation)
        rows = []
        for key, member in sorted(self._members.rows.items(), key=lambda each: each[0]):
            held = generations.get((key.group, key.member), [])
            rows.append(
                {
                    "group": key.group,
                    "member_id": key.member,
                    "instance_id": member.instance,
                    "types": sorted(member.types),
                    "client_id": member.client_id,
                    "client": member.client,
                    "first_generation": min(held, default=None),
                    "last_generation": max(held, default=None),
                    "joins": member.joins,
                    "heartbeats": member.heartbeats,
                    "commits": member.commits,
                    "committed_partitions": member.committed_partitions,
                    **member.errors.columns(),
                    "left": member.left,
                    "leave_reason": member.leave_reason,
                    "left_ns": member.left_ns,
                    "first_ns": member.span.first_ns,
                    "last_ns": member.span.last_ns,
                }
            )
        return rows


class Rebalances(Membership):
    """The statistic ``rebalances``: a row for every stay of a member in a generation."""

    def result(self) -> list[Row]:
        return [
            {
                "group": group,
                "generation": generation,
                "member_id": member,
                "types": sorted(stay.types),
                "protocol": stay.protocol,
                "leader": stay.leader,
                "join_ns": stay.join_ns,
                "sync_ns": stay.sync_ns,
                "duration_ns": stay.duration_ns,
                "reason": stay.reason,
                "assigned": stay.assigned,
                "heartbeats": stay.heartbeats,
                "first_ns": stay.span.first_ns,
                "last_ns": stay.span.last_ns,
            }
            for (group, generation, member), stay in sorted(
                self._stays.rows.items(),
                key=lambda each: (each[0][0], each[0][1], each[1].join_ns or 0, each[0]),
            )
        ]


@dataclass(slots=True)
class _Group:
    """A group, put together from its members and their stays."""

    types: set[str] = field(default_factory=set)
    protocols: set[str] = field(default_factory=set)
    members: int = 0
    joins: int = 0
    heartbeats: int = 0
    commits: int = 0
    committed_partitions: int = 0
    leaves: int = 0
    errors: Grades = field(default_factory=Grades)
    span: Span = field(default_factory=Span)
    generations: dict[int, Stay] = field(default_factory=dict)
    """All stays in a generation as one: from the first join to the last sync."""

    def rebalances(self) -> list[int | None]:
        """How long each generation took that a member was seen joining, in their order."""
        found = sorted(self.generations.items())
        return [stay.duration_ns for _, stay in found if stay.join_ns is not None]


class Groups(Membership):
    """The statistic ``groups``: a row a group."""

    def result(self) -> list[Row]:
        groups: dict[str, _Group] = {}
        for key, member in self._members.rows.items():
            group = groups.setdefault(key.group, _Group())
            group.types |= member.types
            group.members += bool(key.member)
            group.joins += member.joins
            group.heartbeats += member.heartbeats
            group.commits += member.commits
            group.committed_partitions += member.committed_partitions
            group.leaves += member.left is not None
            group.errors.merge(member.errors)
            group.span.merge(member.span)
        for (name, generation, _), stay in self._stays.rows.items():
            group = groups.setdefault(name, _Group())
            if stay.protocol:
                group.protocols.add(stay.protocol)
            whole = group.generations.setdefault(generation, Stay())
            whole.join_ns = least(whole.join_ns, stay.join_ns)
            whole.sync_ns = most(whole.sync_ns, stay.sync_ns)
        return [_result(name, group) for name, group in sorted(groups.items())]


def _result(name: str, group: _Group) -> Row:
    rebalances = group.rebalances()
    is_classic = "classic" in group.types
    known = [duration for duration in rebalances if duration is not None]
    return {
        "group": name,
        "types": sorted(group.types),
        "protocols": sorted(group.protocols),
        "members": group.members,
        "first_generation": min(group.generations, default=None),
        "last_generation": max(group.generations, default=None),
        "rebalances": len(rebalances) if is_classic else None,
        "rebalance_max_ns": max(known, default=None),
        "rebalance_last_ns": rebalances[-1] if rebalances else None,
        "joins": group.joins,
        "heartbeats": group.heartbeats,
        "commits": group.commits,
        "committed_partitions": group.committed_partitions,
        "leaves": group.leaves,
        **group.errors.columns(),
        "first_ns": group.span.first_ns,
        "last_ns": group.span.last_ns,
    }
