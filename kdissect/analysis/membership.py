"""Members of groups and their generations: what the statistics of groups are made of.

Of every member (its id, within its group) and of every stay of a member in a generation, the exchanges
tell, each for itself:

* Classic groups: JoinGroup gives a member its generation, SyncGroup its assignment, Heartbeat and
  OffsetCommit name the generation, LeaveGroup ends it.
* Groups of KIP-848 (consumer), KIP-932 (share) and KIP-1071 (streams): a heartbeat's answer gives the
  member epoch, which takes the generation's place; a heartbeat with epoch -1, or -2 for a static member
  that will come back, leaves. An assignment that is null is unchanged.

A member that is removed by its instance id alone has no member id in the request: it has a row of its own.
Requests of clients that commit without being a member (generation -1, no member id) count for the member
with the empty id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from kdissect.analysis.assigned import assigned_by_heartbeat, assigned_by_sync
from kdissect.analysis.fold import Rows, Span, Statistic, least, told_ns
from kdissect.analysis.grades import Grades
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits

HEARTBEATS = {
    "ConsumerGroupHeartbeat": "consumer",
    "ShareGroupHeartbeat": "share",
    "StreamsGroupHeartbeat": "streams",
}
"""API: the group's type."""
COMMITS = ("OffsetCommit", "TxnOffsetCommit")
LEAVES = {-1: "member epoch -1", -2: "member epoch -2"}


class MemberKey(NamedTuple):
    """Who a member is."""

    group: str
    member: str
    instance: str
    """Only where the member id is not given."""


@dataclass(slots=True)
class Member:
    """What a member did."""

    types: set[str] = field(default_factory=set)
    client_id: str | None = None
    client: str | None = None
    instance: str | None = None
    joins: int = 0
    heartbeats: int = 0
    commits: int = 0
    committed_partitions: int = 0
    left: str | None = None
    leave_reason: str | None = None
    left_ns: int | None = None
    errors: Grades = field(default_factory=Grades)
    span: Span = field(default_factory=Span)

    def merge(self, later: Member) -> None:
        """Add what it did later."""
        self.types |= later.types
        for name in ("client_id", "client", "instance"):
            if getattr(later, name) is not None:
                setattr(self, name, getattr(later, name))
        self.joins += later.joins
        self.heartbeats += later.heartbeats
        self.commits += later.commits
        self.committed_partitions += later.committed_partitions
        if later.left is not None:
            self.left, self.leave_reason, self.left_ns = later.left, later.leave_reason, later.left_ns
        self.errors.merge(later.errors)
        self.span.merge(later.span)


@dataclass(slots=True)
class Stay:
    """A member in one generation, or at one member epoch."""

    types: set[str] = field(default_factory=set)
    join_ns: int | None = None
    """When the first JoinGroup request that was answered with this generation was complete."""
    sync_ns: int | None = None
    """When the first SyncGroup response for it was complete."""
    protocol: str | None = None
    leader: bool | None = None
    reason: str | None = None
    assigned: int | None = None
    heartbeats: int = 0
    span: Span = field(default_factory=Span)

    @property
    def duration_ns(self) -> int | None:
        """From the JoinGroup request to the SyncGroup response; None where one was not captured."""
        if self.join_ns is None or self.sync_ns is None or self.sync_ns < self.join_ns:
            return None
        return self.sync_ns - self.join_ns

    def merge(self, later: Stay) -> None:
        """Add what was told of it later."""
        self.types |= later.types
        self.join_ns = least(self.join_ns, later.join_ns)
        self.sync_ns = least(self.sync_ns, later.sync_ns)
        for name in ("protocol", "leader", "reason", "assigned"):
            if getattr(later, name) is not None:
                setattr(self, name, getattr(later, name))
        self.heartbeats += later.heartbeats
        self.span.merge(later.span)


StayKey = tuple[str, int, str]
"""Group, generation or member epoch, member."""


