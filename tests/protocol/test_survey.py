from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.limits import DEFAULTS
from kdissect.model import DecodeError
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.encode import encode
from kdissect.protocol.entities import COORDINATORS, GROUP, TRANSACTIONAL_ID, names_in
from kdissect.protocol.layout import layout, record_fields
from kdissect.protocol.program import is_error_code
from kdissect.protocol.schema import ZERO_UUID, Struct, message_struct
from kdissect.protocol.select import first_true, pick, selection
from kdissect.protocol.survey import route, survey_at
from kdissect.protocol.topics import mentioned_topics, taught_topics
from tests.protocol.official import Vector, vectors


@cache
def messages() -> list[Vector]:
    return [each for each in vectors() if each.struct.name.endswith(("Request", "Response"))]


@cache
def error_fields(struct: Struct) -> Any:
    return selection(struct, is_error_code)


def decoded(struct: Struct, data: bytes) -> Any:
    """What decoding tells of topics, error and records; None where anything is wrong."""
    cursor = Cursor(data)
    values: dict[str, Any] = {}
    try:
        decode(struct, cursor, values)
    except DecodeError:
        return None
    if cursor.notes or cursor.position != cursor.end:
        return None
    records = [value for _, value, _ in pick(record_fields(struct), values)]
    error = first_true(error_fields(struct), values) or 0
    names = [names_in(GROUP, struct, values), names_in(TRANSACTIONAL_ID, struct, values)]
    taught = list(taught_topics(struct, values))
    return (
        mentioned_topics(struct, values),
        error,
        records,
        values.get("acks", -1),
        taught,
        *names,
        values.get("throttleTimeMs", 0),
        [code for _, code, _ in pick(error_fields(struct), values) if code],
        redirects(values),
    )


def redirects(values: dict[str, Any]) -> bool:
    """Whether a partition of a Fetch has a preferred replica or a diverging epoch."""
    partitions = [
        partition for topic in values.get("responses") or () for partition in topic.get("partitions") or ()
    ]
    return any("divergingEpoch" in each or each.get("preferredReadReplica", -1) != -1 for each in partitions)


def surveyed(struct: Struct, data: bytes) -> Any:
    """The same by a survey."""
    way = route(struct)
    found = None if way is None else survey_at(way, data, 0, len(data), DEFAULTS)
    if found is None:
        return None
    records = [data[a:b] for a, b in zip(found.records[::2], found.records[1::2], strict=True)]
    groups, ids = (list(dict.fromkeys(each or ())) for each in (found.groups, found.transactional_ids))
    if found.keys is not None and struct.name.endswith("Request"):
        told = {GROUP: groups, TRANSACTIONAL_ID: ids}.get(COORDINATORS.get(found.coordinator_type, ""))
        if told is not None:
            told += dict.fromkeys(found.keys)
    taught = found.taught or []
    return (
        found.mentions,
        found.error,
        records,
        found.acks,
        taught,
        groups,
        ids,
        found.throttle_ms,
        found.errors or [],
        found.redirects,
    )


def test_of_every_official_message_a_survey_tells_what_its_values_tell() -> None:
    ways = surveys = 0
    for each in messages():
        if route(each.struct) is not None:
            ways += 1
            told = decoded(each.struct, each.data)
            assert told is not None, each.id
            found = surveyed(each.struct, each.data)
            assert found in (told, None), each.id
            surveys += found is not None
    assert ways > 0.92 * len(messages())
    assert surveys > 0.9 * len(messages())


def test_what_is_surveyed_of_a_damaged_message_is_what_its_values_tell() -> None:
    dice = random.Random(7)
    told = 0
    for _ in range(20_000):
        vector: Vector = dice.choice(messages())
        data = bytearray(vector.data)
        for _ in range(dice.randrange(1, 4)):
            if data:
                data[dice.randrange(len(data))] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        found = surveyed(vector.struct, bytes(data))
        if found is not None:
            told += 1
            assert found == decoded(vector.struct, bytes(data)), vector.id
    assert told > 2_000


