from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import run
from tests.client.broker import TestBroker
from tests.client.running import Capsys, client, fails, rows


def login(broker: TestBroker, *answers: tuple[int, bytes]) -> list[bytes]:
    """Let it take a login: what it says to each token. The tokens are collected."""
    tokens: list[bytes] = []

    def authenticate(version: int, body: dict[str, Any]) -> dict[str, Any]:
        code, said = answers[min(len(tokens), len(answers) - 1)]
        tokens.append(body["authBytes"])
        message = "Authentication failed: Invalid username or password" if code else None
        return {"errorCode": code, "errorMessage": message, "authBytes": said}

    broker.answers["SaslHandshake"] = lambda *_: {"errorCode": 0, "mechanisms": ["PLAIN", "SCRAM-SHA-256"]}
    broker.answers["SaslAuthenticate"] = authenticate
    return tokens


def test_a_password_comes_from_a_file_or_the_environment_and_is_never_shown(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = login(broker, (0, b""))
    password = tmp_path / "password"
    password.write_text("tanstaaf\n")
    capture = tmp_path / "said.pcapng"
    options = ("--sasl", "plain", "--user", "tim", "--all", "-T", "tree", "-x", "--embedded")
    ran = client(capsysbinary, "metadata", broker, *options, "--password-file", password, "-w", capture)
    assert ran.code == 0
    assert tokens == [b"\0tim\0tanstaaf"]
    for said in (ran.out, ran.err.encode(), capture.read_bytes()):
        assert b"tanstaaf" not in said
        assert b64encode(b"\0tim\0tanstaaf") not in said
        assert b"tanstaaf".hex().encode() not in said
    assert run(capsysbinary, "read", "-T", "tree", "-x", "--embedded", capture).out == ran.out
    monkeypatch.setenv("KDISSECT_PASSWORD", "from-environment")
    assert client(capsysbinary, "metadata", broker, *options).err == ""
    assert tokens[-1] == b"\0tim\0from-environment"


def test_without_a_password_there_is_no_login(capsysbinary: Capsys, broker: TestBroker) -> None:
    ran = client(capsysbinary, "metadata", broker, "--sasl", "PLAIN", "--user", "tim")
    assert ran.code == 2
    assert "password is needed: --password-file FILE, or KDISSECT_PASSWORD" in ran.err
    assert "--user" in client(capsysbinary, "metadata", broker, "--sasl", "PLAIN").err
    assert "--sasl" in client(capsysbinary, "metadata", broker, "--user", "tim").err
    assert broker.asked == []


def test_a_wrong_password_is_told_in_the_brokers_words(
    capsysbinary: Capsys, broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    login(broker, (58, b""))
    monkeypatch.setenv("KDISSECT_PASSWORD", "wrong")
    line = fails(capsysbinary, broker, "--sasl", "PLAIN", "--user", "tim")
    assert "SASL_AUTHENTICATION_FAILED: Authentication failed: Invalid username or password" in line
    assert "wrong" not in line.replace("wrong password", "")


def test_a_broker_that_never_ends_a_login_is_not_followed_for_ever(
    capsysbinary: Capsys, broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = login(broker, (0, b'{"status":"invalid_token"}'))
    monkeypatch.setenv("KDISSECT_TOKEN", "abc")
    line = fails(capsysbinary, broker, "--sasl", "OAUTHBEARER")
    assert "the server continues the login after it has refused the token" in line
    assert len(tokens) == 2


def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are(
    capsysbinary: Capsys, broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.answers["SaslHandshake"] = lambda *_: {"errorCode": 33, "mechanisms": ["OAUTHBEARER", "GSSAPI"]}
    monkeypatch.setenv("KDISSECT_PASSWORD", "p")
    line = fails(capsysbinary, broker, "--sasl", "SCRAM-SHA-512", "--user", "tim")
    assert (
        "does not accept SCRAM-SHA-512 (UNSUPPORTED_SASL_MECHANISM): it offers OAUTHBEARER, GSSAPI (--sasl)"
        in line
    )


def test_a_broker_that_does_not_know_the_password_is_not_trusted(
    capsysbinary: Capsys, broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: list[bytes] = []

    def authenticate(_: int, body: dict[str, Any]) -> dict[str, Any]:
        tokens.append(body["authBytes"])
        nonce = tokens[0].partition(b"r=")[2]
        said = b"r=" + nonce + b"x,s=c2FsdA==,i=4096" if len(tokens) == 1 else b"v=" + b64encode(bytes(32))
        return {"errorCode": 0, "authBytes": said}

    login(broker)
    broker.answers["SaslAuthenticate"] = authenticate
    monkeypatch.setenv("KDISSECT_PASSWORD", "p")
    line = fails(capsysbinary, broker, "--sasl", "SCRAM-SHA-256", "--user", "tim")
    assert "it does not know the password" in line
    assert not [each for each in broker.asked if each.api == "Metadata"]


def test_raw_tokens_after_the_oldest_handshake(
    capsysbinary: Capsys, broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.versions |= {"SaslHandshake": (0, 0)}
    login(broker)
    tokens: list[bytes] = []

    def answer(token: bytes) -> bytes:
        tokens.append(token)
        broker.tokens = None
        return b""

    broker.tokens = answer
    monkeypatch.setenv("KDISSECT_PASSWORD", "p")
    found = rows(
        client(capsysbinary, "metadata", broker, "--sasl", "PLAIN", "--user", "tim", "--all", "-T", "ndjson")
    )
    assert [each["api"] for each in found][-3:] == ["SaslHandshake", "SaslToken", "Metadata"]
    assert tokens == [b"\0tim\0p"]
