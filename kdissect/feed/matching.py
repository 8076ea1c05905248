"""A question that needs the exchanges themselves → the exchanges that match, from a separate process.

Decoding a million exchanges in the process of the screens would make every key wait. An :class:`AnswerClient`
sends the places of exchanges to its process in portions, each of about :data:`PORTION_SECONDS` of work. So
answers come early, and a cancelled question costs at most two portions. The first question starts the
process. It reads the spool itself, and runs at low priority (``nice``).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from kdissect.exchange import Exchange
from kdissect.feed.batches import Ended, read_exchange
from kdissect.feed.index import Index, Places
from kdissect.feed.side_process import Process, Shared
from kdissect.limits import DEFAULTS, Limits

PORTION_SECONDS = 0.05
FIRST_PORTION, MOST_IN_PORTION = 64, 20_000
AHEAD = 2
"""The number of portions sent ahead, so that the process need not wait for the next."""


class Question(Protocol):
    """A question about an exchange. It is pickled for the process."""

    def matches(self, exchange: Exchange) -> bool:
        """Whether the exchange matches."""


class Answers(NamedTuple):
    """The answers of a portion."""

    places: Places
    """The places that were asked, in the order of the question."""
    hits: np.ndarray[tuple[int], np.dtype[np.bool_]]
    """Which of them match."""


class _Portion(NamedTuple):
    job: int
    question: Question | None
    """None if it is the question of the portion before."""
    spooled: Sequence[tuple[int, int]]
    """Place and length of each exchange in the spool."""


class _Reply(NamedTuple):
    job: int
    hits: bytes
    """0 (no), 1 (yes), or 2 if the exchange could not be read."""
    seconds: float


_NO, _YES, _FAILED = 0, 1, 2


class Answering:
    """Answers questions in the process: a portion in each step."""

    def __init__(self, spool: int, limits: Limits) -> None:
        self._spool, self._limits = spool, limits
        self._question: Question | None = None
        self._waiting: deque[_Portion] = deque()

    def take(self, order: _Portion) -> None:
        """Add a portion."""
        self._waiting.append(order)

    @property
    def wait(self) -> float | None:
        """0 with a portion; None without one: until an order comes."""
        return 0.0 if self._waiting else None

    def step(self) -> Iterator[_Reply]:
        """Answer the next portion."""
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
        except Exception:  # an error of one exchange must not cost the others their answer
            return _FAILED


class AnswerClient:
    """The screens' side of the process."""

    def __init__(self, index: Index, descriptor: int, limits: Limits = DEFAULTS) -> None:
        self._index = index
        self._descriptor, self._limits = descriptor, limits
        self._worker: Process[_Portion, _Reply] | None = None
        self._job = 0
        self._sent = -1
        """The last job whose question was sent, with its first portion."""
        self._question: Question | None = None
        self._waiting: deque[Places] = deque()
        self._under_way: deque[tuple[int, Places]] = deque()
        """Job and places of the portions that were sent."""
        self._size = FIRST_PORTION
        self._to_ask = self._asked = 0
        self.failed = 0
        """The number of exchanges that could not be read."""
        self.reason: str | None = None
        """The reason why it stopped early."""

    def start(self) -> None:
        """Start the process, if it does not run yet. If it died over this question, it is not started again.
        Then :attr:`reason` has the cause, and the question stays unanswered."""
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

    def set_question(self, question: Question) -> None:
        """Set a new question; the previous one is dropped. :meth:`add` gives the exchanges."""
        self.forget()
        self._question = question
        self._size = FIRST_PORTION
        self.failed, self.reason = 0, None

    def forget(self) -> None:
        """Drop the question."""
        self._job += 1
        self._question = None
        self._waiting.clear()
        self._to_ask = self._asked = 0

    def add(self, places: Places) -> None:
        """Ask about more exchanges, in this order."""
        if len(places) and self._question is not None and self.reason is None:
            self._waiting.append(places)
            self._to_ask += len(places)
            self.start()
            self._send()

    @property
    def progress(self) -> float | None:
        """The share of the exchanges that was answered; None if none are left."""
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
        """Stop the process, and close everything."""
        self.forget()
        self._stop()
