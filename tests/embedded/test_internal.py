"""Every internal record and blob of the official vectors, whole, damaged and of unknown kinds."""

from __future__ import annotations

import base64
import random

import pytest

from kdissect.embedded.internal import (
    FAMILIES,
    Internal,
    annotate_internal,
    decode_internal,
    encode_internal,
    family_of_topic,
    topic_names_in_metadata,
)
from kdissect.faults import KINDS
from kdissect.limits import DEFAULTS
from tests.amount import each_of, some
from tests.embedded.official import Stored, largest_of_each, one, stored
from tests.protocol.official import leaves

ALL = each_of(stored, lambda vector: vector.id)
MOST = 40
"""Places of a value that are damaged, spread evenly over it."""

EACH = each_of(largest_of_each, lambda vector: vector.id)


@ALL
def test_decodes_as_kafka_does(vector: Stored) -> None:
    found = decode_internal(vector.family, vector.key, vector.value, vector.given_name)
    assert (found.name, found.version) == (vector.name, vector.version)
    assert found.key == vector.key_json
    assert found.body == vector.json
    assert list(found.body or ()) == list(vector.json or ()), "in Kafka's order"
    assert found.faults == ()


@ALL
def test_encodes_to_the_same_bytes(vector: Stored) -> None:
    encoded = encode_internal(vector.family, vector.name, vector.version, vector.key_json, vector.json)
    assert encoded == (vector.key, vector.value)


@ALL
def test_the_tree_covers_every_byte_once(vector: Stored) -> None:
    _assert_covered(vector, vector.key, vector.value)


@EACH
def test_a_value_cut_anywhere_is_only_a_fault(vector: Stored) -> None:
    for end in some(range(len(vector.value or b"")), MOST):
        found = _assert_survives(vector, vector.key, (vector.value or b"")[:end])
        assert found.faults or (found.value_part is not None and found.value_part.era)


@EACH
def test_a_key_cut_anywhere_is_only_a_fault(vector: Stored) -> None:
    for end in some(range(len(vector.key or b"")), MOST):
        found = _assert_survives(vector, (vector.key or b"")[:end], vector.value)
        assert found.faults


@EACH
def test_any_byte_changed_is_survived(vector: Stored) -> None:
    chance = random.Random(vector.id)
    value = vector.value or b""
    for at in some(range(len(value)), MOST):
        changed = bytearray(value)
        changed[at] ^= chance.randrange(1, 256)
        _assert_survives(vector, vector.key, bytes(changed))


@EACH
def test_bytes_after_the_last_field_are_named(vector: Stored) -> None:
    if vector.value is not None:
        found = decode_internal(vector.family, vector.key, vector.value + b"more", vector.given_name)
        assert [fault.kind for fault in found.faults] == ["remainder"]
        assert (found.body or {})["_remainder"] == base64.b64encode(b"more").decode()


def _assert_survives(vector: Stored, key: bytes | None, value: bytes | None) -> Internal:
    found = decode_internal(vector.family, key, value, vector.given_name)
    assert all(KINDS[fault.kind][0] == fault.layer == "message" for fault in found.faults)
    for part in (found.key_part, found.value_part):
        assert part is None or not part.remainder or part.faults, "bytes left over are said to be"
    _assert_covered(vector, key, value)
    return found


def _assert_covered(vector: Stored, key: bytes | None, value: bytes | None) -> None:
    root = annotate_internal(vector.family, key, value, vector.given_name)
    end = 0
    for leaf in leaves(root) if root.children else ():
        assert leaf.start == end
        assert leaf.end >= end
        end = leaf.end
    assert end == len(root.buffer or b"") == len(key or b"") + len(value or b"")


@pytest.mark.parametrize("family", FAMILIES)
def test_arbitrary_bytes_never_raise(family: str) -> None:
    chance = random.Random(family)
    for size in range(60):
        data = chance.randbytes(size)
        for key, value in ((data, data), (None, data), (data, None), (None, None)):
            found = decode_internal(family, key, value)
            assert all(fault.kind in KINDS for fault in found.faults)
        leaf_bytes = [leaf.end - leaf.start for leaf in leaves(annotate_internal(family, data, data))]
        assert sum(leaf_bytes) == 2 * size


