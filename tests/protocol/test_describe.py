from __future__ import annotations

from kdissect.protocol.describe import describe
from kdissect.protocol.schema import message_struct


def test_fields_stand_nested_with_what_is_true_of_them() -> None:
    assert describe(message_struct(56, 3, "request")) == [
        "AlterPartitionRequest version 3, flexible, as of Kafka 4.4.0",
        "  brokerId                 int32            is brokerId",
        "  brokerEpoch              int64            default -1",
        "  topics                   []TopicData",
        "    topicId                uuid",
        "    partitions             []PartitionData",
        "      partitionIndex       int32",
        "      leaderEpoch          int32",
        "      newIsrWithEpochs     []BrokerState",
        "        brokerId           int32            is brokerId",
        "        brokerEpoch        int64            default -1",
        "      leaderRecoveryState  int8",
        "      partitionEpoch       int32",
    ]


def test_tags_nulls_defaults_and_keys_are_told() -> None:
    lines = [line.split(maxsplit=2) for line in describe(message_struct(1, 12, "request"))]
    assert ["clusterId", "string", "tag 0, nullable, default null"] in lines
    lines = [line.split(maxsplit=2) for line in describe(message_struct(3, 4, "request"))]
    assert ["allowAutoTopicCreation", "bool", "default true"] in lines
    lines = [line.split(maxsplit=2) for line in describe(message_struct(18, 3, "response"))]
    assert ["apiKey", "int16", "key"] in lines


def test_a_structure_used_again_is_spelled_out_once() -> None:
    # In Subtopology, TaskIds and TaskOffset, of which the last two are used more than once.
    lines = [line.split() for line in describe(message_struct(88, 0, "request"))]
    assert sum(line[1] == "[]TaskIds" for line in lines) == 3
    assert sum(line[0] == "subtopologyId" and line[1] == "string" for line in lines) == 3


def test_a_class_without_fields_is_one_line() -> None:
    assert describe(message_struct(18, 0, "request")) == ["ApiVersionsRequest version 0, as of Kafka 4.4.0"]
