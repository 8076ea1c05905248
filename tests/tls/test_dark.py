"""A connection that no secret can open is dark at once. All that is shown of it stays the same."""

from __future__ import annotations

import pickle
import ssl
from collections.abc import Sequence
from random import Random

import pytest

from kdissect.model import Chunk, Gap
from kdissect.tls.decrypting import Piece, Tls
from kdissect.tls.handshake import RETRY_RANDOM
from kdissect.tls.keying import Side
from kdissect.tls.keylog import TlsSecrets
from tests.tls.endpoints import BROKER, CLIENT, faults, run, segments
from tests.tls.forge import CCS, Forged, client_hello, record, server_hello
from tests.tls.talks import TLS12, TLS13, is_all, talk
from tests.tls.test_missing import drop


def always_empty() -> TlsSecrets:
    """A store without secrets, to which none can come."""
    secrets = TlsSecrets()
    secrets.may_grow = False
    return secrets


def skipped(machine: Tls, pieces: Sequence[tuple[Side, Chunk | Gap]]) -> list[Piece]:
    """What comes out of a caller that offers each chunk to ``take`` first, as a connection does."""
    out: list[Piece] = []
    for side, piece in pieces:
        if isinstance(piece, Chunk):
            data, size = b"before" + piece.data + b"behind", len(piece.data)
            passed = machine.take(side, piece.packet, piece.timestamp_ns, piece.offset, data, 6, size, out)
            if passed == len(piece.data):
                continue
            piece = piece._replace(offset=piece.offset + passed, data=piece.data[passed:])
        out += machine.feed(side, piece)
    return out + machine.close()


def cut_at_random(made: list[tuple[Side, bytes]], randomly: Random) -> list[tuple[Side, Chunk]]:
    flights = []
    for side, data in made:
        while data:
            size = randomly.choice((1, 4, 5, 6, 100, 1460, 20_000))
            flights.append((side, data[:size]))
            data = data[size:]
    return segments(flights, 1 << 20)


@pytest.mark.parametrize("version", [TLS12, TLS13])
@pytest.mark.parametrize("seed", range(40))
def test_it_shows_what_a_connection_shows_whose_records_waited(version: ssl.TLSVersion, seed: int) -> None:
    randomly = Random(seed)
    pieces = cut_at_random(talk(version).flights, randomly)
    lost = set(randomly.sample(range(1, len(pieces)), seed % 8))
    said = drop(pieces, lost)
    waited, dark = Tls(TlsSecrets()), Tls(always_empty())
    out = run(waited, said)
    assert skipped(dark, said) == out
    assert dark.summary() == waited.summary()
    assert dark.summary(CLIENT, 1) == waited.summary(CLIENT, 1)


def test_a_loss_in_a_direction_that_is_still_in_the_clear_counts() -> None:
    made = talk(TLS12)
    said = segments(
        [(side, flight[at : at + 40]) for side, flight in made.flights for at in range(0, 400, 40)]
    )
    for packet in range(1, len(said)):
        waited, dark = Tls(TlsSecrets()), Tls(always_empty())
        lost = drop(said, {packet})
        assert run(dark, lost) == run(waited, lost)
        assert dark.summary() == waited.summary()


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_nothing_waits(version: ssl.TLSVersion) -> None:
    machine = Tls(always_empty())
    for side, chunk in segments(talk(version).flights):
        assert machine.feed(side, chunk) == []
        assert (machine.is_waiting(), machine.held_bytes, machine.awaited) == (False, 0, ())
    assert machine.kept() == 0
    assert str(machine.dark).startswith("no secret for client random ")
    assert (machine.seen.version, machine.passes_over()) == (version.name.replace("v1_", " 1."), True)


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_whole_records_are_read_from_packets_without_chunks(version: ssl.TLSVersion) -> None:
    machine, waited = Tls(always_empty()), Tls(TlsSecrets())
    pieces = segments(talk(version).flights, 1 << 20)
    out: list[Piece] = []
    for side, piece in pieces:
        data, size = b"before" + piece.data, len(piece.data)
        assert machine.take(side, piece.packet, piece.timestamp_ns, piece.offset, data, 6, size, out) == size
    assert out + machine.close() == run(waited, pieces)
    assert machine.summary() == waited.summary()


@pytest.mark.parametrize("version", [TLS12, TLS13])
@pytest.mark.parametrize("seed", range(10))
def test_with_secrets_packets_give_all_data(version: ssl.TLSVersion, seed: int) -> None:
    made = talk(version)
    machine = Tls(made.secrets())
    assert is_all(made, skipped(machine, cut_at_random(made.flights, Random(seed))))
    assert machine.dark is None


@pytest.mark.parametrize("late", [0, 1])
def test_early_data_that_the_broker_refuses_tells_nothing(late: int) -> None:
    made = Forged(early=True, early_accepted=False)
    again = client_hello(made.random, (0x1301,), {43: b"\x04\x03\x04\x03\x03", 41: b""})
    asks = record(22, server_hello(RETRY_RANDOM, 0x1301, {43: b"\x03\x04"}))
    made.flights[3 - late : 3 - late] = [(BROKER, asks), (BROKER, CCS)]
    made.flights[5:5] = [(CLIENT, record(22, again))]
    made.say(BROKER, "broker", bytes(18))
    waited, dark = Tls(TlsSecrets()), Tls(always_empty())
    assert run(dark, segments(made.flights)) == run(waited, segments(made.flights))
    assert dark.summary() == waited.summary()
    one, other = dark.seen.unopened, waited.seen.unopened
    assert (one._first, one._client_ns, one.refusal) == (other._first, other._client_ns, other.refusal)


