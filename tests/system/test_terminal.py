"""A program that has the terminal for itself is waited for, and stopped with us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from kdissect.system.terminal import run_in_terminal, without_echo

if sys.platform == "win32":
    pytest.skip("there are no signals that stop a process", allow_module_level=True)

PROGRAM = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP); os._exit(3)"
"""Suspends itself, as an editor does, and goes on."""
OURS = f"""
import os, sys
from kdissect.system.terminal import run_in_terminal
os._exit(run_in_terminal([sys.executable, "-c", {PROGRAM!r}]))
"""


def test_the_exit_code_comes_back() -> None:
    before = signal.getsignal(signal.SIGTSTP)
    assert run_in_terminal(["false"]) == 1
    assert run_in_terminal(["sh", "-c", "kill -9 $$"]) == -9
    assert signal.getsignal(signal.SIGTSTP) == before
    with pytest.raises(FileNotFoundError):
        run_in_terminal(["no-such-program"])


def test_keys_are_not_written_until_the_other_screens_read_them() -> None:
    import pty
    import termios

    ours, theirs = pty.openpty()
    stdin = os.dup(0)
    os.dup2(theirs, 0)
    try:
        with without_echo():
            assert not termios.tcgetattr(theirs)[3] & termios.ECHO
        assert termios.tcgetattr(theirs)[3] & termios.ECHO
        with pytest.raises(ZeroDivisionError), without_echo():
            raise ZeroDivisionError
        assert termios.tcgetattr(theirs)[3] & termios.ECHO
    finally:
        os.dup2(stdin, 0)
        for each in (ours, theirs, stdin):
            os.close(each)


def test_a_terminal_that_is_gone_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import termios

    def gone(*_: object) -> None:
        raise termios.error(5, "Input/output error")

    monkeypatch.setattr(os, "isatty", lambda _: True)
    monkeypatch.setattr(termios, "tcgetattr", gone)
    with without_echo():
        pass
    monkeypatch.setattr(termios, "tcgetattr", lambda _: [0] * 7)
    monkeypatch.setattr(termios, "tcsetattr", gone)
    with without_echo():
        pass


def test_it_is_stopped_before_us_and_goes_on_with_us() -> None:
    ours = subprocess.Popen([sys.executable, "-c", OURS], process_group=0)
    _, status = os.waitpid(ours.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.killpg(ours.pid, signal.SIGCONT)
    assert ours.wait(30) == 3


def test_the_key_that_suspends_stops_us_only_after_the_program() -> None:
    program = "import signal; signal.signal(signal.SIGTSTP, lambda *_: print('asked', flush=True)); "
    program += "print('there', flush=True); input(); print('done')"
    text = OURS.replace(repr(PROGRAM), repr(program))
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", text], stdin=pipe, stdout=pipe, process_group=0) as ours:
        assert ours.stdin is not None
        assert ours.stdout is not None
        assert ours.stdout.readline() == b"there\n"
        os.killpg(ours.pid, signal.SIGTSTP)
        assert ours.stdout.readline() == b"asked\n"
        assert os.waitpid(ours.pid, os.WUNTRACED | os.WNOHANG) == (0, 0)
        ours.stdin.write(b"\n")
        ours.stdin.close()
        assert ours.stdout.readline() == b"done\n"
