"""Rules on topics as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterTopics
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, NOTICE, WARNING, EvidenceStep, Finding, FindingSubject
from kdissect.insight.grouping import group_rows
from kdissect.insight.repeated import once_per_subject
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import of_numbers

OFFSETS = "__consumer_offsets"


@rule(
    "topic-replaced", WARNING, CERTAIN, needs=(ClusterTopics, ClusterChanges, ClusterBrokers), of_cluster=True
)
@once_per_subject
def topic_replaced(facts: Facts) -> Iterator[Finding]:
    """A topic was replaced by another one of the same name, and no deletion was captured. If bytes are
    missing in the capture, somebody may have deleted it, as meant."""
    deleted = {
        (row["cluster_id"], row["topic"])
        for row in facts.rows(ClusterChanges)
        if row["what"] == "topic-deleted"
    }
    replaced = [row for row in facts.rows(ClusterChanges) if row["what"] == "topic-replaced"]
    told = group_rows(facts.rows(ClusterTopics), "cluster_id", "topic", "topic_id") if replaced else {}
    deleted_by = (
        "Bytes are missing in the capture, so nobody knows whether somebody deleted it."
        if facts.context.gap_bytes
        else "Nobody was seen to delete it."
    )
    for (cluster, topic), turns in group_rows(replaced, "cluster_id", "topic").items():
        if not deleted.isdisjoint({(cluster, topic), (None, topic)}):  # the capture may not show the cluster
            continue
        first, last = turns[0], turns[-1]
        earlier = [row["source_exchange"] for row in told.get((cluster, topic, first["before"]), ())]
        numbers = [*earlier[:1], *(row["exchange"] for row in turns)]
        lost = "the offsets that groups had committed" if topic == OFFSETS else "the records that it had"
        times = f" That happened {len(turns)} times." if len(turns) > 1 else ""
        yield facts.finding(
            FindingSubject(topic=topic),
            f"The topic {topic} was replaced: its id was {last['before']}, and is {last['after']} now. "
            f"So {lost} are gone. {deleted_by}{times}",
            severity=NOTICE if facts.context.gap_bytes else WARNING,
            count=len(turns),
            first_ns=first["ns"],
            last_ns=last["ns"],
            exchanges=numbers,
            steps=tuple(
                EvidenceStep(row["ns"], f"{topic} has the id {row['after']}", row["exchange"])
                for row in turns
            ),
            filter=of_numbers(numbers),
        )


explains("topic-replaced", "offset-reset", "offset-rewound", "records-read-twice", shares=("topic",))
