"""Thresholds at their edge: what a rule says of rows with just enough, and of rows with a little less.

They are the edges that the tests of the rules themselves leave out: ``python -m tests.insight.thresholds``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from kdissect.analysis.cluster import (
    ClusterBrokers,
    ClusterChanges,
    ClusterConfigs,
    ClusterPartitions,
    ClusterTopics,
)
from kdissect.analysis.connections import Connections
from kdissect.analysis.delivery import Delivery
from kdissect.analysis.endpoints import Endpoints
from kdissect.analysis.errors import Errors
from kdissect.analysis.exposure import Exposure
from kdissect.analysis.fold import MILLISECOND, SECOND, Row, Statistic
from kdissect.analysis.groups import Members, Stays
from kdissect.analysis.lag import Lag
from kdissect.analysis.lingers import Lingers
from kdissect.analysis.metadata_asked import MetadataAsked
from kdissect.analysis.payloads import NULL, Payloads
from kdissect.analysis.positions import Positions
from kdissect.analysis.producers import Producers
from kdissect.analysis.racks import Racks
from kdissect.analysis.rebalances import Rebalances, RebalanceSteps
from kdissect.analysis.repeats import Repeats
from kdissect.analysis.share import Share
from kdissect.analysis.tcp import Tcp
from kdissect.analysis.topics import Topics
from kdissect.analysis.transactions import Transactions
from kdissect.analysis.versions import Versions
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import CRITICAL, WARNING
from kdissect.insight.logs import Logs
from tests.insight.made import WHOLE, row, said, zeros
from tests.insight.rules import test_groups as groups

Facts = dict[type[Statistic], list[Row]]
MIB = 1 << 20
S, MS = SECOND, MILLISECOND


class Edge(NamedTuple):
    """A threshold, and rows that depend on a value."""

    id: str
    threshold: str
    rows: Callable[[Any], Facts]
    enough: Any
    """The rule speaks of rows with this value,"""
    short: Any
    """and not of rows with this one."""
    context: JudgingContext = WHOLE


# -- rows -------------------------------------------------------------------------------------------------


def many(statistic: type[Statistic], *some: dict[str, Any], **alike: Any) -> Facts:
    """Rows that differ in some values."""
    return {statistic: [zeros(statistic, **{**alike, **each}) for each in some]}


def one(statistic: type[Statistic], **values: Any) -> Facts:
    return many(statistic, {}, **values)


def producer(**values: Any) -> Facts:
    return one(
        Producers, **{"topic": "sales", "client_id": "till", "client": "10.0.0.1", "records": 9, **values}
    )


def produced(*written: tuple[int, int]) -> Facts:
    """Records and bytes of each partition."""
    rows = [
        {"partition": at, "records": records, "bytes": size} for at, (records, size) in enumerate(written)
    ]
    return many(Topics, *rows, topic="sales", direction="produce")


def carried(*mib: float) -> Facts:
    rows = [{"broker": str(at), "request_bytes": int(each * MIB)} for at, each in enumerate(mib)]
    return many(Connections, *rows, protocol="kafka")


def fetching(fetches: int) -> Facts:
    """Every fetch names all of 50 partitions."""
    rows = [{"partition": each} for each in range(50)]
    alike = {"connection": 3, "broker": "b:1", "topic": "sales", "fetches": fetches, "sessions": fetches}
    return many(Positions, *rows, **alike)


def tcp(**values: Any) -> dict[str, Any]:
    usual = {"broker": "10.0.0.1:9092", "opening": "answered", "exchanges": 9, "end": "fin", "first_ns": S}
    return {"closed_by": None, **usual, **values}


def ended(at_ns: int = 10 * S, **more: Any) -> dict[str, Any]:
    return tcp(connection=1, last_ns=at_ns, **more)


def refused(at_ns: int) -> dict[str, Any]:
    return tcp(connection=2, opening="refused", exchanges=0, end="rst", first_ns=at_ns, last_ns=at_ns)


def changes(what: str, *at_ns: int, **more: Any) -> Facts:
    alike = {"what": what, "subject": "orders-0", "topic": "orders", "partition": 0, "exchange": 7}
    rows = [{"ns": ns, "before": str(at % 2), "after": str(1 - at % 2)} for at, ns in enumerate(at_ns)]
    return many(ClusterChanges, *rows, **alike, **more)


def leaderless(from_ns: int) -> Facts:
    """A partition of a topic that was made at 0."""
    held = {"topic": "orders", "leader": -1, "from_ns": from_ns, "to_ns": 30 * S, "replicas": "1"}
    return {**changes("topic-created", 0, by=None), **one(ClusterPartitions, **held)}


def led_by_others(wrong: int, of: int) -> Facts:
    rows = [{"partition": each, "preferred": each >= wrong} for each in range(of)]
    return many(ClusterPartitions, *rows, topic="orders", leader=2, from_ns=0, to_ns=None)


def assigned(lasted_ns: int, *partitions: int) -> Facts:
    """A group whose members have so many partitions for so long."""
    names = [f"m{each}" for each in range(len(partitions))]
    alike = {"group": "g", "generation": 1, "types": ["classic"], "protocol": "range"}
    stays = [{"member_id": name, "assigned": each} for name, each in zip(names, partitions, strict=True)]
    members = [{"member_id": name, "client_id": name} for name in names]
    return {
        **many(Stays, *stays, **alike, first_ns=0, last_ns=lasted_ns),
        **many(Members, *members, group="g", subscribed=["orders"], first_ns=0, last_ns=lasted_ns),
    }


def lives(*spans: tuple[float, float], step_ns: int = 0) -> Facts:
    """Members of one client id, which leave in the end: from and to, in seconds."""
    rows: list[Row] = [
        {"member_id": str(at), "first_ns": int(begin * S), "last_ns": int(end * S), "left_ns": int(end * S)}
        for at, (begin, end) in enumerate(spans)
    ]
    rows[-1]["first_ns"] += step_ns
    alike = {"group": "g", "client_id": "c", "first_generation": 1, "left": "left", "leave_reason": None}
    return many(Members, *rows, **alike)


def held_back(held_ns: int) -> Facts:
    """A member that is to give a partition back within 10 s."""
    steps = [
        {"step": "assigned", "ns": S, "revoking": 1, "exchange": 3},
        {"step": "revoked", "ns": S + held_ns, "revoking": None, "exchange": 4},
    ]
    alike = {"group": "g", "member_id": "m"}
    return {
        **many(RebalanceSteps, *steps, **alike),
        **one(Members, **alike, client_id="c", rebalance_timeout_ms=10_000),
    }


def mixed(from_ns: int) -> Facts:
    classic = {"types": ["classic"], "member_id": "a", "first_ns": 0, "last_ns": 10 * S}
    newer = {"types": ["consumer"], "member_id": "b", "first_ns": from_ns, "last_ns": 90 * S}
    return many(Members, classic, newer, group="g")


def rebalances(*at_ns: int, **more: Any) -> Facts:
    rows = [groups.rebalance(0, trigger="session-timeout") | {"begin_ns": ns} | more for ns in at_ns]
    return {Rebalances: rows}


def late(*delays_ns: int, join_ns: int | None = None) -> Facts:
    """Rebalances in which a member joins so late."""
    rows, steps = [], []
    for at, delay_ns in enumerate(delays_ns):
        begin_s, generation = 10.0 * (at + 1), at + 2
        phase_ns = delay_ns if join_ns is None else join_ns
        rows.append(
            groups.rebalance(begin_s, generation=generation, waited_for=["m"], join_phase_ns=phase_ns)
        )
        for kind, ns in (("notified", 0), ("joined", delay_ns)):
            step = groups.step(kind, begin_s, generation=generation)
            steps.append(step | {"ns": step["ns"] + ns})
    return {Rebalances: rows, RebalanceSteps: steps}


def eager(times: int, members: int, stopped_ns: int) -> Facts:
    """Rebalances that stop all, so long in all."""
    rows = [
        groups.rebalance(10 + at, protocol="range", members=members, stopped_ns=0 if at else stopped_ns)
        for at in range(times)
    ]
    return {Rebalances: rows}


def restarted(*clients: str, back_ns: int = S) -> Facts:
    """Members that leave one after another, and come back so much later."""
    rows = []
    for at, client in enumerate(clients):
        left_ns = (1 + at) * 100 * S
        alike = {"group": "g", "client_id": client, "first_generation": 1, "leave_reason": None}
        old = {
            "member_id": f"{client}-1",
            "first_ns": 0,
            "last_ns": left_ns,
            "left_ns": left_ns,
            "left": "left",
        }
        new = {"member_id": f"{client}-2", "first_ns": left_ns + back_ns, "last_ns": 900 * S, "left_ns": None}
        rows += [zeros(Members, **alike, **old), zeros(Members, **alike, **new)]
    return {Members: rows}


def offering(together_ns: int) -> Facts:
    rows = [{"client_id": "a", "offers": ["range"]}, {"client_id": "b", "offers": ["sticky"]}]
    alike = {"group": "g", "types": ["classic"], "first_generation": 1, "first_ns": 0, "last_ns": together_ns}
    return many(Members, *rows, **alike)


def failed(error: str, api: str, **more: Any) -> Facts:
    alike = {"error": error, "api": api, "group": "g", "client_id": "c", "error_class": "fatal", "count": 1}
    return one(Errors, **{**alike, "first_ns": 0, "last_ns": 0, **more})


def was_member() -> Facts:
    return one(Members, group="g", client_id="c", member_id="m", first_generation=1)


def heartbeats(types: str, most_ns: int, usual_ns: int, session_ms: int = 10_000, count: int = 50) -> Facts:
    alike = {"group": "g", "member_id": "m"}
    beats = {"heartbeat_max_ns": most_ns, "heartbeat_p50_ns": usual_ns, "heartbeats": count}
    return {
        **one(Stays, **alike, types=[types], **beats),
        **one(Members, **alike, client_id="c", session_timeout_ms=session_ms),
    }


def lag(**values: Any) -> Facts:
    """A group that falls behind, with just enough of everything."""
    usual = {"lag": 1_000, "lag_first": 10, "lag_per_s": 60.0, "rising": 0.75, "written_per_s": 500.0}
    return one(Lag, **{"group": "g", "topic": "t", "points": 16, "commits": 5, **usual, **values})


def stopped(records: int) -> Facts:
    place = {"group": "g", "topic": "t", "partition": 0}
    seen = {"replica_id": -1, "fetches": 40, "first_ns": 0, "fetched_last_ns": 10 * S, "position": 7}
    return {**one(Positions, **place, **seen), **one(Lag, **place, log_end=7 + records)}


def lagging(*each: int) -> Facts:
    return many(Lag, *({"partition": at, "lag": lag} for at, lag in enumerate(each)), group="g", topic="t")


def logs(records: int, *sizes: int) -> Facts:
    place: Row = {"topic": "orders", "largest_bytes": 0, "bad": 0, "gaps": 0, "open": []}
    rows = [
        place | {"partition": at, "bytes": size, "records": 0 if at else records}
        for at, size in enumerate(sizes)
    ]
    return {Logs: rows}


def asked(times: int, lasted_ns: int) -> Facts:
    """Questions for metadata, with so much time from the first to the last."""
    seen = {"count": times, "first_ns": 0, "last_ns": lasted_ns, "replica_id": -1, "soon": 1}
    return one(Repeats, client="10.0.0.1:5", client_id="c", api="Metadata", **seen)


def connected(*begun_ns: int, life_ns: int = 0, requests: int = 3) -> Facts:
    rows = [{"first_ns": ns, "last_ns": ns + life_ns, "connection": at} for at, ns in enumerate(begun_ns)]
    alike = {"client": "10.0.0.1:5", "client_id": "c", "protocol": "kafka", "end": "fin"}
    return many(Connections, *rows, **alike, requests=requests)


def values_of(**counts: int) -> Facts:
    """Values of a topic, by format."""
    rows = [{"format": name.replace("_", "-"), "records": count} for name, count in counts.items()]
    return many(Payloads, *rows, topic="t", part="value", direction="produce", producers=["p"])


def packed(times: int, of: int) -> Facts:
    rows: list[Row] = [
        {"records": times, "compression": "gzip", "packed_records": 1},
        {"records": of - times},
    ]
    return many(Payloads, *rows, topic="t", part="value", direction="produce", format="json")


def hot_key(partitions: int) -> Facts:
    keys = {"records": 1_000, "top_records": 900, "top_partition": 0, "top_offset": 3}
    rows = one(Payloads, topic="t", part="key", direction="produce", format="text", **keys)
    return {**rows, **one(ClusterTopics, topic="t", partitions=partitions)}


def unknown_ids(number: int) -> Facts:
    rows = [{"schema_id": 1 + each} for each in range(number)]
    alike = {"topic": "t", "part": "value", "direction": "produce", "format": "unknown", "records": 1}
    return many(Payloads, *rows, **alike, registry="confluent", schemas="registry")


def schemas_inside(records: int, percent: float) -> Facts:
    alike = {"topic": "t", "part": "value", "direction": "produce", "format": "json"}
    return one(Payloads, **alike, records=records, bytes=1_000, schema_bytes=int(10 * percent))


def nulls(count: int, of: int) -> Facts:
    rows = [{"format": NULL, "records": count}, {"format": "json", "records": of - count}]
    policy = {"resource_type": "topic", "resource": "t", "config": "cleanup.policy", "value": "delete"}
    return {
        **many(Payloads, *rows, topic="t", part="value", direction="produce"),
        **one(ClusterConfigs, **policy),
    }


def told_for(ns: int) -> Facts:
    """An address that brokers name for so long, and to which nobody tries to connect."""
    told = {
        "told": 10,
        "told_to": ["app@10.0.0.1"],
        "told_by": ["b:1"],
        "told_first_ns": 0,
        "told_last_ns": ns,
    }
    return one(Endpoints, **told, broker="lost:9")


def told_after(ns: int) -> Facts:
    """An address that brokers go on to name after tries to connect failed; another broker answers."""
    told = {"told": 3, "told_to": ["app@10.0.0.1"], "told_by": ["b:1"], "clients": ["10.0.0.1"]}
    lost = {"broker": "10.0.0.5:9", "refused": 3, "connections": 3, "failed_first_ns": 0, "failed_last_ns": 0}
    good = {"broker": "10.0.0.6:9", "answered": 1, "connections": 1, "failed_first_ns": None}
    return many(Endpoints, {**lost, "told_last_ns": ns}, {**good, "failed_last_ns": None}, **told)


def silent(*idle_ns: int) -> Facts:
    """Connections that a broker closes after so long a silence, while another goes on."""
    goes_on = tcp(connection=99, first_ns=0, last_ns=900 * S)
    rows = [
        tcp(connection=at, closed_by="broker", idle_ns=ns, closed_ns=500 * S, last_ns=500 * S)
        for at, ns in enumerate(idle_ns)
    ]
    return many(Tcp, goes_on, *rows)


def bare(life_ns: int) -> Facts:
    rows = [
        tcp(connection=at, client=f"10.0.0.9:{at}", exchanges=0, bytes_to_broker=0, last_ns=S + life_ns)
        for at in range(5)
    ]
    return many(Tcp, tcp(connection=9, client="10.0.0.1:5"), *rows, bytes_from_broker=0)


def far_reads(size: int) -> Facts:
    nodes = [
        {"node_id": at, "host": f"10.0.0.{at}", "port": 9, "rack": f"r{at}", "to_ns": None} for at in (1, 2)
    ]
    place = {"topic": "t", "partition": 0}
    return {
        **many(ClusterBrokers, *nodes),
        **one(ClusterPartitions, **place, isr="1,2", to_ns=None),
        **one(Racks, **place, client="c", client_id="app", rack="r1", broker="10.0.0.2:9", bytes=size),
    }


def shared(**counts: Any) -> Facts:
    return one(Share, group="g", topic="jobs", client_id="worker", member_id="m", **counts)


def probing(*at_ns: int) -> Facts:
    return rebalances(*at_ns, trigger="probing")


def complaints(times: int) -> Facts:
    """About a topology, the last one 9 s after the first. Steps of others come between."""
    rows = [{"ns": 9 * S * at // max(1, times - 1)} for at in range(times)]
    return many(RebalanceSteps, *rows, group="g", step="status", detail="MISSING_SOURCE_TOPICS", exchange=3)


def restoring(size: int, lasted_ns: int) -> Facts:
    who = {"client_id": "app-restore-consumer", "topic": "app-store-changelog"}
    read = {"records": 10, "bytes": size, "max_lag": 10, "first_ns": 0, "last_ns": lasted_ns}
    return one(Positions, **who, **read)


def transactions(*outcomes: str, **more: Any) -> Facts:
    rows = [{"outcome": each, "begin_ns": at, "last_ns": at} for at, each in enumerate(outcomes)]
    who = {"transactional_id": "tx", "client_id": "app", "client": "10.0.0.1:5"}
    return many(Transactions, *rows, **who, **more)


def beside_transactions(committed: int) -> Facts:
    spoken = [{"api": "Fetch", "count": 9}, {"api": "OffsetCommit", "count": 9}]
    return {
        **transactions(*["committed"] * committed, records=3, groups=[]),
        **many(Versions, *spoken, client="10.0.0.1", client_id="app"),
    }


def log_ins(count: int) -> Facts:
    return failed("SASL_AUTHENTICATION_FAILED", "SaslAuthenticate", client="10.0.0.1", count=count)


# -- edges ------------------------------------------------------------------------------------------------

LONG = JudgingContext(first_ns=0, last_ns=900 * S, exchanges=1_000, connections=5, kafka=5)
ONE_MORE = 1
"""Nanosecond."""

EDGES = [
    Edge(
        "acks-leader-only",
        "records",
        lambda records: {
            **producer(acks=["1"], records=records),
            **one(ClusterTopics, topic="sales", replication=2),
        },
        100,
        99,
    ),
    Edge(
        "tiny-batches",
        "per_s",
        lambda ns: producer(batches=501, records_p50=1, bytes_p50=9, bytes=9_000, first_ns=0, last_ns=ns),
        20 * S,
        20 * S + ONE_MORE,
    ),
    Edge("hot-partition", "partitions", lambda rest: produced((1_000, 0), *[(0, 0)] * rest), 3, 2),
    Edge("hot-partition", "records", lambda all_: produced((all_, 0), *[(0, 0)] * 3), 1_000, 999),
    Edge("hot-partition", "bytes", lambda all_: produced((0, all_), *[(0, 0)] * 3), 10 * MIB, 10 * MIB - 1),
    Edge("hot-broker", "times", lambda mib: carried(mib, 150 - mib / 2, 150 - mib / 2), 200, 199),
    Edge(
        "uncompressed",
        "bytes_per_s",
        lambda size: producer(uncompressed_bytes=size, compressible_to=0.5),
        6_000_000,
        5_999_999,
    ),
    Edge(
        "compression-ineffective",
        "bytes",
        lambda size: producer(bytes=size, ratio=0.95, codecs=["gzip"]),
        10 * MIB,
        10 * MIB - 1,
    ),
    Edge("fetch-sessions-lost", "requests", fetching, 10, 9),
    Edge(
        "broker-gone",
        "together_s",
        lambda ns: many(Tcp, ended(), tcp(connection=3, last_ns=ns, end="open"), refused(11 * S)),
        9 * S - 1,
        9 * S,
    ),
    Edge("broker-gone", "patience_s", lambda ns: many(Tcp, ended(), refused(ns)), 40 * S, 40 * S + ONE_MORE),
    Edge(
        "leader-flaps", "window_s", lambda ns: changes("leader-moved", 0, S, ns), 600 * S, 600 * S + ONE_MORE
    ),
    Edge("partition-offline", "young_s", leaderless, 10 * S, 10 * S - 1),
    Edge("leader-not-preferred", "share_pct", lambda wrong: led_by_others(wrong, 100), 20, 19),
    Edge(
        "linger-long",
        "share",
        lambda ns: (
            one(
                Delivery,
                topic="t",
                records=20,
                linger_p50_ns=500 * MS,
                create_to_fetched_p50_ns=ns,
                send_to_fetched_p50_ns=1,
            )
            | one(Lingers, topic="t", linger_max_ns=500 * MS)
        ),
        S,
        S + 2,
    ),
    Edge("idle-members", "idle_s", lambda ns: assigned(ns, 1, 0), 10 * S, 10 * S - 1),
    Edge("assignment-skew", "held_s", lambda ns: assigned(ns, 3, 1), 10 * S, 10 * S - 1),
    Edge("reconcile-slow", "share", held_back, 5 * S, 5 * S - 1),
    Edge(
        "member-id-churn",
        "within_s",
        lambda ns: lives((0, 90), (100, 190), (200, 290), (300, 390), (600, 690), step_ns=ns),
        0,
        ONE_MORE,
        LONG,
    ),
    Edge(
        "member-id-churn",
        "life_s",
        lambda s: lives((0, s), (310, 310 + s), (320, 320 + s), (330, 330 + s), (340, 340 + s)),
        299,
        300,
        LONG,
    ),
    Edge("group-mixed-protocols", "within_s", mixed, 70 * S, 70 * S + ONE_MORE),
    Edge("rebalance-storm", "within_s", lambda ns: rebalances(20 * S, 50 * S, ns), 80 * S, 80 * S + ONE_MORE),
    Edge(
        "rebalance-storm", "any", lambda times: rebalances(*(at * 70 * S for at in range(times))), 4, 3, LONG
    ),
    Edge(
        "rebalance-storm",
        "any_s",
        lambda ns: rebalances(0, 100 * S, 200 * S, ns),
        300 * S,
        300 * S + ONE_MORE,
        LONG,
    ),
    Edge("rebalance-slow-member", "delay_s", lambda ns: late(ns, ns), S, S - 1),
    Edge(
        "rebalance-slow-member",
        "share",
        lambda ns: late(7 * S, 7 * S, join_ns=ns),
        10 * S - 10,
        10 * S + 10,
    ),
    Edge("rebalance-slow-member", "rebalances", lambda times: late(*[2 * S] * times), 2, 1),
    Edge("eager-stop-the-world", "members", lambda members: eager(3, members, S), 3, 2),
    Edge("eager-stop-the-world", "rebalances", lambda times: eager(times, 3, S), 3, 2),
    Edge("eager-stop-the-world", "stopped_s", lambda ns: eager(3, 3, ns), S, S - 1),
    Edge("rolling-restart", "clients", lambda names: restarted(*names), "ab", "a", LONG),
    Edge(
        "rolling-restart",
        "back_s",
        lambda ns: restarted("a", "b", back_ns=ns),
        60 * S,
        60 * S + ONE_MORE,
        LONG,
    ),
    Edge("assignor-mismatch", "together_s", offering, 60 * S, 60 * S - 1),
    Edge(
        "static-member-conflict",
        "unreleased",
        lambda times: failed("UNRELEASED_INSTANCE_ID", "JoinGroup", count=times),
        3,
        2,
    ),
    Edge(
        "static-member-conflict",
        "unreleased_s",
        lambda ns: failed("UNRELEASED_INSTANCE_ID", "JoinGroup", last_ns=ns),
        10 * S,
        10 * S - 1,
    ),
    Edge(
        "commit-after-rebalance",
        "stale",
        lambda times: {**failed("STALE_MEMBER_EPOCH", "OffsetCommit", count=times), **was_member()},
        3,
        2,
    ),
    Edge("heartbeat-gap", "times", lambda ns: heartbeats("classic", ns, 3 * S), 9 * S, 9 * S - 1),
    Edge(
        "heartbeat-gap",
        "epoch_session_s",
        lambda ns: heartbeats("consumer", ns, 3 * S),
        22_500 * MS,
        22_500 * MS - 1,
    ),
    Edge(
        "heartbeat-interval-too-long",
        "heartbeats",
        lambda times: heartbeats("classic", 5 * S, 5 * S, count=times),
        5,
        4,
    ),
    Edge("consumer-falling-behind", "points", lambda points: lag(points=points), 16, 15),
    Edge("consumer-falling-behind", "records", lambda records: lag(lag=records), 1_000, 999),
    Edge(
        "consumer-falling-behind",
        "few_records",
        lambda records: lag(lag=records, written_per_s=20.0),
        300,
        299,
    ),
    Edge("consumer-falling-behind", "behind_s", lambda rate: lag(lag=500, written_per_s=rate), 50.0, 50.1),
    Edge("consumer-falling-behind", "growth", lambda first: lag(lag_first=first), 500, 501),
    Edge("consumer-falling-behind", "rising", lambda share: lag(rising=share), 0.75, 0.74),
    Edge("consumer-falling-behind", "commits", lambda times: lag(commits=times), 5, 4),
    Edge("consumer-stopped", "records", stopped, 1, 0),
    Edge("partition-lags", "partitions", lambda others: lagging(5_000, *[0] * others), 2, 1),
    Edge("log-skew", "partitions", lambda rest: logs(10_000, 10, *[0] * rest), 3, 2),
    Edge("log-skew", "records", lambda records: logs(records, 10, 0, 0, 0), 10_000, 9_999),
    Edge("log-skew", "bytes", lambda size: logs(0, size, 0, 0, 0), 10 * MIB, 10 * MIB - 1),
    Edge("log-skew", "share", lambda size: logs(10_000, size, *[70] * 19, 670 - size), 600, 599),
    Edge("log-skew", "times", lambda size: logs(10_000, size, *[(1_000 - size) // 3] * 3), 750, 745),
    Edge("metadata-storm", "slow_per_s", lambda ns: asked(50, ns), 49 * S - 49, 49 * S),
    Edge("metadata-storm", "slow_seconds", lambda ns: asked(40, ns), 29_250 * MS, 29_250 * MS - 100),
    Edge(
        "connection-churn",
        "window_s",
        lambda ns: connected(*(at * S for at in range(29)), ns),
        60 * S,
        60 * S + ONE_MORE,
    ),
    Edge(
        "connection-churn",
        "life_s",
        lambda ns: connected(*range(30), life_ns=ns, requests=9),
        5 * S - 1,
        5 * S,
    ),
    Edge(
        "metadata-all-topics",
        "bytes",
        lambda size: one(MetadataAsked, client="c", client_id="app", all_topics=1, all_bytes_max=size),
        MIB,
        MIB - 1,
    ),
    Edge("payload-mixed", "most_pct", lambda odd: values_of(json=100 - odd, java=odd), 20, 21),
    Edge("payload-mixed", "at_least", lambda all_: values_of(json=all_ - 1, java=1), 10, 9),
    Edge("hot-key", "partitions", hot_key, 2, 1),
    Edge("payload-compressed-twice", "share_pct", lambda times: packed(times, 100), 90, 89),
    Edge("payload-compressed-twice", "at_least", lambda times: packed(times, times), 10, 9),
    Edge("schema-unknown", "most_ids", unknown_ids, 5, 6),
    Edge("payload-schema-inside", "at_least", lambda records: schemas_inside(records, 50), 10, 9),
    Edge("payload-schema-inside", "share_pct", lambda percent: schemas_inside(10, percent), 30, 29.9),
    Edge("tombstones", "at_least", lambda times: nulls(times, 20), 10, 9),
    Edge("tombstones", "share_pct", lambda all_: nulls(10, all_), 100, 101),
    Edge("listener-unreachable", "seconds", told_for, 5 * S, 5 * S - 1),
    Edge("listener-unreachable", "gone_s", told_after, 20 * S, 20 * S - 1, WHOLE._replace(mid_stream=1)),
    Edge(
        "idle-disconnect",
        "equal_share",
        lambda ns: silent(*[100 * S] * 4, 100 * S + ns, *[50 * S] * 3),
        2 * S,
        2 * S + ONE_MORE,
        LONG,
    ),
    Edge("idle-disconnect", "least_s", lambda ns: silent(*[ns] * 5), S, S - 1, LONG),
    Edge("bare-connects", "shorter_s", bare, S - 1, S),
    Edge("cross-rack-fetch", "bytes", far_reads, 1_000_000, 999_999),
    Edge(
        "secrets-readable",
        "settings",
        lambda names: one(Exposure, client="10.0.0.1:5", readable=names, readable_exchanges=[3]),
        ["password"],
        [],
    ),
    Edge("share-redelivery", "share", lambda again: shared(acquired=100, redelivered=again), 5, 4),
    Edge("share-redelivery", "share", lambda all_: shared(acquired=all_, redelivered=10), 200, 201),
    Edge("share-lock-expired", "records", lambda times: shared(expired=times), 1, 0),
    Edge("share-rejected", "share", lambda all_: shared(acquired=all_, rejected=10), 1_000, 1_001),
    Edge(
        "streams-followup-rebalance",
        "within_s",
        lambda ns: probing(0, S, ns),
        3_600 * S,
        3_600 * S + ONE_MORE,
    ),
    Edge("streams-restoring", "bytes", lambda size: restoring(size, S), 10 * MIB, 10 * MIB - 1),
    Edge("streams-restoring", "lasted_s", lambda ns: restoring(9, ns), 30 * S, 30 * S - 1),
    Edge("connect-delayed-rebalance", "delay_s", lambda ns: rebalances(S, delay_ns=ns), S, S - 1),
    Edge(
        "transactions-aborted",
        "transactions",
        lambda all_: transactions(*["aborted"] * 9, *["committed"] * (all_ - 9)),
        20,
        19,
    ),
    Edge(
        "transactions-aborted",
        "share_pct",
        lambda all_: transactions(*["aborted"] * 10, *["committed"] * (all_ - 10)),
        100,
        101,
    ),
    Edge("offsets-outside-transaction", "transactions", beside_transactions, 5, 4),
]


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: f"{edge.id} {edge.threshold}")
def test_enough_is_told_and_a_little_less_is_not(edge: Edge) -> None:
    assert edge.threshold in RULES[edge.id].thresholds
    assert said(edge.id, edge.rows(edge.enough), context=edge.context)
    assert not said(edge.id, edge.rows(edge.short), context=edge.context)


@pytest.mark.parametrize(("days", "severity"), [(3, WARNING), (2.99, CRITICAL)])
def test_a_certificate_that_ends_in_three_days_is_critical(days: float, severity: str) -> None:
    ends_ns = int(days * 24 * 3_600 * S)
    ending = row(Exposure, connection=1, broker="b:1", certificate_ends_ns=ends_ns, last_ns=0, first_ns=0)
    (found,) = said("certificate-expires", {Exposure: [ending]})
    assert found.severity == severity


@pytest.mark.parametrize(("times", "severity"), [(10, CRITICAL), (9, WARNING)])
def test_log_ins_that_fail_ten_times_a_minute_are_critical(times: int, severity: str) -> None:
    (found,) = said("authentication-failed", log_ins(times))
    assert found.severity == severity


@pytest.mark.parametrize(("times", "told"), [(2, 1), (1, 0)])
def test_a_coordinator_that_complains_twice_is_told(times: int, told: int) -> None:
    assert len(said("streams-status", complaints(times), lasted_s=0.0)) == told
