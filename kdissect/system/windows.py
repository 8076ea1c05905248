"""Windows. :mod:`kdissect.system.posix` describes the names; docstrings here give only the differences."""

from __future__ import annotations

import io
import mmap
import msvcrt
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import IO, Any, ClassVar, cast

assert sys.platform == "win32"

OPENING = os.O_BINARY | os.O_NOINHERIT
INTERRUPTS = (signal.SIGINT, signal.SIGBREAK)
"""Ctrl-C and Ctrl-Break. Closing the window sends the second."""
ENDING = (*INTERRUPTS, signal.SIGTERM)
HANGING_UP: tuple[signal.Signals, ...] = ()
_LOCKED_AT = 1 << 30
"""The offset of the byte that is locked. It is after the end of the file, because other processes cannot read
locked bytes."""
_moved = Lock()
"""Held while a file's position is moved temporarily."""


@contextmanager
def _moved_to(descriptor: int, place: int) -> Iterator[None]:
    with _moved:
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, place, os.SEEK_SET)
        try:
            yield
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)


def read_at(descriptor: int, count: int, place: int, /) -> bytes:
    with _moved_to(descriptor, place):
        return os.read(descriptor, count)


def write_at(descriptor: int, data: bytes, place: int, /) -> int:
    with _moved_to(descriptor, place):
        return os.write(descriptor, data)


@contextmanager
def signals_held() -> Iterator[None]:
    """Do nothing: signals cannot be blocked here."""
    yield


def take_signals() -> None:
    """Do nothing: signals are not blocked here."""


def lock(descriptor: int) -> None:
    with _moved_to(descriptor, _LOCKED_AT):
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)


def try_lock(descriptor: int) -> bool:
    with _moved_to(descriptor, _LOCKED_AT):
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True


def is_locked(descriptor: int) -> bool:
    with _moved_to(descriptor, _LOCKED_AT):
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return True
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        return False


class _NamedFile(io.BufferedRandom):
    """A temporary file that is opened elsewhere by its name, and removed when it is closed. A file that
    Windows removes by itself cannot be opened twice. The file stays if this process is killed, or if another
    process has it open."""

    _paths: ClassVar[dict[int, str]] = {}
    """The paths of the open files, by descriptor."""

    def __init__(self, suffix: str, folder: str | None = None) -> None:
        descriptor, self._path = tempfile.mkstemp(prefix="kdissect-", suffix=suffix, dir=folder)
        super().__init__(io.FileIO(descriptor, "r+b"))
        self._paths[descriptor] = self._path

    @property
    def name(self) -> str:
        return self._path

    def close(self) -> None:
        if self.closed:
            return
        del self._paths[self.fileno()]
        super().close()
        with suppress(OSError):
            os.unlink(self._path)

    @classmethod
    def path_of(cls, descriptor: int) -> str:
        return cls._paths[descriptor]


class _ByName:
    """A file that is opened again in the other process, so that it has a position of its own there."""

    def __init__(self, path: str) -> None:
        self._path = path

    def detach(self) -> int:
        return os.open(self._path, os.O_RDWR | OPENING)


def temporary_file(suffix: str) -> IO[bytes]:
    return cast(IO[bytes], _NamedFile(suffix))


def named_file(suffix: str, folder: str | None = None) -> IO[bytes]:
    return cast(IO[bytes], _NamedFile(suffix, folder))


def handed_on(descriptor: int) -> Any:
    """Accepts only a :func:`temporary_file`."""
    return _ByName(_NamedFile.path_of(descriptor))


def anonymous_memory(size: int) -> mmap.mmap:
    """Unwritten parts count as used, but take no real memory."""
    return mmap.mmap(-1, size)


def give_way(steps: int = 1) -> None:
    """Do nothing: processes keep their priority here."""


def leave_no_core() -> None:
    """Do nothing: Windows writes no core files unless the administrator wants them."""
