"""What proxies say first is told and taken off, and costs nothing behind it."""

from __future__ import annotations

from typing import Any

import crc32c
import pytest

from kdissect.model import Chunk, Gap
from kdissect.protocol.framing import PART_BYTES
from kdissect.session.preamble import MOST, MOST_HELD, Preambles, begins
from kdissect.session.proxies import HEAD_BYTES, V1_BYTES, V2_SIGNATURE
from tests.acceptance.wire import talked
from tests.accounts import astray
from tests.kafka import Talk, framed
from tests.lab import Dissected
from tests.session.runs import metadata, metadata_answer
from tests.tcp.segments import BROKER, CLIENT

CLIENT_TEXT, BROKER_TEXT = "10.0.0.1:50000", "10.0.0.2:19092"
V1 = b"PROXY TCP4 203.0.113.7 198.51.100.1 51000 9092\r\n"
V1_6 = b"PROXY TCP6 2001:db8::7 2001:db8::1 51000 9092\r\n"


def v2(family: int, body: bytes, command: int = 1, version: int = 2) -> bytes:
    return V2_SIGNATURE + bytes((version << 4 | command, family)) + len(body).to_bytes(2, "big") + body


ENDS_4 = bytes((203, 0, 113, 7, 198, 51, 100, 1)) + (51_000).to_bytes(2, "big") + (9092).to_bytes(2, "big")
ENDS_6 = bytes.fromhex("20010db8" + "00" * 11 + "07" + "20010db8" + "00" * 11 + "01") + ENDS_4[8:]


def field(kind: int, value: bytes) -> bytes:
    return bytes((kind,)) + len(value).to_bytes(2, "big") + value


def checked(body: bytes) -> bytes:
    empty = v2(0x11, body + field(3, bytes(4)))
    return empty[:-4] + crc32c.crc32c(empty).to_bytes(4, "big")


GREETING, LOGIN = b"\x05\x02\x00\x02", b"\x01\x05alice\x06s3cret"
TO_NAME = b"\x05\x01\x00\x03\x07broker1\x23\x84"
TO_IPV4, TO_IPV6 = (
    b"\x05\x01\x00\x01\x0a\x09\x08\x07\x23\x84",
    b"\x05\x01\x00\x04" + ENDS_6[:16] + b"\x23\x84",
)
GRANTED = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"
CONNECT = b"CONNECT broker1:9092 HTTP/1.1\r\nHost: broker1:9092\r\n"
AUTHORIZED = CONNECT + b"Proxy-Authorization: Basic YWxpY2U6czNjcmV0\r\n\r\n"
TUNNEL = b"HTTP/1.1 200 Connection established\r\n\r\n"
REFUSED = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 5\r\n\r\nsorry"

Turns = list[tuple[str, bytes]]
ROUTE = {"client": "203.0.113.7:51000", "destination": "198.51.100.1:9092", "proxy": CLIENT_TEXT}
ROUTE_6 = {"client": "[2001:db8::7]:51000", "destination": "[2001:db8::1]:9092", "proxy": CLIENT_TEXT}
ASKED = {"target": "broker1:9092", "outcome": "succeeded", "proxy": BROKER_TEXT}