def test_a_count_that_the_bytes_cannot_hold_makes_nothing() -> None:
    found = decode_internal(
        "connect", None, b"\0\0" + b"\0\0" * 3 + bytes(8) + b"\x7f\xff\xff\xff", "ConnectAssignment"
    )
    assert [fault.kind for fault in found.faults] == ["truncated"]
    assert "assignment" not in (found.body or {})


# -- what is not known ------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["group", "transaction", "share"])
def test_an_unknown_record_type_is_named_and_its_bytes_are_kept(family: str) -> None:
    found = decode_internal(family, b"\x12\x67abc", b"\0\x05xyz")
    assert (found.name, found.version) == ("Unknown(4711)", 5)
    assert found.key == {"_remainder": base64.b64encode(b"abc").decode()}
    assert found.body == {"_remainder": base64.b64encode(b"xyz").decode()}
    assert {fault.kind for fault in found.faults} == {"unknown-version"}


@pytest.mark.parametrize("family", ["metadata", "remote-log"])
def test_an_unknown_metadata_record_is_named_and_its_bytes_are_kept(family: str) -> None:
    found = decode_internal(family, None, b"\x01\xe7\x24\x02xyz")
    assert (found.name, found.version) == ("Unknown(4711)", 2)
    assert found.body == {"_remainder": base64.b64encode(b"xyz").decode()}
    assert [fault.kind for fault in found.faults] == ["unknown-version"]


def test_an_unknown_version_is_not_read_as_another() -> None:
    known = one("group", "GroupMetadata", 4)
    found = decode_internal("group", known.key, b"\0\x05" + (known.value or b"")[2:])
    assert (found.name, found.version) == ("GroupMetadata", 5)
    assert list(found.body or ()) == ["_remainder"]
    assert found.faults[0].message == "value: GroupMetadataValue: version 5 is not known (0 to 4 are)"


def test_another_frame_version_is_not_read() -> None:
    found = decode_internal("metadata", None, b"\x02\x02\x00xyz")
    assert (found.name, found.version) == (None, None)
    assert [fault.kind for fault in found.faults] == ["unknown-version"]


@pytest.mark.parametrize("name", ["ConsumerProtocolSubscription", "ConsumerProtocolAssignment"])
def test_a_newer_consumer_protocol_is_read_as_the_newest_known(name: str) -> None:
    known = one("consumer-protocol", name, 3)
    found = decode_internal("consumer-protocol", None, b"\0\x09" + (known.value or b"")[2:] + b"new", name)
    assert (found.name, found.version) == (name, 9)
    assert found.body == {**known.json, "_remainder": base64.b64encode(b"new").decode()}
    (fault,) = found.faults
    assert fault.kind == "unknown-version"
    assert fault.message.endswith("version 9 is newer than any known: read as version 3, 3 bytes follow")


def test_a_newer_consumer_protocol_may_end_with_the_newest_known_field() -> None:
    known = one("consumer-protocol", "ConsumerProtocolAssignment", 3)
    found = decode_internal("consumer-protocol", None, b"\x7f\xff" + (known.value or b"")[2:], known.name)
    assert found.body == known.json
    assert [fault.kind for fault in found.faults] == ["unknown-version"]


def test_a_newer_consumer_protocol_that_breaks_off_is_a_defect_too() -> None:
    known = one("consumer-protocol", "ConsumerProtocolSubscription", 3)
    found = decode_internal("consumer-protocol", None, b"\0\x09" + (known.value or b"")[2:9], known.name)
    assert len(found.faults) == 2


def test_an_older_version_than_any_is_not_known() -> None:
    found = decode_internal("consumer-protocol", None, b"\xff\xff" + bytes(9), "ConsumerProtocolAssignment")
    assert list(found.body or ()) == ["_remainder"]


