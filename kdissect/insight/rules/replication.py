"""Rules on replicas: brokers that replicate from each other, and consumers that read from a distant
replica."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterPartitions, ClusterTopics
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.racks import Racks
from kdissect.analysis.replication import QUOTA_NS, Replication
from kdissect.analysis.stalls import Stalls
from kdissect.analysis.tcp import Tcp
from kdissect.insight.causes import explains, may_explain
from kdissect.insight.cut_links import OUTAGE, CutLink, cut_links
from kdissect.insight.finding import (
    CERTAIN,
    INFO,
    LIKELY,
    NOTICE,
    WARNING,
    EvidenceStep,
    Finding,
    FindingSubject,
    key_of,
)
from kdissect.insight.grouping import group_rows
from kdissect.insight.nodes import NodeNames, are_several_clusters, follower_of, nodes_by_address
from kdissect.insight.repeated import once_per_subject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.latency import stalls
from kdissect.insight.words import having, of_numbers, showing
from kdissect.wording import plural


def _follower(facts: Facts, row: Row) -> FindingSubject:
    """The broker that replicates, of the cluster that the leader belongs to."""
    rows = facts.rows(ClusterBrokers)
    leader = nodes_by_address(rows).get(str(row["broker"]))
    (cluster, *more) = leader.named_clusters if leader is not None else (None,)
    return FindingSubject(broker=NodeNames(rows).of(row["node_id"], None if more else cluster))


SHORTEST_GAP_NS = SECOND
"""The shortest time between two Fetches that shows anything: a follower waits half a second for records."""


def _finding(
    facts: Facts, row: Row, message: str, count: int, measure: float, unit: str, limit: str
) -> Finding:
    gap_ns = row["gap_from_ns"] if (row["gap_max_ns"] or 0) >= SHORTEST_GAP_NS else None
    return facts.finding(
        _follower(facts, row),
        message,
        count=count,
        measure=measure,
        unit=unit,
        threshold=facts.limit(limit),
        first_ns=gap_ns if gap_ns is not None else row["first_ns"],
        last_ns=gap_ns + row["gap_max_ns"] if gap_ns is not None else row["last_ns"],
        exchanges=tuple(row["exchanges"]),
        steps=(EvidenceStep(gap_ns, f"it sends no Fetch for {row['gap_max_ns'] / 1e9:.1f} s"),)
        if gap_ns is not None
        else (),
        filter=showing(
            row["exchanges"],
            f'broker == "{row["broker"]}" and api == Fetch and client_id contains "broker-{row["node_id"]}-"',
        ),
    )


class _Standing:
    """Knows which brokers stood still, and when."""

    def __init__(self, facts: Facts) -> None:
        self._stalls = {
            broker: [(row["from_ns"], row["to_ns"]) for row in rows if row["stalled_ns"] >= SECOND]
            for broker, rows in stalls(facts).items()
        }
        self._nodes = nodes_by_address(facts.rows(ClusterBrokers))
        replicas = (row["replicas"] or "" for row in facts.rows(ClusterPartitions))
        every = {int(node) for each in replicas for node in each.split(",") if node}
        every.update(row["node_id"] for row in facts.rows(Replication))
        self._without_address = every - {node.number for node in self._nodes.values()}

    def explains(self, row: Row) -> str | None:
        """The broker that stood still for most of the time in which a follower did not fetch.

        It is the follower itself, or the one that did not answer it. If every other node's address is known,
        an unknown address that stood still is that of the follower.
        """
        from_ns, gap_ns = row["gap_from_ns"], row["gap_max_ns"] or 0
        if from_ns is None:
            return None
        leader = self._nodes.get(str(row["broker"]))
        own = [
            broker
            for broker in self._stalls
            if (node := self._nodes.get(broker)) is not None
            and node.number == row["node_id"]
            and (leader is None or not node.named_clusters.isdisjoint(leader.named_clusters))
        ]
        if self._without_address == {row["node_id"]}:
            unknown = self._stalls.keys() - self._nodes.keys() - {str(row["broker"])}
            own += unknown if len(unknown) == 1 else ()
        for broker in (*own, str(row["broker"])):
            for begin, end in self._stalls.get(broker, ()):
                if 2 * (min(end, from_ns + gap_ns) - max(begin, from_ns)) >= gap_ns:
                    return broker
        return None


def _stalled(broker: str) -> str:
    """The key of the finding that a broker stood still."""
    return key_of("broker-stalled", FindingSubject(broker=broker))


@rule(
    "replication-slow",
    WARNING,
    LIKELY,
    needs=(Replication, ClusterBrokers, ClusterChanges, ClusterPartitions, ClusterTopics, Stalls, Tcp),
    writes=3,
)
@once_per_subject
def replication_slow(facts: Facts) -> Iterator[Finding]:
    """Writes wait for a follower that does not fetch. It cannot while the leader does not answer it. Or they
    wait for followers that may copy only so much in a second."""
    yield from _throttled_writes(facts)
    standing = _Standing(facts)
    for row in facts.rows(Replication):
        stood = standing.explains(row)
        if row["held_writes"] >= facts.limit("writes") and stood != row["broker"]:
            found = _finding(
                facts,
                row,
                f"{plural(row['held_writes'], 'write')} that all replicas must confirm took up to "
                f"{row['held_ns'] / 1e9:.1f} s, while broker {row['node_id']} fetched nothing from "
                f"{row['broker']}.",
                row["held_writes"],
                row["held_writes"],
                "writes",
                "writes",
            )
            yield (found if stood is None else found.changed(because=_stalled(stood)))


class _Throttle(NamedTuple):
    """A time in which the cluster's configuration limits what may be copied of a topic in a second."""

    topic: str
    cluster_id: str | None
    by: str | None
    from_ns: int
    to_ns: int | None
    exchange: int