WHOLE: dict[str, tuple[Turns, list[dict[str, Any]], str]] = {
    "v1": ([("c", V1)], [{"protocol": "PROXY v1"} | ROUTE], ROUTE["client"]),
    "v1 IPv6": ([("c", V1_6)], [{"protocol": "PROXY v1"} | ROUTE_6], ROUTE_6["client"]),
    "v1 unknown": (
        [("c", b"PROXY UNKNOWN whatever it says\r\n")],
        [{"protocol": "PROXY v1", "proxy": CLIENT_TEXT}],
        CLIENT_TEXT,
    ),
    "v2": ([("c", v2(0x11, ENDS_4))], [{"protocol": "PROXY v2"} | ROUTE], ROUTE["client"]),
    "v2 IPv6": ([("c", v2(0x21, ENDS_6))], [{"protocol": "PROXY v2"} | ROUTE_6], ROUTE_6["client"]),
    "v2 fields": (
        [
            (
                "c",
                v2(0x11, ENDS_4 + field(2, b"kafka.example") + field(0xEA, b"\x01vpce-0a1b") + field(4, b"")),
            )
        ],
        [{"protocol": "PROXY v2", "authority": "kafka.example", "vpc_endpoint": "vpce-0a1b"} | ROUTE],
        ROUTE["client"],
    ),
    "v2 checksum": ([("c", checked(ENDS_4))], [{"protocol": "PROXY v2"} | ROUTE], ROUTE["client"]),
    "v2 local": (
        [("c", v2(0, b"", command=0))],
        [{"protocol": "PROXY v2", "command": "LOCAL", "proxy": CLIENT_TEXT}],
        CLIENT_TEXT,
    ),
    "v2 unix": (
        [("c", v2(0x31, bytes(216)))],
        [{"protocol": "PROXY v2", "proxy": CLIENT_TEXT}],
        CLIENT_TEXT,
    ),
    "socks": (
        [("c", b"\x05\x01\x00"), ("b", b"\x05\x00"), ("c", TO_NAME), ("b", GRANTED)],
        [{"protocol": "SOCKS5"} | ASKED],
        CLIENT_TEXT,
    ),
    "socks IPv4": (
        [("c", b"\x05\x01\x00"), ("b", b"\x05\x00"), ("c", TO_IPV4), ("b", GRANTED)],
        [{"protocol": "SOCKS5"} | ASKED | {"target": "10.9.8.7:9092"}],
        CLIENT_TEXT,
    ),
    "socks IPv6": (
        [("c", b"\x05\x01\x00"), ("b", b"\x05\x00"), ("c", TO_IPV6), ("b", GRANTED)],
        [{"protocol": "SOCKS5"} | ASKED | {"target": "[2001:db8::7]:9092"}],
        CLIENT_TEXT,
    ),
    "socks login": (
        [
            ("c", GREETING),
            ("b", b"\x05\x02"),
            ("c", LOGIN),
            ("b", b"\x01\x00"),
            ("c", TO_NAME),
            ("b", GRANTED),
        ],
        [{"protocol": "SOCKS5", "login": "password"} | ASKED],
        CLIENT_TEXT,
    ),
    "connect": (
        [("c", CONNECT + b"\r\n"), ("b", TUNNEL)],
        [{"protocol": "HTTP CONNECT"} | ASKED],
        CLIENT_TEXT,
    ),
    "connect login": (
        [("c", CONNECT + b"\r\n"), ("b", REFUSED), ("c", AUTHORIZED), ("b", TUNNEL)],
        [{"protocol": "HTTP CONNECT", "login": "basic"} | ASKED],
        CLIENT_TEXT,
    ),
    "chain": (
        [("c", b"PROXY TCP4 192.0.2.9 192.0.2.1 1 2\r\n" + v2(0x11, ENDS_4))],
        [
            {
                "protocol": "PROXY v1",
                "client": "192.0.2.9:1",
                "destination": "192.0.2.1:2",
                "proxy": CLIENT_TEXT,
            },
            {"protocol": "PROXY v2"} | ROUTE,
        ],
        ROUTE["client"],
    ),
}


def talk(turns: Turns, mss: int = 1460, syn: bool = True, joined: bool = False) -> Talk:
    """A preamble, then three exchanges; ``joined`` has the first request in the preamble's last segment."""
    made = Talk(mss=mss, syn=syn)
    for at, (who, data) in enumerate(turns):
        if joined and at == len(turns) - 1 and who == "c":
            data += framed(metadata(1))
        made.say(CLIENT if who == "c" else BROKER, data)
    if not (joined and turns[-1][0] == "c"):
        made.ask(metadata(1))
    made.answer(metadata_answer(1))
    for correlation in (2, 3):
        made.ask(metadata(correlation)).answer(metadata_answer(correlation))
    return made.close()


