"""Batches ─► processes ─► what they write, in the order of the batches.

Rules

1. Processes are forked, so they have the compiled filter, the options and the table at once. The process that
   makes them must have no other threads.
2. A process that waits costs nothing; an idle one gets the next batch. If all have enough, this process does
   the batch itself. So exactly as many processes work as were asked for.
3. What a batch writes may depend on how the one before it ended (columns of text grow). A batch is begun with
   the state that is known then. If the batches before it end in another state, it is done again, here.
4. Memory is bounded: a limited amount of what is written out of turn is kept here; a process that writes more
   waits.
5. A process that dies ends the work at its batch; what came before is written.
6. The interrupt key and SIGTERM are for this process to answer. The others end when their pipe does.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from kdissect.jobs.serving import (
    ANSWER,
    ASKED,
    DONE,
    ENDING,
    MAYBE,
    PIECE,
    Piece,
    Work,
    Write,
    become,
    load,
)

AT_A_TIME = 2
"""Batches that one process has: one is done, the next is there when it is."""
MOST_HELD = 16 << 20
"""Bytes written out of turn that are kept."""
_PIPE_BYTES = 1 << 20
IS_POSSIBLE = hasattr(os, "fork")
"""Whether this system can have processes begin as they are needed here."""


class JobError(Exception):
    """A process died; the text says how."""


class _Stale(Exception):  # noqa: N818 - nothing went wrong
    """A batch was begun with a state that turned out to be another."""


class _Part:
    """A batch on its way."""

    __slots__ = (
        "after",
        "batch",
        "error",
        "goes_on",
        "is_done",
        "owner",
        "pieces",
        "result",
        "size",
        "state",
    )

    def __init__(self, batch: bytes, state: Any) -> None:
        self.batch = batch
        self.state = state
        self.owner: _Process | None = None
        self.pieces: list[Piece] = []
        """What it wrote before its turn came."""
        self.size = 0
        """Bytes of the pieces."""
        self.goes_on = False
        """Whether it is being done here."""
        self.is_done = False
        self.after: Any = None
        self.result: Any = None
        self.error: Exception | None = None


class _Process:
    """A process, and what it has to do."""

    def __init__(self, pid: int, asks: int, answers: int) -> None:
        self.pid = pid
        self.asks = asks
        """The descriptor that batches go to."""
        self.answers = answers
        self.parts: deque[_Part] = deque()
        self.heard = 0
        """How much of the news it was sent."""
        self.received = bytearray()
        self.how_it_ended: str | None = None


class Workers:
    """The processes.

    :param count: how many work, this one among them.
    :param write: takes what batches write, in order.
    :param done: takes what else came of each batch, in order.
    :param state: how the work before the first batch ended.
    :param shared: objects that results refer to and that every process has its own of.
    """

    def __init__(
        self,
        work: Work,
        count: int,
        write: Write,
        done: Callable[[Any], None],
        state: Any = None,
        shared: Sequence[object] = (),
    ) -> None:
        self._work = work
        self._write = write
        self._done = done
        self._state = state
        self._shared = tuple(shared)
        self._parts: deque[_Part] = deque()
        """Those whose turn has not come, in order."""
        self._held = 0
        self._news: list[Any] = []
        self._processes: list[_Process] = []
        with suppress(OSError):  # no more of them are allowed: those that are there do it
            for _ in range(count - 1):
                self._fork()

    def submit(self, batch: bytes, news: Sequence[Any] = ()) -> None:
        """Have a batch done; what is ready is written.

        :param news: what must be known for it and for those behind it.
        :raises JobError: a process died.
        """
        self._news += news
        self._work.hear(news)
        self._receive(0)
        part = _Part(batch, self._state)
        self._parts.append(part)
        idle = min(self._processes, key=lambda process: len(process.parts), default=None)
        if idle is not None and len(idle.parts) < AT_A_TIME:
            self._send(idle, part)
        else:
            self._do_here(part)
        self._settle()

    def finish(self) -> None:
        """Wait for what is not done yet, then end the processes.

        :raises JobError: a process died.
        """
        self._settle()
        while self._parts:
            self._receive(None)
            self._settle()
        self.close()

    def close(self) -> None:
        """End the processes, whatever they do."""
        for process in self._processes:
            with suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
            os.close(process.asks)
            os.close(process.answers)
            _wait_for(process.pid)
        self._processes.clear()

    # -- processes ----------------------------------------------------------------------------------

    def _fork(self) -> None:
        asked, asks = os.pipe()
        answers, answered = os.pipe()
        for descriptor in (asks, answered):
            _widen(descriptor)
        others = [asks, answers, *(fd for each in self._processes for fd in (each.asks, each.answers))]
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until it is settled whom they concern
        try:
            pid = os.fork()
            if pid == 0:
                become(self._work, self._shared, asked, answered, others)
        except OSError:
            os.close(asks)
            os.close(answers)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(asked)
            os.close(answered)
        os.set_blocking(asks, False)
        self._processes.append(_Process(pid, asks, answers))

    def _send(self, process: _Process, part: _Part) -> None:
        part.owner = process
        process.parts.append(part)
        head = pickle.dumps((self._news[process.heard :], part.state))
        process.heard = len(self._news)
        for data in (ASKED.pack(len(head), len(part.batch)) + head, part.batch):
            left = memoryview(data)
            while left and process.how_it_ended is None:
                try:
                    left = left[os.write(process.asks, left) :]
                except BlockingIOError:
                    self._receive(None, process)
                    self._settle()
                except BrokenPipeError:
                    self._died(process)

    def _died(self, process: _Process) -> None:
        if process.how_it_ended is None:
            process.how_it_ended = _wait_for(process.pid)

    # -- what comes back ----------------------------------------------------------------------------

    def _receive(self, seconds: float | None, writes_to: _Process | None = None) -> None:
        """Take in what came.

        :param seconds: how long to wait for something; None for as long as it takes.
        :param writes_to: a process that need not be waited for once it can be written to.
        """
        first = self._parts[0].owner if self._parts else None
        readable = {
            process.answers: process
            for process in self._processes
            if process.how_it_ended is None and (process is first or self._held < MOST_HELD)
        }
        poll = select.poll()
        for descriptor in readable:
            poll.register(descriptor, select.POLLIN)
        if writes_to is not None:
            poll.register(writes_to.asks, select.POLLOUT)
        for descriptor, _ in poll.poll(None if seconds is None else seconds * 1_000):
            if descriptor in readable:
                self._take(readable[descriptor])

    def _take(self, process: _Process) -> None:
        data = os.read(process.answers, _PIPE_BYTES)
        if not data:
            self._died(process)
            return
        received = process.received
        received += data
        at = 0
        while len(received) - at >= ANSWER.size:
            kind, size = ANSWER.unpack_from(received, at)
            end = at + ANSWER.size + size
            if end > len(received):
                break
            self._answered(process, kind, bytes(memoryview(received)[at + ANSWER.size : end]))
            at = end
        del received[:at]

    def _answered(self, process: _Process, kind: int, data: bytes) -> None:
        part = process.parts[0]
        if kind in (PIECE, MAYBE):
            if not part.is_done:  # else it was done again, here
                self._keep(part, data if kind == PIECE else load(data, ()))
            return
        process.parts.popleft()
        if part.is_done:
            return
        if kind == DONE:
            part.after, part.result = load(data, self._shared)
        else:
            part.error = load(data, ())
        part.is_done = True

    def _keep(self, part: _Part, piece: Piece) -> None:
        size = len(piece) if isinstance(piece, bytes) else len(piece.data)
        part.pieces.append(piece)
        part.size += size
        self._held += size

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
            died = None if part.owner is None or part.is_done else part.owner.how_it_ended
            if part.state != self._state and died is None:  # what killed a process may kill this one
                if part.goes_on:
                    return
                self._do_again(part)
            for piece in self._drop(part) if part.state == self._state else ():
                self._write(piece)
            if part.error is not None:
                if part.owner is not None:  # it happens here again, and then shows where
                    self._work.do(part.batch, part.state, _nowhere)
                raise part.error
            if died is not None:
                raise JobError(died)
            if not part.is_done:
                return
            self._parts.popleft()
            self._state = part.after
            self._done(part.result)

    def _do_again(self, part: _Part) -> None:
        self._drop(part)
        part.error = None
        part.state = self._state
        part.after, part.result = self._work.do(part.batch, part.state, self._write)
        part.is_done = True

    def _do_here(self, part: _Part) -> None:
        part.goes_on = True
        try:
            part.after, part.result = self._work.do(part.batch, part.state, partial(self._write_of, part))
            part.is_done = True
        except _Stale:
            pass
        except Exception as error:  # whatever it is, it is raised in its turn
            part.error = error
        finally:
            part.goes_on = False

    def _write_of(self, part: _Part, piece: Piece) -> None:
        """What a batch writes that is done here."""
        if self._parts[0] is part and not part.pieces:
            self._write(piece)
            return
        self._keep(part, piece)
        if self._held < MOST_HELD:
            return
        while self._parts[0] is not part:
            self._receive(None)
            self._settle()
        if part.state != self._state:
            raise _Stale
        self._settle()


def _nowhere(_: Piece) -> None:
    """What is written was written before."""


def _widen(descriptor: int) -> None:
    """Have a pipe hold a whole batch, so that whoever writes it goes on at once."""
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
