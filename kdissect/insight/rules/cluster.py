"""Rules on topics and partitions: leaders, replicas in sync, and changes that somebody made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterPartitions
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.lag import Lag
from kdissect.analysis.stale_leaders import StaleLeaders
from kdissect.analysis.tcp import Tcp
from kdissect.insight.broker_stops import (
    BrokerStop,
    gone_brokers,
    may_have_restarted,
    restarts,
    returns,
    subject_of,
)
from kdissect.insight.causes import explains, may_explain
from kdissect.insight.context import SLEPT
from kdissect.insight.finding import (
    CERTAIN,
    CRITICAL,
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
from kdissect.insight.nodes import NodeNames, by_node, nodes_by_address
from kdissect.insight.repeated import once_per_subject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import having, named, showing
from kdissect.wording import plural

TOGETHER_NS = 10 * SECOND
"""The largest distance between changes that have the same cause."""
MOST_STEPS = 5
NOBODY = "none"
INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")


def _changes(facts: Facts, *what: str) -> list[Row]:
    return [row for row in facts.rows(ClusterChanges) if row["what"] in what]


def _bursts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Changes that come together, as groups."""
    found: list[Row] = []
    for row in rows:
        if found and row["ns"] - found[-1]["ns"] > TOGETHER_NS:
            yield found
            found = []
        found.append(row)
    if found:
        yield found


def _topic_of(rows: list[Row]) -> str | None:
    """The topic that all of these rows are about. Kafka's internal topics count only if there is no other."""
    topics = {row["topic"] for row in rows}
    own = topics - set(INTERNAL) or topics
    return next(iter(own)) if len(own) == 1 else None


def _steps(rows: list[Row], what: str) -> tuple[EvidenceStep, ...]:
    return tuple(
        EvidenceStep(
            row["ns"], f"{row['subject']}: {what} {row['before']}, then {row['after']}", row["exchange"]
        )
        for row in rows[:MOST_STEPS]
    )


def _numbers(rows: list[Row]) -> str:
    numbers = ", ".join(map(str, sorted({row["exchange"] for row in rows})[:8]))
    return f"number in {{{numbers}}}"


def _brokers(nodes: list[str]) -> str:
    """``broker 2``, ``brokers 2 and 3``."""
    return f"broker{'s' if len(nodes) > 1 else ''} {' and '.join(nodes)}"


def _names(rows: list[Row]) -> str:
    names = sorted({row["subject"] for row in rows})
    more = f" and {len(names) - 3} more" if len(names) > 4 else ""
    return ", ".join(names[: 3 if more else 4]) + more


@rule("leader-moved", NOTICE, CERTAIN, needs=(ClusterChanges, ClusterBrokers, Errors, Tcp), of_cluster=True)
@once_per_subject
def leader_moved(facts: Facts) -> Iterator[Finding]:
    """Partitions have another leader. A leader that returns to a broker that is back moves because that
    broker was gone."""
    back = returns(facts)
    rows = [row for row in _changes(facts, "leader-moved") if row["before"] != NOBODY]
    names = NodeNames(facts.rows(ClusterBrokers))
    of_nodes = group_rows(rows, "before", "cluster_id", "by")
    for (node, cluster, by), mine in sorted(
        of_nodes.items(), key=lambda each: (*by_node(each), each[0][2] or "")
    ):
        for burst in _bursts(mine):
            topic = _topic_of(burst)
            partitions = len({row["subject"] for row in burst})
            who = f" {by} asked for it." if by else ""
            after = sorted({row["after"] for row in burst if row["after"] != NOBODY})
            where = f" to {_brokers(after)}" if after else ", and nobody led then"
            yield facts.finding(
                FindingSubject(broker=names.of(int(node), cluster), topic=topic),
                f"The leadership of {plural(partitions, 'partition')} ({_names(burst)}) moved from broker "
                f"{node}{where}.{who}",
                count=partitions,
                measure=partitions,
                unit="partitions",
                first_ns=burst[0]["ns"],
                last_ns=burst[-1]["ns"],
                resolved_ns=burst[-1]["ns"],
                exchanges=tuple(row["exchange"] for row in burst),
                steps=_steps(burst, "leader"),
                because=_came_back(burst[0], after, back),
                filter=_numbers(burst),
            )


