"""Lost records, cut captures, changed bytes: what is there comes out, what is not is told."""

from __future__ import annotations

import ssl
from random import Random

import pytest

from kdissect.model import Chunk, Gap
from kdissect.tls.ciphers import Opened, Opener
from kdissect.tls.decrypting import Piece, Tls
from kdissect.tls.flow import MOST_FAILURES
from kdissect.tls.keying import Side
from kdissect.tls.keylog import TlsSecrets
from tests.tls.endpoints import BROKER, CLIENT, Ends, Talk, faults, run, segments, streams
from tests.tls.forge import CCS, Forged, message, record
from tests.tls.reseal import records
from tests.tls.talks import TLS12, TLS13, lines, secrets_of, talk


def drop(pieces: list[tuple[Side, Chunk]], lost: set[int]) -> list[tuple[Side, Chunk | Gap]]:
    """The same without these packets."""
    out: list[tuple[Side, Chunk | Gap]] = []
    for side, chunk in pieces:
        if chunk.packet in lost:
            gap = Gap(chunk.offset, len(chunk.data), "lost", chunk.packet, chunk.timestamp_ns)
            out.append((side, gap))
        else:
            out.append((side, chunk))
    return out


def pieces_of_truth(made: Talk, out: list[Piece]) -> tuple[int, int]:
    """Checks that what came out is in what was said, in order; gives how much of each direction did."""
    found = [0, 0]
    at = [0, 0]
    for side, piece in out:
        if isinstance(piece, Chunk):
            where = bytes(made.said[side]).find(piece.data, at[side])
            assert where >= 0
            at[side] = where + len(piece.data)
            found[side] += len(piece.data)
    return found[0], found[1]


