"""A question that needs the exchanges themselves → which of them answer yes, from a process of its own.

Decoding a million exchanges in the process of the screens would make every key wait. An :class:`Asker` hands
the places of exchanges to its process in portions, each of about :data:`PORTION_SECONDS` of work. So answers
come early, and a question that nobody wants any more costs at most two portions. The first question starts
the process. It reads the spool itself, and lets everything else go first (``nice``).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from kdissect.exchange import Exchange
from kdissect.feed.batches import Ended, read_exchange
from kdissect.feed.beside import Process, Shared
from kdissect.feed.index import Index, Places
from kdissect.limits import DEFAULTS, Limits

PORTION_SECONDS = 0.05
FIRST_PORTION, MOST_IN_PORTION = 64, 20_000
AHEAD = 2
"""Portions that are under way, so that the process need not wait for the next."""


class Question(Protocol):
    """What is asked of an exchange. It goes to the process by pickle."""

    def matches(self, exchange: Exchange) -> bool:
        """The answer."""


class Answers(NamedTuple):
    """What came of a portion."""

    places: Places
    """Those that were asked, in the order in which they were given."""
    hits: np.ndarray[tuple[int], np.dtype[np.bool_]]
    """Which of them answered yes."""


class _Portion(NamedTuple):
    job: int
    question: Question | None
    """None where it is that of the portion before."""
    spooled: Sequence[tuple[int, int]]
    """Place and length in the spool."""


class _Reply(NamedTuple):
    job: int
    hits: bytes
    """0, 1, or 2 where the exchange could not be asked."""
    seconds: float


_NO, _YES, _FAILED = 0, 1, 2


class Answering:
    """The machine that asks: a portion each step."""

    def __init__(self, spool: int, limits: Limits) -> None:
        self._spool, self._limits = spool, limits
        self._question: Question | None = None
        self._waiting: deque[_Portion] = deque()

    def take(self, order: _Portion) -> None:
        """Ask these too."""
        self._waiting.append(order)

    @property
    def wait(self) -> float | None:
        """Nothing, or until there is a portion."""
        return 0.0 if self._waiting else None

    def step(self) -> Iterator[_Reply]:
        """Ask the next portion."""
        if not self._waiting:
            return
        portion = self._waiting.popleft()
        self._question = portion.question or self._question
        assert self._question is not None
        began = time.monotonic()
        hits = bytes(self._answer(self._question, *where) for where in portion.spooled)
        yield _Reply(portion.job, hits, time.monotonic() - began)

    def _answer(self, question: Question, place: int, length: int) -> int:
        try:
            exchange = read_exchange(self._spool, place, length, self._limits)
            return _YES if question.matches(exchange) else _NO
        except Exception:  # one exchange that cannot be asked must not cost the others their answer
            return _FAILED


class Asker:
    """The process, as the screens see it."""

    def __init__(self, index: Index, descriptor: int, limits: Limits = DEFAULTS) -> None:
        self._index = index
        self._descriptor, self._limits = descriptor, limits
        self._worker: Process[_Portion, _Reply] | None = None
        self._job = 0
        self._sent = -1
        """The last job of which a portion was sent, with its question."""
        self._question: Question | None = None
        self._waiting: deque[Places] = deque()
        self._under_way: deque[tuple[int, Places]] = deque()
        """Job and places of the portions that were sent."""
        self._size = FIRST_PORTION
        self._to_ask = self._asked = 0
        self.failed = 0
        """Exchanges that could not be asked."""
        self.reason: str | None = None
        """Why it stopped before its time."""

    def start(self) -> None:
        """Start the process, if it does not run yet. If it died over this question, it is not started again:
        :attr:`reason` says so, and the question stays without an answer."""
        worker = self._worker
        if worker is not None and worker.is_alive:
            return
        if worker is not None and any(job == self._job for job, _ in self._under_way):
            self._stopped(worker.death())
            return
        self._stop()
        try:
            shared = Shared(self._descriptor)
            self._worker = Process("the process that searches exchanges", Answering, shared, self._limits)
        except OSError as error:
            self.reason = f"exchanges cannot be searched: {error.strerror or error}"

    def ask(self, question: Question) -> None:
        """A new question; that before is forgotten. :meth:`add` says of which exchanges."""
        self.forget()
        self._question = question
        self._size = FIRST_PORTION
        self.failed, self.reason = 0, None

    def forget(self) -> None:
        """Nobody wants the answers any more."""
        self._job += 1
        self._question = None
        self._waiting.clear()
        self._to_ask = self._asked = 0

    def add(self, places: Places) -> None:
        """Ask these too, in this order."""
        if len(places) and self._question is not None and self.reason is None:
            self._waiting.append(places)
            self._to_ask += len(places)
            self.start()
            self._send()

    @property
    def progress(self) -> float | None:
        """Which share of the exchanges was asked; None when there is nothing left to ask."""
        return self._asked / self._to_ask if self._asked < self._to_ask and self.reason is None else None

    def poll(self) -> list[Answers]:
        """The answers since the last call; never waits."""
        out: list[Answers] = []
        for said in self._worker.poll() if self._worker is not None else ():
            if isinstance(said, Ended):
                self._stopped(said.reason)
            else:
                answers = self._took(said)
                if answers is not None:
                    out.append(answers)
        self._send()
        return out

    def _stopped(self, reason: str | None) -> None:
        self.reason = reason
        self._stop()

    def _took(self, reply: _Reply) -> Answers | None:
        job, places = self._under_way.popleft()
        if reply.seconds > 0:
            wanted = len(places) * PORTION_SECONDS / reply.seconds
            self._size = int(min(MOST_IN_PORTION, 4 * self._size, max(1, wanted)))
        if job != self._job:
            return None
        self._asked += len(places)
        codes = np.frombuffer(reply.hits, np.uint8)
        self.failed += int(np.count_nonzero(codes == _FAILED))
        return Answers(places, codes == _YES)

    def _send(self) -> None:
        while self._worker is not None and self._waiting and len(self._under_way) < AHEAD:
            first = self._waiting.popleft()
            places, rest = first[: self._size], first[self._size :]
            if len(rest):
                self._waiting.appendleft(rest)
            is_new, self._sent = self._sent != self._job, self._job
            spooled = [self._index.column(name)[places].tolist() for name in ("place", "length")]
            question = self._question if is_new else None
            self._worker.send(_Portion(self._job, question, list(zip(*spooled, strict=True))))
            self._under_way.append((self._job, places))

    def _stop(self) -> None:
        self._under_way.clear()
        self._sent = -1
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def close(self) -> None:
        """Stop, and let go of everything."""
        self.forget()
        self._stop()