PREFERRED_NS = 330 * SECOND
"""How long after the return of a broker the controller may make it leader again of the partitions that prefer
it: the controller checks every 300 s (``leader.imbalance.check.interval.seconds``)."""


def _came_back(row: Row, leaders: list[str], back: list[BrokerStop]) -> str | None:
    """The key of the finding that a broker was gone, if its leaders return to it. They may return before any
    client reaches it."""
    for each in back:
        assert each.node is not None
        assert each.back_ns is not None
        is_own = leaders == [str(each.node.number)] and each.node.is_source_of(row)
        if is_own and each.last_ns < row["ns"] <= each.back_ns + PREFERRED_NS:
            return key_of("broker-gone", subject_of(each))
    return None


may_explain("broker-gone", "leader-moved", "leader-not-preferred", within_s=PREFERRED_NS / SECOND)


@rule(
    "leader-flaps",
    CRITICAL,
    CERTAIN,
    needs=(ClusterChanges, ClusterBrokers),
    of_cluster=True,
    moves=3,
    window_s=600,
)
@once_per_subject
def leader_flaps(facts: Facts) -> Iterator[Finding]:
    """The leader of a partition moves to and fro, and nobody asked for it."""
    partitions: dict[tuple[str, str | None], list[Row]] = {}
    leaders: dict[tuple[str, str | None], str] = {}
    """The last broker that led each partition. If a leader goes and comes back, it has not moved."""
    restarts = _changes(facts, "broker-gone", "broker-appeared", "broker-stopping", "broker-registered")
    for row in _changes(facts, "leader-moved"):
        is_restart = any(
            str(each["node_id"]) in (row["before"], row["after"])
            and each["cluster_id"] == row["cluster_id"]
            and abs(each["ns"] - row["ns"]) <= 3 * TOGETHER_NS
            for each in restarts
        )
        if row["after"] == NOBODY:
            continue
        partition = row["subject"], row["cluster_id"]
        before = leaders.get(partition, row["before"])
        leaders[partition] = row["after"]
        if row["by"] is None and before not in (NOBODY, row["after"]) and not is_restart:
            partitions.setdefault(partition, []).append(row)
    moves, window_ns = int(facts.limit("moves")), facts.limit("window_s") * SECOND
    for rows in partitions.values():
        near = [
            rows[at : at + moves]
            for at in range(len(rows) - moves + 1)
            if rows[at + moves - 1]["ns"] - rows[at]["ns"] <= window_ns
        ]
        if near:
            first = near[0][0]
            yield facts.finding(
                FindingSubject(topic=first["topic"], partition=first["partition"]),
                f"{first['subject']} changed its leader {len(rows)} times, and nobody asked for it.",
                count=len(rows),
                measure=len(rows),
                unit="moves",
                threshold=moves,
                first_ns=first["ns"],
                last_ns=rows[-1]["ns"],
                exchanges=tuple(row["exchange"] for row in rows),
                steps=_steps(rows, "leader"),
                filter=_numbers(rows),
            )