def assert_whole(found: Dissected, expected: list[dict[str, Any]], client: str, size: int) -> None:
    assert [(e.correlation_id, e.missing) for e in found.exchanges] == [(1, None), (2, None), (3, None)]
    assert not found.faults
    (connection,) = found.connections
    assert connection.proxies is not None
    told = [{name: value for name, value in each.items() if name != "size"} for each in connection.proxies]
    assert told == expected
    assert sum(each["size"] for each in connection.proxies) == size
    assert {connection.client, *(e.client for e in found.exchanges)} == {client}
    assert {connection.broker, *(e.broker for e in found.exchanges)} == {BROKER_TEXT}
    assert (connection.protocol, connection.skipped_bytes) == ("kafka", 0)
    assert not astray([*found.exchanges, *found.connections])


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("mss", [1, 3, 1460])
@pytest.mark.parametrize("name", WHOLE)
def test_what_a_proxy_says_is_told_and_taken_off(name: str, mss: int, joined: bool) -> None:
    turns, expected, client = WHOLE[name]
    assert_whole(talked(talk(turns, mss, joined=joined)), expected, client, sum(len(d) for _, d in turns))


@pytest.mark.parametrize("name", WHOLE)
def test_the_handshake_need_not_have_been_captured(name: str) -> None:
    turns, expected, client = WHOLE[name]
    assert_whole(talked(talk(turns, syn=False)), expected, client, sum(len(d) for _, d in turns))


@pytest.mark.parametrize("name", WHOLE)
def test_the_client_alone_is_enough(name: str) -> None:
    turns, expected, client = WHOLE[name]
    made = talk(turns)
    made.segments = [s for s in made.segments if s.source == CLIENT]
    found = talked(made)
    if name == "connect login":
        return  # nobody can tell that the first was refused: two in a row
    assert [e.correlation_id for e in found.exchanges] == [1, 2, 3]
    assert not [f for f in found.faults if f.kind != "gap"]
    assert {e.client for e in found.exchanges} == {client}
    (connection,) = found.connections
    assert connection.proxies is not None
    assert [each["protocol"] for each in connection.proxies] == [each["protocol"] for each in expected]


def test_passwords_and_headers_are_not_kept() -> None:
    for name in ("socks login", "connect login"):
        (connection,) = talked(talk(WHOLE[name][0])).connections
        for secret in ("alice", "s3cret", "YWxpY2U6czNjcmV0"):
            assert secret not in repr(connection)