@given(st.deferred(lambda: st.sampled_from(messages())), st.binary(max_size=60))
def test_of_any_bytes_a_survey_tells_nothing_that_their_values_do_not(vector: Vector, data: bytes) -> None:
    found = surveyed(vector.struct, data)
    assert found is None or found == decoded(vector.struct, data)


def test_the_keys_of_a_coordinator_are_told_without_decoding() -> None:
    found = [each for each in messages() if each.struct.name.startswith("FindCoordinator")]
    assert found
    assert all(surveyed(each.struct, each.data) is not None for each in found)


@pytest.mark.parametrize(
    ("resource_type", "name", "pattern", "expected"),
    [
        (2, "orders", 3, ([("orders", None)], [], [])),
        (3, "billing", 3, ([], ["billing"], [])),
        (5, "tx-1", 3, ([], [], ["tx-1"])),
        (4, "kafka-cluster", 3, ([], [], [])),
        (2, "*", 3, ([], [], [])),
        (2, "ord", 4, ([], [], [])),  # the beginning of names
    ],
)
def test_the_name_of_a_resource_is_told_by_its_type(
    resource_type: int, name: str, pattern: int, expected: tuple[list[Any], list[str], list[str]]
) -> None:
    struct = message_struct(30, 1, "request")  # CreateAcls
    data = encode(
        struct,
        {
            "creations": [
                {
                    "resourceType": resource_type,
                    "resourceName": name,
                    "resourcePatternType": pattern,
                    "principal": "User:a",
                    "host": "*",
                    "operation": 2,
                    "permissionType": 3,
                }
            ]
        },
    )
    found = surveyed(struct, data)
    assert (found[0], found[5], found[6]) == expected
    assert found == decoded(struct, data)


def test_a_message_that_is_all_right_is_surveyed_but_where_a_tagged_field_is_asked_for() -> None:
    whole = [each for each in messages() if route(each.struct) is not None]
    left = {each.struct.name for each in whole if surveyed(each.struct, each.data) is None}
    assert left <= {"CreateTopicsResponse"}


@pytest.mark.parametrize("version", [11, 12, 18])
def test_what_sends_a_fetch_elsewhere_is_found(version: int) -> None:
    struct = message_struct(1, version, "response")
    partition: dict[str, Any] = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 1}
    partition |= {"lastStableOffset": 1, "logStartOffset": 0, "abortedTransactions": None, "records": None}
    topic = {"topicId": "AAAAAAAAAAAAAAAAAAAAAQ"} if version > 12 else {"topic": "t"}
    values: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0}
    values["responses"] = [{**topic, "partitions": [partition]}]
    found = []
    for replica, diverges in ((-1, False), (3, False), (-1, True)):
        partition["preferredReadReplica"] = replica
        partition.pop("divergingEpoch", None)
        if diverges and version >= 12:
            partition["divergingEpoch"] = {"epoch": 4, "endOffset": 9}
        found.append(surveyed(struct, encode(struct, values))[-1])
    assert found == [False, True, version >= 12]


@pytest.mark.parametrize(
    ("key", "version", "kind", "body", "expected"),
    [
        # Produce 7: no transaction, acks 1, one partition with three bytes of records
        (
            *(0, 7, "request"),
            "ffff 0001 00000010 00000001 0001 61 00000001 00000005 00000003 010203",
            ([("a", None)], 0, [b"\1\2\3"], 1, [], [], [], 0, [], False),
        ),
        # Heartbeat 1 response: a throttle time and an error
        (12, 1, "response", "00000007 0019", ([], 25, [], -1, [], [], [], 7, [25], False)),
    ],
)
def test_topics_error_records_and_acks_are_found(
    key: int, version: int, kind: str, body: str, expected: Any
) -> None:
    assert surveyed(message_struct(key, version, kind), bytes.fromhex(body)) == expected


