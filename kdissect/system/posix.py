"""Linux and macOS."""

from __future__ import annotations

import fcntl
import mmap
import os
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

assert sys.platform != "win32"

OPENING = os.O_CLOEXEC
"""For ``os.open``: bytes as they are, and for this process only."""
INTERRUPTS = (signal.SIGINT,)
"""What comes by keys, to all processes of a terminal."""
ENDING = (*INTERRUPTS, signal.SIGTERM)
"""What a user ends a command with."""
HANGING_UP = (signal.SIGHUP,)
"""What comes when the terminal goes."""
_NICE = 5

read_at = os.pread
"""Bytes from a place of a file, by descriptor, count and place; its position stays."""
write_at = os.pwrite
"""Write to a place of a file, by descriptor, bytes and place; its position stays."""


@contextmanager
def signals_held() -> Iterator[None]:
    """In here what would end this process waits, and a process that is started here begins with that waiting:
    it cannot be met half made. It lets them come by :func:`take_signals`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (*ENDING, *HANGING_UP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def take_signals() -> None:
    """For a process that was started with its signals held, when it knows what to do them."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*ENDING, *HANGING_UP))


def lock(descriptor: int) -> None:
    """Lock a file until it is closed, or this process has ended, however that came about.

    :raises OSError: it cannot be locked.
    """
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_lock(descriptor: int) -> bool:
    """Lock a file as :func:`lock` does, but do not wait: False where somebody else has locked it.

    :raises OSError: it cannot be locked.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(descriptor: int) -> bool:
    """Whether a file is locked that was opened elsewhere."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def temporary_file(suffix: str) -> IO[bytes]:
    """A file that :func:`handed_on` takes, and that is gone when nobody has it open.

    :raises OSError: it cannot be made.
    """
    import tempfile

    return tempfile.TemporaryFile(prefix="kdissect-", suffix=suffix)


def named_file(suffix: str, folder: str | None = None) -> IO[bytes]:
    """A file that can be opened by its ``name`` too, until it is closed.

    :param folder: where it is made; None for where temporary files are.
    :raises OSError: it cannot be made.
    """
    import tempfile

    return tempfile.NamedTemporaryFile(prefix="kdissect-", suffix=suffix, dir=folder)


def handed_on(descriptor: int) -> Any:
    """A descriptor on its way to a process that is being started. What arrives there has ``detach()``, which
    gives the descriptor of the same file."""
    from multiprocessing.reduction import DupFd

    return DupFd(descriptor)


def anonymous_memory(size: int) -> mmap.mmap:
    """Memory of this process, of which what is not written to takes none."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def give_way(steps: int = 1) -> None:
    """Let other processes go first; with more steps, those too that give way themselves."""
    with suppress(OSError):
        os.nice(steps * _NICE)


def leave_no_core() -> None:
    """Leave no picture of memory behind a crash: it would hold what was captured."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
