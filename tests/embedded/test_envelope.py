"""Messages inside Envelopes."""

from __future__ import annotations

import random
import struct
from functools import cache
from typing import Any

import pytest

from kdissect.embedded.decoded import Context
from kdissect.embedded.envelope import EmbeddedMessage, inner_request, inner_response
from kdissect.embedded.fields import decode_field
from tests.protocol.official import leaves, rows

ENVELOPE = 58


@cache
def messages() -> tuple[dict[str, Any], ...]:
    """The typical vector of every request and response."""
    return tuple(row for row in rows("messages.ndjson.gz") if row["fill"] == "typical")


def whole(row: dict[str, Any]) -> bytes:
    return bytes.fromhex(row["header_hex"] + row["body_hex"])


def request_of(response: dict[str, Any]) -> bytes:
    """The beginning of its request, which is all that says what it is."""
    return struct.pack(">hh", response["api_key"], response["version"])


def test_every_request_is_read_with_its_header() -> None:
    for row in messages():
        if row["kind"] == "request":
            found = inner_request(whole(row))
            assert (found.api_key, found.api_version) == (row["api_key"], row["version"]), row["id"]
            assert found.header.json() == row["header"]
            assert found.body.json() == row["json"]
            assert found.faults == ()


def test_every_response_is_read_by_its_request() -> None:
    for row in messages():
        if row["kind"] == "response":
            found = inner_response(whole(row), request_of(row))
            assert found is not None
            assert found.json() == {"header": row["header"], "body": row["json"]}, row["id"]
            assert found.faults == ()


def test_a_response_alone_is_not_guessed() -> None:
    assert decode_field("EnvelopeResponse", [{}], "responseData", bytes(20)) is None
    context = Context(request={"requestData": b"\x12\x67\0\0\0\0\0\x01"})
    assert decode_field("EnvelopeResponse", [{}], "responseData", bytes(20), context) is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes.fromhex("1267 0003 00000007 ffff"), "Unknown(4711)Request: unknown API"),
        (bytes.fromhex("0013 0063 00000007 ffff 00"), "CreateTopicsRequest: unknown version 99"),
    ],
)
def test_an_unknown_api_or_version_is_opaque(data: bytes, reason: str) -> None:
    found = inner_request(data)
    out = found.json()
    assert out["header"]["correlationId"] == 7
    assert (out["body"], out["opaque"]) == (None, reason)
    assert [fault.kind for fault in found.faults] == ["unknown-version"]


def test_an_envelope_in_an_envelope_is_not_opened() -> None:
    (row,) = [row for row in messages() if row["api_key"] == ENVELOPE and row["kind"] == "request"][:1]
    found = inner_request(whole(row))
    context = found.body.context
    assert decode_field("EnvelopeRequest", [found.body.values], "requestData", whole(row), context) is None


def test_damaged_messages_are_only_faults() -> None:
    chance = random.Random(58)
    requests = [row for row in messages() if row["kind"] == "request"]
    for row in chance.sample(requests, 20):
        data = whole(row)
        for end in range(len(data)):
            found = inner_request(data[:end])
            assert found.faults
            _assert_covered(found, data[:end])
        for at in range(len(data)):
            changed = bytearray(data)
            changed[at] ^= chance.randrange(1, 256)
            _assert_covered(inner_request(bytes(changed)), bytes(changed))


def _assert_covered(found: EmbeddedMessage, data: bytes) -> None:
    end = 0
    for node in found.draw(b"before" + data + b"after", 6):
        for leaf in leaves(node):
            assert leaf.start == end + 6
            end = leaf.end - 6
    assert end == len(data)
