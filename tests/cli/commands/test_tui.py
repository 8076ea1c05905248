"""``kdissect tui``: what it says where there can be no screens. The screens are in tests/tui."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kdissect.cli.commands import tui
from kdissect.cli.config import Config
from kdissect.cli.exit_codes import USAGE
from kdissect.cli.tls_keys import Keys
from kdissect.model import CaptureError
from tests.cli.run import CAPTURES, run, run_with, spawn
from tests.tui.terminals import Terminal

CAPTURE = CAPTURES / "errors.pcapng"


def test_no_terminal_is_told_in_one_line() -> None:
    ran = spawn("tui", CAPTURE)
    assert (ran.code, ran.out) == (USAGE, b"")
    assert ran.err == "kdissect: the screens need a terminal; kdissect read prints to anything\n"


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        ((CAPTURE, "-Y", "latncy > 1s"), "did you mean latency?", USAGE),
        ((CAPTURES / "nothing.pcap",), "nothing.pcap", 3),
        ((CAPTURES / "README.md",), "not a capture", 3),
    ],
)
def test_a_mistake_is_told_before_it_is_told_that_there_is_no_terminal(
    arguments: tuple[object, ...], said: str, code: int
) -> None:
    ran = run_with(b"", "tui", *arguments)
    assert (ran.code, ran.out) == (code, b"")
    assert said in ran.err
    assert "terminal" not in ran.err


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_a_file_is_needed(capsysbinary: pytest.CaptureFixture[bytes], arguments: tuple[str, ...]) -> None:
    assert run(capsysbinary, "tui", *arguments).code == USAGE


@pytest.mark.parametrize(
    ("arguments", "environment", "said", "code"),
    [
        ((CAPTURES / "README.md",), {}, b"not a capture", 3),
        ((CAPTURES / "nothing.pcap",), {}, b"nothing.pcap", 3),
        ((CAPTURE,), {"TERM": "dumb"}, b"cannot draw on TERM=dumb", 2),
        ((CAPTURE, "--theme", "textual-lihgt"), {}, b"textual-light", 2),
        (("-",), {}, b"nothing is piped into it", 2),
        (("-", CAPTURE), {}, b"alone", 2),
    ],
    ids=["no capture", "no file", "dumb terminal", "no theme", "no pipe", "pipe and file"],
)
def test_what_is_wrong_is_told_before_the_screens(
    arguments: tuple[object, ...], environment: dict[str, Any], said: bytes, code: int
) -> None:
    terminal = Terminal("tui", *arguments, **environment)
    try:
        assert terminal.end() == code
        assert said in terminal.output
        assert terminal.output.count(b"\n") == 1
    finally:
        terminal.close()


def test_a_filter_that_is_none_is_told_with_its_place() -> None:
    terminal = Terminal("tui", CAPTURE, "-Y", "latncy > 1s")
    try:
        assert terminal.end() == USAGE
        assert b"-Y" in terminal.output
        assert b"did you mean latency?" in terminal.output
    finally:
        terminal.close()


def test_the_screens_begin_with_defaults_where_the_configuration_is_wrong(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('theme = "nope"\n\n[filters]\nslow = "latncy > 1s"\n')
    terminal = Terminal("tui", CAPTURE, KDISSECT_CONFIG=str(config))
    try:
        terminal.until(b"2 settings are not used")
        terminal.until(b"did you mean latency?")
        terminal.send(b"\r")
        terminal.until(b"52 exchanges")
        terminal.send(b"\x11")
        assert terminal.end() == 0
    finally:
        terminal.close()


def test_from_a_browser_nothing_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual_serve:driver")
    assert tui._rates() is None
    with ExitStack() as stack:
        opener = tui._CaptureOpener(stack, Config(), frozenset(), {}, Keys(), {"interfaces": ()})
        with pytest.raises(CaptureError, match="the screens in a browser cannot capture"):
            opener.interfaces("-i lo")


def test_what_is_typed_on_the_start_screen_is_as_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEXTUAL_DRIVER", raising=False)
    given = {"interfaces": (), "capture_filter": "tcp", "snap_length": 96, "allow_root": True}
    asked: list[dict[str, Any]] = []
    with ExitStack() as stack:
        opener = tui._CaptureOpener(stack, Config(), frozenset(), {}, Keys(), given)
        monkeypatch.setattr(opener, "live", asked.append)
        opener.interfaces("-i lo -i eth0 -f 'tcp port 9092'")
        assert asked[0]["interfaces"] == ("lo", "eth0")
        assert (asked[0]["capture_filter"], asked[0]["snap_length"], asked[0]["allow_root"]) == (
            "tcp port 9092",
            96,
            True,
        )
        for typed, words in (
            ("-i", "requires an argument"),
            ("-i lo tcp port 9092", "unexpected extra argument"),
            ("-i 'lo", "No closing quotation"),
            ("-i ssh://host/eth0", "kdissect tui -i ssh://host/eth0"),
            ("-i lo --wat", "No such option"),
        ):
            with pytest.raises(CaptureError, match=words):
                opener.interfaces(typed)
    assert len(asked) == 1
