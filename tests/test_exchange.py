"""Exchange: the facts of its two messages together."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import crc32c
import pytest

from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.message import Token, parse_request, parse_response
from kdissect.model import Direction, Frame
from kdissect.names import METADATA_TOPIC_ID, TopicNames
from kdissect.protocol import apis
from kdissect.protocol.encode import encode
from kdissect.protocol.json_form import from_json
from kdissect.protocol.schema import ZERO_UUID, data_struct
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.kafka import METADATA_RESPONSE_1, request, response
from tests.tcp.segments import BROKER, CLIENT

ID, OTHER = "6BkrV-dORm6UI_CZE0J8iw", "AAAAAAAAAAAAAAAAAAAABQ"
COLUMNS = ("packet", "start_ns", "time_ns", "size")


def frame(payload: bytes, packets: tuple[int, int]) -> Frame:
    """A frame in two packets. The time of a packet is a hundred times its number."""
    first, last = packets
    return Frame(Direction.TO_BROKER, 0, payload, len(payload), first, 100 * first, last, 100 * last, packets)


def exchange(asked: bytes | None = None, answered: bytes | None = None, api: str = "Metadata") -> Exchange:
    """An exchange of packets 3, 4 (request) and 6, 7 (response)."""
    out = Exchange(2, CLIENT, BROKER, number=9)
    if asked is not None:
        out.request = parse_request(frame(asked, (3, 4)))
    if answered is not None:
        version = None if out.request is None else out.request.api_version
        key = None if out.request is None else apis.api_key(api)
        out.response = parse_response(frame(answered, (6, 7)), key, version)
    return out


ASK = request("Metadata", 1, 5, topics=[{"name": "asked"}])
ANSWER = response("Metadata", 1, 5, **METADATA_RESPONSE_1)


def columns(one: Exchange, side: str) -> list[object]:
    return [getattr(one, f"{side}_{column}") for column in COLUMNS]


def test_packets_times_and_sizes_are_those_of_the_frames() -> None:
    one = exchange(ASK, ANSWER)
    assert columns(one, "request") == [4, 300, 400, len(ASK)]
    assert columns(one, "response") == [7, 600, 700, len(ANSWER)]
    assert one.latency_ns == 600 - 400
    assert one.last_packet == 7


def test_what_is_missing_has_neither_packet_nor_time_nor_size() -> None:
    asked, answered = exchange(ASK), exchange(None, ANSWER)
    assert columns(asked, "response") == columns(answered, "request") == [None] * 4
    assert asked.latency_ns is answered.latency_ns is None
    assert (asked.last_packet, answered.last_packet) == (4, 7)


def test_the_size_is_what_the_message_announces() -> None:
    one = exchange(ASK, ANSWER)
    assert one.response is not None
    one.response.frame = one.response.frame._replace(payload=ANSWER[:9])
    assert one.response_size == len(ANSWER)


def test_a_latency_may_be_negative_but_not_beyond_64_bits() -> None:
    one = exchange(ASK, ANSWER)
    assert one.response is not None
    one.response.frame = one.response.frame._replace(first_ns=1)
    assert one.latency_ns == 1 - 400
    one.response.frame = one.response.frame._replace(first_ns=-(1 << 63))
    assert one.latency_ns is None


def test_the_request_tells_what_it_is_else_the_response_as_far_as_it_can() -> None:
    one = exchange(ASK, ANSWER)
    assert (one.api_key, one.api, one.api_version, one.correlation_id) == (3, "Metadata", 1, 5)
    assert (one.client_id, one.client, one.broker) == ("test", "10.0.0.1:50000", "10.0.0.2:19092")
    alone = exchange(None, ANSWER)
    assert (alone.api_key, alone.api, alone.api_version, alone.correlation_id) == (None, None, None, 5)
    assert alone.client_id is None
    token = Exchange(0, CLIENT, BROKER, request=Token(frame(b"x", (1, 1)), "request"))
    assert (token.api, token.api_key, token.correlation_id) == ("SaslToken", None, None)


def metadata_12(*topics: tuple[str | None, str]) -> bytes:
    rows: list[dict[str, Any]] = [
        {
            "errorCode": 0,
            "name": name,
            "topicId": topic_id,
            "isInternal": False,
            "partitions": [],
            "topicAuthorizedOperations": 0,
        }
        for name, topic_id in topics
    ]
    body = {"throttleTimeMs": 0, "brokers": [], "clusterId": None, "controllerId": 1, "topics": rows}
    return response("Metadata", 12, 5, **body)


ASK_12 = request(
    "Metadata", 12, 5, topics=None, allowAutoTopicCreation=False, includeTopicAuthorizedOperations=False
)


def test_topics_are_in_the_order_of_the_wire_each_once() -> None:
    answer = response("Metadata", 1, 5, **METADATA_RESPONSE_1 | {
        "topics": [
            {"errorCode": 0, "name": name, "isInternal": False, "partitions": []}
            for name in ("b", "asked", "a", "b")
        ]
    })  # fmt: skip
    assert exchange(ASK, answer).topics == ["asked", "b", "a"]


def test_a_topic_with_name_and_id_stands_by_its_name_once() -> None:
    one = exchange(ASK_12, metadata_12(("orders", ID), (None, OTHER), (None, ZERO_UUID)))
    assert one.topics == ["orders", OTHER]
    assert one.topic_ids() == {OTHER}


def test_an_id_is_named_where_the_capture_told_it() -> None:
    names = TopicNames()
    names.learn(OTHER, "payments", 6)
    one = exchange(ASK_12, metadata_12((None, OTHER)))
    one.topic_names = names.up_to(7)
    assert one.topics == ["payments"]
    one.topic_names = names.up_to(5)
    assert one.topics == [OTHER]


def test_a_name_is_told_by_the_packet_that_completed_the_message() -> None:
    one = exchange(ASK_12, metadata_12(("orders", ID), (None, OTHER)))
    assert list(one.taught_topics()) == [(ID, "orders", 7)]
    assert list(exchange(ASK, ANSWER).taught_topics()) == []


def test_the_first_error_code_that_is_not_0_is_the_error() -> None:
    body: dict[str, Any] = {
        "topics": [
            {"errorCode": code, "name": "t", "isInternal": False, "partitions": []} for code in (0, 3, 5)
        ]
    }
    one = exchange(ASK, response("Metadata", 1, 5, **METADATA_RESPONSE_1 | body))
    assert one.error == "UNKNOWN_TOPIC_OR_PARTITION"
    assert [code for code, _ in one.error_codes()] == [3, 5]
    assert exchange(ASK, ANSWER).error is exchange(ASK).error is None


def test_faults_are_those_of_the_session_the_messages_and_their_records() -> None:
    batch = bytearray(write_batch([Record(0, 1, None, b"value")]))
    batch[17] ^= 1  # the byte is in the checksum itself
    one = exchange(produce({"index": 0, "records": text(bytes(batch))}) + b"more", None, "Produce")
    assert [(f.kind, f.connection, f.exchange, f.packet) for f in one.faults] == [
        ("remainder", 2, 9, 4),
        ("bad-crc", 2, 9, 4),
    ]


def text(data: bytes) -> str:
    return b64encode(data).decode()


def produce(*partitions: dict[str, Any], acks: int = 1) -> bytes:
    topics = [{"name": "orders", "partitionData": list(partitions)}]
    return request("Produce", 9, 5, transactionalId=None, acks=acks, timeoutMs=1, topicData=topics)


def produced(*offsets: tuple[int, int]) -> bytes:
    rows: list[dict[str, Any]] = [
        {
            "index": index,
            "errorCode": 0,
            "baseOffset": offset,
            "logAppendTimeMs": -1,
            "logStartOffset": 0,
            "recordErrors": [],
            "errorMessage": None,
        }
        for index, offset in offsets
    ]
    body = {"responses": [{"name": "orders", "partitionResponses": rows}], "throttleTimeMs": 0}
    return response("Produce", 9, 5, **body)


def test_a_produced_set_has_the_offset_that_its_partitions_response_tells() -> None:
    batch = text(write_batch([Record(0, 1, None, b"value")]))
    ask = produce(
        {"index": 4, "records": batch}, {"index": 5, "records": batch}, {"index": 6, "records": batch}
    )
    one = exchange(ask, produced((5, 70), (4, 60), (6, -1)), "Produce")
    sets = list(one.record_sets())
    assert [(place.topic, place.partition) for place in sets] == [("orders", 4), ("orders", 5), ("orders", 6)]
    assert [one.assigned_base_offset(place) for place in sets] == [60, 70, None]
    unanswered = exchange(ask, None, "Produce")
    assert {unanswered.assigned_base_offset(place) for place in unanswered.record_sets()} == {None}


def test_from_version_13_on_partitions_are_told_by_the_id_of_their_topic() -> None:
    batch = text(write_batch([Record(0, 1, None, b"value")]))
    partition = {"index": 4, "records": batch}
    body: dict[str, Any] = {"transactionalId": None, "acks": 1, "timeoutMs": 1}
    topics = [{"topicId": each, "partitionData": [partition]} for each in (ID, OTHER)]
    ask = request("Produce", 13, 5, **body, topicData=topics)
    row: dict[str, Any] = {"index": 4, "errorCode": 0, "logAppendTimeMs": -1, "logStartOffset": 0}
    row |= {"recordErrors": [], "errorMessage": None}
    told = [{"topicId": OTHER, "partitionResponses": [row | {"baseOffset": 80}]}]
    told.append({"topicId": ID, "partitionResponses": [row | {"baseOffset": 70}]})
    one = exchange(ask, response("Produce", 13, 5, responses=told, throttleTimeMs=0), "Produce")
    names = TopicNames()
    names.learn(ID, "orders", 1)
    one.topic_names = names.up_to(1)
    assert [one.assigned_base_offset(place) for place in one.record_sets()] == [70, 80]


def topic_record(name: str, topic_id: str) -> bytes:
    """A TopicRecord in the form that records of ``__cluster_metadata`` have."""
    struct = data_struct("TopicRecord", 0)
    head = bytes((1, 2, 0))  # frame version, record type, version: varints
    return head + encode(struct, from_json(struct, {"name": name, "topicId": topic_id}))


def fetched(records: bytes, topic_id: str) -> bytes:
    partition = {
        "partitionIndex": 0,
        "errorCode": 0,
        "highWatermark": 1,
        "lastStableOffset": 1,
        "logStartOffset": 0,
        "abortedTransactions": None,
        "preferredReadReplica": -1,
        "records": text(records),
    }
    rows = [{"topicId": topic_id, "partitions": [partition]}]
    return response("Fetch", 13, 5, throttleTimeMs=0, errorCode=0, sessionId=0, responses=rows)


FETCH_13 = request(
    "Fetch",
    13,
    5,
    replicaId=-1,
    maxWaitMs=1,
    minBytes=1,
    maxBytes=1,
    isolationLevel=0,
    sessionId=0,
    sessionEpoch=-1,
    topics=[],
    forgottenTopicsData=[],
    rackId="",
)


@pytest.mark.parametrize(("topic_id", "count"), [(METADATA_TOPIC_ID, 1), (OTHER, 0)])
def test_fetched_records_of_the_metadata_topic_tell_names(topic_id: str, count: int) -> None:
    batch = write_batch([Record(0, 1, None, topic_record("orders", ID))])
    one = exchange(FETCH_13, fetched(batch, topic_id), "Fetch")
    assert list(one.taught_topics()) == [(ID, "orders", 7)] * count


def test_that_a_fetched_set_ends_early_is_no_fault() -> None:
    batch = write_batch([Record(0, 1, None, b"value")])
    assert exchange(FETCH_13, fetched(batch + batch[:40], OTHER), "Fetch").faults == []
    assert [f.kind for f in exchange(produce({"index": 0, "records": text(batch[:40])})).faults] == [
        "partial-batch"
    ]


def test_records_are_unpacked_within_the_limits_of_their_message() -> None:
    batch = write_batch([Record(0, 1, None, b"v" * 100_000)], 1)
    one = Exchange(0, CLIENT, BROKER)
    ask = produce({"index": 0, "records": text(batch)})
    one.request = parse_request(frame(ask, (1, 1)), DEFAULTS._replace(decompressed_bytes=1_000))
    assert [fault.kind for fault in one.faults] == ["decompression-limit"]


def test_faults_at_hand_are_found_without_unpacking() -> None:
    packed = write_batch([Record(0, 1, None, b"v" * 100)], 1)
    broken = packed[:-8] + bytes(8)  # the end of the gzip stream
    mended = broken[:17] + crc32c.crc32c(broken[21:]).to_bytes(4, "big") + broken[21:]
    one = exchange(produce({"index": 0, "records": text(mended)}))
    assert one.cheap_faults == []
    assert "bad-compressed-data" in [fault.kind for fault in one.faults]
    assert one.cheap_faults == one.faults  # now they are known
    one = exchange(produce({"index": 0, "records": text(broken)}))
    assert [fault.kind for fault in one.cheap_faults] == ["bad-crc"]


def test_codes_are_those_of_a_response_in_order() -> None:
    ask = request("DeleteTopics", 1, 5, topicNames=["t0", "t29", "t3"], timeoutMs=1)
    rows = [{"name": f"t{code}", "errorCode": code} for code in (0, 29, 3)]
    one = exchange(ask, response("DeleteTopics", 1, 5, throttleTimeMs=0, responses=rows), "DeleteTopics")
    assert one.codes() == [29, 3] == [code for code, _ in one.error_codes()]


@pytest.mark.parametrize("version", [0, 1, 3, 4, 6])
@pytest.mark.parametrize("kind", [0, 1, 2])
def test_the_keys_of_coordinators_name_what_the_request_asks_for(version: int, kind: int) -> None:
    if version == 0 and kind:
        return  # it knows groups only
    keys: dict[str, Any] = {"key": "k"} if version < 4 else {"coordinatorKeys": ["k", "*"]}
    asked = keys | ({"keyType": kind} if version else {})
    coordinator: dict[str, Any] = {"nodeId": 1, "host": "h", "port": 2, "errorCode": 0, "errorMessage": None}
    answered: dict[str, Any] = {"throttleTimeMs": 0}
    if version < 4:
        answered |= coordinator
    else:
        answered["coordinators"] = [{"key": "k", **coordinator}, {"key": "l", **coordinator}]
    api = "FindCoordinator"
    found = exchange(request(api, version, **asked), response(api, version, **answered), api)
    named = ["k", "l"] if version >= 4 else ["k"]
    assert all(message.survey() is not None for message in found.messages)
    assert found.groups == (named if kind == 0 else [])
    assert found.transactional_ids == (named if kind == 1 else [])
