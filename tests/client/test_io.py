from __future__ import annotations

import asyncio
import gc
import socket
import subprocess
import threading
import time
from contextlib import suppress
from errno import ECONNREFUSED, ENETUNREACH
from pathlib import Path
from typing import Any

import pytest

from kdissect.client.errors import OtherSideError
from kdissect.client.io import BrokerAddress, BrokerConnection
from kdissect.client.security import Security
from kdissect.client.transcript import Transcript
from tests.client.broker import CLOSE, SILENCE, TestBroker
from tests.client.certificates import make, requires_openssl
from tests.client.running import Capsys, client, fails
from tests.kafka import framed, request


def test_a_dead_port(capsysbinary: Capsys) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert "connection refused: is the broker running" in fails(capsysbinary, address)


def test_a_host_with_several_addresses_is_tried_at_each(
    capsysbinary: Capsys, broker: TestBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def addresses(_: str, port: int, *__: object, **___: object) -> list[Any]:
        kind, protocol = socket.SOCK_STREAM, socket.IPPROTO_TCP
        hosts = ("127.0.0.2", "127.0.0.1")
        return [(socket.AF_INET, kind, protocol, "", (each, port)) for each in hosts]

    with socket.create_server(("127.0.0.1", 0)) as server:
        dead = server.getsockname()[1]
    monkeypatch.setattr(socket, "getaddrinfo", addresses)
    assert client(capsysbinary, "metadata", f"both:{broker.port}").code == 0
    assert f"both:{dead}: connection refused: is the broker running" in fails(capsysbinary, f"both:{dead}")


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ((ECONNREFUSED, ECONNREFUSED), "connection refused: is the broker running"),
        ((ECONNREFUSED, ENETUNREACH), "::1: connection refused, 10.0.0.1: network is unreachable"),
        ((ENETUNREACH, ENETUNREACH), "network is unreachable"),
    ],
)
def test_why_no_address_would_do_is_told(
    capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch, errors: tuple[int, int], said: str
) -> None:
    hosts = ("::1", "10.0.0.1")
    failing = {host: OSError(code, "Connect call failed") for host, code in zip(hosts, errors, strict=True)}

    async def connect(_: object, __: object, target: tuple[str, int]) -> None:
        raise failing[target[0]]

    def addresses(_: str, port: int, *__: object, **___: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (each, port)) for each in failing]

    monkeypatch.setattr(socket, "getaddrinfo", addresses)
    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", connect)
    assert f"both:9: {said}" in fails(capsysbinary, "both:9")


def test_a_name_that_nobody_knows(capsysbinary: Capsys) -> None:
    assert "no such host" in fails(capsysbinary, "nobody.invalid:9092")


def test_a_name_that_no_certificate_can_have(capsysbinary: Capsys, broker: TestBroker) -> None:
    ran = client(capsysbinary, "metadata", broker, "--tls-name", ".broker")
    assert (ran.code, ran.err) == (
        2,
        "kdissect: --tls-name .broker: a certificate cannot contain this name\n",
    )


def test_a_server_that_is_silent(capsysbinary: Capsys, broker: TestBroker) -> None:
    broker.answers["ApiVersions"] = lambda *_: SILENCE
    assert "no answer to ApiVersions within 0.2 s" in fails(capsysbinary, broker, "--timeout", 0.2)


def test_a_broker_that_reads_nothing_leaves_no_socket_open() -> None:
    async def ask(address: BrokerAddress) -> None:
        connection = await BrokerConnection.open(
            address, Transcript(), Security(), lambda _: None, timeout=0.2
        )
        with pytest.raises(OtherSideError, match=r"it has accepted no more bytes for 0\.2 s"):
            await connection.send(framed(request("Metadata", 1, 1, "me", topics=None) + bytes(32 << 20)))
        await connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        asyncio.run(ask(BrokerAddress("127.0.0.1", server.getsockname()[1])))
    gc.collect()  # a socket that is left open warns now, and warnings are errors


