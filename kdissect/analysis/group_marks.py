"""The facts that each exchange of a group tells by itself, as small tuples by time.

Nothing is concluded here. The triggers and the course of rebalances are computed when rows are asked for
(:mod:`kdissect.analysis.classic_rebalances`, :mod:`kdissect.analysis.epoch_rebalances`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from kdissect.analysis.assignment import Held, blob_in, content_of_join, held_of
from kdissect.analysis.packed import packed
from kdissect.analysis.stays import WAITED
from kdissect.embedded.decoded import Context, Embedded
from kdissect.embedded.fields import decode_field
from kdissect.exchange import Exchange


class Who(NamedTuple):
    """The sender of a request."""

    client: str
    client_id: str | None
    connection: int


class Join(NamedTuple):
    """A JoinGroup request and its answer."""

    ns: int
    number: int
    counts: bool
    who: Who
    answered_ns: int | None
    """When it was answered; None without an answer in the capture."""
    error: int | None
    is_lost: bool
    """Whether there may have been an answer that was not captured."""
    version: int
    requested_member: str
    """The member id in the request."""
    instance: str | None
    member: str
    """The member id in the answer, else in the request."""
    generation: int
    leader: str
    protocol: str | None
    kind: str
    """The protocol type."""
    reason: str | None
    session_ms: int | None
    rebalance_ms: int | None
    topics: tuple[str, ...] | None
    owned: Held | None
    roster: tuple[tuple[str, str | None], ...]
    """Member and instance ids of all members, which the leader's answer lists."""
    routine: bool
    worker: str | None
    """The URL by which workers of Connect know each other."""
    config_offset: int | None
    """The offset up to which a worker of Connect has read the topic with its configurations."""


ASSIGNOR_ERRORS = {
    1: "INCOMPLETE_SOURCE_TOPIC_METADATA",
    3: "ASSIGNMENT_ERROR",
    4: "SHUTDOWN_REQUESTED",
}
"""Errors of the assignor of Streams (``AssignorError``) that make the threads of the application stop."""


class Sync(NamedTuple):
    """A SyncGroup request and its answer."""

    ns: int
    number: int
    counts: bool
    who: Who
    answered_ns: int | None
    error: int | None
    is_lost: bool
    member: str
    instance: str | None
    generation: int
    protocol: str | None
    assignment: Held | None
    assigned: tuple[tuple[str, Held | None], ...]
    """The leader's assignment for each member."""
    delay_ms: int | None
    """How long Connect leaves tasks idle on purpose (KIP-415)."""
    routine: bool
    failed: str | None
    """Why the assignor of Streams gives no tasks."""


class Leave(NamedTuple):
    """A member that a LeaveGroup removes. A refused LeaveGroup is no mark."""

    ns: int
    number: int
    counts: bool
    who: Who
    answered_ns: int | None
    member: str
    instance: str | None
    reason: str | None


class Beat(NamedTuple):
    """A heartbeat of a newer group (KIP-848 and later) with news."""

    ns: int
    number: int
    counts: bool
    who: Who
    kind: str
    answered_ns: int | None
    error: int | None
    member: str
    instance: str | None
    requested_epoch: int
    epoch: int | None
    owned: Held | None
    assignment: Held | None
    tasks: tuple[tuple[str, Held], ...] | None
    """The standby and warmup tasks that Streams assigns beside active ones."""
    topics: tuple[str, ...] | None
    rebalance_ms: int | None
    interval_ms: int | None
    assignor: str | None
    status: tuple[int, ...]
    """Status codes of Streams."""


Mark = Join | Sync | Leave | Beat


@packed
@dataclass(slots=True)
class RepeatedMark:
    """A mark that was repeated many times."""

    first_ns: int
    last_ns: int
    first: int
    """The first exchange."""
    last: int
    count: int
    counts: bool
    who: Who
    """The sender of the last one."""

    def merge(self, later: RepeatedMark) -> None:
        """Add later marks."""
        self.first_ns, self.first = min((self.first_ns, self.first), (later.first_ns, later.first))
        if (later.last_ns, later.last) >= (self.last_ns, self.last):
            self.last_ns, self.last, self.who = later.last_ns, later.last, later.who
        self.count += later.count
        self.counts |= later.counts


def sender_of(exchange: Exchange) -> Who:
    """The sender of the request of an exchange."""
    return Who(exchange.client, exchange.client_id, exchange.connection)


def answer_of(exchange: Exchange) -> tuple[int | None, int | None, bool]:
    """When the exchange was answered, with which error, and whether an answer may have been lost."""
    if exchange.response is None:
        return None, None, exchange.missing not in WAITED
    return exchange.response.frame.last_ns, exchange.response.body().get("errorCode"), False


def join_of(exchange: Exchange, request: dict[str, Any], counts: bool) -> Join:
    """The mark of a JoinGroup."""
    assert exchange.request is not None
    response = exchange.response.body() if exchange.response is not None else {}
    told_ns, error, is_lost = answer_of(exchange)
    told = content_of_join(request)
    is_cut = exchange.response is not None and exchange.response.is_cut  # then members may be absent
    return Join(
        exchange.request.frame.last_ns,
        exchange.number,
        counts,
        sender_of(exchange),
        told_ns,
        error,
        is_lost,
        exchange.api_version or 0,
        request.get("memberId") or "",
        request.get("groupInstanceId"),
        response.get("memberId") or request.get("memberId") or "",
        response.get("generationId", -1) if not error else -1,
        response.get("leader") or "",
        response.get("protocolName"),
        response.get("protocolType") or request.get("protocolType") or "",
        request.get("reason") or None,
        request.get("sessionTimeoutMs"),
        request.get("rebalanceTimeoutMs"),
        tuple(told.topics) if told.topics is not None else None,
        told.owned,
        tuple(
            (each.get("memberId") or "", each.get("groupInstanceId"))
            for each in (() if is_cut else response.get("members") or ())
        ),
        bool(error) and error in exchange.routine,
        told.worker,
        told.config_offset,
    )


