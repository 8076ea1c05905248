"""Functions that systems provide in different ways, under the same names on each system.

posix      Linux and macOS
windows    by the manuals of Python and Windows. Nobody has run it there: the tests run it on Linux, with
           stand-ins for what only Windows has
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if sys.platform == "win32":
    from kdissect.system.windows import (
        ENDING,
        HANGING_UP,
        INTERRUPTS,
        OPENING,
        anonymous_memory,
        give_way,
        handed_on,
        is_locked,
        leave_no_core,
        lock,
        named_file,
        read_at,
        signals_held,
        take_signals,
        temporary_file,
        try_lock,
        write_at,
    )
else:
    from kdissect.system.posix import (
        ENDING,
        HANGING_UP,
        INTERRUPTS,
        OPENING,
        anonymous_memory,
        give_way,
        handed_on,
        is_locked,
        leave_no_core,
        lock,
        named_file,
        read_at,
        signals_held,
        take_signals,
        temporary_file,
        try_lock,
        write_at,
    )

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    if sys.platform == "win32":
        from multiprocessing.connection import PipeConnection as Pipe
    else:
        from multiprocessing.connection import Connection as Pipe

__all__ = [
    "ENDING",
    "HANGING_UP",
    "INTERRUPTS",
    "OPENING",
    "Pipe",
    "anonymous_memory",
    "call_at_signals",
    "give_way",
    "handed_on",
    "is_locked",
    "leave_no_core",
    "lock",
    "named_file",
    "read_at",
    "signals_held",
    "take_signals",
    "temporary_file",
    "try_lock",
    "write_at",
]


def call_at_signals(
    loop: AbstractEventLoop, numbers: Iterable[signal.Signals], call: Callable[[signal.Signals], object]
) -> None:
    """Let an event loop call a function when signals come."""
    for number in numbers:
        try:
            loop.add_signal_handler(number, call, number)
        except NotImplementedError:  # the event loop of Windows
            signal.signal(number, lambda got, _: loop.call_soon_threadsafe(call, signal.Signals(got)))
