"""``kdissect tui``: what it says where there can be no screens, and the screens in a real terminal."""

from __future__ import annotations

import os
import pty
import select
import struct
import subprocess
import sys
import time
from fcntl import ioctl
from termios import TIOCSWINSZ

import pytest

from kdissect.cli import USAGE
from kdissect.cli import tui as tui_command
from tests.cli.run import CAPTURES, ROOT, run, spawn

CAPTURE = CAPTURES / "errors.pcapng"


def test_no_terminal_is_told_in_one_line() -> None:
    ran = spawn("tui", CAPTURE)
    assert (ran.code, ran.out) == (USAGE, b"")
    assert ran.err == "kdissect: the screens need a terminal; kdissect read prints to anything\n"


def test_what_is_not_installed_is_told(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tui_command, "NEEDED", ("textual", "numpy", "not_there"))
    ran = run(capsysbinary, "tui", CAPTURE)
    assert (ran.code, ran.err) == (
        USAGE,
        "kdissect: the screens need not_there: pip install 'kdissect[tui]'\n",
    )


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_a_file_is_needed(capsysbinary: pytest.CaptureFixture[bytes], arguments: tuple[str, ...]) -> None:
    assert run(capsysbinary, "tui", *arguments).code == USAGE


_ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}


class Terminal:
    """The command in a terminal of its own."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        self.ours, theirs = pty.openpty()
        ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kdissect", "tui", *map(str, arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=ROOT,
            env={**_ENVIRONMENT, "TERM": "xterm-256color", **environment},
            start_new_session=True,
        )
        os.close(theirs)
        self.output = b""

    def until(self, text: bytes, seconds: float = 30) -> None:
        """Read until something was written."""
        end = time.monotonic() + seconds
        while text not in self.output:
            assert time.monotonic() < end, self.output[-2000:]
            self._read()

    def _read(self) -> bool:
        if select.select([self.ours], [], [], 0.1)[0]:
            try:
                piece = os.read(self.ours, 65_536)
            except OSError:  # the other end is closed
                return False
            self.output += piece
            return bool(piece)
        return self.process.poll() is None

    def close(self) -> int:
        """Read to the end; gives the exit code."""
        while self._read():
            pass
        os.close(self.ours)
        return self.process.wait(30)


@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}], ids=["colour", "no colour"])
def test_the_screens_come_and_go(environment: dict[str, str]) -> None:
    terminal = Terminal(CAPTURE, **environment)
    terminal.until(b"52 exchanges")
    terminal.until(b"RequestHeader")
    os.write(terminal.ours, b"q")
    assert terminal.close() == 0
    assert b"Traceback" not in terminal.output


@pytest.mark.parametrize(
    ("arguments", "environment", "said", "code"),
    [
        ((CAPTURES / "README.md",), {}, b"not a capture", 3),
        ((CAPTURES / "nothing.pcap",), {}, b"nothing.pcap", 3),
        ((CAPTURE,), {"TERM": "dumb"}, b"cannot draw on TERM=dumb", 2),
        ((CAPTURE, "--theme", "textual-lihgt"), {}, b"textual-light", 2),
    ],
    ids=["no capture", "no file", "dumb terminal", "no theme"],
)
def test_what_is_wrong_is_told_before_the_screens(
    arguments: tuple[object, ...], environment: dict[str, str], said: bytes, code: int
) -> None:
    terminal = Terminal(*arguments, **environment)
    assert terminal.close() == code
    assert said in terminal.output
    assert terminal.output.count(b"\n") == 1
