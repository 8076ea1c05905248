"""Rules on topics as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kdissect.analysis.cluster import ClusterChanges, ClusterTopics
from kdissect.analysis.fold import Row
from kdissect.insight.causes import explains
from kdissect.insight.finding import CERTAIN, WARNING, EvidenceStep, Finding, FindingSubject
from kdissect.insight.grouping import together
from kdissect.insight.repeated import once
from kdissect.insight.rule import Facts, rule
from kdissect.insight.words import of_numbers, quoted

OFFSETS = "__consumer_offsets"


@rule("topic-replaced", WARNING, CERTAIN, needs=(ClusterTopics, ClusterChanges))
@once
def topic_replaced(facts: Facts) -> Iterator[Finding]:
    """A topic is another one than before under its name, and nobody was seen to delete it."""
    deleted = {
        (row["cluster_id"], row["topic"])
        for row in facts.rows(ClusterChanges)
        if row["what"] == "topic-deleted"
    }
    known = [row for row in facts.rows(ClusterTopics) if row["topic_id"] and row["cluster_id"]]
    for (cluster, topic), rows in together(known, "cluster_id", "topic").items():
        if not deleted.isdisjoint({(cluster, topic), (None, topic)}):  # the capture may not show the cluster
            continue
        lives = sorted(rows, key=lambda row: row["from_ns"])
        turns = [(one, other) for one, other in pairwise(lives) if one["topic_id"] != other["topic_id"]]
        if not turns or _come_back(lives):
            continue
        before, after = turns[-1]
        lost = "the offsets that groups had committed" if topic == OFFSETS else "the records that it had"
        times = f" That happened {len(turns)} times." if len(turns) > 1 else ""
        yield facts.finding(
            FindingSubject(topic=topic),
            f"The topic {topic} is another one than before: its id was {before['topic_id']}, and is "
            f"{after['topic_id']} now. So {lost} are gone. Nobody was seen to delete it.{times}",
            count=len(turns),
            first_ns=turns[0][1]["from_ns"],
            last_ns=after["from_ns"],
            exchanges=[row["source_exchange"] for turn in turns for row in turn],
            steps=tuple(
                EvidenceStep(row["from_ns"], f"{topic} has the id {row['topic_id']}", row["source_exchange"])
                for row in (turns[0][0], *(other for _, other in turns))
            ),
            filter=of_numbers(row["source_exchange"] for turn in turns for row in turn)
            or f"topic == {quoted(topic)}",
        )


def _come_back(lives: list[Row]) -> bool:
    """Whether an id is told again after another one: then two clusters have topics of this name."""
    ids = [row["topic_id"] for row in lives]
    runs = [ids[0], *(other for one, other in pairwise(ids) if one != other)]
    return len(runs) > len(set(runs))


explains("topic-replaced", "offset-reset", "offset-rewound", "records-read-twice", shares=("topic",))
