"""What each SASL mechanism says of who logs in is told, and what it proves it with is nowhere."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.cli.run import run
from tests.kafka import Talk, request, response
from tests.present.captures import OPEN, SECRET, port, write_capture
from tests.present.test_redact import OUTPUTS, dumped, forms_of_secret

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
DONE = {"errorCode": 0, "errorMessage": None, "sessionLifetimeMs": 0}


def claims(name: str) -> bytes:
    told = json.dumps({"sub": name, "exp": 2_000_000_000, "jti": SECRET})
    return urlsafe_b64encode(told.encode()).rstrip(b"=")


def rounds(mechanism: str) -> list[tuple[bytes, bytes]]:
    """What client and broker say; each has the secret."""
    secret = SECRET.encode()
    if mechanism == "PLAIN":
        return [(f"\0{OPEN}\0{SECRET}".encode(), secret)]
    if mechanism == "OAUTHBEARER":
        return [(b"n,,\x01auth=Bearer e30." + claims(OPEN) + b"." + secret + b"\x01\x01", secret)]
    if mechanism == "GSSAPI":
        return [(b"\x60" + secret, b"\x60" + secret), (secret, secret)]
    first = f"n,,n={OPEN},r={SECRET}".encode(), f"r={SECRET}more,s={SECRET},i=4096".encode()
    return [first, (f"c=biws,r={SECRET}more,p={SECRET}".encode(), f"v={SECRET}".encode())]


def login(mechanism: str, number: int, handshake: int) -> Talk:
    """A login in messages, or with a handshake of version 0 in bare tokens."""
    talk = Talk(port(51_000 + number))
    talk.ask(request("SaslHandshake", handshake, 1, mechanism=mechanism))
    talk.answer(response("SaslHandshake", handshake, 1, errorCode=0, mechanisms=[mechanism]))
    for at, (asked, answered) in enumerate(rounds(mechanism), 2):
        if handshake == 0:
            talk.ask(asked).answer(answered)
            continue
        talk.ask(request("SaslAuthenticate", 2, at, authBytes=b64encode(asked).decode()))
        talk.answer(response("SaslAuthenticate", 2, at, **DONE, authBytes=b64encode(answered).decode()))
    return talk.close()


def cut_off() -> Talk:
    """Secrets in what is not whole: a frame that breaks off, and text that is not UTF-8."""
    talk = Talk(port(51_900)).ask(request("SaslHandshake", 1, 1, mechanism="PLAIN"))
    config = {"name": "ssl.key.password", "value": f"{SECRET}?", "configOperation": 0}
    asked = request(
        "IncrementalAlterConfigs", 0, 2, validateOnly=False,
        resources=[{"resourceType": 4, "resourceName": OPEN, "configs": [config]}],
    )  # fmt: skip
    talk.ask(asked.replace(b"?", b"\xff"))
    token = b64encode(f"\0{OPEN}\0{SECRET}".encode() * 9).decode()
    whole = request("SaslAuthenticate", 2, 3, authBytes=token)
    return talk.say(talk.client, len(whole).to_bytes(4, "big") + whole[:-20])


def logins() -> Iterable[Talk]:
    for number, mechanism in enumerate(MECHANISMS):
        yield login(mechanism, 2 * number, 1)
        yield login(mechanism, 2 * number + 1, 0)
    bare = Talk(port(51_800))  # before there was a handshake, GSSAPI began with its token
    for asked, answered in rounds("GSSAPI"):
        bare.ask(asked).answer(answered)
    bare.ask(request("Metadata", 1, 1, topics=[{"name": "orders"}]))
    yield bare.close()
    yield cut_off()


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_capture(tmp_path_factory.mktemp("logins") / "logins.pcapng", *logins())


def assert_no_secret(out: bytes) -> None:
    shown = out + dumped(out)
    assert [form for form in forms_of_secret() if form in shown] == []
    assert claims(OPEN)[-20:] not in shown


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_no_output_shows_what_a_login_proves_itself_with(
    arguments: tuple[str, ...], capture: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ran = run(capsysbinary, "read", capture, "-T", *arguments)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out or "records" in arguments
    assert_no_secret(ran.out)


@pytest.mark.parametrize("table", ["srt", "clients", "connections", "errors", "io", "topics"])
def test_no_statistic_shows_it(table: str, capture: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert_no_secret(run(capsysbinary, "stats", capture, "-z", table, "-T", "ndjson").out)


def test_who_logs_in_how_until_when_and_with_what_outcome_is_told(
    capture: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    rows = [
        json.loads(line)["sasl"] for line in run(capsysbinary, "read", capture, "-T", "connections").lines
    ]
    told = {(row["mechanism"], row["principal"], row["expires_ms"], row["outcome"]) for row in rows}
    bearer = 2_000_000_000_000
    named = {(each, OPEN, None) for each in MECHANISMS[:3]} | {
        ("OAUTHBEARER", OPEN, bearer),
        ("GSSAPI", None, None),
    }
    assert {each[:3] for each in told if each[3] == "authenticated"} == named
    assert {each[:3] for each in told if each[3] is None} == named | {("PLAIN", None, None)}


def test_a_message_that_breaks_off_is_told_and_its_secret_is_not(
    capture: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    faults = run(capsysbinary, "read", capture, "-T", "faults")
    kinds = {json.loads(line)["kind"] for line in faults.lines}
    assert {"cut-frame", "not-utf8"} <= kinds
    assert_no_secret(faults.out + run(capsysbinary, "read", capture, "-T", "tree", "-x", "--embedded").out)


def test_packets_are_written_with_a_warning_that_they_hold_secrets(
    capture: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    out = tmp_path / "out.pcapng"
    ran = run(capsysbinary, "read", capture, "-Y", "api == SaslAuthenticate", "-w", out)
    assert ran.code == 0
    assert ran.err == (
        "kdissect: packets are written as captured, including what is redacted here (passwords, tokens, "
        "configs) in 17 messages\n"
    )
    assert SECRET.encode() in out.read_bytes()
    assert_no_secret(ran.err.encode() + ran.out)
    clear = run(capsysbinary, "read", capture, "-Y", "api == Metadata", "-w", out)
    assert clear.err == ""
