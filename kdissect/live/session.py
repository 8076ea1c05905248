"""Starts the capture process, and hears how it goes.

The process gets sockets that are open, and no privilege. Its folder holds the journal and, unless the capture
was asked for as a file, the spool; it is removed when the session is closed, unless the capture process was
left to itself, or nobody decoded what is in it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, redirect_stderr, suppress
from multiprocessing import get_context
from typing import TYPE_CHECKING

from kdissect.live import capturing
from kdissect.live.errors import LiveError
from kdissect.live.journal import Journal, Status, status_of
from kdissect.live.rotation import Bounds
from kdissect.live.sources import Opener
from kdissect.live.spool import cut_to_whole_blocks

if TYPE_CHECKING:
    from kdissect.system import Pipe

SPOOL_FILE = Bounds(bytes=64 << 20, files=32)
"""The spool of a capture that nobody asked to keep: what is not decoded by the time 2 GiB came after it is
given up, and that is told."""
_END_SECONDS = 10.0
"""How long the capture process may take to end."""


class Session:
    """A capture process.

    :param path: where the capture is written, if it is to be kept.
    :param folder: where the folder of the journal is made; None for where temporary files are.
    :raises LiveError: it cannot begin.
    """

    def __init__(
        self,
        openers: Sequence[Opener],
        path: str | None = None,
        rotation: Bounds = SPOOL_FILE,
        stop: Bounds = Bounds(),  # noqa: B008 - it cannot be changed
        folder: str | None = None,
    ) -> None:
        self.folder = tempfile.mkdtemp(prefix="kdissect-live-", dir=folder)
        """Of the journal; whoever follows the capture needs nothing else."""
        job = capturing.Job(self.folder, path or os.path.join(self.folder, "spool.pcapng"), rotation, stop)
        context = get_context("spawn")
        self._control, theirs = context.Pipe()
        self._process = context.Process(
            target=capturing.run, args=(job, tuple(openers), theirs), daemon=True, name="capture"
        )
        self._is_mended = self._is_kept = False
        self._latest = Status()
        try:
            error = self._begin(theirs)
        except BaseException:  # Ctrl-C, say, while a stream is waited for: nothing is captured yet
            if self._process.pid is not None:
                self._process.kill()
                self._process.join()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        if error is not None:
            self.close()
            raise error

    def _begin(self, theirs: Pipe) -> LiveError | None:
        """Start the process; gives why it cannot capture."""
        with redirect_stderr(sys.__stderr__):  # Textual's has no descriptor that could be handed on
            self._process.start()
        theirs.close()
        try:
            error: LiveError | None = self._control.recv()
        except EOFError:
            return LiveError("the capture process could not be started")
        return error

    @property
    def pid(self) -> int | None:
        """Of the capture process."""
        return self._process.pid

    def status(self) -> Status:
        """How it goes, or went at the last look, if that cannot be told just now: counts never fall."""
        self._latest = status_of(self.folder) or self._latest
        return self._latest

    def stop(self) -> None:
        """Have it end: what came so far is written, nothing more is taken in."""
        self._control.close()

    def death(self) -> str | None:
        """How the capture process died, if it did not end by itself."""
        code = self._process.exitcode
        if not code:
            return None
        how = f"was killed by signal {-code}" if code < 0 else f"stopped with exit code {code}"
        return f"the capture process {how}; what it had written is whole"

    def join(self) -> None:
        """Wait until it has ended, as it does soon after :meth:`stop`. If it was killed, what it was just
        writing is taken away."""
        self._process.join(_END_SECONDS)
        code = self._process.exitcode
        if code and not self._is_mended:
            self._is_mended = True
            self._mend()

    def _mend(self) -> None:
        latest: str | None = None
        with suppress(OSError):
            with closing(Journal(self.folder)) as journal:
                while (found := journal.next_file()) is not None:
                    latest = found[0]
            if latest is not None:
                cut_to_whole_blocks(latest)

    def keep(self) -> None:
        """Leave the folder when this is closed: nobody has decoded all that is in it."""
        self._is_kept = True

    def close(self) -> None:
        """End it, and remove the folder, unless it is to be kept."""
        self.stop()
        self.join()
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        if not self._is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)


def wait_until(done: Callable[[], bool], seconds: float, every: float = 0.02) -> bool:
    """Wait for something; gives whether it came about in time."""
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= until:
            return False
        time.sleep(every)
    return True
