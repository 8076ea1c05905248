"""Counting beside the screens, in a process of its own; or here and at once, for who does not mind the wait.

The screens send orders and ask what came with :meth:`Counter.poll`, which never waits. Orders go through a
thread: a filter's places may be more than a pipe holds, and the process may be busy. If the process dies,
that is told once, as :class:`~kdissect.tui.feed.decoder.Ended` with a reason; what it had counted stays.
"""

from __future__ import annotations

from contextlib import suppress
from multiprocessing import get_context
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Protocol

from kdissect.limits import DEFAULTS, Limits
from kdissect.settings.screens import Rules
from kdissect.system import give_way
from kdissect.tui.feed.batches import Ended
from kdissect.tui.feed.counting import Counting, Order, Rows
from kdissect.tui.feed.sharing import Arrived, Beside, Shared, be_quiet, start_process
from kdissect.wording import defect

if TYPE_CHECKING:
    from kdissect.system import Pipe


class Counter(Protocol):
    """What counts."""

    def send(self, order: Order) -> None:
        """Give an order."""

    def poll(self) -> list[Rows | Ended]:
        """What came since the last call."""

    def close(self) -> None:
        """Stop."""


def _run(spool: Arrived, limits: Limits, rules: Rules, pipe: Pipe) -> None:
    """What the process does."""
    be_quiet()
    give_way()  # keys, and the decoder, go first
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the screens are closed
        try:
            count(Counting(spool.detach(), limits, rules), pipe)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except OSError as error:
            pipe.send(Ended(f"the statistics stopped: the spool cannot be read: {error.strerror or error}"))
        except Exception as error:  # whatever it is, the screens live on and say so
            pipe.send(Ended(f"the statistics stopped: {defect(error)}"))


def count(counting: Counting, pipe: Pipe) -> None:
    """Follow orders until the pipe is shut."""
    while True:
        while pipe.poll(counting.wait):
            counting.take(pipe.recv())
        for rows in counting.step():
            pipe.send(rows)


class StatisticsProcess(Beside[Rows | Ended]):
    """The process, as the screens see it. Starts at once.

    :param descriptor: of the spool.
    """

    def __init__(self, descriptor: int, limits: Limits = DEFAULTS, rules: Rules = Rules()) -> None:  # noqa: B008
        pipe, theirs = get_context("spawn").Pipe()
        process = start_process(_run, Shared(descriptor), limits, rules, theirs)
        theirs.close()
        super().__init__(process, pipe, "the process of the statistics", Ended)
        self._orders: SimpleQueue[Order | None] = SimpleQueue()
        self._sender = Thread(target=self._send_all, daemon=True)
        self._sender.start()

    def send(self, order: Order) -> None:
        self._orders.put(order)

    def _send_all(self) -> None:
        with suppress(OSError):  # its end is told by poll
            while (order := self._orders.get()) is not None:
                self._pipe.send(order)

    def close(self) -> None:
        self._orders.put(None)
        super().close()
        self._sender.join(1)


class StatisticsHere:
    """Counts when it is asked what came."""

    def __init__(self, descriptor: int, limits: Limits = DEFAULTS, rules: Rules = Rules()) -> None:  # noqa: B008
        self._counting = Counting(descriptor, limits, rules)

    def send(self, order: Order) -> None:
        self._counting.take(order)

    def poll(self) -> list[Rows | Ended]:
        out: list[Rows | Ended] = []
        while self._counting.wait == 0:
            out += self._counting.step()
        return out

    def close(self) -> None:
        """There is nothing to stop."""
