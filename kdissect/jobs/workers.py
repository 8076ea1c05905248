"""Batches ─► a process each ─► their output, in the order of the batches.

Rules

1. A process is forked for a batch, with the batch and all that its events refer to in its memory. The process
   that forks must have no other threads. A process that had a part of a capture may have others after it.
2. As many processes work at a time as were asked for. If all of them are busy, the caller with the next batch
   waits.
3. The output of a batch may depend on the state in which the batch before it ended (columns of text grow). A
   batch is begun with the state that is known then, or expected after the batches before it. If a batch
   before it ends in another state, the batch is begun again.
4. Memory is bounded: a limited amount of output is kept here until its turn comes. Each process keeps a
   limited amount more (:mod:`kdissect.jobs.answers`), then it waits.
5. If a process dies, the work ends at its batch. The output of earlier batches is written.
6. A part of a capture is first dissected by its process. Its turn comes when its seam is known. Until then,
   none of its output is written.
7. With few processes, the first one has parts of its own (:meth:`Workers.work_locally`). It does them with
   the objects that it has, piece by piece, and sends nothing. The others run at a lower priority, because
   each of them waits for the first one more often than it waits for them.
8. This process handles the interrupt key and SIGTERM. The others end when nobody reads their pipe.
"""

from __future__ import annotations

import pickle
import select
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from time import process_time
from typing import Any

from kdissect.dissect import Event
from kdissect.jobs.batches import AT_ONCE, Batch, used_up
from kdissect.jobs.pending import KeptPieces, PendingBatch
from kdissect.jobs.process import WorkerProcess, fork
from kdissect.jobs.serving import (
    DONE,
    EDGE,
    NEXT,
    PIECE,
    SEAM,
    WHOLE,
    Before,
    PartTask,
    Piece,
    Work,
    load,
    serve_batch,
    serve_part,
)

MOST_HELD = 16 << 20
"""The most bytes of output that are kept before their turn comes."""
AHEAD = 2
"""How many batches for each process may be begun before the first of them is written: their events stay in
memory."""
MOST_SPARE = 1
"""The number of extra processes allowed, because some wait for their turn to be written."""
LISTS_AT_ONCE = 4
"""How many lists of events are done here before answers of the others are read. Each list is some tens of
kilobytes of messages, and the pipe of a process holds more."""
MOST_MISTAKEN = 4
"""After this many parts that were begun with a wrong expected state, states are no longer expected."""


class JobError(Exception):
    """A process died; the text says how."""


