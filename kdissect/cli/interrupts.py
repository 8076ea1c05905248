"""Ctrl-C, where it must not come in the middle: a file whose end makes it readable still gets that end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from kdissect.present.tables import Writer


@contextmanager
def held() -> Iterator[None]:
    """A Ctrl-C in here takes effect when it is left; a second one takes effect at once."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed = False

    def note(_: int, __: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if pressed:
        raise KeyboardInterrupt


class WholeRows:
    """A writer that takes every row, and writes its end, as a whole or not at all."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def write(self, source: Any) -> None:
        with held():
            self._writer.write(source)

    def close(self) -> None:
        with held():
            self._writer.close()
