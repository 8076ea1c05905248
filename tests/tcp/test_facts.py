"""What the segments of a connection tell of the network and of both ends."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.model import FIN, RST, SYN, Segment
from kdissect.tcp.duplex import Duplex
from kdissect.tcp.facts import tcp_facts
from tests.tcp.segments import BROKER, CLIENT, Wire

MS = 1_000_000
OFFER = bytes.fromhex("020405b40402080a0102030400000000") + b"\x01\x03\x03"


def facts(*segments: Segment, client: int = 0) -> dict[str, Any]:
    duplex = Duplex(segments[0])
    for segment in segments:
        duplex.feed(segment)
    return tcp_facts(duplex, client)


def opened(
    wire: Wire, to_broker_ms: float = 40, to_client_ms: float = 1, scales: tuple[int, int] = (7, 9)
) -> list[Segment]:
    answered = int(to_broker_ms * MS)
    ends = zip(
        (
            wire.segment(CLIENT, -1, ack=None, flags=SYN, at_ns=0),
            wire.segment(BROKER, -1, ack=0, flags=SYN, at_ns=answered),
        ),
        scales,
        strict=True,
    )
    syns = [each._replace(window=65_535, options=OFFER + bytes((scale,))) for each, scale in ends]
    return [
        *syns,
        wire.segment(CLIENT, 0, ack=0, at_ns=answered + int(to_client_ms * MS))._replace(window=500),
    ]


def test_the_handshake_tells_the_round_trips_and_where_the_capture_was_taken() -> None:
    found = facts(*opened(Wire()))
    assert (found["syn_rtt_broker_ns"], found["syn_rtt_client_ns"]) == (40 * MS, MS)
    assert (found["rtt_min_ns"], found["handshake_ns"]) == (41 * MS, 41 * MS)
    assert (found["captured_near"], found["opening"], found["syns"]) == ("client", "answered", 1)
    assert facts(*opened(Wire(), 1, 40))["captured_near"] == "broker"
    assert facts(*opened(Wire(), 20, 40))["captured_near"] == "between"
    assert facts(*opened(Wire(), 0.01, 0.02))["captured_near"] is None


def test_what_both_offer_and_how_large_their_windows_are() -> None:
    found = facts(*opened(Wire()))
    assert (found["mss_client"], found["mss_broker"]) == (1460, 1460)
    assert (found["wscale_client"], found["wscale_broker"]) == (7, 9)
    assert found["sack"] is found["timestamps"] is True
    assert (found["window_max_client"], found["window_max_broker"]) == (500 << 7, None)


def test_windows_are_scaled_only_where_both_ends_offer_to() -> None:
    syn, answer, rest = opened(Wire())
    found = facts(syn, answer._replace(options=b"\x02\x04\x05\xb4"), rest)
    assert (found["wscale_client"], found["wscale_broker"], found["window_max_client"]) == (7, None, 500)


def test_without_the_handshake_nothing_of_it_is_known() -> None:
    wire = Wire()
    found = facts(
        wire.segment(CLIENT, 0, b"ab", ack=0, at_ns=0), wire.segment(BROKER, 0, ack=2, at_ns=5 * MS)
    )
    assert found["rtt_broker_ns"] == 5 * MS
    for name in (
        "opening",
        "rtt_min_ns",
        "wscale_client",
        "window_max_client",
        "handshake_ns",
        "captured_near",
    ):
        assert found[name] is None


def test_an_acknowledgement_that_comes_with_an_answer_tells_no_round_trip() -> None:
    wire = Wire()
    found = facts(
        wire.segment(CLIENT, 0, b"ab", ack=0, at_ns=0), wire.segment(BROKER, 0, b"x", ack=2, at_ns=5 * MS)
    )
    assert found["rtt_broker_ns"] is None


def test_a_syn_that_is_refused_or_never_answered() -> None:
    wire = Wire()
    syn = wire.segment(CLIENT, -1, ack=None, flags=SYN, at_ns=0)
    refused = facts(syn, wire.segment(BROKER, 0, ack=0, flags=RST, at_ns=MS))
    assert (refused["opening"], refused["reset_by"]) == ("refused", "broker")
    again = syn._replace(packet=9, timestamp_ns=1_000 * MS)
    found = facts(syn, again)
    assert (found["opening"], found["syns"], found["reset_by"]) == ("unanswered", 2, None)


def test_the_round_trip_of_a_syn_that_was_sent_again_is_not_known() -> None:
    wire = Wire()
    syn, answer, rest = opened(wire)
    late = [each._replace(timestamp_ns=each.timestamp_ns + 1_000 * MS) for each in (syn, answer, rest)]
    found = facts(syn, *late)
    assert found["syn_rtt_broker_ns"] is None
    assert (found["syns"], found["handshake_ns"]) == (2, 1_041 * MS)


def zero(*at_ms: int, last: int = 1_000) -> dict[str, Any]:
    """The broker's window closes and opens by turns."""
    wire = Wire()
    segments = opened(wire)
    for count, ms in enumerate(at_ms):
        closed = wire.segment(BROKER, 0, ack=0, at_ns=ms * MS)
        segments.append(closed._replace(window=0 if count % 2 == 0 else 100))
    segments.append(wire.segment(CLIENT, 0, ack=0, at_ns=last * MS)._replace(window=500))
    return facts(*segments)


