"""What works beside the screens, in processes of their own: one protocol for all of them.

    screens ── send(order) ──► Process ── take(order) ──► BesideMachine
            ◄── poll() ───────         ◄── step() ───────

A :class:`BesideMachine` is plain: it takes orders in, and does its work in steps. A :class:`Process` has one
run in a process of its own. :class:`Here` runs it in this process, whenever it is polled.
Orders go out through a thread, because they may be more than a pipe holds, and the process may be busy. If it
dies, that is told once, as :class:`~kdissect.feed.batches.Ended` with a reason.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from kdissect.feed.batches import Ended
from kdissect.system import give_way, handed_on, signals_held, take_signals
from kdissect.system.confining import Allowed, confine
from kdissect.wording import defect

if TYPE_CHECKING:
    from kdissect.system import Pipe

POLL_SECONDS = 0.02
"""How long one poll may go on taking in what came."""

Said = TypeVar("Said")
"""What a process says."""
Order = TypeVar("Order")
"""What it is asked for."""
Says_co = TypeVar("Says_co", covariant=True)
Takes_contra = TypeVar("Takes_contra", contravariant=True)


class BesideMachine(Protocol[Takes_contra, Says_co]):
    """What does the work, wherever it runs."""

    def take(self, order: Takes_contra, /) -> None:
        """Take in what is wanted now."""

    @property
    def wait(self) -> float | None:
        """How long :meth:`step` has nothing to do, in seconds; None: until something is taken in."""

    def step(self) -> Iterator[Says_co]:
        """Work on for a moment; gives what came of it.

        :raises OSError: a temporary file cannot be read or written.
        """


class Worker(Protocol[Takes_contra, Says_co]):
    """A machine, as the screens see it."""

    def send(self, order: Takes_contra) -> None:
        """Give an order; never waits."""

    def poll(self) -> Sequence[Says_co | Ended]:
        """What came since the last call; never waits for more."""

    def close(self) -> None:
        """Stop."""


class Shared:
    """A file descriptor on its way to a process that is being started."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> tuple[Any, ...]:
        return Arrived, (handed_on(self._descriptor),)


class Arrived:
    """A file descriptor in the process it was sent to."""

    def __init__(self, shared: Any) -> None:
        self.detach = cast(Callable[[], int], shared.detach)
        """Gives the descriptor, which is the caller's from then on."""


def start_process(target: Callable[..., None], *given: Any) -> BaseProcess:
    """Start a process that ends with this one. It begins anew, so that it has nothing of the screens in it.

    While they run, Textual stands in for ``sys.stderr``, and has no descriptor that could be handed on.
    """
    process = get_context("spawn").Process(target=target, args=given, daemon=True)
    with redirect_stderr(sys.__stderr__):
        if sys.platform != "win32":  # where nothing helps to start processes
            resource_tracker.ensure_running()  # which would let the signals come
        with signals_held():
            process.start()
    return process


class Companion(Generic[Said]):
    """A process, as the screens see it. What comes from it is asked for with :meth:`poll`.

    :param process: runs already, and writes to ``pipe``.
    :param name: what it is called when its end is told: ``the decoder``.
    """

    def __init__(self, process: BaseProcess, pipe: Pipe, name: str) -> None:
        self._process, self._pipe, self._name = process, pipe, name
        self._is_over = False

    @property
    def pid(self) -> int | None:
        """The process's number."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.is_alive()

    def poll(self) -> list[Said | Ended]:
        """What came since the last call; never waits for more. That the process died is told once."""
        out: list[Said | Ended] = []
        until = time.monotonic() + POLL_SECONDS
        while not self._is_over and time.monotonic() < until:
            try:
                if not self._pipe.poll():
                    break
                out.append(self._pipe.recv())
            except (EOFError, OSError):
                out.append(Ended(self.death()))
            self._is_over = isinstance(out[-1], Ended)
        return out

    def death(self) -> str:
        """How it ended."""
        return how_it_ended(self._name, self._process)

    def close(self) -> None:
        """Stop the process."""
        self._is_over = True
        self._stop()
        self._pipe.close()

    def _stop(self) -> None:
        """End the process, and whoever here uses the pipe."""
        self._process.terminate()
        self._process.join()


class Process(Companion[Said], Generic[Order, Said]):
    """A machine in a process of its own. Starts at once.

    :param make: makes the machine there, of what is ``given``; of a :class:`Shared` descriptor it gets the
        number that it has there.
    :raises OSError: the process cannot be started.
    """

    def __init__(self, name: str, make: Callable[..., BesideMachine[Order, Said]], *given: Any) -> None:
        pipe, theirs = get_context("spawn").Pipe()
        try:
            process = start_process(_work, name, make, theirs, *given)
        except OSError:
            pipe.close()
            raise
        finally:
            theirs.close()
        super().__init__(process, pipe, name)
        self._orders: SimpleQueue[Order | None] = SimpleQueue()
        self._sender = Thread(target=self._send_all, daemon=True)
        self._sender.start()

    def send(self, order: Order) -> None:
        """Give an order; never waits."""
        self._orders.put(order)

    def _send_all(self) -> None:
        with suppress(OSError):  # its end is told by poll
            while (order := self._orders.get()) is not None:
                self._pipe.send(order)

    def _stop(self) -> None:
        self._orders.put(None)
        super()._stop()
        self._sender.join(1)  # it may be in the middle of an order, which fails now


class Here(Generic[Order, Said]):
    """A machine that works when it is asked what came."""

    def __init__(self, machine: BesideMachine[Order, Said]) -> None:
        self._machine = machine

    def send(self, order: Order) -> None:
        """Give an order."""
        self._machine.take(order)

    def poll(self) -> list[Said | Ended]:
        """Do what is to be done; gives what came of it."""
        out: list[Said | Ended] = []
        while self._machine.wait == 0:
            out += self._machine.step()
        return out

    def close(self) -> None:
        """There is nothing to stop."""


def _work(name: str, make: Callable[..., BesideMachine[Any, Any]], pipe: Pipe, *given: Any) -> None:
    """What the process does."""
    be_quiet()
    give_way(2)  # keys go first, then the decoder
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the screens are closed
        try:
            follow(make(*(each.detach() if isinstance(each, Arrived) else each for each in given)), pipe)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except OSError as error:
            why = error.strerror or error
            pipe.send(Ended(f"{name} stopped: a temporary file cannot be read or written: {why}"))
        except Exception as error:  # whatever it is, the screens live on and say so
            pipe.send(Ended(f"{name} stopped: {defect(error)}"))


def follow(machine: BesideMachine[Any, Any], pipe: Pipe) -> None:
    """Follow orders until the pipe is shut."""
    while True:
        while pipe.poll(machine.wait):
            machine.take(pipe.recv())
        for said in machine.step():
            pipe.send(said)


def be_quiet(*folders: str) -> None:
    """To be called first in a process. The screens answer the interrupt key. Nothing is written to standard
    error, as a traceback would be drawn over the screens; they see that the process has ended. A process that
    decodes may read, and write only to open files and in ``folders``: anybody may have made a capture."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    take_signals()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    confine(Allowed(filled=folders))


def how_it_ended(name: str, process: BaseProcess) -> str:
    """What became of a process whose pipe is shut: ``the decoder was killed by signal 9``."""
    process.join(1)
    code = process.exitcode
    if code is not None and code < 0:
        return f"{name} was killed by signal {-code}"
    return f"{name} stopped with exit code {code}"
