"""A capture on standard input → a named pipe for the decoder, and a file for saving packets.

Standard input can be read only once and only here: the decoder is another process with another standard
input. A thread copies the bytes to both. If the disk is full, further packets are still decoded and shown,
but they are not in the file. They cannot be saved then, and saving reports that.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from tempfile import TemporaryDirectory
from threading import Thread

assert sys.platform != "win32"

NAME = "standard input"
"""The files' name, which is shown as the capture's name."""
_PIECE = 1 << 16


class Piped:
    """The two files; :meth:`close` removes them."""

    def __init__(self, descriptor: int) -> None:
        """:param descriptor: the original standard input."""
        self._descriptor = descriptor
        self._folder = TemporaryDirectory(prefix="kdissect-")
        pipes = os.path.join(self._folder.name, "pipe")
        os.mkdir(pipes)
        self.pipe = os.path.join(pipes, NAME)
        """The pipe, which can be read once, as the bytes come."""
        self.kept = os.path.join(self._folder.name, NAME)
        """The file with the bytes so far."""
        os.mkfifo(self.pipe, 0o600)
        Thread(target=self._copy, daemon=True, name="standard input").start()

    def _copy(self) -> None:
        with (
            suppress(OSError),  # the decoder has ended: nothing more is read
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
    """Write bytes. Return whether that succeeded."""
    try:
        _write(descriptor, data)
    except OSError:
        return False
    return True


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
