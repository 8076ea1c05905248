"""Kafka inside TLS goes through the same fold as Kafka in the clear."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.model import TLS_KEY_LOG, Fault, Packet, Secrets, Segment
from kdissect.session.briefs import Brief, Interest
from kdissect.session.conversation import Connection
from kdissect.tls.keylog import TlsSecrets
from tests.kafka import METADATA_RESPONSE_1, Talk, framed, request, response
from tests.lab import TLS_CASES, Case
from tests.tcp.segments import BROKER, CLIENT
from tests.tls.forge import Forged

ENDS = (CLIENT, BROKER)


def talk(turns: int = 3, padding: int = 0) -> tuple[Talk, bytes]:
    """Metadata requests and their responses inside TLS; and the key log."""
    forged = Forged()
    for turn in range(turns):
        ask = framed(request("Metadata", 1, turn + 1, topics=None))
        answer = framed(response("Metadata", 1, turn + 1, **METADATA_RESPONSE_1))
        forged.say(0, "client", ask, padding=padding)
        forged.say(1, "broker", answer, padding=padding)
    made = Talk()
    for side, data in forged.flights:
        made.say(ENDS[side], data)
    return made.close(), forged.key_log


class Found:
    """What comes of segments."""

    def __init__(self, events: list[Any]) -> None:
        self.exchanges = [event for event in events if isinstance(event, Exchange)]
        self.connections = [event for event in events if isinstance(event, Connection)]
        self.faults = [event for event in events if isinstance(event, Fault)]


def dissected(
    segments: list[Segment], key_log: bytes = b"", between: Any = lambda dissector: dissector, **given: Any
) -> Found:
    secrets = TlsSecrets()
    secrets.add(key_log)
    return dissected_with(Dissector(secrets=secrets, **given), segments, between)


def dissected_with(dissector: Dissector, segments: list[Segment], between: Any) -> Found:
    events: list[Any] = []
    for segment in segments:
        events += dissector.feed(segment)
        dissector = between(dissector)
    return Found(events + list(dissector.close()))


def test_exchanges_have_the_packets_and_times_of_their_records() -> None:
    made, key_log = talk(padding=4000)
    found = dissected(made.segments, key_log)
    assert (len(found.exchanges), found.faults) == (3, [])
    for exchange in found.exchanges:
        assert exchange.is_encrypted
        assert exchange.error is None
        assert exchange.topics == ["orders"]
        assert exchange.request is not None
        frame = exchange.request.frame
        assert frame.packets == (frame.last_packet - 2, frame.last_packet - 1, frame.last_packet)
        assert exchange.request_time_ns == made.segments[frame.last_packet - 1].timestamp_ns
    (connection,) = found.connections
    assert (connection.protocol, connection.end, connection.exchanges) == ("kafka", "fin", 3)
    assert connection.tls is not None
    assert connection.tls["decrypted"]


def test_a_dissector_can_be_stored_between_any_two_segments() -> None:
    made, key_log = talk()
    stored = dissected(made.segments, key_log, lambda dissector: pickle.loads(pickle.dumps(dissector)))
    assert (len(stored.exchanges), stored.faults) == (3, [])


def test_a_secret_that_comes_when_the_connection_is_closed() -> None:
    made, key_log = talk()
    dissector = Dissector()
    for segment in made.segments:
        assert list(dissector.feed(segment)) == []
    assert dissector.held_bytes > 0
    events: list[Any] = list(dissector.feed(Secrets(TLS_KEY_LOG, key_log)))
    assert (len(Found(events).exchanges), dissector.held_bytes) == (3, 0)
    (connection,) = Found(list(dissector.close())).connections
    assert (connection.protocol, connection.end) == ("kafka", "fin")


def test_what_waits_counts_to_the_limit_over_all_connections() -> None:
    made, _ = talk(40, padding=2000)
    limits = Limits(waiting_bytes=50_000)
    found = dissected(made.segments, limits=limits)
    (connection,) = found.connections
    assert connection.tls is not None
    assert connection.tls["dark"].startswith("no secret for client random")


def test_secrets_of_another_kind_are_no_key_log() -> None:
    made, key_log = talk()
    dissector = Dissector()
    for segment in made.segments:
        dissector.feed(segment)
    assert list(dissector.feed(Secrets(0x57474B4C, key_log))) == []
    assert dissector.held_bytes > 0


def test_without_secrets_all_bytes_are_skipped_and_the_reason_is_told() -> None:
    made, _ = talk()
    found = dissected(made.segments)
    (connection,) = found.connections
    assert (found.exchanges, found.faults, connection.protocol) == ([], [], "tls")
    assert connection.skipped_bytes == connection.bytes_to_broker + connection.bytes_from_broker
    assert connection.tls is not None
    assert connection.tls["dark"] == f"no secret for client random {bytes(range(32)).hex()}"


def in_the_dark(packets: list[Packet], may_grow: bool) -> tuple[list[Any], int]:
    """The events of packets without secrets, on the fast path; and the most bytes that waited."""
    dissector = Dissector()
    dissector.secrets.may_grow = may_grow
    events = [event for some in dissector.feed_all(packets) for event in some]
    return events + list(dissector.close()), dissector.most_held_bytes


@pytest.mark.parametrize("name", TLS_CASES)
@pytest.mark.parametrize("lost", [0, 40, 41])
def test_if_no_secret_can_come_the_rows_are_the_same_and_no_record_waits(name: str, lost: int) -> None:
    packets = [item for item in Case(name).packets() if isinstance(item, Packet)]
    if lost:
        packets = [each for each in packets if each.number % lost]
    waited, most = in_the_dark(packets, may_grow=True)
    dark, least = in_the_dark(packets, may_grow=False)
    assert dark == waited
    assert any(isinstance(each, Connection) and each.tls is not None for each in dark)
    assert least < most / 4


def test_a_dark_connection_can_be_stored_between_any_two_segments() -> None:
    made, _ = talk(padding=2000)
    secrets = TlsSecrets()
    secrets.may_grow = False

    def stored(dissector: Dissector) -> Dissector:
        again: Dissector = pickle.loads(pickle.dumps(dissector))
        return again

    whole, parts = [
        dissected_with(Dissector(secrets=secrets), made.segments, between)
        for between in (lambda dissector: dissector, stored)
    ]
    assert parts.connections == whole.connections
    assert parts.faults == whole.faults == []


def test_a_port_that_is_taken_for_kafkas_may_speak_tls() -> None:
    made, key_log = talk()
    found = dissected(made.segments, key_log, broker_ports=frozenset((19_092,)))
    assert (len(found.exchanges), found.faults) == (3, [])


def test_what_is_inside_may_be_something_else() -> None:
    forged = Forged()
    forged.say(0, "client", b"GET / HTTP/1.1\r\n\r\n")
    forged.say(1, "broker", b"HTTP/1.1 200 OK\r\n\r\n")
    made = Talk()
    for side, data in forged.flights:
        made.say(ENDS[side], data)
    (connection,) = dissected(made.close().segments, forged.key_log).connections
    assert connection.protocol == "http"


def test_tls_inside_tls_is_not_opened() -> None:
    inner = Forged()
    forged = Forged()
    for side, data in inner.flights:
        forged.say(side, ("client", "broker")[side], data)
    made = Talk()
    for side, data in forged.flights:
        made.say(ENDS[side], data)
    found = dissected(made.close().segments, forged.key_log)
    assert (found.exchanges, found.connections[0].protocol) == ([], "tls")


@pytest.mark.parametrize("lost", range(6, 13))
def test_after_a_lost_packet_frames_are_found_again(lost: int) -> None:
    made, key_log = talk(12)
    whole = dissected(made.segments, key_log).exchanges
    found = dissected([s for s in made.segments if s.packet != lost], key_log)
    known = {m.frame.payload for exchange in whole for m in exchange.messages}
    for exchange in found.exchanges:
        assert {m.frame.payload for m in exchange.messages if not m.is_cut} <= known
    assert len([e for e in found.exchanges if e.missing is None]) >= 8
    assert all(each.kind in ("gap", "skipped") for each in found.faults)


def test_a_capture_that_begins_later_is_known_for_tls() -> None:
    made, key_log = talk(6)
    later = [segment for segment in made.segments if segment.packet > 12]
    (connection,) = dissected(later, key_log).connections
    assert connection.protocol == "tls"
    assert connection.tls is not None
    assert connection.tls["dark"] == "handshake not captured"


def split(segments: list[Segment], size: int) -> list[Segment]:
    """The same bytes in segments of at most ``size``, each in a packet of its own."""
    out: list[Segment] = []
    for each in segments:
        for at in range(0, max(1, each.length), size):
            part = each.payload[at : at + size]
            out.append(each._replace(seq=each.seq + at, payload=part, length=len(part)))
    return [each._replace(packet=packet) for packet, each in enumerate(out, 1)]


def in_brief(segments: list[Segment], key_log: bytes) -> list[Any]:
    """The events where exchanges may be brief."""
    secrets = TlsSecrets()
    secrets.add(key_log)
    dissector = Dissector(secrets=secrets, briefs=Interest())
    events: list[Any] = []
    for segment in segments:
        events += dissector.feed(segment)
    return events + list(dissector.close())


def facts(exchange: Exchange) -> tuple[Any, ...]:
    asked, answered = exchange.request, exchange.response
    assert asked is not None
    assert answered is not None
    frames = [
        (each.frame.offset, each.frame.payload, each.frame.packets, each.frame.first_ns, each.frame.last_ns)
        for each in (asked, answered)
    ]
    return exchange.number, exchange.is_encrypted, exchange.network_ns, exchange.behind_ns, frames


@pytest.mark.parametrize("size", [100, 1_460, 100_000])
@pytest.mark.parametrize("padding", [0, 4_000])
def test_exchanges_in_brief_are_those_in_full(size: int, padding: int) -> None:
    made, key_log = talk(turns=4, padding=padding)
    segments = split(list(made.segments), size)
    events = in_brief(segments, key_log)
    briefs = [event for event in events if isinstance(event, Brief)]
    assert len(briefs) == 4
    whole = dissected(segments, key_log).exchanges
    assert [facts(each.exchange()) for each in briefs] == [facts(each) for each in whole]
    assert all(each.exchange().is_encrypted for each in briefs)


def test_a_connection_that_is_decrypted_entirely_has_no_row_beside_briefs() -> None:
    made, key_log = talk()
    events = in_brief(list(made.segments), key_log)
    assert not [event for event in events if isinstance(event, Connection)]
    (row,) = [event for event in in_brief(list(made.segments), b"") if isinstance(event, Connection)]
    assert row.tls is not None
    assert row.tls["dark"] is not None


def test_where_packets_are_missing_the_connection_has_a_row_beside_its_exchanges() -> None:
    made, key_log = talk(turns=6)
    segments = list(made.segments)
    data = [at for at, each in enumerate(segments) if each.length]
    del segments[data[-4]]
    events = in_brief(segments, key_log)
    found = [event for event in events if isinstance(event, Exchange | Brief)]
    assert [event.exchange() if isinstance(event, Brief) else event for event in found]
    (row,) = [event for event in events if isinstance(event, Connection)]
    assert row.gaps == 1
