from __future__ import annotations

from typing import Any

import pytest

from kdissect.protocol.codec import schema


def test_a_schema_reads_and_writes() -> None:
    versions = schema("api_versions", 0, "response")
    value = {"errorCode": 0, "apiKeys": [{"apiKey": 1, "minVersion": 0, "maxVersion": 12}]}
    data = versions.encode(value)
    assert versions.decode(data) == value
    assert versions.size_of(value) == len(data) == 12
    assert [child.name for child in versions.annotate(data).children] == ["errorCode", "apiKeys"]
    assert versions.from_json(versions.to_json(value)) == value
    with pytest.raises(ValueError, match=r"^errorCode: "):
        versions.validate({"errorCode": "x"})


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\0", "ApiVersionsRequest version 3, byte 1: the varint ends too early"),
        (b"\1\1\0\0\0", "ApiVersionsRequest version 3, byte 3: 2 bytes are left after the last field"),
        (b"\1\1\0\0", "ApiVersionsRequest version 3, byte 3: 1 byte is left after the last field"),
    ],
)
def test_bytes_without_its_form_are_a_value_error_that_names_the_byte(data: bytes, complaint: str) -> None:
    versions = schema("ApiVersions", 3)
    for walk in (versions.decode, versions.annotate):
        with pytest.raises(ValueError, match=f"^{complaint}$"):
            walk(data)


def test_by_name_key_and_class() -> None:
    assert schema(1, 17).name == schema("Fetch", 17, "request").name == "FetchRequest"
    header = schema("RequestHeader", 2, "data")
    assert (header.version, header.flexible, len(header.fields)) == (2, True, 4)
    assert not schema("RequestHeader", 1, "data").flexible


@pytest.mark.parametrize(
    ("api", "version", "kind"),
    [("Fetch", 99, "request"), ("Nothing", 0, "request"), (4711, 0, "response"), ("Fetch", 1, "answer")],
)
def test_what_is_not_there_is_a_lookup_error(api: str | int, version: int, kind: str) -> None:
    with pytest.raises(LookupError):
        schema(api, version, kind)


@pytest.mark.parametrize("version", ["17", None, True, 1.0])
def test_a_version_is_a_whole_number(version: Any) -> None:
    with pytest.raises(TypeError, match="version: a whole number is needed"):
        schema("Fetch", version)


def test_as_text_a_schema_is_the_list_of_its_fields() -> None:
    found = schema("Heartbeat", 0, "response")
    assert str(found).split("\n") == ["HeartbeatResponse version 0, as of Kafka 4.4.0", "  errorCode  int16"]
    assert repr(found) == "<schema of HeartbeatResponse version 0>"