@pytest.mark.parametrize(
    "body",
    [
        "00000000 0019 00",  # a byte is left over
        "00000000 00",  # one is missing
    ],
)
def test_bytes_that_do_not_fit_are_left_to_decoding(body: str) -> None:
    assert surveyed(message_struct(12, 1, "response"), bytes.fromhex(body)) is None


def test_a_string_that_is_not_utf8_is_left_to_decoding() -> None:
    struct = message_struct(12, 1, "request")
    assert surveyed(struct, bytes.fromhex("0001 67 00000001 0001 6d")) is not None
    assert surveyed(struct, bytes.fromhex("0001 ff 00000001 0001 6d")) is None


METADATA_12 = "00000000 01 00 00000001 02 {} 00"
"""A response with no brokers and one topic: its error, name, id, whether it is internal, no partitions,
operations, tags."""
ID = "000102030405060708090a0b0c0d0e0f"
ID_TEXT = "AAECAwQFBgcICQoLDA0ODw"


@pytest.mark.parametrize(
    ("topic", "mentions", "taught"),
    [
        (f"0000 02 61 {ID} 00 01 80000000 00", [("a", None)], [(ID_TEXT, "a")]),
        (f"0003 00 {ID} 00 01 80000000 00", [(None, ID_TEXT)], []),
        (f"0000 02 61 {'00' * 16} 00 01 80000000 00", [("a", None)], []),
    ],
)
def test_of_a_topic_with_id_and_name_the_name_counts_and_is_taught(
    topic: str, mentions: Any, taught: Any
) -> None:
    struct, data = message_struct(3, 12, "response"), bytes.fromhex(METADATA_12.format(topic))
    found = surveyed(struct, data)
    assert found == decoded(struct, data)
    assert (found[0], found[4]) == (mentions, taught)


def test_a_tagged_field_that_is_asked_for_leaves_the_message_to_decoding() -> None:
    struct = message_struct(19, 7, "response")
    topic = f"02 61 {ID} 0000 00 00000001 0001 01"
    assert surveyed(struct, bytes.fromhex(f"00000000 02 {topic} 00 00")) is not None
    assert surveyed(struct, bytes.fromhex(f"00000000 02 {topic} 01 00 02 0029 00")) is None


def test_a_layout_knows_nothing_of_what_the_definitions_do_not_have() -> None:
    unknown = layout(1, 30_000, "request")
    assert (unknown.struct, unknown.candidates, unknown.way, unknown.has_records()) == (None, (), None, False)


def test_few_messages_must_be_decoded_to_be_listed() -> None:
    all_ways = [
        layout(key, version, kind).way
        for key in apis.api_keys()
        for version in apis.versions(key)
        for kind in ("request", "response")
        if layout(key, version, kind).struct is not None
    ]
    assert sum(way is None for way in all_ways) < 0.01 * len(all_ways)


@pytest.mark.parametrize("version", range(14))
def test_the_first_time_that_a_broker_gave_to_records_is_found(version: int) -> None:
    struct = message_struct(apis.PRODUCE, version, "response")
    has_times = version >= 2
    for times, expected in (((-1, -1), 0), ((0, 7), 7), ((-1, 1 << 41), 1 << 41), ((5, 3), 5)):
        parts: list[dict[str, Any]] = [
            {
                **{"index": at, "errorCode": 0, "baseOffset": 0, "logAppendTimeMs": ms, "logStartOffset": 0},
                **{"recordErrors": [], "errorMessage": None},
            }
            for at, ms in enumerate(times)
        ]
        topic = {"name": "t", "topicId": ZERO_UUID, "partitionResponses": parts}
        data = encode(struct, {"responses": [topic], "throttleTimeMs": 0})
        way = route(struct)
        found = None if way is None else survey_at(way, data, 0, len(data), DEFAULTS)
        assert found is not None
        assert found.appended_ms == (expected if has_times else 0)
