"""Batches ─► a process each ─► what they write, in the order of the batches.

Rules

1. A process is forked for a batch, and has it and all that its events refer to from its birth. The process
   that forks must have no other threads. A process that had a part of a capture may have others after it.
2. As many processes work at a time as were asked for. If all of them do, whoever brings the next batch waits.
3. What a batch writes may depend on how the one before it ended (columns of text grow). A batch is begun with
   the state that is known then, or expected of the batches before it. If a batch before it ends in another
   state, it is begun anew.
4. Memory is bounded: a limited amount of what is written out of turn is kept here; a process that writes more
   waits.
5. A process that dies ends the work at its batch; what came before is written.
6. A part of a capture is dissected by its process first. Its turn comes when its seam is known; until then
   nothing is written of it.
7. Where there are few of them, the first process has parts of its own (:meth:`Workers.do_here`). It does them
   with what it knows, piece by piece, and hands nothing over. The others run at a lower priority: they wait
   for the first one sooner than it for them.
8. The interrupt key and SIGTERM are for this process to answer. The others end when nobody reads their pipe.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from time import process_time
from typing import Any

from kdissect.dissect import Event
from kdissect.jobs.batches import Batch, used_up
from kdissect.jobs.serving import (
    ANSWER,
    DONE,
    EDGE,
    ENDING,
    NEXT,
    PIECE,
    QUESTION,
    SEAM,
    WHOLE,
    Before,
    PartTask,
    Piece,
    WholePiece,
    Work,
    become,
    dump,
    load,
    serve_batch,
    serve_part,
)

MOST_HELD = 16 << 20
"""Bytes written out of turn that are kept."""
AHEAD = 2
"""So many batches for each process may be begun before the first of them is written: their events stay in
memory."""
_PIPE_BYTES = 1 << 20
MOST_SPARE = 1
"""So many more processes than were asked for may be there, since some wait for their turn to be written."""
MOST_MISTAKEN = 4
"""After so many parts that were begun with a wrong state, which was expected, none is expected any more."""


class JobError(Exception):
    """A process died; the text says how."""


class _WorkerProcess:
    """A process, and what came from it that is not a whole answer yet."""

    __slots__ = ("answers", "asks", "kind", "pid", "received", "size", "there")

    def __init__(self, pid: int, answers: int, asks: int | None) -> None:
        self.pid = pid
        self.answers = answers
        """The descriptor that its answers come from."""
        self.asks = asks
        """The one that what it must know goes to; None where it has a batch."""
        self.kind: int | None = None
        """Of the answer that comes, once that and its size are there."""
        self.size = 0
        self.received: list[bytes] = []
        """What came of it, or of its kind and size. It is read so that a piece that is there as a whole is
        not copied."""
        self.there = 0
        """Bytes of that."""


class _PendingBatch:
    """A batch on its way."""

    __slots__ = (
        *(
            "after",
            "batch",
            "before",
            "counted",
            "died",
            "edge",
            "error",
            "is_done",
            "pieces",
            "process",
            "result",
            "size",
        ),
        *("stale", "state", "task"),
    )

    def __init__(
        self, batch: Batch | None, state: Any, task: PartTask | None = None, before: Before | None = None
    ) -> None:
        self.before = before
        """What is known of all before it, where something is."""
        self.batch = batch
        """None for a part of a capture, which its process has."""
        self.task = task
        """The part."""
        self.edge: bytes | None = None
        """Of a part, when it is dissected."""
        self.stale = 0
        """So many outcomes of it, and what is written before each, count no more."""
        self.begin(state)

    def begin(self, state: Any) -> None:
        """Nothing was done of it yet."""
        self.process: _WorkerProcess | None = None
        """What does it, until it is done."""
        self.died: str | None = None
        """How its process ended before its time."""
        self.begin_with(state)

    def begin_with(self, state: Any) -> None:
        """The same, and its process is to begin again."""
        self.state = state
        self.pieces: list[Piece] = []
        """What it wrote before its turn came."""
        self.size = 0
        """Bytes of the pieces."""
        self.is_done = False
        self.after: Any = None
        self.result: Any = None
        self.counted: Any = None
        """What a part says of its events, which nobody here has seen."""
        self.error: Exception | None = None


class _KeptPieces:
    """What is written before its turn has come."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.size = 0

    def write(self, piece: Piece) -> None:
        if isinstance(piece, bytes):
            self.size += len(piece)
        else:
            whole: WholePiece = load(dump(piece, ()), ())  # whoever wrote it may use what it is made of again
            piece = whole
            self.size += len(whole.data)
        self.pieces.append(piece)


