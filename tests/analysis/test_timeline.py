"""What a time line shows."""

from __future__ import annotations

from kdissect.exchange import Exchange
from tests.analysis.folds import events_of, fold, made, rows_of
from tests.analysis.traffic import end_transaction, produce


def test_it_counts_what_io_counts() -> None:
    for one, other in zip(
        rows_of("timeline,100ms", "java43-groups"), rows_of("io,100ms", "java43-groups"), strict=True
    ):
        assert {name: one[name] for name in one if name in other} == {
            name: other[name] for name in other if name in one
        }
        assert one["broker_count"] <= one["responses"]


def test_generations_are_marked_once_and_only_where_members_join() -> None:
    marks = [mark for row in rows_of("timeline", "java43-groups") for mark in row["marks"]]
    groups = [mark for mark in marks if mark.startswith("group ")]
    assert len(groups) == len(set(groups)) > 5
    # In mid-stream the generation in force is no news.
    late = [event for event in events_of("java43-groups") if getattr(event, "api", None) == "Heartbeat"]
    assert not [mark for row in fold("timeline", late).result() for mark in row["marks"]]


def test_ends_of_transactions_and_moves_of_leaders_are_marked() -> None:
    assert marks_of([end_transaction((1, 2), True), end_transaction((3, 4), True)]) == [
        "transaction tx committed ×2"
    ]
    events = [
        metadata(1, 5, 1),
        metadata(2, 5, 1),
        metadata(3, 6, 1),
        metadata(4, 7, 2),
        produce((9, 10), 0, [1]),
    ]
    assert marks_of(events) == ["leader of orders-0: broker 2, before 1"]


def marks_of(events: list[Exchange]) -> list[str]:
    return [mark for row in fold("timeline", events).result() for mark in row["marks"]]


def metadata(at: int, epoch: int, leader: int) -> Exchange:
    partition = {"errorCode": 0, "partitionIndex": 0, "leaderId": leader, "leaderEpoch": epoch}
    partition |= {"replicaNodes": [1, 2], "isrNodes": [1, 2], "offlineReplicas": []}  # type: ignore[dict-item]
    topic = {"errorCode": 0, "name": "orders", "isInternal": False, "partitions": [partition]}
    answer = {"throttleTimeMs": 0, "brokers": [], "clusterId": "c", "controllerId": 1, "topics": [topic]}
    asked = {"topics": None, "allowAutoTopicCreation": False}
    asked |= {"includeClusterAuthorizedOperations": False, "includeTopicAuthorizedOperations": False}
    answer["clusterAuthorizedOperations"] = 0
    topic["topicAuthorizedOperations"] = 0
    return made("Metadata", 8, asked, answer, (10 * at, 10 * at + 5))