class Membership(Statistic):
    """Members and stays; the statistics of groups make their rows of them."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._members: Rows[MemberKey, Member] = Rows(Member, limits.rows)
        self._stays: Rows[StayKey, Stay] = Rows(Stay, limits.rows)

    def merge(self, later: Self) -> None:
        self._members.merge(later._members)
        self._stays.merge(later._stays)

    @property
    def left_out(self) -> int:
        return self._members.left_out + self._stays.left_out

    def _exchange(self, exchange: Exchange) -> None:
        api = exchange.api or ""
        if exchange.request is None:
            return
        request = exchange.request.body()
        if not isinstance(request.get("groupId"), str):
            return
        if api in HEARTBEATS:
            self._group_heartbeat(exchange, request, HEARTBEATS[api])
        elif api == "JoinGroup":
            self._join(exchange, request)
        elif api == "SyncGroup":
            self._sync(exchange, request)
        elif api == "Heartbeat":
            self._heartbeat(exchange, request)
        elif api in COMMITS:
            self._commit(exchange, request)
        elif api == "LeaveGroup":
            self._leave(exchange, request)

    # -- classic groups -----------------------------------------------------------------------------

    def _join(self, exchange: Exchange, request: dict[str, Any]) -> None:
        response = _body(exchange)
        member_id = response.get("memberId") or request.get("memberId")
        member = self._member(exchange, request, member_id, request.get("groupInstanceId"))
        if member is not None:
            member.types.add("classic")
            member.joins += 1
        if _is_good(response) and response.get("generationId", -1) >= 0:
            stay = self._stay(exchange, request, response["generationId"], member_id, "classic")
            assert exchange.request is not None
            if stay is not None:
                stay.join_ns = least(stay.join_ns, exchange.request.frame.last_ns)
                stay.protocol = response.get("protocolName") or stay.protocol
                stay.leader = response.get("leader") == response.get("memberId")
                stay.reason = request.get("reason") or stay.reason

    def _sync(self, exchange: Exchange, request: dict[str, Any]) -> None:
        member = self._member(exchange, request, request.get("memberId"), request.get("groupInstanceId"))
        if member is not None:
            member.types.add("classic")
        response = _body(exchange)
        if not _is_good(response):
            return
        stay = self._stay(
            exchange, request, request.get("generationId", -1), request.get("memberId"), "classic"
        )
        if stay is not None:
            stay.sync_ns = least(stay.sync_ns, told_ns(exchange))
            stay.protocol = response.get("protocolName") or stay.protocol
            assigned = assigned_by_sync(request, response)
            stay.assigned = assigned if assigned is not None else stay.assigned

    def _heartbeat(self, exchange: Exchange, request: dict[str, Any]) -> None:
        member = self._member(exchange, request, request.get("memberId"), request.get("groupInstanceId"))
        if member is not None:
            member.types.add("classic")
            member.heartbeats += 1
        if _is_good(_body(exchange)) and request.get("generationId", -1) >= 0:
            stay = self._stay(exchange, request, request["generationId"], request.get("memberId"), "classic")
            if stay is not None:
                stay.heartbeats += 1

    def _leave(self, exchange: Exchange, request: dict[str, Any]) -> None:
        members = request.get("members")
        if members is None:
            members = [{"memberId": request.get("memberId")}]
        answers = _body(exchange).get("members") or []
        for at, each in enumerate(members):
            answer = answers[at] if at < len(answers) else _body(exchange)
            own = {**answer, "errorCode": answer.get("errorCode") or _body(exchange).get("errorCode")}
            member = self._member(
                exchange, request, each.get("memberId"), each.get("groupInstanceId"), own.get("errorCode")
            )
            if member is not None:
                member.types.add("classic")
                if not own["errorCode"]:
                    member.left, member.left_ns = "LeaveGroup", exchange.messages[0].frame.last_ns
                    member.leave_reason = each.get("reason") or None

    # -- groups with heartbeats only ----------------------------------------------------------------

    def _group_heartbeat(self, exchange: Exchange, request: dict[str, Any], kind: str) -> None:
        response = _body(exchange)
        member_id = request.get("memberId") or response.get("memberId")
        member = self._member(exchange, request, member_id, request.get("instanceId"))
        epoch = request.get("memberEpoch", 0)
        if member is not None:
            member.types.add(kind)
            member.heartbeats += 1
            member.joins += epoch == 0
            if epoch in LEAVES:
                member.left, member.left_ns = LEAVES[epoch], exchange.messages[0].frame.last_ns
                member.leave_reason = None
        if _is_good(response) and response.get("memberEpoch", -1) >= 0:
            stay = self._stay(exchange, request, response["memberEpoch"], member_id, kind)
            if stay is not None:
                stay.heartbeats += 1
                stay.protocol = request.get("serverAssignor") or stay.protocol
                assigned = assigned_by_heartbeat(response)
                stay.assigned = assigned if assigned is not None else stay.assigned

    # -- both ---------------------------------------------------------------------------------------

    def _commit(self, exchange: Exchange, request: dict[str, Any]) -> None:
        member = self._member(exchange, request, request.get("memberId"), request.get("groupInstanceId"))
        if member is not None:
            member.commits += 1
            member.committed_partitions += sum(
                len(topic.get("partitions") or ()) for topic in request.get("topics") or ()
            )

    def _member(
        self,
        exchange: Exchange,
        request: dict[str, Any],
        member_id: str | None,
        instance: str | None,
        error: int | None = None,
    ) -> Member | None:
        """The member's row, with what every exchange tells of it. ``error`` is its own error code, where
        one exchange is about several members."""
        member_id = member_id or ""
        key = MemberKey(request["groupId"], member_id, "" if member_id else instance or "")
        member = self._members.row(key)
        if member is None:
            return None
        member.span.add(exchange.messages[0].frame.last_ns, exchange.number)
        member.instance = instance if instance is not None else member.instance
        if exchange.api != "LeaveGroup":
            member.client, member.client_id = exchange.client, exchange.client_id
            member.errors.add_codes(exchange)
        else:  # perhaps on behalf of the member, by an administrator
            member.errors.add(exchange.class_of(error) if error else None)
        return member

    def _stay(
        self, exchange: Exchange, request: dict[str, Any], generation: int, member_id: str | None, kind: str
    ) -> Stay | None:
        stay = self._stays.row((request["groupId"], generation, member_id or ""))
        if stay is not None:
            stay.types.add(kind)
            stay.span.add(told_ns(exchange), exchange.number)
        return stay


def _body(exchange: Exchange) -> dict[str, Any]:
    return exchange.response.body() if exchange.response is not None else {}


def _is_good(response: dict[str, Any]) -> bool:
    """Whether there is a response, and it tells of no error."""
    return response.get("errorCode") == 0