class _Reached(NamedTuple):
    """A limit that a broker reached."""

    node: int
    is_follower: bool
    """Whether it is a limit of what this broker copies. Otherwise, of what others copy from it."""
    copied: float
    """How many bytes were copied in a second, of all topics."""
    rate: int
    """How many bytes/s that may be, of the topics that are limited."""

    def text(self) -> str:
        """The limit, and what was copied."""
        who, source = f"Broker {self.node}", ""
        if not self.is_follower:
            who, source = "Other brokers", f" from broker {self.node}"
        return (
            f"{who} could copy at most {self.rate:,} bytes/s of limited topics{source}, and "
            f"copied {self.copied:,.0f} bytes/s of all topics."
        )


_REPLICAS, _RATE = ".replication.throttled.replicas", ".replication.throttled.rate"
_FOLLOWS = "follower" + _RATE
_NEARLY = 0.8
"""The part of a limit that shows that it was reached: Kafka counts other seconds than the capture's steps."""
NOT_REACHED = "the capture does not show that brokers copied as much as a throttle allows"


def _throttles(facts: Facts) -> Iterator[_Throttle]:
    """The throttles of replication that somebody set while this was captured (kafka-reassign-partitions.sh
    ``--throttle``), each of a topic."""
    changes = [row for row in facts.rows(ClusterChanges) if row["what"] == "config-changed"]
    named = [row for row in changes if row["subject"].endswith(_REPLICAS)]
    by_topic: dict[tuple[str | None, str], list[Row]] = defaultdict(list)
    for row in named:
        by_topic[row["cluster_id"], row["subject"].removeprefix("topic ").partition(" ")[0]].append(row)
    for (cluster_id, topic), rows in by_topic.items():
        held: dict[str, str] = {}
        begin: Row | None = None
        for row in sorted(rows, key=lambda row: row["ns"]):
            if row["after"] is not None:
                held[row["subject"]] = row["after"]
                begin = begin or row
                continue
            held.pop(row["subject"], None)
            if begin is not None and not held:
                yield _Throttle(topic, cluster_id, begin["by"], begin["ns"], row["ns"], begin["exchange"])
                begin = None
        if begin is not None:
            yield _Throttle(topic, cluster_id, begin["by"], begin["ns"], None, begin["exchange"])


