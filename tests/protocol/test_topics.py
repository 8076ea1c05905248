from __future__ import annotations

from kdissect.protocol.schema import ZERO_UUID, message_struct
from kdissect.protocol.topics import can_teach, mentioned_topics, partition_of, taught_topics

ID, OTHER = "6BkrV-dORm6UI_CZE0J8iw", "AAAAAAAAAAAAAAAAAAAABQ"
METADATA = message_struct(3, 12, "response")


def test_a_topic_with_name_and_id_is_mentioned_once_by_its_name() -> None:
    values = {"topics": [{"name": "orders", "topicId": ID}, {"name": None, "topicId": OTHER}]}
    assert list(mentioned_topics(METADATA, values)) == [("orders", None), (None, OTHER)]


def test_the_uuid_of_zeros_is_no_topic() -> None:
    assert list(mentioned_topics(METADATA, {"topics": [{"name": None, "topicId": ZERO_UUID}]})) == []


def test_lists_of_names_and_of_ids_mention_each() -> None:
    names = {"topicNames": ["a", "b"]}
    assert list(mentioned_topics(message_struct(20, 3, "request"), names)) == [("a", None), ("b", None)]
    ids = {"topics": [{"name": None, "topicId": ID}]}
    assert list(mentioned_topics(message_struct(20, 6, "request"), ids)) == [(None, ID)]


def test_only_an_id_beside_a_name_is_taught() -> None:
    values = {
        "topics": [
            {"name": "orders", "topicId": ID},
            {"name": "old", "topicId": ZERO_UUID},
            {"name": None, "topicId": OTHER},
        ]
    }
    assert can_teach(METADATA)
    assert list(taught_topics(METADATA, values)) == [(ID, "orders")]
    assert not can_teach(message_struct(3, 1, "response"))
    assert not can_teach(message_struct(1, 13, "request"))


def test_the_innermost_structs_tell_the_partition() -> None:
    inner = {"partitionIndex": 3}
    assert partition_of(({"topicId": ID}, inner)) == (None, ID, 3)
    assert partition_of(({"name": "orders", "topicId": ZERO_UUID}, {"index": 4})) == ("orders", None, 4)
    assert partition_of(({"throttleTimeMs": 1},)) == (None, None, None)
