"""Starts the capture process, and reads its status.

The process gets open sockets, and no privilege. Its folder holds the journal. It also holds the spool, unless
the user asked for a capture file. The folder is removed when the session is closed. It stays if the capture
process continues alone, or if not all of its files were decoded.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing, redirect_stderr, suppress
from multiprocessing import get_context, resource_tracker
from typing import TYPE_CHECKING

from kdissect.live import capturing
from kdissect.live.disk_limit import SpoolSize
from kdissect.live.errors import LiveError
from kdissect.live.journal import Begun, JournalReader, Status, status_of
from kdissect.live.rotation import Bounds
from kdissect.live.sources import SourceOpener
from kdissect.live.spool import cut_to_whole_blocks
from kdissect.system import signals_held

if TYPE_CHECKING:
    from kdissect.system import Pipe

_END_SECONDS = 10.0
"""How long the capture process may take to end."""


class CaptureSession:
    """A capture process.

    :param path: the capture file, if the capture is to be kept.
    :param folder: the folder in which the journal's folder is made; None for the system's temporary folder.
    :param size: the size of the spool, if the capture is not to be kept.
    :raises LiveError: the capture cannot begin.
    """

    def __init__(
        self,
        openers: Sequence[SourceOpener],
        path: str | None = None,
        rotation: Bounds = Bounds(),  # noqa: B008 - it cannot be changed
        stop: Bounds = Bounds(),  # noqa: B008 - it cannot be changed
        folder: str | None = None,
        size: SpoolSize = SpoolSize(),  # noqa: B008 - it cannot be changed
    ) -> None:
        # The capture process makes the folder: if this process is killed before that, no folder is left.
        self.folder = os.path.join(folder or tempfile.gettempdir(), f"kdissect-live-{secrets.token_hex(8)}")
        """The journal's folder. It is all that a reader of the capture needs."""
        spool = os.path.join(self.folder, "spool.pcapng")
        job = capturing.CaptureJob(self.folder, path or spool, rotation, stop, size if path is None else None)
        self._is_mended = self._is_kept = False
        self._latest = Status()
        if sys.platform != "win32":  # Windows has no resource tracker
            resource_tracker.ensure_running()  # starting it later would unblock the signals
        context = get_context("spawn")
        self._control, theirs = context.Pipe()
        self._process = context.Process(
            target=capturing.run, args=(job, tuple(openers), theirs), daemon=True, name="capture"
        )
        try:
            error = self._begin(theirs)
        except BaseException:  # for example Ctrl-C while waiting for a stream: nothing is captured yet
            if self._process.pid is not None:
                self._process.kill()
                self._process.join()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        if error is not None:
            self.close()
            raise error

    def _begin(self, theirs: Pipe) -> LiveError | None:
        """Start the process; return why it cannot capture."""
        # Textual's stderr has no descriptor for the new process to inherit.
        with signals_held(), redirect_stderr(sys.__stderr__):
            self._process.start()
        theirs.close()
        try:
            error: LiveError | None = self._control.recv()
        except EOFError:
            return LiveError("the capture process could not be started")
        return error

    @property
    def pid(self) -> int | None:
        """The id of the capture process."""
        return self._process.pid

    def status(self) -> Status:
        """The current status, or the last known one if it cannot be read: counts never fall."""
        self._latest = status_of(self.folder) or self._latest
        return self._latest

    def stop(self) -> None:
        """End the capture: packets received so far are written, and no more are taken in."""
        self._control.close()

    def death(self) -> str | None:
        """How the capture process died, if it did not end by itself."""
        code = self._process.exitcode
        if not code:
            return None
        how = f"was killed by signal {-code}" if code < 0 else f"stopped with exit code {code}"
        return f"the capture process {how}; the packets that it had written are complete"

    def join(self) -> None:
        """Wait until the process has ended, soon after :meth:`stop`. If it was killed, remove a partly
        written block."""
        self._process.join(_END_SECONDS)
        code = self._process.exitcode
        if code and not self._is_mended:
            self._is_mended = True
            self._mend()

    def _mend(self) -> None:
        latest: str | None = None
        with suppress(OSError):
            with closing(JournalReader(self.folder)) as journal:
                while (entry := journal.next_entry()) is not None:
                    if isinstance(entry, Begun):
                        latest = entry.path
            if latest is not None:
                cut_to_whole_blocks(latest)

    def keep(self) -> None:
        """Keep the folder when the session is closed, because not all of it was decoded."""
        self._is_kept = True

    def close(self) -> None:
        """End the process, and remove the folder unless it is to be kept."""
        self.stop()
        self.join()
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        if not self._is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)
