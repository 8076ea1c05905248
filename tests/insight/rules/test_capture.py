"""Rules on what a capture itself lacks."""

from __future__ import annotations

import pytest

from kdissect.capture.files import read_packets
from kdissect.dissect import Event
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import JudgingContext, Some, Spoken
from kdissect.insight.finding import CERTAIN, NOTICE, Finding
from kdissect.insight.judge import judge
from kdissect.model import Fault, Packet, Secrets
from tests.analysis.connected import over
from tests.dissecting import dissect
from tests.insight.judged import CAPTURES, context_of, findings_of, judged, judged_file
from tests.lab import Case

IDS = ("capture-gaps", "one-sided", "mid-stream", "tls-dark", "sampled-by-snaplen", "no-kafka")
BROKER_PORT = (9092).to_bytes(2)
HEALTHY = "basic-kafka43.pcapng"


def said(context: JudgingContext) -> dict[str, Finding]:
    rules = {id: RULES[id] for id in IDS}
    return {each.id: each for each in judge(rules, {}, context).findings}


@pytest.mark.parametrize("id", IDS)
def test_they_are_notes_and_certain(id: str) -> None:
    assert (RULES[id].severity, RULES[id].confidence, RULES[id].category) == (NOTICE, CERTAIN, "capture")


@pytest.mark.parametrize("name", [HEALTHY, "sasl-scram.pcapng", "broker-0.9.pcap"])
def test_a_whole_capture_lacks_nothing(name: str) -> None:
    assert not [each for each in judged_file(CAPTURES / name).findings if each.id in IDS]


def test_missing_bytes_are_told_with_their_connections() -> None:
    (found,) = findings_of(CAPTURES / "loss.pcapng", id="capture-gaps")
    assert found.measure == 3050
    assert found.unit == "bytes"
    assert found.connections == (2, 3, 14)
    assert found.filter == "connection in {2, 3, 14}"
    assert "3,050 bytes (3.6 %) of 3 connections" in found.message


def test_connections_that_began_before_the_capture_are_told() -> None:
    (found,) = findings_of(CAPTURES / "midstream.pcapng", id="mid-stream")
    assert found.connections == (0, 1)
    assert found.message.startswith("2 connections began before the capture")


def test_what_the_snap_length_cut_is_no_loss() -> None:
    context = JudgingContext(
        exchanges=5,
        gap_bytes=900,
        captured_bytes=100,
        cut_packets=3,
        cut=Some(1, (4,)),
        with_gaps=Some(1, (4,)),
    )
    found = said(context)
    assert list(found) == ["sampled-by-snaplen"]
    assert found["sampled-by-snaplen"].message == (
        "The capture tool kept only the beginning of 3 packets of 1 connection (its snap length): 900 bytes "
        "are missing."
    )


def test_one_direction_alone_is_told() -> None:
    found = said(JudgingContext(exchanges=5, with_one_side=Some(2, (0, 3))))
    assert list(found) == ["one-sided"]
    assert found["one-sided"].connections == (0, 3)


def test_dark_connections_are_told_with_the_reason() -> None:
    found = said(JudgingContext(exchanges=1, in_the_dark=Some(1, (7,)), why_dark="no secret"))
    assert found["tls-dark"].message == "1 connection of TLS is not decrypted: no secret."


def test_a_capture_without_kafka_says_what_was_there_instead() -> None:
    spoken = (Spoken("http", "8083", 3), Spoken("unknown", "4711", 1), Spoken("silent", "9092", 1))
    found = said(JudgingContext(connections=5, spoken=spoken))
    assert found["no-kafka"].message == (
        "No Kafka was found in the capture: 5 TCP connections (3 of HTTP on port 8083, 1 of another protocol "
        "on port 4711, 1 without a byte on port 9092); -d tcp.port==4711,kafka treats that port as Kafka."
    )
    assert said(JudgingContext())["no-kafka"].message == (
        "No Kafka was found in the capture: there is no TCP connection in it."
    )


def test_what_could_not_be_read_is_not_said_to_be_without_kafka() -> None:
    damage = Fault("file", "bad-compression", "the gzip data is damaged", offset=0)
    assert context_of([damage]).unread == "the gzip data is damaged"
    assert not said(context_of([damage])._replace(packets_read=0))
    for packets in (999, None):
        of_others = said(context_of([damage])._replace(packets_read=packets))["no-kafka"]
        assert "in what could be read of the capture: there is no TCP connection" in of_others.message
    some = JudgingContext(connections=1, spoken=(Spoken("http", "8083", 1),), unread="it is damaged")
    assert said(some)["no-kafka"].message == (
        "No Kafka was found in what could be read of the capture: 1 TCP connection (1 of HTTP on port 8083)."
    )
    late = Fault("file", "late-file", "packets of this file are older")
    assert "no-kafka" in said(context_of([late]))


def test_a_fault_of_the_snap_length_counts_as_cut() -> None:
    fault = Fault("tcp", "gap", "10 bytes from client: cut off by the snap length", 3, 0, 1)
    other = fault._replace(message="10 bytes from client: not captured")
    context = context_of([fault, other])
    assert (context.cut_packets, context.cut) == (1, Some(1, (1,)))


@pytest.mark.parametrize("is_first", [True, False])
def test_a_direction_of_which_all_packets_are_cut_was_captured(is_first: bool) -> None:
    unanswered = over(1, gaps=5)._replace(bytes_from_broker=0)
    fault = Fault("tcp", "gap", "5 bytes from client: cut off by the snap length", 3, 0, 1)
    assert context_of([unanswered]).with_one_side == Some(1, (1,))
    events: list[Event] = [fault, unanswered]
    assert context_of(events if is_first else events[::-1]).with_one_side == Some()
    assert context_of([fault, unanswered._replace(connection=2)]).with_one_side == Some(1, (2,))
    unasked = over(1)._replace(bytes_to_broker=0)
    assert context_of([fault, unasked]).with_one_side == Some(1, (1,))


def packets(name: str) -> list[Packet | Secrets | Fault]:
    return list(read_packets([CAPTURES / name]))


def test_a_snap_length_is_told_with_what_it_cut() -> None:
    cut = [
        each._replace(data=each.data[:120]) if isinstance(each, Packet) else each for each in packets(HEALTHY)
    ]
    (found,) = [each for each in judged(dissect(iter(cut))).findings if each.id in IDS]
    assert found.id == "sampled-by-snaplen"
    assert found.measure == 105


@pytest.mark.parametrize("port", [BROKER_PORT, None])
def test_one_direction_of_real_connections(port: bytes | None) -> None:
    kept = [
        each
        for each in packets(HEALTHY)
        if not isinstance(each, Packet) or (_source_port(each) == BROKER_PORT) == (port is not None)
    ]
    (found,) = [each for each in judged(dissect(iter(kept))).findings if each.id in IDS]
    assert found.id == "one-sided"


def _source_port(packet: Packet) -> bytes:
    """Of TCP over IPv4 over Ethernet."""
    start = 14 + 4 * (packet.data[14] & 15)
    return bytes(packet.data[start : start + 2])


def test_the_reason_of_darkness_names_no_connection() -> None:
    (found,) = [each for each in judged_file(Case("tls13").capture).findings if each.id == "tls-dark"]
    assert found.message == "11 connections of TLS are not decrypted: no secret."


def test_the_context_of_a_real_capture() -> None:
    context = judged_file(CAPTURES / HEALTHY).context
    assert (context.exchanges, context.kafka, context.one_sided, context.gap_bytes) == (71, 15, 0, 0)
