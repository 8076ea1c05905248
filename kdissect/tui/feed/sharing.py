"""What the processes beside the screens have in common: a file without a name that another process gets, how
what they say is taken in, and how their end is told."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from multiprocessing import get_context, resource_tracker
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from kdissect.system import handed_on, signals_held, take_signals
from kdissect.system.confining import Allowed, confine

if TYPE_CHECKING:
    from kdissect.system import Pipe

POLL_SECONDS = 0.02
"""How long one poll may go on taking in what came."""

Said = TypeVar("Said")
"""What a process says."""


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


class Beside(Generic[Said]):
    """A process, as the screens see it. What comes from it is asked for with :meth:`poll`.

    :param process: runs already, and writes to ``pipe``.
    :param name: what it is called when its end is told: ``the decoder``.
    :param last: what is said last: the class of that, which is made of the reason.
    """

    def __init__(self, process: BaseProcess, pipe: Pipe, name: str, last: type[Any]) -> None:
        self._process, self._pipe, self._name, self._last = process, pipe, name, last
        self._is_over = False

    @property
    def pid(self) -> int | None:
        """The process's number."""
        return self._process.pid

    def poll(self) -> list[Said]:
        """What came since the last call; never waits for more. That the process died is told once."""
        out: list[Said] = []
        until = time.monotonic() + POLL_SECONDS
        while not self._is_over and time.monotonic() < until:
            try:
                if not self._pipe.poll():
                    break
                out.append(self._pipe.recv())
            except (EOFError, OSError):
                out.append(self._last(self._death()))
            self._is_over = isinstance(out[-1], self._last)
        return out

    def _death(self) -> str:
        return how_it_ended(self._name, self._process)

    def close(self) -> None:
        """Stop the process."""
        self._is_over = True
        self._process.terminate()
        self._process.join()
        self._pipe.close()


def be_quiet(*folders: str) -> None:
    """To be called first in a process: the interrupt key is the screens' to answer, and a traceback would be
    written over them. That the process failed is told by its end. What was captured may be anybody's: whoever
    decodes it may read, and write to what is open and in ``folders``."""
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
