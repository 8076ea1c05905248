"""The time that rows of a list may use to read their exchanges while they are drawn.

An exchange is read from the spool and decoded for that. In each interval only a part is used for it, so that
keys are answered at once. Rows that have to wait are drawn again after the interval.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

FRAME_SECONDS, SPENT_SECONDS = 0.1, 0.01
"""The length of the intervals, and the time in each that exchanges may use."""


MOST_BYTES = 1 << 18
"""Larger exchanges are not read at all: one alone would take longer than a frame may."""


class FrameTime:
    """The remaining time. All readers of exchanges for one list share it."""

    def __init__(self) -> None:
        self.when_behind: Callable[[], None] = lambda: None
        """Called when rows have to wait: they must be drawn again after :data:`FRAME_SECONDS`."""
        self._frame_began = self._spent = 0.0
        self._is_behind = False
        """Whether rows wait for the next frame."""

    def is_left(self) -> bool:
        """Whether an exchange may be read now; otherwise the row has to wait."""
        now = time.monotonic()
        if now - self._frame_began > FRAME_SECONDS:
            self._frame_began, self._spent, self._is_behind = now, 0.0, False
        if self._spent <= SPENT_SECONDS:
            return True
        self.draw_again()
        return False

    @contextmanager
    def spent(self) -> Iterator[None]:
        """A context that measures the time of its body."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._spent += time.monotonic() - began

    def draw_again(self) -> None:
        """Have rows drawn again in the next frame."""
        if not self._is_behind:
            self._is_behind = True
            self.when_behind()
