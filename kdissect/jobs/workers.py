"""Batches ─► a process each ─► what they write, in the order of the batches.

Rules

1. A process is forked for a batch, and has it and all that its events refer to from its birth. The process
   that forks must have no other threads.
2. As many processes work at a time as were asked for. If all of them do, whoever brings the next batch waits.
3. What a batch writes may depend on how the one before it ended (columns of text grow). A batch is begun with
   the state that is known then. If a batch before it ends in another state, it is begun anew.
4. Memory is bounded: a limited amount of what is written out of turn is kept here; a process that writes more
   waits.
5. A process that dies ends the work at its batch; what came before is written.
6. The interrupt key and SIGTERM are for this process to answer. The others end when nobody reads their pipe.
"""

from __future__ import annotations

import os
import select
import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from kdissect.jobs.batches import Batch
from kdissect.jobs.serving import ANSWER, DONE, ENDING, MAYBE, PIECE, Piece, Work, become, load

MOST_HELD = 16 << 20
"""Bytes written out of turn that are kept."""
AHEAD = 2
"""So many batches for each process may be begun before the first of them is written: their events stay in
memory."""
_PIPE_BYTES = 1 << 20
IS_POSSIBLE = hasattr(os, "fork")
"""Whether this system can have processes begin as they are needed here."""


class JobError(Exception):
    """A process died; the text says how."""


class _Process:
    """A process, and what came from it that is not a whole answer yet."""

    __slots__ = ("answers", "pid", "received")

    def __init__(self, pid: int, answers: int) -> None:
        self.pid = pid
        self.answers = answers
        """The descriptor that its answers come from."""
        self.received = bytearray()


class _Part:
    """A batch on its way."""

    __slots__ = ("after", "batch", "died", "error", "is_done", "pieces", "process", "result", "size", "state")

    def __init__(self, batch: Batch, state: Any) -> None:
        self.batch = batch
        self.begin(state)

    def begin(self, state: Any) -> None:
        """Nothing was done of it yet."""
        self.state = state
        self.process: _Process | None = None
        """What does it, until it is done."""
        self.pieces: list[Piece] = []
        """What it wrote before its turn came."""
        self.size = 0
        """Bytes of the pieces."""
        self.is_done = False
        self.after: Any = None
        self.result: Any = None
        self.error: Exception | None = None
        self.died: str | None = None
        """How its process ended before its time."""


