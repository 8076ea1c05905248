"""Whose an API key is that Kafka does not have."""

from __future__ import annotations

import pytest

from kdissect.message import bare_frame, parse_request
from kdissect.protocol import apis
from kdissect.protocol.vendors import vendor_of


@pytest.mark.parametrize(
    ("key", "vendor"),
    [
        *((500, None), (501, "AutoMQ"), (602, "AutoMQ"), (603, None)),
        *((9_999, None), (10_000, "Confluent"), (32_767, "Confluent"), (-1, None)),
    ],
)
def test_keys_have_their_vendor(key: int, vendor: str | None) -> None:
    assert vendor_of(key) == vendor


def test_none_of_kafkas_keys_is_a_vendors() -> None:
    assert not [key for key in apis.api_keys() if vendor_of(key)]


def test_an_unknown_request_says_whose_it_is() -> None:
    payload = (10_001).to_bytes(2, "big") + bytes(2) + bytes((0, 0, 0, 7)) + b"\0\x04test" + b"what is this"
    (told,) = parse_request(bare_frame(payload)).faults
    assert told.kind == "unknown-api"
    assert "unknown API key 10001, one of Confluent's own" in told.message
    assert "kdissect schema import --vendor confluent JAR" in told.message
