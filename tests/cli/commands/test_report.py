"""``kdissect report``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kdissect.insight.report_data import TABLES
from tests.cli.run import CAPTURES, Ran, run

HEALTHY = CAPTURES / "basic-kafka43.pcapng"
ERRORS = CAPTURES / "errors.pcapng"

Command = Callable[..., Ran]


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return lambda *arguments: run(capsysbinary, *arguments)


@pytest.fixture
def page(command: Command, tmp_path: Path) -> Path:
    """A report of a capture with errors."""
    path = tmp_path / "errors.html"
    assert command("report", ERRORS, "-o", path).code == 0
    return path


def test_a_page_is_for_its_owner_only(page: Path) -> None:
    assert page.stat().st_mode & 0o777 == 0o600
    assert "message-too-large" in page.read_text()


def test_its_tables_are_printed_again(page: Path, command: Command) -> None:
    ran = command("report", page, "-T", "ndjson")
    assert (ran.code, ran.err) == (0, "")
    rows = [json.loads(line) for line in ran.lines]
    tables = {row["table"] for row in rows}
    assert {"findings", "slowest", "latency", "latency,broker", "errors", "profile"} <= tables
    assert tables <= {"findings", *TABLES}
    found = [row["finding"] for row in rows if row["table"] == "findings"]
    direct = command("explain", ERRORS, "-T", "ndjson", "--all", "-q")
    assert found == [json.loads(line)["finding"] for line in direct.lines]


def test_a_report_is_compared_like_its_capture(page: Path, command: Command) -> None:
    assert command("diff", page, ERRORS).out == b""
    assert command("diff", HEALTHY, page, "-T", "ndjson").lines
    assert command("diff", HEALTHY, page, "--fail-on", "worse", "-q").code == 1


def test_a_state_adds_a_day(command: Command, tmp_path: Path) -> None:
    state, out = tmp_path / "state", tmp_path / "out.html"
    command("report", HEALTHY, "--state", state, "-o", out)
    command("report", ERRORS, "--state", state, "-o", out)
    both = out.read_text()
    assert "message-too-large" in both
    assert "java43-basic" in both
    command("report", "--state", state, "-o", out)
    assert "java43-basic" in out.read_text()
    assert state.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"<!doctype html><title>something else</title>", 3),
        (b'<!doctype html>\n<html lang="en" data-kdissect="report 1">', 3),
        (
            b'<!doctype html><html data-kdissect="report 1">'
            b'<script type="application/json" id="kdissect">{"tables": 1}</script>',
            3,
        ),
    ],
)
def test_what_is_no_report_of_ours_is_one_line(
    content: bytes, code: int, command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "other.html"
    path.write_bytes(content)
    for arguments in (("report", path, "-T", "ndjson"), ("diff", HEALTHY, path)):
        ran = command(*arguments)
        assert (ran.code, ran.out) == (code, b"")
        assert ran.err.startswith("kdissect: ")
        assert ran.err.count("\n") == 1


def test_what_cannot_be_asked(page: Path, command: Command, tmp_path: Path) -> None:
    for arguments in (
        (page, "-Y", "error"),
        (page, ERRORS),
        (page, "--state", tmp_path / "state"),
        (),
        ("--state", tmp_path / "nothing"),
        (ERRORS, "-o", ERRORS),
    ):
        ran = command("report", *arguments)
        assert ran.code == 2, arguments
        assert ran.err.count("\n") == 1
    assert not (tmp_path / "state").exists()


def test_no_key_and_no_value_gets_into_a_page(command: Command, tmp_path: Path) -> None:
    for name in ("basic-kafka43.pcapng", "sasl-scram.pcapng"):
        out = tmp_path / "out.html"
        command("report", CAPTURES / name, "-o", out)
        written = out.read_text()
        rows = command("read", CAPTURES / name, "-T", "records", "-e", "key,value").lines
        values = {str(value) for line in rows for value in json.loads(line).values() if value}
        assert not [value for value in values if len(value) >= 6 and value in written]
