"""Lines of key logs, of every form, and those that are none."""

from __future__ import annotations

import pickle

import pytest

from kdissect.tls import keylog
from kdissect.tls.keylog import SESSIONS, TlsSecrets, session_name

RANDOM = bytes(range(32))
MASTER = bytes(48)


def test_labels_of_both_versions() -> None:
    log = (
        f"# a comment\n\nCLIENT_RANDOM {RANDOM.hex()} {MASTER.hex()}\r\n"
        f"SERVER_TRAFFIC_SECRET_0 {RANDOM.hex()} {'ab' * 32}\n"
        f"CLIENT_TRAFFIC_SECRET_0 {RANDOM.hex().upper()} {'cd' * 48}\n"
        f"EXPORTER_SECRET {RANDOM.hex()} {'00' * 32}\n"
    )
    secrets = TlsSecrets()
    assert (secrets.add(log.encode()), secrets.understood, secrets.not_understood) == ({RANDOM}, 3, 0)
    assert secrets.of(RANDOM) == {
        "CLIENT_RANDOM": MASTER,
        "SERVER_TRAFFIC_SECRET_0": b"\xab" * 32,
        "CLIENT_TRAFFIC_SECRET_0": b"\xcd" * 48,
    }
    assert secrets.of(bytes(32)) == {}
    assert bool(secrets)


def test_what_is_written_reads_as_what_was_read() -> None:
    log = f"CLIENT_RANDOM {RANDOM.hex()} {MASTER.hex()}\nSERVER_TRAFFIC_SECRET_0 {RANDOM.hex()} {'ab' * 32}\n"
    secrets = TlsSecrets()
    secrets.add(log.encode())
    secrets.of(RANDOM)
    assert secrets.key_log() == log.encode()


def test_only_secrets_of_connections_that_were_asked_for_are_written() -> None:
    others = "".join(f"CLIENT_RANDOM {number:064x} {'ab' * 48}\n" for number in range(5))
    mine = f"CLIENT_RANDOM {RANDOM.hex()} {MASTER.hex()}\n"
    secrets = TlsSecrets()
    secrets.of(RANDOM)  # before it is known
    secrets.add((others + mine).encode())
    assert secrets.key_log() == mine.encode()


def test_a_master_secret_that_was_found_otherwise_is_written_as_a_line() -> None:
    secrets = TlsSecrets()
    secrets.of(RANDOM)
    secrets.learn_master(RANDOM, MASTER)
    assert secrets.key_log() == f"CLIENT_RANDOM {RANDOM.hex()} {MASTER.hex()}\n".encode()


def test_connections_that_are_written_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keylog, "CONNECTIONS", 3)
    secrets = TlsSecrets()
    for number in range(5):
        secrets.learn_master(number.to_bytes(32, "big"), MASTER)
    assert (secrets.key_log().count(b"\n"), secrets.forgotten) == (3, 2)


def test_old_forms() -> None:
    secrets = TlsSecrets()
    log = f"RSA {'11' * 8} {'22' * 48}\nRSA Session-ID:{'33' * 32} Master-Key:{'44' * 48}"
    assert secrets.add(log.encode()) == {b"\x11" * 8, b"\x33" * 32}
    assert (secrets.understood, secrets.premaster(b"\x11" * 256)) == (2, b"\x22" * 48)
    assert secrets.session(b"\x33" * 32) == b"\x44" * 48


def test_lines_of_other_forms_are_counted() -> None:
    lines = (
        "hello",
        f"CLIENT_RANDOM {RANDOM.hex()}",
        f"CLIENT_RANDOM {RANDOM.hex()} {'00' * 47}",
        f"CLIENT_RANDOM {'00' * 31} {'00' * 48}",
        f"CLIENT_RANDOM {RANDOM.hex()} zz",
        f"SERVER_TRAFFIC_SECRET_0 {RANDOM.hex()} {'00' * 65}",
        f"UNKNOWN_LABEL {RANDOM.hex()} {'00' * 32}",
        "RSA 1122 33",
        "RSA Session-ID:00 Master-Key:00",
        f"RSA Session-ID: Master-Key:{'00' * 48}",
        f"RSA Session-ID:{'00' * 33} Master-Key:{'00' * 48}",
        f"PMS_CLIENT_RANDOM {RANDOM.hex()} {'00' * 8_193}",
        "\x00\xff \xfe",
    )
    secrets = TlsSecrets()
    assert secrets.add("\n".join(lines).encode("latin-1")) == set()
    assert (secrets.understood, secrets.not_understood) == (0, len(lines))
    assert not secrets


def test_sessions_are_bounded() -> None:
    secrets = TlsSecrets()
    for number in range(SESSIONS + 1):
        secrets.learn_session(number.to_bytes(4, "big"), MASTER)
    assert secrets.session(bytes(4)) is None
    assert secrets.session((1).to_bytes(4, "big")) == MASTER
    assert secrets.session(SESSIONS.to_bytes(4, "big")) == MASTER


def test_only_names_of_what_is_new_are_told() -> None:
    secrets = TlsSecrets()
    line = f"SERVER_TRAFFIC_SECRET_0 {RANDOM.hex()} {'ab' * 32}\n"
    session = f"RSA Session-ID:{'33' * 32} Master-Key:{MASTER.hex()}\n"
    for text, told in (
        (line, {RANDOM}),
        (line + line.replace("ab", "AB"), set()),
        (line.replace("SERVER", "CLIENT"), {RANDOM}),
        (line, set()),
        (line.replace("ab", "cd"), {RANDOM}),
        (f"RSA {'11' * 8} {'22' * 48}\n", {b"\x11" * 8}),
        (f"RSA {'11' * 8} {'22' * 48}\n", set()),
        (session, {b"\x33" * 32}),
        (session, set()),
    ):
        assert secrets.add(text.encode()) == told
    assert secrets.take_taught() == set()


def test_sessions_that_handshakes_teach_are_told_once() -> None:
    secrets = TlsSecrets()
    secrets.learn_session(b"one", MASTER)
    secrets.learn_session(b"one", MASTER)
    assert (secrets.take_taught(), secrets.take_taught()) == ({b"one"}, set())
    secrets.learn_session(b"one", MASTER)
    assert secrets.take_taught() == set()
    secrets.learn_session(b"one", b"\1" * 48)
    assert secrets.take_taught() == {b"one"}


def test_a_session_has_a_short_name_however_long_its_ticket_is() -> None:
    assert session_name(b"\x33" * 32) == b"\x33" * 32
    assert len({session_name(bytes(length)) for length in (32, 33, 65_535)}) == 3
    assert len(session_name(bytes(65_535))) == 32


def test_secrets_can_be_stored() -> None:
    secrets = TlsSecrets()
    secrets.add(f"CLIENT_RANDOM {RANDOM.hex()} {MASTER.hex()}".encode())
    assert pickle.loads(pickle.dumps(secrets)).of(RANDOM) == secrets.of(RANDOM)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_as_on_any_system(end: bytes) -> None:
    lines = [f"CLIENT_RANDOM {bytes([n] * 32).hex()} {MASTER.hex()}".encode() for n in range(3)]
    secrets = TlsSecrets()
    secrets.add(end.join([b"# comment", *lines]) + end)
    assert (secrets.understood, secrets.not_understood) == (3, 0)
