"""kdissect in a pseudo-terminal: what a user's terminal would get, and the keys that it would send."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from fcntl import ioctl
from pathlib import Path
from threading import Thread
from typing import Any

from tests.cli.run import ROOT

LEAVE_ALTERNATE_SCREEN, SHOW_CURSOR = b"\x1b[?1049l", b"\x1b[?25h"

_ENVIRONMENT = {
    name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
}


class Terminal:
    """A command in a terminal of its own, which is its controlling terminal.

    :param stdin: what is piped into it; None leaves the terminal there.
    :param script: a program of Python's that is run instead of kdissect.
    :param command: a whole command line that is run instead of it.
    """

    def __init__(
        self,
        *arguments: object,
        stdin: int | None = None,
        ignore: tuple[signal.Signals, ...] = (),
        script: Path | None = None,
        command: Sequence[str] = (),
        **environment: Any,
    ) -> None:
        self.ours, self.theirs = pty.openpty()
        ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.before = termios.tcgetattr(self.theirs)

        def prepare() -> None:
            ioctl(1, termios.TIOCSCTTY, 0)
            for number in ignore:
                signal.signal(number, signal.SIG_IGN)

        program = ["-m", "kdissect"] if script is None else [str(script)]
        self.process = subprocess.Popen(
            command or [sys.executable, *program, *map(str, arguments)],
            stdin=self.theirs if stdin is None else stdin,
            stdout=self.theirs,
            stderr=self.theirs,
            cwd=ROOT,
            env={**_ENVIRONMENT, "TERM": "xterm-256color", **environment},
            start_new_session=True,
            preexec_fn=prepare,  # noqa: PLW1509 - it does no more than two calls of the system
        )
        self.output = b""

    def until(self, text: bytes, seconds: float = 60) -> None:
        """Read until something was written, in whatever colours."""
        end = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < end, self.output[-2000:]
            assert self._read() or self.process.poll() is None, self.output[-2000:]

    @property
    def text(self) -> bytes:
        """What was written since a key was pressed, without colours and movements."""
        return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", self.output)

    def _read(self) -> bool:
        if not select.select([self.ours], [], [], 0.1)[0]:
            return False
        piece = os.read(self.ours, 65_536)
        self.output += piece
        return bool(piece)

    def read_on(self) -> None:
        """Take in whatever is written from now on, as a terminal does, and forget it."""

        def take() -> None:
            with suppress(OSError):  # it is shut
                while os.read(self.ours, 65_536):
                    pass

        Thread(target=take, daemon=True).start()

    def send(self, keys: bytes) -> None:
        """Press keys; what was written before is forgotten."""
        self.output = b""
        os.write(self.ours, keys)

    def resize(self, columns: int, lines: int) -> None:
        """Make the terminal another size, as a window manager does."""
        self.output = b""
        ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    @property
    def modes(self) -> list[Any]:
        """How the terminal is set."""
        return termios.tcgetattr(self.theirs)

    def children(self) -> list[int]:
        """The processes that it started, by number."""
        tasks = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(word) for task in tasks for word in task.read_text().split()]

    def end(self, seconds: float = 60) -> int:
        """Read to the end; gives the exit code."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < end, self.output[-2000:]
            self._read()
        while self._read():
            pass
        return self.process.returncode

    def close(self) -> None:
        """Let go of everything."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for descriptor in (self.ours, self.theirs):
            if descriptor >= 0:
                os.close(descriptor)
        self.ours = self.theirs = -1

    def hang_up(self) -> None:
        """The terminal's window is shut."""
        os.close(self.theirs)
        os.close(self.ours)
        self.ours = self.theirs = -1


def end_with_q(terminal: Terminal, unsaved: bool = False) -> bytes:
    """End the screens; the terminal is then as it was. Gives what was written."""
    assert terminal.modes != terminal.before
    if unsaved:
        for presses in range(5):  # one that comes while a page is being put up may be lost on a busy machine
            terminal.send(b"q")
            with suppress(AssertionError):
                terminal.until(b"the live capture is not saved: w saves, q quits", 15)
                break
            if terminal.process.poll() is not None:
                assert presses, "it ended without asking"
                return ended(terminal, 0)  # it had asked, in words that were drawn in parts
    terminal.send(b"q")
    return ended(terminal, 0)


def ended(terminal: Terminal, code: int) -> bytes:
    """The screens have ended, and the terminal is as it was. Gives what was written."""
    assert terminal.end() == code
    assert terminal.modes == terminal.before
    assert LEAVE_ALTERNATE_SCREEN in terminal.output
    assert terminal.output.rindex(SHOW_CURSOR) > terminal.output.rindex(LEAVE_ALTERNATE_SCREEN)
    assert b"Traceback" not in terminal.output
    return terminal.output
