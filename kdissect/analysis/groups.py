"""Groups, their members, and the stays of members in generations: three views of one fold.

A rebalance of a classic group is a generation that a member was seen joining, or one that members still wait
for: :mod:`kdissect.analysis.stays`. The other groups do not stop for a rebalance: their members have epochs,
and no duration.

A static member (KIP-345) that comes back has another member id, so it has another row. For its group it is
the same member.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kdissect.analysis.clusters import NameAt
from kdissect.analysis.counters import Grades, Span
from kdissect.analysis.declared import (
    CLIENT_COLUMN,
    CLIENT_ID_COLUMN,
    GROUP_CLUSTER_COLUMN,
    GROUP_COLUMN,
    GROUP_TYPES_COLUMN,
    column,
    first_and_last,
    graded_errors,
    time_column,
)
from kdissect.analysis.fold import Row, View
from kdissect.analysis.member import Member
from kdissect.analysis.membership import Membership
from kdissect.analysis.packed import packed
from kdissect.analysis.stays import RebalanceSpan, Stay, rebalance_of, rebalance_to

MEMBERSHIP = (
    column("joins", "int64", "JoinGroup requests, or heartbeats with member epoch 0"),
    column(
        "heartbeats",
        "int64",
        "heartbeats; for the newer group types this includes those that join (epoch 0) or leave (-1, -2)",
    ),
    column("commits", "int64", "OffsetCommit and TxnOffsetCommit requests"),
    column("committed_partitions", "int64", "partitions in these requests"),
)
"""Counts of the requests of a member, or of a group."""


class Members(View[Membership]):
    """The statistic ``members``: a row for each member."""

    basis_type = Membership
    name = "members"
    about = "the members of groups: assignors, topics, timeouts, rebalances, commits"
    columns = (
        GROUP_COLUMN,
        GROUP_CLUSTER_COLUMN,
        column("member_id", "text", "the member id; empty for clients that are not members"),
        column("instance_id", "text", "group.instance.id of a static member"),
        GROUP_TYPES_COLUMN,
        CLIENT_ID_COLUMN,
        CLIENT_COLUMN,
        column("offers", "texts", "assignors (or other protocols) that it is ready to use"),
        column("subscribed", "texts", "topics of its last subscription"),
        column(
            "session_timeout_ms",
            "int32",
            "session timeout that it asked for: the group removes it after this time without a heartbeat",
        ),
        column(
            "rebalance_timeout_ms",
            "int32",
            "how long the group waits for it to join again; for consumers, their max.poll.interval.ms",
        ),
        column("first_generation", "int32", "the lowest generation or member epoch it was given"),
        column("last_generation", "int32", "the highest generation or member epoch that members were given"),
        *MEMBERSHIP,
        *graded_errors("error codes in responses"),
        column("left", "text", "LeaveGroup, or member epoch -1 or -2; null if it did not leave"),
        column("leave_reason", "text", "reason in the request with which it left"),
        time_column("left_ns", "time at which it left"),
        *first_and_last("request of the member, or about it if it sent none"),
    )

    def result(self) -> list[Row]:
        generations: dict[tuple[NameAt, str], list[int]] = {}
        for group, generation, member_id in self.basis.stays():
            generations.setdefault((group, member_id), []).append(generation)
        rows = []
        for key, member in sorted(self.basis.members().items(), key=lambda each: each[0]):
            held, span = generations.get((key.group, key.member), []), member.span
            rows.append(
                {
                    "group": key.group.name,
                    "cluster_id": key.group.cluster_id,
                    "member_id": key.member,
                    "instance_id": member.instance,
                    "types": sorted(member.types),
                    "client_id": member.client_id,
                    "client": member.client,
                    "offers": sorted(member.offers),
                    "subscribed": sorted(member.subscribed),
                    "session_timeout_ms": member.session_ms,
                    "rebalance_timeout_ms": member.rebalance_ms,
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
                    "first_ns": span.first_ns,
                    "last_ns": span.last_ns,
                }
            )
        return rows


class Stays(View[Membership]):
    """The statistic ``stays``: a row for every stay of a member in a generation, and for every member
    that still waits for one."""

    basis_type = Membership
    name = "stays"
    about = "how long each member of a group took from join to sync, in each generation"
    columns = (
        GROUP_COLUMN,
        GROUP_CLUSTER_COLUMN,
        column(
            "generation",
            "int32",
            "the generation, or the member epoch; null while it waits for one",
        ),
        column("member_id", "text", "member id; the instance id of a static member that has no id yet"),
        GROUP_TYPES_COLUMN,
        column("protocol", "text", "the assignor or protocol that was chosen"),
        column("leader", "bool", "whether it is the leader, which assigns the partitions"),
        time_column("join_ns", "time of its first JoinGroup request for this generation"),
        time_column("sync_ns", "time of its first SyncGroup response"),
        column("duration_ns", "int64", "sync_ns - join_ns; the time so far if it is not finished"),
        column(
            "completed",
            "bool",
            "whether it got its assignment; null if unknown, or if the capture does not show it joining",
        ),
        column("reason", "text", "why it joins, from its request (KIP-800)"),
        column(
            "assigned",
            "int32",
            "partitions (or active tasks) that it got; null if the capture does not show them",
        ),
        column(
            "heartbeats", "int64", "its heartbeats in this generation that were answered without an error"
        ),
        column("heartbeat_p50_ns", "int64", "median time between these heartbeats"),
        column("heartbeat_max_ns", "int64", "longest time between these heartbeats"),
        *first_and_last("response"),
    )

    def result(self) -> list[Row]:
        found: list[tuple[NameAt, int | None, str, Stay]] = [
            (*key, stay) for key, stay in self.basis.stays().items()
        ]
        found += [
            (key.group, None, key.member or key.instance, stay) for key, stay in self.basis.joining().items()
        ]
        found.sort(key=lambda each: (each[0], each[1] is None, each[1] or 0, each[3].join_ns or 0, each[2]))
        had: dict[tuple[NameAt, str], int] = {}
        rows = []
        for group, generation, member, stay in found:
            row = self._row(group, generation, member, stay)
            if row["assigned"] is None and "classic" not in stay.types:
                row["assigned"] = had.get((group, member))  # a new epoch tells a member only what changes
            if row["assigned"] is not None:
                had[group, member] = row["assigned"]
            rows.append(row)
        return rows

    def _row(self, group: NameAt, generation: int | None, member: str, stay: Stay) -> Row:
        rebalance = rebalance_of(stay, self.basis.end_ns, self.basis.ends)
        return {
            "group": group.name,
            "cluster_id": group.cluster_id,
            "generation": generation,
            "member_id": member,
            "types": sorted(stay.types),
            "protocol": stay.protocol,
            "leader": stay.leader,
            "join_ns": stay.join_ns,
            "sync_ns": stay.sync_ns,
            "duration_ns": rebalance.duration_ns if rebalance is not None else None,
            "completed": rebalance.completed if rebalance is not None else None,
            "reason": stay.reason,
            "assigned": stay.assigned,
            "heartbeats": stay.heartbeats,
            "heartbeat_p50_ns": stay.gaps.percentiles(50)[0],
            "heartbeat_max_ns": stay.gaps.most,
            "first_ns": stay.span.first_ns,
            "last_ns": stay.span.last_ns,
        }


@packed
@dataclass(slots=True)
class _Group:
    """A group, computed from its members and their stays."""

    types: set[str] = field(default_factory=set)
    protocols: set[str] = field(default_factory=set)
    members: dict[str, Member] = field(default_factory=dict)
    """The members in their last state, by instance id, else by member id."""
    joins: int = 0
    heartbeats: int = 0
    commits: int = 0
    committed_partitions: int = 0
    errors: Grades = field(default_factory=Grades)
    span: Span = field(default_factory=Span)
    generations: dict[int, list[Stay]] = field(default_factory=dict)
    joining: list[Stay] = field(default_factory=list)
    """The stays of members that still wait for a generation."""

    def add(self, name: str, member: Member) -> None:
        """Count a member. The name is empty if a client is no member."""
        self.types |= member.types
        self.joins += member.joins
        self.heartbeats += member.heartbeats
        self.commits += member.commits
        self.committed_partitions += member.committed_partitions
        self.errors.merge(member.errors)
        self.span.merge(member.whole_span)
        name = member.instance or name
        if name:
            before = self.members.get(name)
            if before is None or (before.span.first_ns or 0) <= (member.span.first_ns or 0):
                self.members[name] = member


class Groups(View[Membership]):
    """The statistic ``groups``: a row for each group."""

    basis_type = Membership
    name = "groups"
    about = "groups: members, rebalances, commits"
    columns = (
        GROUP_COLUMN,
        GROUP_CLUSTER_COLUMN,
        GROUP_TYPES_COLUMN,
        column("protocols", "texts", "assignors or protocols that were chosen"),
        column("members", "int64", "members; a static member counts once, however often it came back"),
        column("first_generation", "int32", "the lowest generation or member epoch that members were given"),
        column("last_generation", "int32", "the highest generation or member epoch that members were given"),
        column(
            "rebalances",
            "int64",
            "generations that a member of a classic group joined in the capture, plus one if members wait "
            "for the next; null for other groups",
        ),
        column(
            "rebalance_max_ns",
            "int64",
            "the longest rebalance, from the first JoinGroup request to the last SyncGroup response; the "
            "time so far if it is not finished",
        ),
        column(
            "rebalance_last_ns",
            "int64",
            "duration of the last rebalance; the time so far if it is not finished",
        ),
        column(
            "rebalance_last_completed",
            "bool",
            "whether the last rebalance was finished in the capture; null if unknown",
        ),
        column(
            "not_finished",
            "int64",
            "rebalances that did not finish: they go on, or the next one began; null for groups that are "
            "not classic",
            rare=True,
        ),
        *MEMBERSHIP,
        column("leaves", "int64", "members that left, or were removed"),
        *graded_errors("error codes in responses to members"),
        *first_and_last("exchange"),
    )

    def result(self) -> list[Row]:
        groups: dict[NameAt, _Group] = {}
        for key, member in self.basis.members().items():
            groups.setdefault(key.group, _Group()).add(key.member, member)
        for (name, generation, _), stay in self.basis.stays().items():
            group = groups.setdefault(name, _Group())
            if stay.protocol:
                group.protocols.add(stay.protocol)
            group.generations.setdefault(generation, []).append(stay)
        for key, stay in self.basis.joining().items():
            groups.setdefault(key.group, _Group()).joining.append(stay)
        return [_result(name, group, self._rebalances(group)) for name, group in sorted(groups.items())]

    def _rebalances(self, group: _Group) -> list[RebalanceSpan]:
        """The known rebalances, in their order."""
        parts = [*(stays for _, stays in sorted(group.generations.items())), group.joining]
        found = (rebalance_to(stays, self.basis.end_ns, self.basis.ends) for stays in parts)
        return [rebalance for rebalance in found if rebalance is not None]


def _result(name: NameAt, group: _Group, rebalances: list[RebalanceSpan]) -> Row:
    is_classic = "classic" in group.types
    known = [rebalance.duration_ns for rebalance in rebalances if rebalance.duration_ns is not None]
    return {
        "group": name.name,
        "cluster_id": name.cluster_id,
        "types": sorted(group.types),
        "protocols": sorted(group.protocols),
        "members": len(group.members),
        "first_generation": min(group.generations, default=None),
        "last_generation": max(group.generations, default=None),
        "rebalances": len(rebalances) if is_classic else None,
        "rebalance_max_ns": max(known, default=None),
        "rebalance_last_ns": rebalances[-1].duration_ns if rebalances else None,
        "rebalance_last_completed": rebalances[-1].completed if rebalances else None,
        "not_finished": sum(each.completed is False for each in rebalances) if is_classic else None,
        "joins": group.joins,
        "heartbeats": group.heartbeats,
        "commits": group.commits,
        "committed_partitions": group.committed_partitions,
        "leaves": sum(member.left is not None for member in group.members.values()),
        **group.errors.columns(),
        "first_ns": group.span.first_ns,
        "last_ns": group.span.last_ns,
    }
