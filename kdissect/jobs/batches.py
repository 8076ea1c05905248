"""Events of a capture → batches, each the work of one process. Programs that may share work import this
module. They import the modules that share it only once there is enough to do.

The first batch is small, so that first rows come early. Each later batch is twice as large, up to a bound. A
fork costs some milliseconds. The events of a batch stay in memory until its rows are written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.session.briefs import Brief

Batch = list[Event]

IS_POSSIBLE = hasattr(os, "fork")
"""Whether this system can fork processes."""

FIRST_EVENTS = 256
"""The number of events of the first batch."""
BATCH_BYTES = 4 << 20
"""A batch is full when its messages have this many bytes …"""
BATCH_EVENTS = 8_192
"""… or when it has this many events: some hundred milliseconds of work. A fork costs little beside that."""


class PartCounts(NamedTuple):
    """How many parts of a capture could be dissected alone."""

    seams: int = 0
    """The number of parts whose edge was enough."""
    given_up: int = 0
    """The number of parts that had to be dissected with the true state."""
    is_poor: bool = False
    """Whether cutting ended because more parts would save little or nothing."""


class Maybe(NamedTuple):
    """Lines that may be left out. All batches before them decide that."""

    key: int
    """The key that decides it."""
    rows: int
    """The number of rows in the lines."""
    data: bytes


class EventBatch:
    """Gathers events."""

    def __init__(self, most_bytes: int | None = None, most_events: int | None = None) -> None:
        """Without bounds of the caller, those of this module count."""
        self._most_bytes = BATCH_BYTES if most_bytes is None else most_bytes
        self._most_events = BATCH_EVENTS if most_events is None else most_events
        self._target_events = min(FIRST_EVENTS, self._most_events)
        self._events: Batch = []
        self._bytes = 0

    def add(self, events: Iterable[Event]) -> None:
        """Add the next events."""
        before = len(self._events)
        self._events += events
        for event in self._events[before:]:
            if isinstance(event, Exchange | Brief):
                self._bytes += event.size()

    def __len__(self) -> int:
        return len(self._events)

    @property
    def is_full(self) -> bool:
        """Whether there are enough events for a process."""
        bytes_wanted = max(1, self._most_bytes * self._target_events // self._most_events)
        return len(self._events) >= self._target_events or self._bytes >= bytes_wanted

    def take(self) -> Batch:
        """Return the events gathered so far, and start an empty batch."""
        self._target_events = min(2 * self._target_events, self._most_events)
        events, self._events, self._bytes = self._events, [], 0
        return events


AT_ONCE = 64
"""The number of events of a batch that are worked on together."""


def used_up(batch: Batch) -> Iterator[list[Event]]:
    """The events of a batch, some at a time. The batch is emptied, because each exchange keeps its decoded
    values, which take many times its bytes."""
    batch.reverse()  # taking from the start would move all other events each time
    while batch:
        some = batch[: -AT_ONCE - 1 : -1]
        del batch[-AT_ONCE:]
        yield some