@pytest.mark.parametrize("ciphers", ["1.3", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA256"])
@pytest.mark.parametrize("seed", range(6))
def test_lost_segments_cost_their_records_and_no_others(ciphers: str, seed: int) -> None:
    made = talk(TLS13) if ciphers == "1.3" else talk(TLS12, f"{ciphers}:@SECLEVEL=0")
    pieces = segments(made.flights)
    handshake = 8
    lost = set(Random(seed).sample(range(handshake, len(pieces)), 3))
    out = run(Tls(made.secrets()), drop(pieces, lost))
    found = pieces_of_truth(made, out)
    assert sum(found) >= sum(map(len, made.said)) - 3 * 2 * 16_384
    assert any(isinstance(piece, Gap) for _, piece in out)
    if ciphers.endswith("GCM-SHA256"):
        assert [len(each) for each in streams(out)] == [len(each) for each in made.said] or any(
            isinstance(piece, Gap) and not piece.is_exact for _, piece in out
        )


def test_one_lost_record_of_tls_1_2_is_an_exact_gap() -> None:
    made = talk(TLS12, "ECDHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0")
    pieces = segments(made.flights)
    middle = next(chunk.packet + 3 for side, chunk in pieces if side == CLIENT and len(chunk.data) == 1460)
    out = run(Tls(made.secrets()), drop(pieces, {middle}))
    (gap,) = [piece for _, piece in out if isinstance(piece, Gap)]
    assert gap.is_exact
    assert len(streams(out)[0]) == len(made.said[0])


@pytest.mark.parametrize("count", [1, 40])
def test_the_sequence_is_found_again_when_whole_records_are_lost(count: int) -> None:
    made = Forged()
    for number in range(100):
        made.say(CLIENT, "client", b"%02d" % number)
    pieces = segments(made.flights)
    first = pieces[-60][1].packet
    out = run(Tls(secrets_of(made.key_log)), drop(pieces, set(range(first, first + count))))
    assert streams(out)[0].replace(b".", b"") == b"".join(
        b"%02d" % number for number in range(100) if not 40 <= number < 40 + count
    )
    assert faults(out) == []


def test_a_key_update_that_is_lost() -> None:
    made = Forged()
    made.say(CLIENT, "client", b"before")
    made.say(CLIENT, "client", message(24, b"\0"), kind=22)
    made.sealers["client"].update()
    made.say(CLIENT, "client", b"after")
    made.say(CLIENT, "client", b"again")
    pieces = segments(made.flights)
    out = run(Tls(secrets_of(made.key_log)), drop(pieces, {pieces[-3][1].packet}))
    assert streams(out)[0].replace(b".", b"") == b"beforeafteragain"


def test_the_end_of_the_handshake_is_lost() -> None:
    made = Forged()
    made.say(CLIENT, "client", b"data")
    made.say(BROKER, "broker", b"more")
    pieces = segments(made.flights)
    lost = set(range(4, 7))  # encrypted extensions and both ends' Finished
    out = run(Tls(secrets_of(made.key_log)), drop(pieces, lost))
    assert [each.replace(b".", b"") for each in streams(out)] == [b"data", b"more"]


def test_the_change_of_keys_of_tls_1_2_is_lost() -> None:
    made = talk(TLS12)
    pieces = segments(made.flights, 65_536)
    out = run(Tls(made.secrets()), drop(pieces, {3}))  # ClientKeyExchange, ChangeCipherSpec, Finished
    assert pieces_of_truth(made, out) == (len(made.said[0]), len(made.said[1]))


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_what_was_lost_keeps_its_place_among_what_waits(version: ssl.TLSVersion) -> None:
    made = talk(version)
    pieces = drop(segments(made.flights), {20, 21, 45})
    early, secrets = run(Tls(made.secrets()), pieces), TlsSecrets()
    machine = Tls(secrets)
    late = run(machine, pieces, close=False)
    secrets.add(made.key_log)
    late += machine.retry()
    assert late + machine.close() == early


@pytest.mark.parametrize("version", [TLS12, TLS13])
@pytest.mark.parametrize("lost", [1, 2])
def test_a_handshake_that_was_not_captured(version: ssl.TLSVersion, lost: int) -> None:
    made = talk(version)
    machine = Tls(made.secrets())
    out = run(machine, drop(segments(made.flights, 65_536), {lost}))
    assert streams(out) == (b"", b"")
    assert machine.dark == "handshake not captured"


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_a_capture_that_begins_later(version: ssl.TLSVersion) -> None:
    made = talk(version)
    machine = Tls(made.secrets())
    out = run(machine, [*segments(made.flights, 65_536)[6:]])
    assert (streams(out), machine.dark) == ((b"", b""), "handshake not captured")


def test_nothing_in_mid_stream_is_taken_for_a_handshake() -> None:
    """Where TLS 1.2 negotiates anew, messages of the handshake are encrypted and records tell their type."""
    noise = Random(1)
    flights = [(side, record(kind, noise.randbytes(100))) for kind in (23, 22) for side in (CLIENT, BROKER)]
    machine = Tls(talk(TLS12).secrets())
    out = run(machine, segments(flights * 2), close=False)
    assert (out, machine.dark) == ([], "handshake not captured")


@pytest.mark.parametrize("ciphers", ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-SHA256"])
def test_a_record_that_comes_again_is_not_authentic(ciphers: str) -> None:
    made = talk(TLS12, f"{ciphers}:@SECLEVEL=0")
    side, data = made.flights[2]
    finished = data[data.index(CCS) + len(CCS) :]  # the first under these keys
    flights = [*made.flights[:5], (side, finished)]
    (said,) = faults(run(Tls(made.secrets()), segments(flights), close=False))
    assert said.kind == "not-authentic"


def test_half_a_handshake() -> None:
    made = talk()
    machine = Tls(made.secrets())
    run(machine, [*segments(made.flights)[:1]])
    assert machine.dark == "handshake not complete"


def test_a_record_that_was_changed_costs_itself() -> None:
    made = Forged()
    for number in range(5):
        made.say(CLIENT, "client", b"line %d" % number)
    side, data = made.flights[-3]
    made.flights[-3] = (side, data[:-1] + bytes((data[-1] ^ 1,)))
    machine = Tls(secrets_of(made.key_log))
    out = run(machine, segments(made.flights))
    assert streams(out)[0].replace(b".", b"") == b"line 0line 1line 3line 4"
    (said,) = faults(out)
    assert (said.kind, said.layer, machine.dark) == ("not-authentic", "tls", None)


def test_bytes_that_are_no_record() -> None:
    made = Forged()
    made.say(CLIENT, "client", b"one")
    made.send(CLIENT, b"what is this? ")
    made.say(CLIENT, "client", b"two")
    made.say(CLIENT, "client", b"three")
    out = run(Tls(secrets_of(made.key_log)), segments(made.flights))
    assert streams(out)[0].replace(b".", b"") == b"onetwothree"
    (said,) = faults(out)
    assert (said.kind, "14 bytes" in said.message) == ("bad-tls-record", True)


def test_a_record_that_the_end_of_the_capture_cuts() -> None:
    made = Forged()
    made.say(CLIENT, "client", b"whole")
    made.say(CLIENT, "client", bytes(3000))
    side, data = made.flights[-1]
    made.flights[-1] = (side, data[:1000])
    machine = Tls(secrets_of(made.key_log))
    out = run(machine, segments(made.flights))
    assert streams(out)[0] == b"whole" + b"." * 1000
    (gap,) = [piece for _, piece in out if isinstance(piece, Gap)]
    assert (gap.reason, gap.is_exact) == ("the stream ends inside a record", False)
    assert (faults(out), machine.dark) == ([], None)


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_packets_that_a_snap_length_cuts_cost_their_records(version: ssl.TLSVersion) -> None:
    made = talk(version)
    pieces: list[tuple[Side, Chunk | Gap]] = []
    for side, chunk in segments(made.flights):
        rest = len(chunk.data) - 100
        if chunk.packet > 12 and rest > 0:
            pieces.append((side, chunk._replace(data=chunk.data[:100])))
            pieces.append((side, Gap(chunk.offset + 100, rest, "cut", chunk.packet, chunk.timestamp_ns)))
        else:
            pieces.append((side, chunk))
    machine = Tls(made.secrets())
    out = run(machine, pieces)
    found = pieces_of_truth(made, out)
    assert 0 < sum(found) < 1000
    assert (faults(out), machine.dark) == ([], None)


# -- what waits is read as soon as it can be, whatever was lost: no secret will come to free it -----------


def test_what_waits_for_the_servers_word_on_early_data_is_read_when_that_was_lost() -> None:
    made = Forged(early=True)
    made.say(BROKER, "broker", b"data")
    pieces = drop(segments(made.flights), {6, 7})  # of the broker: EncryptedExtensions, Finished
    machine = Tls(secrets_of(made.key_log))
    out = run(machine, pieces[:-1], close=False)
    assert (streams(out), machine.held_bytes > 0) == ((b"", b""), True)
    out = run(machine, pieces[-1:], close=False)
    assert (streams(out)[1][-4:], machine.held_bytes) == (b"data", 0)


def test_what_waits_for_the_servers_word_on_early_data_is_read_when_that_cannot_be_read() -> None:
    made, secrets = Forged(early=True), TlsSecrets()
    secrets.add(made.key_log)
    secrets.add(b"SERVER_HANDSHAKE_TRAFFIC_SECRET %s %064x" % (made.random.hex().encode(), 1))
    for _ in range(MOST_FAILURES - 2):  # behind EncryptedExtensions and Finished
        made.say(BROKER, "broker handshake", b"x", kind=22)
    machine, pieces = Tls(secrets), segments(made.flights)
    run(machine, pieces[:-1], close=False)
    assert machine.held_bytes > 0
    run(machine, pieces[-1:], close=False)
    assert machine.held_bytes == 0


def test_what_waits_for_the_exchange_of_keys_is_read_when_the_change_behind_it_was_lost() -> None:
    """The broker's records were captured before the client's that they answer."""
    ends = Ends(TLS12, "AES128-GCM-SHA256:@SECLEVEL=0", tickets=False)
    made, secrets = ends.talk(lines()), TlsSecrets()
    secrets.add_rsa_key(ends.certificate.key_pem)
    client, broker = made.flights[2][1], made.flights[3][1]
    exchange = records(client)[0]
    machine = Tls(secrets)
    run(machine, segments([*made.flights[:2], (BROKER, broker)]), close=False)
    assert machine.held_bytes > 0
    offset = len(made.flights[0][1])
    machine.feed(CLIENT, Chunk(offset, exchange, 9, 0))
    assert (machine.held_bytes, machine.dark) == (0, None)


def halves(pieces: list[tuple[Side, Chunk | Gap]]) -> list[tuple[Side, Chunk | Gap]]:
    """The same, with each chunk in two: no chunk has a whole record at its beginning."""
    out: list[tuple[Side, Chunk | Gap]] = []
    for side, piece in pieces:
        if isinstance(piece, Chunk):
            first, rest = piece.data[:3], piece.data[3:]
            where = (piece.packet, piece.timestamp_ns)
            out.append((side, Chunk(piece.offset, first, *where)))
            if rest:
                out.append((side, Chunk(piece.offset + 3, rest, *where)))
        else:
            out.append((side, piece))
    return out


@pytest.mark.parametrize("is_13", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_whole_records_at_once_give_what_their_parts_give(is_13: bool, seed: int) -> None:
    made = Forged() if is_13 else talk(TLS12)
    if isinstance(made, Forged):
        for number in range(12):
            made.say(CLIENT, "client", b"%02d" % number, padding=number % 3)
            made.say(BROKER, "broker", b"again" * number)
    secrets = secrets_of(made.key_log) if isinstance(made, Forged) else made.secrets()
    pieces = segments(made.flights)
    lost = set(Random(seed).sample([chunk.packet for _, chunk in pieces[2:12]], seed % 4))
    said = drop(pieces, lost)
    assert run(Tls(secrets), said) == run(Tls(secrets), halves(said))


class CountedOpener:
    """Opens records as another opener does, and notes what was tried."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self.tried: list[tuple[bytes, int]] = []

    def open(self, header: bytes, fragment: bytes, seq: int) -> Opened | None:
        self.tried.append((fragment, seq))
        return self._opener.open(header, fragment, seq)

    def content_bytes(self, fragment_bytes: int) -> int | None:
        return self._opener.content_bytes(fragment_bytes)


def test_no_record_after_a_loss_is_tried_twice_with_the_same_number() -> None:
    made = Forged()
    for number in range(6):
        made.say(CLIENT, "client", b"%d" % number)
    machine = Tls(secrets_of(made.key_log))
    pieces = segments(made.flights)
    begin = len(pieces) - 5
    run(machine, pieces[:begin], close=False)
    flow = machine._flows[CLIENT]
    assert flow.opener is not None
    counted = CountedOpener(flow.opener)
    flow.opener = counted  # type: ignore[assignment]
    said = drop(pieces[begin:], {pieces[begin][1].packet})
    changed = said[1][1]
    assert isinstance(changed, Chunk)
    said[1] = CLIENT, changed._replace(data=changed.data[:-1] + b"?")
    out = run(machine, said, close=False)
    assert [piece.data for _, piece in out if isinstance(piece, Chunk)] == [b"3", b"4", b"5"]
    assert len(counted.tried) == len(set(counted.tried))


def test_a_loss_that_may_have_had_data_is_told_before_the_data_behind_a_ticket() -> None:
    made = Forged()
    made.say(BROKER, "broker", message(4, bytes(16)), kind=22)
    made.say(BROKER, "broker", b"more")
    out = run(Tls(secrets_of(made.key_log)), drop(segments(made.flights), set(range(4, 7))))
    first, second = [piece for side, piece in out if side == BROKER]
    assert isinstance(first, Gap)
    assert isinstance(second, Chunk)
    assert second.offset == first.length
