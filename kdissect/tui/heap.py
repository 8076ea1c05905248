"""Making a million objects without the screens standing still."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 200_000
"""Objects that are worth keeping from the collector."""


@contextmanager
def uncollected() -> Iterator[None]:
    """While it lasts, the collector of cycles does not run; many objects made meanwhile are never looked at.

    A message of two million elements is as many objects. None is in a cycle, so that they go when nobody
    holds them any more; but the collector would go through all of them, again and again while they are made,
    and every thread stands still for the seconds that takes.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > MANY:
            gc.freeze()
        if was_enabled:
            gc.enable()
