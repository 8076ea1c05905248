"""A name, a password or a value in any field of any message is not in the result."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.protocol import apis
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import UNKNOWN_TAGS, Field, Struct, data_struct, message_struct
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.amount import LONG
from tests.kafka import Talk
from tests.scrub.runs import packets_of, scrubbed

WORD = "Zq7-alice"
"""Stands in every text and in all bytes."""
_NUMBERS = {
    "int8": 1,
    "int16": 1,
    "int32": 2,
    "int64": 3,
    "uint16": 4,
    "uint32": 5,
    "float64": 1.5,
    "bool": True,
}


def values(struct: Struct, path: str, depth: int = 0) -> dict[str, Any]:
    """Values of a struct: texts with the word in them everywhere."""
    out = {field.name: value(field, f"{path}.{field.name}", depth) for field in struct.fields}
    if struct.flexible:
        out[UNKNOWN_TAGS] = [{"tag": 99, "data": b"\0\1" + WORD.encode() + b" of a newer version"}]
    return out


def value(field: Field, path: str, depth: int) -> Any:
    if field.struct is not None:
        inner = values(field.struct, path, depth + 1)
        return [inner] if field.is_array else inner
    kind = field.type.removeprefix("[]")
    one = single(kind, path)
    return [one, one] if field.is_array else one


def single(kind: str, path: str) -> Any:
    if kind == "string":
        return f"{WORD}{path}"
    if kind == "bytes":
        return f"{WORD}{path}".encode()
    if kind == "records":
        return bytes(write_batch([Record(7, 1_700_000_000_000, WORD.encode(), f"{WORD}{path}".encode())]))
    if kind == "uuid":
        return "WnE3LWFsaWNlLXpxNy1hbA"  # the word and more
    return _NUMBERS[kind]


def versions(key: int) -> list[int]:
    """The versions of an API that are tried: all, or those at the ends and one between."""
    known = list(apis.versions(key))
    return known if LONG else sorted({known[0], known[len(known) // 2], known[-1]})


@pytest.mark.parametrize("key", apis.api_keys())
def test_no_field_tells_anything(key: int) -> None:
    said = Talk()
    count = 0
    for version in versions(key):
        asked, answered = (message_struct(key, version, kind) for kind in ("request", "response"))
        head = {
            "requestApiKey": key,
            "requestApiVersion": version,
            "correlationId": version,
            "clientId": WORD,
        }
        begin = _header("RequestHeader", apis.request_header_version(key, version), head)
        said.ask(begin + encode(asked, values(asked, "")))
        head = {"correlationId": version}
        begin = _header("ResponseHeader", apis.response_header_version(key, version), head)
        said.answer(begin + encode(answered, values(answered, "")))
        count += 1
    result = scrubbed(packets_of(said))
    assert result.counts.exchanges == count
    data = b"".join(each.data for each in result.packets)
    for word in (WORD.encode(), b"alice"):
        assert word not in data, data[data.index(word) - 40 : data.index(word) + 40]
    assert result.found() is None


def _header(name: str, version: int, head: dict[str, Any]) -> bytes:
    struct = data_struct(name, version)
    names = {field.name for field in struct.fields}
    made: dict[str, Any] = {each: found for each, found in head.items() if each in names}
    if struct.flexible:
        made[UNKNOWN_TAGS] = [{"tag": 98, "data": WORD.encode()}]
    return encode(struct, made)
