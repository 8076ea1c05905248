"""Delays Ctrl-C where it must not interrupt: a file that needs its end to be readable still gets that end.

SIGTERM always has the same effect as Ctrl-C.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import FrameType
from typing import Any, TypeVar

from kdissect.present.tables import JoiningWriter
from kdissect.system import ENDING

Item = TypeVar("Item")


_at_work: list[object] = []
"""The handlers that take the place of interrupts now."""


def held() -> AbstractContextManager[None]:
    """Delay a Ctrl-C until the ``with`` ends. A second one takes effect at once."""
    # If Ctrl-C has another handler, there is nothing to delay. This is called for millions of rows.
    return _NOTHING if _at_work else _held()


_NOTHING = nullcontext()


@contextmanager
def _held() -> Iterator[None]:
    pressed = False

    def note(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    with _instead_of_interrupts(note):
        yield
    if pressed:
        raise KeyboardInterrupt


class EndOfInput:
    """Turns Ctrl-C into the end of an input, inside a ``with``. The input ends between two items, so that the
    results of the earlier items can still be printed. A second Ctrl-C takes effect at once.
    """

    def __init__(self) -> None:
        self.is_reached = False
        self._waits = False
        self._handlers = ExitStack()

    def __enter__(self) -> EndOfInput:
        self._handlers.enter_context(_instead_of_interrupts(self._pressed))
        return self

    def __exit__(self, *_: object) -> None:
        self._handlers.close()

    def items(self, source: Iterator[Item]) -> Iterator[Item]:
        """The items, until there are no more or the user interrupts."""
        while True:
            try:
                self._waits = True
                if self.is_reached:
                    return
                item = next(source)
            except StopIteration:
                return
            except KeyboardInterrupt:
                self.is_reached = True
                return
            finally:
                self._waits = False
            yield item

    def _pressed(self, _: int, __: FrameType | None) -> None:
        if self._waits or self.is_reached:
            raise KeyboardInterrupt
        self.is_reached = True


@contextmanager
def _instead_of_interrupts(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle the signals that would raise KeyboardInterrupt; outside the main thread there are none."""
    numbers = [each for each in ENDING if signal.getsignal(each) is signal.default_int_handler]
    if not numbers or threading.current_thread() is not threading.main_thread():
        yield
        return
    for number in numbers:
        signal.signal(number, handler)
    _at_work.append(handler)
    try:
        yield
    finally:
        _at_work.pop()
        for number in numbers:
            signal.signal(number, signal.default_int_handler)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Make Ctrl-C and SIGTERM end something that would go on for ever: they call ``stop``, and it ends by
    itself. A second Ctrl-C takes effect at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = False

    def end(number: int, _: FrameType | None) -> None:
        nonlocal pressed
        if pressed and number == signal.SIGINT:
            raise KeyboardInterrupt
        pressed = True
        stop()

    before = {number: signal.signal(number, end) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class WholeRows:
    """A writer that writes each row, and its own end, as a whole or not at all."""

    def __init__(self, writer: JoiningWriter) -> None:
        self._writer = writer

    def write(self, source: Any) -> None:
        with held():
            self._writer.write(source)

    def join(self, columns: Any) -> None:
        with held():
            self._writer.join(columns)

    def close(self) -> None:
        with held():
            self._writer.close()
