"""Counting beside the screens, in a process of its own; or here and at once, for who does not mind the wait.

The screens send orders and ask what came with :meth:`Counter.poll`, which never waits. Orders go through a
thread: a filter's places may be more than a pipe holds, and the process may be busy. If the process dies,
that is told once, as :class:`~kdissect.tui.feed.decoder.Ended` with a reason; what it had counted stays.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from queue import SimpleQueue
from threading import Thread
from typing import Protocol

from kdissect.limits import DEFAULTS, Limits
from kdissect.tui.feed.counting import Counting, Order, Rows
from kdissect.tui.feed.decoder import Ended
from kdissect.tui.feed.sharing import Arrived, Shared, be_quiet, how_it_ended

POLL_SECONDS = 0.02
"""How long one poll may go on taking in what came."""
_NICE = 5


class Counter(Protocol):
    """What counts."""

    def send(self, order: Order) -> None:
        """Give an order."""

    def poll(self) -> list[Rows | Ended]:
        """What came since the last call."""

    def close(self) -> None:
        """Stop."""


def _run(spool: Arrived, limits: Limits, pipe: Pipe) -> None:
    """What the process does."""
    be_quiet()
    os.nice(_NICE)  # keys, and the decoder, go first
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the screens are closed
        try:
            count(Counting(spool.detach(), limits), pipe)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except OSError as error:
            pipe.send(Ended(f"the statistics stopped: the spool cannot be read: {error.strerror or error}"))
        except Exception as error:
            pipe.send(
                Ended(
                    f"the statistics stopped: a defect in kdissect, please report it: {type(error).__name__}"
                )
            )


def count(counting: Counting, pipe: Pipe) -> None:
    """Follow orders until the pipe is shut."""
    while True:
        while pipe.poll(counting.wait):
            counting.take(pipe.recv())
        for rows in counting.step():
            pipe.send(rows)


class StatisticsProcess:
    """The process, as the screens see it. Starts at once.

    :param descriptor: of the spool.
    """

    def __init__(self, descriptor: int, limits: Limits = DEFAULTS) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(Shared(descriptor), limits, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._orders: SimpleQueue[Order | None] = SimpleQueue()
        self._sender = Thread(target=self._send_all, daemon=True)
        self._sender.start()
        self._is_over = False

    @property
    def pid(self) -> int | None:
        """The process's number."""
        return self._process.pid

    def send(self, order: Order) -> None:
        self._orders.put(order)

    def _send_all(self) -> None:
        with suppress(OSError):  # its end is told by poll
            while (order := self._orders.get()) is not None:
                self._pipe.send(order)

    def poll(self) -> list[Rows | Ended]:
        out: list[Rows | Ended] = []
        until = time.monotonic() + POLL_SECONDS
        while not self._is_over and time.monotonic() < until:
            try:
                if not self._pipe.poll():
                    break
                out.append(self._pipe.recv())
            except (EOFError, OSError):
                out.append(Ended(how_it_ended("the process of the statistics", self._process)))
            self._is_over = isinstance(out[-1], Ended)
        return out

    def close(self) -> None:
        self._is_over = True
        self._process.terminate()
        self._process.join()
        self._orders.put(None)
        self._sender.join(1)
        self._pipe.close()


class StatisticsHere:
    """Counts when it is asked what came."""

    def __init__(self, descriptor: int, limits: Limits = DEFAULTS) -> None:
        self._counting = Counting(descriptor, limits)

    def send(self, order: Order) -> None:
        self._counting.take(order)

    def poll(self) -> list[Rows | Ended]:
        out: list[Rows | Ended] = []
        while self._counting.wait == 0:
            out += self._counting.step()
        return out

    def close(self) -> None:
        """There is nothing to stop."""
