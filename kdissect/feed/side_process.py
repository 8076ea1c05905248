"""Workers beside the screens, in separate processes: one protocol for all of them.

    screens ── send(order) ──► Process ── take(order) ──► BesideMachine
            ◄── poll() ───────         ◄── step() ───────

A :class:`BesideMachine` is plain: it takes orders, and does its work in steps. A :class:`Process` runs one in
a separate process. :class:`Here` runs it in this process, whenever it is polled. A thread sends the orders,
because they may be larger than a pipe holds, and the process may be busy. If the process dies, that is
reported once, as :class:`~kdissect.feed.batches.Ended` with a reason.
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
"""The longest time that one poll takes in results."""

Said = TypeVar("Said")
"""The results of a process."""
Order = TypeVar("Order")
"""The orders to a process."""
Says_co = TypeVar("Says_co", covariant=True)
Takes_contra = TypeVar("Takes_contra", contravariant=True)


class BesideMachine(Protocol[Takes_contra, Says_co]):
    """Does the work, in any process."""

    def take(self, order: Takes_contra, /) -> None:
        """Take an order."""

    @property
    def wait(self) -> float | None:
        """The time in seconds without work for :meth:`step`; None: until the next order."""

    def step(self) -> Iterator[Says_co]:
        """Work for a moment, and give the results.

        :raises OSError: a temporary file cannot be read or written.
        """


class Worker(Protocol[Takes_contra, Says_co]):
    """The screens' side of a machine."""

    def send(self, order: Takes_contra) -> None:
        """Send an order; never waits."""

    def poll(self) -> Sequence[Says_co | Ended]:
        """The results since the last call; never waits for more."""

    def close(self) -> None:
        """Stop."""


class Shared:
    """A file descriptor for a process that is being started."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> tuple[Any, ...]:
        return Arrived, (handed_on(self._descriptor),)


class Arrived:
    """A file descriptor in the process that received it."""

    def __init__(self, shared: Any) -> None:
        self.detach = cast(Callable[[], int], shared.detach)
        """Returns the descriptor, which then belongs to the caller."""


def start_process(target: Callable[..., None], *given: Any) -> BaseProcess:
    """Start a process that ends with this one. It is spawned, not forked, so it has nothing of the screens in
    it.

    While the screens run, Textual replaces ``sys.stderr`` by an object without a descriptor to inherit.
    """
    process = get_context("spawn").Process(target=target, args=given, daemon=True)
    with redirect_stderr(sys.__stderr__):
        if sys.platform != "win32":  # on Windows no helper process starts others
            resource_tracker.ensure_running()  # it would unblock the signals
        with signals_held():
            process.start()
    return process


class Companion(Generic[Said]):
    """The screens' side of a process. :meth:`poll` returns its results.

    :param process: runs already, and writes to ``pipe``.
    :param name: its name in the report of its end: ``the decoder``.
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
        """The results since the last call; never waits for more. The death of the process is reported
        once."""
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
        return end_in_words(self._name, self._process)

    def close(self) -> None:
        """Stop the process."""
        self._is_over = True
        self._stop()
        self._pipe.close()

    def _stop(self) -> None:
        """End the process, and the threads here that use the pipe."""
        self._process.terminate()
        self._process.join()


class Process(Companion[Said], Generic[Order, Said]):
    """A machine in a separate process, which starts at once.

    :param make: makes the machine there from the arguments ``given``. For a :class:`Shared` descriptor it
        gets the number in that process.
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
        """Send an order; never waits."""
        self._orders.put(order)

    def _send_all(self) -> None:
        with suppress(OSError):  # poll reports its end
            while (order := self._orders.get()) is not None:
                self._pipe.send(order)

    def _stop(self) -> None:
        self._orders.put(None)
        super()._stop()
        self._sender.join(1)  # it may be in the middle of an order, which fails now


class Here(Generic[Order, Said]):
    """A machine that works when it is polled."""

    def __init__(self, machine: BesideMachine[Order, Said]) -> None:
        self._machine = machine

    def send(self, order: Order) -> None:
        """Give an order."""
        self._machine.take(order)

    def poll(self) -> list[Said | Ended]:
        """Do the due work, and return the results."""
        out: list[Said | Ended] = []
        while self._machine.wait == 0:
            out += self._machine.step()
        return out

    def close(self) -> None:
        """Do nothing: there is nothing to stop."""


def _work(name: str, make: Callable[..., BesideMachine[Any, Any]], pipe: Pipe, *given: Any) -> None:
    """The main function of the process."""
    be_quiet()
    give_way(2)  # keys have priority, then the decoder
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the screens are closed
        try:
            follow(make(*(each.detach() if isinstance(each, Arrived) else each for each in given)), pipe)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except OSError as error:
            why = error.strerror or error
            pipe.send(Ended(f"{name} stopped: a temporary file cannot be read or written: {why}"))
        except Exception as error:  # after any error, the screens go on and report it
            pipe.send(Ended(f"{name} stopped: {defect(error)}"))


def follow(machine: BesideMachine[Any, Any], pipe: Pipe) -> None:
    """Process orders until the pipe is closed."""
    while True:
        while pipe.poll(machine.wait):
            machine.take(pipe.recv())
        for said in machine.step():
            pipe.send(said)


def be_quiet(*folders: str) -> None:
    """Set up a process; this must be called first. The screens handle the interrupt key. Nothing is written
    to standard error, because a traceback would be drawn over the screens; they see that the process has
    ended. A process that decodes may read, and may write only to open files and in ``folders``: anybody may
    have made the capture."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    take_signals()
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    confine(Allowed(filled=folders))


def end_in_words(name: str, process: BaseProcess) -> str:
    """The end of a process whose pipe is closed, in words: ``the decoder was killed by signal 9``."""
    process.join(1)
    code = process.exitcode
    if code is not None and code < 0:
        return f"{name} was killed by signal {-code}"
    return f"{name} stopped with exit code {code}"
