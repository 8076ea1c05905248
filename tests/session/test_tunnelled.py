"""Tenants with the same addresses are told apart by their tunnels; one connection that went through
several is not taken for several."""

from __future__ import annotations

import pickle

from kdissect.dissect import LINGER_NS, Dissector, Event
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.model import SYN, Fault, Segment
from kdissect.session.conversation import Connection
from tests.kafka import METADATA_RESPONSE_1, Talk, request, response
from tests.tcp.segments import BROKER, CLIENT


def talk(correlation: int, isn: int = 0, syn: bool = True) -> Talk:
    """Two exchanges between the same endpoints; ``isn`` is added to the sequence numbers."""
    made = Talk(syn=False)
    made.next = {CLIENT: isn + 1001, BROKER: isn + 90001}
    if syn:
        made._add(CLIENT, flags=SYN, seq=isn + 1000, ack=False)
        made._add(BROKER, flags=SYN, seq=isn + 90000)
    for each in (correlation, correlation + 1):
        made.ask(request("Metadata", 1, each, topics=[{"name": "orders"}]))
        made.answer(response("Metadata", 1, each, **METADATA_RESPONSE_1))
    return made


def through(segments: list[Segment], network: int, back: int | None = None) -> list[Segment]:
    """What the client says in one network, and the broker in the same or another."""
    networks = {CLIENT: network, BROKER: network if back is None else back}
    return [segment._replace(network=networks[segment.source]) for segment in segments]


def interleaved(*several: list[Segment]) -> list[Segment]:
    """One packet of each in turn."""
    turns = [segment for turn in zip(*several, strict=True) for segment in turn]
    return [s._replace(packet=number, timestamp_ns=number * 1000) for number, s in enumerate(turns, 1)]


def run(segments: list[Segment], dissector: Dissector | None = None) -> list[tuple[int, int | None]]:
    """Connection and correlation id of each exchange; all must be whole, and no fault be told."""
    dissector = Dissector() if dissector is None else dissector
    events: list[Event] = [event for segment in segments for event in dissector.feed(segment)]
    events += dissector.close()
    exchanges = [event for event in events if isinstance(event, Exchange)]
    rows = [event for event in events if isinstance(event, Connection)]
    assert len(exchanges) + len(rows) == len(events)
    assert not any(exchange.missing or exchange.faults for exchange in exchanges)
    assert sorted({exchange.connection for exchange in exchanges}) == [row.connection for row in rows]
    assert (dissector.remembered, dissector.held_bytes) == (0, 0)
    return sorted((exchange.connection, exchange.correlation_id) for exchange in exchanges)


BOTH = [(0, 1), (0, 2), (1, 11), (1, 12)]


def test_tenants_with_the_same_endpoints_are_two_connections() -> None:
    one, other = talk(1).segments, talk(11, 500_000_000).segments
    assert run(interleaved(through(one, 7), through(other, 8))) == BOTH


def test_a_tenant_is_told_from_who_has_the_same_endpoints_outside_tunnels() -> None:
    one, other = talk(1).segments, talk(11, 500_000_000).segments
    assert run(interleaved(one, through(other, 8))) == BOTH
    assert run(interleaved(through(one, 8), other)) == BOTH


def test_tenants_are_told_apart_where_the_capture_began_later() -> None:
    one, other = talk(1, syn=False).segments, talk(11, 500_000_000, syn=False).segments
    assert run(interleaved(through(one, 7), through(other, 8))) == BOTH


def test_the_two_directions_may_have_different_identifiers() -> None:
    assert run(through(talk(1).segments, 7, 8)) == [(0, 1), (0, 2)]
    assert run(through(talk(1, syn=False).segments, 7, 8)) == [(0, 1), (0, 2)]
    assert run(through(talk(1, syn=False).segments, 0, 8)) == [(0, 1), (0, 2)]


def test_tenants_whose_directions_have_different_identifiers_are_told_apart() -> None:
    one, other = talk(1).segments, talk(11, 500_000_000).segments
    assert run(interleaved(through(one, 7, 8), through(other, 8, 7))) == BOTH


def test_a_packet_captured_in_the_tunnel_and_out_of_it_is_one() -> None:
    segments = talk(1).segments
    assert run(interleaved(through(segments, 7), segments)) == [(0, 1), (0, 2)]
    assert run(interleaved(segments, through(segments, 7))) == [(0, 1), (0, 2)]


def test_endpoints_that_are_used_again_are_another_connection_in_all_networks() -> None:
    one, again = talk(1).close().segments, talk(11, 500_000_000).close().segments
    packets = interleaved(through(one, 7), one) + interleaved(through(again, 7), again)
    packets = [s._replace(packet=number, timestamp_ns=number * 1000) for number, s in enumerate(packets, 1)]
    assert run(packets) == BOTH


def test_keys_are_forgotten_with_their_connection() -> None:
    dissector = Dissector()
    segments = talk(1).close().segments
    for number in range(20):
        for segment in interleaved(through(segments, 7, 8), segments):
            later = segment.timestamp_ns + number * 2 * LINGER_NS
            list(dissector.feed(segment._replace(timestamp_ns=later)))
    assert dissector.remembered == 1
    assert len(dissector._table) == 4
    assert pickle.loads(pickle.dumps(dissector)).remembered == 1
    list(dissector.feed(100 * LINGER_NS))
    assert (dissector.remembered, len(dissector._table), bool(dissector._tunnelled)) == (0, 0, False)


def far_apart(count: int) -> list[Segment]:
    """Connections between the same endpoints, each in a network of its own."""
    opened = talk(1).segments[0]
    return [
        opened._replace(packet=i, timestamp_ns=i, network=i, seq=i * 50_000_017 % (1 << 32))
        for i in range(1, count + 1)
    ]


def test_tenants_with_the_same_endpoints_are_bounded() -> None:
    dissector = Dissector(Limits(tenants=10))
    events = [event for segment in far_apart(100) for event in dissector.feed(segment)]
    assert dissector.remembered == 10
    assert {event.kind for event in events if isinstance(event, Fault)} == {"too-many-connections"}
    assert "in tunnels between the same endpoints" in next(str(e) for e in events if isinstance(e, Fault))
    events += dissector.close()
    rows = [event for event in events if isinstance(event, Connection)]
    assert [(row.connection, row.end) for row in rows] == [
        (number, "evicted" if number < 90 else "open") for number in range(100)
    ]


def test_networks_of_one_connection_are_bounded_and_lose_nothing() -> None:
    dissector = Dissector(Limits(tenants=4))
    segments = [each._replace(network=number) for number, each in enumerate(talk(1).segments, 1)]
    assert run(segments, dissector) == [(0, 1), (0, 2)]
    dissector = Dissector(Limits(tenants=4))
    for segment in segments:
        list(dissector.feed(segment))
        assert len(dissector._table) <= 4
    assert dissector.remembered == 1