@rule(
    "isr-shrunk",
    WARNING,
    CERTAIN,
    needs=(ClusterChanges, ClusterBrokers, Errors, Tcp),
    of_cluster=True,
    catch_up_s=300,
)
@once_per_subject
def isr_shrunk(facts: Facts) -> Iterator[Finding]:
    """A replica is not in sync any more. If the last one goes, the partition has no leader either, and
    nothing is written that the replica could miss. A broker that somebody restarts catches up soon after it
    is back."""
    rows = [row for row in _changes(facts, "isr-shrunk") if row["after"]]
    grown = _changes(facts, "isr-grown")
    stops = gone_brokers(facts)
    restarted = restarts(facts, stops)
    catch_up_ns = facts.limit("catch_up_s") * SECOND
    names = NodeNames(facts.rows(ClusterBrokers))
    of_nodes = group_rows(rows, "node_id", "cluster_id")
    for (node, cluster), mine in sorted(of_nodes.items(), key=by_node):
        for burst in _bursts(mine):
            subjects = {row["subject"] for row in burst}
            back = [
                row
                for row in grown
                if row["subject"] in subjects
                and row["cluster_id"] == cluster
                and row["ns"] > burst[-1]["ns"]
                and str(node) in (row["after"] or "").split(",")
            ]
            is_back = {row["subject"] for row in back} == subjects
            back_ns = max(row["ns"] for row in back) if is_back else None
            is_restart = back_ns is not None and any(
                place.is_of(burst[0])
                and from_ns - TOGETHER_NS <= burst[0]["ns"] <= to_ns
                and facts.context.awake_ns(to_ns, back_ns) <= catch_up_ns
                for place, from_ns, to_ns in restarted
            )
            message = (
                f"Broker {node} fell out of sync for {plural(len(subjects), 'partition')} "
                f"({_names(burst)}): its replicas there lack what was written since"
            )
            if back_ns is not None and not facts.context.slept(burst[0]["ns"], back_ns):
                message += f", until {(back_ns - burst[0]['ns']) / 1e9:.1f} s later."
            else:
                message += "." if back_ns is None else ", until later."
            may_be_restart = (
                back_ns is not None
                and not is_restart
                and may_have_restarted(facts, stops, burst[0], back_ns, catch_up_ns)
            )
            if may_be_restart:
                message += " Bytes are missing in the capture, a restart of the broker perhaps among them."
            yield facts.finding(
                FindingSubject(broker=names.of(node, cluster), topic=_topic_of(burst)),
                message,
                severity=NOTICE if is_restart or may_be_restart else WARNING,
                count=len(subjects),
                measure=len(subjects),
                unit="partitions",
                first_ns=burst[0]["ns"],
                last_ns=back_ns if back_ns is not None else facts.context.last_ns,
                resolved_ns=back_ns,
                exchanges=tuple(row["exchange"] for row in burst),
                steps=_steps(burst, "in sync"),
                filter=_numbers(burst),
            )


@rule(
    "partition-offline",
    CRITICAL,
    CERTAIN,
    needs=(ClusterPartitions, ClusterChanges, ClusterBrokers),
    of_cluster=True,
    offline_s=5,
    young_s=10,
)
@once_per_subject
def partition_offline(facts: Facts) -> Iterator[Finding]:
    """Nobody leads a partition for a while."""
    made = {row["topic"]: row["ns"] for row in _changes(facts, "topic-created")}
    young_ns = facts.limit("young_s") * SECOND
    topics: dict[str, list[tuple[int, int, Row]]] = {}
    for row in facts.rows(ClusterPartitions):
        to_ns = row["to_ns"] if row["to_ns"] is not None else facts.context.last_ns
        if row["leader"] != -1 or to_ns is None or to_ns - row["from_ns"] < facts.limit("offline_s") * SECOND:
            continue
        if row["topic"] in made and row["from_ns"] - made[row["topic"]] < young_ns:
            continue
        if facts.context.slept(row["from_ns"], to_ns):
            facts.cannot_judge(SLEPT)
            continue
        topics.setdefault(row["topic"], []).append((to_ns - row["from_ns"], to_ns, row))
    nodes = NodeNames(facts.rows(ClusterBrokers))
    of_brokers: dict[tuple[str | None, str | None], list[str]] = {}
    for topic, found in topics.items():
        _, _, row = max(found, key=lambda each: each[0])
        led = _lost_by(facts, topic, row["from_ns"])
        broker = nodes.of(int(led), row["cluster_id"]) if led is not None else None
        of_brokers.setdefault((broker, row["cluster_id"]), []).append(topic)
    for (broker, _), names in of_brokers.items():
        if broker is not None and len(names) > FEW_TOPICS:
            every = [each for name in names for each in topics[name]]
            yield _offline(facts, FindingSubject(broker=broker), every)
            continue
        for topic in names:
            partitions = {row["partition"] for _, _, row in topics[topic]}
            partition = next(iter(partitions)) if len(partitions) == 1 else None
            subject = FindingSubject(topic=topic, partition=partition, broker=broker)
            yield _offline(facts, subject, topics[topic])