def sync_of(exchange: Exchange, request: dict[str, Any], counts: bool) -> Sync:
    """The mark of a SyncGroup."""
    assert exchange.request is not None
    response = exchange.response.body() if exchange.response is not None else {}
    told_ns, error, is_lost = answer_of(exchange)
    given, delay, failed = _assignment("SyncGroupResponse", [response], response, Context(request))
    assigned = []
    for each in () if exchange.request.is_cut else request.get("assignments") or ():
        theirs, late, _ = _assignment("SyncGroupRequest", [request, each], each, Context())
        assigned.append((each.get("memberId") or "", theirs))
        delay = late if delay is None else delay
    return Sync(
        exchange.request.frame.last_ns,
        exchange.number,
        counts,
        sender_of(exchange),
        told_ns,
        error,
        is_lost,
        request.get("memberId") or "",
        request.get("groupInstanceId"),
        request.get("generationId", -1),
        response.get("protocolName") or request.get("protocolName"),
        given,
        tuple(assigned),
        delay,
        bool(error) and error in exchange.routine,
        failed,
    )


def _assignment(
    message: str, ancestors: list[dict[str, Any]], values: dict[str, Any], context: Context
) -> tuple[Held | None, int | None, str | None]:
    """The assignment, Connect's delay, and the error of Streams' assignor; None where the form is unknown."""
    found = blob_in(message, ancestors, "assignment", context)
    if not isinstance(found, Embedded) or found.struct is None or found.faults:
        return (() if values.get("assignment") == b"" else None), None, None
    if "assignedPartitions" in found.values:
        failed = None
        if context.request is not None and context.request.get("protocolName") == "stream":
            own = decode_field(
                found.name, [found.values], "userData", found.values.get("userData"), found.context
            )
            if isinstance(own, Embedded) and own.struct is not None and not own.faults:
                failed = ASSIGNOR_ERRORS.get(own.values.get("errCode", 0))
        return held_of(found.values["assignedPartitions"], "topic"), None, failed
    delay = found.values.get("delay")
    return held_of(found.values.get("assignment"), "connector", "tasks"), delay, None


def leaves_of(exchange: Exchange, request: dict[str, Any], counts: bool) -> Iterator[Leave]:
    """The members that a LeaveGroup removes."""
    assert exchange.request is not None
    response = exchange.response.body() if exchange.response is not None else {}
    told_ns, error, _ = answer_of(exchange)
    members = request.get("members")
    if members is None:
        members = [{"memberId": request.get("memberId")}]
    answers = response.get("members") or []
    for at, each in enumerate(members):
        if error or (at < len(answers) and answers[at].get("errorCode")):
            continue
        yield Leave(
            exchange.request.frame.last_ns,
            exchange.number,
            counts,
            sender_of(exchange),
            told_ns,
            each.get("memberId") or "",
            each.get("groupInstanceId"),
            each.get("reason") or None,
        )


def beat_of(exchange: Exchange, request: dict[str, Any], kind: str, counts: bool) -> Beat:
    """The mark of a newer group's heartbeat."""
    assert exchange.request is not None
    response = exchange.response.body() if exchange.response is not None else {}
    told_ns, error, _ = answer_of(exchange)
    if kind == "streams":
        owned = held_of(request.get("activeTasks"), "subtopologyId")
        given = held_of(response.get("activeTasks"), "subtopologyId")
        tasks = tuple(
            (name, held)
            for name in ("standby", "warmup")
            if (held := held_of(response.get(f"{name}Tasks"), "subtopologyId")) is not None
        )
    else:
        owned = held_of(request.get("topicPartitions"), "topicId")
        assignment = response.get("assignment")
        given = None if assignment is None else held_of(assignment.get("topicPartitions"), "topicId")
        tasks = ()
    topics = request.get("subscribedTopicNames")
    return Beat(
        exchange.request.frame.last_ns,
        exchange.number,
        counts,
        sender_of(exchange),
        kind,
        told_ns,
        error,
        request.get("memberId") or response.get("memberId") or "",
        request.get("instanceId"),
        request.get("memberEpoch", 0),
        response.get("memberEpoch") if error == 0 else None,
        owned,
        given,
        tasks,
        tuple(topics) if topics is not None else None,
        _positive(request.get("rebalanceTimeoutMs")),
        _positive(response.get("heartbeatIntervalMs")),
        request.get("serverAssignor"),
        tuple(each.get("statusCode", 0) for each in response.get("status") or ()),
    )


def _positive(value: int | None) -> int | None:
    return value if value is not None and value > 0 else None


def places(held: Held) -> Iterator[tuple[str, int]]:
    """The partitions, one by one."""
    return ((topic, partition) for topic, partitions in held for partition in partitions)
