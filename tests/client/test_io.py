from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from tests.client.broker import CLOSE, SILENCE, TestBroker
from tests.client.certificates import make, requires_openssl
from tests.client.running import Capsys, client, fails
from tests.kafka import framed


def test_a_dead_port(capsysbinary: Capsys) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert "connection refused: is the broker running" in fails(capsysbinary, address)


def test_a_name_that_nobody_knows(capsysbinary: Capsys) -> None:
    assert "no such host" in fails(capsysbinary, "nobody.invalid:9092")


def test_a_server_that_is_silent(capsysbinary: Capsys, broker: TestBroker) -> None:
    broker.answers["ApiVersions"] = lambda *_: SILENCE
    assert "no answer to ApiVersions within 0.2 s" in fails(capsysbinary, broker, "--timeout", 0.2)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "answered in HTTP"),
        (b"\x15\x03\x03\0\x02\x02\x28", "speaks TLS on this port: give --tls"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", "bytes that are no Kafka (b'SSH-2.0-Open')"),
        (b"\xff" * 64, "bytes that are no Kafka"),
        (b"\0\0\0\x08\0\0\x12\x34abcd", "answered a request that was not sent"),
        (b"\0\0\0\x02\0\0", "too short for an answer"),
    ],
)
def test_a_server_that_is_no_broker(capsysbinary: Capsys, said: bytes, why: str) -> None:
    with TestBroker(greeting=said) as broker:
        broker.answers["ApiVersions"] = lambda *_: SILENCE
        assert why in fails(capsysbinary, broker)


def test_a_broker_that_closes_instead_of_answering(capsysbinary: Capsys, broker: TestBroker) -> None:
    broker.answers["Metadata"] = lambda *_: CLOSE
    assert (
        "instead of answering Metadata v12: it may want a login (--sasl), or not take this version;"
        in fails(capsysbinary, broker)
    )
    broker.answers["ApiVersions"] = lambda *_: CLOSE
    assert "a TLS listener (--tls)" in fails(capsysbinary, broker)
    assert "it may not know this version" in fails(capsysbinary, broker, "--api-version", 9)


def test_a_broker_that_closes_in_the_middle_of_an_answer(capsysbinary: Capsys) -> None:
    with TestBroker() as broker:
        broker.answers["Metadata"] = lambda *_: b"\0\0\0\x64\0\0\0\1half"
        broker.answers["Metadata"] = lambda *_: b"\0\0\0\x64\0\0\0\3half"
        ran = client(capsysbinary, "metadata", broker, "--timeout", 0.2)
        assert ran.code == 6
        assert "no answer to Metadata within 0.2 s, " in ran.err

        server = socket.create_server(("127.0.0.1", 0))

        def answer_half() -> None:
            other, _ = server.accept()
            with other:
                other.recv(1000)
                other.sendall(b"\0\0\0\x64\0\0\0\1half")

        thread = threading.Thread(target=answer_half)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        line = fails(capsysbinary, address, "--api-version", 1)
        thread.join()
        server.close()
    assert "closed the connection in the middle of its answer to Metadata v1 (8 of 100 bytes)" in line


def test_a_broker_that_sends_garbage_after_an_answer(capsysbinary: Capsys, broker: TestBroker) -> None:
    broker.answers["Metadata"] = lambda *_: b"\xff\xff\xff\xff garbage"
    assert "a size that no answer has" in fails(capsysbinary, broker)
    broker.answers["Metadata"] = lambda *_: framed(b"\0\0\0\3" + b"\x7f" * 40)
    assert "does not fit the schema" in fails(capsysbinary, broker)


@requires_openssl
def test_tls_is_verified_unless_that_is_turned_off(capsysbinary: Capsys, tmp_path: Path) -> None:
    mine = make(tmp_path, "mine")
    with TestBroker(tls=mine.server()) as broker:
        assert "its certificate is not trusted" in fails(capsysbinary, broker, "--tls")
        options = ("--tls-ca", mine.certificate)
        assert client(capsysbinary, "metadata", broker, *options).code == 0
        assert client(capsysbinary, "metadata", broker, *options, "--tls-name", "broker").code == 0
        assert "not trusted" in fails(capsysbinary, broker, *options, "--tls-name", "other")
        assert client(capsysbinary, "metadata", broker, "--tls-insecure").code == 0
        line = fails(capsysbinary, broker)  # plaintext to a TLS listener
        assert "--tls" in line


@requires_openssl
def test_a_client_certificate_is_shown_where_it_is_wanted(
    capsysbinary: Capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = make(tmp_path, "mine", "p4ss"), make(tmp_path, "theirs")
    with TestBroker(tls=theirs.server(mine.certificate)) as broker:
        options = ("--tls-ca", theirs.certificate)
        assert client(capsysbinary, "metadata", broker, *options).code == 6
        with_key = (*options, "--tls-cert", mine.certificate, "--tls-key", mine.key)
        assert "cannot be used for TLS" in fails(capsysbinary, broker, *with_key)
        password = tmp_path / "password"
        password.write_text("p4ss\n")
        assert (
            client(capsysbinary, "metadata", broker, *with_key, "--tls-key-password-file", password).code == 0
        )
        monkeypatch.setenv("KDISSECT_TLS_KEY_PASSWORD", "p4ss")
        ran = client(capsysbinary, "metadata", broker, *with_key)
        assert (ran.code, ran.err) == (0, "")


def test_tls_where_nobody_speaks_it(capsysbinary: Capsys, broker: TestBroker) -> None:
    line = fails(capsysbinary, broker, "--tls-insecure", "--timeout", 0.3)
    assert "no TLS connection within 0.3 s" in line  # it waits for the rest of a request of 369 MB
    assert "does it speak TLS there?" in line
    with TestBroker(greeting=b"HTTP/1.1 400 Bad Request\r\n\r\n") as other:
        assert "does not speak TLS here" in fails(capsysbinary, other, "--tls-insecure")
