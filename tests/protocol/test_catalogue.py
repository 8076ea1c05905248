from __future__ import annotations

import pytest

from kdissect.model import DecodeError
from kdissect.protocol.catalogue import schema


def test_a_schema_reads_and_writes() -> None:
    versions = schema("api_versions", 0, "response")
    value = {"errorCode": 0, "apiKeys": [{"apiKey": 1, "minVersion": 0, "maxVersion": 12}]}
    data = versions.encode(value)
    assert versions.decode(data) == value
    assert versions.size_of(value) == len(data) == 12
    assert versions.annotate(data).end == 12
    assert versions.from_json(versions.to_json(value)) == value
    with pytest.raises(ValueError, match=r"^errorCode: "):
        versions.validate({"errorCode": "x"})


def test_bytes_left_over_are_an_error() -> None:
    versions = schema("ApiVersions", 0)
    for walk in (versions.decode, versions.annotate):
        with pytest.raises(DecodeError, match="1 bytes are left"):
            walk(b"\0")


def test_by_name_key_and_class() -> None:
    assert schema(1, 17).name == schema("Fetch", 17, "request").name == "FetchRequest"
    header = schema("RequestHeader", 2, "data")
    assert (header.version, header.flexible, len(header.fields)) == (2, True, 4)
    for api, version, kind in (("Fetch", 99, "request"), ("Nothing", 0, "request"), ("Fetch", 1, "answer")):
        with pytest.raises(LookupError):
            schema(api, version, kind)


def test_a_schema_prints_its_fields() -> None:
    assert str(schema("AlterPartition", 3, "request")).split("\n") == [
        "AlterPartitionRequest version 3, flexible (Kafka 4.4.0)",
        "    brokerId                     int32            is brokerId",
        "    brokerEpoch                  int64            default -1",
        "    topics                       []TopicData",
        "        topicId                  uuid",
        "        partitions               []PartitionData",
        "            partitionIndex       int32",
        "            leaderEpoch          int32",
        "            newIsrWithEpochs     []BrokerState",
        "                brokerId         int32            is brokerId",
        "                brokerEpoch      int64            default -1",
        "            leaderRecoveryState  int8",
        "            partitionEpoch       int32",
    ]
