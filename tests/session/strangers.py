"""What clients say that are newer than the definitions, or a vendor's."""

from __future__ import annotations

from kdissect.protocol import apis
from tests.kafka import Talk

VENDOR_KEY = 10_001
NEWER_FETCH = apis.versions(apis.FETCH).stop


def stranger(
    correlation: int,
    key: int = apis.FETCH,
    version: int = NEWER_FETCH,
    client_id: str = "app",
    body: bytes = b"\0\xff\xff\xff\xff\0\0\x01\xf4",
) -> bytes:
    """A request of an API or a version that the definitions do not have."""
    name = client_id.encode()
    numbers = ((key, 2), (version, 2), (correlation, 4), (len(name), 2))
    return b"".join(value.to_bytes(size, "big") for value, size in numbers) + name + body


def stranger_answer(correlation: int, body: bytes = b"\0" * 9 + b"\x7f\x01") -> bytes:
    """A response of which only the correlation id is known."""
    return correlation.to_bytes(4, "big") + body


def strange_talk(
    count: int, first: int = 1, key: int = apis.FETCH, version: int = NEWER_FETCH, syn: bool = True
) -> Talk:
    """Requests and responses, by turns."""
    talk = Talk(syn=syn)
    for correlation in range(first, first + count):
        talk.ask(stranger(correlation, key, version)).answer(stranger_answer(correlation))
    return talk
