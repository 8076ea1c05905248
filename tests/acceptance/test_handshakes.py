"""Handshakes in which an end names several initial sequence numbers, and data in a SYN.

What the ends agreed on counts, nothing is lost and nothing is made up."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from kdissect.model import ACK, FIN, RST, SYN, Endpoint, Segment
from tests.acceptance.wire import packets
from tests.kafka import framed
from tests.lab import Dissected, dissected
from tests.session.runs import metadata, metadata_answer
from tests.tcp.segments import BROKER, CLIENT

FAR = 500_000_000
HALF = 1 << 31
AHEAD = [100, 20_000, 1_000_000, FAR, HALF - 1, HALF + 5, -100, -FAR]
"""How far the second number may be from the first."""


class Script:
    """Segments with the sequence numbers as they are on the wire."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []

    def add(self, who: Endpoint, seq: int, ack: int | None, data: bytes = b"", flags: int = 0) -> Script:
        number = len(self.segments) + 1
        other = BROKER if who == CLIENT else CLIENT
        made = flags | (0 if ack is None else ACK)
        known = None if ack is None else ack % (1 << 32)
        self.segments.append(
            Segment(number, number * 1_000_000, who, other, seq % (1 << 32), known, made, data, len(data))
        )
        return self

    def syn(self, seq: int, data: bytes = b"") -> Script:
        return self.add(CLIENT, seq, None, data, SYN)

    def syn_ack(self, seq: int, ack: int, data: bytes = b"") -> Script:
        return self.add(BROKER, seq, ack, data, SYN)

    def exchanges(self, client: int, broker: int, count: int = 5, first: int = 1) -> Script:
        """Metadata requests and their responses from these numbers on."""
        for correlation in range(first, first + count):
            ask, answer = framed(metadata(correlation)), framed(metadata_answer(correlation))
            self.add(CLIENT, client, broker, ask)
            client += len(ask)
            self.add(BROKER, broker, client, answer)
            broker += len(answer)
            self.add(CLIENT, client, broker)
        self.client, self.broker = client, broker
        return self

    def close(self) -> Script:
        self.add(CLIENT, self.client, self.broker, flags=FIN)
        return self.add(BROKER, self.broker, self.client + 1, flags=FIN)

    def seen(self) -> Dissected:
        found = dissected(packets(self.segments))
        found.connections.sort(key=lambda connection: connection.connection)
        return found


class Summary(NamedTuple):
    paired: int
    faults: list[str]
    connections: int
    gap_bytes: int


def summary(found: Dissected) -> Summary:
    paired = [e for e in found.exchanges if e.request is not None and e.response is not None]
    assert len(paired) == len(found.exchanges)
    faults = [f.kind for f in found.faults] + [f.kind for e in found.exchanges for f in e.faults]
    return Summary(len(paired), faults, len(found.connections), sum(c.gap_bytes for c in found.connections))


WHOLE = Summary(5, [], 1, 0)


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("isn", [9_000, 2**32 - 50, 2**32 - 1, HALF])
def test_the_second_syn_ack_counts_where_the_client_confirms_it(ahead: int, isn: int) -> None:
    made = Script().syn(1000).syn_ack(isn, 1001).syn_ack(isn + ahead, 1001)
    made.add(CLIENT, 1001, isn + ahead + 1).exchanges(1001, isn + ahead + 1).close()
    assert summary(made.seen()) == WHOLE


@pytest.mark.parametrize("ahead", AHEAD)
def test_the_first_syn_ack_counts_where_the_client_confirms_it(ahead: int) -> None:
    made = Script().syn(1000).syn_ack(9000, 1001).syn_ack(9000 + ahead, 1001)
    made.add(CLIENT, 1001, 9001).exchanges(1001, 9001).close()
    assert summary(made.seen()) == WHOLE


@pytest.mark.parametrize("ahead", AHEAD)
def test_without_an_acknowledgement_of_its_own_the_handshake_is_confirmed_by_the_first_request(
    ahead: int,
) -> None:
    for confirmed in (9000, 9000 + ahead):
        made = Script().syn(1000).syn_ack(9000, 1001).syn_ack(9000 + ahead, 1001)
        assert summary(made.exchanges(1001, confirmed + 1).close().seen()) == WHOLE


