"""What proxies say is said of others, and what follows is still found."""

from __future__ import annotations

from struct import pack

import crc32c
import pytest

from kdissect.session.proxies import V2_SIGNATURE
from tests.kafka import METADATA_RESPONSE_1, Talk, request, response
from tests.scrub.runs import exchanges, packets_of, rows, scrubbed

CLIENT, TARGET = bytes((10, 9, 8, 7)), bytes((10, 0, 0, 2))


def v2() -> bytes:
    fields = b"\x02\0\x0bbroker.corp" + b"\x03\0\x04\0\0\0\0"
    head = (
        V2_SIGNATURE + b"\x21\x11" + pack(">H", 12 + len(fields)) + CLIENT + TARGET + pack(">HH", 5000, 9092)
    )
    whole = head + fields
    return whole[:-4] + pack(">I", crc32c.crc32c(whole))


SECRET = "Proxy-Authorization: Basic YWxpY2U6d29uZGVybGFuZA=="
TALKS = {
    "PROXY v1": [(b"PROXY TCP4 10.9.8.7 10.0.0.2 5000 9092\r\n", b"")],
    "PROXY v1, IPv6": [(b"PROXY TCP6 2001:db8::7 2001:db8::2 5000 9092\r\n", b"")],
    "PROXY v1, unknown": [(b"PROXY UNKNOWN of alice\r\n", b"")],
    "PROXY v2": [(v2(), b"")],
    "SOCKS5": [
        (b"\x05\x01\0", b"\x05\0"),
        (b"\x05\x01\0\x03\x0bbroker.corp\x23\x84", b"\x05\0\0\x01" + CLIENT + b"\x12\x34"),
    ],
    "SOCKS5, password": [
        (b"\x05\x01\x02", b"\x05\x02"),
        (b"\x01\x05alice\x0awonderland", b"\x01\0"),
        (b"\x05\x01\0\x01" + TARGET + b"\x23\x84", b"\x05\0\0\x01" + CLIENT + b"\x12\x34"),
    ],
    "CONNECT": [
        (
            f"CONNECT broker.corp:9092 HTTP/1.1\r\nHost: broker.corp:9092\r\n{SECRET}\r\n\r\n".encode(),
            b"HTTP/1.1 200 Connection established\r\nVia: proxy.corp\r\n\r\n",
        )
    ],
    "CONNECT, twice": [
        (
            b"CONNECT broker.corp:9092 HTTP/1.1\r\nHost: broker.corp:9092\r\n\r\n",
            b"HTTP/1.1 407 Who is it\r\nContent-Length: 12\r\nVia: proxy.corp\r\n\r\ntell alice.\n",
        ),
        (
            f"CONNECT broker.corp:9092 HTTP/1.1\r\n{SECRET}\r\n\r\n".encode(),
            b"HTTP/1.1 200 OK\r\n\r\n",
        ),
    ],
}


@pytest.mark.parametrize("name", TALKS)
def test_what_follows_is_found_and_nothing_is_told(name: str) -> None:
    said = Talk()
    for asked, answered in TALKS[name]:
        said.say(said.client, asked).say(said.broker, answered)
    said.ask(request("Metadata", 1, 1, "billing", topics=[{"name": "orders"}]))
    said.answer(response("Metadata", 1, 1, **METADATA_RESPONSE_1))
    packets = packets_of(said)
    result = scrubbed(packets)
    assert rows(exchanges(result.packets)) == rows(exchanges(packets))
    assert len(exchanges(packets)) == 1
    assert result.found() is None
    assert result.counts.undecoded_bytes == 0
    words = (
        b"alice",
        b"wonderland",
        b"broker",
        b"corp",
        b"YWxp",
        b"10.9.8.7",
        b"2001:db8::7",
        CLIENT,
        TARGET,
    )
    assert [word for word in words for each in result.packets if word in each.data] == []
    (before,), (after,) = exchanges(packets), exchanges(result.packets)
    assert (before.proxied is None) == (after.proxied is None)
    assert before.client.rpartition(":")[2] == after.client.rpartition(":")[2]
