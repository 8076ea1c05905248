"""Secrets on the command line: given, embedded, written, never shown."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from kdissect.capture.files import read_packets
from kdissect.capture.following import FollowedFiles
from kdissect.capture.reader import Item
from kdissect.capture.writer import PcapngWriter
from kdissect.cli.reading import Reading
from kdissect.cli.tls_keys import keys_of
from kdissect.exchange import Exchange
from kdissect.model import TLS_KEY_LOG, Packet, Secrets
from kdissect.present.options import PLAIN
from kdissect.session.conversation import Connection
from tests.cli.run import ROOT, run, run_with
from tests.kafka import METADATA_RESPONSE_1 as ANSWER
from tests.kafka import framed, request, response
from tests.lab import LAB
from tests.tls.endpoints import BROKER, CLIENT, Ends, certificate
from tests.tls.tshark import packets_of

CAPTURE = LAB / "tls13" / "capture.pcapng.zst"
KEY_LOG = LAB / "tls13" / "keys.log"
EXCHANGES = 55

Capsys = pytest.CaptureFixture[bytes]


@pytest.fixture(autouse=True)
def without_the_environments_key_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSLKEYLOGFILE", raising=False)


@pytest.fixture
def embedded(tmp_path: Path) -> Path:
    """The capture with its secrets in it."""
    path = tmp_path / "embedded.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        writer.write(Secrets(TLS_KEY_LOG, KEY_LOG.read_bytes()))
        for item in read_packets([CAPTURE]):
            if isinstance(item, Packet):
                writer.write(item)
    return path


def test_a_key_log(capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "read", CAPTURE, "--keylog", KEY_LOG)
    assert (ran.code, len(ran.lines), ran.err) == (0, EXCHANGES, "")


def test_a_directory_of_key_logs(tmp_path: Path, capsysbinary: Capsys) -> None:
    for number, line in enumerate(KEY_LOG.read_bytes().splitlines(keepends=True)):
        (tmp_path / f"{number}.log").write_bytes(line)
    assert len(run(capsysbinary, "read", CAPTURE, "--keylog", tmp_path).lines) == EXCHANGES


def test_the_environment_names_a_key_log_and_the_option_counts_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: Capsys
) -> None:
    empty = tmp_path / "empty.log"
    empty.write_bytes(b"# nothing\n")
    monkeypatch.setenv("SSLKEYLOGFILE", str(KEY_LOG))
    assert len(run(capsysbinary, "read", CAPTURE).lines) == EXCHANGES
    ran = run(capsysbinary, "read", CAPTURE, "--keylog", empty)
    first, second = ran.err.splitlines()
    assert (ran.lines, first) == ([], f"kdissect: {empty}: it contains no secrets (0 lines not understood)")
    assert second.startswith("kdissect: no Kafka was found: ")
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "not-there"))
    assert run(capsysbinary, "read", CAPTURE).code == 0


def test_what_is_no_key_is_told(tmp_path: Path, capsysbinary: Capsys) -> None:
    absent = tmp_path / "absent"
    ran = run(capsysbinary, "read", CAPTURE, "--keylog", absent)
    assert (ran.code, ran.err) == (3, f"kdissect: {absent}: there is no such key log\n")
    ran = run(capsysbinary, "read", CAPTURE, "--rsa-key", absent)
    assert (ran.code, "cannot be read" in ran.err) == (3, True)
    ran = run(capsysbinary, "read", CAPTURE, "--rsa-key", tmp_path)
    assert (ran.code, "cannot be read: Is a directory" in ran.err) == (3, True)


@pytest.mark.parametrize("form", [Encoding.PEM, Encoding.DER])
@pytest.mark.parametrize("has_password", [True, False])
def test_forms_of_an_rsa_key(
    form: Encoding, has_password: bool, tmp_path: Path, capsysbinary: Capsys
) -> None:
    key = load_pem_private_key(certificate("rsa").key_pem, None)
    hidden = BestAvailableEncryption(b"x") if has_password else NoEncryption()
    path = tmp_path / "key"
    path.write_bytes(key.private_bytes(form, PrivateFormat.PKCS8, hidden))
    ran = run(capsysbinary, "read", CAPTURE, "--rsa-key", path)
    said = "it has a password; openssl rsa -in FILE -out OTHER removes it"
    if has_password:
        assert ran.err == f"kdissect: {path}: cannot be used as an RSA private key: {said}\n"
    else:  # TLS 1.3 needs more than the key
        assert ran.err.startswith("kdissect: no Kafka was found: ")
        assert ran.err.count("\n") == 1
    assert ran.code == (3 if has_password else 0)


def test_what_is_no_rsa_key_is_told_in_one_line(tmp_path: Path, capsysbinary: Capsys) -> None:
    public = tmp_path / "public.pem"
    public.write_bytes(certificate("rsa").certificate.public_bytes(Encoding.PEM))
    for path, said in (
        (KEY_LOG, "it is not a private key in PEM or DER"),
        (public, "it is not a private key in PEM or DER"),
        (certificate("ec").path, "it is not an RSA key"),
    ):
        ran = run(capsysbinary, "read", CAPTURE, "--rsa-key", path)
        assert (ran.code, ran.err) == (3, f"kdissect: {path}: cannot be used as an RSA private key: {said}\n")


def test_an_rsa_key_that_does_not_apply_is_told(capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "read", CAPTURE, "-T", "connections", "--rsa-key", certificate("rsa").path)
    reasons = {json.loads(line)["tls"]["dark"].partition("(")[2] for line in ran.lines}
    assert reasons == {"an RSA key cannot decrypt TLS_AES_256_GCM_SHA384)"}


def test_statistics_count_what_is_decrypted(capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "stats", CAPTURE, "-z", "srt", "-T", "ndjson", "--keylog", KEY_LOG)
    assert len(ran.lines) > 5
    assert run(capsysbinary, "stats", CAPTURE, "-z", "srt", "-T", "ndjson").lines == []


@pytest.mark.parametrize(
    ("arguments", "reads"),
    [
        (["read"], False),
        (["read", "-T", "ndjson"], False),
        (["stats", "-z", "srt"], False),
        (["stats", "-z", "srt", "--jobs", "2"], False),
        (["read", "--strict"], True),
        (["stats", "-z", "srt", "--strict"], True),
        (["stats", "-z", "damage"], True),
        (["stats", "-z", "exposure"], True),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_certificates_are_read_if_a_table_or_a_fault_shows_them(
    arguments: list[str], reads: bool, tmp_path: Path
) -> None:
    capture = tmp_path / "expired.pcapng"
    with capture.open("wb") as file:
        writer = PcapngWriter(file)
        for packet in packets_of([Ends(ssl.TLSVersion.TLSv1_2, days=0).talk([(CLIENT, b"hello")]).flights]):
            writer.write(packet)
    code = (
        f"import sys; from kdissect.cli import main; main({[*arguments, str(capture)]!r})\n"
        "print('cryptography.x509' in sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True)
    assert ran.stderr.splitlines()[-1] == str(reads).encode()
    if "damage" in arguments:
        assert b"expired-certificate" in ran.stdout
    if "exposure" in arguments:
        assert b"CN=broker-rsa" in ran.stdout


def test_secrets_are_left_out_of_a_file_unless_asked_for(
    embedded: Path, tmp_path: Path, capsysbinary: Capsys
) -> None:
    path = tmp_path / "out.pcapng"
    shown = run(capsysbinary, "read", embedded, "-Y", "api == Produce", "-w", path)
    assert "left out" in shown.err
    assert not any(isinstance(item, Secrets) for item in read_packets([path]))
    assert run(capsysbinary, "read", path).lines == []
    again = run(capsysbinary, "read", path, "--keylog", KEY_LOG, "-Y", "api == Produce")
    assert len(again.lines) == len(shown.lines) > 0

    shown = run(capsysbinary, "read", embedded, "-Y", "api == Produce", "-w", path, "--with-secrets")
    assert shown.err == ""
    assert run(capsysbinary, "read", path, "-Y", "api == Produce", "-T", "csv", "-e", "latency").lines == (
        run(capsysbinary, "read", embedded, "-Y", "api == Produce", "-T", "csv", "-e", "latency").lines
    )


def test_a_key_log_can_be_embedded(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "out.pcapng"
    run(capsysbinary, "read", CAPTURE, "--keylog", KEY_LOG, "-w", path, "--with-secrets")
    assert len(run(capsysbinary, "read", path).lines) == EXCHANGES


def test_a_private_key_leads_to_secrets_that_can_be_embedded(tmp_path: Path, capsysbinary: Capsys) -> None:
    ends = Ends(ssl.TLSVersion.TLSv1_2, "AES128-GCM-SHA256:@SECLEVEL=0")
    ask, answer = framed(request("Metadata", 1, 1, topics=None)), framed(response("Metadata", 1, 1, **ANSWER))
    capture, out = tmp_path / "rsa.pcapng", tmp_path / "out.pcapng"
    with capture.open("wb") as file:
        writer = PcapngWriter(file)
        for packet in packets_of([ends.talk([(CLIENT, ask), (BROKER, answer)]).flights]):
            writer.write(packet)
    shown = run(capsysbinary, "read", capture, "--rsa-key", ends.certificate.path)
    assert len(shown.lines) == 1
    run(capsysbinary, "read", capture, "--rsa-key", ends.certificate.path, "-w", out, "--with-secrets")
    assert run(capsysbinary, "read", out).lines == shown.lines


def test_the_secrets_of_other_captures_are_not_embedded(tmp_path: Path, capsysbinary: Capsys) -> None:
    other = "ab" * 32
    keys, out = tmp_path / "keys.log", tmp_path / "out.pcapng"
    keys.write_bytes(KEY_LOG.read_bytes() + f"CLIENT_RANDOM {other} {'cd' * 48}\n".encode())
    run(capsysbinary, "read", CAPTURE, "--keylog", keys, "-w", out, "--with-secrets")
    assert len(run(capsysbinary, "read", out).lines) == EXCHANGES
    assert other.encode() not in out.read_bytes()


def test_secrets_are_written_with_packets_or_not_at_all(tmp_path: Path, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "read", CAPTURE, "--with-secrets")
    assert (ran.code, ran.err.count("\n"), "needs -w" in ran.err) == (2, 1, True)
    ran = run(capsysbinary, "live", "-i", "lo", "-w", tmp_path / "x.pcapng", "--with-secrets")
    assert (ran.code, ran.err.count("\n"), "needs -w and -Y" in ran.err) == (2, 1, True)


def test_the_tree_has_what_the_handshakes_show(capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "read", CAPTURE, "-T", "tree", "--keylog", KEY_LOG)
    text = ran.out.decode()
    assert text.count("\nConnection ") == text.count("TLS 1.3, decrypted, rst") == 11
    assert "  suite: TLS_AES_256_GCM_SHA384\n  certificate 1 of 2: CN=localhost; names localhost" in text
    dark = run(capsysbinary, "read", CAPTURE, "-T", "tree", "--exit-status")
    assert dark.code == 1  # connections are no rows of it
    assert dark.out.count(b"  dark: no secret for client random ") == 11


def test_the_tree_has_the_connections_of_what_is_shown(capsysbinary: Capsys) -> None:
    given = ("read", CAPTURE, "--keylog", KEY_LOG, "-Y", "number == 1")
    (row,) = run(capsysbinary, *given, "-e", "connection").lines
    text = run(capsysbinary, *given, "-T", "tree").out.decode()
    assert [line.split()[1] for line in text.splitlines() if line.startswith("Connection ")] == [f"{row}:"]


def test_no_output_has_key_material(embedded: Path, capsysbinary: Capsys) -> None:
    secrets = [bytes.fromhex(line.split()[2]) for line in KEY_LOG.read_text().splitlines() if line[0] != "#"]
    for form in ("text", "tree", "ndjson", "connections", "faults", "records"):
        ran = run(capsysbinary, "read", embedded, "-T", form, "--show-secrets")
        for secret in secrets:
            for text in (secret, secret.hex().encode(), b64encode(secret)):
                assert text not in ran.out


def test_late_secrets_count_from_the_start_where_all_is_read_twice(
    tmp_path: Path, capsysbinary: Capsys
) -> None:
    path = tmp_path / "late.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        for item in read_packets([CAPTURE]):
            if isinstance(item, Packet):
                writer.write(item)
        writer.write(Secrets(TLS_KEY_LOG, KEY_LOG.read_bytes()))
    bounded = ("read", path, "-T", "ndjson")
    assert len(run(capsysbinary, *bounded).lines) == EXCHANGES
    first = json.loads(run(capsysbinary, *bounded, "--two-pass", "-c", 1).lines[0])
    assert first["number"] == 1


def test_standard_input(tmp_path: Path) -> None:
    ran = run_with(CAPTURE.read_bytes(), "read", "-", "--keylog", KEY_LOG)
    assert len(ran.lines) == EXCHANGES


def test_a_key_log_that_grows_while_packets_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "keys.log"
    lines = KEY_LOG.read_bytes().splitlines(keepends=True)
    packets = list(read_packets([CAPTURE]))

    class Growing:
        """Packets, before each of which a line may be written."""

        interfaces = ()

        def __iter__(self) -> Iterator[Item]:
            for item in packets:
                if lines:
                    with path.open("ab") as file:
                        file.write(lines.pop(0))
                yield item

        def close(self) -> None:
            """Nothing is open."""

    keys = keys_of({"key_logs": (str(path),), "rsa_keys": ()}, growing=True, environment={})
    reading = Reading((), PLAIN, opener=Growing, keys=keys)
    assert sum(isinstance(event, Exchange) for event in reading) == EXCHANGES
    said = capsys.readouterr().err
    assert said == f"kdissect: {path}: there is no such key log yet; kdissect keeps looking for it\n"


def test_a_key_log_is_looked_at_while_no_packets_come(tmp_path: Path) -> None:
    capture, path = tmp_path / "capture.pcapng", tmp_path / "keys.log"
    with capture.open("wb") as file:
        writer = PcapngWriter(file)
        for item in read_packets([CAPTURE]):
            if isinstance(item, Packet):
                writer.write(item)
    following = FollowedFiles((str(capture),))
    keys = keys_of({"key_logs": (str(path),), "rsa_keys": ()}, growing=True, environment={})
    reading = Reading((), PLAIN, opener=lambda: following, keys=keys)
    kept: list[object] = []
    reading.keep = kept.append
    late = Timer(0.5, path.write_bytes, [KEY_LOG.read_bytes()])
    in_the_end = Timer(20, following.stop)
    for timer in (late, in_the_end):
        timer.start()
    exchanges = 0
    for event in reading:
        exchanges += isinstance(event, Exchange)
        if exchanges == 1:
            assert not following.is_stopped
        if exchanges == EXCHANGES:
            following.stop()
    in_the_end.cancel()
    assert exchanges == EXCHANGES
    assert all(isinstance(item, Packet) for item in kept)


def test_a_key_log_that_cannot_be_read_yet_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "keys.log"
    path.write_bytes(b"")
    given = {"key_logs": (str(path),), "rsa_keys": ()}
    keys_of(given, growing=True, environment={})
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("os.access", lambda *_: False)
    keys_of(given, growing=True, environment={})
    said = "cannot be read: no permission; kdissect keeps trying"
    assert capsys.readouterr().err == f"kdissect: {path}: {said}\n"


def test_while_packets_come_it_is_known_what_is_dark() -> None:
    said: list[str] = []

    class Watched:
        """Packets; after each it is asked."""

        interfaces = ()

        def __iter__(self) -> Iterator[Item]:
            for item in read_packets([CAPTURE]):
                yield item
                said.append(reading.in_tls())

        def close(self) -> None:
            """Nothing is open."""

    reading = Reading((), PLAIN, opener=Watched)
    assert sum(isinstance(event, Connection) for event in reading) == 11
    how = "kdissect doctor tls says how to get one"
    assert said[2] == ""
    assert said[3] == "1 TLS connection (handshake not complete)"
    assert said[-1] == f"11 TLS connections (no secret; {how})"


def test_a_handshake_behind_which_nothing_was_sent(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcapng"
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        for item in read_packets([CAPTURE]):
            if isinstance(item, Packet) and item.number <= 10:
                writer.write(item)
    reading = Reading((str(path),), PLAIN, keys=keys_of({"key_logs": (str(KEY_LOG),), "rsa_keys": ()}))
    assert sum(isinstance(event, Connection) for event in reading) == 1
    assert reading.tally.not_decoded() == "1 TLS connection (nothing was sent in it)"


def test_the_closing_line_says_what_to_do_about_dark_connections() -> None:
    for given, said in (
        ((), "11 TLS connections (no secret; kdissect doctor tls says how to get one)"),
        (("--keylog", str(KEY_LOG)), "55 exchanges, 0 faults"),
    ):
        reading = Reading((str(CAPTURE),), PLAIN, keys=keys_of({"key_logs": given[1:], "rsa_keys": ()}))
        assert all(reading)
        assert reading.summary().endswith(said)


def test_how_to_get_a_key_log(capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "doctor", "tls")
    assert ran.code == 0
    for word in ("extract-tls-secrets", "librdkafka", "SSLKEYLOGFILE", "KeyLogWriter", "--keylog"):
        assert word in ran.out.decode()
    assert run(capsysbinary, "doctor", "ssl").code == 2