FEW_TOPICS = 3
"""The most topics without a leader that have a finding each. If more topics lost theirs with one broker, one
finding names them all."""


def _offline(facts: Facts, subject: FindingSubject, found: list[tuple[int, int, Row]]) -> Finding:
    """The finding on partitions without a leader.

    :param found: how long each had none, until when, and its row.
    """
    rows = [row for _, _, row in found]
    lasted_ns = max(ns for ns, _, _ in found)
    places = list(dict.fromkeys((row["topic"], row["partition"]) for row in rows))
    of_topics = list(dict.fromkeys(topic for topic, _ in places))
    whose = of_topics[0] if len(of_topics) == 1 else f"{len(of_topics)} topics ({named(of_topics)})"
    is_one = len(places) == 1
    name = f"{places[0][0]}-{places[0][1]}" if is_one else f"{plural(len(places), 'partition')} of {whose}"
    ends = [row["to_ns"] for row in rows]
    return facts.finding(
        subject,
        f"{name} had no leader for up to {lasted_ns / 1e9:.1f} s: nobody could write there or read from "
        f"there.{_copies(rows, is_one)}",
        count=len(found),
        measure=lasted_ns / 1e9,
        unit="s",
        threshold=facts.limit("offline_s"),
        cost_ns=lasted_ns,
        first_ns=min(row["from_ns"] for row in rows),
        last_ns=max(to_ns for _, to_ns, _ in found),
        resolved_ns=None if None in ends else max(ends),
        exchanges=tuple(row["source_exchange"] for row in rows),
        filter=showing((row["source_exchange"] for row in rows), having(topic=subject.topic)),
    )


def _copies(rows: list[Row], is_one: bool) -> str:
    """The sentence about the brokers that have copies of partitions, if they are the same for all."""
    copies = {row["replicas"] for row in rows}
    if len(copies) != 1 or not (held := next(iter(copies))):
        return ""
    if "," not in held:
        return (
            f" {'Its' if is_one else 'Their'} only {'copy is' if is_one else 'copies are'} on broker {held}."
        )
    return f" Its copies are on broker {held.replace(',', ', ')}." if is_one else ""


def _lost_by(facts: Facts, topic: str, ns: int) -> str | None:
    """The broker that led the partition last."""
    led = [
        row["before"]
        for row in _changes(facts, "leader-moved")
        if row["topic"] == topic and row["ns"] == ns and row["after"] == NOBODY
    ]
    return led[0] if led else None


