"""Events of a capture → batches, each the work of one process. Programs that may share work import this; what
shares it, only once there is enough to do.

The first batch is small, so that first rows come early. Each one after it is twice as large, up to a bound.
A fork costs some milliseconds. The events of a batch stay in memory until its rows are written.
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
"""Whether this system can have processes begin as they are needed here."""

FIRST_EVENTS = 256
"""Events of the first batch."""
BATCH_BYTES = 4 << 20
"""A batch is full when its messages have so many bytes …"""
BATCH_EVENTS = 8_192
"""… or it has so many events: some hundred milliseconds of work, next to which a fork is little."""


class PartCounts(NamedTuple):
    """How the parts of a capture went."""

    seams: int = 0
    """Parts whose edge was enough."""
    given_up: int = 0
    """Parts that were dissected with the true state."""
    is_poor: bool = False
    """Whether it ended because more parts would save little or nothing."""


class Maybe(NamedTuple):
    """Lines of which only all batches before them tell whether they are wanted."""

    key: int
    """By which that is told."""
    rows: int
    """How many rows they are."""
    data: bytes


class EventBatch:
    """Gathers events."""

    def __init__(self, most_bytes: int | None = None, most_events: int | None = None) -> None:
        """Without other bounds those of above count."""
        self._most_bytes = BATCH_BYTES if most_bytes is None else most_bytes
        self._most_events = BATCH_EVENTS if most_events is None else most_events
        self._wanted = min(FIRST_EVENTS, self._most_events)
        self._events: Batch = []
        self._bytes = 0

    def add(self, events: Iterable[Event]) -> None:
        """Add events, the next."""
        before = len(self._events)
        self._events += events
        for event in self._events[before:]:
            if isinstance(event, Exchange | Brief):
                self._bytes += event.size()

    def __len__(self) -> int:
        return len(self._events)

    @property
    def is_full(self) -> bool:
        """Whether it is worth a process."""
        bytes_wanted = max(1, self._most_bytes * self._wanted // self._most_events)
        return len(self._events) >= self._wanted or self._bytes >= bytes_wanted

    def take(self) -> Batch:
        """What was gathered; it is empty then."""
        self._wanted = min(2 * self._wanted, self._most_events)
        events, self._events, self._bytes = self._events, [], 0
        return events


AT_ONCE = 64
"""Events of a batch that are worked on together."""


def used_up(batch: Batch) -> Iterator[list[Event]]:
    """The events of a batch, some at a time. The batch is empty afterwards: what was decoded of an exchange
    stays with it, and takes many times its bytes."""
    batch.reverse()  # to take from the begin would move all that is left, each time
    while batch:
        some = batch[: -AT_ONCE - 1 : -1]
        del batch[-AT_ONCE:]
        yield some
