"""Python's collector of cycles, kept from looking through captures again and again.

What a capture gives is in no cycle. It is a matter of programs, not of the library: the command line and
the tasks of Spark ask for it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OBJECTS_BEFORE_A_LOOK = 50_000
"""Python's own figure is 700. Messages become many objects; looking at them took a quarter of the time of a
capture of small ones."""


class _Users:
    """How many want it rarely, and what was there before the first of them."""

    count = 0
    before = (0, 0, 0)


@contextmanager
def rarely_collected() -> Iterator[None]:
    """In here, and until the last of those that overlap has left, it runs rarely, and not over what is there
    already. Where it runs more rarely yet, it stays so."""
    if not _Users.count:
        _Users.before = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(max(OBJECTS_BEFORE_A_LOOK, _Users.before[0]), 20, 100)
    _Users.count += 1
    try:
        yield
    finally:
        _Users.count -= 1
        if not _Users.count:
            look_again(_Users.before)


def look_again(thresholds: tuple[int, int, int]) -> None:
    """Have it run by these thresholds again, but not at once over all that came meanwhile."""
    gc.freeze()
    gc.set_threshold(*thresholds)
    gc.unfreeze()