@rule("unclean-election", CRITICAL, CERTAIN, needs=(ClusterChanges, Lag, ClusterBrokers), of_cluster=True)
@once_per_subject
def unclean_election(facts: Facts) -> Iterator[Finding]:
    """A replica that was not in sync becomes leader. The last known leader comes back in the same way after
    it died (KIP-966), but then no other replica has records that it lacks. Clients are told no more than who
    leads and who is in sync, and a replica may have come back in sync before. Then no consumer has to go
    back."""
    told = {row["subject"] for row in _changes(facts, "unclean-election")}
    for row, back in _went_back(facts):
        if row["subject"] in told:
            continue
        if facts.context.set_back:  # the commit may have come before the earlier offset was committed
            facts.cannot_judge(SLEPT)
            break
        yield facts.finding(
            FindingSubject(topic=row["topic"], partition=row["partition"]),
            f"Broker {row['after']} became the leader of {row['subject']}. It was not among the brokers that "
            f"were last told to be in sync. After that the group {back['group']} had to go back from offset "
            f"{back['rewound_from']:,} to {back['rewound_to']:,}: records that only other replicas had are "
            "lost.",
            confidence=LIKELY,
            first_ns=row["ns"],
            last_ns=row["ns"],
            exchanges=(row["exchange"], back["rewind_exchange"]),
            filter=f"number in {{{row['exchange']}, {back['rewind_exchange']}}}",
        )
    for row in _changes(facts, "unclean-election"):
        if _led_last(facts, row):
            continue
        yield facts.finding(
            FindingSubject(topic=row["topic"], partition=row["partition"]),
            f"Broker {row['after']} became the leader of {row['subject']} although its replica was not in "
            "sync: records that only other replicas had are lost.",
            first_ns=row["ns"],
            last_ns=row["ns"],
            exchanges=(row["exchange"],),
            filter=f"number == {row['exchange']}",
        )


BACK_NS = 60 * SECOND
"""How soon after an unclean election consumers commit that they went back. They find out with the first fetch
from the new leader, and commit every few seconds."""


def _went_back(facts: Facts) -> Iterator[tuple[Row, Row]]:
    """The moves of leaders to brokers that were not among those in sync before, each with the row of a group
    of which a consumer itself committed an earlier offset soon afterwards."""
    in_sync: dict[tuple[int, str], list[list[str]]] = {}
    for row in _changes(facts, "isr-shrunk", "isr-grown"):
        if row["before"]:
            in_sync.setdefault((row["ns"], row["subject"]), []).append(row["before"].split(","))
    back = group_rows(
        (row for row in facts.rows(Lag) if row["rewinds"] and row["rewound_by"] in row["committers"]),
        *("cluster_id", "topic", "partition"),
    )
    for moved in _changes(facts, "leader-moved"):
        known = in_sync.get((moved["ns"], moved["subject"]), ())
        if moved["after"] == NOBODY or not known or any(moved["after"] in each for each in known):
            continue
        for row in back.get((moved["cluster_id"], moved["topic"], moved["partition"]), ()):
            if row["rewind_exchange"] > moved["exchange"] and row["rewound_ns"] - moved["ns"] <= BACK_NS:
                yield moved, row
                break


def _led_last(facts: Facts, elected: Row) -> bool:
    """Whether no other broker led after the last lead of the elected broker."""
    moves = [
        row
        for row in _changes(facts, "leader-moved")
        if row["subject"] == elected["subject"] and row["ns"] < elected["ns"]
    ]
    last = max(moves, key=lambda row: row["ns"], default=None)
    return last is not None and last["after"] == NOBODY and last["before"] == elected["after"]


@rule(
    "leader-not-preferred",
    NOTICE,
    CERTAIN,
    needs=(ClusterPartitions, ClusterBrokers, ClusterChanges, Errors, Tcp),
    of_cluster=True,
    share_pct=20,
    for_s=60,
)
@once_per_subject
def leader_not_preferred(facts: Facts) -> Iterator[Finding]:
    """Many partitions are led by another broker than the preferred one. If one broker is the preferred one of
    all, it is the subject: its partitions may have moved because it was gone."""
    end_ns = facts.context.last_ns
    rows = [
        row for row in facts.rows(ClusterPartitions) if row["to_ns"] is None and row["preferred"] is not None
    ]
    if end_ns is None or len(rows) < 2:
        return
    wrong = [
        row
        for row in rows
        if not row["preferred"]
        and facts.context.awake_ns(row["from_ns"], end_ns) >= facts.limit("for_s") * SECOND
    ]
    share = 100 * len(wrong) / len(rows)
    if share >= facts.limit("share_pct"):
        leaders = sorted({row["leader"] for row in wrong})
        first = {(row["replicas"] or "").partition(",")[0] for row in wrong}
        from_ns = min(row["from_ns"] for row in wrong)
        cause = _gone_before(facts, from_ns, first)
        only = next(iter(first)) if len(first) == 1 else ""
        nodes = NodeNames(facts.rows(ClusterBrokers))
        yield facts.finding(
            FindingSubject(broker=nodes.of(int(only), wrong[0]["cluster_id"]) if only else None),
            f"{len(wrong)} of {len(rows)} partitions ({share:.0f} %) had a leader other than their first "
            f"replica for {facts.limit('for_s'):.0f} s or longer: more work than planned lies on "
            f"{_brokers(list(map(str, leaders)))}.",
            count=len(wrong),
            measure=share,
            unit="%",
            threshold=facts.limit("share_pct"),
            first_ns=from_ns,
            last_ns=end_ns,
            because=cause,
            exchanges=tuple(row["source_exchange"] for row in wrong),
        )


