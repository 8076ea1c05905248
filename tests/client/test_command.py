from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import kdissect
from tests.cli.run import run, spawn
from tests.client.broker import SILENCE, TestBroker
from tests.client.running import Capsys
from tests.client.stored import THREE, stored
from tests.kafka import METADATA_RESPONSE_1, framed, response


@pytest.mark.parametrize("address", ["", "a:b", "a:0", "a:99999", "a b", "::1"])
def test_what_is_no_address_is_told(capsysbinary: Capsys, address: str) -> None:
    ran = run(capsysbinary, "client", "metadata", address)
    assert ran.code == 2
    assert "HOST:PORT" in ran.err


def test_the_client_is_loaded_by_nobody_else() -> None:
    code = (
        "import sys, kdissect.cli.commands.read, kdissect.cli.root;"
        "print('asyncio' in sys.modules, 'kdissect.client' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_help_lists_the_commands() -> None:
    ran = spawn("client")
    assert ran.code == 0
    for name in ("metadata", "produce", "fetch", "send", "conformance"):
        assert name in ran.out.decode()


def test_ctrl_c_ends_following_and_what_was_written_can_be_read(broker: TestBroker, tmp_path: Path) -> None:
    stored(broker, *THREE, end=5)
    fetch_at_once = broker.answers["Fetch"]
    broker.answers["Fetch"] = lambda version, body: (
        fetch_at_once(version, body) if body["topics"][0]["partitions"][0]["fetchOffset"] < 5 else SILENCE
    )
    capture = tmp_path / "said.pcapng"
    command = ("client", "fetch", broker.address, "orders", "--follow", "-w", str(capture))
    with subprocess.Popen(
        [sys.executable, "-m", "kdissect", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        values = [json.loads(process.stdout.readline())["value"] for _ in range(5)]
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr.read() == b""
    assert values == list("abcde")
    found = list(kdissect.read(capture))
    assert capture.stat().st_mode & 0o777 == 0o600
    assert [each.missing for each in found][-1] == "connection closed"
    assert {each.missing for each in found[:-1]} == {None}


def test_following_ends_when_nobody_reads_any_more(broker: TestBroker) -> None:
    stored(broker, *THREE, end=5)
    fetch_at_once = broker.answers["Fetch"]
    broker.answers["Fetch"] = lambda version, body: (
        fetch_at_once(version, body) if body["topics"][0]["partitions"][0]["fetchOffset"] < 5 else SILENCE
    )
    command = ("client", "fetch", broker.address, "orders", "--follow")
    with subprocess.Popen(
        [sys.executable, "-m", "kdissect", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(5):
            process.stdout.readline()
        process.stdout.close()
        assert process.wait(20) == 0  # the broker says nothing for 30 seconds
        assert process.stderr.read() == b""


def test_a_password_is_prompted_for_where_there_is_a_terminal(broker: TestBroker) -> None:
    broker.answers["SaslHandshake"] = lambda *_: {"errorCode": 0, "mechanisms": ["PLAIN"]}
    broker.answers["SaslAuthenticate"] = lambda *_: {"errorCode": 0, "authBytes": b""}
    ours, theirs = pty.openpty()
    command = ("client", "metadata", broker.address, "--sasl", "PLAIN", "--user", "tim", "-T", "ndjson")
    with subprocess.Popen(
        [sys.executable, "-m", "kdissect", *command],
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        asked = b""
        while b"Password of tim" not in asked:
            asked += os.read(ours, 100)
        os.write(ours, b"tanstaaf\n")
        assert process.wait(20) == 0
        with suppress(OSError):  # a terminal without its other end
            asked += os.read(ours, 1000)
    os.close(ours)
    assert b"tanstaaf" not in asked
    tokens = [each.body["authBytes"] for each in broker.asked if each.api == "SaslAuthenticate"]
    assert tokens == [b"\0tim\0tanstaaf"]


def test_ipv6_addresses_stand_in_brackets() -> None:
    try:
        server = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("there is no IPv6 here")

    def answer() -> None:
        other, _ = server.accept()
        with other:
            data = other.recv(1000)
            correlation = int.from_bytes(data[8:12], "big")
            other.sendall(framed(response("Metadata", 1, correlation, **METADATA_RESPONSE_1)))
            other.recv(1)

    thread = threading.Thread(target=answer)
    thread.start()
    address = f"[::1]:{server.getsockname()[1]}"
    ran = spawn("client", "metadata", address, "--api-version", "1", "-T", "ndjson", "-w", os.devnull)
    thread.join(10)
    server.close()
    assert json.loads(ran.out)["broker"] == address
