"""Makes Python's collector of cycles run rarely, because it would look through captures again and again.

Objects of a capture are in no cycle. Programs decide this, not the library: the command line and the tasks of
Spark ask for it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

COLLECTOR_THRESHOLD = 50_000
"""The threshold of the collector; Python's own is 700. Messages become many objects, and looking at them took
a quarter of the time of a capture of small messages."""


class _Users:
    """How many callers want the collector to run rarely, and its thresholds before the first of them."""

    count = 0
    before = (0, 0, 0)


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Until the last of overlapping callers has left, the collector runs rarely, and not over older objects.
    A higher threshold that is already set is kept."""
    if not _Users.count:
        _Users.before = gc.get_threshold()
        gc.freeze()
        gc.set_threshold(max(COLLECTOR_THRESHOLD, _Users.before[0]), 20, 100)
    _Users.count += 1
    try:
        yield
    finally:
        _Users.count -= 1
        if not _Users.count:
            restore_thresholds(_Users.before)


def restore_thresholds(thresholds: tuple[int, int, int]) -> None:
    """Restore the collector's thresholds. Objects that were made meanwhile do not cause a run at once."""
    gc.freeze()
    gc.set_threshold(*thresholds)
    gc.unfreeze()
