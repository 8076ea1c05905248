"""Share groups (KIP-932): the records that members acquired, their acknowledgements, and redeliveries.

A ShareFetch answer gives the offsets that a member acquired, with their delivery counts. The member's later
ShareFetch and ShareAcknowledge requests acknowledge them: accepted, released, rejected, renewed (KIP-1222),
or a gap, where no record is. If offsets are acquired again after the time of the lock, without an
acknowledgement, the lock has expired. If the connection of the member ended first, the broker has freed them
(``ShareSessionCache``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from kdissect.analysis.clusters import Clusters, NameAt
from kdissect.analysis.counters import Span
from kdissect.analysis.declared import (
    GROUP_CLUSTER_COLUMN,
    GROUP_COLUMN,
    PARTITION_COLUMN,
    TOPIC_COLUMN,
    column,
    first_and_last,
)
from kdissect.analysis.fold import MILLISECOND, SECOND, Row, Statistic, most
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.packed import packed
from kdissect.analysis.timelines import Mark, Timelines
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.session.conversation import Connection

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""Types of acknowledgements."""
ACKNOWLEDGEMENT_WORDS = {
    ACCEPT: "accepted",
    RELEASE: "released",
    REJECT: "rejected",
    RENEW: "renewed",
    GAP: "gaps",
}
FINAL_EPOCH = -1
"""A share session ends: its member's records are free again."""
GIVEN_UP_NS = SECOND
"""If the group does not get a released record again for this long, though it fetched on, the record is given
up."""
MOST_SESSIONS = 10_000
"""The most partitions of one connection that are kept."""
MOST_OFFSETS = 1 << 31
MOST_TIMED = 1_000
"""The most records of one acknowledgement whose times are counted one by one."""


class GroupPartition(NamedTuple):
    """A partition of a group."""

    group: NameAt
    topic: Topic
    partition: int


class Acquired(NamedTuple):
    """Offsets that a member acquired."""

    ns: int
    number: int
    counts: bool
    member: str
    first: int
    last: int
    deliveries: int
    lock_ms: int | None


class OffsetsSaid(NamedTuple):
    """A member's acknowledgement of offsets."""

    ns: int
    number: int
    counts: bool
    member: str
    first: int
    last: int
    kind: int
    error: int


class Closed(NamedTuple):
    """A share session that its member ends, or that ends with its connection."""

    ns: int
    number: int
    member: str


class _Lock(NamedTuple):
    """Offsets that a member holds."""

    first: int
    last: int
    member: str
    ns: int
    deliveries: int
    lock_ms: int | None


@packed
@dataclass(slots=True)
class _MemberShare:
    """A member's counts for a partition."""

    acquired: int = 0
    redelivered: int = 0
    expired: int = 0
    given_up: int = 0
    max_deliveries: int | None = None
    lock_ms: int | None = None
    said: dict[str, int] = field(default_factory=dict)
    hold: Histogram = field(default_factory=Histogram)
    errors: int = 0
    span: Span = field(default_factory=Span)
    counts: bool = False


