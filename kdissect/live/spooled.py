"""The files of a capture process → packets, in the order of its journal, as they arrive."""

from __future__ import annotations

import os
from contextlib import suppress

from kdissect.capture.following import Following
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.live.journal import Begun, Complete, DecodingProgress, Gone, JournalReader, Lost
from kdissect.model import Fault
from kdissect.present.form import Clock
from kdissect.wording import plural


class Spooled(Following):
    """Reads the files of a capture process from its folder, and reports packets missing between them.

    :param consume: remove each file after reading it.
    :param tells: report each file that was read to the capture process, which removes files when it needs
        room.
    :raises OSError: the folder has no journal.
    """

    def __init__(
        self, folder: str, limits: Limits = DEFAULTS, *, consume: bool = False, tells: bool = False
    ) -> None:
        self._journal = JournalReader(folder)
        self._consume = consume
        self._progress = DecodingProgress(folder) if tells else None
        self._path: str | None = None
        self._files = 0
        """The number of files whose reading has begun."""
        self._following: Begun | None = None
        """The file after this one, once it has begun."""
        self._has_ended = False
        """Whether the current file is complete although the next one has not begun."""
        super().__init__(limits)

    def close(self) -> None:
        super().close()
        self._journal.close()
        if self._progress is not None:
            self._progress.close()

    def _next_file(self) -> str | None:
        if self._path is not None:
            self._is_read(self._path)
        self._path, self._has_ended = None, False
        found = self._wait_for(self._listen)
        self._following = None
        if found is None:
            return None
        # Files may have been removed before anybody read them: packets keep their numbers.
        self._path, self.packets = found
        self._files += 1
        return self._path

    def _is_read(self, path: str) -> None:
        with suppress(OSError):  # the capture process has removed it already
            if self._consume:
                os.unlink(path)
        if self._progress is not None:
            self._progress.report(self._files)

    def _is_complete(self) -> bool:
        # Look for the end first: then all that the process wrote is already in the journal.
        over = self._is_over()
        return self._listen() is not None or self._has_ended or over

    def _listen(self) -> Begun | None:
        """Read the journal up to the next file, and return that file."""
        while self._following is None and (entry := self._journal.next_entry()) is not None:
            if isinstance(entry, Begun):
                self._following = entry
            elif isinstance(entry, Complete):
                self._has_ended = True
            elif isinstance(entry, Lost):
                self._reported.append(_lost(entry))
            else:
                self._reported.append(_gone(entry))
        return self._following

    def _why_unread(self, path: str) -> str | None:
        if os.path.exists(path) or not self._is_complete() or self._following is None:
            return None
        count = plural(self._following.before - self.packets, "packet")
        return f"{path}: {count} not decoded: decoding is too slow, and the capture keeps no more files"

    def _is_over(self) -> bool:
        return self.is_stopped or self._journal.is_over()


def _lost(entry: Lost) -> Fault:
    clock = Clock("u")
    seconds = (entry.last_ns - entry.first_ns) / 1_000_000_000
    return fault(
        "packets-lost",
        f"{plural(entry.packets, 'packet')} lost from {clock.text(entry.first_ns)} to "
        f"{clock.text(entry.last_ns)} ({seconds:,.3f} s): {entry.why}",
        packet=entry.before or None,
    )


def _gone(entry: Gone) -> Fault:
    message = f"{entry.name} is gone; the capture has nothing of it from {Clock('u').text(entry.time_ns)} on"
    return fault("interface-gone", message, packet=entry.before or None)
