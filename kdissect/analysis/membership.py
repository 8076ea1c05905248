"""Members of groups and their generations: the data of the statistics of groups.

A member is its id within its group. Each exchange gives facts about a member and its stay in a generation:

* Classic groups: JoinGroup gives a member its generation, SyncGroup its assignment, Heartbeat and
  OffsetCommit name the generation, LeaveGroup ends it.
* Groups of KIP-848 (consumer), KIP-932 (share) and KIP-1071 (streams): a heartbeat's answer gives the member
  epoch, which takes the generation's place. A member leaves with a heartbeat of epoch -1; a static member
  that will come back, with -2. A null assignment means unchanged.

A static member may be removed by its instance id alone (KIP-345): the request has no member id then. It is
the member that last used that instance id. Without one, the instance id has its own row. A request about
a member makes its time in the group longer only if the member sent it itself. Requests of clients that commit
without being a member (generation -1, no member id) count for the member with the empty id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from kdissect.analysis.assignment import assigned_by_heartbeat, assigned_by_sync, content_of_join
from kdissect.analysis.clusters import Clusters, NameAt
from kdissect.analysis.fold import Fold, least, most
from kdissect.analysis.member import Member, MemberKey
from kdissect.analysis.rows import Rows, as_one
from kdissect.analysis.stays import Stay, waiting
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.session.conversation import Connection

HEARTBEATS = {
    "ConsumerGroupHeartbeat": "consumer",
    "ShareGroupHeartbeat": "share",
    "StreamsGroupHeartbeat": "streams",
}
"""The group type of each API."""
COMMITS = ("OffsetCommit", "TxnOffsetCommit")
LEAVES = {-1: "member epoch -1", -2: "member epoch -2"}


StayKey = tuple[NameAt, int, str]
"""Group, generation or member epoch, member."""


class Membership(Fold):
    """Members and stays; the statistics of groups are views of them."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self.latest.keep_clusters(Clusters(self.room))
        self._members: Rows[MemberKey, Member] = Rows(Member, self.room)
        self._stays: Rows[StayKey, Stay] = Rows(Stay, self.room)
        self._hidden: Rows[StayKey, Stay] = Rows(Stay, self.room)
        """Facts about stays from exchanges that do not count: when members joined, and when they got
        assignments."""
        self._unanswered: Rows[tuple[MemberKey, int], Stay] = Rows(Stay, self.room)
        """Members whose JoinGroup was never answered, each with the number of the exchange."""
        self._closed_ns: int | None = None
        """When the last connection ended."""
        self.ends: dict[int, int] = {}
        """When each connection ended."""

    def merge(self, later: Self) -> None:
        self._members.merge(later._members)
        self._stays.merge(later._stays)
        self._hidden.merge(later._hidden)
        self._unanswered.merge(later._unanswered)
        self.latest.merge(later.latest)
        self._closed_ns = most(self._closed_ns, later._closed_ns)
        for connection, end_ns in later.ends.items():
            self._end(connection, end_ns)

    @property
    def end_ns(self) -> int | None:
        """The latest time in the capture so far."""
        return most(self._closed_ns, self.latest.ns)

    @property
    def left_out(self) -> int:
        tables = (self._members, self._stays, self._hidden, self._unanswered)
        return sum(table.left_out for table in tables)

    def _exchange(self, exchange: Exchange) -> None:
        count = _COUNTED.get(exchange.api or "")
        if count is None or exchange.request is None:
            return
        request = exchange.request.body()
        if isinstance(request.get("groupId"), str):
            count(self, exchange, request)

    def _other(self, exchange: Exchange) -> None:
        if exchange.request is None or exchange.api not in ("JoinGroup", "SyncGroup"):
            return
        request, response = exchange.request.body(), _body(exchange)
        if not isinstance(request.get("groupId"), str):
            return
        if exchange.api == "JoinGroup":
            generation, member_id = response.get("generationId", -1), response.get("memberId")
            if _is_good(response) and generation >= 0:
                _join_times(self._hidden.row(self._stay_key(exchange, generation, member_id)), exchange)
        else:
            generation, member_id = request.get("generationId", -1), request.get("memberId")
            _sync_times(self._hidden.row(self._stay_key(exchange, generation, member_id)), exchange)

    def _connection(self, connection: Connection) -> None:
        self._closed_ns = most(self._closed_ns, connection.end_ns)
        self._end(connection.connection, connection.end_ns)

    def _end(self, connection: int, end_ns: int) -> None:
        if len(self.ends) < self.limits.rows:
            self.ends[connection] = end_ns

    def _member_key(self, exchange: Exchange, member_id: str | None, instance: str | None) -> MemberKey:
        member_id = member_id or ""
        return MemberKey(self._group(exchange), member_id, "" if member_id else instance or "")

    def _stay_key(self, exchange: Exchange, generation: int, member_id: str | None) -> StayKey:
        return self._group(exchange), generation, member_id or ""

    def _group(self, exchange: Exchange) -> NameAt:
        assert exchange.request is not None
        return self.latest.clusters.name_at(exchange, exchange.request.body()["groupId"])

    # -- data of the rows -------------------------------------------------------------------------------

    def _places(self) -> dict[NameAt, NameAt]:
        """For each group at a broker, the same group in its cluster."""
        found = {key.group for key in self._members}
        found |= {group for rows in (self._stays, self._hidden) for group, *_ in rows}
        found |= {key.group for key, _ in self._unanswered}
        return self.latest.clusters.apart(found)

    def members(self) -> dict[MemberKey, Member]:
        """The members, each once, by their keys. If several coordinators have facts about a member, the last
        one that it asked counts."""
        places = self._places()
        in_order = dict(sorted(self._members.items(), key=lambda each: each[1].whole_span.last_ns or 0))
        members = as_one(in_order, Member, lambda key: key._replace(group=places[key.group]))
        found: dict[MemberKey, Member] = {}
        holders: dict[tuple[NameAt, str], list[tuple[int, MemberKey]]] = {}
        for key, member in members.items():
            if key.member or not key.instance:
                found[key] = member
                if member.instance and member.requests.first_ns is not None:
                    holder = member.requests.first_ns, key
                    holders.setdefault((key.group, member.instance), []).append(holder)
        for key, member in members.items():
            if key in found:
                continue
            asked_ns = member.whole_span.first_ns or 0
            before = [each for each in holders.get((key.group, key.instance), ()) if each[0] <= asked_ns]
            if before:
                _, holder_key = max(before)
                whole = Member()
                whole.merge(found[holder_key])
                whole.merge(member)
                key, member = holder_key, whole
            found[key] = member
        return found

    def stays(self) -> dict[StayKey, Stay]:
        """The stays, with the joins that ended in each, even if the exchanges do not count."""
        places = self._places()
        hiding = as_one(self._hidden, Stay, lambda key: (places[key[0]], *key[1:]))
        found: dict[StayKey, Stay] = {}
        in_order = dict(sorted(self._stays.items(), key=lambda each: each[1].span.last_ns or 0))
        for key, stay in as_one(in_order, Stay, lambda key: (places[key[0]], *key[1:])).items():
            if stay.span.first_ns is None:
                continue  # it only asked for an assignment of a generation that it was never seen in
            hidden = hiding.get(key)
            if hidden is not None:
                whole = Stay()
                whole.merge(stay)
                whole.merge_times(hidden)
                stay = whole
            found[key] = stay
        return found

    def joining(self) -> dict[MemberKey, Stay]:
        """Members that asked to join and were not answered. A member does not count if others of its group
        were told a generation after it asked. Then it either has that generation too, or asked again."""
        places = self._places()
        joined: dict[NameAt, int | None] = {}
        for rows in (self._stays, self._hidden):
            for (group, *_), stay in rows.items():
                joined[places[group]] = most(joined.get(places[group]), stay.joined_ns)
        found: dict[MemberKey, Stay] = {}
        for (asked, _), stay in self._unanswered.items():
            key = asked._replace(group=places[asked.group])
            last = joined.get(key.group)
            if last is None or (stay.join_ns is not None and stay.join_ns > last):
                found.setdefault(key, Stay()).merge(stay)
        return found

    # -- classic groups -----------------------------------------------------------------------------

    def _join(self, exchange: Exchange, request: dict[str, Any]) -> None:
        response = _body(exchange)
        member_id = response.get("memberId") or request.get("memberId")
        member = self._member(exchange, request, member_id, request.get("groupInstanceId"))
        if member is not None:
            member.types.add("classic")
            member.joins += 1
            if exchange.request is not None and not exchange.request.is_cut:
                member.offers = {each["name"] for each in request.get("protocols") or () if each.get("name")}
                member.subscribed = _named(content_of_join(request).topics)
            member.session_ms = request.get("sessionTimeoutMs", member.session_ms)
            member.rebalance_ms = request.get("rebalanceTimeoutMs", member.rebalance_ms)
        waits = waiting(exchange)
        if waits is not None:
            key = self._member_key(exchange, member_id, request.get("groupInstanceId"))
            unanswered = self._unanswered.row((key, exchange.number))
            if unanswered is not None:
                unanswered.merge(
                    Stay({"classic"}, waits.ns, waits=waits, reason=request.get("reason") or None)
                )
        if _is_good(response) and response.get("generationId", -1) >= 0:
            stay = self._stay(exchange, request, response["generationId"], member_id, "classic")
            _join_times(stay, exchange)
            if stay is not None:
                stay.protocol = response.get("protocolName") or stay.protocol
                stay.leader = response.get("leader") == response.get("memberId")
                stay.reason = request.get("reason") or stay.reason

    def _sync(self, exchange: Exchange, request: dict[str, Any]) -> None:
        member = self._member(exchange, request, request.get("memberId"), request.get("groupInstanceId"))
        if member is not None:
            member.types.add("classic")
        response, generation = _body(exchange), request.get("generationId", -1)
        if not _is_good(response):
            _sync_times(
                self._stays.row(self._stay_key(exchange, generation, request.get("memberId"))),
                exchange,
            )
            return
        stay = self._stay(exchange, request, generation, request.get("memberId"), "classic")
        _sync_times(stay, exchange)
        if stay is not None:
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
                stay.beat(exchange.ended_ns)

    def _leave(self, exchange: Exchange, request: dict[str, Any]) -> None:
        members = request.get("members")
        if members is None:
            members = [{"memberId": request.get("memberId")}]
        answers = _body(exchange).get("members") or []
        for at, each in enumerate(members):
            answer = answers[at] if at < len(answers) else _body(exchange)
            own = {**answer, "errorCode": answer.get("errorCode") or _body(exchange).get("errorCode")}
            member = self._members.row(
                self._member_key(exchange, each.get("memberId"), each.get("groupInstanceId"))
            )
            if member is not None:
                asked_ns = exchange.messages[0].frame.last_ns
                member.types.add("classic")
                member.instance = each.get("groupInstanceId") or member.instance
                if own["errorCode"]:
                    member.errors.add(exchange.class_of(own["errorCode"]))
                    member.refused.add(asked_ns, exchange.number)
                    continue
                member.leaving.add(asked_ns, exchange.number)
                member.left_by = exchange.client, exchange.client_id
                member.left, member.left_ns = "LeaveGroup", asked_ns
                member.leave_reason = each.get("reason") or None

    # -- groups with heartbeats only ----------------------------------------------------------------

    def _group_heartbeat(self, exchange: Exchange, request: dict[str, Any]) -> None:
        response, kind = _body(exchange), HEARTBEATS[exchange.api or ""]
        member_id = request.get("memberId") or response.get("memberId")
        member = self._member(exchange, request, member_id, request.get("instanceId"))
        epoch = request.get("memberEpoch", 0)
        if member is not None:
            member.types.add(kind)
            member.heartbeats += 1
            member.joins += epoch == 0
            member.subscribed = _named(request.get("subscribedTopicNames")) or member.subscribed
            if request.get("rebalanceTimeoutMs", -1) > 0:
                member.rebalance_ms = request["rebalanceTimeoutMs"]
            if epoch in LEAVES:
                member.left, member.left_ns = LEAVES[epoch], exchange.messages[0].frame.last_ns
                member.leave_reason = None
        if _is_good(response) and response.get("memberEpoch", -1) >= 0:
            stay = self._stay(exchange, request, response["memberEpoch"], member_id, kind)
            if stay is not None:
                stay.beat(exchange.ended_ns)
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
        self, exchange: Exchange, request: dict[str, Any], member_id: str | None, instance: str | None
    ) -> Member | None:
        """The member's row, updated with the facts in each of its own requests."""
        member = self._members.row(self._member_key(exchange, member_id, instance))
        if member is None:
            return None
        member.requests.add(exchange.messages[0].frame.last_ns, exchange.number)
        member.instance = instance if instance is not None else member.instance
        if exchange.api != "TxnOffsetCommit" or not member_id:  # which the producer sends for it (KIP-447)
            member.client, member.client_id = exchange.client, exchange.client_id
        member.errors.add_codes(exchange)
        return member

    def _stay(
        self, exchange: Exchange, request: dict[str, Any], generation: int, member_id: str | None, kind: str
    ) -> Stay | None:
        stay = self._stays.row(self._stay_key(exchange, generation, member_id))
        if stay is not None:
            stay.types.add(kind)
            stay.span.add(exchange.ended_ns, exchange.number)
        return stay


