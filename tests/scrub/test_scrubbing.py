"""A scrubbed capture reads as the capture did, but for names and contents."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

import kdissect
from kdissect.capture.files import read_packets
from kdissect.model import Packet, Secrets
from tests.amount import some, times
from tests.kafka import METADATA_RESPONSE_1, Talk, framed, request, response
from tests.lab import CASES, CLEAR_CASES, TLS_CASES, Case
from tests.scrub.runs import (
    KEY,
    OTHER_KEY,
    ROW,
    exchanges,
    packet_of,
    packets_of,
    rows,
    scrubbed,
)
from tests.shared import requires_shared, shared

MIXED = ["java43-basic-loss", "midstream", "broker-0.9", "ipv6", "sasl-scram-256"]
ONE_SIDED = "wrong-requests"
"""Bytes in no message are filler in the result, so that other faults are found in it."""


@pytest.mark.parametrize(
    "case", some([each for each in CLEAR_CASES if each != ONE_SIDED], len(MIXED), *MIXED)
)
def test_a_capture_yields_the_same_exchanges(case: str) -> None:
    items = list(Case(case).packets())
    result = scrubbed(items)
    assert result.found() is None
    assert rows(exchanges(result.packets)) == rows(exchanges(items))
    assert [len(each.data) for each in result.packets] == [
        len(each.data) for each in items if isinstance(each, Packet)
    ]


@pytest.mark.parametrize("case", some(TLS_CASES, 1))
def test_what_was_in_tls_is_written_in_the_clear(case: str) -> None:
    items = [*key_log(case), *Case(case).packets()]
    result = scrubbed(items)
    assert result.found() is None
    assert result.counts.decrypted_connections
    assert result.counts.left_out_secrets == 1
    assert rows(exchanges(result.packets), ROW) == rows(exchanges(items), ROW)
    assert not any(each.is_encrypted for each in exchanges(result.packets))


@pytest.mark.parametrize("case", some(TLS_CASES, 1))
def test_tls_without_secrets_is_not_written(case: str) -> None:
    items = list(Case(case).packets())
    result = scrubbed(each for each in items if isinstance(each, Packet))
    assert result.counts.unknown_connections
    assert not result.packets


def key_log(case: str) -> list[Secrets]:
    return [Secrets(0x544C534B, (Case(case).folder / "keys.log").read_bytes())]


def findings(path: Path) -> Counter[tuple[object, ...]]:
    found = kdissect.explain(path).findings
    return Counter((each.id, each.severity, each.count, each.measure) for each in found)


JUDGED = ["java43-errors", "java43-groups", "zk39-ibp-ladder"]


@pytest.mark.parametrize("case", some(CLEAR_CASES, len(JUDGED), *JUDGED))
def test_a_capture_yields_the_same_findings(case: str, tmp_path: Path) -> None:
    if case in ("broker-0.9", "java09-on-39", "sweep-39"):
        pytest.skip("what is read twice cannot be told of compressed messages of magic 0 and 1")
    out = tmp_path / "scrubbed.pcapng"
    out.write_bytes(scrubbed(Case(case).packets()).file)
    assert findings(out) == findings(Case(case).capture)


# -- TCP --------------------------------------------------------------------------------------------

TCP = ("01_ooo_adjacent", "06_overlap_10B", "07_seq_wrap", "11_lost_2pct", "14_keepalive_1B", "17_port_reuse")
LINKS = ("26_qinq", "27_ipv6_ext", "28_vxlan", "30_ipfrag", "31_ipfrag_reversed", "44_sll2")


@requires_shared
@pytest.mark.parametrize("name", TCP + LINKS)
def test_hard_cases_of_tcp_stay_what_they_are(name: str) -> None:
    items = list(read_packets([shared(f"testdata/tcp/{name}.pcap")]))
    result = scrubbed(items)
    assert result.found() is None
    assert rows(exchanges(result.packets)) == rows(exchanges(items))
    assert len(result.packets) == len(items)


def talk() -> Talk:
    said = Talk(mss=40)
    said.ask(request("Metadata", 1, 1, "billing-of-alice", topics=[{"name": "orders-of-alice"}]))
    return said.answer(response("Metadata", 1, 1, **METADATA_RESPONSE_1))


def test_what_is_sent_again_and_overlaps_gets_the_same_bytes() -> None:
    said = talk()
    first = next(each for each in said.segments if each.payload)
    count = len(said.segments)
    again = first._replace(packet=count + 1, seq=first.seq + 7, payload=first.payload[7:], length=33)
    other = first._replace(packet=count + 2, payload=b"Z" * len(first.payload))
    packets = [*packets_of(said), packet_of(again), packet_of(other)]
    result = scrubbed(packets)
    one, two, three = (
        result.packets[number - 1].data[54:] for number in (first.packet, count + 1, count + 2)
    )
    assert two == one[7:]
    assert three == one


def test_what_the_snap_length_cut_stays_cut() -> None:
    packets = [each._replace(data=each.data[:90]) for each in packets_of(talk())]
    result = scrubbed(packets)
    assert [len(each.data) for each in result.packets] == [len(each.data) for each in packets]
    assert [each.wire_length for each in result.packets] == [each.wire_length for each in packets]
    assert b"alice" not in result.file
    assert rows(exchanges(result.packets)) == rows(exchanges(packets))


def test_other_traffic_is_counted_and_not_written() -> None:
    said = talk()
    other = Talk(client=b"\x0a\0\0\x09" + b"\x20\x00", broker=b"\x0a\0\0\x08\0\x50")
    other.say(other.client, b"GET /orders-of-alice HTTP/1.1\r\n\r\n").say(
        other.broker, b"HTTP/1.1 200 OK\r\n\r\n"
    )
    dns = (
        bytes(12)
        + b"\x08\0"
        + b"\x45\0\0\x2c\0\1\0\0\x40\x11\0\0\x0a\0\0\1\x0a\0\0\2"
        + b"\0\x35\0\x35\0\x18\0\0alice"
    )
    packets = [*packets_of(said), *packets_of(other), packets_of(said)[0]._replace(data=dns)]
    numbered = [each._replace(number=number) for number, each in enumerate(packets, 1)]
    result = scrubbed(numbered)
    assert b"alice" not in result.file
    assert b"HTTP" not in result.file
    assert len(result.packets) == len(said.segments)
    assert result.counts.unknown_connections == 1
    assert result.counts.unknown_packets == len(other.segments)
    assert result.counts.other_packets == 1


def test_a_connection_without_bytes_stays() -> None:
    said = Talk().close()
    assert len(scrubbed(packets_of(said)).packets) == len(said.segments)


def test_bytes_in_no_message_are_counted() -> None:
    said = talk()
    said.say(said.client, b"\xff\xff\xff\xf0" + b"no frame of alice's")
    result = scrubbed(packets_of(said))
    assert b"alice" not in result.file
    assert result.counts.undecoded_bytes == 23


def test_what_only_looks_like_a_message_tells_nothing() -> None:
    said = talk()
    for who in (said.client, said.broker):
        said.say(who, framed(b"Zq7alice is what she is called"))
    result = scrubbed(packets_of(said))
    assert b"Zq7a" not in result.file
    assert len(result.packets) == len(said.segments)


def test_names_of_packets_and_interfaces_are_left_out() -> None:
    packets = [each._replace(comments=("it is alice's",)) for each in packets_of(talk())]
    assert b"alice" not in scrubbed(packets).file


def test_a_key_makes_the_same_of_the_same() -> None:
    packets = packets_of(talk())
    assert scrubbed(packets, KEY).packets == scrubbed(packets, KEY).packets
    assert scrubbed(packets, KEY).packets != scrubbed(packets, OTHER_KEY).packets


# -- damage -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", some(CASES, 2, "java43-denied", "broker-0.9"))
def test_damaged_captures_tell_nothing(case: str) -> None:
    random_numbers = random.Random(case)
    items = [each for each in Case(case).packets() if isinstance(each, Packet)][:400]
    before = scrubbed(items)
    for _ in range(times(4, 60)):
        damaged = [_damaged(each, random_numbers) for each in items]
        result = scrubbed(damaged)
        assert result.found() is None
        for part in before.scrubber.taken.texts.parts():
            for text in part:
                result.scrubber.taken.texts.add(text)
        assert result.found() is None


@pytest.mark.parametrize("case", some(CLEAR_CASES, 2, "java43-denied", "java43-errors"))
@pytest.mark.parametrize("half", [True, False])
def test_captures_with_losses_can_be_sent_away(case: str, half: bool) -> None:
    """What is lost leaves bytes in no message; what stands in them may stay elsewhere."""
    random_numbers = random.Random(case)
    items = [each for each in Case(case).packets() if isinstance(each, Packet)]
    kept = items[len(items) // 2 :] if half else [each for each in items if random_numbers.random() > 0.1]
    result = scrubbed(each._replace(number=number) for number, each in enumerate(kept, 1))
    assert result.found() is None
    assert result.counts.exchanges


def _damaged(packet: Packet, random_numbers: random.Random) -> Packet:
    if random_numbers.random() > 0.1 or not packet.data:
        return packet
    data = bytearray(packet.data)
    for _ in range(random_numbers.randrange(1, 4)):
        data[random_numbers.randrange(len(data))] = random_numbers.randrange(256)
    if random_numbers.random() < 0.2:
        del data[random_numbers.randrange(len(data)) :]
    return packet._replace(data=bytes(data))