@pytest.mark.parametrize("ahead", AHEAD)
def test_a_number_that_was_confirmed_gives_way_until_data_is_acknowledged(ahead: int) -> None:
    made = Script().syn(1000).syn_ack(9000, 1001).add(CLIENT, 1001, 9001)
    made.add(CLIENT, 1001, 9001, framed(metadata(1)))  # nobody answers; another broker takes over
    made.syn_ack(9000 + ahead, 1001).add(CLIENT, 1001, 9001 + ahead)
    made.exchanges(1001, 9001 + ahead).close()
    assert summary(made.seen()) == WHOLE


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("data", [b"", b"spoofed!"])
def test_a_late_syn_ack_counts_no_more_once_data_was_acknowledged(ahead: int, data: bytes) -> None:
    made = Script().syn(1000).syn_ack(9000, 1001).exchanges(1001, 9001, 2)
    made.syn_ack(9000 + ahead, 1001, data).add(CLIENT, made.client, made.broker)
    found = made.exchanges(made.client, made.broker, 3, first=3).close().seen()
    assert summary(found)[:3] == (5, ["out-of-window"] if data else [], 1)
    assert summary(found).gap_bytes == 0


def test_a_number_that_nobody_confirms_does_not_count_with_its_data() -> None:
    made = Script().syn(1000).syn_ack(9000, 1001).add(CLIENT, 1001, 9001).syn_ack(9000 + FAR, 1001)
    made.add(BROKER, 9001 + FAR, 1001, b"spoofed!").add(BROKER, 9009 + FAR, 1001, flags=FIN)
    found = made.exchanges(1001, 9001).close().seen()
    assert summary(found) == WHOLE._replace(faults=["out-of-window"])
    assert "did not confirm" in found.faults[0].message


def test_a_syn_ack_that_is_sent_again_is_the_same() -> None:
    made = Script().syn(1000).syn(1000).syn_ack(9000, 1001).syn_ack(9000, 1001).syn_ack(9000, 1001)
    assert summary(made.exchanges(1001, 9001).close().seen()) == WHOLE


def test_two_numbers_in_turn_are_settled_by_what_the_client_says() -> None:
    for confirmed in (9000, 70_000, 3_000_000_000):
        made = Script().syn(1000)
        for _ in range(3):
            for isn in (9000, 70_000, 3_000_000_000):
                made.syn_ack(isn, 1001)
        assert summary(made.exchanges(1001, confirmed + 1).close().seen()) == WHOLE


def test_more_numbers_than_are_kept_leave_the_newest() -> None:
    made = Script().syn(1000)
    for i in range(1000):
        made.syn_ack(i * 1_000_003, 1001)
    assert summary(made.exchanges(1001, 999 * 1_000_003 + 1).close().seen()) == WHOLE


@pytest.mark.parametrize("ahead", [-FAR, HALF + 5])
def test_the_second_syn_ack_need_not_have_been_captured(ahead: int) -> None:
    made = Script().syn(1000).syn_ack(9000, 1001).add(CLIENT, 1001, 9001 + ahead)
    assert summary(made.exchanges(1001, 9001 + ahead).close().seen()) == WHOLE


@pytest.mark.parametrize("ahead", AHEAD)
def test_from_the_broker_alone_its_data_tell(ahead: int) -> None:
    for confirmed in (9000, 9000 + ahead):
        made = Script().syn(1000).syn_ack(9000, 1001).syn_ack(9000 + ahead, 1001)
        made.exchanges(1001, confirmed + 1)
        made.segments = [s for s in made.segments if s.source == BROKER]
        found = made.seen()
        assert [e.correlation_id for e in found.exchanges] == [1, 2, 3, 4, 5]
        assert {f.kind for f in found.faults} <= {"gap"}, "of the requests, that nobody captured"


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_capture_may_begin_in_the_middle_of_the_handshake(cut: int) -> None:
    made = Script().syn(1000).syn_ack(9000, 1001).syn_ack(9000 + FAR, 1001)
    made.add(CLIENT, 1001, 9001 + FAR).exchanges(1001, 9001 + FAR).close()
    made.segments = [s._replace(packet=s.packet - cut) for s in made.segments[cut:]]
    found = made.seen()
    lost = 1 if cut == 5 else 0  # the first request
    assert len([e for e in found.exchanges if e.request and e.response]) == 5 - lost
    assert not [f for f in found.faults if f.kind != "gap"]
    assert sum(c.gap_bytes for c in found.connections) < 100


@pytest.mark.parametrize("ahead", AHEAD)
def test_the_syn_that_the_broker_answers_counts(ahead: int) -> None:
    second = 1_000_000_000 + ahead
    for confirmed in (1_000_000_000, second):
        made = Script().syn(1_000_000_000).syn(second).syn_ack(9000, confirmed + 1)
        found = made.exchanges(confirmed + 1, 9001).close().seen()
        assert summary(found) == WHOLE._replace(connections=2), "as Wireshark counts them"
        assert [c.exchanges for c in found.connections] == ([0, 5] if confirmed == second else [5, 0])