@pytest.mark.parametrize("pause", [0.03, 0.0])
def test_an_answer_that_drips_is_waited_for_no_longer_than_a_silent_one(
    capsysbinary: Capsys, pause: float
) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()

    def drip() -> None:
        other, _ = server.accept()
        with other, suppress(OSError):
            other.recv(1000)
            other.sendall(b"\0\x10\0\0\0\0\0\1")
            while not is_over.wait(pause):
                other.sendall(b"\0")

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    begin = time.monotonic()
    line = fails(capsysbinary, f"127.0.0.1:{server.getsockname()[1]}", "--timeout", 0.5, "--api-version", 1)
    took = time.monotonic() - begin
    is_over.set()
    thread.join()
    server.close()
    assert 0.4 < took < 20
    assert "no whole answer to Metadata within 0.5 s, " in line
    assert " bytes came: " in line


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "answered in HTTP"),
        (b"\x15\x03\x03\0\x02\x02\x28", "speaks TLS on this port: give --tls"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", "bytes that are not Kafka (b'SSH-2.0-Open')"),
        (b"\xff" * 64, "bytes that are not Kafka"),
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
        "instead of answering Metadata v12: it advertises this version: does it want a login (--sasl)? see"
        in fails(capsysbinary, broker)
    )
    broker.answers["ApiVersions"] = lambda *_: CLOSE
    assert "speak TLS (--tls), be a broker before 0.10" in fails(capsysbinary, broker)
    assert "it may not know this version" in fails(capsysbinary, broker, "--api-version", 9)


def test_a_broker_that_closes_in_the_middle_of_an_answer(capsysbinary: Capsys) -> None:
    with TestBroker() as broker:
        broker.answers["Metadata"] = lambda *_: b"\0\0\0\x64\0\0\0\3half"
        ran = client(capsysbinary, "metadata", broker, "--timeout", 1)
        assert ran.code == 6
        assert "no whole answer to Metadata within 1 s, 12 bytes came: --timeout waits longer" in ran.err

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
    assert "an impossible size" in fails(capsysbinary, broker)
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
        assert "valid for 'other': --tls-ca" in fails(capsysbinary, broker, *options, "--tls-name", "other")
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
        assert "want a certificate of the client (--tls-cert)" in fails(capsysbinary, broker, *options)
        with_key = (*options, "--tls-cert", mine.certificate, "--tls-key", mine.key)
        ran = client(capsysbinary, "metadata", broker, *with_key)
        assert (ran.code, ran.err.count("\n")) == (3, 1)
        assert "--tls-key-password-file" in ran.err
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


@requires_openssl
@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_an_alert_of_a_broker_that_wants_another_certificate_is_told(
    capsysbinary: Capsys, tmp_path: Path, version: str
) -> None:
    mine, theirs = make(tmp_path, "mine"), make(tmp_path, "theirs")
    command = ("openssl", "s_server", "-accept", "0", "-Verify", "1", "-verify_return_error", version)
    files = ("-cert", str(theirs.certificate), "-key", str(theirs.key), "-CAfile", str(theirs.certificate))
    with subprocess.Popen([*command, *files], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        line = next(each for each in server.stdout if each.startswith(b"ACCEPT"))
        address = f"127.0.0.1:{line.rpartition(b':')[2].decode().strip()}"
        trusted = ("--tls-ca", theirs.certificate)
        without = fails(capsysbinary, address, *trusted)
        shown = ("--tls-cert", mine.certificate, "--tls-key", mine.key)
        untrusted = fails(capsysbinary, address, *trusted, *shown)
        server.kill()
    assert "a certificate of the client (" in without
    assert "it does not accept the client's certificate (" in untrusted
    assert "unknown ca" in untrusted


@requires_openssl
def test_files_for_tls_are_looked_at_before_anybody_is_asked(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path
) -> None:
    one, other = make(tmp_path, "one"), make(tmp_path, "other")
    nothing = tmp_path / "nothing"
    nothing.write_text("nothing\n")
    for options, why in (
        (("--tls-ca", nothing), f"{nothing}: it has no certificates in PEM"),
        (("--tls-cert", one.certificate), f"{one.certificate}: no usable certificate and key in PEM"),
        (("--tls-cert", one.certificate, "--tls-key", other.key), f"{other.key}: the key does not belong to"),
        (("--tls-cert", tmp_path), f"{tmp_path}: cannot be read: Is a directory"),
    ):
        ran = client(capsysbinary, "metadata", broker, *options)
        assert (ran.code, ran.err.count("\n")) == (3, 1)
        assert why in ran.err
    assert broker.asked == []


@requires_openssl
def test_advice_about_tls_is_not_given_to_who_speaks_it(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path
) -> None:
    mine = make(tmp_path, "mine")
    with TestBroker(tls=mine.server()) as encrypted:
        encrypted.answers["ApiVersions"] = lambda *_: CLOSE
        line = fails(capsysbinary, encrypted, "--tls-insecure")
    assert "it may want a certificate of the client (--tls-cert), be a broker before 0.10" in line
    assert "speak TLS" not in line
