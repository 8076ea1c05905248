"""The terminal. Keys come from it even if standard input is a capture, and the screens end when it goes."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread

from kdissect.system import ENDING, HANGING_UP, call_at_signals

PATIENCE_SECONDS = 2.0
"""The most seconds that the screens may take to end."""
SIGNALLED = 128
"""The base of exit codes after a signal, as in shells: the number of the signal is added."""


def keyboard_for_stdin() -> int:
    """Replace standard input by the terminal, because Textual reads keys from there; return the descriptor of
    the old standard input.

    :raises OSError: there is no terminal.
    """
    terminal = os.open("/dev/tty", os.O_RDWR)
    piped = os.dup(0)
    os.dup2(terminal, 0)
    os.close(terminal)
    return piped


def end_with_signals(end: Callable[[int], None]) -> None:
    """Call ``end`` with an exit code when a signal asks the process to end. The running event loop calls it,
    so that the terminal is restored. Signals that were ignored at the start stay ignored."""
    loop = asyncio.get_running_loop()
    heard = [each for each in (*ENDING, *HANGING_UP) if signal.getsignal(each) is not signal.SIG_IGN]
    call_at_signals(loop, heard, lambda number: end(SIGNALLED + number))


def suspend() -> bool:
    """Suspend all processes of the pipeline, as a terminal does at Ctrl-Z; return whether that is possible. A
    process without a shell that could resume it would sleep for ever: it shares its group with the leader of
    its session."""
    if sys.platform == "win32" or os.getpgrp() == os.getsid(0):
        return False
    os.killpg(os.getpgrp(), signal.SIGTSTP)
    return True


def run_in_terminal(command: Sequence[str]) -> int:
    """Run a program that owns the terminal until it ends; return its exit code. The code is negative if a
    signal ended the program.

    When the user suspends the program, this process stops too, but later. The shell takes the terminal as
    soon as this process has stopped, and the program must restore the terminal before.

    :raises OSError: it cannot be started.
    """
    program = subprocess.Popen(command)
    if sys.platform == "win32":
        return program.wait()
    before = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        _, status = os.waitpid(program.pid, os.WUNTRACED)
        while os.WIFSTOPPED(status):
            os.kill(os.getpid(), signal.SIGSTOP)
            _, status = os.waitpid(program.pid, os.WUNTRACED)
    finally:
        signal.signal(signal.SIGTSTP, before)
    program.returncode = os.waitstatus_to_exitcode(status)
    return program.returncode


@contextmanager
def without_echo() -> Iterator[None]:
    """Disable the terminal's echo of keys, until other screens that start have taken it over."""
    if sys.platform == "win32" or not os.isatty(0):
        yield
        return
    import termios

    before = None
    with suppress(termios.error):  # the terminal may be gone
        before = termios.tcgetattr(0)
        silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
        termios.tcsetattr(0, termios.TCSANOW, silent)
    try:
        yield
    finally:
        if before is not None:
            with suppress(termios.error):
                termios.tcsetattr(0, termios.TCSANOW, before)


def end_with_terminal(end: Callable[[], None]) -> None:
    """Call ``end``, from another thread, when the terminal is gone. If that does not end the process, end it.

    The system sends SIGHUP then, but the process may ignore it (``nohup``). Reading keys from a terminal that
    is gone returns nothing, again and again. That would keep a processor busy for ever.
    """
    if sys.platform != "win32" and os.isatty(0):
        Thread(target=_wait, args=(end,), daemon=True, name="hang-up").start()


def _wait(end: Callable[[], None]) -> None:
    if sys.platform == "win32":
        raise NotImplementedError
    poll = select.poll()
    poll.register(0, 0)  # no events except that it is gone, which always comes
    poll.poll()
    with suppress(Exception):  # the screens may be ending already
        end()
    time.sleep(PATIENCE_SECONDS)
    os._exit(SIGNALLED + HANGING_UP[0])