def test_a_closed_window_counts_until_it_opens_or_the_end() -> None:
    found = zero(100, 350, 500, 600)
    assert (found["zero_window_broker_count"], found["zero_window_broker_ns"]) == (2, 350 * MS)
    assert found["zero_window_broker_max_ns"] == 250 * MS
    assert found["zero_window_client_count"] == 0
    found = zero(100, last=900)
    assert (found["zero_window_broker_count"], found["zero_window_broker_max_ns"]) == (1, 800 * MS)


def test_a_reset_closes_no_window() -> None:
    wire = Wire()
    reset = wire.segment(BROKER, 0, ack=0, flags=RST, at_ns=50 * MS)._replace(window=0)
    assert facts(*opened(wire), reset)["zero_window_broker_count"] == 0


def lost(*more: Segment, wire: Wire, acknowledged: bool = False, after_ms: int = 250) -> dict[str, Any]:
    """The client sends four bytes again after some time."""
    segments = opened(wire)
    segments.append(wire.segment(CLIENT, 0, b"abcd", ack=0, at_ns=100 * MS)._replace(window=500))
    if acknowledged:
        segments.append(wire.segment(BROKER, 0, ack=4, at_ns=120 * MS)._replace(window=500))
    again = wire.segment(CLIENT, 0, b"abcd", ack=0, at_ns=(100 + after_ms) * MS)
    return facts(*segments, again, *more)


def test_bytes_that_come_again_before_they_were_acknowledged_were_lost() -> None:
    wire = Wire()
    found = lost(wire=wire)
    assert (found["retransmitted_segments"], found["lost_to_broker"], found["lost_to_client"]) == (1, 1, 0)
    assert (found["rto_like"], found["rto_ns"], len(found["rto_packets"])) == (1, [350 * MS], 1)
    assert lost(wire=Wire(), after_ms=100)["rto_like"] == 0


def test_bytes_that_were_acknowledged_before_were_not() -> None:
    found = lost(wire=Wire(), acknowledged=True)
    assert (found["retransmitted_segments"], found["rto_like"]) == (0, 0)


def test_bytes_that_the_receiver_says_it_had_were_not() -> None:
    """A probe of the tail, to which the receiver answers with a D-SACK."""
    wire = Wire()
    start = wire.isn[CLIENT] + 1
    block = b"\x01\x01\x05\x0a" + start.to_bytes(4, "big") + (start + 4).to_bytes(4, "big")
    answer = wire.segment(BROKER, 0, ack=4, at_ns=360 * MS)._replace(window=500, options=block)
    assert lost(answer, wire=wire)["retransmitted_segments"] == 0
    other = b"\x01\x01\x05\x0a" + (start + 9).to_bytes(4, "big") + (start + 12).to_bytes(4, "big")
    assert lost(answer._replace(options=other), wire=wire)["retransmitted_segments"] == 1


def test_a_copy_of_a_packet_was_not_lost() -> None:
    wire = Wire()
    data = wire.segment(CLIENT, 0, b"abcd", ack=0, at_ns=100 * MS)._replace(window=500, identity=77)
    assert facts(*opened(wire), data, data._replace(packet=9))["retransmitted_segments"] == 0


