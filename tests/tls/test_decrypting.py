"""What comes out of TLS is what went in: every suite, and everything that may be missing."""

from __future__ import annotations

import pickle
import ssl
from itertools import product

import pytest

from kdissect.limits import Limits
from kdissect.model import Chunk, Gap
from kdissect.tls.decrypting import MOST_RETRIES, Piece, Tls
from kdissect.tls.handshake import RETRY_RANDOM
from kdissect.tls.keylog import TlsSecrets
from kdissect.tls.records import Item
from kdissect.tls.suites import suite, suite_name
from kdissect.tls.waiting import WaitingRecords
from tests.amount import some
from tests.tls.endpoints import (
    BROKER,
    CLIENT,
    Ends,
    certificate,
    faults,
    run,
    segments,
    streams,
)
from tests.tls.forge import CCS, Forged, client_hello, message, record, server_hello
from tests.tls.reseal import renegotiated
from tests.tls.talks import (
    NO_ENCRYPT_THEN_MAC,
    NO_EXTENDED_MASTER_SECRET,
    TLS12,
    TLS13,
    decrypted,
    is_all,
    lines,
    secrets_of,
    suites_here,
    talk,
)

ASKS_AGAIN = [
    (BROKER, record(22, server_hello(RETRY_RANDOM, 0x1301, {43: b"\x03\x04"}))),
    (BROKER, CCS),
]

# -- every suite ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", suites_here())
def test_every_suite_of_tls_1_2(name: str) -> None:
    made = Ends(TLS12, f"{name}:@SECLEVEL=0", kind="ec" if "ECDSA" in name else "rsa").talk(lines())
    machine, out = decrypted(made)
    if "ARIA" in name or "CAMELLIA" in name:
        assert machine.dark == f"suite {machine.seen.suite} is not supported"
        assert streams(out) == (b"", b"")
    else:
        assert (is_all(made, out), faults(out), machine.dark) == (True, [], None)


@pytest.mark.parametrize("extended", [True, False])
@pytest.mark.parametrize("name", ["AES128-SHA", "AES256-SHA256", "ECDHE-RSA-AES256-SHA384"])
def test_cbc_with_the_mac_first(name: str, extended: bool) -> None:
    ends = Ends(TLS12, f"{name}:@SECLEVEL=0")
    ends.broker.options |= NO_ENCRYPT_THEN_MAC | (0 if extended else NO_EXTENDED_MASTER_SECRET)
    made = ends.talk(lines())
    _, out = decrypted(made)
    assert is_all(made, out)


@pytest.mark.parametrize("code", [0x1301, 0x1302, 0x1303, 0x1304, 0x1305])
def test_every_suite_of_tls_1_3_with_padding_and_key_updates(code: int) -> None:
    made = Forged(code)
    update = message(24, b"\x01")
    for turn in range(4):
        made.say(CLIENT, "client", b"ask %d " % turn, padding=turn * 7)
        made.say(BROKER, "broker", b"answer %d " % turn)
        made.say(CLIENT, "client", update, kind=22)
        made.sealers["client"].update()
        if turn % 2:
            made.say(BROKER, "broker", update, kind=22)
            made.sealers["broker"].update()
    machine = Tls(secrets_of(made.key_log))
    out = run(machine, segments(made.flights))
    assert streams(out) == (b"ask 0 ask 1 ask 2 ask 3 ", b"answer 0 answer 1 answer 2 answer 3 ")
    assert (machine.seen.suite, machine.dark, faults(out)) == (suite_name(code), None, [])


@pytest.mark.parametrize(
    ("size", "version"),
    some(
        product([1, 7, 1460, 65_000], [TLS12, TLS13]),
        4,
        *((7, TLS12), (7, TLS13), (1460, TLS13), (65_000, TLS12)),
    ),
)
def test_segments_of_any_size_between_any_two_of_which_it_may_be_stored(
    version: ssl.TLSVersion, size: int
) -> None:
    made = talk(version)
    machine, out = Tls(made.secrets()), list[Piece]()
    for number, (side, chunk) in enumerate(segments(made.flights, size)):
        out += machine.feed(side, chunk)
        if size > 1000 or number < 300:
            machine = pickle.loads(pickle.dumps(machine))
    assert is_all(made, out + machine.close())


