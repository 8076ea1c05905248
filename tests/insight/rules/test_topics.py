"""Rules on topics as a whole."""

from __future__ import annotations

from typing import Any

from kdissect.analysis.cluster import ClusterChanges, ClusterTopics
from kdissect.analysis.fold import SECOND, Row
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import NOTICE, WARNING, Finding
from tests.insight.made import WHOLE, check_pages, row, said


def replaced(before: str, after: str, at_s: int, **more: Any) -> Row:
    values = {
        "what": "topic-replaced",
        "topic": "orders",
        "cluster_id": "k",
        "before": before,
        "after": after,
    }
    return row(ClusterChanges, **{**values, "ns": at_s * SECOND, "exchange": at_s, **more})


def told(*changes: Row, context: JudgingContext = WHOLE, **life: Any) -> list[Finding]:
    values = {"cluster_id": "k", "topic": "orders", "topic_id": "A", "source_exchange": 1, **life}
    rows = {ClusterTopics: [row(ClusterTopics, **values)], ClusterChanges: list(changes)}
    return said("topic-replaced", rows, context=context)


def test_a_topic_that_has_another_id_lost_its_records() -> None:
    (found,) = told(replaced("A", "B", 9))
    assert (found.severity, found.subject.topic, found.count) == (WARNING, "orders", 1)
    assert found.message == (
        "The topic orders was replaced: its id was A, and is B now. So the records that it had "
        "are gone. Nobody was seen to delete it."
    )
    assert (found.first_ns, found.exchanges, found.filter) == (9 * SECOND, (1, 9), "number in {1, 9}")
    (found,) = told(replaced("A", "B", 9), replaced("B", "C", 20))
    assert found.message.endswith("That happened 2 times.")
    (found,) = told(replaced("A", "B", 9, topic="__consumer_offsets"))
    assert "the offsets that groups had committed are gone" in found.message
    assert not told()


def test_who_was_seen_to_delete_it_is_told_elsewhere() -> None:
    def deleted(**more: Any) -> list[Finding]:
        return told(replaced("A", "B", 9), row(ClusterChanges, what="topic-deleted", **more))

    assert not deleted(topic="orders")
    assert not deleted(topic="orders", cluster_id="k")
    assert deleted(topic="orders", cluster_id="other")
    assert deleted(topic="bills")


def test_who_deleted_it_may_be_missing_in_the_capture() -> None:
    (found,) = told(replaced("A", "B", 9), context=WHOLE._replace(gap_bytes=1))
    assert found.severity == NOTICE
    assert "the records that it had are gone" in found.message
    assert found.message.endswith(
        "Bytes are missing in the capture, so nobody knows whether somebody deleted it."
    )


def test_pages_are_whole() -> None:
    check_pages("topics")
