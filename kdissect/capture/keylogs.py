"""Key log files ─► secrets: whole lines, as they are written.

A path is a file or a directory with key log files. In a file that may grow, bytes after the last line end are
an incomplete line. A file that has become shorter is read again from its beginning.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from kdissect.model import TLS_KEY_LOG, CaptureError, Secrets

LOOK_EVERY = 0.2
"""The seconds between two looks at growing files."""

LONGEST_LINE = 1 << 16
"""The longest line of a key log; longer lines are ignored."""


PIECE_BYTES = 1 << 20
"""The number of bytes taken in at once: key logs that grew for weeks have hundreds of MB."""


class KeyLogs:
    """Follows key logs. Each call gives the new secrets."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = tuple(paths)
        self._read: dict[str, int] = {}
        """The number of bytes read of each file."""
        self._due = 0.0

    def anew(self) -> KeyLogs:
        """The same key logs, unread."""
        return KeyLogs(self._paths)

    def read(self) -> Iterator[Secrets]:
        """All secrets, if the files do not grow any more.

        :raises CaptureError: a path is missing, or cannot be read; the text has one line.
        """
        for path in self._paths:
            if not os.path.exists(path):
                raise CaptureError(f"{path}: there is no such key log")
        try:
            yield from self._new(is_final=True)
        except OSError as error:
            raise CaptureError(f"{error.filename}: cannot be read: {error.strerror}") from error

    def follow(self, now: float) -> Iterator[Secrets]:
        """The secrets written since the last look. A missing file may still appear.

        :param now: seconds of any clock. Within ``LOOK_EVERY`` of the last look, nothing is read.
        """
        if now < self._due:
            return
        self._due = now + LOOK_EVERY
        try:
            yield from self._new(is_final=False)
        except OSError:
            return  # the caller asks again

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
