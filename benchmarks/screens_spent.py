"""What the screens' thread spends its processor time on: frames, layouts, timers, collections of garbage.

Work inside other work counts once, for the inner one. So the parts add up to the time of the thread.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, NamedTuple
from unittest import mock

from textual.message_pump import MessagePump
from textual.screen import Screen

REST = "the rest"
"""Handling the key itself, and all other work of Textual."""
COLLECTION = "collections"
_DRAWN = {"_compositor_refresh": "frames", "_refresh_layout": "layouts"}
"""The methods of Textual's screens that draw."""


class SpentTime(NamedTuple):
    """The processor time of a while."""

    seconds: dict[str, float]
    """By what it was spent on."""
    counts: dict[str, int]
    """How often."""

    def after(self, before: SpentTime) -> SpentTime:
        """The part of it after an earlier moment, the largest first."""
        seconds = {what: spent - before.seconds.get(what, 0) for what, spent in self.seconds.items()}
        counts = {what: count - before.counts.get(what, 0) for what, count in self.counts.items()}
        return SpentTime(dict(sorted(seconds.items(), key=lambda part: -part[1])), counts)


class Spent:
    """The processor time of one thread since the start."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._counts: Counter[str] = Counter()
        self._inside = [REST]
        self._since = time.thread_time()
        self._thread = threading.get_ident()

    def _turn(self) -> None:
        """Count the time so far for the present work."""
        now = time.thread_time()
        self._seconds[self._inside[-1]] += now - self._since
        self._since = now

    def begin(self, what: str) -> None:
        """Begin a work inside the present one."""
        self._turn()
        self._inside.append(what)
        self._counts[what] += 1

    def end(self) -> None:
        """End the present work."""
        self._turn()
        self._inside.pop()

    def so_far(self) -> SpentTime:
        """The time since the start."""
        self._turn()
        return SpentTime(dict(self._seconds), dict(self._counts))

    def counted(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time counted."""

        @wraps(call)
        def inside(*args: Any, **named: Any) -> Any:
            if threading.get_ident() != self._thread:
                return call(*args, **named)
            self.begin(what)
            try:
                return call(*args, **named)
            finally:
                self.end()

        return inside

    def _collected(self, phase: str, _: object) -> None:
        if threading.get_ident() == self._thread:
            if phase == "start":
                self.begin(COLLECTION)
            else:
                self.end()

    def _timed(self, begin: Callable[..., Any]) -> Callable[..., Any]:
        """A method of Textual that starts a timer, so that the time of what it calls is counted."""

        @wraps(begin)
        def begun(pump: MessagePump, delay: float, callback: Any = None, **named: Any) -> Any:
            inner = callback.func if isinstance(callback, partial) else callback
            name = getattr(inner, "__name__", "")
            if name and not iscoroutinefunction(inner):
                callback = self.counted(f"timer {name.strip('_')}", callback)
            return begin(pump, delay, callback, **named)

        return begun

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count all work inside the ``with``."""
        with ExitStack() as stack:
            for name, what in _DRAWN.items():
                drawn = self.counted(what, getattr(Screen, name))
                stack.enter_context(mock.patch.object(Screen, name, drawn))
            for name in ("set_timer", "set_interval"):
                timed = self._timed(getattr(MessagePump, name))
                stack.enter_context(mock.patch.object(MessagePump, name, timed))
            gc.callbacks.append(self._collected)
            stack.callback(gc.callbacks.remove, self._collected)
            yield