class _Copying:
    """What brokers copied from each other, and what limits there were, over time."""

    def __init__(self, facts: Facts) -> None:
        nodes = nodes_by_address(facts.rows(ClusterBrokers))
        self._copied: dict[tuple[bool, int, str | None], Counter[int]] = defaultdict(Counter)
        for row in facts.rows(Replication):
            leader = nodes.get(row["broker"])
            for cluster_id in (None,) if leader is None else leader.clusters | {None}:
                for ns, size in row["copied"] or ():
                    self._copied[True, row["node_id"], cluster_id][ns] += size
                    if leader is not None:
                        self._copied[False, leader.number, cluster_id][ns] += size
        rates = [
            row
            for row in facts.rows(ClusterChanges)
            if row["what"] == "config-changed" and row["subject"].endswith(_RATE)
        ]
        self._rates = group_rows(rates, "cluster_id", "subject")

    def reached(self, throttle: _Throttle, from_ns: int, to_ns: int) -> _Reached | None:
        """The limit that a broker reached while a write waited, the lowest of several."""
        found = []
        for (cluster_id, subject), changes in self._rates.items():
            until = [row for row in sorted(changes, key=lambda row: row["ns"]) if row["ns"] <= to_ns]
            node = subject.removeprefix("broker ").partition(" ")[0]
            value = until[-1]["after"] if until else None
            if cluster_id != throttle.cluster_id or value is None or not value.isdecimal():
                continue
            is_follower = subject.endswith(_FOLLOWS)
            of_node = self._copied.get((is_follower, int(node), cluster_id)) if node.isdecimal() else None
            most = max(
                (size for ns, size in (of_node or {}).items() if from_ns - 2 * QUOTA_NS < ns <= to_ns),
                default=0,
            )
            rate, copied = int(value), most * SECOND / QUOTA_NS
            if copied >= _NEARLY * rate:
                found.append(_Reached(int(node), is_follower, copied, rate))
        return min(found, key=lambda each: (each.rate, each.node), default=None)


def _throttled_writes(facts: Facts) -> Iterator[Finding]:
    """Writes that took long while brokers copied as much of their topic as a throttle allows."""
    names = {row["topic_id"]: row["topic"] for row in facts.rows(ClusterTopics)}
    slow = {
        (write["exchange"], names.get(write["topic"], write["topic"])): write
        for row in facts.rows(Replication)
        for write in row["slow_writes"] or ()
    }
    throttles = list(_throttles(facts)) if slow else []
    copying = _Copying(facts) if throttles else None
    for throttle in throttles:
        assert copying is not None
        during = [
            write
            for (_, topic), write in slow.items()
            if topic == throttle.topic
            and throttle.from_ns - SECOND <= write["from_ns"]
            and (throttle.to_ns is None or write["from_ns"] <= throttle.to_ns)
        ]
        limits = [(write, copying.reached(throttle, write["from_ns"], write["to_ns"])) for write in during]
        writes = [write for write, limit in limits if limit is not None]
        if len(writes) < facts.limit("writes"):
            if len(during) >= facts.limit("writes"):
                facts.cannot_judge(NOT_REACHED)
            continue
        limit = min((each for _, each in limits if each is not None), key=lambda each: each.rate)
        by = f" by {throttle.by}" if throttle.by is not None else ""
        longest_ns = max(write["to_ns"] - write["from_ns"] for write in writes)
        exchanges = [throttle.exchange, *(write["exchange"] for write in writes)]
        yield facts.finding(
            FindingSubject(topic=throttle.topic),
            f"{plural(len(writes), 'write')} to {throttle.topic} that all replicas must confirm took up to "
            f"{longest_ns / 1e9:.1f} s, while the copying of it was limited. {limit.text()}",
            count=len(writes),
            measure=len(writes),
            unit="writes",
            threshold=facts.limit("writes"),
            cost_ns=longest_ns,
            first_ns=min(write["from_ns"] for write in writes),
            last_ns=max(write["to_ns"] for write in writes),
            exchanges=exchanges,
            steps=(EvidenceStep(throttle.from_ns, f"a throttle was set{by}", throttle.exchange),),
            filter=of_numbers(exchanges[:8]),
            **_THROTTLED,
        )