class Share(Statistic):
    """The statistic ``share``: a row for each member and partition of a share group."""

    apis = frozenset(("ShareFetch", "ShareAcknowledge"))
    name = "share"
    about = "share groups (KIP-932): records that each member acquired, accepted, released, or got again"
    columns = (
        GROUP_COLUMN,
        GROUP_CLUSTER_COLUMN,
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        column("member_id", "text", "the member"),
        column("client_id", "text", "the name its client gives itself"),
        column(
            "acquired", "int64", "records that it got; a record that it got again counts again", kept=True
        ),
        column("accepted", "int64", "records that it accepted"),
        column("released", "int64", "records that it gave back"),
        column("rejected", "int64", "records that it rejected for good", rare=True),
        column("renewed", "int64", "records whose lock it renewed (KIP-1222)", rare=True),
        column("expired", "int64", "records whose lock expired, so that a member got them again", rare=True),
        column("redelivered", "int64", "acquired records that had been delivered before"),
        column("max_delivery_count", "int16", "the highest delivery count in its responses"),
        column(
            "given_up",
            "int64",
            "records that it did not accept at the partition's highest delivery count, and that nobody "
            "got again",
            rare=True,
        ),
        column("lock_ms", "int32", "how long a record stays locked for the member that acquired it"),
        column("hold_p50_ns", "int64", "median time from acquiring a record to its acknowledgement"),
        column("hold_p99_ns", "int64", "99th percentile of that time"),
        column("hold_max_ns", "int64", "the longest such time"),
        column("gaps", "int64", "offsets that the member acknowledged as having no record", rare=True),
        column("errors", "int64", "acknowledgements that the broker refused", rare=True),
        *first_and_last("exchange"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self.latest.keep_clusters(Clusters(self.room))
        self._lines: Timelines[GroupPartition] = Timelines(self.room)
        self._closed: Timelines[NameAt] = Timelines(self.room)
        self._labels = Labels(self.latest, limits)
        self._fetched: dict[NameAt, int] = {}
        """When the last ShareFetch of each group was answered."""
        self._clients: dict[str, str | None] = {}
        self._sessions: dict[int, dict[tuple[GroupPartition, str], int]] = {}
        """The partitions whose records came over each connection, and their members, with the number of the
        last exchange."""
        self._ended: dict[int, int] = {}
        """When connections ended."""

    def _exchange(self, exchange: Exchange) -> None:
        self._take(exchange, True)

    def _other(self, exchange: Exchange) -> None:
        self._take(exchange, False)

    def _take(self, exchange: Exchange, counts: bool) -> None:
        if exchange.request is None or exchange.api not in ("ShareFetch", "ShareAcknowledge"):
            return
        request = exchange.request.body()
        name, member = request.get("groupId"), request.get("memberId")
        if not name or not member:
            return
        group = self.latest.clusters.name_at(exchange, name)
        response = exchange.response.body() if exchange.response is not None else {}
        if len(self._clients) < self.limits.rows:
            self._clients[member] = exchange.client_id
        self._take_acknowledgements(exchange, group, request, response, counts)
        if exchange.response is None or exchange.api != "ShareFetch":
            return
        told_ns, lock_ms = exchange.response.frame.last_ns, response.get("acquisitionLockTimeoutMs") or None
        if group in self._fetched or len(self._fetched) < self.limits.rows:
            self._fetched[group] = max(told_ns, self._fetched.get(group, told_ns))
        for place, each in self._partitions(group, response.get("responses")):
            for some in each.get("acquiredRecords") or ():
                first, last = some.get("firstOffset", 0), some.get("lastOffset", -1)
                if last >= first:
                    deliveries = some.get("deliveryCount", 0)
                    at = (told_ns, exchange.number, counts, member, first, last)
                    self._note_session(exchange, place, member)
                    self._lines.add(place, Acquired(*at, deliveries, lock_ms))

    def _take_acknowledgements(
        self,
        exchange: Exchange,
        group: NameAt,
        request: dict[str, Any],
        response: dict[str, Any],
        counts: bool,
    ) -> None:
        assert exchange.request is not None
        member = request["memberId"]
        ns, number = exchange.request.frame.last_ns, exchange.number
        name = "acknowledgeErrorCode" if exchange.api == "ShareFetch" else "errorCode"
        refused = {
            place: each.get(name) or 0 for place, each in self._partitions(group, response.get("responses"))
        }
        whole = response.get("errorCode") or 0
        for place, each in self._partitions(group, request.get("topics")):
            for batch in each.get("acknowledgementBatches") or ():
                for first, last, kind in _kinds(batch):
                    error = whole or refused.get(place, 0)
                    said = OffsetsSaid(ns, number, counts, member, first, last, kind, error)
                    self._lines.add(place, said)
        if request.get("shareSessionEpoch") == FINAL_EPOCH:
            self._closed.add(group, Closed(ns, number, member))

    def _partitions(
        self, group: NameAt, topics: list[dict[str, Any]] | None
    ) -> Iterator[tuple[GroupPartition, dict[str, Any]]]:
        for topic in topics or ():
            named = self._labels.topic(None, topic.get("topicId"))
            for each in topic.get("partitions") or ():
                yield GroupPartition(group, named, each.get("partitionIndex", -1)), each

    def _note_session(self, exchange: Exchange, place: GroupPartition, member: str) -> None:
        if exchange.connection in self._sessions or len(self._sessions) < self.limits.rows:
            sessions = self._sessions.setdefault(exchange.connection, {})
            if (place, member) in sessions or len(sessions) < MOST_SESSIONS:
                sessions[place, member] = exchange.number

    def _connection(self, connection: Connection) -> None:
        if connection.end in ("fin", "rst") and len(self._ended) < self.limits.rows:
            self._ended[connection.connection] = connection.end_ns

    def _freed(self, groups: dict[NameAt, NameAt]) -> dict[GroupPartition, list[Mark]]:
        """The sessions of each partition that ended with their connections."""
        freed: dict[GroupPartition, list[Mark]] = {}
        for connection, sessions in self._sessions.items():
            ns = self._ended.get(connection)
            if ns is not None:
                for (place, member), number in sessions.items():
                    named = place._replace(group=groups[place.group])
                    freed.setdefault(named, []).append(Closed(ns, number, member))
        return freed

    def merge(self, later: Self) -> None:
        for connection, sessions in later._sessions.items():
            if connection in self._sessions or len(self._sessions) < self.limits.rows:
                self._sessions.setdefault(connection, {}).update(sessions)
        for connection, ns in later._ended.items():
            if len(self._ended) < self.limits.rows:
                self._ended[connection] = ns
        self._lines.merge(later._lines)
        self._closed.merge(later._closed)
        self._labels.merge(later._labels)
        for group, ns in later._fetched.items():
            self._fetched[group] = max(ns, self._fetched.get(group, ns))
        self._clients.update(later._clients)

    @property
    def left_out(self) -> int:
        too_many = max(0, len(self._rows()) - self.limits.rows)
        return self._lines.left_out + self._closed.left_out + too_many

    def result(self) -> list[Row]:
        return self._rows()[: self.limits.rows]

    def _rows(self) -> list[Row]:
        self._labels.resolve_names()
        every = {place.group for place in self._lines}.union(self._closed, self._fetched)
        every.update(place.group for sessions in self._sessions.values() for place, _ in sessions)
        groups = self.latest.clusters.apart(every)
        lines: dict[GroupPartition, list[Mark]] = {}
        for place in self._lines:
            line = lines.setdefault(place._replace(group=groups[place.group]), [])
            line += self._lines.line(place)
        closed: dict[NameAt, list[Mark]] = {}
        for group in self._closed:
            closed.setdefault(groups[group], []).extend(self._closed.line(group))
        freed = self._freed(groups)
        fetched: dict[NameAt, int] = {}
        for group, ns in self._fetched.items():
            fetched[groups[group]] = max(ns, fetched.get(groups[group], ns))
        rows: list[Row] = []
        for place, line in lines.items():
            marks = [*line, *closed.get(place.group, ()), *freed.get(place, ())]
            marks.sort(key=lambda mark: mark[:2])
            found = _replay(marks, fetched.get(place.group, 0))
            rows += (self._row(place, member, share) for member, share in found.items() if share.counts)
        return sorted(rows, key=_order)

    def _row(self, place: GroupPartition, member: str, share: _MemberShare) -> Row:
        p50_ns, p99_ns = share.hold.percentiles(50, 99)
        return {
            "group": place.group.name,
            "cluster_id": place.group.cluster_id,
            "topic": self._labels.name(place.topic),
            "partition": place.partition,
            "member_id": member,
            "client_id": self._clients.get(member),
            "acquired": share.acquired,
            **{name: share.said.get(name, 0) for name in ("accepted", "released", "rejected", "renewed")},
            "expired": share.expired,
            "redelivered": share.redelivered,
            "max_delivery_count": share.max_deliveries,
            "given_up": share.given_up,
            "lock_ms": share.lock_ms,
            "hold_p50_ns": p50_ns,
            "hold_p99_ns": p99_ns,
            "hold_max_ns": share.hold.most,
            "gaps": share.said.get("gaps", 0),
            "errors": share.errors,
            "first_ns": share.span.first_ns,
            "last_ns": share.span.last_ns,
        }


def _order(row: Row) -> tuple[Any, ...]:
    return row["group"], row["topic"] or "", row["partition"], row["member_id"], row["cluster_id"] or ""


def _kinds(batch: dict[str, Any]) -> Iterator[tuple[int, int, int]]:
    """The first and the last offset of each run with one type. If the batch has one type, it is that of all
    offsets; otherwise each offset has its own."""
    first, last = batch.get("firstOffset", 0), batch.get("lastOffset", -1)
    kinds = batch.get("acknowledgeTypes") or []
    if last < first or not kinds:
        return
    if len(kinds) == 1:
        yield first, last, kinds[0]
        return
    begin = 0
    kinds = kinds[: last - first + 1]
    for at in range(1, len(kinds) + 1):
        if at == len(kinds) or kinds[at] != kinds[begin]:
            yield first + begin, first + at - 1, kinds[begin]
            begin = at


def _replay(marks: list[Any], fetched_ns: int) -> dict[str, _MemberShare]:
    """The result of each offset of a partition, in order."""
    shares: dict[str, _MemberShare] = {}
    locks: list[_Lock] = []
    back: list[_Lock] = []
    """Released offsets, with the time of the release."""
    for mark in marks:
        if isinstance(mark, Closed):
            back += (lock._replace(ns=mark.ns) for lock in locks if lock.member == mark.member)
            # The records of a lock that is over were free before.
            locks = [lock for lock in locks if lock.member != mark.member or _is_over(lock, mark.ns)]
            continue
        share = shares.setdefault(mark.member, _MemberShare())
        share.counts |= mark.counts
        share.span.add(mark.ns, mark.number)
        if isinstance(mark, Acquired):
            count = _count(mark)
            share.acquired += count
            share.redelivered += count if mark.deliveries > 1 else 0
            share.max_deliveries = most(share.max_deliveries, mark.deliveries)
            share.lock_ms = mark.lock_ms or share.lock_ms
            again, locks = _cut(locks, mark.first, mark.last)
            for lock in again:
                if lock.lock_ms is None or _is_over(lock, mark.ns):
                    shares[lock.member].expired += _count(lock)
            _, back = _cut(back, mark.first, mark.last)
            locks.append(_Lock(mark.first, mark.last, mark.member, mark.ns, mark.deliveries, mark.lock_ms))
        elif mark.error:
            share.errors += 1
            told, rest = _cut(locks, mark.first, mark.last)
            late = [lock for lock in told if lock.member == mark.member and _is_over(lock, mark.ns)]
            share.expired += sum(_count(lock) for lock in late)
            locks = [*rest, *(lock for lock in told if lock not in late)]
        else:
            name = ACKNOWLEDGEMENT_WORDS.get(mark.kind)
            if name is not None:
                share.said[name] = share.said.get(name, 0) + _count(mark)
            told, rest = _cut(locks, mark.first, mark.last)
            for lock in told:
                for _ in range(min(_count(lock), MOST_TIMED)):
                    share.hold.add(mark.ns - lock.ns)
            locks = rest
            if mark.kind == RENEW:
                locks += (lock._replace(ns=mark.ns) for lock in told)
            if mark.kind == RELEASE:
                back += (lock._replace(ns=mark.ns) for lock in told)
    highest = max((share.max_deliveries or 0 for share in shares.values()), default=0)
    for lock in back:
        if lock.deliveries == highest > 1 and fetched_ns - lock.ns >= GIVEN_UP_NS:
            shares[lock.member].given_up += _count(lock)
    return shares


def _is_over(lock: _Lock, ns: int) -> bool:
    """Whether the time of a lock is known and over."""
    return lock.lock_ms is not None and ns - lock.ns >= lock.lock_ms * MILLISECOND


def _count(offsets: Acquired | OffsetsSaid | _Lock) -> int:
    """The number of offsets, at most as many as anybody can hold, whatever a message says."""
    return min(offsets.last - offsets.first + 1, MOST_OFFSETS)


def _cut(locks: list[_Lock], first: int, last: int) -> tuple[list[_Lock], list[_Lock]]:
    """The locks between two offsets, and the rest."""
    inside: list[_Lock] = []
    outside: list[_Lock] = []
    for lock in locks:
        if lock.last < first or lock.first > last:
            outside.append(lock)
            continue
        inside.append(lock._replace(first=max(first, lock.first), last=min(last, lock.last)))
        if lock.first < first:
            outside.append(lock._replace(last=first - 1))
        if lock.last > last:
            outside.append(lock._replace(first=last + 1))
    return inside, outside
