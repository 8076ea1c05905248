"""What a capture process and whoever follows it agree on: a folder with two files.

    journal   JSON lines, one for each file of the spool, in order; locked as long as the capture goes on,
              so that the end of the capture process is seen however it came
    status    JSON in a file that never grows, so that it can be written when the disk is full

Only one process writes; any number may read, and none needs to be there.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from kdissect.system import OPENING, is_locked, lock, write_at

_STATUS_BYTES = 1 << 15
"""More than ten notes take, were all of it escapes."""
MOST_NOTES = 10
"""Notes that a status holds; of more, the oldest are forgotten."""
LONGEST_NOTE = 300
"""Characters."""


class Status(NamedTuple):
    """How a capture goes."""

    received: int = 0
    """Packets that passed the filter."""
    dropped: int = 0
    """Those of them that the system dropped: the ring was full."""
    lost: int = 0
    """Those of them that could not be written."""
    written: int = 0
    """Those that are in the spool."""
    bytes: int = 0
    """Of the spool, files that were removed included."""
    files: int = 0
    """How many were begun."""
    fill: float = 0.0
    """Of the ring: the share that waits to be written."""
    said: int = 0
    """How many notes there were."""
    notes: tuple[str, ...] = ()
    """The latest of them, each a line: the interface went down, the disk is full …"""
    reason: str | None = None
    """Why the capture is over, once it is."""


class JournalWriter:
    """The side of the capture process.

    :raises OSError: the files cannot be written.
    """

    def __init__(self, folder: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | OPENING
        self._journal = os.open(_journal(folder), flags | os.O_APPEND, 0o600)
        lock(self._journal)
        self._status = os.open(_status(folder), flags, 0o600)
        self.status(Status())

    def began(self, path: str, before: int = 0) -> None:
        """A file of the spool was begun, ``before`` which so many packets are in others."""
        os.write(self._journal, json.dumps([path, before]).encode() + b"\n")

    def status(self, status: Status) -> None:
        """How the capture goes now."""
        notes = tuple(note[:LONGEST_NOTE] for note in status.notes[-MOST_NOTES:])
        text = json.dumps(status._replace(notes=notes)._asdict(), ensure_ascii=False)
        write_at(self._status, text.encode(errors="backslashreplace").ljust(_STATUS_BYTES), 0)

    def close(self) -> None:
        """The capture is over."""
        os.close(self._status)
        os.close(self._journal)


class Journal:
    """The side of who follows.

    :raises OSError: there is none in this folder.
    """

    def __init__(self, folder: str) -> None:
        self._file = open(_journal(folder), "rb")  # noqa: SIM115 - closed with this
        self._folder = folder
        self._line = b""

    def next_file(self) -> tuple[str, int] | None:
        """The path of the next file of the spool, and how many packets are before it; None if none was begun
        yet."""
        self._line += self._file.readline()
        if not self._line.endswith(b"\n"):
            return None
        line, self._line = self._line, b""
        path, before = json.loads(line)
        return path, before

    def is_over(self) -> bool:
        """Whether the capture process has ended; what it wrote is all there then."""
        return not is_locked(self._file.fileno())

    def close(self) -> None:
        """Close the files."""
        self._file.close()


def status_of(folder: str) -> Status | None:
    """How the capture goes that has this folder; None if that cannot be told now."""
    try:
        with open(_status(folder), "rb") as file:
            said: dict[str, Any] = json.loads(file.read(_STATUS_BYTES))
    except (OSError, ValueError):  # gone, or just being written
        return None
    said["notes"] = tuple(said["notes"])
    return Status(**said)


def _journal(folder: str) -> str:
    return os.path.join(folder, "journal")


def _status(folder: str) -> str:
    return os.path.join(folder, "status")