def _body(exchange: Exchange) -> dict[str, Any]:
    return exchange.response.body() if exchange.response is not None else {}


def _named(topics: Iterable[str | None] | None) -> set[str]:
    """Names of topics, without the nulls that a damaged message may contain."""
    return {each for each in topics or () if each is not None}


def _is_good(response: dict[str, Any]) -> bool:
    """Whether there is a response without an error."""
    return response.get("errorCode") == 0


def _join_times(stay: Stay | None, exchange: Exchange) -> None:
    """The times of a JoinGroup that was answered with the generation."""
    assert exchange.request is not None
    if stay is not None:
        stay.join_ns = least(stay.join_ns, exchange.request.frame.last_ns)
        stay.joined_ns = most(stay.joined_ns, exchange.ended_ns)
        stay.asked_ns = most(stay.asked_ns, stay.joined_ns)


def _sync_times(stay: Stay | None, exchange: Exchange) -> None:
    """The times of a SyncGroup, whatever its result."""
    if stay is None:
        return
    if _is_good(_body(exchange)):
        stay.sync_ns = least(stay.sync_ns, exchange.ended_ns)
        return
    waits = waiting(exchange)
    if waits is not None:
        stay.merge_times(Stay(waits=waits))
    elif exchange.response is None or exchange.missing is not None:
        stay.is_lost = True
    stay.asked_ns = most(stay.asked_ns, exchange.ended_ns)


_COUNTED: dict[str, Callable[[Membership, Exchange, dict[str, Any]], None]] = {
    **dict.fromkeys(HEARTBEATS, Membership._group_heartbeat),
    "JoinGroup": Membership._join,
    "SyncGroup": Membership._sync,
    "Heartbeat": Membership._heartbeat,
    **dict.fromkeys(COMMITS, Membership._commit),
    "LeaveGroup": Membership._leave,
}
"""The function that counts each API's exchanges."""
Membership.apis = frozenset((*_COUNTED, "JoinGroup", "SyncGroup"))
