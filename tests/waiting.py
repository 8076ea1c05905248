"""Waits for other processes and threads."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(done: Callable[[], bool], seconds: float, every: float = 0.02) -> bool:
    """Wait for a condition; return whether it became true in time."""
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= until:
            return False
        time.sleep(every)
    return True