@pytest.mark.parametrize("ahead", AHEAD)
def test_both_ends_may_name_two_numbers(ahead: int) -> None:
    second = 1_000_000_000 + ahead
    for confirmed in (1_000_000_000, second):
        made = Script().syn(1_000_000_000).syn(second)
        made.syn_ack(9000, confirmed + 1).syn_ack(9000 - ahead, confirmed + 1)
        found = made.exchanges(confirmed + 1, 9001 - ahead).close().seen()
        assert summary(found) == WHOLE._replace(connections=2)


@pytest.mark.parametrize("ahead", AHEAD)
def test_a_forged_syn_does_not_end_a_connection(ahead: int) -> None:
    made = Script().syn(1000).syn_ack(9000, 1001).exchanges(1001, 9001, 2)
    made.syn(1000 + ahead).add(BROKER, made.broker, made.client)  # the broker says where it is
    made.syn(2_000_000_000 + ahead).syn(1000 + ahead)
    found = made.exchanges(made.client, made.broker, 3, first=3).close().seen()
    assert summary(found)[:2] == (5, [])
    assert found.connections[0].exchanges == 5
    assert found.connections[0].end == "fin"
    assert not any(c.exchanges or c.gap_bytes for c in found.connections[1:])


def test_ports_are_used_again_without_an_end_that_was_captured() -> None:
    made = Script().syn(1000).syn_ack(9000, 1001).exchanges(1001, 9001)
    made.syn(77_000).syn_ack(5_000_000, 77_001)
    found = made.exchanges(77_001, 5_000_001).close().seen()
    assert summary(found) == Summary(10, [], 2, 0)
    assert [(c.exchanges, c.end) for c in found.connections] == [(5, "reused"), (5, "fin")]


def test_a_syn_that_is_refused_ends_the_connection_before_it() -> None:
    made = Script().syn(1000).syn_ack(9000, 1001).exchanges(1001, 9001)
    made.syn(77_000).add(BROKER, 0, 77_001, flags=RST)
    assert [c.end for c in made.seen().connections] == ["reused", "rst"]


def test_a_new_connection_of_which_the_client_alone_was_captured() -> None:
    made = Script().syn(1000).syn_ack(9000, 1001).exchanges(1001, 9001).syn(77_000)
    made.exchanges(77_001, 5_000_001)
    made.segments = [s for s in made.segments if s.source == CLIENT]
    found = made.seen()
    assert [c.exchanges for c in found.connections] == [5, 5]


def test_data_in_a_syn_is_read() -> None:
    ask, answer = framed(metadata(1)), framed(metadata_answer(1))
    made = Script().syn(1000, ask).syn_ack(9000, 1001 + len(ask)).add(BROKER, 9001, 1001 + len(ask), answer)
    made.add(CLIENT, 1001 + len(ask), 9001 + len(answer))
    made.exchanges(1001 + len(ask), 9001 + len(answer), 4, first=2).close()
    assert summary(made.seen()) == WHOLE


def test_data_in_a_syn_that_the_broker_does_not_take_is_sent_again() -> None:
    made = Script().syn(1000, framed(metadata(1))).syn_ack(9000, 1001).exchanges(1001, 9001).close()
    found = made.seen()
    assert summary(found) == WHOLE
    assert found.connections[0].retransmitted == len(framed(metadata(1)))


def test_data_in_a_syn_that_is_sent_again_without_it() -> None:
    made = Script().syn(1000, framed(metadata(1))).syn(1000).syn_ack(9000, 1001)
    assert summary(made.exchanges(1001, 9001).close().seen()) == WHOLE


@pytest.mark.parametrize("ahead", AHEAD)
def test_data_in_a_syn_and_two_answers_to_it(ahead: int) -> None:
    ask, answer = framed(metadata(1)), framed(metadata_answer(1))
    next_client, next_broker = 1001 + len(ask), 9001 + ahead + len(answer)
    made = Script().syn(1000, ask).syn_ack(9000, next_client).syn_ack(9000 + ahead, next_client)
    made.add(CLIENT, next_client, 9001 + ahead).add(BROKER, 9001 + ahead, next_client, answer)
    made.add(CLIENT, next_client, next_broker).exchanges(next_client, next_broker, 4, first=2).close()
    assert summary(made.seen()) == WHOLE


def test_data_in_a_syn_ack_is_read() -> None:
    ask, answer = framed(metadata(1)), framed(metadata_answer(1))
    next_client, next_broker = 1001 + len(ask), 9001 + len(answer)
    made = Script().syn(1000, ask).syn_ack(9000, next_client, answer)
    made.exchanges(next_client, next_broker, 4, first=2).close()
    assert summary(made.seen()) == WHOLE


def test_a_fin_far_ahead_makes_up_no_gap() -> None:
    made = Script().syn(1000).syn_ack(9000, 1001).exchanges(1001, 9001)
    made.add(BROKER, made.broker + FAR, made.client, flags=FIN)
    assert summary(made.seen()) == WHOLE