# -- what the caller says ---------------------------------------------------------------------------


def test_without_a_name_only_what_fits_one_class_is_named() -> None:
    worker = one("connect", "ConnectWorkerState", 2)
    assert decode_internal("connect", None, worker.value).name == "ConnectWorkerState"
    either = decode_internal("consumer-protocol", None, b"\0\0" + bytes(4) + b"\xff" * 4)
    assert either.name is None
    assert [fault.kind for fault in either.faults] == ["embedded"]


def test_a_value_without_its_key_needs_the_name() -> None:
    known = one("group", "OffsetCommit", 4)
    assert decode_internal("group", None, known.value, "OffsetCommit").body == known.json
    alone = decode_internal("group", None, known.value)
    assert (alone.name, alone.version) == (None, 4)
    assert alone.faults


def test_a_key_where_there_should_be_none_is_shown() -> None:
    known = one("metadata", "TopicRecord", 0)
    found = decode_internal("metadata", b"key", known.value)
    assert found.name == "TopicRecord"
    assert found.key == {"_remainder": base64.b64encode(b"key").decode()}
    assert [fault.kind for fault in found.faults] == ["remainder"]


@pytest.mark.parametrize(
    ("family", "name"), [("nothing", None), ("connect", "AssignmentInfo"), ("group", "TransactionLog")]
)
def test_what_the_caller_says_must_exist(family: str, name: str | None) -> None:
    with pytest.raises(ValueError, match=r"^(family|name): "):
        decode_internal(family, None, b"", name)


@pytest.mark.parametrize(
    ("family", "name", "version", "key", "body", "problem"),
    [
        ("group", "OffsetCommit", 1, {}, {}, "group: missing"),
        ("group", "Unknown(99)", 1, {}, {}, "name: "),
        ("group", "OffsetCommit", None, {}, {}, "version: needed"),
        ("group", None, 1, {}, {}, "name: needed"),
        ("metadata", "TopicRecord", 77, None, {}, "TopicRecord has no version 77"),
        ("metadata", "TopicRecord", "0", None, {}, "version: "),
        ("metadata", "TopicRecord", 0, {}, {"name": "a", "topicId": "x"}, "key: "),
        ("metadata", "TopicRecord", 0, None, {"name": "a", "topicId": "x"}, "topicId: "),
        ("metadata", "OffsetCommit", 0, None, {}, "name: "),
        ("connect", "ConnectAssignment", 1 << 40, None, {}, "ConnectAssignment has no version"),
        ("principal", "DefaultPrincipalData", 0, None, None, "DefaultPrincipalData: an object"),
    ],
)
def test_what_does_not_fit_is_not_written(
    family: str, name: str | None, version: int | None, key: object, body: object, problem: str
) -> None:
    with pytest.raises(ValueError, match="^" + problem):
        encode_internal(family, name, version, key, body)


# -- topics -----------------------------------------------------------------------------------------


def test_topics_have_their_family() -> None:
    assert family_of_topic("__cluster_metadata") == "metadata"
    assert family_of_topic("__remote_log_metadata") == "remote-log"
    assert family_of_topic("orders") is None


def test_metadata_records_teach_topic_names() -> None:
    topic = one("metadata", "TopicRecord", 0)
    other = one("metadata", "PartitionRecord", 2)
    values = [None, b"", topic.value, other.value, (topic.value or b"")[:-3]]
    assert list(topic_names_in_metadata(values)) == [(topic.json["topicId"], topic.json["name"])]


def test_the_limits_of_the_caller_hold() -> None:
    few = DEFAULTS._replace(elements=1)
    body = {"topics": ["a", "b"], "userData": None}
    _, value = encode_internal("consumer-protocol", "ConsumerProtocolSubscription", 0, None, body)
    found = decode_internal("consumer-protocol", None, value, "ConsumerProtocolSubscription", few)
    assert [fault.kind for fault in found.faults] == ["too-many-elements"]
