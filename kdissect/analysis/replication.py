"""Replication between brokers: a row for each follower and the broker that it fetches from.

A write with ``acks=all`` waits until every replica in sync fetches past it. If a write took long while one
follower sent no Fetch, it waited for that follower.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Self

from kdissect.analysis.counters import Span
from kdissect.analysis.declared import BROKER_COLUMN, EXCHANGE, ID, column, first_and_last, time_column
from kdissect.analysis.fold import MILLISECOND, SECOND, Batched, Row, Statistic
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.packed import packed
from kdissect.analysis.rows import Rows
from kdissect.analysis.timelines import Timelines
from kdissect.analysis.topics import replica_id
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.names import METADATA_TOPIC_ID, is_metadata_topic

SLOW_NS = SECOND
"""The shortest duration of a write whose followers are examined."""
PAUSE_NS = 900 * MILLISECOND
"""The shortest time without a Fetch that counts as a pause of a follower that is not waiting for an answer: a
Fetch waits 500 ms (``replica.fetch.wait.max.ms``)."""
QUOTA_NS = 10 * SECOND
"""The step of time in which copied bytes are counted. A throttle of replication counts 11 s
(``replication.quota.window.num``)."""
_STEP_BYTES = 250
"""The approximate size of a :class:`_Copied`, with its key."""
MOST = 8
Body = dict[str, Any]
Pause = tuple[int, int, int]
"""The time from the answer to a Fetch to the next Fetch: both times, and the exchange that ended it."""


@packed
@dataclass(slots=True)
class _Follower:
    fetches: int = 0
    gaps: Histogram = field(default_factory=Histogram)
    first: tuple[int, int] | None = None
    """The time and the number of the first Fetch."""
    last_ns: int | None = None
    """The time of the last Fetch."""
    longest: tuple[int, int, int] = (0, 0, 0)
    """The longest time between two Fetches: duration, beginning, and the exchange that ended it."""
    pauses: list[Pause] = field(default_factory=list)
    lag: int | None = None
    lag_exchange: int | None = None
    truncations: int = 0
    version: int = -1
    """The highest version of its Fetches."""
    span: Span = field(default_factory=Span)

    def add(self, ns: int, number: int, version: int) -> None:
        """Add a Fetch. It gives the same result as merging a follower with only this Fetch."""
        self.fetches += 1
        if self.last_ns is not None:
            self._follow(ns, number, self.last_ns)
        if self.first is None:
            self.first = ns, number
        self.last_ns = ns
        self.version = max(self.version, version)
        self.span.add(ns, number)

    def _follow(self, ns: int, number: int, last_ns: int) -> None:
        """Count the pause between a Fetch and the one before it."""
        gap = max(0, ns - last_ns)
        self.gaps.add(gap)
        if gap >= self.longest[0]:
            self.longest = max(self.longest, (gap, last_ns, number))
        if gap >= PAUSE_NS and len(self.pauses) < MOST * MOST:
            self.pauses.append((last_ns, ns, number))

    def merge(self, later: _Follower) -> None:
        if later.first is None:
            return
        self.fetches += later.fetches
        self.gaps.merge(later.gaps)
        self.longest = max(self.longest, later.longest)
        if self.last_ns is not None:
            self._follow(*later.first, self.last_ns)
        self.pauses = (self.pauses + later.pauses)[: MOST * MOST]
        self.first = self.first or later.first
        self.last_ns = later.last_ns
        if later.lag is not None and (self.lag is None or later.lag > self.lag):
            self.lag, self.lag_exchange = later.lag, later.lag_exchange
        self.truncations += later.truncations
        self.version = max(self.version, later.version)
        self.span.merge(later.span)


@packed
@dataclass(slots=True)
class _Copied:
    """What a follower got from a broker in a step of time."""

    size: int = 0
    """The bytes of the answers."""

    def merge(self, later: _Copied) -> None:
        """Add a later part."""
        self.size += later.size


class Replication(Batched, Statistic):
    """The statistic ``replication``."""

    apis = frozenset(("Produce", "Fetch"))
    name = "replication"
    about = "followers: their fetches, their lag, and the writes that wait for them"
    columns = (
        column("node_id", "int32", "id of the follower", unit=ID),
        BROKER_COLUMN,
        column("fetches", "int64", "Fetches of the follower"),
        column("fetch_version", "int16", "highest API version of these Fetches"),
        column("gap_p50_ns", "int64", "median time between these Fetches"),
        column("gap_max_ns", "int64", "longest time between two Fetches of one connection"),
        time_column("gap_from_ns", "when that longest time began"),
        column("lag_max", "int64", "most records of a partition that it lacked and other replicas had"),
        column("truncations", "int64", "how often it had to truncate its log (KIP-595, KIP-320)", rare=True),
        column(
            "held_writes",
            "int64",
            "writes with acks=all to the leader that took 1 s or longer while this follower sent no Fetch",
            rare=True,
        ),
        column("held_ns", "int64", "the longest of these writes", rare=True),
        column(
            "slow_writes",
            "json",
            "writes with acks=all to the leader's host that took 1 s or longer, the first few: topic or id, "
            "from_ns, to_ns and exchange",
            rare=True,
        ),
        column(
            "copied",
            "json",
            "around slow writes to any host: time, and bytes that the follower fetched in 10 s from then on",
            rare=True,
        ),
        column("exchanges", "int64s", "exchanges that show the longest gap and those writes", unit=EXCHANGE),
        *first_and_last("Fetch"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._followers: Rows[tuple[int, str, int], _Follower] = Rows(_Follower, self.room)
        """By node, broker and connection. The time between two connections is no pause."""
        self._writes: Timelines[str] = Timelines(self.room)
        """For each host, slow writes: sent, number, answered, and the topics."""
        self._copied: Rows[tuple[int, str, int], _Copied] = Rows(_Copied, self.room, _STEP_BYTES)
        """By node, broker and step of time."""

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        for exchange in exchanges:
            api, request = exchange.api, exchange.request
            if api == "Fetch":
                if request is not None:
                    node = replica_id(exchange)
                    if node >= 0:
                        self._fetch(exchange, node, request.body())
            elif api == "Produce":
                self._write(exchange)

    def _write(self, exchange: Exchange) -> None:
        latency = exchange.served_ns
        if latency is None or latency < SLOW_NS or exchange.request is None:
            return
        body = exchange.request.body()
        if body.get("acks") == -1:
            asked = exchange.begun_ns
            topics = tuple(each.get("name") or each.get("topicId") for each in body.get("topicData") or ())
            self._writes.add(_host(exchange.broker), (asked, exchange.number, asked + latency, topics))

    def _fetch(self, exchange: Exchange, node: int, request: Body) -> None:
        topics = request.get("topics")
        for each in topics or ():
            if each.get("topicId") == METADATA_TOPIC_ID or is_metadata_topic(each.get("topic")):
                return
        broker, response = exchange.broker, exchange.response
        row = self._followers.row((node, broker, exchange.connection))
        if row is None:
            return
        row.add(exchange.begun_ns, exchange.number, exchange.api_version or 0)
        if response is not None:
            frame = response.frame
            copied = self._copied.row((node, broker, frame.last_ns // QUOTA_NS))
            if copied is not None:
                copied.size += frame.size
            if topics or exchange.error is not None:
                self._answered(row, exchange, request)

    def _answered(self, row: _Follower, exchange: Exchange, request: Body) -> None:
        assert exchange.response is not None
        asked = {
            (topic.get("topicId") or topic.get("topic"), each.get("partition")): each.get("fetchOffset", -1)
            for topic in request.get("topics") or ()
            for each in topic.get("partitions") or ()
        }
        for topic in exchange.response.body().get("responses") or ():
            for each in topic.get("partitions") or ():
                if (each.get("divergingEpoch") or {}).get("epoch", -1) >= 0:
                    row.truncations += 1
                offset = asked.get(
                    (topic.get("topicId") or topic.get("topic"), each.get("partitionIndex")), -1
                )
                high_watermark = each.get("highWatermark", -1)
                if offset >= 0 and high_watermark >= 0 and not each.get("errorCode"):
                    lag = max(0, high_watermark - offset)
                    if row.lag is None or lag > row.lag:
                        row.lag, row.lag_exchange = lag, exchange.number

    def merge(self, later: Self) -> None:
        self._followers.merge(later._followers)
        self._writes.merge(later._writes)
        self._copied.merge(later._copied)

    @property
    def left_out(self) -> int:
        found = self._followers.left_out + self._writes.left_out
        return found + self._copied.left_out if self._writes else found  # it matters around slow writes only

    def result(self) -> list[Row]:
        followers: dict[tuple[int, str], _Follower] = {}
        for (node, broker, _), row in sorted(self._followers.rows.items()):
            whole = followers.setdefault((node, broker), _Follower())
            whole.last_ns = None
            whole.merge(row)
        found = []
        slow = self._slow_steps({step for _, _, step in self._copied.rows})
        copied: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
        for (node, broker, step), each in sorted(self._copied.rows.items() if slow else ()):
            if step in slow:
                copied[node, broker].append((step * QUOTA_NS, each.size))
        for (node, broker), row in sorted(followers.items()):
            held = [
                (number, answered - asked)
                for asked, number, answered, _ in self._writes.line(_host(broker))
                if any(
                    start <= asked + PAUSE_NS and end >= answered - PAUSE_NS for start, end, _ in row.pauses
                )
            ]
            gap, gap_from, gap_exchange = row.longest
            evidence = [number for number, _ in held[: MOST - 1]]
            evidence += [gap_exchange] if gap else []
            found.append(
                {
                    "node_id": node,
                    "broker": broker,
                    "fetches": row.fetches,
                    "fetch_version": row.version,
                    "gap_p50_ns": row.gaps.percentiles(50)[0],
                    "gap_max_ns": gap if row.gaps.count else None,
                    "gap_from_ns": gap_from if row.gaps.count else None,
                    "lag_max": row.lag,
                    "truncations": row.truncations,
                    "held_writes": len(held),
                    "held_ns": max((each for _, each in held), default=None),
                    "slow_writes": [
                        {"topic": topic, "from_ns": asked, "to_ns": answered, "exchange": number}
                        for asked, number, answered, topics in self._writes.line(_host(broker))
                        for topic in topics
                    ][: MOST * MOST],
                    "copied": [list(each) for each in copied[node, broker]],
                    "exchanges": evidence,
                    "first_ns": row.span.first_ns,
                    "last_ns": row.span.last_ns,
                }
            )
        return found

    def _slow_steps(self, steps: set[int]) -> set[int]:
        """Those of some steps of time that are around slow writes. A clock that jumped makes a write last for
        years, so only the given steps are gone through."""
        ordered = sorted(steps)
        return {
            step
            for host in self._writes
            for asked, _, answered, _ in self._writes.line(host)
            for step in ordered[
                bisect_left(ordered, asked // QUOTA_NS - 1) : bisect_right(ordered, answered // QUOTA_NS)
            ]
        }


def _host(broker: str) -> str:
    """The host of a broker, which its listeners share."""
    return broker.rpartition(":")[0]
