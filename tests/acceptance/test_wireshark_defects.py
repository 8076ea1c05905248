"""Captures of which Wireshark 4.0.17 or 4.4.5 (or both) say something wrong, or nothing.

Each test is one defect that was shown by experiment, and says what kdissect must say instead.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from kdissect.exchange import Exchange
from kdissect.protocol.errors import error_names
from kdissect.protocol.json_form import to_json
from kdissect.record.batch import Batch
from kdissect.record.compression import CODECS
from kdissect.record.records import Record
from kdissect.record.sets import RecordSet, read_record_set
from kdissect.record.write import write_batch
from tests.acceptance.test_other_protocols import CLIENT, SERVER
from tests.acceptance.wire import talked
from tests.kafka import METADATA_RESPONSE_1, Talk, request, response
from tests.lab import dissected_case
from tests.protocol.official import rows
from tests.record.official import BATCH_COLUMNS, batch_row, record_row, vector


def metadata(correlation: int) -> bytes:
    return request("Metadata", 1, correlation, topics=[{"name": "orders"}])


def metadata_answer(correlation: int) -> bytes:
    return response("Metadata", 1, correlation, **METADATA_RESPONSE_1)


def fetched(data: bytes, version: int = 11) -> RecordSet:
    """A record set after its way through a capture, in a Fetch response of many segments."""
    wanted = {"partition": 0, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}
    body: dict[str, Any] = {"replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "topics": []}
    body["topics"] = [{"topic": "orders", "partitions": [wanted]}]
    partition = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 9, "records": b64encode(data).decode()}
    answer: dict[str, Any] = {"throttleTimeMs": 0}
    if version >= 4:
        body |= {"maxBytes": 1 << 20, "isolationLevel": 0}
        partition |= {"lastStableOffset": 9, "abortedTransactions": None}
    if version >= 7:
        body |= {"sessionId": 0, "sessionEpoch": -1, "forgottenTopicsData": [], "rackId": ""}
        wanted |= {"currentLeaderEpoch": -1, "logStartOffset": -1}
        partition |= {"logStartOffset": 0, "preferredReadReplica": -1}
        answer |= {"errorCode": 0, "sessionId": 0}
    answer["responses"] = [{"topic": "orders", "partitions": [partition]}]
    talk = (
        Talk(mss=40_000)
        .ask(request("Fetch", version, 1, **body))
        .answer(response("Fetch", version, 1, **answer))
    )
    (exchange,) = talked(talk).exchanges
    assert not exchange.faults
    (place,) = exchange.record_sets()
    assert (place.topic, place.partition, place.data) == ("orders", 0, data)
    return read_record_set(place.data)


def only_batch(found: RecordSet) -> Batch:
    (batch,) = found.batches
    return batch


@pytest.mark.parametrize("version", range(14))
def test_w1_acks_is_read_behind_the_transactional_id(version: int) -> None:
    body: dict[str, Any] = {"timeoutMs": 30_000, "topicData": []}
    if version >= 3:
        body["transactionalId"] = None
    talk = Talk().ask(
        *(request("Produce", version, n, acks=acks, **body) for n, acks in enumerate((0, 1, -1, 0)))
    )
    answer: dict[str, Any] = {"responses": []} | ({"throttleTimeMs": 0} if version else {})
    talk.answer(*(response("Produce", version, n, **answer) for n in (1, 2)))
    found = talked(talk)
    assert [exchange.missing for exchange in found.exchanges] == ["acks=0", None, None, "acks=0"]
    assert not found.faults
    assert not any(exchange.faults for exchange in found.exchanges)


FLEXIBLE_SINCE = {
    "DeleteRecords": 2,
    "OffsetForLeaderEpoch": 4,
    "AddPartitionsToTxn": 3,
    "AddOffsetsToTxn": 3,
    "EndTxn": 3,
    "WriteTxnMarkers": 1,
    "AlterConfigs": 2,
    "AlterReplicaLogDirs": 2,
    "DescribeLogDirs": 2,
}


@pytest.mark.parametrize("api", FLEXIBLE_SINCE)
def test_w2_apis_that_became_flexible_are_read_as_such(api: str) -> None:
    compared = set()
    for row in rows("messages.ndjson.gz"):
        if (row["api"], row["kind"]) != (api, "request") or row["version"] < FLEXIBLE_SINCE[api]:
            continue
        if row.get("unknown_tags") or row.get("header_unknown_tags"):
            continue
        data = bytes.fromhex(row["header_hex"] + row["body_hex"])
        found = talked(Talk(mss=40_000).ask(metadata(1)).answer(metadata_answer(1)).ask(data))
        message = found.exchanges[1].request
        assert message is not None
        body = message.decoded()
        assert body.struct is not None
        assert to_json(body.struct, body.values) == row["json"]
        assert found.exchanges[1].faults == []
        compared.add(row["version"])
    assert min(compared) == FLEXIBLE_SINCE[api]


def test_w2_a_commit_is_not_shown_as_an_abort() -> None:
    ask = request("EndTxn", 3, 1, transactionalId="t", producerId=9, producerEpoch=0, committed=True)
    (exchange,) = talked(Talk().ask(ask)).exchanges
    assert exchange.request is not None
    body = exchange.request.body()
    assert (body["committed"], body["producerId"]) == (True, 9)


def test_w3_timestamps_of_a_batch_are_milliseconds_since_the_epoch() -> None:
    records = [Record(0, 1_700_000_000_123, None, b"a"), Record(1, 1_700_000_000_456, None, b"b")]
    batch = only_batch(fetched(write_batch(records)))
    assert (batch.base_timestamp, batch.max_timestamp) == (1_700_000_000_123, 1_700_000_000_456)
    assert [record.timestamp for record in batch.records()] == [1_700_000_000_123, 1_700_000_000_456]


def test_w4_an_uncompressed_batch_of_five_mebibytes_is_read() -> None:
    value = bytes(range(256)) * (5 << 12)
    batch = only_batch(fetched(write_batch([Record(0, 1, b"key", value)])))
    assert [record.value for record in batch.records()] == [value]
    assert batch.faults == []


@pytest.mark.parametrize("codec", ["snappy", "lz4"])
def test_w5_more_than_a_hundred_compressed_blocks_are_read(codec: str) -> None:
    value = bytes(range(256)) * (8 << 12)  # 256 blocks of snappy, 128 of lz4
    batch = only_batch(fetched(write_batch([Record(0, 1, None, value)], CODECS.index(codec))))
    assert batch.codec == codec
    assert [record.value for record in batch.records()] == [value]
    assert batch.faults == []


def test_w6_a_capture_that_begins_inside_a_message_finds_the_ones_that_follow() -> None:
    talk = Talk(mss=25)
    for number in range(6):
        talk.ask(metadata(number)).answer(metadata_answer(number))
    segments = [segment for segment in talk.segments if segment.payload]
    talk.segments = segments
    starts = [index for index, s in enumerate(segments) if index and s.source != segments[index - 1].source]
    for first in range(1, starts[-3]):
        talk.segments = segments[first:]
        found = {e.correlation_id: e for e in talked(talk).exchanges if e.request and e.response}
        whole_turns = [turn for turn, at in enumerate([0, *starts[1::2]]) if at >= first]
        assert set(found) >= set(whole_turns)
        for correlation, exchange in found.items():
            assert exchange.request is not None
            assert exchange.request.frame.payload == metadata(correlation or 0)


def test_w7_an_answer_of_version_0_to_a_newer_api_versions_request_is_read() -> None:
    refused = [
        exchange
        for exchange in dissected_case("broker-0.10.2-new-clients").exchanges
        if exchange.api == "ApiVersions" and exchange.api_version in (3, 4)
    ]
    assert len(refused) == 40
    for exchange in refused:
        assert exchange.response is not None
        assert exchange.error == "UNSUPPORTED_VERSION"
        assert exchange.response.body()["errorCode"] == 35
        assert "throttleTimeMs" not in exchange.response.body()
        assert exchange.faults == []


def test_w8_sasl_tokens_are_no_requests_and_an_empty_one_is_whole() -> None:
    talk = Talk()
    talk.ask(request("SaslHandshake", 0, 1, mechanism="PLAIN"))
    talk.answer(response("SaslHandshake", 0, 1, errorCode=0, mechanisms=["PLAIN"]))
    talk.ask(b"\0alice\0secret").answer(b"")
    talk.ask(metadata(2)).answer(metadata_answer(2))
    found = talked(talk)
    assert [exchange.api for exchange in found.exchanges] == ["SaslHandshake", "SaslToken", "Metadata"]
    assert [len(e.response.frame.payload) if e.response else None for e in found.exchanges][1] == 0
    assert not found.faults
    assert not any(exchange.faults for exchange in found.exchanges)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_w9_records_of_log_append_time_have_the_batchs_timestamp(codec: str) -> None:
    records = [Record(7, 1_000, None, b"a"), Record(8, 2_000, None, b"b")]
    data = write_batch(records, CODECS.index(codec), log_append_time=True, max_timestamp=1_700_000_000_000)
    batch = only_batch(fetched(data))
    assert batch.timestamp_type == "LogAppendTime"
    assert [record.timestamp for record in batch.records()] == [1_700_000_000_000] * 2


def test_w9_a_delete_horizon_is_shown_and_an_empty_batch_is_no_defect() -> None:
    records = [Record(7, 1_000, b"k", None)]
    batch = only_batch(fetched(write_batch(records, delete_horizon_ms=1_700_000_000_000)))
    assert batch.delete_horizon_ms == 1_700_000_000_000
    for codec in range(5):
        data = write_batch([], codec, base_offset=3, last_offset=9, max_timestamp=5, producer_id=4)
        found = fetched(data)
        assert [list(batch.records()) for batch in found.batches] == [[]]
        assert found.faults == []


@pytest.mark.parametrize("kind", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_w10_messages_of_magic_1_have_their_timestamps_and_offsets(codec: str, kind: str) -> None:
    known = vector(f"m1-{codec}-{kind}-plain")
    found = fetched(known.data, version=2)
    rows_found = [
        {n: v for n, v in batch_row(batch).items() if n in BATCH_COLUMNS} for batch in found.batches
    ]
    assert rows_found == [{name: batch[name] for name in BATCH_COLUMNS} for batch in known.batches]
    assert [record_row(record) for record in found.records()] == known.records


def test_w11_a_brokers_range_of_versions_is_no_defect() -> None:
    keys = [{"apiKey": key, "minVersion": 0, "maxVersion": 99} for key in (0, 1, 18, 4711)]
    talk = (
        Talk()
        .ask(request("ApiVersions", 0, 1))
        .answer(response("ApiVersions", 0, 1, errorCode=0, apiKeys=keys))
    )
    found = talked(talk)
    (exchange,) = found.exchanges
    assert exchange.response is not None
    assert exchange.response.body()["apiKeys"] == keys
    assert (exchange.faults, found.faults) == ([], [])


def taught_and_used() -> list[Exchange]:
    """Metadata tells a topic's id on one connection, a Fetch uses it on another; no port is Kafka's."""
    topic_id = "AAECAwQFBgcICQoLDA0ODw"
    topic = {"errorCode": 0, "name": "orders", "topicId": topic_id, "isInternal": False}
    topic |= {"partitions": [], "topicAuthorizedOperations": 0}
    ask: dict[str, Any] = {
        "topics": None,
        "allowAutoTopicCreation": True,
        "includeTopicAuthorizedOperations": False,
    }
    answer = {"throttleTimeMs": 0, "brokers": [], "clusterId": "c", "controllerId": 1, "topics": [topic]}
    talk = Talk().ask(request("Metadata", 12, 1, **ask)).answer(response("Metadata", 12, 1, **answer))
    other = Talk(CLIENT, SERVER[:4] + (4711).to_bytes(2, "big"))
    fetch: dict[str, Any] = {
        "maxWaitMs": 1,
        "minBytes": 1,
        "maxBytes": 1,
        "isolationLevel": 0,
        "sessionId": 0,
    }
    fetch |= {"replicaId": -1, "sessionEpoch": 0, "forgottenTopicsData": [], "rackId": ""}
    fetch["topics"] = [{"topicId": topic_id, "partitions": []}]
    other.ask(request("Fetch", 13, 2, **fetch))
    other.answer(response("Fetch", 13, 2, throttleTimeMs=0, errorCode=136, sessionId=0, responses=[]))
    later = [s._replace(packet=s.packet + 100, timestamp_ns=s.timestamp_ns + 10**9) for s in other.segments]
    talk.segments += later
    return talked(talk).exchanges


def test_w12_response_time_any_port_names_for_ids_and_every_error() -> None:
    metadata_exchange, fetch = taught_and_used()
    assert metadata_exchange.latency_ns == 1_000_000
    assert fetch.latency_ns == 1_000_000
    assert fetch.broker.endswith(":4711")
    assert fetch.topics == ["orders"]
    assert fetch.error == error_names()[136]
