"""How much of its disk a spool may take, and which of its files may go.

A file may go when it was decoded: the decoder removes it, or says that it is done with it. What was not
decoded never goes to make room for what comes; that is lost, counted and told.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from shutil import disk_usage
from typing import NamedTuple

from kdissect.present.form import size

LARGEST_FILE, SMALLEST_FILE = 64 << 20, 64 << 10
"""Bytes at which a file is full, however much room there is."""
FILES = 8
"""About so many files fill the room that there is: what was decoded is freed file by file."""
_LOOK_SECONDS = 0.1


class SpoolSize(NamedTuple):
    """How much is wanted."""

    most: int | None = None
    """Bytes; None is half of what is free on the disk."""
    kept: int = 0
    """Bytes of files that stay though they were decoded, until their room is needed."""


class SpoolRoom:
    """The room of one spool, whose complete files it keeps account of.

    :param folder: where the spool is.
    :param decoded: tells how many files were decoded, those that are gone among them.
    """

    def __init__(self, folder: str, wanted: SpoolSize, decoded: Callable[[], int]) -> None:
        self._folder, self._wanted, self._decoded = folder, wanted, decoded
        self._files: deque[tuple[str, int]] = deque()
        """Complete ones that are still there: path and bytes."""
        self._bytes = 0
        """Of those."""
        self._gone = 0
        self._look_at = float("-inf")
        self._budget = 0

    @property
    def file_bytes(self) -> int:
        """At how many bytes a file is full."""
        return min(LARGEST_FILE, max(SMALLEST_FILE, self._budget // FILES))

    def look(self, now: float, current: int) -> None:
        """See how much there is; what else fills the disk leaves less.

        :param now: seconds of a clock that is never set.
        :param current: bytes of the file that is being written.
        """
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        self._forget()
        with suppress(OSError):  # then it is what it was
            there = disk_usage(self._folder).free + self._bytes + current
            most = self._wanted.most
            self._budget = there // 2 if most is None else min(most, there)
        if self._bytes > self._wanted.kept:
            self._remove(self._bytes - self._wanted.kept)

    def complete(self, path: str, count: int) -> None:
        """Nothing more comes to a file of so many bytes."""
        self._files.append((path, count))
        self._bytes += count

    def takes(self, count: int) -> bool:
        """Whether there is room for so many bytes beside the complete files, of which some may go for it."""
        if self._bytes + count > self._budget:
            self._forget()
            self._remove(self._bytes + count - self._budget)
        return self._bytes + count <= self._budget

    def make(self, count: int) -> bool:
        """The disk is full: remove what may go, so many bytes at least if there are. Gives whether anything
        went."""
        before = self._bytes
        self._forget()
        self._remove(count)
        return self._bytes < before

    def _forget(self) -> None:
        """Leave out of account what the decoder has removed."""
        while self._files and not os.path.exists(self._files[0][0]):
            self._drop()

    def _remove(self, count: int) -> None:
        decoded = self._decoded()
        until = self._bytes - count
        while self._files and self._gone < decoded and self._bytes > until:
            try:
                with suppress(FileNotFoundError):
                    os.unlink(self._files[0][0])
            except OSError:  # on Windows, as long as somebody reads it
                return
            self._drop()

    def _drop(self) -> None:
        self._bytes -= self._files.popleft()[1]
        self._gone += 1

    def why_full(self) -> str:
        """Why there is no room, in words."""
        return f"{self._folder}: the spool is full ({size(self._budget)})"
