"""Memory of the screens' process. Freed memory goes back to the system. The collector of cycles does not make
a key wait."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

MANY = 200_000
"""Objects that are worth keeping from the collector."""
_M_MMAP_THRESHOLD = -3  # mallopt(3)
_LARGE = 1 << 20
_LOOK_AFTER = 2_000, 5, 30
"""Objects, looks at the youngest, looks at those that outlived one. A frame makes thousands of objects, and a
look at two thousand takes less than a millisecond. A look at all of them takes as long as some frames, so it
is for times when no key comes (:func:`look_at_all`). Without any, it comes after 300,000 objects."""
_WORTH_A_LOOK = 2
"""Looks at those that outlived one, since all of them were looked at: some ten thousand objects."""


def give_back_large_blocks() -> None:
    """Have blocks of a megabyte and more mapped from the system and given back to it when they are freed.

    The GNU C library begins so, but puts larger and larger blocks on the heap once some were freed. Columns
    of a million rows, sorted and chosen from, would leave holes of as much memory as they take.
    """
    mallopt = _word("mallopt")
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)


def give_back_holes() -> None:
    """Give back what lies free between blocks in use: tens of megabytes after a long reading. The GNU C
    library keeps them until it is asked. Other libraries have no such call and keep them for ever."""
    trim = _word("malloc_trim")
    if trim is not None:
        trim(0)


def _word(name: str) -> Any:
    """A function of the C library; None where there is none, and on Windows, which has several."""
    return None if sys.platform == "win32" else getattr(ctypes.CDLL(None), name, None)


@dataclass
class _KeptObjects:
    """What the collector does not look at."""

    objects: int = 0
    """How many there were when all were looked at last; 0 if that was just now."""
    since: int = 0
    """How many came since then, about. To count them all takes longer than some frames."""


_KEPT = _KeptObjects()


def keep_what_there_is() -> None:
    """Do not look for cycles among the objects that there are now: modules and screens, which stay. It takes
    a tenth of a second to go through them. Those that come later are looked at less often, too."""
    is_first = not _KEPT.objects
    if not is_first:
        _KEPT.since += len(gc.get_objects())
    gc.freeze()
    gc.set_threshold(*_LOOK_AFTER)
    if is_first:
        _KEPT.objects, _KEPT.since = gc.get_freeze_count(), 0


def look_at_all() -> bool:
    """Look for cycles among all objects that came since :func:`keep_what_there_is`, if there are many; gives
    whether that was done. It may take as long as some frames. Without it, what is drawn while a large file is
    read leaves tens of megabytes. When the kept objects have doubled, they are looked at, too: in hours of a
    live capture some of them go."""
    if gc.get_count()[2] < _WORTH_A_LOOK:
        return False
    if _KEPT.since > _KEPT.objects:
        gc.unfreeze()
        _KEPT.objects = 0
    gc.collect()
    return True


@contextmanager
def uncollected() -> Iterator[None]:
    """While it lasts, the collector of cycles does not run; many objects made meanwhile are never looked at.

    A message of two million elements is as many objects. No object is in a cycle, so they go when nobody
    holds them any more. But the collector would go through all of them, again and again while they are made.
    Every thread would stand still for these seconds.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        new = gc.get_count()[0]
        if new > MANY:
            gc.freeze()
            _KEPT.since += new
        if was_enabled:
            gc.enable()
