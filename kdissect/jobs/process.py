"""A process that was forked for a batch or a part, and the pipes to it.

Its answers come piece by piece. A process with a part also gets messages (:meth:`WorkerProcess.send`).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress

from kdissect.jobs.answers import ANSWER
from kdissect.jobs.serving import ENDING, QUESTION, become

_PIPE_BYTES = 1 << 20
"""The size that a pipe is set to, if the system allows it."""


class WorkerProcess:
    """A process, and the bytes of its next answer received so far.

    :param pid: the process's id.
    :param answers: the descriptor from which its answers are read.
    :param asks: the descriptor to which messages for it are written; None if it has a batch.
    """

    __slots__ = ("_kind", "_received", "_received_bytes", "_size", "answers", "asks", "pid")

    def __init__(self, pid: int, answers: int, asks: int | None) -> None:
        self.pid = pid
        self.answers = answers
        self.asks = asks
        self._kind: int | None = None
        """The kind of the answer that is being received, once its kind and size are there."""
        self._size = 0
        self._received: list[bytes] = []
        """The bytes received of the answer, or of its kind and size. They are kept as read, so that an answer
        that comes in one read is not copied."""
        self._received_bytes = 0
        """The number of these bytes."""

    def take(self) -> tuple[int, bytes] | None:
        """Read from the pipe. Return the kind and the bytes of an answer once it is complete.

        :raises EOFError: the process ended.
        """
        wanted = (ANSWER.size if self._kind is None else self._size) - self._received_bytes
        data = os.read(self.answers, wanted)
        if not data:
            raise EOFError
        self._received_bytes += len(data)
        self._received.append(data)
        if len(data) < wanted:
            return None
        whole = data if len(self._received) == 1 else b"".join(self._received)
        self._received, self._received_bytes = [], 0
        if self._kind is None:
            kind, self._size = ANSWER.unpack(whole)
            if self._size:
                self._kind = kind
                return None
            return kind, b""
        kind, self._kind = self._kind, None
        return kind, whole

    def send(self, kind: int, data: bytes) -> None:
        """Send a message to a process with a part."""
        assert self.asks is not None
        with suppress(BrokenPipeError):  # the process died; the other pipe reports that
            for each in (QUESTION.pack(kind, len(data)), data):
                left = memoryview(each)
                while left:
                    left = left[os.write(self.asks, left) :]

    def end(self, *, kills: bool) -> str:
        """Close the pipes and wait for the process. Return how it ended."""
        if kills:
            with suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
        os.close(self.answers)
        if self.asks is not None:
            os.close(self.asks)
        return _wait_for(self.pid)


def fork(
    serving: Callable[[int | None], Callable[[int], None]],
    others: Iterable[int],
    *,
    is_asked: bool,
) -> WorkerProcess:
    """Fork a process.

    :param serving: gets the descriptor for messages to the process; None unless it ``is_asked``. Returns the
        function that the process runs. That function gets the descriptor for answers.
    :param others: descriptors that the new process must not keep open, because only this process reads them.
    :raises OSError: no process can be forked.
    """
    answers, answered = os.pipe()
    asked, asks = os.pipe() if is_asked else (None, None)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until both processes handle signals
    try:
        _widen(answered)
        pid = os.fork()
        if pid == 0:
            become(serving(asked), answered, [answers, *others] if asks is None else [answers, asks, *others])
    except OSError:
        os.close(answers)
        if asks is not None:
            os.close(asks)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(answered)
        if asked is not None:
            os.close(asked)
    return WorkerProcess(pid, answers, asks)


def _widen(descriptor: int) -> None:
    """Enlarge a pipe, so that writers rarely wait."""
    with suppress(ImportError, AttributeError, OSError):  # the system or the user's limits do not allow it
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _wait_for(pid: int) -> str:
    """Wait for a process; return how it ended, in words."""
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return "is gone"
    return f"was killed by signal {-code}" if code < 0 else f"stopped with exit code {code}"
