"""The nodes of a KRaft cluster: candidates and leaders, how each node follows the metadata log, and its
heartbeats (KIP-595, KIP-631, KIP-853, KIP-996)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from kdissect.analysis.declared import EXCHANGE, ID, column, time_column
from kdissect.analysis.fold import MILLISECOND, SECOND, Batched, Row, Statistic, least, most
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.leaderless import Leaderless
from kdissect.analysis.packed import packed
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import follows_log, topics_of
from kdissect.analysis.topics import replica_id
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.names import METADATA_TOPIC, METADATA_TOPIC_ID, is_metadata_topic

LATE_NS = 4_500 * MILLISECOND
"""Half of ``broker.session.timeout.ms``, which is 9 s; a heartbeat comes every 2 s."""
WINDOW_NS, START_NS = 60 * SECOND, 10 * SECOND
CAUGHT_UP = 8
"""A node that lacks at most this many offsets follows the log: a record of its own comes every 500 ms."""
_APIS = frozenset(
    (
        *("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "DescribeQuorum"),
        *("Fetch", "FetchSnapshot", "BrokerHeartbeat"),
    )
)
Body = dict[str, Any]

_new = tuple.__new__
"""``_new(_Lack, values)`` with all values: without the second call of NamedTuple's own ``__new__``."""


@packed
@dataclass(slots=True)
class _Turns:
    """The times of repeated events, and the gaps between them."""

    count: int = 0
    gaps: Histogram = field(default_factory=Histogram)
    late: int = 0
    longest: tuple[int, int] = (0, 0)
    """The longest gap: its length, and minus the time of its beginning, so that the first of equal ones
    counts."""
    first: tuple[int, int] | None = None
    """Time and epoch; the time between two runs of a node is no gap."""
    last: tuple[int, int] | None = None

    def add(self, ns: int, epoch: int = 0) -> None:
        self.count += 1
        now, last = (ns, epoch), self.last
        self.last = now
        if last is None:
            self.first = now
        else:
            self._follow(now, last)

    def _follow(self, later: tuple[int, int], last: tuple[int, int]) -> None:
        """Count the gap between an event and the one before it."""
        if last[1] == later[1]:
            gap = max(0, later[0] - last[0])
            self.gaps.add(gap)
            self.late += gap >= LATE_NS
            if gap >= self.longest[0]:
                self.longest = max(self.longest, (gap, -last[0]))

    def merge(self, later: _Turns) -> None:
        if later.first is None:
            return
        self.gaps.merge(later.gaps)
        self.late += later.late
        self.longest = max(self.longest, later.longest)
        self.count += later.count
        if self.first is None or self.last is None:
            self.first, self.last = later.first, later.last
            return
        self._follow(later.first, self.last)
        self.last = later.last


@packed
class _Lack(NamedTuple):
    """A time in which a node lacked offsets of the log."""

    since_ns: int
    """The last time when it lacked none, or when it was first seen."""
    last_ns: int
    """When it was last seen behind."""
    offsets: int = 0
    """The largest number of offsets that it lacked."""
    number: int = 0
    """The exchange that shows it, the first of equal ones."""

    def extended_by(self, later: _Lack) -> _Lack:
        """The lack, extended by a later one."""
        offsets, shown = max((self.offsets, -self.number), (later.offsets, -later.number))
        return _Lack(self.since_ns, max(self.last_ns, later.last_ns), offsets, -shown)

    @property
    def rank(self) -> tuple[int, int, int, int]:
        """The sort key: by duration; the first of equal ones is the highest."""
        return self.last_ns - self.since_ns, -self.since_ns, self.offsets, -self.number


