"""Rules on brokers and controllers: stopped, stalled and fenced brokers, and elections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.analysis.broker_clocks import BrokerClocks
from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges
from kdissect.analysis.cluster_nodes import HEARTBEAT
from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.leaderless import PATIENCE_NS
from kdissect.analysis.producers import Producers
from kdissect.analysis.quorum import CAUGHT_UP, Quorum
from kdissect.analysis.speakers import address
from kdissect.analysis.stalls import Stalls
from kdissect.analysis.tcp import Tcp
from kdissect.insight.broker_stops import (
    FAILED,
    MANY_TRIES,
    BrokerStop,
    LostBroker,
    closed_listeners,
    gone_brokers,
    is_of_quorum,
    may_hide_farewell,
    subject_of,
)
from kdissect.insight.causes import explains, may_explain
from kdissect.insight.context import SLEPT
from kdissect.insight.cut_links import OUTAGE, CutLink, cut_links
from kdissect.insight.finding import (
    CERTAIN,
    CRITICAL,
    INFO,
    LIKELY,
    NOTICE,
    POSSIBLE,
    WARNING,
    EvidenceStep,
    Finding,
    FindingSubject,
    key_of,
)
from kdissect.insight.grouping import group_rows
from kdissect.insight.nodes import (
    ClusterNode,
    NodeNames,
    addresses_of,
    are_several_clusters,
    by_node,
    nodes_by_address,
)
from kdissect.insight.repeated import once_per_subject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.rules.latency import of_one_broker, stalls
from kdissect.insight.words import named, quoted, showing, span
from kdissect.names import METADATA_TOPIC
from kdissect.wording import plural


@rule(
    "broker-gone",
    CRITICAL,
    CERTAIN,
    needs=(Tcp, ClusterBrokers, ClusterChanges, Errors, Connections),
    together_s=1,
    patience_s=30,
    stopping_s=60,
    tries=1,
    orderly_s=300,
)
@once_per_subject
def broker_gone(facts: Facts) -> Iterator[Finding]:
    """All connections of a broker end at once, and no client reaches it afterwards."""
    for stop in gone_brokers(facts):
        yield _gone(facts, stop)


@rule("listener-gone", CRITICAL, CERTAIN, needs=(Tcp, ClusterBrokers, ClusterChanges, Errors))
@once_per_subject
def listener_gone(facts: Facts) -> Iterator[Finding]:
    """All connections to one listener of a broker end, and no client reaches it afterwards; other listeners
    go on."""
    names = NodeNames(facts.rows(ClusterBrokers))
    for lost, place, other in closed_listeners(facts):
        subject = FindingSubject(broker=names.at(place, lost.address))
        back = "" if lost.back_ns is None else " Later it was there again."
        yield facts.finding(
            subject,
            f"Broker {place.number} no longer takes connections at {lost.address}: {_ended(lost.ended, 0)}, "
            f"and {plural(lost.failed, 'later try', 'later tries')} to connect failed. The broker itself "
            f"runs: it went on to answer at {other}.{back}",
            subject_text=subject.text(lost.address),
            count=lost.failed,
            measure=lost.failed,
            unit="tries",
            first_ns=lost.last_ns,
            last_ns=lost.back_ns if lost.back_ns is not None else facts.context.last_ns,
            resolved_ns=lost.back_ns,
            connections=lost.connections,
            filter=f'broker == "{lost.address}"',
        )


def _not_known(facts: Facts, several: list[LostBroker]) -> str | None:
    """Why nobody knows what a broker did before its connections ended; None if that is known. The numbers of
    only the first connections that are cut or one-sided are known."""
    own = {number for each in several for number in each.connections}
    if may_hide_farewell(facts, several):
        return "packets are cut or missing"  # the last answers, too
    if any(
        some.number > len(some.first) or not own.isdisjoint(some.first)
        for some in (facts.context.cut, facts.context.with_one_side)
    ):
        return "packets are cut or missing"
    if facts.context.incomplete & {ClusterBrokers.name, ClusterChanges.name}:
        return "the tables of the cluster had no room for all rows"
    return None


def _gone(facts: Facts, stop: BrokerStop) -> Finding:
    several, _, node, first_ns, last_ns, back_ns, before, after, is_orderly, away_ns, moved_to, gave_up = (
        stop[:12]
    )
    first = several[0]
    ended, failed = sum(each.ended for each in several), sum(each.failed for each in several)
    kind = "controller" if stop.is_controller else "broker"
    name = f"{kind.capitalize()} {node.number}" if node is not None else f"The {kind} at {first.address}"
    tries = plural(failed, "later try", "later tries")
    took_ns = last_ns - min(each.last_ns for each in several)
    message = f"{name} is gone: {_ended(ended, took_ns)}, and "
    message += (
        f"{tries} to connect failed."
        if failed
        else "the cluster said that it stops or is not there any more."
    )
    if before and is_orderly:
        message += " It had handed over its partitions before, so somebody stopped it in an orderly way."
    elif gave_up:
        message += (
            " It had answered before that it no longer leads what clients asked for, so somebody stopped it "
            "in an orderly way."
        )
    elif is_orderly:
        message += " It had said before that it would stop."
    elif stop.refused_last:
        message += (
            " Shortly before, it had answered that it no longer leads what clients asked for last, as a "
            "broker does that somebody stops."
        )
    elif before or after:
        message += f" {plural(len(before or after), 'partition')} had to get another leader."
    if back_ns is not None and away_ns is not None:
        is_sure = away_ns == back_ns - last_ns
        message += f" It came back {f'{away_ns / 1e9:.1f} s ' if is_sure else ''}later"
        message += f" at another address, {moved_to}." if moved_to is not None else "."
    steps = [EvidenceStep(last_ns, f"{ended} of its connections had ended")]
    steps += [
        EvidenceStep(
            row["ns"], f"{row['subject']}: leader {row['before']}, then {row['after']}", row["exchange"]
        )
        for row in (*before, *after)[:5]
    ]
    if back_ns is not None:
        where = f" at {moved_to}" if moved_to is not None else ""
        steps.append(EvidenceStep(back_ns, f"it is back{where}"))
    subject = subject_of(stop)
    severity = CRITICAL
    unknown = None if is_orderly or before else _not_known(facts, several)
    if unknown is not None and away_ns is not None and away_ns <= facts.limit("orderly_s") * SECOND:
        facts.cannot_judge(f"{unknown}, so nobody knows whether a broker was stopped in an orderly way")
        severity = NOTICE
    elif away_ns is None and node is None and facts.context.incomplete & {ClusterBrokers.name, Tcp.name}:
        facts.cannot_judge("the tables had no room for all rows, so nobody knows whether a broker is back")
        severity = WARNING
    elif away_ns is not None and (before or is_orderly):
        is_short = away_ns <= facts.limit("orderly_s") * SECOND
        severity = NOTICE if is_orderly and is_short else WARNING
    elif stop.refused_last and away_ns is not None and away_ns <= facts.limit("orderly_s") * SECOND:
        severity = WARNING  # it seems that somebody restarted it
    elif is_orderly and not failed:
        severity = WARNING  # no client was seen to miss it
    return facts.finding(
        subject,
        message,
        severity=severity,
        confidence=LIKELY if severity == WARNING and stop.refused_last else CERTAIN,
        subject_text=subject.text(first.address),
        count=max(1, failed),
        measure=None if away_ns is None else away_ns / 1e9,
        unit="s",
        cost_ns=away_ns,
        first_ns=first_ns,
        last_ns=back_ns if back_ns is not None else facts.context.last_ns,
        resolved_ns=back_ns,
        connections=tuple(number for each in several for number in each.connections),
        exchanges=tuple(row["exchange"] for row in (*before, *after)),
        steps=tuple(sorted(steps)),
        filter=showing((row["exchange"] for row in (*before, *after)), f'broker == "{first.address}"'),
        **(_CONTROLLER if stop.is_controller else {}),
    )


_CONTROLLER: dict[str, Any] = {
    "cause": "The process of the controller ended (it was killed, it crashed, the machine went down), or it "
    "was stopped on purpose. The other controllers elect a new leader within seconds, as long as more than "
    "half of them are there.",
    "fix": "Look at the log of that controller and of its machine at that time (out of memory, disk, a "
    "deployment). Start it again before another one goes: with half of the controllers or fewer nothing in "
    "the cluster can change. Run three or five of them, on machines of their own, and restart one at a time.",
}


def _ended(count: int, took_ns: int) -> str:
    within = "a second" if took_ns <= SECOND else f"{took_ns / 1e9:.1f} s"
    return "its only connection ended" if count == 1 else f"its {count} connections ended within {within}"


def _changes(facts: Facts, *what: str) -> list[Row]:
    return [row for row in facts.rows(ClusterChanges) if row["what"] in what]


@rule("controller-moved", NOTICE, CERTAIN, needs=(ClusterChanges, ClusterBrokers))
@once_per_subject
def controller_moved(facts: Facts) -> Iterator[Finding]:
    """Another node is the controller."""
    names = NodeNames(facts.rows(ClusterBrokers))
    for row in _changes(facts, "controller-moved"):
        before, after = (names.of(int(row[each]), row["cluster_id"]) for each in ("before", "after"))
        yield facts.finding(
            FindingSubject(broker=after),
            f"Node {row['after']} became the controller of the cluster instead of node {row['before']}.",
            because=key_of("broker-gone", FindingSubject(broker=before)),
            first_ns=row["ns"],
            last_ns=row["ns"],
            exchanges=(row["exchange"],),
            steps=(
                EvidenceStep(row["ns"], f"controller {row['before']}, then {row['after']}", row["exchange"]),
            ),
            filter=f"number == {row['exchange']}",
        )


@rule("broker-restarted", INFO, CERTAIN, needs=(ClusterChanges, ClusterBrokers))
@once_per_subject
def broker_restarted(facts: Facts) -> Iterator[Finding]:
    """A broker registers again."""
    rows = _changes(facts, "broker-registered", "broker-refused")
    names = NodeNames(facts.rows(ClusterBrokers))
    for (node, cluster), mine in sorted(group_rows(rows, "node_id", "cluster_id").items(), key=by_node):
        for at, row in enumerate(mine):
            if row["what"] != "broker-registered":
                continue
            refused = [each for each in mine[:at] if each["what"] == "broker-refused"]
            lost_ns = row["ns"] - refused[0]["ns"] if refused else None
            message = f"Broker {node} restarted."
            if lost_ns is not None:
                message += (
                    f" The controller refused it for {lost_ns / 1e9:.1f} s, because the session of its "
                    "earlier start had not ended."
                )
            yield facts.finding(
                FindingSubject(broker=names.of(node, cluster)),
                message,
                measure=None if lost_ns is None else lost_ns / 1e9,
                unit="s",
                cost_ns=lost_ns,
                first_ns=refused[0]["ns"] if refused else row["ns"],
                last_ns=row["ns"],
                exchanges=(*(each["exchange"] for each in refused), row["exchange"]),
                filter=f"number == {row['exchange']}",
            )


@rule("broker-fenced", CRITICAL, CERTAIN, needs=(ClusterChanges, ClusterBrokers, Quorum))
@once_per_subject
def broker_fenced(facts: Facts) -> Iterator[Finding]:
    """The controller fences a broker that has not stopped."""
    beats = {row["node"]: row for row in facts.rows(Quorum)}
    names = NodeNames(facts.rows(ClusterBrokers))
    for row in _changes(facts, "broker-fenced"):
        if row["after"] != "alive":
            continue
        beat = beats.get(row["node_id"], {})
        gap_ns = beat.get("heartbeat_max_ns") or 0
        if gap_ns >= 4.5 * SECOND:
            why = f" One of its heartbeats came {gap_ns / 1e9:.1f} s after the one before."
        else:
            why = " Its heartbeats came in time." if beat.get("heartbeats") else ""
        if names.are_several(row["node_id"]):
            gap_ns, why = 0, ""  # heartbeats do not name their cluster
        until_ns = next(
            (
                each["ns"]
                for each in _changes(facts, "broker-unfenced")
                if each["ns"] > row["ns"]
                and (each["node_id"], each["cluster_id"]) == (row["node_id"], row["cluster_id"])
            ),
            None,
        )
        lives = (
            "is alive and sends heartbeats"
            if row["told_by"] == HEARTBEAT
            else "had not stopped: later it went on with the same epoch"
        )
        yield facts.finding(
            FindingSubject(broker=names.of(row["node_id"], row["cluster_id"])),
            f"The controller fenced broker {row['node_id']}, although the broker {lives}.{why}",
            measure=gap_ns / 1e9,
            unit="s",
            first_ns=row["ns"],
            last_ns=until_ns if until_ns is not None else row["ns"],
            resolved_ns=until_ns,
            exchanges=(row["exchange"],),
            filter="api == BrokerHeartbeat",
        )


@rule("log-dir-offline", CRITICAL, CERTAIN, needs=(ClusterChanges, ClusterBrokers, Errors))
@once_per_subject
def log_dir_offline(facts: Facts) -> Iterator[Finding]:
    """A broker reports a failed disk to the controller, or tells clients that it cannot read or write
    there."""
    names = NodeNames(facts.rows(ClusterBrokers))
    nodes = group_rows(_changes(facts, "log-dirs-offline"), "node_id", "cluster_id")
    for (node, cluster), rows in sorted(nodes.items(), key=by_node):
        count = max(int(row["after"]) for row in rows)
        yield facts.finding(
            FindingSubject(broker=names.of(node, cluster)),
            f"Broker {node} says that {plural(count, 'log directory', 'log directories')} of it failed: "
            "the replicas there cannot be read or written.",
            count=len(rows),
            measure=count,
            unit="directories",
            first_ns=rows[0]["ns"],
            last_ns=rows[-1]["ns"],
            exchanges=tuple(row["exchange"] for row in rows),
            filter="api == BrokerHeartbeat",
        )
    known = nodes_by_address(facts.rows(ClusterBrokers))
    refused = [row for row in facts.rows(Errors) if row["error"] == "KAFKA_STORAGE_ERROR" and row["broker"]]
    for (broker,), rows in group_rows(refused, "broker").items():
        place = known.get(broker)
        if place is not None and any((place.number, each) in nodes for each in place.clusters):
            continue
        subject = FindingSubject(broker=names.at(place, broker) if place is not None else broker)
        places = named(sorted({_place(row) for row in rows if row["topic"]}))
        answers = plural(sum(row["count"] for row in rows), "time")
        yield facts.finding(
            subject,
            f"{subject.text(broker).capitalize()} answered {answers} that a disk of it failed "
            f"(KAFKA_STORAGE_ERROR){f', for {places}' if places else ''}: it cannot read or write there.",
            subject_text=subject.text(broker),
            count=sum(row["count"] for row in rows),
            measure=sum(row["count"] for row in rows),
            unit="answers",
            first_ns=min(row["first_ns"] for row in rows),
            last_ns=max(row["last_ns"] for row in rows),
            exchanges=tuple(row["first_exchange"] for row in rows),
            filter=f'broker == "{broker}" and error == KAFKA_STORAGE_ERROR',
        )


def _place(row: Row) -> str:
    """The topic or partition that an error is about."""
    return str(row["topic"]) if row["partition"] is None else f"{row['topic']}-{row['partition']}"


@rule("heartbeat-late", NOTICE, CERTAIN, needs=(Quorum, Stalls, Tcp, ClusterBrokers), gap_s=4.5)
@once_per_subject
def heartbeat_late(facts: Facts) -> Iterator[Finding]:
    """The heartbeats of a broker come late."""
    if facts.context.gap_bytes:
        facts.cannot_judge("bytes are missing in the capture, heartbeats perhaps among them")
        return
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    names, links = NodeNames(facts.rows(ClusterBrokers)), cut_links(facts)
    stood = of_one_broker(stalls(facts), nodes)
    for row in facts.rows(Quorum):
        if names.are_several(row["node"]):
            facts.cannot_judge(TWO_CLUSTERS)
            continue
        gap_ns, from_ns = row["heartbeat_max_ns"] or 0, row["heartbeat_gap_ns"]
        stalled = _stalled_broker(row, stood, nodes, facts.rows(ClusterBrokers))
        if gap_ns >= facts.limit("gap_s") * SECOND:
            yield facts.finding(
                FindingSubject(broker=str(row["node"])),
                f"{gap_ns / 1e9:.1f} s passed between two heartbeats of broker {row['node']} to the "
                "controller; 2 s are usual, and after 9 s the controller fences it.",
                count=max(1, row["heartbeat_late"]),
                measure=gap_ns / 1e9,
                unit="s",
                threshold=facts.limit("gap_s"),
                first_ns=from_ns,
                last_ns=from_ns + gap_ns if from_ns is not None else None,
                because=key_of("broker-stalled", FindingSubject(broker=stalled))
                if stalled is not None
                else _outage(links, row["node"], from_ns, gap_ns) or _leaderless(row),
                filter="api == BrokerHeartbeat",
            )


def _stalled_broker(
    row: Row, stood: dict[str, list[Row]], nodes: dict[str, ClusterNode], told: list[Row]
) -> str | None:
    """The broker that stood still while the heartbeats of a node did not come: the node itself, or another
    one for nearly all of the time. That other one may be the controller, or the node at an address that the
    cluster does not tell.

    :param told: rows of :class:`ClusterBrokers`.
    """
    gap_ns, from_ns = row["heartbeat_max_ns"] or 0, row["heartbeat_gap_ns"]
    if from_ns is None:
        return None
    clusters = {each["cluster_id"] for each in told if each["node_id"] == row["node"]}
    node = ClusterNode(row["node"], frozenset(clusters)) if clusters else None
    several = are_several_clusters(told)
    own, others = [], []
    for broker, rows in stood.items():
        place = nodes.get(broker)
        shared_ns = max(min(each["to_ns"], from_ns + gap_ns) - max(each["from_ns"], from_ns) for each in rows)
        if place is not None and place.number == row["node"] and shared_ns >= 0:
            own.append((-shared_ns, broker))
        elif 10 * shared_ns < 8 * gap_ns:
            continue
        elif not several or (node is not None and place is not None and place.may_meet(node)):
            others.append((-shared_ns, broker))
    return min(own or others, default=(0, None))[1]


def _own_stall(
    node: int, from_ns: int | None, length_ns: int, stood: dict[str, list[Row]], nodes: dict[str, ClusterNode]
) -> str | None:
    """The key of the finding that a node stood still for most of this time."""
    for broker, rows in stood.items():
        place = nodes.get(broker)
        if from_ns is None or place is None or place.number != node:
            continue
        for each in rows:
            if 2 * (min(each["to_ns"], from_ns + length_ns) - max(each["from_ns"], from_ns)) >= length_ns:
                return key_of("broker-stalled", FindingSubject(broker=broker))
    return None


def _leaderless(row: Row) -> str | None:
    """The key of the finding that the controllers had no leader, if that was so for most of the longest time
    without a heartbeat of a node. A broker asks the other controllers in vain then."""
    gap_ns, from_ns, alone_ns = row["heartbeat_max_ns"], row["heartbeat_gap_ns"], row["leaderless_from_ns"]
    if from_ns is None or alone_ns is None:
        return None
    shared_ns = min(from_ns + gap_ns, alone_ns + row["leaderless_ns"]) - max(from_ns, alone_ns)
    return key_of("election-storm", FindingSubject()) if 2 * shared_ns >= gap_ns else None


TWO_CLUSTERS = "nodes of two clusters have the same number, and their messages do not name the cluster"


def _outage(links: list[CutLink], node: int, from_ns: int | None, gap_ns: int) -> str | None:
    """The key of the finding that the network between a broker and its controllers was interrupted. Links of
    the broker are found by its client ids; the plain node number is the first that is looked up."""
    if from_ns is None:
        return None
    for client_id in (str(node), f"raft-client-{node}"):
        for link in links:
            if link.is_of(client_id, from_ns, from_ns + gap_ns):
                return key_of(OUTAGE, link.subject)
    return None


@rule(
    "election-storm",
    CRITICAL,
    CERTAIN,
    needs=(Quorum, Tcp, ClusterBrokers, ClusterChanges, Errors),
    elections=4,
    leaderless_s=5,
)
@once_per_subject
def election_storm(facts: Facts) -> Iterator[Finding]:
    """The controllers elect a leader again and again, or have none."""
    rows = facts.rows(Quorum)
    names = NodeNames(facts.rows(ClusterBrokers))
    if any(names.are_several(row["node"]) for row in rows):
        facts.cannot_judge(TWO_CLUSTERS)
        return
    most = max((row["elections_60s"] for row in rows), default=0)
    alone = max(((row["leaderless_ns"] or 0, row["leaderless_from_ns"]) for row in rows), default=(0, None))
    leaderless_s = alone[0] / SECOND
    if most >= facts.limit("elections"):
        told = ", ".join(
            f"node {row['node']} asked in {plural(row['elections'], 'election')}"
            for row in rows
            if row["elections"]
        )
        yield facts.finding(
            FindingSubject(),
            f"The controllers held {most} elections within a minute: {told}. Without a leader of the "
            "controllers nothing in the cluster can change: no topic and no partition leader.",
            count=most,
            measure=most,
            unit="elections in 60 s",
            threshold=facts.limit("elections"),
            filter="api in {Vote, BeginQuorumEpoch}",
        )
    elif leaderless_s >= facts.limit("leaderless_s"):
        if facts.context.gap_bytes:
            facts.cannot_judge("bytes are missing in the capture, answers of the leader perhaps among them")
            return
        from_ns = alone[1] or 0
        shut, is_whole = _shut(facts, from_ns, from_ns + alone[0])
        if not _was_led(facts, rows, from_ns) and _named_leaders(facts).isdisjoint(_refusing(facts, shut)):
            facts.cannot_judge("the capture does not show whether the leader of the controllers is there")
            return
        when = "In that time" if is_whole else "For most of that time"
        away = f" {when} nobody took connections at {named(sorted(shut))}." if shut else ""
        yield facts.finding(
            FindingSubject(),
            f"The controllers had no leader for {leaderless_s:.1f} s: all followers that fetched the log of "
            "metadata were told to ask another node. Until there is a leader nothing in the cluster can "
            f"change: no topic and no partition leader.{away}",
            connections=[number for numbers in shut.values() for number in numbers],
            because=_lost_leader(facts, from_ns),
            measure=leaderless_s,
            unit="s",
            threshold=facts.limit("leaderless_s"),
            first_ns=from_ns,
            last_ns=from_ns + alone[0],
            cause="Most of the controllers are gone, stand still, or do not reach each other: a leader needs "
            "the votes of more than half of them.",
            fix="Start the controllers that are gone: more than half of them must run. If they run, look at "
            "the network between them, and for pauses of their processes and disks.",
            filter="api in {Vote, BeginQuorumEpoch} or error == NOT_LEADER_OR_FOLLOWER and topic == "
            f"{quoted(METADATA_TOPIC)}",
        )


def _shut(facts: Facts, from_ns: int, to_ns: int) -> tuple[dict[str, list[int]], bool]:
    """The addresses where nobody took connections for most of a time, though nodes tried to connect often,
    with the numbers of these connections; and whether nobody did for all of it. A host that runs clients of
    the metadata log is that of a node."""
    rows = [row for row in facts.rows(Tcp) if row["first_ns"] <= to_ns and row["last_ns"] >= from_ns]
    hosts = {address(row["client"]) for row in rows if is_of_quorum(row["client_id"])}
    tried: dict[str, list[int]] = {}
    taken_ns: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: row["connection"]):
        broker = row["broker"]
        if row["opening"] not in FAILED:
            if row["last_ns"] - from_ns > SECOND:
                taken_ns[broker] = min(row["first_ns"], taken_ns.get(broker, to_ns))
        elif row["first_ns"] >= from_ns and address(row["client"]) in hosts:
            tried.setdefault(broker, []).append(row["connection"])
    shut = {
        each: found
        for each, found in tried.items()
        if len(found) >= MANY_TRIES and 2 * (taken_ns.get(each, to_ns) - from_ns) >= to_ns - from_ns
    }
    return shut, taken_ns.keys().isdisjoint(shut)


def _refusing(facts: Facts, shut: dict[str, list[int]]) -> set[str]:
    """The addresses where nobody listens: the machine itself refused connections."""
    return {row["broker"] for row in facts.rows(Tcp) if row["opening"] == "refused" and row["broker"] in shut}


def _was_led(facts: Facts, rows: list[Row], from_ns: int) -> bool:
    """Whether the capture shows the leader before the time without one. If that time begins with the capture,
    nodes were sent to a leader that the capture need not show."""
    first_ns = facts.context.first_ns
    begins = first_ns is not None and from_ns - first_ns <= PATIENCE_NS
    return not begins and any(row["epoch"] is not None for row in rows)


def _named_leaders(facts: Facts) -> set[str]:
    """The addresses of nodes that were named as the leader of the controllers."""
    return {place for row in facts.rows(ClusterBrokers) if row["controller"] for place in addresses_of(row)}


def _lost_leader(facts: Facts, from_ns: int) -> str | None:
    """The key of the finding that a controller is gone since the time when followers were last served."""
    for stop in gone_brokers(facts):
        if stop.is_controller and abs(stop.last_ns - from_ns) <= SECOND:
            return key_of("broker-gone", subject_of(stop))
    return None


@rule(
    "voter-behind",
    WARNING,
    CERTAIN,
    needs=(Quorum, ClusterBrokers, Stalls, Tcp),
    offsets=1000,
    lag_s=5,
    lasting_s=2,
    stopped_s=2,
)
@once_per_subject
def voter_behind(facts: Facts) -> Iterator[Finding]:
    """A controller does not keep up with the log of metadata."""
    names = NodeNames(facts.rows(ClusterBrokers))
    closed = group_rows((row for row in facts.rows(Tcp) if row["closed_ns"] is not None), "client_id")
    links = cut_links(facts)
    nodes = nodes_by_address(facts.rows(ClusterBrokers))
    stood = of_one_broker(stalls(facts), nodes)
    for row in facts.rows(Quorum):
        if row["role"] not in ("voter", "follower", "leader") or (
            row["role"] == "follower" and row["heartbeats"]
        ):
            continue  # as far as is known, a broker
        if names.are_several(row["node"]):
            facts.cannot_judge(TWO_CLUSTERS)
            continue
        lacked, from_ns = row["behind_max_offsets"] or 0, row["behind_from_ns"]
        length_ns = row["behind_max_ns"] or 0
        # A controller that has just started or joined lacks many records, but only until its next Fetch.
        is_much = lacked >= facts.limit("offsets") and length_ns >= facts.limit("lasting_s") * SECOND
        if not is_much and length_ns < facts.limit("lag_s") * SECOND:
            continue
        stopped_ns = facts.limit("stopped_s") * SECOND
        if from_ns is not None and any(
            abs(each["closed_ns"] - from_ns) <= stopped_ns
            for each in closed.get((f"raft-client-{row['node']}",), ())
        ):
            continue  # it was stopped, or cut off; other findings report that
        still = bool(row["lag_offsets"] and row["lag_offsets"] > CAUGHT_UP)
        last_ns = from_ns + length_ns if from_ns is not None else None
        if still:
            last_ns = facts.context.last_ns
        if from_ns is not None and facts.context.first_ns is not None:
            from_ns = max(from_ns, facts.context.first_ns)
        yield facts.finding(
            FindingSubject(broker=str(row["node"])),
            f"Node {row['node']} was behind the cluster's metadata for {length_ns / SECOND:.1f} s and lacked "
            f"up to {plural(lacked, 'record')} of it{' when it was last seen' if still else ''}.",
            measure=lacked,
            unit="records",
            threshold=facts.limit("offsets"),
            first_ns=from_ns,
            last_ns=last_ns,
            resolved_ns=None if still else last_ns,
            because=_outage(links, row["node"], from_ns, length_ns)
            or _own_stall(row["node"], from_ns, length_ns, stood, nodes),
            exchanges=[row["behind_exchange"]] if row["behind_exchange"] is not None else [],
            filter="api == Fetch and topic == __cluster_metadata",
        )


explains("broker-stalled", "broker-fenced", "controller-moved", within_s=30)
may_explain("broker-stalled", "heartbeat-late", "voter-behind", within_s=30)
explains("election-storm", "heartbeat-late", "controller-moved", "broker-fenced", within_s=30)
explains("log-dir-offline", "broker-gone", shares=("broker",))
explains("broker-gone", "broker-restarted", shares=("broker",), within_s=60)
explains("broker-gone", "controller-moved", "election-storm", "heartbeat-late", within_s=60)
explains("broker-gone", "request-abandoned", "head-of-line", "latency-spike", within_s=60)
explains("broker-gone", "heartbeat-late", same=("broker",), at_once=True)
explains("heartbeat-late", "broker-fenced", shares=("broker",))
may_explain(OUTAGE, "heartbeat-late", "voter-behind", within_s=30)
explains("broker-fenced", "leader-moved", "isr-shrunk", shares=("broker",), within_s=10)
explains("broker-fenced", "request-abandoned", "head-of-line", "latency-spike", within_s=30)


@rule(
    "broker-clock",
    WARNING,
    LIKELY,
    needs=(BrokerClocks, ClusterBrokers, Producers),
    seconds=5,
    answers=10,
    agree_s=1,
)
def broker_clock(facts: Facts) -> Iterator[Finding]:
    """The clock of a broker differs from that of the capture. If another broker or the producers agree with
    the capture, the broker's clock is the wrong one."""
    rows = [row for row in facts.rows(BrokerClocks) if row["answers"] >= facts.limit("answers")]
    nodes, names = nodes_by_address(facts.rows(ClusterBrokers)), NodeNames(facts.rows(ClusterBrokers))
    for row in rows:
        ms = _difference_ms(row)
        if abs(ms) < facts.limit("seconds") * 1000:
            continue
        if facts.context.set_back or facts.context.ends_earlier:
            facts.cannot_judge(SLEPT)
            continue
        place = row["broker"]
        node = nodes.get(place)
        subject = FindingSubject(broker=place if node is None else names.at(node, place))
        witnesses = _right_clocks(facts, row)
        who = " Nothing else in the capture shows which of both clocks is wrong."
        if witnesses:
            who = f" {witnesses}, so the broker's clock is the wrong one."
        yield facts.finding(
            subject,
            f"The clock of {f'broker {node.number}' if node is not None else f'the broker at {place}'} is "
            f"{span(abs(ms) * MILLISECOND)} {'ahead of' if ms > 0 else 'behind'} that of the capture, by the "
            f"times that it gave to records in {plural(row['answers'], 'answer')}.{who}",
            severity=WARNING if witnesses else NOTICE,
            confidence=LIKELY if witnesses else POSSIBLE,
            subject_text=subject.text(place),
            count=row["answers"],
            measure=abs(ms) / 1000,
            unit="s",
            threshold=facts.limit("seconds"),
            first_ns=row["first_ns"],
            last_ns=row["last_ns"],
            exchanges=row["exchanges"],
            filter=f'broker == "{place}" and api == "Produce"',
        )