def test_what_fills_a_hole_late_was_lost_before_the_capture() -> None:
    for late_ms, wanted in ((250, (1, 1)), (40, (1, 0)), (1, (0, 0))):
        wire = Wire()
        beyond = wire.segment(CLIENT, 4, b"efgh", ack=0, at_ns=100 * MS)._replace(window=500)
        filler = wire.segment(CLIENT, 0, b"abcd", ack=0, at_ns=(100 + late_ms) * MS)
        found = facts(*opened(wire), beyond, filler)
        assert (found["retransmitted_segments"], found["rto_like"]) == wanted


def test_an_outage_lasts_from_the_bytes_that_are_only_sent_again_until_they_are_acknowledged() -> None:
    wire = Wire()
    segments = opened(wire)
    for at in (100, 300, 700, 1_500, 3_100):
        segments.append(wire.segment(CLIENT, 0, b"abcd", ack=0, at_ns=at * MS)._replace(window=500))
    going_on = facts(*segments)
    assert (going_on["outage_ns"], going_on["outage_from_ns"]) == (3_000 * MS, 100 * MS)
    over = facts(*segments, wire.segment(BROKER, 0, ack=4, at_ns=3_200 * MS)._replace(window=500))
    assert (over["outage_ns"], over["outage_from_ns"]) == (3_100 * MS, 100 * MS)


def test_who_goes_on_behind_its_syn_was_answered_though_the_other_end_was_not_captured() -> None:
    wire = Wire()
    syn = wire.segment(CLIENT, -1, ack=None, flags=SYN, at_ns=0)
    assert facts(syn)["opening"] == "unanswered"
    assert facts(syn, syn)["opening"] == "unanswered"
    assert facts(syn, wire.segment(CLIENT, 0, ack=0, at_ns=MS))["opening"] == "answered"
    assert facts(syn, wire.segment(CLIENT, 0, b"ab", ack=0, at_ns=MS))["opening"] == "answered"


def test_what_is_sent_again_is_no_loss_where_its_receiver_was_not_captured() -> None:
    wire = Wire()
    first = wire.segment(CLIENT, 0, b"ab", ack=0, at_ns=0)
    again = [wire.segment(CLIENT, 0, b"ab", ack=0, at_ns=at * 400 * MS) for at in (1, 2, 3)]
    alone = facts(first, *again)
    assert (alone["retransmitted_segments"], alone["rto_like"], alone["outage_ns"]) == (0, 0, 0)
    heard = facts(wire.segment(BROKER, 0, ack=0, at_ns=0), first, *again, client=1)
    assert (heard["retransmitted_segments"], heard["rto_like"]) == (3, 3)
    assert heard["outage_ns"] > 0


@pytest.mark.parametrize(
    ("captured", "ack", "ends", "closed_by"),
    [
        ("first", 3, FIN, "client"),
        ("never", 3, FIN, None),
        ("later", 3, FIN, "client"),
        ("never", 2, FIN, "broker"),
        ("after", 2, FIN, "broker"),
        ("never", 9, FIN, "broker"),  # bytes are missing, which are told as such
        ("never", 3, RST, None),
        ("never", 2, RST, "broker"),
    ],
)
def test_who_acknowledges_a_fin_was_not_the_first_to_close(
    captured: str, ack: int, ends: int, closed_by: str | None
) -> None:
    wire = Wire()
    fin = wire.segment(CLIENT, 2, ack=0, flags=FIN)
    found = facts(
        wire.segment(CLIENT, 0, b"ab", ack=0),
        *([fin] if captured == "first" else []),
        wire.segment(BROKER, 0, ack=ack),
        wire.segment(BROKER, 0, ack=ack, flags=ends),
        *([fin] if captured in ("later", "after") else []),
    )
    assert found["closed_by"] == closed_by
    assert found["closed_ns"] is not None


@pytest.mark.parametrize("ack", [2, 3])
@pytest.mark.parametrize("then", [FIN, RST])
def test_what_comes_after_the_first_close_changes_nothing(ack: int, then: int) -> None:
    """Its end may have heard a FIN in the meantime that was not captured."""
    wire = Wire()
    found = facts(
        wire.segment(CLIENT, 0, b"ab", ack=0, at_ns=0),
        wire.segment(BROKER, 0, ack=ack, flags=FIN, at_ns=10),
        wire.segment(BROKER, 1 if then == RST else 0, ack=3, flags=then, at_ns=30),
    )
    assert found["closed_by"] == ("broker" if ack == 2 else None)
    assert found["closed_ns"] == 10
