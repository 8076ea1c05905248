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
"""Flags for ``os.open``: binary, and not inherited by other processes."""
INTERRUPTS = (signal.SIGINT,)
"""Signals that keys send to all processes of a terminal."""
ENDING = (*INTERRUPTS, signal.SIGTERM)
"""Signals with which a user ends a command."""
HANGING_UP = (signal.SIGHUP,)
"""Signals that come when the terminal goes."""
_NICE = 5

read_at = os.pread
"""Read bytes at an offset of a file: descriptor, count and offset. Its position does not change."""
write_at = os.pwrite
"""Write bytes at an offset of a file: descriptor, bytes and offset. Its position does not change."""


@contextmanager
def signals_held() -> Iterator[None]:
    """Block the signals that would end this process. A process that is started inside inherits that, so that
    no signal hits it before it is ready. It unblocks them by :func:`take_signals`."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (*ENDING, *HANGING_UP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def take_signals() -> None:
    """Unblock signals, in a process that was started with blocked signals, once it can handle them."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (*ENDING, *HANGING_UP))


def lock(descriptor: int) -> None:
    """Lock a file until it is closed, or until this process ends in any way.

    :raises OSError: it cannot be locked.
    """
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_lock(descriptor: int) -> bool:
    """Lock a file like :func:`lock`, but without waiting. Return False if another process has locked it.

    :raises OSError: it cannot be locked.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(descriptor: int) -> bool:
    """Whether another open file has locked the same file."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    return False


def temporary_file(suffix: str) -> IO[bytes]:
    """A file that :func:`handed_on` accepts, and that is removed when nobody has it open.

    :raises OSError: it cannot be made.
    """
    import tempfile

    return tempfile.TemporaryFile(prefix="kdissect-", suffix=suffix)


def named_file(suffix: str, folder: str | None = None) -> IO[bytes]:
    """A file that can also be opened by its ``name``, until it is closed.

    :param folder: its folder; None for the folder of temporary files.
    :raises OSError: it cannot be made.
    """
    import tempfile

    return tempfile.NamedTemporaryFile(prefix="kdissect-", suffix=suffix, dir=folder)


def handed_on(descriptor: int) -> Any:
    """A descriptor in a form that can be passed to a process that is being started. In that process,
    ``detach()`` of the object gives the descriptor of the same file."""
    from multiprocessing.reduction import DupFd

    return DupFd(descriptor)


def anonymous_memory(size: int) -> mmap.mmap:
    """Memory of this process. Unwritten parts of it use no memory."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def give_way(steps: int = 1) -> None:
    """Give other processes precedence; with more steps, also those that give precedence themselves."""
    with suppress(OSError):
        os.nice(steps * _NICE)


def leave_no_core() -> None:
    """Disable core dumps, because they would contain captured bytes."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