def _difference_ms(row: Row) -> int:
    """How far a broker's clock is ahead, at least; negative if it is behind. 0 if the bounds allow that it is
    right, or if the difference changed by half."""
    if row["low_max_ms"] > 0 and 2 * row["low_min_ms"] >= row["low_max_ms"]:
        return int(row["low_max_ms"])
    if row["high_min_ms"] < 0 and 2 * row["high_max_ms"] <= row["high_min_ms"]:
        return int(row["high_min_ms"])
    return 0


def _right_clocks(facts: Facts, wrong: Row) -> str:
    """Who has the same time as the capture: other brokers, else producers on several other hosts. A single
    one may be the host on which the packets were captured."""
    agree_ms = facts.limit("agree_s") * 1000
    host = address(wrong["broker"])
    if any(
        row["low_max_ms"] <= agree_ms and row["high_min_ms"] >= -agree_ms
        for row in facts.rows(BrokerClocks)
        if row["broker"] != wrong["broker"] and row["answers"] >= facts.limit("answers")
    ):
        return "The clock of another broker agrees with the capture"
    dated = [row for row in facts.rows(Producers) if row["skew_max_ms"] is not None and row["client"] != host]
    agreeing = {row["client"] for row in dated if -agree_ms <= row["skew_max_ms"] <= agree_ms}
    if len(agreeing) > 1:
        return f"Producers on {len(agreeing)} other hosts date their records by the capture's time"
    return ""
