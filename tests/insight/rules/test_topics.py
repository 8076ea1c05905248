"""Rules on topics as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterChanges, ClusterTopics
from kdissect.analysis.fold import SECOND, Row
from kdissect.insight.finding import WARNING, Finding
from tests.insight.made import check_pages, row, said


def life(topic_id: str | None, from_s: int, **more: Any) -> Row:
    values = {"cluster_id": "k", "topic": "orders", "topic_id": topic_id, "from_ns": from_s * SECOND}
    return row(ClusterTopics, **{**values, "source_exchange": from_s, **more})


def told(*lives: Row, **deleted: Any) -> list[Finding]:
    changes = [row(ClusterChanges, **{"what": "topic-deleted", **deleted})] if deleted else []
    return said("topic-replaced", {ClusterTopics: list(lives), ClusterChanges: changes})


def test_a_topic_that_has_another_id_lost_its_records() -> None:
    (found,) = told(life("A", 1), life("B", 9))
    assert (found.severity, found.subject.topic, found.count) == (WARNING, "orders", 1)
    assert found.message == (
        "The topic orders is another one than before: its id was A, and is B now. So the records that it had "
        "are gone. Nobody was seen to delete it."
    )
    assert (found.first_ns, found.exchanges, found.filter) == (9 * SECOND, (1, 9), "number in {1, 9}")
    (found,) = told(life("A", 1), life("B", 9), life("C", 20))
    assert found.message.endswith("That happened 2 times.")
    (found,) = told(life("A", 1, topic="__consumer_offsets"), life("B", 9, topic="__consumer_offsets"))
    assert "the offsets that groups had committed are gone" in found.message


@pytest.mark.parametrize(
    "lives",
    [
        [life("A", 1)],
        [life("A", 1), life("A", 9, partitions=6)],
        [life("A", 1), life("B", 9), life("A", 10)],  # of two clusters in turn
        [life("A", 1), life(None, 5), life("A", 9)],
        [life("A", 1), life("B", 9, cluster_id="other")],
        [life("A", 1, cluster_id=None), life("B", 9, cluster_id=None)],
        [life("A", 1), life("B", 9, topic="bills")],
    ],
)
def test_others_are_the_same_topic_or_may_be_of_another_cluster(lives: list[Row]) -> None:
    assert not told(*lives)


def test_who_was_seen_to_delete_it_is_told_elsewhere() -> None:
    assert not told(life("A", 1), life("B", 9), topic="orders")
    assert not told(life("A", 1), life("B", 9), topic="orders", cluster_id="k")
    assert told(life("A", 1), life("B", 9), topic="orders", cluster_id="other")
    assert told(life("A", 1), life("B", 9), topic="bills")


def test_pages_are_whole() -> None:
    check_pages("topics")
