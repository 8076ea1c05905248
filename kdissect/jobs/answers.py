"""The answers of a forked process, on their way to the first process."""

from __future__ import annotations

import os
import select
from collections import deque
from struct import Struct

ANSWER = Struct("<BQ")
"""The kind of an answer, and the size of its data."""
MOST_KEPT = 64 << 20
"""The most bytes that a process keeps for its pipe. The rows of a part rarely take more. Events are freed
when their rows are made. NDJSON of parts of 32 MB took 50 MB more in a process."""
PIECE_BYTES = 256 << 10
"""Pieces of output are joined until they have this size."""


class AnswerPipe:
    """Sends answers through a pipe.

    The first process reads the output of a part when its turn comes, and few bytes before. If the pipe is
    full, answers are kept here. So a process makes its rows while others make theirs; it waits only if it
    has too many bytes.

    :param descriptor: the end of the pipe to which answers are written.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._kept: deque[memoryview] = deque()
        self._kept_bytes = 0

    def send(self, kind: int, data: bytes) -> None:
        """Send an answer, or keep what the pipe does not take yet.

        :raises BrokenPipeError: nobody reads answers any more.
        """
        for each in (ANSWER.pack(kind, len(data)), data):
            if each:
                self._kept.append(memoryview(each))
                self._kept_bytes += len(each)
        self._write(MOST_KEPT)

    def flush(self) -> None:
        """Wait until all answers are written.

        :raises BrokenPipeError: nobody reads answers any more.
        """
        self._write(0)

    def _write(self, most: int) -> None:
        """Write what the pipe takes. Wait for it while more than ``most`` bytes are kept."""
        kept = self._kept
        while kept:
            try:
                written = os.write(self._descriptor, kept[0])
            except BlockingIOError:
                if self._kept_bytes <= most:
                    return
                self._wait()
                continue
            self._kept_bytes -= written
            if written < len(kept[0]):
                kept[0] = kept[0][written:]
            else:
                kept.popleft()

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        poll.poll()