class Workers:
    """The processes.

    :param count: how many work at a time, besides the calling process.
    :param write: gets the output of batches, in order.
    :param done: gets the other results of each batch, in order.
    :param state: the state before the first batch.
    :param shared: objects that results refer to and that every process has its own of.
    :param counted: gets the counts of each part's events, in order.
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
        self._parts: deque[PendingBatch] = deque()
        """The batches that are not written yet, in order."""
        self._held = 0
        self._poll = select.poll()
        self._running: dict[int, PendingBatch] = {}
        """The batches that are being done, by the descriptor of their answers."""
        self._idle: list[tuple[WorkerProcess, PartTask]] = []
        """The processes that have done a part and may have another one, with that part."""
        self._mistaken = 0
        """How many parts were begun with an expected state that was wrong."""
        self.attended = 0.0
        """CPU seconds of this process that :meth:`attend` took for the output of others."""
        self._is_full = False
        """Whether only the process of the first batch is read, because enough output of the others is
        kept."""

    @property
    def state(self) -> Any:
        """The state after the batches that are written."""
        return self._state

    def submit(self, batch: Batch) -> None:
        """Have a batch done as soon as a process is free. Write the output that is ready.

        :raises JobError: a process died.
        """
        while self._busy() >= self._count or len(self._parts) >= AHEAD * self._count:
            self._receive(None)
            self._write_ready()
        part = PendingBatch(batch, self._state)
        self._parts.append(part)
        self._begin(part)
        self.attend()

    def may_begin(self, spare: int = MOST_SPARE) -> bool:
        """Whether to begin a part at once. A new process costs much, because its memory is new. If there are
        enough processes, one of them will soon have done its part.

        :param spare: the number of extra processes allowed.
        """
        return bool(self._idle) or len(self._running) < self._count + spare

    def wait_to_begin(self, spare: int = MOST_SPARE) -> None:
        """Wait until a part may be begun. The seams of all parts that others have must be known.

        :raises JobError: a process died.
        """
        while self._running and not self.may_begin(spare):
            self._receive(None)
            self._write_ready()

    def begin_part(self, task: PartTask) -> PendingBatch:
        """Have a part of a capture dissected.

        :raises OSError: no process can be forked.
        """
        part = PendingBatch(None, None, task)
        self._remove_dead()
        process, latest = self._idle[-1] if self._idle else (None, None)
        order = None if process is None else task.order(latest)
        if process is not None:
            self._idle.pop()
        if process is None or order is None:
            if process is not None:
                process.end(kills=False)  # it cannot do any later part either
            self._fork(part, task)
            return part
        self._send_batch(part, process)
        process.send(NEXT, order)
        return part

    def edge_of(self, part: PendingBatch) -> bytes:
        """Wait for the edge of a part.

        :raises JobError: its process died.
        """
        while part.edge is None and part.error is None and part.died is None:
            self._receive(None, part)
            self._write_ready()
        if part.error is not None:
            raise part.error
        if part.died is not None:
            raise JobError(part.died)
        assert part.edge is not None
        return part.edge

    def submit_part(self, part: PendingBatch, seam: bytes, before: Before | None = None) -> None:
        """Have a part done as the next batch: its seam is known."""
        while len(self._parts) >= AHEAD * self._count:
            self._receive(None)
            self._write_ready()
        part.before = before
        part.begin_with(self._expected(before, len(self._parts)))
        self._parts.append(part)
        self._send_seam(part, seam)
        self.attend()

    def work_locally(
        self,
        lists: Iterator[Sequence[Event]],
        count: Callable[[Sequence[Event]], Any],
        before: Before | None = None,
    ) -> None:
        """Do events here, as the next batch, while others work. The output of earlier batches is written
        first.

        :param lists: the events, in lists. Between some of them, answers of the others are read.
        :param count: counts events.
        :raises JobError: a process died.
        """
        while self._held >= MOST_HELD and self._parts:  # this process is ahead of the others
            self._receive(None)
            self._write_ready()
        state, kept = self._expected(before, len(self._parts)), KeptPieces()
        again: Batch = []
        part = PendingBatch(again, state, None, before)
        try:
            events = self._attended(lists, again, count, state, kept)
            part.after, part.result = self._work.do(events, state, kept.write)
        except Exception:
            self.finish()
            if self._state != state:
                self._work.do(used_up(again), self._state, self._write)
            else:
                kept.write_to(self._write)
            raise
        # A fork for these events would copy most of their memory, because both processes count references.
        while (wanted := self._expected(before, len(self._parts))) != state:
            state, kept = wanted, KeptPieces()
            part.begin(state)
            part.after, part.result = self._work.do(self._repeated(again), state, kept.write)
        part.pieces, part.size, part.is_done = kept.pieces, kept.size, True
        self._held += part.size
        self._parts.append(part)
        self._write_ready()

    def _attended(
        self,
        lists: Iterator[Sequence[Event]],
        again: Batch,
        count: Callable[[Sequence[Event]], Any],
        state: Any,
        kept: KeptPieces,
    ) -> Iterator[Sequence[Event]]:
        """The lists of events. Once all earlier batches are written, the state with which this one began is
        known to be right or wrong. If it is right, events are no longer kept, and output is written at
        once."""
        is_next = False
        for number, events in enumerate(lists, 1):
            self._counted(count(events))
            if self._state is not None and not is_next:  # only work with a state may have to be done again
                again += events
            yield events
            if number % LISTS_AT_ONCE == 0:
                self.attend()
                if not is_next and not self._parts and self._state == state:
                    is_next = True
                    again.clear()
                    kept.write_to(self._write)
        self.attend()

    def _repeated(self, batch: Batch) -> Iterator[Sequence[Event]]:
        """The events of a batch, in lists. Between some of them, answers of the others are read."""
        for number, at in enumerate(range(0, len(batch), AT_ONCE), 1):
            yield batch[at : at + AT_ONCE]
            if number % LISTS_AT_ONCE == 0:
                self.attend()

    def drop_part(self, part: PendingBatch) -> None:
        """Give up a part."""
        if part.edge is None:
            self._end(part, kills=True)
        else:
            self._free_process(part)

    def attend(self) -> None:
        """Read answers and write output that is ready, without waiting. Call it often: a process whose pipe
        is full waits.

        :raises JobError: a process died.
        """
        before = process_time()
        if self._running:
            self._receive(0)
        if self._parts:
            self._write_ready()
        self.attended += process_time() - before

    def finish(self) -> None:
        """Wait until all batches are written.

        :raises JobError: a process died.
        """
        self._write_ready()
        while self._parts:
            self._receive(None)
            self._write_ready()

    def close(self) -> None:
        """Kill the processes that work, and end the others."""
        for part in list(self._running.values()):
            self._end(part, kills=True)
        self._parts.clear()
        self.end_idle()

    def end_idle(self) -> None:
        """End the processes that wait for another part: no part will come."""
        while self._idle:
            self._idle.pop()[0].end(kills=False)

    # -- processes ----------------------------------------------------------------------------------

    def _begin(self, part: PendingBatch) -> None:
        """Fork a process for a batch. If that fails, the batch is done here when its turn comes."""
        with suppress(OSError):
            self._fork(part)

    def _fork(self, part: PendingBatch, task: PartTask | None = None) -> None:
        serving = partial(self._serving, part, task)
        self._send_batch(part, fork(serving, self._descriptors(), is_asked=task is not None))

    def _send_batch(self, part: PendingBatch, process: WorkerProcess) -> None:
        """Give a batch to a process, and listen to the process."""
        part.process = process
        self._running[process.answers] = part
        if not self._is_full:
            self._poll.register(process.answers, select.POLLIN)

    def _serving(self, part: PendingBatch, task: PartTask | None, asked: int | None) -> Callable[[int], None]:
        """The function that a process runs."""
        if task is not None and asked is not None:
            return partial(serve_part, self._work, task, self._shared, asked)
        assert part.batch is not None
        return partial(serve_batch, self._work, part.batch, part.state, self._shared)

    def _busy(self) -> int:
        """How many batches are being done."""
        return sum(part.process is not None and not part.is_done for part in self._parts)

    def _descriptors(self) -> Iterator[int]:
        busy = (part.process for part in self._running.values() if part.process is not None)
        for process in chain(busy, (process for process, _ in self._idle)):
            yield process.answers
            if process.asks is not None:
                yield process.asks

    def _send_seam(self, part: PendingBatch, seam: bytes | None) -> None:
        """Send a process its part's seam (None if it has it) and the state to begin with."""
        process = part.process
        if process is None or process.asks is None:
            return
        process.send(SEAM, pickle.dumps((seam, part.state)))

    def _free_process(self, part: PendingBatch) -> None:
        """Free the process of a part that is done or given up: it may have another part."""
        process = part.process
        if process is None or part.task is None:
            self._end(part)
            return
        part.process = None
        self._forget(process)
        self._idle.append((process, part.task))

    def _remove_dead(self) -> None:
        """Remove idle processes that were killed from outside. They had no work, so nothing is lost."""
        poll = select.poll()
        for process, _ in self._idle:
            poll.register(process.answers, select.POLLIN)
        ended = {descriptor for descriptor, _ in poll.poll(0)}  # a living idle process sends nothing
        for process, _ in self._idle:
            if process.answers in ended:
                process.end(kills=True)
        self._idle = [each for each in self._idle if each[0].answers not in ended]

    def _end(self, part: PendingBatch, *, kills: bool = False) -> str | None:
        """End the process of a batch; return how it ended. None if it has no process."""
        process, part.process = part.process, None
        if process is None:
            return None
        self._forget(process)
        return process.end(kills=kills)

    def _forget(self, process: WorkerProcess) -> None:
        """Stop listening to a process."""
        del self._running[process.answers]
        with suppress(KeyError):
            self._poll.unregister(process.answers)

    # -- what comes back ----------------------------------------------------------------------------

    def _receive(self, seconds: float | None, wanted: PendingBatch | None = None) -> None:
        """Read answers.

        :param seconds: how long to wait for an answer; None for no limit.
        :param wanted: a part to wait for, although its turn has not come.
        """
        self._listen(wanted)
        if not self._running:
            return
        for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1_000):
            part = self._running.get(descriptor)
            if part is not None:
                self._take(part)

    def _listen(self, wanted: PendingBatch | None) -> None:
        """Listen to all processes. If enough output is kept, listen only to the first batch's process and
        ``wanted``'s."""
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

    def _take(self, part: PendingBatch) -> None:
        assert part.process is not None
        try:
            answer = part.process.take()
        except EOFError:
            part.died = self._end(part)
            return
        if answer is not None:
            self._answered(part, *answer)

    def _answered(self, part: PendingBatch, kind: int, data: bytes) -> None:
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
            part.after, part.result, part.counted, part.seconds = load(data, self._shared)
        else:
            part.error = load(data, ())
        part.is_done = True
        if part.batch is not None:
            self._end(part)  # a part may be asked for again

    def _drop(self, part: PendingBatch) -> list[Piece]:
        pieces, part.pieces = part.pieces, []
        self._held -= part.size
        part.size = 0
        return pieces

    # -- in order -----------------------------------------------------------------------------------

    def _write_ready(self) -> None:
        """Write the output that is ready and whose turn has come."""
        while self._parts:
            part = self._parts[0]
            for piece in self._drop(part):
                self._write(piece)
            if part.error is not None:
                if part.batch is not None:
                    # Do it here: the error happens again, with a traceback.
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
            self._free_process(part)
            self._parts.popleft()
            self._go_on(part.after)
            self._done(part.result)
            if part.counted is not None:
                self._counted(part.counted)

    def _expected(self, before: Before | None, place: int) -> Any:
        """The state with which to begin a batch.

        :param place: the number of earlier batches whose result is not known.
        """
        if not place or before is None or self._state is None or self._mistaken >= MOST_MISTAKEN:
            return self._state
        return self._work.expected(self._state, before)

    def _go_on(self, state: Any) -> None:
        """Note the state after the first batch. Begin the batches again that were begun with another
        state."""
        is_new, self._state = state != self._state, state
        for place, part in enumerate(self._parts):
            wanted = self._expected(part.before, place)
            if part.state != wanted:
                self._mistaken += place == 0 and part.before is not None and not is_new
                self._restart_part(part, wanted)
            if not is_new:
                return  # later batches were begun with the state that is expected now

    def _restart_part(self, part: PendingBatch, state: Any) -> None:
        self._drop(part)
        if part.batch is None:
            part.stale += not part.is_done and part.error is None
            part.begin_with(state)
            self._send_seam(part, None)
        else:
            self._end(part, kills=True)
            part.begin(state)
            self._begin(part)


def _nowhere(_: object) -> None:
    """Drop a piece that is already written."""
