"""Running the client's commands against the broker of the tests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.run import Ran, run
from tests.client.broker import TestBroker

Capsys = pytest.CaptureFixture[bytes]


def client(capsysbinary: Capsys, command: str, broker: TestBroker | str, *more: object) -> Ran:
    """``kdissect client COMMAND``."""
    address = broker if isinstance(broker, str) else broker.address
    return run(capsysbinary, "client", command, address, "--timeout", "5", *more)


def rows(ran: Ran) -> list[dict[str, Any]]:
    """What it printed as NDJSON."""
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.lines]


def fails(capsysbinary: Capsys, broker: TestBroker | str, *more: object) -> str:
    """The one line that a run of ``metadata`` fails with."""
    ran = client(capsysbinary, "metadata", broker, *more)
    assert ran.code == 6, ran.err
    assert ran.err.count("\n") == 1
    return ran.err