def test_a_chunk_has_the_packet_and_the_time_at_which_its_record_was_whole() -> None:
    made = Forged()
    made.say(CLIENT, "client", bytes(3000))
    made.say(CLIENT, "client", b"x")
    pieces = segments(made.flights, 1460)
    out = [p for _, p in run(Tls(secrets_of(made.key_log)), pieces) if isinstance(p, Chunk)]
    last = pieces[-2][1]
    assert (out[0].packet, out[0].timestamp_ns) == (last.packet, last.timestamp_ns)
    assert out[0].packets == (last.packet - 2, last.packet - 1, last.packet)
    assert (out[1].offset, out[1].packet, out[1].packets) == (3000, pieces[-1][1].packet, ())


# -- resumption, early data, renegotiation ----------------------------------------------------------


@pytest.mark.parametrize("tickets", [True, False])
def test_a_session_of_tls_1_2_that_is_resumed(tickets: bool) -> None:
    ends = Ends(TLS12, tickets=tickets)
    first = ends.talk(lines())
    second = ends.talk(lines(), first.session)
    assert second.resumed
    machine, out = decrypted(second)
    assert (is_all(second, out), machine.seen.resumed) == (True, True)


@pytest.mark.parametrize("tickets", [True, False])
def test_a_resumed_session_has_its_secret_from_the_one_it_resumes(tickets: bool) -> None:
    ends = Ends(TLS12, tickets=tickets)
    first = ends.talk(lines())
    second = ends.talk(lines(), first.session)
    shared = first.secrets()
    run(Tls(shared), segments(first.flights))
    machine = Tls(shared)
    assert is_all(second, run(machine, segments(second.flights)))


def test_a_session_of_tls_1_3_that_is_resumed() -> None:
    ends = Ends()
    first = ends.talk(lines())
    second = ends.talk(lines(), first.session)
    machine, out = decrypted(second)
    assert (is_all(second, out), machine.seen.resumed, second.resumed) == (True, True, True)


def test_early_data_comes_first_where_the_broker_takes_it() -> None:
    made = Forged(early=True)
    made.say(CLIENT, "client", b"late")
    machine = Tls(secrets_of(made.key_log))
    out = run(machine, segments(made.flights))
    assert (streams(out)[0], machine.seen.early_data, faults(out)) == (b"early late", "accepted", [])


def test_early_data_that_the_broker_rejects_is_no_data() -> None:
    made = Forged(early=True, early_accepted=False)
    made.say(CLIENT, "client", b"late")
    machine = Tls(secrets_of(made.key_log))
    out = run(machine, segments(made.flights))
    assert (streams(out)[0], machine.seen.early_data, faults(out)) == (b"late", "rejected", [])


def test_early_data_without_its_secret_is_a_gap() -> None:
    made = Forged(early=True)
    made.say(CLIENT, "client", b"late")
    del made.labels["CLIENT_EARLY_TRAFFIC_SECRET"]
    out = run(Tls(secrets_of(made.key_log)), segments(made.flights))
    (gap,) = [p for _, p in out if isinstance(p, Gap)]
    assert (gap.is_exact, gap.reason) == (False, "early data without its secret")
    assert streams(out)[0].endswith(b".late")


def test_a_hello_that_is_asked_for_again() -> None:
    made = Forged()
    made.flights[1:1] = [*ASKS_AGAIN, (CLIENT, CCS), made.flights[0]]
    made.say(CLIENT, "client", b"data")
    assert streams(run(Tls(secrets_of(made.key_log)), segments(made.flights)))[0] == b"data"


@pytest.mark.parametrize("late", [0, 1])
def test_early_data_is_no_data_where_the_broker_asks_for_another_hello(late: int) -> None:
    made = Forged(early=True, early_accepted=False)
    again = client_hello(made.random, (0x1301,), {43: b"\x04\x03\x04\x03\x03", 41: b""})
    made.flights[3 - late : 3 - late] = ASKS_AGAIN  # what is under way is sent all the same
    made.flights[5:5] = [(CLIENT, record(22, again))]
    made.say(CLIENT, "client", b"data")
    made.say(BROKER, "broker", b"more")
    machine = Tls(secrets_of(made.key_log))
    out = run(machine, segments(made.flights))
    assert (streams(out), machine.seen.early_data, machine.dark) == ((b"data", b"more"), "rejected", None)
    assert faults(out) == []


def test_traffic_secrets_alone_are_enough() -> None:
    made = talk()
    kept = [line for line in made.key_log.splitlines() if b"TRAFFIC_SECRET_0" in line]
    machine = Tls(secrets_of(b"\n".join(kept)))
    out = run(machine, segments(made.flights))
    assert (is_all(made, out), faults(out), machine.seen.certificates) == (True, [], [])


