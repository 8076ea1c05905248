from __future__ import annotations

import io
import pickle
from pathlib import Path

import pytest

from kdissect.capture.writer import PcapngWriter
from kdissect.client.session import ClientSession, sized
from kdissect.client.transcript import Transcript
from kdissect.exchange import Exchange
from kdissect.model import ACK, FIN, SYN, Fault
from kdissect.protocol import apis
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import message_struct
from kdissect.reading import read
from kdissect.session.conversation import Connection
from tests.kafka import METADATA_RESPONSE_1, response

CLIENT, BROKER = b"\x0a\0\0\x01\xc0\0", b"\x0a\0\0\x02\x23\x84"


def session_of(transcript: Transcript) -> ClientSession:
    return ClientSession(transcript, CLIENT, BROKER, 1_000)


def asked(session: ClientSession, now: int = 2_000) -> Exchange:
    body = encode(message_struct(apis.METADATA, 1, "request"), {"topics": None})
    heard = session.feed_sent(session.request(apis.METADATA, 1, body), now)
    assert heard.completed == []
    assert heard.faults == []
    return heard.begun[0]


def test_a_request_is_an_exchange_that_its_answer_completes() -> None:
    session = session_of(Transcript())
    exchange = asked(session)
    assert (exchange.number, exchange.connection) == (1, 0)
    assert (exchange.api, exchange.api_version, exchange.client_id) == ("Metadata", 1, "kdissect")
    heard = session.feed_received(sized(response("Metadata", 1, 1, **METADATA_RESPONSE_1)), 5_000)
    assert heard.completed == [exchange]
    assert exchange.latency_ns == 3_000
    assert exchange.topics == ["orders"]
    assert exchange.faults == []


def test_an_answer_may_come_byte_by_byte() -> None:
    session = session_of(Transcript())
    exchange = asked(session)
    data = sized(response("Metadata", 1, 1, **METADATA_RESPONSE_1))
    for at in range(len(data)):
        heard = session.feed_received(data[at : at + 1], 5_000 + at)
        assert bool(heard.completed) == (at == len(data) - 1)
    assert exchange.response_start_ns == 5_000
    assert exchange.response_time_ns == 5_000 + len(data) - 1


def test_answers_in_the_wrong_order_are_faults_as_in_a_capture() -> None:
    session = session_of(Transcript())
    asked(session)
    second = asked(session)
    heard = session.feed_received(sized(response("Metadata", 1, 2, **METADATA_RESPONSE_1)), 5_000)
    assert heard.completed == [second]
    assert [each.kind for each in second.faults] == ["out-of-order"]


def test_a_size_that_no_answer_has_is_a_fault() -> None:
    session = session_of(Transcript())
    asked(session)
    heard = session.feed_received(b"HTTP/1.1 400 Bad Request\r\n", 5_000)
    assert "bad-size" in [each.kind for each in heard.faults]


def test_the_end_completes_what_waits_and_keeps_what_came() -> None:
    session = session_of(Transcript())
    exchange = asked(session)
    session.feed_received(sized(response("Metadata", 1, 1, **METADATA_RESPONSE_1))[:20], 5_000)
    heard = session.close(6_000, by_broker=True)
    assert heard.completed == [exchange]
    assert exchange.missing == "connection closed"
    assert exchange.response is not None
    assert exchange.response.is_cut


def test_a_produce_without_acks_is_complete_when_it_is_sent() -> None:
    session = session_of(Transcript())
    body = encode(message_struct(apis.PRODUCE, 9, "request"), {"acks": 0})
    heard = session.feed_sent(session.request(apis.PRODUCE, 9, body), 2_000)
    assert [each.missing for each in heard.completed] == ["acks=0"]


def test_a_request_of_elsewhere_gets_a_correlation_id_of_this_connection() -> None:
    session = session_of(Transcript())
    asked(session)
    old = session.request(apis.METADATA, 1, b"\xff\xff\xff\xff")[4:]
    again = session.repeat_request(old)
    assert again[4:8] == old[:4]
    assert int.from_bytes(again[8:12], "big") == 3
    assert again[12:] == old[8:]
    with pytest.raises(ValueError, match="8 bytes"):
        session.repeat_request(b"1234567")


def test_a_session_can_be_pickled() -> None:
    session = session_of(Transcript(keeps_packets=True))
    asked(session)
    copy = pickle.loads(pickle.dumps(session))
    heard = copy.feed_received(sized(response("Metadata", 1, 1, **METADATA_RESPONSE_1)), 5_000)
    assert len(heard.completed) == 1