def test_a_store_that_may_grow_or_has_a_secret_is_not_always_empty() -> None:
    assert not TlsSecrets().stays_empty
    assert always_empty().stays_empty
    for secrets in (always_empty(), always_empty()):
        secrets.add(b"CLIENT_RANDOM " + b"00" * 32 + b" " + b"11" * 48)
        assert not secrets.stays_empty
    secrets = always_empty()
    secrets.add_rsa_key(b"key")
    assert not secrets.stays_empty


def test_given_secrets_open_what_they_can_although_no_more_can_come() -> None:
    made = talk()
    secrets = made.secrets()
    secrets.may_grow = False
    machine = Tls(secrets)
    out = run(machine, segments(made.flights))
    assert machine.is_decrypted
    assert len(out) > 3
    assert not machine.passes_over()


def test_records_are_passed_over_only_when_their_lengths_tell_nothing_more() -> None:
    made = Forged()
    made.say(BROKER, "broker", b"\x02\x28", kind=21)
    pieces = segments(made.flights)
    machine = Tls(always_empty())
    run(machine, pieces, close=False)
    assert not machine.passes_over()  # the last record may be the broker's refusal
    made.say(BROKER, "broker", b"more")
    run(machine, segments(made.flights)[len(pieces) :], close=False)
    assert machine.passes_over()


def dark_13() -> tuple[Tls, Forged, int]:
    """A machine that passes over records of TLS 1.3, and the number of segments that it has."""
    made = Forged()
    made.say(BROKER, "broker", b"one")
    made.say(BROKER, "broker", b"two")
    machine = Tls(always_empty())
    pieces = segments(made.flights)
    run(machine, pieces, close=False)
    assert machine.passes_over()
    return machine, made, len(pieces)


def test_an_alert_in_the_clear_is_still_shown() -> None:
    machine, made, before = dark_13()
    made.say(CLIENT, "client", bytes(100))
    made.send(CLIENT, record(21, b"\x02\x30"))
    skipped(machine, list(segments(made.flights)[before:]))
    (alert,) = machine.seen.alerts
    assert (alert["from"], alert["name"]) == ("client", "unknown_ca")


def test_bytes_that_are_no_record_are_still_a_fault() -> None:
    machine, made, before = dark_13()
    made.send(CLIENT, b"GET / HTTP/1.1\r\n" * 3)
    out = skipped(machine, list(segments(made.flights)[before:]))
    assert [each.kind for each in faults(out)] == ["bad-tls-record"]


def test_hardly_a_segment_is_fed_although_most_headers_are_cut() -> None:
    machine, made, before = dark_13()
    for _ in range(30):
        made.say(CLIENT, "client", bytes(1000))
    fed = 0
    stream = segments(made.flights)[before:]
    start = stream[0][1].offset
    data = b"".join(piece.data for _, piece in stream)
    for at in range(0, len(data), 700):
        piece = Chunk(start + at, data[at : at + 700], 1000 + at, at)
        passed = machine.take(
            CLIENT, piece.packet, piece.timestamp_ns, piece.offset, piece.data, 0, len(piece.data), []
        )
        if passed < len(piece.data):
            rest = piece._replace(offset=piece.offset + passed, data=piece.data[passed:])
            assert machine.feed(CLIENT, rest) == []
            assert machine.kept() < 300
            fed += 1
    assert fed < len(data) / 700 / 10


def test_the_rest_of_a_record_is_passed_over_across_a_gap() -> None:
    machine, made, before = dark_13()
    made.say(CLIENT, "client", bytes(6000))
    made.send(CLIENT, record(21, b"\x01\0"))
    said = segments(made.flights)[before:]
    lost = said[2][1].packet
    assert skipped(machine, drop(said, {lost})) == []
    assert [each["name"] for each in machine.seen.alerts] == ["close_notify"]


def test_early_data_waits_for_the_answer_of_the_broker_all_the_same() -> None:
    for accepted in (True, False):
        made = Forged(early=True, early_accepted=accepted)
        made.say(CLIENT, "client", b"data")
        made.say(BROKER, "broker", b"more")
        waited, dark = Tls(TlsSecrets()), Tls(always_empty())
        said = segments(made.flights)
        assert run(dark, said) == run(waited, said)
        assert dark.summary() == waited.summary()


def test_it_can_be_stored_between_any_two_segments() -> None:
    made = talk(TLS12)
    machine = Tls(always_empty())
    for side, chunk in segments(made.flights):
        machine.feed(side, chunk)
        machine = pickle.loads(pickle.dumps(machine))
    assert machine.passes_over()


def test_a_connection_of_a_version_that_is_not_supported_is_passed_over_with_secrets_too() -> None:
    made = talk(TLS12, "ARIA128-GCM-SHA256:@SECLEVEL=0")
    machine = Tls(made.secrets())
    run(machine, segments(made.flights), close=False)
    assert str(machine.dark).endswith(" is not supported")
    assert machine.passes_over()


def test_a_change_of_keys_alone_is_no_reason_to_pass_over_records() -> None:
    machine = Tls(always_empty())
    run(machine, segments([(CLIENT, CCS), (BROKER, CCS)]), close=False)
    assert not machine.passes_over()
