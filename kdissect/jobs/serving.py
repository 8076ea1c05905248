"""The code that a forked process runs: it does its batch, sends answers through a pipe, and ends.

    ─► a kind and a size, then a seam and a state, or another part          (QUESTION; only for parts)
    ◄─ a kind and a size, then an edge, a piece, an outcome or an error     (ANSWER)

A process with a part of a capture first dissects it and sends its edge. Then it gets the seam, and the part
is done like a batch. The part may be done again with another state. After a part, a process may get another
part: a new process, with new memory, costs as much as dissecting some megabytes.

Objects that both processes have from before the fork (tables, names of topic ids) are sent as their index in
``shared``. The receiver uses its own object, not a copy.
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import signal
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copyreg import dispatch_table
from io import BufferedReader
from struct import Struct
from time import process_time
from typing import Any, NamedTuple, NoReturn, Protocol

from kdissect.dissect import Event
from kdissect.jobs.answers import PIECE_BYTES, AnswerPipe
from kdissect.jobs.batches import Batch, used_up
from kdissect.system.confining import confine


class WholePiece(Protocol):
    """A piece of output that is not joined with others. It can be pickled."""

    @property
    def data(self) -> bytes:
        """The member that has most of the piece's bytes."""


Piece = bytes | WholePiece
Write = Callable[[Piece], None]

QUESTION = Struct("<BQ")
"""The kind of a message to a process with a part, and the size of its data. Other processes get no
messages."""
SEAM, NEXT = range(2)
PIECE, WHOLE, DONE, FAILED, EDGE = range(5)
ENDING = (signal.SIGINT, signal.SIGTERM)
LESS_URGENT = 2
"""How much lower the priority of these processes is (niceness): if the first one is late, all are late."""
COLLECTOR_THRESHOLD = 1_000_000
"""The threshold of Python's garbage collector. A process has a batch in memory all the time. Looking for
cycles in it took a fifth of its time."""


class Before(NamedTuple):
    """The counts of all parts before a part of a capture."""

    exchanges: int
    """How many exchanges have a number."""
    connections: int
    """How many connections have a number."""
    latest_ns: int | None
    """About the latest time; None if unknown."""


class Work(Protocol):
    """The work to do with each batch."""

    def expected(self, state: Any, before: Before) -> Any:
        """Return the state in which the work before a part is likely to end.

        :param state: the state after the batches that are done.
        """

    def do(self, events: Iterable[Sequence[Event]], state: Any, write: Write) -> tuple[Any, Any]:
        """Do a batch. It writes whole lines.

        :param events: the events of the batch, in lists.
        :param state: the state after the batch before it.
        :returns: the state after this batch, and its other results. Both can be pickled.
        """


class PartTask(Protocol):
    """A part of a capture, with what its process needs."""

    def edge(self) -> bytes:
        """Dissect the part; return its edge for the stitcher."""

    def batch(self, seam: bytes) -> tuple[Batch, Any]:
        """Return all events of the part, and their counts."""

    def order(self, latest: Any) -> bytes | None:
        """Return the message that gives this part to the process that had the part ``latest``. None if a new
        process must be forked for this part."""

    def take(self, order: bytes) -> None:
        """Become another part, by the message from :meth:`order`."""


def become(serve: Callable[[int], None], answered: int, others: Sequence[int]) -> NoReturn:
    """Run the forked process, from its beginning to its end. Never returns to the caller of ``fork``.

    :param serve: does the work; gets the descriptor to which answers are written.
    :param others: descriptors of the first process that this one must not keep open.
    """
    code = 1
    try:
        os.nice(LESS_URGENT)
        gc.freeze()  # looking at objects would copy the memory that both processes share
        gc.set_threshold(COLLECTOR_THRESHOLD, *gc.get_threshold()[1:])
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        for descriptor in others:
            os.close(descriptor)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1):  # only the first process uses them
            os.dup2(nowhere, descriptor)
        confine()  # the process needs only its pipes, and decodes bytes that nobody has checked
        with suppress(BrokenPipeError):
            serve(answered)
        code = 0
    finally:
        os._exit(code)


def serve_batch(work: Work, batch: Batch, state: Any, shared: tuple[object, ...], answered: int) -> None:
    """Do a batch and send the results."""
    _do_batch(work, batch, state, shared, AnswerPipe(answered))