_THROTTLED: dict[str, Any] = {
    "cause": "Somebody limited how fast brokers copy the topic from each other (a reassignment with "
    "--throttle, or leader.replication.throttled.rate and follower.replication.throttled.rate). Replicas "
    "that count as in sync, or that are about to, get new records no faster than that, and writes with "
    "acks=all wait for them.",
    "fix": "Raise the throttle above what is written to the topic, with enough left for what still has to be "
    "copied: repeat kafka-reassign-partitions.sh --execute --additional with a larger --throttle. When the "
    "copying is done, run it with --verify, which removes the throttle.",
}


@rule(
    "follower-lags",
    WARNING,
    CERTAIN,
    needs=(Replication, ClusterBrokers, ClusterChanges, ClusterPartitions, Stalls, Tcp),
    records=10_000,
    gap_s=2.5,
)
@once_per_subject
def follower_lags(facts: Facts) -> Iterator[Finding]:
    """A follower fetches late."""
    standing, links = _Standing(facts), cut_links(facts)
    moves = [
        row["ns"] for row in facts.rows(ClusterChanges) if row["what"] in ("leader-moved", "replicas-changed")
    ]
    for row in facts.rows(Replication):
        lag = row["lag_max"] or 0
        if lag >= facts.limit("records"):
            found = _finding(
                facts,
                row,
                f"Broker {row['node_id']} lacked up to {lag:,} records that others had of a partition that "
                f"{row['broker']} leads.",
                1,
                lag,
                "records",
                "records",
            )
            yield found.changed(**_COPIES) if _was_given_replicas(facts, row) else found
            continue
        gap_ns, from_ns = row["gap_max_ns"] or 0, row["gap_from_ns"]
        if gap_ns < facts.limit("gap_s") * SECOND or from_ns is None or facts.context.gap_bytes:
            continue
        if facts.context.awake_ns(from_ns, from_ns + gap_ns) < gap_ns:
            continue  # the capture has nothing at all
        if any(from_ns - SECOND <= ns <= from_ns + gap_ns + SECOND for ns in moves):
            continue  # that broker had nothing to fetch for a while
        seen_ns = facts.context.seen_ns(from_ns, from_ns + gap_ns)  # when others did something
        if not row["held_writes"] and seen_ns < 10 * SECOND:
            continue
        stood = standing.explains(row)
        if stood == row["broker"]:
            continue  # it waited for an answer
        found = _finding(
            facts,
            row,
            f"Broker {row['node_id']} fetched nothing from {row['broker']} for {gap_ns / 1e9:.1f} s, "
            "although its connection was open; a follower usually fetches twice a second.",
            1,
            gap_ns / 1e9,
            "s",
            "gap_s",
        )
        yield found.changed(because=_cut_off(links, row) if stood is None else _stalled(stood))


def _cut_off(links: list[CutLink], row: Row) -> str | None:
    """The key of the finding that the network between a follower and its leader was interrupted in the time
    in which the follower did not fetch."""
    from_ns = row["gap_from_ns"]
    for link in links:
        for each in link.rows:
            if (
                follower_of(each["client_id"]) == row["node_id"]
                and each["broker"] == row["broker"]
                and link.is_of(each["client_id"], from_ns, from_ns + row["gap_max_ns"])
            ):
                return key_of(OUTAGE, link.subject)
    return None


_COPIES: dict[str, Any] = {
    "severity": NOTICE,
    "cause": "Somebody moved partitions to it while this was captured (a reassignment). It copies them from "
    "their beginning, and counts as in sync only when it has all.",
    "fix": "Wait until it has copied them: kafka-reassign-partitions.sh --verify tells. If the copying costs "
    "clients too much, limit it with --throttle.",
}


def _was_given_replicas(facts: Facts, row: Row) -> bool:
    """Whether the follower got new replicas before it had caught up. It is a node of the cluster of the
    broker that it fetches from."""
    node = str(row["node_id"])
    leader = nodes_by_address(facts.rows(ClusterBrokers)).get(row["broker"])
    if leader is None and are_several_clusters(facts.rows(ClusterBrokers)):
        return False
    return any(
        change["ns"] <= row["last_ns"]
        and node in str(change["after"] or "").split(",")
        and node not in str(change["before"] or "").split(",")
        for change in facts.rows(ClusterChanges)
        if change["what"] == "replicas-changed"
        and change["before"]
        and (leader is None or leader.is_source_of(change))
    )