BROKEN = {
    "a line without end": b"PROXY TCP4 " + b"1" * 200,
    "a line of another family": b"PROXY TCP4 2001:db8::7 2001:db8::1 51000 9092\r\n",
    "a port that is none": b"PROXY TCP4 203.0.113.7 198.51.100.1 99999 9092\r\n",
    "words that miss": b"PROXY TCP4 203.0.113.7\r\n",
    "another version": v2(0x11, ENDS_4, version=3),
    "another command": v2(0x11, ENDS_4, command=7),
    "addresses that are cut": v2(0x11, ENDS_4[:5]),
    "a field that is cut": v2(0x11, ENDS_4 + b"\x02\x00\xff"),
    "a checksum that is wrong": checked(ENDS_4)[:-1] + b"\0",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_one_is_a_fault_and_no_byte_is_lost(name: str) -> None:
    found = talked(talk([("c", BROKEN[name])]))
    (told,) = [f for f in found.faults if f.kind == "bad-preamble"]
    assert (told.connection, told.layer) == (0, "frame")
    assert not astray([*found.exchanges, *found.connections, *found.faults])
    if BROKEN[name].endswith(b"\r\n") or name.startswith(
        ("a field", "a checksum", "addresses", "another command")
    ):
        assert len(found.exchanges) == 3, "where it ends is known"


@pytest.mark.parametrize("name", WHOLE)
def test_one_that_is_cut_by_the_end_is_a_fault(name: str) -> None:
    turns, *_ = WHOLE[name]
    who, data = turns[-1]
    made = Talk()
    for each, said in turns[:-1]:
        made.say(CLIENT if each == "c" else BROKER, said)
    found = talked(made.say(CLIENT if who == "c" else BROKER, data[:-1]).close())
    assert "bad-preamble" in [f.kind for f in found.faults]
    assert not astray([*found.exchanges, *found.connections, *found.faults])


def test_one_that_is_cut_by_a_gap_is_a_fault_and_what_follows_is_found() -> None:
    made = talk([("c", V1)], mss=20)
    del made.segments[4]
    found = talked(made)
    assert [f.kind for f in found.faults][:2] == ["gap", "bad-preamble"]
    assert [e.correlation_id for e in found.exchanges][-2:] == [2, 3]


@pytest.mark.parametrize(
    ("turns", "outcome"),
    [
        ([("c", b"\x05\x01\x00"), ("b", b"\x05\xff")], "no acceptable method"),
        ([("c", b"\x05\x01\x02"), ("b", b"\x05\x02"), ("c", LOGIN), ("b", b"\x01\x01")], "login failed"),
        (
            [("c", b"\x05\x01\x00"), ("b", b"\x05\x00"), ("c", TO_NAME), ("b", b"\x05\x05" + GRANTED[2:])],
            "connection refused",
        ),
        ([("c", CONNECT + b"\r\n"), ("b", b"HTTP/1.1 502 Bad Gateway\r\n\r\n")], "status 502"),
    ],
)
def test_a_proxy_that_says_no_is_told(turns: Turns, outcome: str) -> None:
    made = Talk()
    for who, data in turns:
        made.say(CLIENT if who == "c" else BROKER, data)
    found = talked(made.close())
    (connection,) = found.connections
    assert connection.proxies is not None
    assert connection.proxies[-1]["outcome"] == outcome
    assert connection.skipped_bytes == sum(len(data) for _, data in turns)
    assert not [f for f in found.faults if f.kind == "bad-preamble"]


def test_what_only_looks_like_one_at_first_is_none() -> None:
    for data in (
        b"POST /x HTTP/1.1\r\n\r\n",
        b"PROXIES\r\n",
        b"CONNECTED\r\n",
        b"\r\n\r\n\0hello",
        b"\x05\x00",
    ):
        found = talked(Talk().say(CLIENT, data).close())
        assert found.connections[0].proxies is None
        assert not [f for f in found.faults if f.kind == "bad-preamble"]


def test_the_bytes_of_a_request_begin_none() -> None:
    assert not begins(framed(metadata(1)))
    assert not begins(b"\0")


def test_what_is_held_is_bounded() -> None:
    for name, data in {
        "v1": b"PROXY " + b"x" * V1_BYTES,
        "connect": b"CONNECT a:1 HTTP/1.1\r\n" + b"x: y\r\n" * HEAD_BYTES,
        "socks": b"\x05\xff" + bytes(range(200)),
    }.items():
        machine = Preambles()
        given = b""
        for at in range(len(data)):
            for _, piece in machine.feed(0, Chunk(at, data[at : at + 1], at, at)):
                assert isinstance(piece, Chunk)
                given += piece.data
            assert machine.held_bytes <= max(MOST_HELD, HEAD_BYTES * (PART_BYTES + 1)) + PART_BYTES + 1
            if machine.is_over:
                break
        given += b"".join(p.data for _, p in machine.close() if isinstance(p, Chunk))
        assert given == data[: len(given)], name
        assert len(machine.defects) == 1


def test_no_more_in_a_row_than_the_limit() -> None:
    (connection,) = talked(talk([("c", V1 * (MOST + 1))])).connections
    assert connection.proxies is not None
    assert len(connection.proxies) == MOST


def test_a_gap_ends_the_wait_and_is_given_on() -> None:
    machine = Preambles()
    first, gap = Chunk(0, b"PROXY TC", 1, 1), Gap(8, 10, "lost", 2, 2)
    assert machine.feed(0, first) == []
    assert machine.feed(0, gap) == [(0, first), (0, gap)]
    assert machine.is_over
    assert (
        machine.defects[0].message == "the preamble of a proxy is incomplete: bytes of it were not captured"
    )


def test_the_packets_of_it_are_known() -> None:
    found = talked(talk(WHOLE["socks login"][0]))
    proxied = found.exchanges[0].proxied
    assert proxied is not None
    assert proxied.packets == (4, 5, 6, 7, 8, 9)
    assert proxied.has_login
    assert proxied.client == CLIENT