def _do_batch(
    work: Work,
    batch: Batch,
    state: Any,
    shared: tuple[object, ...],
    answers: AnswerPipe,
    counted: Any = None,
    begin: float | None = None,
) -> None:
    """Do a batch and send the results.

    :param counted: the counts of its events.
    :param begin: the CPU seconds of this process before its part of a capture; None if it has no part.
    """
    pieces = _GatheredPieces(answers)
    try:
        outcome = work.do(used_up(batch), state, pieces.write)
        pieces.flush()
        seconds = 0.0 if begin is None else process_time() - begin
        answers.send(DONE, dump((*outcome, counted, seconds), shared))
    except BrokenPipeError:
        raise
    except Exception as error:  # the first process raises it when the batch's turn comes
        pieces.flush()
        answers.send(FAILED, _dumped_error(error))
    answers.flush()


def serve_part(work: Work, task: PartTask, shared: tuple[object, ...], asked: int, answered: int) -> None:
    """Dissect a part. Then do it as a batch, each time that a seam comes. Do the same with each later
    part."""
    begin = 0.0  # what the process did since the fork is for the first part
    answers = AnswerPipe(answered)
    with open(asked, "rb") as source:
        while True:
            try:
                answers.send(EDGE, task.edge())
                answers.flush()
            except BrokenPipeError:
                raise
            except Exception as error:  # the first process raises it, as in _do_batch
                answers.send(FAILED, _dumped_error(error))
                answers.flush()
                return
            order = _serve_seams(work, task, shared, source, answers, begin)
            if order is None:
                return
            begin = process_time()
            task.take(order)


def _serve_seams(
    work: Work,
    task: PartTask,
    shared: tuple[object, ...],
    source: BufferedReader,
    answers: AnswerPipe,
    begin: float,
) -> bytes | None:
    """Do a dissected part as often as asked. Return the message with the next part; None if no part
    follows.

    :param begin: the CPU seconds of this process before the part.
    """
    batch: Batch | None = None
    counted: Any = None
    while len(head := source.read(QUESTION.size)) == QUESTION.size:
        kind, size = QUESTION.unpack(head)
        question = source.read(size)
        if kind == NEXT:
            return question
        seam, state = pickle.loads(question)
        if batch is None:
            batch, counted = task.batch(seam)
        # Only work with a state may have to be done again.
        some = batch if state is None else list(batch)
        _do_batch(work, some, state, shared, answers, counted, begin)
    return None


class _GatheredPieces:
    """Joins pieces until they are large enough to send."""

    def __init__(self, answers: AnswerPipe) -> None:
        self._answers = answers
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, data: Piece) -> None:
        if not isinstance(data, bytes):
            self.flush()
            self._answers.send(WHOLE, dump(data, ()))
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= PIECE_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._pieces:
            self._answers.send(PIECE, b"".join(self._pieces))
            self._pieces, self._size = [], 0


def _shared_at(place: int) -> object:
    """The placeholder of a shared object in pickled data; :class:`_Loader` returns the object instead."""
    raise pickle.UnpicklingError(f"shared object {place}: only the process that shares it can read this")


class _Loader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: tuple[object, ...]) -> None:
        super().__init__(file)
        self._shared = shared

    def find_class(self, module: str, name: str) -> Any:
        if module == __name__ and name == _shared_at.__name__:
            return self._shared.__getitem__
        return super().find_class(module, name)


def dump(value: object, shared: tuple[object, ...]) -> bytes:
    """Pickle a value for another process of this program.

    :param shared: objects of classes, not plain lists or dicts. They are found by their classes: a Pickler
        with a method ``persistent_id`` would call it for every number and text.
    """
    places = {id(each): place for place, each in enumerate(shared)}

    def reduced(each: object) -> Any:
        place = places.get(id(each))
        return each.__reduce_ex__(pickle.HIGHEST_PROTOCOL) if place is None else (_shared_at, (place,))

    file = io.BytesIO()
    pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = {**dispatch_table, **{type(each): reduced for each in shared}}
    pickler.dump(value)
    return file.getvalue()


def _dumped_error(error: Exception) -> bytes:
    """Pickle an error, or a RuntimeError with the same text if the error cannot be pickled."""
    try:
        data = dump(error, ())
        load(data, ())
    except Exception:  # an error's own code may raise anything
        return dump(RuntimeError(f"{type(error).__name__}: {error}"), ())
    return data


def load(data: bytes, shared: tuple[object, ...]) -> Any:
    """Read the value that :func:`dump` pickled in a process of this program."""
    return _Loader(io.BytesIO(data), shared).load()