@packed
@dataclass(slots=True)
class _Behind:
    """The longest time for which a node lacked offsets of the log, between two times at which it lacked
    none."""

    first: _Lack | None = None
    """The lack until it was first seen to lack none."""
    open: _Lack | None = None
    """The lack since it last lacked none. None before the first such time."""
    longest: _Lack | None = None
    """The longest of the finished ones and of those that the leader reports. The first is excluded: it may
    have begun in a part of the capture that is added later."""

    def add(self, ns: int, number: int, offsets: int) -> None:
        """Note the number of offsets that it lacked at a time."""
        if offsets <= CAUGHT_UP:
            self._close(_new(_Lack, (ns, ns, 0, 0)))
        else:
            self._lack(_Lack(ns, ns, offsets, number))

    def note_behind(self, since_ns: int, ns: int, number: int, offsets: int) -> None:
        """Note the leader's statement of when it last lacked none."""
        if offsets > CAUGHT_UP and since_ns < ns:
            self.longest = _longer(self.longest, _Lack(since_ns, ns, offsets, number))

    def _lack(self, later: _Lack) -> None:
        if self.open is not None:
            self.open = self.open.extended_by(later)
        else:
            self.first = later if self.first is None else self.first.extended_by(later)

    def _close(self, opened: _Lack) -> None:
        if self.open is not None and self.open.offsets:  # which is rare
            self.longest = _longer(self.longest, self.open)
        self.open = opened

    def merge(self, later: _Behind) -> None:
        if later.first is not None:
            self._lack(later.first)
        if later.open is not None:
            self._close(later.open)
        self.longest = _longer(self.longest, later.longest)

    def worst(self) -> _Lack | None:
        """The longest lack, including the one at the end."""
        return _longer(_longer(self.longest, self.first), self.open)


def _longer(one: _Lack | None, other: _Lack | None) -> _Lack | None:
    """The longer of the two lacks that have missing offsets."""
    some = [each for each in (one, other) if each is not None and each.offsets]
    return max(some, key=lambda each: each.rank, default=None)


@packed
@dataclass(slots=True)
class _QuorumNode:
    epoch: int | None = None
    is_voter: bool = False
    is_observer: bool = False
    votes_asked: int = 0
    votes_granted: int = 0
    prevotes: int = 0
    stood: dict[int, int] = field(default_factory=dict)
    """For each epoch in which it asked for votes, the first time."""
    fetches: _Turns = field(default_factory=_Turns)
    lag: tuple[int, int, int] | None = None
    """The last time, exchange, and number of offsets that it lacked."""
    caught_ns: int | None = None
    """When it was last seen to lack none."""
    behind_ns: int | None = None
    """When it was first seen."""
    behind: _Behind = field(default_factory=_Behind)
    snapshots: int = 0
    beats: _Turns = field(default_factory=_Turns)
    fenced: tuple[int, int, bool] | None = None
    """The time, the exchange, and whether it was fenced."""

    def stand(self, epoch: int, ns: int) -> None:
        """Note that it asked for votes."""
        self.stood[epoch] = min(ns, self.stood.get(epoch, ns))

    def merge(self, later: _QuorumNode) -> None:
        self.epoch = most(self.epoch, later.epoch)
        self.is_voter = self.is_voter or later.is_voter
        self.is_observer = self.is_observer or later.is_observer
        self.votes_asked += later.votes_asked
        self.votes_granted += later.votes_granted
        self.prevotes += later.prevotes
        for epoch, ns in later.stood.items():
            self.stand(epoch, ns)
        self.fetches.merge(later.fetches)
        self.lag = max((each for each in (self.lag, later.lag) if each is not None), default=None)
        self.caught_ns = most(self.caught_ns, later.caught_ns)
        self.behind_ns = least(self.behind_ns, later.behind_ns)
        self.behind.merge(later.behind)
        self.snapshots += later.snapshots
        self.beats.merge(later.beats)
        self.fenced = max((each for each in (self.fenced, later.fenced) if each is not None), default=None)