def test_the_secrets_of_one_direction_open_that_one() -> None:
    made = talk()
    kept = [line for line in made.key_log.splitlines() if b"CLIENT_" in line]
    machine = Tls(secrets_of(b"\n".join(kept)), Limits(tls_wait_bytes=20_000))
    out = run(machine, segments(made.flights))
    assert streams(out) == (bytes(made.said[0]), b"")
    assert str(machine.dark).startswith("no SERVER_TRAFFIC_SECRET_0 for client random ")
    assert machine.is_decrypted


# -- secrets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("extended", [True, False])
def test_the_key_of_a_broker_opens_rsa_key_exchange(extended: bool) -> None:
    ends = Ends(TLS12, "AES128-GCM-SHA256:@SECLEVEL=0")
    ends.broker.options |= 0 if extended else NO_EXTENDED_MASTER_SECRET
    made = ends.talk(lines())
    secrets = TlsSecrets()
    secrets.add_rsa_key(certificate("rsa", 100).key_pem)
    secrets.add_rsa_key(ends.certificate.key_pem)
    machine = Tls(secrets)
    assert is_all(made, run(machine, segments(made.flights)))
    resumed = ends.talk(lines(), made.session)
    assert is_all(resumed, run(Tls(secrets), segments(resumed.flights)))


def test_that_a_broker_asks_for_a_hello_is_not_of_the_transcript() -> None:
    ends = Ends(TLS12, "AES128-GCM-SHA256:@SECLEVEL=0")
    made = ends.talk(lines())
    made.flights[1:1] = [(BROKER, record(22, message(0, b"")))]  # it crosses the client's hello
    secrets = TlsSecrets()
    secrets.add_rsa_key(ends.certificate.key_pem)
    assert is_all(made, run(Tls(secrets), segments(made.flights)))


@pytest.mark.parametrize("tickets", [True, False])
def test_what_a_private_key_led_to_is_given_as_a_key_log_that_opens_the_same(tickets: bool) -> None:
    ends = Ends(TLS12, "AES128-GCM-SHA256:@SECLEVEL=0", tickets=tickets)
    made = ends.talk(lines())
    resumed = ends.talk(lines(), made.session)
    secrets = TlsSecrets()
    secrets.add_rsa_key(ends.certificate.key_pem)
    for each in (made, resumed):
        assert is_all(each, run(Tls(secrets), segments(each.flights)))
    written = secrets_of(secrets.key_log())
    assert is_all(resumed, run(Tls(written), segments(resumed.flights)))  # without the one it resumes
    assert is_all(made, run(Tls(written), segments(made.flights)))