def _gone_before(facts: Facts, from_ns: int, preferred: set[str]) -> str | None:
    """The key of the finding that a broker was gone, if it may be one of the preferred leaders. If brokers
    are named by host, the capture may not tell which node a broker is."""
    stops = gone_brokers(facts)
    for each in stops:
        may_lead = (
            len(stops) == 1 if each.node is None else not preferred.isdisjoint((str(each.node.number), ""))
        )
        if may_lead and each.first_ns <= from_ns:
            return key_of("broker-gone", subject_of(each))
    return None


@rule("config-changed", INFO, CERTAIN, needs=(ClusterChanges, ClusterBrokers), of_cluster=True)
@once_per_subject
def config_changed(facts: Facts) -> Iterator[Finding]:
    """Somebody changed settings, permissions or topics."""
    asked: dict[str, list[Row]] = {}
    for row in _changes(
        facts,
        *("config-changed", "quota-changed", "feature-changed", "acl-changed", "topic-created"),
        *("topic-deleted", "partitions-added", "replicas-changed"),
    ):
        is_own = row["topic"] in INTERNAL  # topics that brokers create
        if row["by"] is not None and row["told_by"] != "Metadata" and not is_own:
            asked.setdefault(row["by"], []).append(row)
    for by, rows in sorted(asked.items()):
        kinds: dict[str, int] = {}
        for row in rows:
            kinds[row["what"]] = kinds.get(row["what"], 0) + 1
        told = ", ".join(f"{what} {count}" if count > 1 else what for what, count in kinds.items())
        name, _, host = by.rpartition("@")
        yield facts.finding(
            FindingSubject(client=host.rstrip(")"), client_id=name.rpartition("(")[2] or None),
            f"{by} changed the cluster: {told}.",
            count=len(rows),
            measure=len(rows),
            unit="changes",
            first_ns=rows[0]["ns"],
            last_ns=rows[-1]["ns"],
            exchanges=tuple(row["exchange"] for row in rows),
            steps=tuple(
                EvidenceStep(row["ns"], f"{row['what']}: {row['subject']}", row["exchange"])
                for row in rows[:MOST_STEPS]
            ),
            filter=_numbers(rows),
        )


@rule("topic-created-by-metadata", NOTICE, CERTAIN, needs=(ClusterChanges, ClusterBrokers), of_cluster=True)
@once_per_subject
def topic_created_by_metadata(facts: Facts) -> Iterator[Finding]:
    """A topic was created because a client asked for its metadata."""
    for row in _changes(facts, "topic-created"):
        if row["by"] is None or row["told_by"] != "Metadata":
            continue
        name, _, host = row["by"].rpartition("@")
        yield facts.finding(
            FindingSubject(
                topic=row["topic"], client=host.rstrip(")"), client_id=name.rpartition("(")[2] or None
            ),
            f"{row['by']} used the topic {row['topic']}, which did not exist, and soon it did. The capture "
            "shows nobody who asked to create it: brokers do so by themselves.",
            first_ns=row["ns"],
            last_ns=row["ns"],
            exchanges=(row["exchange"],),
            filter=showing((row["exchange"],), having(topic=row["topic"], api="Metadata")),
        )


