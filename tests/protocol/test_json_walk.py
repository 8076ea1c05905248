"""The JSON text of bytes is that of their values."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.model import DecodeError
from kdissect.names import METADATA_TOPIC, METADATA_TOPIC_ID
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.encode import encode
from kdissect.protocol.json_form import dumps, to_json
from kdissect.protocol.json_plan import Hidden, Way, way_of
from kdissect.protocol.json_text import JsonText
from kdissect.protocol.json_walk import Walk
from kdissect.protocol.schema import UNKNOWN_TAGS, Struct, message_struct
from kdissect.wording import REDACTED
from tests.protocol.official import Vector, vectors


class Sizes:
    """Writes how large record sets are, once more, and whether they are metadata."""

    def write(
        self, out: JsonText, data: bytes, start: int, size: int, name: bytes, is_metadata: bool
    ) -> None:
        out.put(name)
        out.number(len(data[start : start + size]) * (-1 if is_metadata else 1))


class Told:
    """Says of each value whether it is a secret, as it was told; where nothing is left, it cannot be told."""

    def __init__(self, *verdicts: bool) -> None:
        self.verdicts = list(verdicts)

    def hides(self) -> bool:
        if not self.verdicts:
            raise DecodeError("not told", 0)
        return self.verdicts.pop(0)


def walked(
    struct: Struct,
    data: bytes,
    records: Sizes | None = None,
    hidden: Hidden | None = None,
    judge: Told | None = None,
) -> str | None:
    """The text; None where the walk leaves it to the values."""
    out = JsonText()
    walk = Walk(Cursor(b""), out)
    walk.begin(data, 0, len(data))
    walk.records, walk.judge = records, judge
    try:
        walk.write(way_of(struct, hidden))
    except DecodeError:
        return None
    return out.take().decode("ascii") if walk.cursor.position == walk.cursor.end else None


def decoded(struct: Struct, data: bytes) -> str | None:
    """The text of the values; None where anything is wrong with the bytes."""
    cursor = Cursor(data)
    try:
        values = decode(struct, cursor)
    except DecodeError:
        return None
    if cursor.notes or cursor.position != cursor.end:
        return None
    return dumps(to_json(struct, values))


def test_of_every_official_message_the_text_is_that_of_its_values() -> None:
    for each in vectors():
        text = walked(each.struct, each.data)
        assert text is not None, each.id
        assert text == decoded(each.struct, each.data), each.id


def test_of_a_damaged_message_the_text_is_that_of_its_values_or_none() -> None:
    dice = random.Random(5)
    count = 0
    for _ in range(20_000):
        vector: Vector = dice.choice(vectors())
        data = bytearray(vector.data)
        for _ in range(dice.randrange(1, 4)):
            if data:
                data[dice.randrange(len(data))] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        text = walked(vector.struct, bytes(data))
        if text is not None:
            count += 1
            assert text == decoded(vector.struct, bytes(data)), vector.id
    assert count > 2_000


@given(st.deferred(lambda: st.sampled_from(vectors())), st.binary(max_size=60))
def test_any_bytes(vector: Vector, data: bytes) -> None:
    text = walked(vector.struct, data)
    assert text is None or text == decoded(vector.struct, data)


@pytest.mark.parametrize("count", [2**31 - 1, 100_000])
def test_no_array_is_longer_than_its_bytes(count: int) -> None:
    assert walked(message_struct(3, 0, "request"), count.to_bytes(4, "big") + b"\0\1a") is None


def produce(topic: str) -> bytes:
    partition = {"index": 1, "records": b"12345"}
    topics = [{"name": topic, "partitionData": [partition]}]
    body = {"transactionalId": None, "acks": 1, "timeoutMs": 2, "topicData": topics}
    return encode(message_struct(0, 7, "request"), body)


def test_record_sets_are_written_by_whom_they_concern() -> None:
    struct = message_struct(0, 7, "request")
    text = walked(struct, produce("t"), Sizes())
    assert text is not None
    assert '"index":1,"recordsSizeInBytes":5,"records":5}' in text
    assert walked(struct, produce("t")) == text.replace(',"records":5', "")


def test_records_of_the_metadata_topic_are_told_apart() -> None:
    struct = message_struct(0, 7, "request")
    text = walked(struct, produce(METADATA_TOPIC), Sizes())
    assert text is not None
    assert '"recordsSizeInBytes":5,"records":-5}' in text


def fetched(*topics: str) -> bytes:
    """A response with a record set of each topic, by name or id."""
    is_id = len(topics[0]) == 22
    partition = {"highWatermark": 1, "records": b"12345", "abortedTransactions": None}
    each = [{"topicId" if is_id else "topic": topic, "partitions": [partition]} for topic in topics]
    return encode(message_struct(1, 13 if is_id else 12, "response"), {"responses": each})


@pytest.mark.parametrize(
    ("version", "other"), [(12, METADATA_TOPIC[:-1] + "b"), (13, METADATA_TOPIC_ID[:-1] + "g")]
)
def test_the_metadata_topic_is_told_by_name_and_by_id(version: int, other: str) -> None:
    struct = message_struct(1, version, "response")
    own = METADATA_TOPIC if version == 12 else METADATA_TOPIC_ID
    for topics, expected in (((own, other), [-5, 5]), ((other,), [5])):
        text = walked(struct, fetched(*topics), Sizes())
        assert text is not None
        assert [each["partitions"][0]["records"] for each in json.loads(text)["responses"]] == expected


def test_records_before_which_nothing_tells_their_topic_are_left_to_the_values() -> None:
    inner = way_of(message_struct(0, 7, "request")).steps[-1].inner
    assert inner is not None
    walk = Walk(Cursor(b""), JsonText())
    turned = Way([*reversed(inner.steps)], [], False, False)
    partition = b"\0\0\0\1" + b"\0\0\0\1" + b"\0\0\0\5" + b"12345"
    data = partition + len(METADATA_TOPIC).to_bytes(2, "big") + METADATA_TOPIC.encode()
    walk.begin(data, 0, len(data))
    walk.records = Sizes()
    with pytest.raises(DecodeError, match="behind its records"):
        walk.write(turned)


@pytest.mark.parametrize(("position", "expected"), [(0, 5), (7, None)])
def test_of_a_snapshot_only_what_begins_it_is_a_record_set(position: int, expected: int | None) -> None:
    struct = message_struct(59, 0, "response")
    partition = {
        "index": 0,
        "errorCode": 0,
        "snapshotId": {"endOffset": 1, "epoch": 2},
        "size": 100,
        "position": position,
        "unalignedRecords": b"12345",
    }
    body = {"throttleTimeMs": 0, "errorCode": 0, "topics": [{"name": "t", "partitions": [partition]}]}
    text = walked(struct, encode(struct, body), Sizes())
    assert text is not None
    (found,) = json.loads(text)["topics"][0]["partitions"]
    assert found["unalignedRecordsSizeInBytes"] == 5
    assert found.get("unalignedRecords") == expected


TAGGED: list[dict[str, Any]] = [
    {},
    {"clusterId": "c"},
    {"clusterId": None},
    {"replicaState": {"replicaId": 3, "replicaEpoch": -1}},
    {"replicaState": {"replicaId": -1, "replicaEpoch": -1}},
    {"clusterId": "c", "replicaState": {"replicaId": 3, "replicaEpoch": 4}},
    {UNKNOWN_TAGS: [{"tag": 77, "data": b"x"}, {"tag": 78, "data": b""}]},
    {"clusterId": "c", UNKNOWN_TAGS: [{"tag": 77, "data": b"x"}]},
]


@pytest.mark.parametrize("tagged", TAGGED, ids=str)
def test_tagged_fields_stand_where_the_definition_has_them(tagged: dict[str, Any]) -> None:
    struct = message_struct(1, 16, "request")
    plain = {"maxWaitMs": 1, "minBytes": 2, "maxBytes": 3, "isolationLevel": 0, "sessionId": 0}
    rest = {"sessionEpoch": -1, "topics": [], "forgottenTopicsData": [], "rackId": ""}
    data = encode(struct, {**plain, **rest, **tagged})
    assert walked(struct, data) == decoded(struct, data)


def test_a_tagged_field_that_says_its_default_is_left_out() -> None:
    struct = message_struct(1, 16, "request")
    plain = {"maxWaitMs": 1, "minBytes": 2, "maxBytes": 3, "isolationLevel": 0, "sessionId": 0}
    rest = {"sessionEpoch": -1, "topics": [], "forgottenTopicsData": [], "rackId": ""}
    data = encode(struct, {**plain, **rest})
    told = data[:-1] + b"\1\0\1\0"  # clusterId, null
    assert decoded(struct, told) == walked(struct, told) == walked(struct, data)


SECRETS = Hidden(frozenset({"rackId"}), frozenset({"clusterId", "metrics"}))


def test_secrets_are_hidden_and_unknown_tags_with_them() -> None:
    struct = message_struct(1, 16, "request")
    plain = {"maxWaitMs": 1, "minBytes": 2, "maxBytes": 3, "isolationLevel": 0, "sessionId": 0}
    rest = {"sessionEpoch": -1, "topics": [], "forgottenTopicsData": []}
    data = encode(struct, {**plain, **rest, "rackId": "r", UNKNOWN_TAGS: [{"tag": 77, "data": b"x"}]})
    text = walked(struct, data, hidden=SECRETS)
    assert text is not None
    assert json.loads(text)["rackId"] == REDACTED
    assert json.loads(text)[UNKNOWN_TAGS] == [{"tag": 77, "data": REDACTED}]
    nothing = walked(struct, encode(struct, {**plain, **rest, "rackId": ""}), hidden=SECRETS)
    assert nothing is not None
    assert '"rackId":""' in nothing


def test_a_mark_behind_a_value_makes_it_a_secret_and_the_values_inside() -> None:
    struct = message_struct(32, 4, "response")
    synonyms = [{"name": "s", "value": "old", "source": 1}, {"name": "t", "value": None, "source": 1}]
    config = {"readOnly": False, "configSource": 5, "synonyms": synonyms, "configType": 2}
    configs = [
        {**config, "name": "a", "value": "1", "isSensitive": True, "documentation": "about"},
        {**config, "name": "b", "value": None, "isSensitive": True, "documentation": None},
        {**config, "name": "c", "value": "3", "isSensitive": False, "documentation": None},
    ]
    result = {"errorCode": 0, "errorMessage": None, "resourceType": 2, "resourceName": "r"}
    data = encode(struct, {"throttleTimeMs": 0, "results": [{**result, "configs": configs}]})
    hidden = Hidden(frozenset(), frozenset(), frozenset({"value"}))
    text = walked(struct, data, hidden=hidden)
    assert text is not None
    told = json.loads(text)["results"][0]["configs"]
    assert [each["value"] for each in told] == [REDACTED, None, "3"]
    assert [[other["value"] for other in each["synonyms"]] for each in told] == [
        [REDACTED, None],
        [REDACTED, None],
        ["old", None],
    ]
    assert all(walked(struct, data[:end], hidden=hidden) is None for end in range(len(data)))


def test_a_value_whose_mark_the_walk_cannot_find_is_left_to_decoding() -> None:
    struct = message_struct(32, 4, "response")
    result = {"errorCode": 0, "errorMessage": None, "resourceType": 2, "resourceName": "r"}
    config = {"readOnly": False, "configSource": 5, "synonyms": [], "configType": 2, "isSensitive": False}
    configs = [{**config, "name": "a", "value": "1", "documentation": "behind the mark"}]
    data = encode(struct, {"throttleTimeMs": 0, "results": [{**result, "configs": configs}]})
    for name in ("name", "documentation"):  # a text stands between it and the mark; the mark stands before it
        assert walked(struct, data, hidden=Hidden(frozenset(), frozenset(), frozenset({name}))) is None


def test_what_may_be_a_secret_is_asked_about_in_the_order_of_the_wire() -> None:
    struct = message_struct(19, 5, "request")
    configs = [
        {"name": name, "value": value} for name, value in (("a", "1"), ("b", None), ("c", ""), ("d", "2"))
    ]
    topic = {"name": "t", "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": configs}
    data = encode(struct, {"topics": [topic], "timeoutMs": 1, "validateOnly": False})
    hidden = Hidden(frozenset(), frozenset({"value"}))

    def values(judge: Told | None) -> list[str | None]:
        text = walked(struct, data, hidden=hidden, judge=judge)
        assert text is not None
        return [each["value"] for each in json.loads(text)["topics"][0]["configs"]]

    assert values(Told(False, True)) == ["1", None, "", REDACTED]
    assert values(Told(True, False)) == [REDACTED, None, "", "2"]
    assert values(None) == [REDACTED, None, "", REDACTED]  # unknown is hidden
    assert walked(struct, data, hidden=hidden, judge=Told(False)) is None