def test_the_key_of_a_broker_does_not_open_other_key_exchanges() -> None:
    made = talk(TLS12)
    secrets = TlsSecrets()
    secrets.add_rsa_key(certificate("rsa").key_pem)
    machine = Tls(secrets)
    out = run(machine, segments(made.flights))
    assert streams(out) == (b"", b"")
    assert str(machine.dark).startswith("no secret for client random ")
    assert str(machine.dark).endswith(f"(an RSA key cannot decrypt {machine.seen.suite})")
    assert [each.kind for each in faults(out)] == ["not-decrypted"]


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_secrets_that_come_later_open_what_waited(version: ssl.TLSVersion) -> None:
    made = talk(version)
    secrets = TlsSecrets()
    machine, out = Tls(secrets), list[Piece]()
    pieces = segments(made.flights)
    for side, chunk in pieces[: len(pieces) // 2]:
        out += machine.feed(side, chunk)
    assert out == []
    assert machine.held_bytes > 0
    secrets.add(made.key_log)
    out += machine.retry()
    assert machine.held_bytes == 0
    assert out != []
    out += run(machine, pieces[len(pieces) // 2 :])
    assert is_all(made, out)


def test_a_key_log_that_grows_line_by_line() -> None:
    made = talk()
    secrets = TlsSecrets()
    machine = Tls(secrets)
    out = run(machine, segments(made.flights), close=False)
    for line in made.key_log.splitlines():
        secrets.add(line)
        out += machine.retry()
    assert (is_all(made, out + machine.close()), machine.dark) == (True, None)


@pytest.mark.parametrize("last", ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"])
def test_an_answer_does_not_come_out_before_what_it_answers(last: str) -> None:
    """One look at a growing key log may find the secret of one direction only."""
    made = talk()
    secrets = TlsSecrets()
    machine = Tls(secrets)
    known = [line for line in made.key_log.splitlines() if not line.startswith(last.encode())]
    secrets.add(b"\n".join(known))
    out = run(machine, segments(made.flights), close=False)
    assert not any(isinstance(piece, Chunk) for _, piece in out[1:])
    secrets.add(made.key_log)
    out += machine.retry() + machine.close()
    whole = Tls(made.secrets())
    assert out == run(whole, segments(made.flights))


def test_waiting_is_bounded() -> None:
    made = talk()
    secrets = TlsSecrets()
    machine = Tls(secrets, Limits(tls_wait_bytes=30_000))
    most = 0
    for side, chunk in segments(made.flights):
        machine.feed(side, chunk)
        most = max(most, machine.held_bytes)
    assert 10_000 < most <= 30_000
    assert machine.held_bytes == 0
    assert str(machine.dark).startswith("no secret for client random ")
    secrets.add(made.key_log)
    assert machine.dark == "its secret came too late: more than 30,000 bytes already waited for it"


def test_what_waits_is_not_gone_through_each_time_that_something_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Forged()
    hellos, machine, looks = segments(made.flights[:2]), Tls(TlsSecrets()), 0
    look = WaitingRecords.must_wait

    def counted(self: WaitingRecords, side: int, each: Item) -> bool:
        nonlocal looks
        looks += 1
        return look(self, side, each)

    run(machine, hellos, close=False)
    for number in range(1000):
        made.say(CLIENT, "client", b"%d" % number)
    waiting = [piece for side, piece in segments(made.flights) if side == CLIENT]
    run(machine, [(CLIENT, piece) for piece in waiting[2:]], close=False)
    assert machine.held_bytes > 100_000
    monkeypatch.setattr(WaitingRecords, "must_wait", counted)
    hello = hellos[1][1]
    for number in range(1, 1000):
        machine.feed(BROKER, hello._replace(offset=number * len(hello.data)))
        if number <= MOST_RETRIES:
            machine.retry()
    assert 0 < looks < 5000  # not a million
    assert machine.held_bytes > 100_000


def test_secrets_that_come_again_and_again_and_do_not_help_are_tried_a_few_times_only() -> None:
    made = Forged()
    secrets = TlsSecrets()
    machine = Tls(secrets)
    run(machine, segments(made.flights), close=False)
    held = machine.held_bytes
    for number in range(MOST_RETRIES):
        assert secrets.add(b"CLIENT_EARLY_TRAFFIC_SECRET %s %064x" % (made.random.hex().encode(), number))
        assert (machine.retry(), machine.held_bytes, machine.awaited) == ([], held, (made.random,))
    assert secrets.add(b"CLIENT_EARLY_TRAFFIC_SECRET %s %064x" % (made.random.hex().encode(), 1 << 99))
    assert (machine.retry(), machine.held_bytes, machine.awaited) == ([], 0, ())
    assert machine.dark == "secrets came 32 times, but never all that it needs"


def test_how_often_secrets_were_tried_is_forgotten_when_nothing_waits_any_more() -> None:
    ends = Ends(TLS12, "ECDHE-RSA-CHACHA20-POLY1305:@SECLEVEL=0")
    first, second = (ends.talk(lines()) for _ in range(2))
    pieces, secrets = segments(renegotiated(first, second)), TlsSecrets()
    machine, out = Tls(secrets), list[Piece]()
    of_first = len(segments([each for each in first.flights if each[1][0] != 21]))
    for part, known in ((pieces[:of_first], first), (pieces[of_first:], second)):
        out += run(machine, part, close=False)
        for _ in range(MOST_RETRIES):
            assert machine.retry() == []
        assert machine.awaited
        secrets.add(known.key_log)
        out += machine.retry()
    assert (machine.awaited, machine.dark) == ((), None)
    assert streams(out) == tuple(bytes(a + b) for a, b in zip(first.said, second.said, strict=True))


def test_names_that_are_awaited_are_those_under_which_a_secret_may_come() -> None:
    ends = Ends(TLS12, "AES128-GCM-SHA256:@SECLEVEL=0", tickets=False)
    made = ends.talk(lines())
    resumed = ends.talk(lines(), made.session)
    for each, count in ((made, 3), (resumed, 2)):
        machine = Tls(TlsSecrets())
        run(machine, segments(each.flights), close=False)
        assert len(machine.awaited) == count
        random, *_, session = machine.awaited
        assert random == each.flights[0][1][11:43]
        assert session in each.flights[1][1]
    in_one = Tls(TlsSecrets())
    run(in_one, segments(talk().flights), close=False)
    assert in_one.awaited == (talk().flights[0][1][11:43],)


def test_no_secret() -> None:
    made = talk()
    machine = Tls(TlsSecrets())
    out = run(machine, segments(made.flights))
    assert out == []  # nobody asked for it
    hello = made.flights[0][1]
    assert machine.dark == f"no secret for client random {hello[11:43].hex()}"
    assert (machine.seen.version, machine.seen.server_name) == ("TLS 1.3", "kafka.test")
    assert machine.summary()["decrypted"] is False


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_a_wrong_secret_gives_nothing(version: ssl.TLSVersion) -> None:
    made, other = talk(version), Ends(version).talk(lines())
    wrong = []
    random = made.key_log.split()[-2]
    for line in other.key_log.splitlines():
        label, _, secret = line.split() if not line.startswith(b"#") else (b"", b"", b"")
        wrong.append(b" ".join((label, random, secret)))
    machine = Tls(secrets_of(b"\n".join(wrong)))
    out = run(machine, segments(made.flights))
    assert not any(isinstance(piece, Chunk) for _, piece in out)
    assert str(machine.dark).startswith("authentication of records failed in both directions")
    assert {each.kind for each in faults(out)} == {"not-authentic", "not-decrypted"}


# -- what the handshake shows -----------------------------------------------------------------------


@pytest.mark.parametrize("version", [TLS12, TLS13])
def test_what_a_handshake_shows(version: ssl.TLSVersion) -> None:
    made = Ends(version, mutual=True).talk(lines())
    machine, _ = decrypted(made)
    shown = machine.summary()
    (own,), (clients,) = shown["certificates"], shown["client_certificates"]
    assert (own["subject"], own["names"], clients["subject"]) == (
        "CN=broker-rsa",
        ["kafka.test"],
        "CN=broker-ec",
    )
    assert own["not_after"] == "2024-12-31T00:00:00+00:00"
    assert (shown["alpn"], shown["server_name"], shown["resumed"]) == ("kafka", "kafka.test", False)
    assert shown["offered"] == {"versions": [shown["version"]], "alpn": ["kafka"]}
    assert [alert["name"] for alert in shown["alerts"]] == ["close_notify", "close_notify"]
    assert (shown["decrypted"], shown["dark"]) == (True, None)


@pytest.mark.parametrize(("days", "warning"), [(-1, "expired"), (5, "expires in 4 days"), (90, None)])
def test_a_certificate_that_is_or_will_soon_be_expired(days: int, warning: str | None) -> None:
    made = Ends(TLS12, days=days if days > 0 else 0).talk(lines())
    machine, out = decrypted(made)
    (shown,) = machine.seen.certificates
    assert shown.get("warning") == warning
    assert [each.kind for each in faults(out)] == (["expired-certificate"] if days < 0 else [])


def test_certificates_that_nobody_needs_are_not_read() -> None:
    made = Ends(TLS12, days=0).talk(lines())
    read, unread = Tls(made.secrets()), Tls(made.secrets(), reads_certificates=False)
    out, others = run(read, segments(made.flights)), run(unread, segments(made.flights))
    assert others == [piece for piece in out if piece[1] not in faults(out)]
    assert [each.kind for each in faults(out)] == ["expired-certificate"]
    assert read.seen.certificates
    assert unread.summary() == {**read.summary(), "certificates": []}


def test_a_version_that_is_not_supported() -> None:
    made = Forged()
    made.flights[1] = (
        BROKER,
        record(22, server_hello(bytes(32), 0x002F, {}).replace(b"\x03\x03", b"\x03\x02", 1)),
    )
    machine = Tls(secrets_of(made.key_log))
    run(machine, segments(made.flights))
    assert machine.dark == "TLS 1.1 is not supported"


def test_a_renegotiation() -> None:
    """The messages of a second handshake, sealed as data of the first."""
    ciphers = "ECDHE-RSA-CHACHA20-POLY1305:@SECLEVEL=0"
    first, second = talk(TLS12, ciphers), Ends(TLS12, ciphers).talk(lines())
    flights = renegotiated(first, second)
    machine = Tls(secrets_of(first.key_log + second.key_log))
    out = run(machine, segments(flights))
    said = tuple(bytes(one + two) for one, two in zip(first.said, second.said, strict=True))
    assert (streams(out), faults(out)) == (said, [])


def test_suites_are_read_from_their_names() -> None:
    found = suite(0xC028)
    assert found is not None
    assert (found.key_exchange, found.mode, found.key_bytes, found.hash, found.mac) == (
        "ECDHE_RSA",
        "CBC",
        32,
        "sha384",
        "sha384",
    )
    assert (suite(0xC05D), suite(0x1A2A), suite_name(0x1A2A)) == (None, None, "0x1a2a")
