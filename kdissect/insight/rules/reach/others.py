"""Rules on whether the broker that answers at an address is the one that the cluster names there."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.cluster import ClusterBrokers, ClusterPartitions
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.stale_leaders import StaleLeaders
from kdissect.insight.causes import explains
from kdissect.insight.finding import CRITICAL, LIKELY, Finding, FindingSubject
from kdissect.insight.grouping import group_rows
from kdissect.insight.nodes import NodeNames, addresses_of
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import having, named
from kdissect.wording import plural

_REFUSED = ("NOT_LEADER_OR_FOLLOWER",)
"""Errors of a broker for partitions that it does not lead, or has no replica of."""


@rule(
    "wrong-broker",
    CRITICAL,
    LIKELY,
    needs=(StaleLeaders, ClusterBrokers, ClusterPartitions),
    refusals=5,
    for_s=5,
)
def wrong_broker(facts: Facts) -> Iterator[Finding]:
    """The address of a broker leads to another one."""
    brokers = facts.rows(ClusterBrokers)
    at = group_rows((row | {"address": each} for row in brokers for each in addresses_of(row)), "address")
    held = group_rows(facts.rows(ClusterPartitions), "topic", "partition")
    misled: dict[tuple[int, str | None, str], list[Row]] = {}
    for row in facts.rows(StaleLeaders):
        if row["error"] not in _REFUSED:
            continue
        leaders = [
            each for each in held.get((row["topic"], row["partition"]), ()) if _went_on(facts, each, row)
        ]
        for node in at.get((row["broker"],), ()):
            if any(_is_led_by(node, each) for each in leaders) and _went_on(facts, node, row):
                misled.setdefault((node["node_id"], node["cluster_id"], row["broker"]), []).append(row)
    names = NodeNames(brokers)
    for (node_id, cluster, address), rows in misled.items():
        refusals = sum(row["refusals"] for row in rows)
        last_ns = max(row["last_ns"] for row in rows)
        first_ns = min(row["first_ns"] for row in rows)
        if refusals < facts.limit("refusals") or last_ns - first_ns < facts.limit("for_s") * SECOND:
            continue  # a broker may learn a little late that it leads
        partitions = {(row["topic"], row["partition"]) for row in rows}
        also = {
            node["node_id"]
            for node in at[address,]
            if node["cluster_id"] == cluster and _went_on(facts, node, rows[0])
        } - {node_id}
        where = (
            f"Brokers {named(sorted({node_id, *also}))} tell clients the same address, {address}. Broker "
            f"{node_id} does not seem to be the one that answers there"
            if also
            else f"The address that the cluster names for broker {node_id}, {address}, seems to lead to "
            "another one"
        )
        yield facts.finding(
            FindingSubject(broker=names.of(node_id, cluster)),
            f"{where}: {plural(refusals, 'request')} for {plural(len(partitions), 'partition')} that broker "
            f"{node_id} leads were refused.",
            subject_text=f"broker {node_id} ({address})",
            count=refusals,
            measure=refusals,
            unit="refusals",
            threshold=facts.limit("refusals"),
            first_ns=first_ns,
            last_ns=last_ns,
            exchanges=[number for row in rows for number in row["exchanges"][:2]],
            client_ids=tuple(sorted({row["client_id"] for row in rows if row["client_id"]})),
            filter=having(broker=address, error=_REFUSED[0]),
        )


def _went_on(facts: Facts, state: Row, refused: Row) -> bool:
    """Whether brokers told of a state before the refusals, and still did after these had lasted for a while.
    Then nobody moved the leader, and the client has the newest state."""
    lasting_ns = refused["first_ns"] + facts.limit("for_s") * SECOND
    return bool(state["from_ns"] <= refused["first_ns"] and lasting_ns <= state["last_told_ns"])


def _is_led_by(node: Row, partition: Row) -> bool:
    return bool(partition["leader"] == node["node_id"] and partition["cluster_id"] == node["cluster_id"])


explains("wrong-broker", "stale-leader", "metadata-storm", shares=("client_id",), at_once=True)
explains("wrong-broker", "produce-retries-exhausted", shares=("client_id",), within_s=120)
