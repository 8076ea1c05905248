"""Real key updates, renegotiations, early data and rare suites, between OpenSSL's own client and server."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from kdissect.tls.decrypting import Tls
from kdissect.tls.keylog import TlsSecrets
from tests.tls.endpoints import BROKER, CLIENT, Flight, certificate, faults, run, segments, streams

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="there is no openssl")

SECONDS = 10
"""For what takes a few milliseconds."""

PAUSE = 0.2
"""Seconds to wait where nothing is answered."""

ANSWERS = {b"k": b"KEYUPDATE", b"K": b"KEYUPDATE", b"R": b"RENEGOTIATING"}
"""What s_client prints when it does what a letter stands for."""


class Tap:
    """A port that passes on to another, and keeps what went over it."""

    def __init__(self, port: int) -> None:
        self.flights: list[Flight] = []
        self._target = port
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        client, _ = self._listener.accept()
        with client, socket.create_connection(("127.0.0.1", self._target)) as broker:
            ends = (client, broker)
            threads = [threading.Thread(target=self._pass, args=(side, ends)) for side in (CLIENT, BROKER)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    def _pass(self, side: int, ends: tuple[socket.socket, socket.socket]) -> None:
        try:
            while data := ends[side].recv(65_536):
                with self._lock:
                    self.flights.append((side, data))
                ends[1 - side].sendall(data)
            ends[1 - side].shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        self._thread.join(10)
        self._listener.close()


@contextmanager
def server(*options: str) -> Iterator[int]:
    """``s_server`` that answers each line reversed; gives its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert OPENSSL is not None
    command = [OPENSSL, "s_server", "-accept", f"127.0.0.1:{port}", "-cert", str(certificate("rsa").path)]
    with subprocess.Popen(
        [*command, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            assert process.stdout is not None
            while b"ACCEPT" not in (line := process.stdout.readline()):
                assert line, "openssl s_server did not start"
            output = Output(process.stdout)
            yield port
        finally:
            process.kill()
        output.wait_for_end()


class Output:
    """What a process prints."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines: list[bytes] = []
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._lines.append(line.rstrip())

    def wait_for(self, text: bytes, times: int = 1) -> None:
        """Until a line with this text was printed so often."""
        until = time.monotonic() + SECONDS
        while sum(text in line for line in self._lines) < times:
            assert time.monotonic() < until, f"{text!r} did not come"
            time.sleep(0.01)

    def wait_for_end(self) -> None:
        """Before the stream is closed, which must not happen under a thread that reads it."""
        self._thread.join(SECONDS)


def connect(port: int, key_log: Path, says: list[bytes], *options: str, is_answered: bool = True) -> None:
    """``s_client`` that says lines, each when the one before is answered, or does what a letter alone on a
    line stands for."""
    assert OPENSSL is not None
    command = [OPENSSL, "s_client", "-connect", f"127.0.0.1:{port}", "-keylogfile", str(key_log), *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        output = Output(process.stdout)
        try:
            _say(process, output, says, is_answered)
        finally:
            process.kill()
            output.wait_for_end()


def _say(process: subprocess.Popen[bytes], output: Output, says: list[bytes], is_answered: bool) -> None:
    assert process.stdin is not None
    output.wait_for(b"Verify return code")
    done: Counter[bytes] = Counter()
    for line in says:
        process.stdin.write(line + b"\n")
        process.stdin.flush()
        answer = ANSWERS.get(line, line[::-1])
        done[answer] += 1
        if is_answered:
            output.wait_for(answer, done[answer])
        else:
            time.sleep(PAUSE)
    process.stdin.write(b"Q\n")
    process.stdin.flush()
    process.wait(SECONDS)


def decrypted(tap: Tap, key_log: Path) -> tuple[Tls, tuple[bytes, bytes]]:
    secrets = TlsSecrets()
    secrets.add(key_log.read_bytes())
    machine = Tls(secrets)
    out = run(machine, segments(tap.flights))
    assert faults(out) == []
    return machine, streams(out)


@pytest.mark.parametrize(
    ("version", "suite"),
    [
        ("-tls1_3", "TLS_AES_128_CCM_SHA256"),
        ("-tls1_3", "TLS_AES_128_CCM_8_SHA256"),
        ("-tls1_3", "TLS_CHACHA20_POLY1305_SHA256"),
        ("-tls1_3", "TLS_AES_128_GCM_SHA256"),
    ],
)
def test_key_updates_in_every_suite(version: str, suite: str, tmp_path: Path) -> None:
    chosen = (version, "-ciphersuites", suite)
    with server("-rev", *chosen) as port:
        tap = Tap(port)
        connect(tap.port, tmp_path / "keys", [b"one", b"k", b"two", b"K", b"three", b"K", b"four"], *chosen)
        tap.close()
    machine, said = decrypted(tap, tmp_path / "keys")
    assert machine.seen.suite == suite
    assert said == (b"one\ntwo\nthree\nfour\n", b"eno\nowt\neerht\nruof\n")


@pytest.mark.parametrize("suite", ["ECDHE-RSA-AES128-GCM-SHA256", "AES128-SHA"])
def test_renegotiation(suite: str, tmp_path: Path) -> None:
    chosen = ("-tls1_2", "-cipher", suite)
    with server("-rev", "-client_renegotiation", *chosen) as port:
        tap = Tap(port)
        connect(tap.port, tmp_path / "keys", [b"one", b"R", b"two", b"R", b"three"], *chosen)
        tap.close()
    assert (tmp_path / "keys").read_bytes().count(b"CLIENT_RANDOM") == 3
    _, said = decrypted(tap, tmp_path / "keys")
    assert said == (b"one\ntwo\nthree\n", b"eno\nowt\neerht\n")


@pytest.mark.parametrize("accepted", [True, False])
def test_early_data(accepted: bool, tmp_path: Path) -> None:
    session, early = tmp_path / "session", tmp_path / "early"
    early.write_bytes(b"early words\n")
    takes = ("-tls1_3", "-max_early_data", "1000", "-early_data", "-no_anti_replay")
    again = ("-tls1_3", "-sess_in", str(session), "-early_data", str(early))
    with server(*takes) as port, server("-tls1_3") as other:
        connect(port, tmp_path / "first", [b"one"], "-tls1_3", "-sess_out", str(session), is_answered=False)
        tap = Tap(port if accepted else other)  # the other knows nothing of the session
        connect(tap.port, tmp_path / "second", [b"two"], *again, is_answered=False)
        tap.close()
    machine, said = decrypted(tap, tmp_path / "second")
    assert machine.seen.early_data == ("accepted" if accepted else "rejected")
    assert said[0] == (b"early words\ntwo\n" if accepted else b"two\n")
