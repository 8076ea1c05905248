"""``read --embedded`` tells what is wrong with the bytes inside messages; without it nobody looks there."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import Ran, run
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture

HEADER_ONLY = b64encode(b"\0").decode()
"""Half of the version that every consumer protocol subscription begins with."""


Run = Callable[..., Ran]


@pytest.fixture
def ran(capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    return partial(run, capsysbinary)


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    asked: dict[str, Any] = {
        "groupId": "g",
        "sessionTimeoutMs": 1,
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": HEADER_ONLY}],
    }
    answered: dict[str, Any] = {
        "errorCode": 0,
        "generationId": 1,
        "protocolName": "range",
        "leader": "m",
        "memberId": "m",
        "members": [],
    }
    talk = (
        Talk()
        .ask(request("JoinGroup", 0, 1, **asked))
        .answer(response("JoinGroup", 0, 1, **answered))
        .close()
    )
    return write_capture(tmp_path / "join.pcapng", talk)


def test_faults_inside_are_told_with_their_exchange_and_packet(capture: Path, ran: Run) -> None:
    out = ran("read", capture, "-T", "faults.ndjson", "--embedded")
    (fault,) = [json.loads(line) for line in out.lines]
    assert (fault["layer"], fault["kind"], fault["exchange"]) == ("message", "embedded", 1)
    assert fault["packet"] is not None


def test_they_are_faults_in_every_form(capture: Path, ran: Run) -> None:
    assert ran("read", capture, "--embedded", "--strict").code == 4
    assert b"embedded" in ran("read", capture, "--embedded").out
    assert b"fault: embedded" in ran("read", capture, "--embedded", "-T", "tree").out
    assert ran("read", capture, "--embedded", "-Y", "fault.kind == embedded").out


def test_without_embedded_nobody_looks(capture: Path, ran: Run) -> None:
    assert ran("read", capture, "--strict").code == 0
    assert not ran("read", capture, "-T", "faults.ndjson").out
