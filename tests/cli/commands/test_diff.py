"""``kdissect diff``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.capture.build import pcap
from tests.cli.run import CAPTURES, Ran, run

HEALTHY = CAPTURES / "basic-kafka43.pcapng"
ERRORS = CAPTURES / "errors.pcapng"
LOSS = CAPTURES / "loss.pcapng"

Command = Callable[..., Ran]


@pytest.fixture
def diff(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return lambda *arguments: run(capsysbinary, "diff", *arguments)


@pytest.mark.parametrize("path", [HEALTHY, ERRORS, LOSS])
def test_a_capture_against_itself_says_nothing(path: Path, diff: Command) -> None:
    ran = diff(path, path, "--fail-on", "worse")
    assert (ran.out, ran.code) == (b"", 0)
    assert ran.err.endswith(": no significant difference\n")


def test_trouble_is_named_and_fails(diff: Command) -> None:
    ran = diff(HEALTHY, ERRORS, "--fail-on", "worse", "-T", "ndjson", "-q")
    assert (ran.code, ran.err) == (1, "")
    rows = [json.loads(line) for line in ran.lines]
    (found,) = [row for row in rows if row["what"] == "message-too-large"]
    assert (found["area"], found["verdict"], found["before"]) == ("finding", "worse", None)
    assert "new warning" in found["delta_text"]
    assert all(row["significant"] for row in rows)
    assert diff(HEALTHY, ERRORS, "-q").code == 0


def test_all_that_was_compared(diff: Command) -> None:
    few, every = (diff(HEALTHY, HEALTHY, "-T", "ndjson", *more) for more in ((), ("--all",)))
    assert not few.lines
    rows = [json.loads(line) for line in every.lines]
    assert {row["verdict"] for row in rows} == {"same"}
    assert f"compared {len(rows)} values" in every.err


def test_states_are_compared_like_captures(
    diff: Command, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for path, name in ((HEALTHY, "before"), (ERRORS, "after")):
        run(capsysbinary, "explain", path, "--state", tmp_path / name)
    of_states = diff(tmp_path / "before", tmp_path / "after", "-T", "ndjson")
    assert of_states.out == diff(HEALTHY, ERRORS, "-T", "ndjson").out


def test_a_page(diff: Command, tmp_path: Path) -> None:
    path = tmp_path / "diff.html"
    diff(HEALTHY, ERRORS, "-T", "html", "-o", path)
    page = path.read_text()
    assert "message-too-large" in page
    assert "default-src 'none'" in page
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_compared(diff: Command, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    ran = diff(HEALTHY, nothing)
    assert ran.code == 3
    assert ran.err.count("\n") == 1
    assert diff("-", "-").code == 2
    state = tmp_path / "state"
    state.write_bytes(b"kdissect findings 2\nbroken")
    assert (diff(HEALTHY, state).code, diff(HEALTHY, state).err.count("\n")) == (3, 1)


def test_a_side_without_kafka_is_named(diff: Command, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pcap"
    nothing.write_bytes(pcap(()))
    ran = diff(HEALTHY, nothing)
    assert ran.code == 0
    assert f"{nothing}: no Kafka was found" in ran.err
    assert HEALTHY.name not in ran.err
