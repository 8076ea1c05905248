"""Rebalances of groups, their steps, and the assignments: three tables of one timeline.

A row is a generation of a classic group (Kafka Connect's too), or a rise of the epoch of one of the newer
groups. Unknown values are null. If a packet is missing that may have begun the rebalance, the client that
began it is null. The time is null if it was before the capture.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any

from kdissect.analysis.classic_rebalances import classic_rebalances
from kdissect.analysis.declared import (
    CLIENT_COLUMN,
    CLIENT_ID_COLUMN,
    EXCHANGE,
    GROUP_CLUSTER_COLUMN,
    GROUP_COLUMN,
    GROUP_TYPES_COLUMN,
    PARTITION_COLUMN,
    column,
    time_column,
)
from kdissect.analysis.epoch_rebalances import epoch_rebalances
from kdissect.analysis.fold import Row, View
from kdissect.analysis.group_marks import Beat
from kdissect.analysis.group_rebalance import Rebalance, lines_of
from kdissect.analysis.group_timeline import GroupTimeline
from kdissect.limits import DEFAULTS, Limits

MOST_EXCHANGES = 8
GENERATION_COLUMN = column(
    "generation", "int32", "the generation, or the group's epoch; null if the capture does not show it"
)
MEMBER_COLUMN = column(
    "member_id", "text", "member id; the instance id of a static member that has no id yet"
)


class GroupRebalances(GroupTimeline):
    """The timeline with its rebalances, which are found once for all three tables."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._found: tuple[Any, list[Rebalance]] = None, []

    def rebalances(self) -> list[Rebalance]:
        """All rebalances with an exchange that counts, by group and time."""
        if self._found[0] != (self.changes, self.end_ns):
            self._found = (self.changes, self.end_ns), _rebalances_of(self)
        return self._found[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_found": (None, [])}


class _RebalanceTable(View[GroupRebalances]):
    """A table of rebalances."""

    basis_type = GroupRebalances
    _whole: list[Rebalance] | None = None
    """The rebalances that the last rows were made from, if all of their rows were given."""

    @abstractmethod
    def _rows(self, each: Rebalance) -> Iterator[Row]:
        """The rows of a rebalance."""

    def result(self) -> list[Row]:
        found = self.basis.rebalances()
        rows = list(islice((row for each in found for row in self._rows(each)), self.limits.rows))
        self._whole = found if len(rows) < self.limits.rows else None
        return rows

    @property
    def left_out(self) -> int:
        found = self.basis.rebalances()
        if found is self._whole:
            return self.basis.left_out
        rows = sum(1 for each in found for _ in self._rows(each))
        return self.basis.left_out + max(0, rows - self.limits.rows)


def _rebalances_of(timeline: GroupTimeline) -> list[Rebalance]:
    out: list[Rebalance] = []
    for line in lines_of(timeline):
        found = classic_rebalances(line)
        if any(isinstance(mark, Beat) for mark in line.marks):
            newer = epoch_rebalances(line)
            begun = {each.trigger_exchange for each in newer} - {None}
            # A classic member's leave raises the epoch of a group that is being moved to KIP-848. The classic
            # protocol does not finish what it began.
            found = [each for each in found if each.completed or each.trigger_exchange not in begun] + newer
            found.sort(key=lambda each: each.first_ns())
        out += (each for each in found if each.counts)
    return out


class Rebalances(_RebalanceTable):
    """The statistic ``rebalances``: a row for each rebalance of a group."""

    name = "rebalances"
    about = "each rebalance: who began it and why, who was late, how long consumption stood still"
    columns = (
        GROUP_COLUMN,
        GROUP_CLUSTER_COLUMN,
        GENERATION_COLUMN,
        GROUP_TYPES_COLUMN,
        column("protocol", "text", "the assignor or protocol that was chosen"),
        column(
            "trigger",
            "text",
            "cause: new-member, member-left, poll-interval, session-timeout, static-restart, "
            "subscription-changed, metadata-changed, config-changed, leader-rejoined, followup-revoke, "
            "probing, enforced, coordinator-moved, unknown; null if the capture does not show it",
        ),
        column(
            "trigger_confidence",
            "text",
            "certain if the protocol says so, likely if it follows from the sequence of requests",
        ),
        column("trigger_member", "text", "the member that caused it"),
        column(
            "trigger_client_id",
            "text",
            "client id of the client that asked for the rebalance, or of the member that was silent",
        ),
        column("trigger_client", "text", "address:port of that client"),
        column("trigger_reason", "text", "reason in the request (KIP-800)"),
        column(
            "trigger_exchange",
            "int64",
            "number of the exchange that began it, or that first shows it",
            unit=EXCHANGE,
        ),
        time_column("begin_ns", "when it began, or when the capture first shows it"),
        time_column("notified_ns", "when a response first told a member to join again"),
        time_column("last_join_ns", "time of the last JoinGroup request"),
        time_column("joined_ns", "time of the last JoinGroup response"),
        time_column(
            "assigned_ns",
            "time of the leader's SyncGroup request, or of the first response with a new target assignment",
        ),
        time_column("synced_ns", "when the last member got its assignment"),
        column("join_phase_ns", "int64", "joined_ns - begin_ns"),
        column("assign_phase_ns", "int64", "assigned_ns - joined_ns: the leader's time"),
        column("sync_phase_ns", "int64", "synced_ns - assigned_ns"),
        column(
            "stopped_ns",
            "int64",
            "longest time without a Fetch of a partition; without any Fetch the time to the last "
            "assignment; the time so far if not finished",
        ),
        column(
            "stopped_members",
            "texts",
            "members whose partitions stood still for at least half of stopped_ns; empty if unknown",
        ),
        column("stopped_partitions", "int32", "how many of their partitions did; null if unknown"),
        column("waited_for", "texts", "the member that joined last, and those that never did"),
        column("missing", "texts", "members of the previous generation that neither joined again nor left"),
        column("members", "int32", "members of the new generation"),
        column("members_before", "int32", "members at the beginning"),
        column("joined", "int32", "new members"),
        column("left", "int32", "members of the previous generation that are gone"),
        column("partitions", "int32", "partitions (or tasks) that were assigned"),
        column("moved", "int32", "partitions that another member had before"),
        column("revoked", "int32", "partitions taken from members that stay"),
        column("delay_ns", "int64", "how long Connect leaves tasks idle on purpose (KIP-415)", rare=True),
        column(
            "completed",
            "bool",
            "whether all members got an assignment; false if the next rebalance or the end of the capture "
            "came first; null if unknown",
        ),
        column("errors", "int32", "errors in its responses that are not routine", rare=True),
        column("exchanges", "int64s", "exchanges that show it best", unit=EXCHANGE),
    )

    def _rows(self, each: Rebalance) -> Iterator[Row]:
        yield _row(each)


def _row(each: Rebalance) -> Row:
    who = each.trigger_who
    return {
        "group": each.group.name,
        "cluster_id": each.group.cluster_id,
        "generation": each.generation,
        "types": [each.kind],
        "protocol": each.protocol,
        "trigger": each.trigger,
        "trigger_confidence": each.trigger_confidence,
        "trigger_member": each.trigger_member,
        "trigger_client_id": who.client_id if who is not None else None,
        "trigger_client": who.client if who is not None else None,
        "trigger_reason": each.trigger_reason,
        "trigger_exchange": each.trigger_exchange,
        "begin_ns": each.begin_ns,
        "notified_ns": each.notified_ns,
        "last_join_ns": each.last_join_ns,
        "joined_ns": each.joined_ns,
        "assigned_ns": each.assigned_ns,
        "synced_ns": each.synced_ns,
        "join_phase_ns": _between(each.begin_ns, each.joined_ns),
        "assign_phase_ns": _between(each.joined_ns, each.assigned_ns),
        "sync_phase_ns": _between(each.assigned_ns, each.synced_ns),
        "stopped_ns": each.stopped_ns,
        "stopped_members": sorted(each.stopped or ()),
        "stopped_partitions": each.stopped.total() if each.stopped is not None else None,
        "waited_for": each.waited_for,
        "missing": each.missing,
        "members": each.members,
        "members_before": each.before,
        "joined": each.joined,
        "left": each.left,
        "partitions": each.partitions,
        "moved": each.moved,
        "revoked": each.revoked,
        "delay_ns": each.delay_ms * 1_000_000 if each.delay_ms is not None else None,
        "completed": each.completed,
        "errors": each.errors,
        "exchanges": list(dict.fromkeys(each.exchanges))[:MOST_EXCHANGES],
    }


def _between(first_ns: int | None, last_ns: int | None) -> int | None:
    if first_ns is None or last_ns is None or last_ns < first_ns:
        return None
    return last_ns - first_ns


class RebalanceSteps(_RebalanceTable):
    """The statistic ``rebalance_steps``: the steps of each member in each rebalance."""

    name = "rebalance_steps"
    about = "the steps of each rebalance, member by member"
    columns = (
        GROUP_COLUMN,
        GROUP_CLUSTER_COLUMN,
        GENERATION_COLUMN,
        MEMBER_COLUMN,
        CLIENT_ID_COLUMN,
        CLIENT_COLUMN,
        column(
            "step",
            "text",
            "notified (must join again), revoked (gave partitions back), joined, assigned, synced, "
            "fetched (the first time), left, expired (silent too long), status (coordinator reports a "
            "problem)",
        ),
        time_column("ns", "time of the step"),
        column("exchange", "int64", "number of the exchange", unit=EXCHANGE),
        column(
            "after_ns",
            "int64",
            "time since the member's previous step; for its first step, since the rebalance began",
        ),
        column("revoking", "int32", "partitions that the member must give back", rare=True),
        column("silent_ns", "int64", "how long an expired member was silent", rare=True),
        column(
            "config_offset",
            "int64",
            "for a Connect worker that joined: the offset up to which it has read the config topic",
            rare=True,
        ),
        column(
            "overlap",
            "int32",
            "connectors and tasks that the worker reports as running although another worker got them before",
            rare=True,
        ),
        column("detail", "text", "the reason in the request, or what the step is about"),
    )

    def _rows(self, each: Rebalance) -> Iterator[Row]:
        last: dict[str, int | None] = {}
        for step in sorted(
            each.steps, key=lambda step: (step.ns, step.exchange or 0, step.member, step.step)
        ):
            yield {
                "group": each.group.name,
                "cluster_id": each.group.cluster_id,
                "generation": each.generation,
                "member_id": step.member,
                "client_id": step.who.client_id if step.who is not None else None,
                "client": step.who.client if step.who is not None else None,
                "step": step.step,
                "ns": step.ns,
                "exchange": step.exchange,
                "after_ns": _between(last.get(step.member, each.begin_ns), step.ns),
                "revoking": step.revoking,
                "silent_ns": step.silent_ns,
                "config_offset": step.config_offset,
                "overlap": step.overlap,
                "detail": step.detail,
            }
            last[step.member] = step.ns


class Assignments(_RebalanceTable):
    """The statistic ``assignments``: the partitions of each member in each generation."""

    name = "assignments"
    about = "the partitions and tasks that each member kept, gained and lost in a rebalance"
    columns = (
        GROUP_COLUMN,
        GROUP_CLUSTER_COLUMN,
        GENERATION_COLUMN,
        MEMBER_COLUMN,
        column("topic", "text", "name (or id) of the topic; a connector, a subtopology"),
        PARTITION_COLUMN,
        column("change", "text", "kept, gained, lost; null if the previous assignment is unknown"),
        column("task", "text", "for Streams: active, standby, warmup; for Connect: task, connector"),
    )

    def _rows(self, each: Rebalance) -> Iterator[Row]:
        labels = self.basis.labels
        labels.resolve_names()
        for move in each.moves:
            yield {
                "group": each.group.name,
                "cluster_id": each.group.cluster_id,
                "generation": each.generation,
                "member_id": move.member,
                "topic": labels.name(labels.topic(None, move.topic)) if each.kind in _BY_ID else move.topic,
                "partition": move.partition,
                "change": move.change,
                "task": _task(each, move.partition) if move.task is None else move.task,
            }


_BY_ID = ("consumer", "share")
"""Groups whose heartbeats name topics by id."""


def _task(each: Rebalance, partition: int) -> str | None:
    if each.protocol_type != "connect":
        return None
    return "connector" if partition < 0 else "task"
