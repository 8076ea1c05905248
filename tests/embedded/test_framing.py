from __future__ import annotations

import pytest

from kdissect.embedded import framing
from kdissect.embedded.framing import InternalRecord

GROUP, METADATA = "group-coordinator", "metadata"
KEY = bytes.fromhex("0002 0001 67")  # GroupMetadataKey of group g


def kinds(record: InternalRecord) -> list[list[str]]:
    return [
        [] if part is None else [each.kind for each in part.faults] for part in (record.key, record.value)
    ]


def test_a_coordinators_record_types_are_stems_of_pairs() -> None:
    types = framing.record_types(GROUP)
    assert (types[1], types[2]) == ("OffsetCommit", "GroupMetadata")
    assert not any(name.endswith(("Key", "Value")) for name in types.values())
    assert framing.record_types(METADATA)[2] == "TopicRecord"


def test_the_key_says_what_the_value_is() -> None:
    key, value = framing.write_coordinator(GROUP, "GroupMetadata", 0, {"group": "g"}, EMPTY_GROUP)
    assert key == KEY
    found = framing.read_coordinator(GROUP, key, value, None)
    assert found.key is not None
    assert found.value is not None
    assert (found.key.name, found.key.values) == ("GroupMetadata", {"group": "g"})
    assert (found.value.name, found.value.version, found.value.json()) == ("GroupMetadata", 0, EMPTY_GROUP)
    assert kinds(found) == [[], []]


EMPTY_GROUP = {"protocolType": "consumer", "generation": 1, "protocol": None, "leader": None, "members": []}


def test_a_tombstone_has_no_value() -> None:
    assert framing.write_coordinator(GROUP, "GroupMetadata", None, {"group": "g"}, None) == (KEY, None)
    assert framing.read_coordinator(GROUP, KEY, None, None).value is None


def test_without_a_key_the_name_must_come_from_elsewhere() -> None:
    value = framing.write_versioned("GroupMetadataValue", 0, EMPTY_GROUP)
    assert kinds(framing.read_coordinator(GROUP, None, value, None)) == [[], ["embedded"]]
    named = framing.read_coordinator(GROUP, None, value, "GroupMetadata").value
    assert named is not None
    assert named.is_exact


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("00", None, [["truncated"], []]),
        ("7fff", None, [["unknown-version"], []]),
        ("7fff", "0000", [["unknown-version"], ["unknown-version"]]),
        ("0002 0001 67", "00", [[], ["truncated"]]),
        ("0002 0001 67", "7fff", [[], ["unknown-version"]]),
        ("0002 0001 67 00", None, [["remainder"], []]),
    ],
)
def test_a_coordinators_record_that_cannot_be_read_says_why(
    key: str, value: str | None, expected: list[list[str]]
) -> None:
    data = None if value is None else bytes.fromhex(value)
    assert kinds(framing.read_coordinator(GROUP, bytes.fromhex(key), data, None)) == expected


def test_a_metadata_record_has_a_frame_of_three_varints() -> None:
    body = {"name": "t", "topicId": "AAAAAAAAAAAAAAAAAAAAAg"}
    data = framing.write_metadata(METADATA, "TopicRecord", 0, body)
    assert data[:3] == b"\1\2\0"
    found = framing.read_metadata(METADATA, data)
    assert (found.name, found.version, found.json(), found.is_exact) == ("TopicRecord", 0, body, True)
    assert [(word.name, word.value) for word in found.words] == [
        ("(frame version)", 1),
        ("(record type)", 2),
        ("(version)", 0),
    ]


@pytest.mark.parametrize(
    ("data", "name", "kind"),
    [
        ("", "", "truncated"),
        ("02 02 00", "", "unknown-version"),
        ("01 ff", "", "truncated"),
        ("01 ff7f 00 aa", "Unknown(16383)", "unknown-version"),
        ("01 02 64 aa", "TopicRecord", "unknown-version"),
    ],
)
def test_a_metadata_record_that_cannot_be_read_says_why(data: str, name: str, kind: str) -> None:
    found = framing.read_metadata(METADATA, bytes.fromhex(data))
    assert (found.name, [each.kind for each in found.faults]) == (name, [kind])
    assert b"".join(found.data[word.start : word.end] for word in found.words) + found.remainder == found.data


def test_a_version_newer_than_any_known_is_read_as_the_newest_where_kafka_does_so() -> None:
    body: dict[str, object] = {
        "topics": [],
        "userData": None,
        "ownedPartitions": [],
        "generationId": 1,
        "rackId": None,
    }
    data = b"\x7f\xff" + framing.write_struct("ConsumerProtocolSubscription", 3, body) + b"\xaa"
    lenient = framing.read_versioned("ConsumerProtocolSubscription", data, lenient=True)
    assert lenient.values["generationId"] == 1
    assert [each.kind for each in lenient.faults] == ["unknown-version"]
    assert "read as version 3, 1 byte follows" in lenient.faults[0].message
    strict = framing.read_versioned("ConsumerProtocolSubscription", data)
    assert (strict.struct, [each.kind for each in strict.faults]) == (None, ["unknown-version"])


def test_a_struct_may_have_its_version_as_its_first_field() -> None:
    data = framing.write_struct("SnapshotHeaderRecord", 0, {"version": 0, "lastContainedLogTimestamp": 5})
    found = framing.read_own("SnapshotHeaderRecord", data)
    assert (found.values["lastContainedLogTimestamp"], found.is_exact) == (5, True)
    newer = framing.read_own("SnapshotHeaderRecord", b"\0\x09" + data[2:])
    assert [each.kind for each in newer.faults] == ["unknown-version"]
    assert [each.kind for each in framing.read_own("SnapshotHeaderRecord", b"\0").faults] == ["truncated"]


@pytest.mark.parametrize("name", ["Nothing", "OffsetCommitKey"])
def test_only_known_records_can_be_written(name: str) -> None:
    with pytest.raises(ValueError, match=f"have no record {name}"):
        framing.write_coordinator(GROUP, name, 0, {}, {})
    with pytest.raises(ValueError, match=f"have no record {name}"):
        framing.write_metadata(METADATA, name, 0, {})
    with pytest.raises(ValueError, match="no version 99"):
        framing.write_versioned("GroupMetadataValue", 99, {})
