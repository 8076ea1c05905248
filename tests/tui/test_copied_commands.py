"""A command that was copied runs: it sends the request that it was copied from, or prints the exchange."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from kdissect import read
from kdissect.exchange import Exchange
from kdissect.present.body import message_object
from kdissect.present.options import Options
from kdissect.tui.copying import body_to_send, read_command, send_command, tshark_command
from tests.cli.run import CAPTURES, run
from tests.client.broker import CLOSE, TestBroker
from tests.client.running import Capsys
from tests.shared import requires_shared, shared

OPTIONS = Options(embedded=True)
CAPTURE = CAPTURES / "transactions-kafka39.pcapng"
PATHS = [str(CAPTURE)]


def one_of_each() -> Iterator[Exchange]:
    """The first exchange of each API and version."""
    seen = set()
    for each in read(CAPTURE):
        if each.request is not None and (each.api, each.api_version) not in seen:
            seen.add((each.api, each.api_version))
            yield each


EXCHANGES = list(one_of_each())


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda each: f"{each.api} v{each.api_version}")
def test_a_copied_request_is_sent_as_it_was(capsysbinary: Capsys, exchange: Exchange) -> None:
    assert exchange.api is not None
    assert exchange.api_version is not None
    assert exchange.request is not None
    command = send_command(exchange, OPTIONS, PATHS)
    assert command is not None
    version = exchange.api_version, exchange.api_version
    versions = {"ApiVersions": (0, 4), "Metadata": (0, 12)} | {exchange.api: version}
    with TestBroker(versions) as broker:
        if exchange.api not in ("ApiVersions", "Metadata"):
            broker.answers[exchange.api] = lambda *_: CLOSE
        name, *words = shlex.split(command.replace(exchange.broker, broker.address))
        assert name == "kdissect"
        ran = run(capsysbinary, *words, "--timeout", "5")
        if ran.code == 2:
            assert "--yes" in ran.err  # it may change data, and nothing was sent
            assert exchange.api not in [each.api for each in broker.asked]
            run(capsysbinary, *words, "--timeout", "5", "--yes")
        sent = [each for each in broker.asked if each.api == exchange.api]
        body = message_object(exchange.request, OPTIONS._replace(embedded=False))["body"]
        assert any(each.version == exchange.api_version and _same(each.body, body) for each in sent)


def _same(sent: dict[str, Any], captured: dict[str, Any]) -> bool:
    """Whether what was sent has all values that were captured, and as many of what stands in lists."""
    return all(
        len(sent[name]) == len(value) if isinstance(value, list) else sent[name] == value
        for name, value in captured.items()
    )


def test_some_bodies_stand_in_the_command_and_some_are_taken_from_the_capture() -> None:
    with_body = {each.api for each in EXCHANGES if body_to_send(each, OPTIONS) is not None}
    assert {"Metadata", "Fetch", "InitProducerId", "EndTxn"} <= with_body
    assert "Produce" not in with_body
    for each in EXCHANGES:
        body = body_to_send(each, OPTIONS)
        assert body is None or isinstance(json.loads(body), dict)


def test_the_commands_that_read_print_the_exchange(capsysbinary: Capsys) -> None:
    exchange = next(each for each in EXCHANGES if each.api == "EndTxn")
    command = read_command(exchange, PATHS)
    assert command is not None
    ran = run(capsysbinary, *shlex.split(command)[1:])
    assert ran.code == 0
    assert f"Exchange {exchange.number}: EndTxn v{exchange.api_version}" in ran.out.decode()
    if shutil.which("tshark"):
        shown = subprocess.run(
            shlex.split(tshark_command(exchange, PATHS)), capture_output=True, text=True, check=True
        ).stdout
        assert "End Txn" in shown or "EndTxn" in shown


@requires_shared
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
@pytest.mark.parametrize("has_secrets", [False, True])
def test_tshark_decrypts_what_kdissect_decrypted(has_secrets: bool) -> None:
    folder = shared("testdata/captures/lab/tls13")
    with_secrets = folder / "capture-dsb.pcapng"
    exchange = next(each for each in read(with_secrets) if each.api == "Fetch" and each.response is not None)
    path, logs = (
        (with_secrets, ()) if has_secrets else (folder / "capture.pcapng", (str(folder / "keys.log"),))
    )
    words = shlex.split(tshark_command(exchange, [str(path)], logs))
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    packets = sorted({each for message in exchange.messages for each in message.frame.packets})
    assert [int(each) for each in re.findall(r"^Frame (\d+):", shown, re.M)] == packets
    assert shown.count(f"Correlation ID: {exchange.correlation_id}") == 2


def test_a_command_that_reads_several_files_finds_the_exchange_again(capsysbinary: Capsys) -> None:
    paths = [str(CAPTURES / "errors.pcapng"), str(CAPTURE)]
    exchanges = list(read(paths))
    for exchange in (exchanges[0], exchanges[-1]):
        command = read_command(exchange, paths)
        assert command is not None
        ran = run(capsysbinary, *shlex.split(command)[1:])
        said = ran.out.decode()
        assert f"Exchange {exchange.number}: {exchange.api} v{exchange.api_version}" in said
        assert said.count("Exchange ") == 1
    assert read_command(exchanges[0], []) is None
