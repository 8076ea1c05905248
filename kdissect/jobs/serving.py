"""A process that another forked: it does the batch that it has from its birth, answers through a pipe, ends.

    ─► a kind and a size, then a seam and a state, or another part          (QUESTION; batches ask nothing)
    ◄─ a kind and a size, then an edge, a piece, an outcome or an error     (ANSWER)

A part of a capture is dissected first. Its edge goes back, and its seam comes; then it is a batch. It may be
done again, with another state. A process that had a part may have another one after it. A new process, with
new memory, costs as much as some megabytes of dissection.

Objects that both ends have from before the fork (tables, names of topic ids) go through the pipe as their
place among ``shared``. They are the same objects at the other end, no copies.
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
from typing import Any, NamedTuple, NoReturn, Protocol

from kdissect.dissect import Event
from kdissect.jobs.batches import Batch, used_up
from kdissect.system.confining import confine


class WholePiece(Protocol):
    """A piece that is not joined with others: it can be pickled."""

    @property
    def data(self) -> bytes:
        """What most of it is."""


Piece = bytes | WholePiece
Write = Callable[[Piece], None]

ANSWER = Struct("<BQ")
"""A kind, and the size of what follows."""
QUESTION = Struct("<BQ")
"""The same; another process than one with a part is asked nothing."""
SEAM, NEXT = range(2)
PIECE, WHOLE, DONE, FAILED, EDGE = range(5)
ENDING = (signal.SIGINT, signal.SIGTERM)
LESS_URGENT = 2
"""By how much these processes let the first one go before them: where it is late, all are."""
OBJECTS_BEFORE_A_LOOK = 1_000_000
"""A process has a batch in memory all the time. To look for cycles in it took a fifth of its time."""


_PIECE_BYTES = 256 << 10


class Before(NamedTuple):
    """What is known of all that comes before a part of a capture."""

    exchanges: int
    """How many have a number."""
    connections: int
    """How many have a number."""
    latest_ns: int | None
    """About the latest time; None where it is not known."""


class Work(Protocol):
    """What is done with each batch."""

    def expected(self, state: Any, before: Before) -> Any:
        """How the work before a part is likely to end.

        :param state: how what is done of it ended.
        """

    def do(self, events: Iterable[Sequence[Event]], state: Any, write: Write) -> tuple[Any, Any]:
        """Do a batch; what it writes are whole lines.

        :param events: those of the batch, in lists.
        :param state: how the batch before it ended.
        :returns: how this one ended, and whatever else came of it: both can be pickled.
        """


class PartTask(Protocol):
    """A part of a capture, as a process has it."""

    def edge(self) -> bytes:
        """Dissect it; gives what the stitcher must know."""

    def batch(self, seam: bytes) -> tuple[Batch, Any]:
        """All events of it, and what is to be said of them."""

    def order(self, latest: Any) -> bytes | None:
        """What a process must know that had the part ``latest``, to have this one; None where a process must
        have it from its birth."""

    def take(self, order: bytes) -> None:
        """Become another part, by its order."""


def become(serve: Callable[[int], None], answered: int, others: Sequence[int]) -> NoReturn:
    """What a process does from its beginning to its end. It never returns to who forked it.

    :param serve: does the work; is given the descriptor that answers go to.
    :param others: descriptors of the first process that this one must not keep open.
    """
    code = 1
    try:
        os.nice(LESS_URGENT)
        gc.freeze()  # to look at objects would copy the memory that both processes have together
        gc.set_threshold(OBJECTS_BEFORE_A_LOOK, *gc.get_threshold()[1:])
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        for descriptor in others:
            os.close(descriptor)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1):  # they are the first process's
            os.dup2(nowhere, descriptor)
        confine()  # it has its pipes, and decodes what anybody may have sent
        with suppress(BrokenPipeError):
            serve(answered)
        code = 0
    finally:
        os._exit(code)


def serve_batch(
    work: Work,
    batch: Batch,
    state: Any,
    shared: tuple[object, ...],
    answered: int,
    counted: Any = None,
) -> None:
    """Do a batch.

    :param counted: what is to be said of its events.
    """
    pieces = _GatheredPieces(answered)
    try:
        outcome = work.do(used_up(batch), state, pieces.write)
        pieces.flush()
        _answer(answered, DONE, dump((*outcome, counted), shared))
    except BrokenPipeError:
        raise
    except Exception as error:  # whatever it is, it is raised at the other end, in its turn
        pieces.flush()
        _answer(answered, FAILED, _dumped_error(error))


def serve_part(work: Work, task: PartTask, shared: tuple[object, ...], asked: int, answered: int) -> None:
    """Dissect a part, then do it as a batch, as often as it is asked for; so with each part after it."""
    with open(asked, "rb") as source:
        while True:
            try:
                _answer(answered, EDGE, task.edge())
            except BrokenPipeError:
                raise
            except Exception as error:  # as above
                _answer(answered, FAILED, _dumped_error(error))
                return
            order = _serve_seams(work, task, shared, source, answered)
            if order is None:
                return
            task.take(order)


def _serve_seams(
    work: Work, task: PartTask, shared: tuple[object, ...], source: BufferedReader, answered: int
) -> bytes | None:
    """Do a part that was dissected; gives the order of the next one, if there is one."""
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
        # Only work that has a state may be asked for again.
        some = batch if state is None else list(batch)
        serve_batch(work, some, state, shared, answered, counted)
    return None


class _GatheredPieces:
    """Gathers what is written until it is worth sending."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, data: Piece) -> None:
        if not isinstance(data, bytes):
            self.flush()
            _answer(self._descriptor, WHOLE, dump(data, ()))
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= _PIECE_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._pieces:
            _answer(self._descriptor, PIECE, b"".join(self._pieces))
            self._pieces, self._size = [], 0


def _answer(descriptor: int, kind: int, data: bytes) -> None:
    for each in (ANSWER.pack(kind, len(data)), data):
        left = memoryview(each)
        while left:
            left = left[os.write(descriptor, left) :]


def _shared_at(place: int) -> object:
    """Stands for a shared object in what is sent; :class:`_Loader` puts the object in its place."""
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
    """A value on its way to another process of this program.

    :param shared: objects of classes, not plain lists or dicts. They are found by their classes: a Pickler
        with a method ``persistent_id`` would call it with every number and text.
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
    """An error as it is, or one that says the same where it cannot be sent."""
    try:
        data = dump(error, ())
        load(data, ())
    except Exception:  # pickle raises whatever an error's own code raises
        return dump(RuntimeError(f"{type(error).__name__}: {error}"), ())
    return data


def load(data: bytes, shared: tuple[object, ...]) -> Any:
    """What :func:`dump` made in a process of this program."""
    return _Loader(io.BytesIO(data), shared).load()
