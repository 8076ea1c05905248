"""Key log files ─► secrets: whole lines, as they are written.

A path is a file or a directory, whose files all count. What stands behind the last line end is not whole
while the file may grow. A file that has become shorter was begun anew.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from kdissect.model import TLS_KEY_LOG, CaptureError, Secrets

LOOK_EVERY = 0.2
"""Seconds between two looks at files that grow."""

LONGEST_LINE = 1 << 16
"""What is longer is no line of a key log."""


PIECE_BYTES = 1 << 20
"""Of a file are taken in at once: key logs that were appended to for weeks have hundreds of MB."""


class KeyLogs:
    """Follows key logs. Each call gives what is new."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = tuple(paths)
        self._read: dict[str, int] = {}
        """How many bytes of each file were read."""
        self._due = 0.0

    def anew(self) -> KeyLogs:
        """The same key logs, of which nothing was read yet."""
        return KeyLogs(self._paths)

    def read(self) -> Iterator[Secrets]:
        """All there is, in files that do not grow any more.

        :raises CaptureError: a path is not there, or cannot be read; the text has one line.
        """
        for path in self._paths:
            if not os.path.exists(path):
                raise CaptureError(f"{path}: there is no such key log")
        try:
            yield from self._new(is_final=True)
        except OSError as error:
            raise CaptureError(f"{error.filename}: cannot be read: {error.strerror}") from error

    def follow(self, now: float) -> Iterator[Secrets]:
        """What was written since the last look; a file that is not there yet may come.

        :param now: seconds of any clock. Sooner than ``LOOK_EVERY`` after the last look, it does not look.
        """
        if now < self._due:
            return
        self._due = now + LOOK_EVERY
        try:
            yield from self._new(is_final=False)
        except OSError:
            return  # it is asked for again

    def _new(self, is_final: bool) -> Iterator[Secrets]:
        for path in self._files():
            for lines in self._new_lines(path, is_final):
                yield Secrets(TLS_KEY_LOG, lines)

    def _files(self) -> Iterator[str]:
        for path in self._paths:
            if os.path.isdir(path):
                for name in sorted(os.listdir(path)):
                    file = os.path.join(path, name)
                    if not name.startswith(".") and os.path.isfile(file):
                        yield file
            elif os.path.exists(path):
                yield path

    def _new_lines(self, path: str, is_final: bool) -> Iterator[bytes]:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            start = self._read.get(path, 0)
            if stat.S_ISREG(status.st_mode):
                if status.st_size < start:
                    start = self._read[path] = 0
                if status.st_size == start:
                    return
                file.seek(start)
            rest = b""
            while piece := file.read(PIECE_BYTES):
                data = rest + piece
                end = data.rfind(b"\n") + 1
                if len(data) - end > LONGEST_LINE:
                    end = len(data)
                rest = data[end:]
                start += end
                self._read[path] = start
                if end:
                    yield data[:end]
        if rest and is_final:
            self._read[path] = start + len(rest)
            yield rest