@rule("log-truncated", NOTICE, CERTAIN, needs=(Replication, ClusterBrokers))
@once_per_subject
def log_truncated(facts: Facts) -> Iterator[Finding]:
    """A follower is told to truncate its log."""
    for row in facts.rows(Replication):
        if row["truncations"]:
            yield facts.finding(
                _follower(facts, row),
                f"Broker {row['node_id']} was told {plural(row['truncations'], 'time')} that its replica "
                f"differs from that of {row['broker']}, and truncated it to where both agree.",
                count=row["truncations"],
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                filter=f'broker == "{row["broker"]}" and api == Fetch',
            )


@rule(
    "cross-rack-fetch",
    NOTICE,
    CERTAIN,
    needs=(Racks, ClusterBrokers, ClusterPartitions),
    bytes=1_000_000,
)
@once_per_subject
def cross_rack_fetch(facts: Facts) -> Iterator[Finding]:
    """Consumers read from another rack although their own rack has a replica in sync."""
    racks = {
        (row["cluster_id"], row["node_id"]): row["rack"]
        for row in facts.rows(ClusterBrokers)
        if row["rack"] and row["to_ns"] is None
    }
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    if len(set(racks.values())) < 2:
        return
    in_sync = {
        (row["cluster_id"], row["topic"], row["partition"]): [
            int(node) for node in row["isr"].split(",") if node
        ]
        for row in facts.rows(ClusterPartitions)
        if row["to_ns"] is None and row["isr"]
    }
    far: dict[tuple[str, str | None, str | None], list[Row]] = {}
    theirs: dict[str, str] = {}  # the rack of a broker that was read from
    for row in facts.rows(Racks):
        node = nodes.get(row["broker"])
        clusters = () if node is None else [each for each in node.clusters if (each, node.number) in racks]
        if node is None or len(clusters) != 1:
            continue
        (cluster,) = clusters
        theirs[row["broker"]] = racks[cluster, node.number]
        mine, near = row["rack"], in_sync.get((cluster, row["topic"], row["partition"]), [])
        has_nearer = mine != theirs[row["broker"]] and any(
            racks.get((cluster, each)) == mine for each in near
        )
        if mine is None or has_nearer:
            far.setdefault((row["client"], row["client_id"], mine), []).append(row)
    for (client, client_id, rack), rows in far.items():
        total = sum(row["bytes"] for row in rows)
        if total < facts.limit("bytes"):
            continue
        name = client_id or client
        where = sorted({theirs[row["broker"]] for row in rows})
        read = f"read {total / 1e6:.1f} MB from {', '.join(where)}"
        if rack is None:
            message = f"{name} does not say in which rack it is, although the brokers have racks, and {read}."
        else:
            message = f"{name} in rack {rack} {read}, although a replica in sync is in its own rack."
        yield facts.finding(
            FindingSubject(client=client, client_id=client_id),
            message,
            severity=INFO if rack is None else NOTICE,
            count=sum(row["fetches"] for row in rows),
            measure=total,
            unit="bytes",
            threshold=facts.limit("bytes"),
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            exchanges=tuple(number for row in rows for number in row["exchanges"]),
            filter=having(api="Fetch", client_id=client_id),
        )


explains("unclean-election", "log-truncated", at_once=True)
explains("unclean-election", "offset-rewound", "offset-reset", shares=("topic",), at_once=True)
explains("broker-gone", "replication-slow", "follower-lags", "log-truncated", within_s=60)
explains("broker-stalled", "follower-lags", "replication-slow", "log-truncated", within_s=60)
may_explain(OUTAGE, "follower-lags", within_s=30)
explains("follower-lags", "replication-slow", "isr-shrunk", shares=("broker",), within_s=60)
explains("replication-slow", "head-of-line", "latency-spike", "request-abandoned", within_s=10)
explains("tiny-batches", "head-of-line", "too-many-in-flight", shares=("client_id",))  # if nothing else does
