"""The terminal: keys come from it even when standard input is a capture, and without it the screens end."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

PATIENCE_SECONDS = 2.0
"""How long the screens may take to end."""
HUNG_UP = 129
"""The exit code of who was ended by SIGHUP, as shells have it."""


def keyboard_for_stdin() -> int:
    """Put the terminal in the place of standard input, where Textual reads keys; gives the descriptor of what
    standard input was.

    :raises OSError: there is no terminal.
    """
    terminal = os.open("/dev/tty", os.O_RDWR)
    piped = os.dup(0)
    os.dup2(terminal, 0)
    os.close(terminal)
    return piped


def end_with_terminal(end: Callable[[], None]) -> None:
    """Call ``end``, from another thread, when the terminal is gone, and end the process if that does not.

    The system sends SIGHUP then, which who runs us may have told us to ignore (``nohup``); and reading keys
    from a terminal that is gone gives nothing, again and again, which would keep a processor busy for ever.
    """
    if os.isatty(0) and hasattr(select, "poll"):
        Thread(target=_wait, args=(end,), daemon=True, name="hang-up").start()


def _wait(end: Callable[[], None]) -> None:
    poll = select.poll()
    poll.register(0, 0)  # no more than that it is gone, which is always told
    poll.poll()
    with suppress(Exception):  # the screens may be ending already
        end()
    time.sleep(PATIENCE_SECONDS)
    os._exit(HUNG_UP)
