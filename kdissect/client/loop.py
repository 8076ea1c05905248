"""The event loop that a flow of the client runs in, and its clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(flow: Coroutine[Any, Any, T], pipe: int | None = None) -> T:
    """Run a flow to its end, in an event loop of its own.

    :param pipe: the descriptor of a pipe for output. When its reader has gone, the flow is cancelled, even if
        it waits and has nothing to write.
    :raises BrokenPipeError: the reader of the pipe has gone.
    """
    return asyncio.run(flow if pipe is None else _while_read(flow, pipe))


async def _while_read(flow: Coroutine[Any, Any, T], pipe: int) -> T:
    loop, this = asyncio.get_running_loop(), asyncio.current_task()
    assert this is not None
    is_gone = False

    def end() -> None:
        nonlocal is_gone
        is_gone = True
        loop.remove_reader(pipe)
        this.cancel()

    # The writing end of a pipe becomes readable only by the error that its reader has gone.
    loop.add_reader(pipe, end)
    try:
        return await flow
    except asyncio.CancelledError:
        if is_gone:
            raise BrokenPipeError from None
        raise
    finally:
        loop.remove_reader(pipe)


async def pause(seconds: float) -> None:
    """Wait."""
    await asyncio.sleep(seconds)


def now_ns() -> int:
    """The current time, for sent and received bytes."""
    return time.time_ns()