def test_the_packets_read_as_the_same_exchanges(tmp_path: Path) -> None:
    transcript = Transcript(keeps_packets=True)
    sessions = [session_of(transcript), ClientSession(transcript, CLIENT[:-1] + b"\1", BROKER, 1_500)]
    mine: list[Exchange] = []
    for session in sessions:
        mine.append(asked(session))
        asked_twice = asked(session, 2_500)
        mine.append(asked_twice)
        session.feed_received(sized(response("Metadata", 1, 1, **METADATA_RESPONSE_1)), 5_000)
        session.feed_received(sized(response("Metadata", 1, 2, **METADATA_RESPONSE_1)), 5_000)
    for session in sessions:
        session.close(9_000, by_broker=session is sessions[0])
    packets = transcript.take_packets()
    assert [each.number for each in packets] == list(range(1, len(packets) + 1))
    file = io.BytesIO()
    writer = PcapngWriter(file)
    for packet in packets:
        writer.write(packet)
    path = tmp_path / "said.pcapng"
    path.write_bytes(file.getvalue())
    connections: list[Connection] = []
    faults: list[Fault] = []
    theirs = list(read(path, on_connection=connections.append, on_fault=faults.append))
    assert faults == []
    for own, other in zip(mine, sorted(theirs, key=lambda each: each.number), strict=True):
        for name in (
            *("number", "connection", "client", "broker", "api", "api_version", "correlation_id"),
            *("request_packet", "response_packet", "request_time_ns", "response_time_ns", "latency_ns"),
            *("missing", "inferred", "faults", "error", "topics"),
        ):
            assert getattr(own, name) == getattr(other, name), name
        for a, b in zip(own.messages, other.messages, strict=True):
            assert a.frame == b.frame
    assert [each.end for each in connections] == ["fin", "fin"]


def test_packets_have_right_checksums_flags_and_sizes() -> None:
    import dpkt  # the test's own reader

    transcript = Transcript(keeps_packets=True)
    session = session_of(transcript)
    body = encode(message_struct(apis.METADATA, 1, "request"), {"topics": [{"name": "x" * 30_000}] * 5})
    session.feed_sent(session.request(apis.METADATA, 1, body), 2_000)
    session.close(3_000, by_broker=False)
    packets = transcript.take_packets()
    seen = []
    for packet in packets:
        ip = dpkt.ip.IP(packet.data)
        stored = ip.sum, ip.data.sum
        ip.sum = ip.data.sum = 0
        again = dpkt.ip.IP(bytes(ip))
        assert (again.sum, again.data.sum) == stored
        seen.append(ip.data.flags & (SYN | FIN | ACK))
        assert len(packet.data) == ip.len <= 65_535
    assert seen[:3] == [SYN, SYN | ACK, ACK]
    assert seen[-2:] == [FIN | ACK, FIN | ACK]
    assert len(packets) == 3 + 3 + 2


def test_secrets_are_overwritten_in_the_packets_unless_that_is_turned_off() -> None:
    for masks in (True, False):
        transcript = Transcript(keeps_packets=True, masks=masks)
        session = session_of(transcript)
        struct = message_struct(apis.SASL_AUTHENTICATE, 2, "request")
        body = encode(struct, {"authBytes": b"\0tim\0tanstaaf"})
        data = session.request(apis.SASL_AUTHENTICATE, 2, body)
        heard = session.feed_sent(data, 2_000)
        answer = response(
            "SaslAuthenticate",
            2,
            1,
            errorCode=0,
            errorMessage=None,
            authBytes="c2VjcmV0",
            sessionLifetimeMs=0,
        )
        assert len(transcript.take_packets()) == 4
        session.feed_received(sized(answer)[:15], 3_000)
        assert transcript.take_packets() == []  # it may hold a secret that is not known whole
        session.feed_received(sized(answer)[15:], 3_000)
        session.close(4_000, by_broker=False)
        assert heard.begun[0].request is not None
        assert b"tanstaaf" in heard.begun[0].request.frame.payload
        said = b"".join(each.data for each in transcript.take_packets())
        assert (b"cret" in said) != masks
    transcript = Transcript(keeps_packets=True)
    session = session_of(transcript)
    session.feed_sent(session.request(apis.SASL_AUTHENTICATE, 2, body), 2_000)
    packets = transcript.take_packets()
    assert b"tanstaaf" not in b"".join(each.data for each in packets)
    assert packets[3].comments == ("secrets are overwritten with *",)
