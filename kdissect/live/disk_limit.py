"""How much of its disk a spool may take, and which of its files may be removed.

A file may be removed when it was decoded: the decoder removes it, or reports that it has read it. Files that
were not decoded are never removed to make room for new packets. The new packets are lost instead, counted and
reported.
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
"""The largest and the smallest size at which a file is full, however much room there is."""
FILES = 8
"""About how many files fill the room: decoded packets are removed one file at a time."""
_LOOK_SECONDS = 0.1


class SpoolSize(NamedTuple):
    """The size of the spool that the user wants."""

    most: int | None = None
    """The most bytes; None means half of the free space on the disk."""
    kept: int = 0
    """Bytes of decoded files that stay until their room is needed."""


class SpoolRoom:
    """The room of one spool, and its complete files.

    :param folder: the folder of the spool.
    :param decoded: returns how many files were decoded, including those that were removed.
    """

    def __init__(self, folder: str, wanted: SpoolSize, decoded: Callable[[], int]) -> None:
        self._folder, self._wanted, self._decoded = folder, wanted, decoded
        self._files: deque[tuple[str, int]] = deque()
        """The complete files that still exist: path and bytes."""
        self._bytes = 0
        """The total size of these files."""
        self._gone = 0
        self._look_at = float("-inf")
        self._budget = 0

    @property
    def file_bytes(self) -> int:
        """The size at which a file is full."""
        return min(LARGEST_FILE, max(SMALLEST_FILE, self._budget // FILES))

    def look(self, now: float, current: int) -> None:
        """Measure the room; other files on the disk make it smaller.

        :param now: seconds of a clock that is never set.
        :param current: bytes of the file that is being written.
        """
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        self._forget()
        with suppress(OSError):  # the last value stays
            there = disk_usage(self._folder).free + self._bytes + current
            most = self._wanted.most
            self._budget = there // 2 if most is None else min(most, there)
        if self._bytes > self._wanted.kept:
            self._remove(self._bytes - self._wanted.kept)

    def complete(self, path: str, count: int) -> None:
        """Add a file that is complete, with its size."""
        self._files.append((path, count))
        self._bytes += count

    def takes(self, count: int) -> bool:
        """Whether there is room for ``count`` bytes besides the complete files. Decoded files are removed for
        it."""
        if self._bytes + count > self._budget:
            self._forget()
            self._remove(self._bytes + count - self._budget)
        return self._bytes + count <= self._budget

    def make(self, count: int) -> bool:
        """Remove decoded files because the disk is full, at least ``count`` bytes if possible. Return whether
        any file was removed."""
        before = self._bytes
        self._forget()
        self._remove(count)
        return self._bytes < before

    def _forget(self) -> None:
        """Drop files from the account that the decoder has removed."""
        while self._files and not os.path.exists(self._files[0][0]):
            self._drop()

    def _remove(self, count: int) -> None:
        decoded = self._decoded()
        until = self._bytes - count
        while self._files and self._gone < decoded and self._bytes > until:
            try:
                with suppress(FileNotFoundError):
                    os.unlink(self._files[0][0])
            except OSError:  # on Windows, while another process reads it
                return
            self._drop()

    def _drop(self) -> None:
        self._bytes -= self._files.popleft()[1]
        self._gone += 1

    def why_full(self) -> str:
        """Why there is no room, in words."""
        return f"{self._folder}: the spool is full ({size(self._budget)})"