class Workers:
    """The processes.

    :param count: how many work at a time, beside the one that brings the batches.
    :param write: takes what batches write, in order.
    :param done: takes what else came of each batch, in order.
    :param state: how the work before the first batch ended.
    :param shared: objects that results refer to and that every process has its own of.
    :param counted: takes what each part says of its events, in order.
    """

    def __init__(
        self,
        work: Work,
        count: int,
        write: Callable[[Piece], None],
        done: Callable[[Any], None],
        state: Any = None,
        shared: Sequence[object] = (),
        counted: Callable[[Any], None] | None = None,
    ) -> None:
        self._work = work
        self._counted = counted or _nowhere
        self._count = count
        self._write = write
        self._done = done
        self._state = state
        self._shared = tuple(shared)
        self._parts: deque[_PendingBatch] = deque()
        """Those that are not written yet, in order."""
        self._held = 0
        self._poll = select.poll()
        self._running: dict[int, _PendingBatch] = {}
        """Those that are being done, by the descriptor that their answers come from."""
        self._idle: list[tuple[_WorkerProcess, PartTask]] = []
        """Those that have done a part and may have another one, with that part."""
        self._mistaken = 0
        """How many parts were begun with a state that was expected, and wrong."""
        self.attended = 0.0
        """CPU seconds of this process for what others have done, in :meth:`attend`."""
        self._is_full = False
        """Whether only the first is listened to, because enough is kept of the others."""

    @property
    def state(self) -> Any:
        """How what is written so far ended."""
        return self._state

    def submit(self, batch: Batch) -> None:
        """Have a batch done, as soon as there is a process for it; what is ready is written.

        :raises JobError: a process died.
        """
        while self._busy() >= self._count or len(self._parts) >= AHEAD * self._count:
            self._receive(None)
            self._settle()
        part = _PendingBatch(batch, self._state)
        self._parts.append(part)
        self._begin(part)
        self.attend()

    @property
    def may_begin(self) -> bool:
        """Whether a part should be begun at once. A new process costs much, for its memory is new. Where
        there are enough, one of them soon has done its part."""
        return bool(self._idle) or len(self._running) < self._count + MOST_SPARE

    def begin_part(self, task: PartTask) -> _PendingBatch:
        """Have a part of a capture dissected.

        :raises OSError: no process may begin.
        """
        part = _PendingBatch(None, None, task)
        self._end_those_that_died()
        process, latest = self._idle[-1] if self._idle else (None, None)
        order = None if process is None else task.order(latest)
        if process is None or order is None:
            self._fork(part, task)
            return part
        self._idle.pop()
        part.process = process
        self._running[process.answers] = part
        if not self._is_full:
            self._poll.register(process.answers, select.POLLIN)
        _tell(process, NEXT, order)
        return part

    def edge_of(self, part: _PendingBatch) -> bytes:
        """Wait for the edge of a part.

        :raises JobError: its process died.
        """
        while part.edge is None and part.error is None and part.died is None:
            self._receive(None, part)
            self._settle()
        if part.error is not None:
            raise part.error
        if part.died is not None:
            raise JobError(part.died)
        assert part.edge is not None
        return part.edge

    def submit_part(self, part: _PendingBatch, seam: bytes, before: Before | None = None) -> None:
        """The seam of a part is known: have it done as the next batch."""
        while len(self._parts) >= AHEAD * self._count:
            self._receive(None)
            self._settle()
        part.before = before
        part.begin_with(self._expected(before, len(self._parts)))
        self._parts.append(part)
        self._ask(part, seam)
        self.attend()

    def do_here(
        self,
        lists: Iterator[Sequence[Event]],
        count: Callable[[Sequence[Event]], Any],
        before: Before | None = None,
    ) -> None:
        """Do events here, as the next batch, while others work. What the batches before it write comes first.

        :param lists: the events, in lists. Between two of them there is time to attend to the others.
        :param count: what is to be said of events.
        :raises JobError: a process died.
        """
        state, kept = self._expected(before, len(self._parts)), _KeptPieces()
        again: Batch = []
        part = _PendingBatch(again, state, None, before)
        try:
            part.after, part.result = self._work.do(self._attended(lists, again, count), state, kept.write)
        except Exception:
            self.finish()
            if self._state != state:
                self._work.do(used_up(again), self._state, self._write)
            else:
                for piece in kept.pieces:
                    self._write(piece)
            raise
        if self._expected(before, len(self._parts)) != state:
            self.submit(again)
            return
        part.pieces, part.size, part.is_done = kept.pieces, kept.size, True
        self._held += part.size
        self._parts.append(part)
        self._settle()

    def _attended(
        self, lists: Iterator[Sequence[Event]], again: Batch, count: Callable[[Sequence[Event]], Any]
    ) -> Iterator[Sequence[Event]]:
        for events in lists:
            self._counted(count(events))
            if self._state is not None:  # only work that has a state may have to be done again
                again += events
            yield events
            self.attend()

    def drop_part(self, part: _PendingBatch) -> None:
        """A part is given up."""
        if part.edge is None:
            self._end(part, kills=True)
        else:
            self._let_go(part)

    def attend(self) -> None:
        """Take in what came, and write what is ready, without waiting. To be called often: a process whose
        pipe is full waits.

        :raises JobError: a process died.
        """
        before = process_time()
        if self._running:
            self._receive(0)
        if self._parts:
            self._settle()
        self.attended += process_time() - before

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
        self.end_idle()

    def end_idle(self) -> None:
        """No further part is to come."""
        while self._idle:
            _end_process(self._idle.pop()[0], kills=False)

    # -- processes ----------------------------------------------------------------------------------

    def _begin(self, part: _PendingBatch) -> None:
        """Have a process do a batch; where no process may begin, it is done in its turn, here."""
        with suppress(OSError):
            self._fork(part)

    def _fork(self, part: _PendingBatch, task: PartTask | None = None) -> None:
        answers, answered = os.pipe()
        asked, asks = (None, None) if task is None else os.pipe()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until it is settled whom they concern
        try:
            _widen(answered)
            pid = os.fork()
            if pid == 0:
                others = [each for each in (answers, asks, *self._descriptors()) if each is not None]
                become(self._serving(part, task, asked), answered, others)
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
        part.process = _WorkerProcess(pid, answers, asks)
        self._running[answers] = part
        if not self._is_full:
            self._poll.register(answers, select.POLLIN)

    def _serving(
        self, part: _PendingBatch, task: PartTask | None, asked: int | None
    ) -> Callable[[int], None]:
        """What a process does."""
        if task is not None and asked is not None:
            return partial(serve_part, self._work, task, self._shared, asked)
        assert part.batch is not None
        return partial(serve_batch, self._work, part.batch, part.state, self._shared)

    def _busy(self) -> int:
        """How many of the batches are being done."""
        return sum(part.process is not None and not part.is_done for part in self._parts)

    def _descriptors(self) -> Iterator[int | None]:
        for part in self._running.values():
            if part.process is not None:
                yield part.process.answers
                yield part.process.asks
        for process, _ in self._idle:
            yield process.answers
            yield process.asks

    def _ask(self, part: _PendingBatch, seam: bytes | None) -> None:
        """Tell a process with a part what it must know, and from which state to go on."""
        process = part.process
        if process is None or process.asks is None:
            return
        _tell(process, SEAM, pickle.dumps((seam, part.state)))

    def _let_go(self, part: _PendingBatch) -> None:
        """A part is done, or given up: its process may have another one."""
        process = part.process
        if process is None or part.task is None:
            self._end(part)
            return
        part.process = None
        self._forget(process)
        self._idle.append((process, part.task))

    def _end_those_that_died(self) -> None:
        """Let go of idle processes that somebody has killed. Nobody waits for them, so nothing is lost."""
        poll = select.poll()
        for process, _ in self._idle:
            poll.register(process.answers, select.POLLIN)
        ended = {descriptor for descriptor, _ in poll.poll(0)}  # an idle process says nothing
        for process, _ in self._idle:
            if process.answers in ended:
                _end_process(process, kills=True)
        self._idle = [each for each in self._idle if each[0].answers not in ended]

    def _end(self, part: _PendingBatch, *, kills: bool = False) -> str | None:
        """Let go of the process of a batch; gives how it ended, if that was before its time."""
        process, part.process = part.process, None
        if process is None:
            return None
        self._forget(process)
        return _end_process(process, kills=kills)

    def _forget(self, process: _WorkerProcess) -> None:
        """Listen to a process no more."""
        del self._running[process.answers]
        with suppress(KeyError):
            self._poll.unregister(process.answers)

    # -- what comes back ----------------------------------------------------------------------------

    def _receive(self, seconds: float | None, wanted: _PendingBatch | None = None) -> None:
        """Take in what came.

        :param seconds: how long to wait for something; None for as long as it takes.
        :param wanted: a part whose turn has not come, and which is waited for all the same.
        """
        self._listen(wanted)
        if not self._running:
            return
        for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1_000):
            part = self._running.get(descriptor)
            if part is not None:
                self._take(part)

    def _listen(self, wanted: _PendingBatch | None) -> None:
        """Listen to all processes; where enough is kept to the first one's alone, and to what is wanted."""
        first = {each.process.answers for each in (*islice(self._parts, 1), wanted) if each and each.process}
        is_full = self._held >= MOST_HELD
        if not is_full and not self._is_full:
            return
        self._is_full = is_full
        for descriptor in self._running:
            if not is_full or descriptor in first:
                self._poll.register(descriptor, select.POLLIN)
            else:
                with suppress(KeyError):
                    self._poll.unregister(descriptor)

    def _take(self, part: _PendingBatch) -> None:
        process = part.process
        assert process is not None
        wanted = process.size - process.there if process.kind is not None else ANSWER.size - process.there
        data = os.read(process.answers, wanted)
        if not data:
            part.died = self._end(part)
            return
        process.there += len(data)
        process.received.append(data)
        if len(data) < wanted:
            return
        whole = data if len(process.received) == 1 else b"".join(process.received)
        process.received, process.there = [], 0
        if process.kind is None:
            process.kind, process.size = ANSWER.unpack(whole)
            if process.size:
                return
            whole = b""
        kind, process.kind = process.kind, None
        assert kind is not None
        self._answered(part, kind, whole)

    def _answered(self, part: _PendingBatch, kind: int, data: bytes) -> None:
        if kind == EDGE:
            part.edge = data
            return
        if part.stale:
            part.stale -= kind not in (PIECE, WHOLE)
            return
        if kind in (PIECE, WHOLE):
            piece: Piece = data if kind == PIECE else load(data, ())
            size = len(piece) if isinstance(piece, bytes) else len(piece.data)
            part.pieces.append(piece)
            part.size += size
            self._held += size
            return
        if kind == DONE:
            part.after, part.result, part.counted = load(data, self._shared)
        else:
            part.error = load(data, ())
        part.is_done = True
        if part.batch is not None:
            self._end(part)  # a part may be asked for again

    def _drop(self, part: _PendingBatch) -> list[Piece]:
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
                if part.batch is not None:
                    # It happens here again, and shows where.
                    self._work.do(used_up(part.batch), part.state, _nowhere)
                raise part.error
            if part.died is not None:
                raise JobError(part.died)
            if not part.is_done:
                if part.process is not None:
                    return
                assert part.batch is not None
                events = used_up(part.batch)
                part.after, part.result = self._work.do(events, self._state, self._write)
            self._let_go(part)
            self._parts.popleft()
            self._go_on(part.after)
            self._done(part.result)
            if part.counted is not None:
                self._counted(part.counted)

    def _expected(self, before: Before | None, place: int) -> Any:
        """With which state to begin a batch.

        :param place: of how many others the outcome is not known that come before it.
        """
        if not place or before is None or self._state is None or self._mistaken >= MOST_MISTAKEN:
            return self._state
        return self._work.expected(self._state, before)

    def _go_on(self, state: Any) -> None:
        """The batch before the first ended so: begin anew those that were begun with another state."""
        is_new, self._state = state != self._state, state
        for place, part in enumerate(self._parts):
            wanted = self._expected(part.before, place)
            if part.state != wanted:
                self._mistaken += place == 0 and part.before is not None and not is_new
                self._begin_anew(part, wanted)
            if not is_new:
                return  # those behind it were begun with what is expected now

    def _begin_anew(self, part: _PendingBatch, state: Any) -> None:
        self._drop(part)
        if part.batch is None:
            part.stale += not part.is_done and part.error is None
            part.begin_with(state)
            self._ask(part, None)
        else:
            self._end(part, kills=True)
            part.begin(state)
            self._begin(part)


def _nowhere(_: object) -> None:
    """What is written was written before."""


def _tell(process: _WorkerProcess, kind: int, data: bytes) -> None:
    """Tell a process with a part what it must know."""
    assert process.asks is not None
    with suppress(BrokenPipeError):  # it died, which shows at the other pipe
        for each in (QUESTION.pack(kind, len(data)), data):
            left = memoryview(each)
            while left:
                left = left[os.write(process.asks, left) :]


def _end_process(process: _WorkerProcess, *, kills: bool) -> str | None:
    """Let go of a process; gives how it ended, if that was before its time."""
    if kills:
        with suppress(OSError):
            os.kill(process.pid, signal.SIGKILL)
    os.close(process.answers)
    if process.asks is not None:
        os.close(process.asks)
    return _wait_for(process.pid)


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
