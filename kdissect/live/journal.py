"""How a capture process and its readers communicate: a folder with three files.

    journal   JSON lines: the files of the spool, in order, and gaps between packets; locked while the capture
              runs, so that readers see the end of the capture process, even if it was killed
    status    JSON in a file that never grows, so that it can be written when the disk is full
    done      how many files of the spool were decoded, if they are to stay until their room is needed

The capture process writes the first two, the decoder the third. Any number of processes may read, and no
reader is needed. Entries must fit into the journal when the disk is full. So the file always ends with a
reserve of zeros.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, NamedTuple

from kdissect.system import OPENING, is_locked, lock, read_at, write_at

_STATUS_BYTES = 1 << 15
"""The size of the status file: larger than ten notes that consist of escapes only."""
_RESERVE, _LEAST_RESERVE = 1 << 14, 1 << 13
"""The bytes by which a journal grows, and the remaining bytes at which it grows."""
_LINE_BYTES = 1 << 15
"""More than the bytes of any line."""
_DONE_BYTES = 20
MOST_NOTES = 10
"""The most notes of a status; the oldest are dropped."""
LONGEST_NOTE = 300
"""The most characters of a note."""


class Status(NamedTuple):
    """The state of a capture."""

    received: int = 0
    """Packets that passed the filter."""
    dropped: int = 0
    """Received packets that the system dropped: the ring was full."""
    lost: int = 0
    """Received packets that could not be written."""
    written: int = 0
    """Received packets that are in the spool."""
    bytes: int = 0
    """The bytes of the spool, including files that were removed."""
    files: int = 0
    """The number of files begun."""
    fill: float = 0.0
    """The share of the ring that waits to be written."""
    said: int = 0
    """The number of notes so far."""
    notes: tuple[str, ...] = ()
    """The latest notes, each a line: the interface went down, the disk is full …"""
    reason: str | None = None
    """Why the capture ended, once it has."""


class Begun(NamedTuple):
    """A file of the spool."""

    path: str
    before: int
    """The number of packets in the files before it."""


class Complete(NamedTuple):
    """The latest file is complete although no other has begun: there is no room for another."""


class Lost(NamedTuple):
    """Packets that could not be written. Some packets between the first and the last of them may have been
    written."""

    packets: int
    before: int
    """The number of packets written before the first of them."""
    first_ns: int
    last_ns: int
    why: str


class Gone(NamedTuple):
    """An interface has vanished."""

    name: str
    before: int
    """The number of packets, of all interfaces, that were written before."""
    time_ns: int


Entry = Begun | Complete | Lost | Gone
_ENTRIES: dict[str, type[Entry]] = {"begun": Begun, "complete": Complete, "lost": Lost, "gone": Gone}
_NAMES = {kind: name for name, kind in _ENTRIES.items()}


class JournalWriter:
    """The side of the capture process.

    :raises OSError: the files cannot be written.
    """

    def __init__(self, folder: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | OPENING
        self._folder = folder
        self._journal = os.open(_journal(folder), flags, 0o600)
        lock(self._journal)
        self._end = self._size = 0
        self._grow()
        self._status = os.open(_status(folder), flags, 0o600)
        self.status(Status())

    def _grow(self) -> None:
        _write_all(self._journal, bytes(_RESERVE), self._size)
        self._size += _RESERVE

    def append(self, entry: Entry) -> None:
        """Append an entry.

        :raises OSError: it cannot be written; then the journal has no part of it.
        """
        line = json.dumps([_NAMES[type(entry)], *entry], ensure_ascii=False).encode(errors="surrogateescape")
        line += b"\n"
        if self._end + len(line) + _LEAST_RESERVE > self._size:
            with suppress(OSError):  # some reserve is left
                self._grow()
        try:
            _write_all(self._journal, line, self._end)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._journal, self._end)
                self._size = self._end
            raise
        self._end += len(line)
        self._size = max(self._size, self._end)

    def status(self, status: Status) -> None:
        """Write the current status."""
        notes = tuple(note[:LONGEST_NOTE] for note in status.notes[-MOST_NOTES:])
        text = json.dumps(status._replace(notes=notes)._asdict(), ensure_ascii=False)
        write_at(self._status, text.encode(errors="backslashreplace").ljust(_STATUS_BYTES), 0)

    def decoded(self) -> int:
        """How many files were decoded, as last reported by the decoder."""
        try:
            with open(_done(self._folder), "rb") as file:
                return int(file.read(_DONE_BYTES))
        except (OSError, ValueError):
            return 0

    def close(self) -> None:
        """Close the files: the capture is over."""
        os.close(self._status)
        os.close(self._journal)


class JournalReader:
    """The side of a reader.

    :raises OSError: this folder has no journal.
    """

    def __init__(self, folder: str) -> None:
        self._file = open(_journal(folder), "rb", buffering=0)  # noqa: SIM115 - closed with this
        self._folder = folder
        self._at = 0
        self._known = b""
        """Bytes that were read after that place."""

    def next_entry(self) -> Entry | None:
        """The next entry; None if there is no further entry yet."""
        line, end, _ = self._known.partition(b"\n")
        if not end:
            self._known = read_at(self._file.fileno(), _LINE_BYTES, self._at)
            line, end, _ = self._known.partition(b"\n")
            if not end:
                return None
        self._at += len(line) + 1
        self._known = self._known[len(line) + 1 :]
        name, *fields = json.loads(line.decode(errors="surrogateescape"))
        entry = _ENTRIES[name](*fields)
        if isinstance(entry, Begun):
            return entry._replace(path=os.path.join(self._folder, entry.path))
        return entry

    def is_over(self) -> bool:
        """Whether the capture process has ended; then all its files and entries are complete."""
        return not is_locked(self._file.fileno())

    def close(self) -> None:
        """Close the files."""
        self._file.close()


class DecodingProgress:
    """Reports to the capture process which files were decoded.

    :raises OSError: the file cannot be written.
    """

    def __init__(self, folder: str) -> None:
        self._file = os.open(_done(folder), os.O_WRONLY | os.O_CREAT | OPENING, 0o600)
        self.report(0)

    def report(self, files: int) -> None:
        """Report that ``files`` files were decoded."""
        write_at(self._file, str(files).encode().ljust(_DONE_BYTES), 0)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def status_of(folder: str) -> Status | None:
    """The status of the capture in this folder; None if it cannot be read now."""
    try:
        with open(_status(folder), "rb") as file:
            said: dict[str, Any] = json.loads(file.read(_STATUS_BYTES))
    except (OSError, ValueError):  # gone, or just being written
        return None
    said["notes"] = tuple(said["notes"])
    return Status(**said)


def _write_all(descriptor: int, data: bytes, place: int) -> None:
    while data:
        written = write_at(descriptor, data, place)
        data, place = data[written:], place + written


def _journal(folder: str) -> str:
    return os.path.join(folder, "journal")


def _status(folder: str) -> str:
    return os.path.join(folder, "status")


def _done(folder: str) -> str:
    return os.path.join(folder, "done")