class Quorum(Batched, Statistic):
    """The statistic ``quorum``: a row for each node."""

    apis = _APIS
    name = "quorum"
    about = "nodes of KRaft: votes, elections, lag, heartbeats"
    columns = (
        column("node", "int32", "the id of the node", unit=ID),
        column(
            "role",
            "text",
            "leader, voter or observer; follower if it is unknown which; broker if the capture shows only "
            "its heartbeats",
        ),
        column("epoch", "int32", "the latest epoch of the quorum that it took part in"),
        column("votes_asked", "int64", "votes that it requested", rare=True),
        column("votes_granted", "int64", "votes that it received", rare=True),
        column("prevotes", "int64", "pre-votes that it requested (KIP-996)", rare=True),
        column("elections", "int64", "epochs in which it requested votes", rare=True),
        column(
            "elections_60s",
            "int32",
            "most epochs within 60 s in which any node requested votes; the first 10 s do not count",
            rare=True,
        ),
        column(
            "leaderless_ns",
            "int64",
            "longest time in which the quorum served no follower and told some repeatedly to ask another "
            "node; of the whole quorum",
            rare=True,
        ),
        time_column("leaderless_from_ns", "beginning of that longest time"),
        time_column("leader_since_ns", "time at which the capture first shows it as leader"),
        column("fetches", "int64", "its Fetches of the log"),
        column("fetch_gap_max_ns", "int64", "longest time between two of these Fetches"),
        column(
            "lag_offsets", "int64", "records that it lacked at its last Fetch, or according to DescribeQuorum"
        ),
        column("lag_ns", "int64", "how long it had been behind at that time; 0 if it was not"),
        column(
            "behind_max_ns",
            "int64",
            "longest time for which it was behind, up to the last exchange that shows it",
            rare=True,
        ),
        time_column("behind_from_ns", "beginning of that longest time"),
        column("behind_max_offsets", "int64", "most records that it lacked in that time", rare=True),
        column("behind_exchange", "int64", "the exchange that shows it", rare=True, unit=EXCHANGE),
        column("snapshots", "int64", "snapshots that it fetched", rare=True),
        column("fenced", "bool", "whether the controller fenced it, according to its last heartbeat"),
        column("heartbeats", "int64", "its heartbeats to the controller"),
        column("heartbeat_p50_ns", "int64", "median time between heartbeats"),
        column("heartbeat_max_ns", "int64", "longest time between heartbeats"),
        time_column("heartbeat_gap_ns", "beginning of that longest time"),
        column(
            "heartbeat_late",
            "int32",
            "heartbeats that came 4.5 s (half of a session) or more after the one before",
            rare=True,
        ),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._nodes: Rows[int, _QuorumNode] = Rows(_QuorumNode, self.room)
        self._leaders: dict[int, tuple[int, int]] = {}
        """For each epoch, when its leader was first seen, and the leader."""
        self._leaderless: dict[str | None, Leaderless] = {}
        """By the id of the cluster in its followers' requests."""

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        for exchange in exchanges:
            api, asked, answer = exchange.api, exchange.request, exchange.response
            if api == "Fetch":
                if asked is not None and (follows_log(exchange) or _names_log(exchange)):
                    self._fetch(exchange, asked.body(), {} if answer is None else answer.body())
            elif api in _APIS and asked is not None:
                self._take(exchange, api, asked.body(), {} if answer is None else answer.body())

    def _take(self, exchange: Exchange, api: str, request: Body, response: Body) -> None:
        """Take in an exchange that is no Fetch."""
        if api == "Vote":
            self._vote(exchange.begun_ns, request, response)
        elif api == "BrokerHeartbeat":
            self._heartbeat(exchange, request, response)
        elif api == "DescribeQuorum":
            self._described(exchange, response)
        elif api == "FetchSnapshot":
            self._snapshot(request)
        else:
            self._led(exchange, api, request)

    def _row(self, node: Any) -> _QuorumNode | None:
        return self._nodes.row(node) if isinstance(node, int) and node >= 0 else None

    def _vote(self, ns: int, request: Body, response: Body) -> None:
        granted = [bool(each.get("voteGranted")) for each in _partitions(response)]
        for at, each in enumerate(_partitions(request)):
            candidate = self._row(each.get("replicaId", each.get("candidateId")))
            if candidate is None:
                continue
            epoch = each.get("replicaEpoch", each.get("candidateEpoch"))
            candidate.is_voter = True
            candidate.epoch = most(candidate.epoch, epoch)
            if each.get("preVote"):
                candidate.prevotes += 1
                continue
            candidate.votes_asked += 1
            if epoch is not None and len(candidate.stood) < self.limits.timeline_key_events:
                candidate.stand(epoch, ns)
            candidate.votes_granted += at < len(granted) and granted[at]

    def _led(self, exchange: Exchange, api: str | None, request: Body) -> None:
        for each in _partitions(request):
            leader, epoch = each.get("leaderId"), each.get("leaderEpoch")
            row = self._row(leader)
            if row is None or not isinstance(leader, int) or not isinstance(epoch, int):
                continue
            row.is_voter = True
            row.epoch = most(row.epoch, epoch)
            if api == "BeginQuorumEpoch":
                self._lead(epoch, exchange.begun_ns, leader)

    def _lead(self, epoch: int, ns: int, leader: int) -> None:
        known = self._leaders.get(epoch)
        if known is None and len(self._leaders) >= self.limits.rows:
            return
        self._leaders[epoch] = (ns, leader) if known is None else min(known, (ns, leader))

    def _described(self, exchange: Exchange, response: Body) -> None:
        ns = exchange.begun_ns
        for each in _partitions(response):
            if each.get("errorCode"):
                continue
            leader, epoch = each.get("leaderId", -1), each.get("leaderEpoch", -1)
            if leader >= 0 and epoch >= 0:
                self._lead(epoch, ns, leader)
            voters, observers = each.get("currentVoters") or (), each.get("observers") or ()
            end = max((one.get("logEndOffset", -1) for one in voters), default=-1)
            caught_ms = max((one.get("lastCaughtUpTimestamp", -1) for one in voters), default=-1)
            for one in (*voters, *observers):
                row = self._row(one.get("replicaId"))
                if row is None:
                    continue
                row.is_voter = row.is_voter or one in voters
                row.is_observer = row.is_observer or one in observers
                if one.get("replicaId") == leader:
                    row.epoch = most(row.epoch, epoch)
                at = one.get("logEndOffset", -1)
                if at >= 0:  # else the leader has not heard of it since it leads
                    self._lagged(row, ns, exchange.number, end - at)
                own_ms = one.get("lastCaughtUpTimestamp", -1)
                if at >= 0 and own_ms >= 0:
                    since_ns = ns - (caught_ms - own_ms) * MILLISECOND
                    row.behind.note_behind(since_ns, ns, exchange.number, end - at)

    def _fetch(self, exchange: Exchange, request: Body, response: Body) -> None:
        node = replica_id(exchange)
        row = self._nodes.row(node) if node >= 0 else None
        if row is None:
            return
        ns = exchange.begun_ns
        row.fetches.add(ns)
        asked = _asked_of_log(request)
        told = None if asked is None else _answered(response)
        if asked is None or told is None:
            return
        high_watermark = told.get("highWatermark", -1)
        if not told.get("errorCode") and high_watermark >= 0:
            epoch = asked.get("currentLeaderEpoch", -1)
            if epoch != row.epoch:
                row.epoch = most(row.epoch, asked.get("currentLeaderEpoch"))
            self._lagged(row, ns, exchange.number, high_watermark - asked.get("fetchOffset", 0))
            self._quorum(request.get("clusterId")).serve(ns, node, epoch)
        elif exchange.error == "NOT_LEADER_OR_FOLLOWER":
            leader = told.get("currentLeader") or {}
            named = leader.get("leaderEpoch", -1) if leader.get("leaderId", -1) >= 0 else None
            self._quorum(request.get("clusterId")).refuse(ns, node, named)

    def _quorum(self, cluster: str | None) -> Leaderless:
        found = self._leaderless.get(cluster)
        if found is None:
            found = Leaderless(self.limits.timeline_key_events)
            if len(self._leaderless) < self.limits.rows:
                self._leaderless[cluster] = found
        return found

    def _lagged(self, row: _QuorumNode, ns: int, number: int, offsets: int) -> None:
        lag = ns, number, max(0, offsets)
        if row.lag is None or lag > row.lag:
            row.lag = lag
        if row.behind_ns is None or ns < row.behind_ns:
            row.behind_ns = ns
        row.behind.add(ns, number, offsets)
        if offsets <= CAUGHT_UP and (row.caught_ns is None or ns > row.caught_ns):
            row.caught_ns = ns

    def _snapshot(self, request: Body) -> None:
        row = self._row(request.get("replicaId"))
        if row is not None:
            row.snapshots += any(each.get("position") == 0 for each in _partitions(request))

    def _heartbeat(self, exchange: Exchange, request: Body, response: Body) -> None:
        row = self._row(request.get("brokerId"))
        if row is None:
            return
        ns = exchange.begun_ns
        row.beats.add(ns, request.get("brokerEpoch", -1))
        if response and response.get("errorCode") == 0:
            told = ns, exchange.number, bool(response.get("isFenced"))
            row.fenced = told if row.fenced is None else max(row.fenced, told)

    def merge(self, later: Self) -> None:
        self._nodes.merge(later._nodes)
        for epoch, (ns, leader) in later._leaders.items():
            self._lead(epoch, ns, leader)
        for cluster, told in later._leaderless.items():
            self._quorum(cluster).merge(told)

    @property
    def left_out(self) -> int:
        return self._nodes.left_out

    def result(self) -> list[Row]:
        since_ns, leader = self._leaders[max(self._leaders)] if self._leaders else (None, None)
        of_all: Row = {"elections_60s": self._most_elections()}
        length_ns, from_ns = max((each.longest() for each in self._leaderless.values()), default=(0, 0))
        of_all |= {"leaderless_ns": length_ns, "leaderless_from_ns": -from_ns if length_ns else None}
        return [
            self._result(node, row, since_ns if node == leader else None, of_all)
            for node, row in sorted(self._nodes.rows.items())
        ]

    def _most_elections(self) -> int:
        """The most elections within 60 s, after the quorum has started."""
        began: dict[int, int] = {}
        for row in self._nodes.rows.values():
            for epoch, ns in row.stood.items():
                began[epoch] = min(ns, began.get(epoch, ns))
        starts = [row.fetches.first[0] for row in self._nodes.rows.values() if row.fetches.first is not None]
        first_ns = min([*starts, *began.values()], default=0)
        times = sorted(ns for ns in began.values() if ns - first_ns >= START_NS)
        return max((sum(ns <= each < ns + WINDOW_NS for each in times) for ns in times), default=0)

    def _result(self, node: int, row: _QuorumNode, since_ns: int | None, of_all: Row) -> Row:
        role = "broker"
        if row.fetches.count or row.lag is not None or row.snapshots:
            role = "follower"
        if row.is_voter or row.is_observer:
            role = "voter" if row.is_voter else "observer"
        if since_ns is not None:
            role = "leader"
        lag_ns = None
        if row.lag is not None:
            start_ns = row.caught_ns if row.caught_ns is not None else row.behind_ns
            lag_ns = max(0, row.lag[0] - start_ns) if start_ns is not None else None
        behind = row.behind.worst()
        return {
            "node": node,
            "role": role,
            "epoch": row.epoch,
            "votes_asked": row.votes_asked,
            "votes_granted": row.votes_granted,
            "prevotes": row.prevotes,
            "elections": len(row.stood),
            **of_all,
            "leader_since_ns": since_ns,
            "fetches": row.fetches.count,
            "fetch_gap_max_ns": row.fetches.gaps.most,
            "lag_offsets": None if row.lag is None else row.lag[2],
            "lag_ns": lag_ns,
            "behind_max_ns": behind.last_ns - behind.since_ns if behind is not None else 0,
            "behind_from_ns": behind.since_ns if behind is not None else None,
            "behind_max_offsets": behind.offsets if behind is not None else 0,
            "behind_exchange": behind.number if behind is not None else None,
            "snapshots": row.snapshots,
            "fenced": None if row.fenced is None else row.fenced[2],
            "heartbeats": row.beats.count,
            "heartbeat_p50_ns": row.beats.gaps.percentiles(50)[0],
            "heartbeat_max_ns": row.beats.gaps.most,
            "heartbeat_gap_ns": -row.beats.longest[1] if row.beats.longest[0] else None,
            "heartbeat_late": row.beats.late,
        }


def _asked_of_log(request: Body) -> Body | None:
    """What a Fetch asks of the log."""
    for topic in request.get("topics") or ():
        if topic.get("topicId") == METADATA_TOPIC_ID or is_metadata_topic(topic.get("topic")):
            asked: list[Body] = topic.get("partitions") or []
            if asked:
                return asked[0]
    return None


def _names_log(exchange: Exchange) -> bool:
    """Whether one of its topics is the log."""
    topics = topics_of(exchange) if exchange.may_carry_metadata() else ()
    return METADATA_TOPIC in topics or METADATA_TOPIC_ID in topics


def _answered(response: Body) -> Body | None:
    """What the answer to a Fetch tells of the first partition."""
    for topic in response.get("responses") or ():
        told: list[Body] = topic.get("partitions") or []
        if told:
            return told[0]
    return None


def _partitions(body: Body) -> list[Body]:
    return [each for topic in body.get("topics") or () for each in topic.get("partitions") or ()]
