"""A process that was forked for a batch or a part, and the pipes to it.

Its answers come in pieces as they are there. A part's process is also told what it must know (:meth:`tell`).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress

from kdissect.jobs.serving import ANSWER, ENDING, QUESTION, become

_PIPE_BYTES = 1 << 20
"""What a pipe holds, where the system lets it."""


class WorkerProcess:
    """A process, and what came from it that is not a whole answer yet.

    :param pid: of the process.
    :param answers: the descriptor that its answers come from.
    :param asks: the one that what it must know goes to; None where it has a batch.
    """

    __slots__ = ("_kind", "_received", "_size", "_there", "answers", "asks", "pid")

    def __init__(self, pid: int, answers: int, asks: int | None) -> None:
        self.pid = pid
        self.answers = answers
        self.asks = asks
        self._kind: int | None = None
        """Of the answer that comes, once that and its size are there."""
        self._size = 0
        self._received: list[bytes] = []
        """What came of it, or of its kind and size. It is read so that a piece that is there as a whole is
        not copied."""
        self._there = 0
        """Bytes of that."""

    def take(self) -> tuple[int, bytes] | None:
        """Take in what came; gives the kind and the bytes of an answer once it is there as a whole.

        :raises EOFError: the process ended.
        """
        wanted = (ANSWER.size if self._kind is None else self._size) - self._there
        data = os.read(self.answers, wanted)
        if not data:
            raise EOFError
        self._there += len(data)
        self._received.append(data)
        if len(data) < wanted:
            return None
        whole = data if len(self._received) == 1 else b"".join(self._received)
        self._received, self._there = [], 0
        if self._kind is None:
            kind, self._size = ANSWER.unpack(whole)
            if self._size:
                self._kind = kind
                return None
            return kind, b""
        kind, self._kind = self._kind, None
        return kind, whole

    def tell(self, kind: int, data: bytes) -> None:
        """Tell a process with a part what it must know."""
        assert self.asks is not None
        with suppress(BrokenPipeError):  # it died, which shows at the other pipe
            for each in (QUESTION.pack(kind, len(data)), data):
                left = memoryview(each)
                while left:
                    left = left[os.write(self.asks, left) :]

    def end(self, *, kills: bool) -> str:
        """Let go of it; gives how it ended."""
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
    """A new process.

    :param serving: gives what it does, which is given the descriptor that its answers go to. Is itself given
        the one that what it must know comes from, if it ``is_asked``.
    :param others: descriptors that the new process must not keep open. It reads them, this one does not.
    :raises OSError: no process may begin.
    """
    answers, answered = os.pipe()
    asked, asks = os.pipe() if is_asked else (None, None)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until it is settled whom they concern
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
    """Have a pipe hold much, so that whoever writes to it goes on at once."""
    with suppress(ImportError, AttributeError, OSError):  # a system, or a user, that cannot have that
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _wait_for(pid: int) -> str:
    """How a process ended."""
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return "is gone"
    return f"was killed by signal {-code}" if code < 0 else f"stopped with exit code {code}"
