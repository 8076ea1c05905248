"""A capture on standard input → a named pipe for the decoder, and a file from which packets can be saved.

Standard input can be read only once and only here: the decoder is another process, whose standard input is
not ours. A thread copies what comes to both. If the disk is full, further packets are still decoded and
shown, but they are not in the file. They cannot be saved then, and saving says so.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from tempfile import TemporaryDirectory
from threading import Thread

assert sys.platform != "win32"

NAME = "standard input"
"""The files' name, which is shown as the capture's."""
_PIECE = 1 << 16


class Piped:
    """The two files; they are gone after :meth:`close`."""

    def __init__(self, descriptor: int) -> None:
        """:param descriptor: what standard input was."""
        self._descriptor = descriptor
        self._folder = TemporaryDirectory(prefix="kdissect-")
        pipes = os.path.join(self._folder.name, "pipe")
        os.mkdir(pipes)
        self.pipe = os.path.join(pipes, NAME)
        """To be read once, as it comes."""
        self.kept = os.path.join(self._folder.name, NAME)
        """What came so far."""
        os.mkfifo(self.pipe, 0o600)
        Thread(target=self._copy, daemon=True, name="standard input").start()

    def _copy(self) -> None:
        with (
            suppress(OSError),  # the decoder has gone: nothing more is taken in
            open(self.kept, "wb", buffering=0) as kept,
            open(self.pipe, "wb", buffering=0) as pipe,  # waits for the decoder
        ):
            keeps = True
            while piece := os.read(self._descriptor, _PIECE):
                keeps = keeps and _kept(kept.fileno(), piece)
                _write(pipe.fileno(), piece)

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()


def _kept(descriptor: int, data: bytes) -> bool:
    """Write; gives whether that could be done."""
    try:
        _write(descriptor, data)
    except OSError:
        return False
    return True


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