class Workers:
    """The processes.

    :param count: how many work at a time, beside the one that brings the batches.
    :param write: takes what batches write, in order.
    :param done: takes what else came of each batch, in order.
    :param state: how the work before the first batch ended.
    :param shared: objects that results refer to and that every process has its own of.
    """

    def __init__(
        self,
        work: Work,
        count: int,
        write: Callable[[Piece], None],
        done: Callable[[Any], None],
        state: Any = None,
        shared: Sequence[object] = (),
    ) -> None:
        self._work = work
        self._count = count
        self._write = write
        self._done = done
        self._state = state
        self._shared = tuple(shared)
        self._parts: deque[_Part] = deque()
        """Those that are not written yet, in order."""
        self._held = 0
        self._poll = select.poll()
        self._running: dict[int, _Part] = {}
        """Those that are being done, by the descriptor that their answers come from."""
        self._is_full = False
        """Whether only the first is listened to, because enough is kept of the others."""

    def submit(self, batch: Batch) -> None:
        """Have a batch done, as soon as there is a process for it; what is ready is written.

        :raises JobError: a process died.
        """
        while len(self._running) >= self._count or len(self._parts) >= AHEAD * self._count:
            self._receive(None)
            self._settle()
        part = _Part(batch, self._state)
        self._parts.append(part)
        self._begin(part)
        self.attend()

    def attend(self) -> None:
        """Take in what came, and write what is ready, without waiting. To be called often: a process whose
        pipe is full waits.

        :raises JobError: a process died.
        """
        if self._running:
            self._receive(0)
        if self._parts:
            self._settle()

    def finish(self) -> None:
        """Wait for what is not done yet.

        :raises JobError: a process died.
        """
        self._settle()
        while self._parts:
            self._receive(None)
            self._settle()

    def close(self) -> None:
        """End the processes, whatever they do."""
        for part in list(self._running.values()):
            self._end(part, kills=True)
        self._parts.clear()

    # -- processes ----------------------------------------------------------------------------------

    def _begin(self, part: _Part) -> None:
        """Have a process do a batch; where no process may begin, it is done in its turn, here."""
        with suppress(OSError):
            self._fork(part)

    def _fork(self, part: _Part) -> None:
        answers, answered = os.pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until it is settled whom they concern
        try:
            _widen(answered)
            pid = os.fork()
            if pid == 0:
                others = [answers, *self._running]
                become(self._work, part.batch, part.state, self._shared, answered, others)
        except OSError:
            os.close(answers)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(answered)
        part.process = _Process(pid, answers)
        self._running[answers] = part
        if not self._is_full:
            self._poll.register(answers, select.POLLIN)

    def _end(self, part: _Part, *, kills: bool = False) -> str | None:
        """Let go of the process of a batch; gives how it ended, if that was before its time."""
        process, part.process = part.process, None
        if process is None:
            return None
        del self._running[process.answers]
        with suppress(KeyError):
            self._poll.unregister(process.answers)
        if kills:
            with suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
        os.close(process.answers)
        return _wait_for(process.pid)

    # -- what comes back ----------------------------------------------------------------------------

    def _receive(self, seconds: float | None) -> None:
        """Take in what came.

        :param seconds: how long to wait for something; None for as long as it takes.
        """
        self._listen()
        if not self._running:
            return
        for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1_000):
            part = self._running.get(descriptor)
            if part is not None:
                self._take(part)

    def _listen(self) -> None:
        """Listen to all processes, or to the first one's alone where enough is kept."""
        first = self._parts[0].process if self._parts else None
        is_full = self._held >= MOST_HELD
        if not is_full and not self._is_full:
            return
        self._is_full = is_full
        for descriptor in self._running:
            if not is_full or (first is not None and descriptor == first.answers):
                self._poll.register(descriptor, select.POLLIN)
            else:
                with suppress(KeyError):
                    self._poll.unregister(descriptor)

    def _take(self, part: _Part) -> None:
        process = part.process
        assert process is not None
        data = os.read(process.answers, _PIPE_BYTES)
        if not data:
            part.died = self._end(part)
            return
        received = process.received
        received += data
        at = 0
        while len(received) - at >= ANSWER.size:
            kind, size = ANSWER.unpack_from(received, at)
            end = at + ANSWER.size + size
            if end > len(received):
                break
            self._answered(part, kind, bytes(memoryview(received)[at + ANSWER.size : end]))
            at = end
        del received[:at]

    def _answered(self, part: _Part, kind: int, data: bytes) -> None:
        if kind in (PIECE, MAYBE):
            piece: Piece = data if kind == PIECE else load(data, ())
            size = len(piece) if isinstance(piece, bytes) else len(piece.data)
            part.pieces.append(piece)
            part.size += size
            self._held += size
            return
        if kind == DONE:
            part.after, part.result = load(data, self._shared)
        else:
            part.error = load(data, ())
        part.is_done = True
        self._end(part)

    def _drop(self, part: _Part) -> list[Piece]:
        pieces, part.pieces = part.pieces, []
        self._held -= part.size
        part.size = 0
        return pieces

    # -- in order -----------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Write what is ready and whose turn has come."""
        while self._parts:
            part = self._parts[0]
            for piece in self._drop(part):
                self._write(piece)
            if part.error is not None:
                self._work.do(part.batch, part.state, _nowhere)  # it happens here again, and then shows where
                raise part.error
            if part.died is not None:
                raise JobError(part.died)
            if not part.is_done:
                if part.process is not None:
                    return
                part.after, part.result = self._work.do(part.batch, self._state, self._write)
            self._parts.popleft()
            self._go_on(part.after)
            self._done(part.result)

    def _go_on(self, state: Any) -> None:
        """The batch before the first ended so: begin anew those that were begun with another state."""
        if state == self._state:
            return
        self._state = state
        for part in self._parts:
            if part.state != state:
                self._end(part, kills=True)
                self._drop(part)
                part.begin(state)
                self._begin(part)


def _nowhere(_: Piece) -> None:
    """What is written was written before."""


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
