"""Memory of a process. In the screens' process, freed memory goes back to the system, and the garbage
collector does not delay keys. Processes with parts of a capture keep freed memory for the next part."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

MANY = 200_000
"""The number of objects from which on it is worth hiding them from the collector."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # mallopt(3)
_LARGE = 1 << 20
_VERY_LARGE = 32 << 20
"""The highest threshold that the GNU C library accepts."""
_MOST_KEPT = 256 << 20
_LOOK_AFTER = 2_000, 5, 30
"""When the collector runs: new objects, runs over the youngest generation, runs over the second one. A frame
makes thousands of objects, and a run over two thousand takes less than a millisecond. A run over all takes as
long as some frames, so :func:`look_at_all` does it when no key comes. Without that, it comes after 300,000
objects."""
MOST_WAIT_SECONDS = 0.5
"""How long collections wait at most for the frame of a key."""
_WORTH_A_LOOK = 2
"""The runs over the second generation since the last full run that make another one worthwhile: some ten
thousand objects."""


def give_back_large_blocks() -> None:
    """Make the allocator map blocks of a megabyte and more from the system, and return them when they are
    freed.

    The GNU C library begins so, but puts larger and larger blocks on the heap after some were freed. Columns
    of a million rows, which are sorted and filtered, would leave holes as large as themselves.
    """
    mallopt = _word("mallopt")
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE)


def keep_freed_blocks() -> None:
    """Make the allocator keep freed memory for later blocks, also in processes that are forked later.

    The GNU C library gives back what is free at the end of the heap, and maps large blocks from the system.
    If a process again and again fills some tens of megabytes and frees them, the system clears the same
    memory each time. That took a twentieth of the time of dissecting parts.
    """
    mallopt = _word("mallopt")
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _MOST_KEPT)
        mallopt(_M_MMAP_THRESHOLD, _VERY_LARGE)


def give_back_holes() -> None:
    """Give back free memory between used blocks: tens of megabytes after a long reading. The GNU C library
    keeps it until this call. Other libraries have no such call and keep it for ever."""
    trim = _word("malloc_trim")
    if trim is not None:
        trim(0)


def _word(name: str) -> Any:
    """A function of the C library; None if there is none, and on Windows, which has several libraries."""
    return None if sys.platform == "win32" else getattr(ctypes.CDLL(None), name, None)


@dataclass
class _KeptObjects:
    """The objects that the collector ignores."""

    objects: int = 0
    """How many objects there were at the last full run; 0 if that was just now."""
    since: int = 0
    """About how many objects came since then. Counting all of them takes longer than some frames."""


_KEPT = _KeptObjects()


def keep_what_there_is() -> None:
    """Make the collector ignore the objects that exist now: modules and screens, which stay. Going through
    them takes a tenth of a second. The collector also runs less often over later objects."""
    is_first = not _KEPT.objects
    if not is_first:
        _KEPT.since += len(gc.get_objects())
    gc.freeze()
    gc.set_threshold(*_LOOK_AFTER)
    if is_first:
        _KEPT.objects, _KEPT.since = gc.get_freeze_count(), 0


def look_at_all() -> bool:
    """Run the collector over all objects since :func:`keep_what_there_is`, if there are many; return whether
    it ran. It may take as long as some frames. Without it, drawing while a large file is read leaves tens of
    megabytes. When the kept objects have doubled, the run includes them, because a live capture frees some of
    them over hours."""
    if gc.get_count()[2] < _WORTH_A_LOOK:
        return False
    if _KEPT.since > _KEPT.objects:
        gc.unfreeze()
        _KEPT.objects = 0
    gc.collect()
    return True


class _Stops:
    """Reasons why the collector does not run. It runs again after the last of them, if it ran before."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._was_enabled = False

    def begin(self) -> None:
        with self._lock:
            if not self._count:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._count += 1

    def end(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count and self._was_enabled:
                gc.enable()


_STOPS = _Stops()


class PutOff:
    """Puts collections off from a key to the frame with its effect. A frame makes thousands of objects. The
    collections for them took 8 to 17 ms of the slowest keys."""

    _since: float | None = None
    """Since when collections wait; None if they do not."""

    @property
    def wait(self) -> bool:
        """Whether collections wait."""
        return self._since is not None

    def begin(self) -> None:
        """Handle a key. If many keys have no effect, collections wait no longer."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
            _STOPS.begin()
        elif now > self._since + MOST_WAIT_SECONDS:
            self.end()

    def end(self) -> None:
        """Handle a frame, or the end of the keys."""
        if self._since is not None:
            self._since = None
            _STOPS.end()


@contextmanager
def uncollected() -> Iterator[None]:
    """Stop the garbage collector inside the ``with``. Many objects that are made meanwhile are never
    examined.

    A message of two million elements has as many objects. They are in no cycles, so they are freed when their
    last reference goes. But the collector would go through all of them, again and again, while they are made.
    All threads would stand still for these seconds.
    """
    _STOPS.begin()
    try:
        yield
    finally:
        new = gc.get_count()[0]
        if new > MANY:
            gc.freeze()
            _KEPT.since += new
        _STOPS.end()