@rule(
    "stale-leader",
    WARNING,
    CERTAIN,
    needs=(StaleLeaders, ClusterPartitions, ClusterBrokers),
    refusals=5,
    for_s=2,
    at_once_ms=300,
)
@once_per_subject
def stale_leader(facts: Facts) -> Iterator[Finding]:
    """A client goes on asking a broker that does not lead, or asks with what it knew before the last
    election."""
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    held = group_rows(facts.rows(ClusterPartitions), "topic", "partition")
    for row in facts.rows(StaleLeaders):
        asked = nodes.get(row["broker"])
        known = [
            each
            for each in held.get((row["topic"], row["partition"]), ())
            if (asked is None or asked.is_source_of(each))
            and each["from_ns"] <= row["last_ns"]
            and each["leader"] is not None
            and each["leader"] >= 0
        ]
        lasted_ns = row["last_ns"] - row["first_ns"]
        told_ns = max((each["from_ns"] for each in known), default=None)
        after_ns = row["last_ns"] - told_ns if told_ns is not None else 0
        if lasted_ns < facts.limit("at_once_ms") * MILLISECOND:
            continue  # these requests were sent together, and the client learns of the move by the refusal
        if row["sent_ns"] is not None and row["sent_ns"] <= row["first_ns"]:
            continue  # all were sent before the first refusal came; a throttled client gets refusals late
        is_long = row["refusals"] >= 2 and after_ns >= facts.limit("for_s") * SECOND
        if row["refusals"] < facts.limit("refusals") and not is_long:
            continue
        name = row["client_id"] or row["client"]
        leader = known[-1]["leader"] if known else None
        leads = any(
            asked is not None
            and each["leader"] == asked.number
            and (each is known[-1] or each["from_ns"] > row["first_ns"])
            for each in known
        )
        if leads and row["error"] not in _EPOCH_WORDS:
            continue  # the right broker, which does not know yet that it leads, or led in between
        led = f"; the leader was broker {leader}" if leader is not None else ""
        refused = _EPOCH_WORDS.get(row["error"], f"which that broker does not lead{led}")
        yield facts.finding(
            FindingSubject(
                client=row["client"],
                client_id=row["client_id"],
                topic=row["topic"],
                partition=row["partition"],
            ),
            f"{name} asked {row['broker']} {row['refusals']} times in {lasted_ns / 1e9:.1f} s "
            f"{'to write to' if row['api'] == 'Produce' else 'for records of'} "
            f"{row['topic']}-{row['partition']}, {refused}.",
            count=row["refusals"],
            measure=row["refusals"],
            unit="refusals",
            threshold=facts.limit("refusals"),
            cost_ns=lasted_ns,
            first_ns=row["first_ns"],
            last_ns=row["last_ns"],
            exchanges=tuple(row["exchanges"]),
            filter=having(error=row["error"], topic=row["topic"], client_id=row["client_id"]),
        )


_EPOCH_WORDS = {
    "FENCED_LEADER_EPOCH": "and did not know that its leader had been elected anew since",
    "UNKNOWN_LEADER_EPOCH": "whose newest election of a leader the client knew and that broker did not",
}
"""Words for refusals because of the leader epoch that the client names (KIP-320). The broker may well lead
the partition."""

explains("broker-gone", "leader-moved", "isr-shrunk", "partition-offline", shares=("broker",), within_s=60)
explains("broker-gone", "stale-leader", within_s=60)
explains("leader-moved", "stale-leader", shares=("topic",), within_s=60)
explains("leader-moved", "latency-spike", within_s=5)
explains("broker-stalled", "isr-shrunk", "leader-moved", "stale-leader", within_s=30)
explains("log-dir-offline", "isr-shrunk", "leader-moved", "partition-offline", shares=("broker",))
