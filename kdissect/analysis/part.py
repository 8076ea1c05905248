"""A part of a capture's events, counted elsewhere: in another process, or in a task of Spark.

    part = counted(lists, Together(…), chooser)
    add(whole, part, chosen)                        part by part, in the order of the events

If a filter chooses the events that count, an ended connection counts if one of its exchanges does. That
exchange may have been in an earlier part. So such connections travel with the part and are fed when parts are
added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.session.conversation import Connection


class Counted(Protocol):
    """A fold, or folds, that count events."""

    def feed(self, event: Event, counts: bool = True) -> None:
        """Take in the next event. An event that does not count may tell of others."""

    def feed_all(self, events: Sequence[Event]) -> None:
        """Take in the next events, all of which count."""

    def merge(self, later: Self) -> None:
        """Add later counts."""


class Chooses(Protocol):
    """Decides which events count."""

    chosen: set[int]
    """Connections with an exchange that counts."""

    def counts(self, event: Event) -> bool:
        """Whether an exchange counts; for a connection, whether an exchange of it that counts was seen."""


C = TypeVar("C", bound=Counted)

MOST_EVENTS, MOST_BYTES = 128, 1 << 20
"""The most events that are fed together, and the most captured bytes. More would not stay in the caches of a
processor."""


def gathered(lists: Iterable[Sequence[Event]]) -> Iterator[list[Event]]:
    """The events, in lists of the size that should be fed together.

    :raises KeyboardInterrupt: the input ends with it; the events before it are given first.
    """
    waiting: list[Event] = []
    size = 0
    try:
        for events in lists:
            for event in events:
                waiting.append(event)
                if isinstance(event, Exchange):
                    size += event.size()
                if len(waiting) >= MOST_EVENTS or size >= MOST_BYTES:
                    yield waiting
                    waiting, size = [], 0
    except KeyboardInterrupt:
        yield waiting
        raise
    yield waiting


class Part(NamedTuple, Generic[C]):
    """The counts of a part of the events."""

    counted: C
    chosen: frozenset[int] = frozenset()
    """Connections with an exchange that counts."""
    connections: Sequence[tuple[Connection, bool]] = ()
    """Ended connections, if a filter chooses; and whether an exchange in this part already makes them
    count."""


def counted(lists: Iterable[Sequence[Event]], into: C, chooser: Chooses | None) -> Part[C]:
    """Count a part.

    :param lists: its events, in lists of any length.
    :param into: the object to count into; it must be new.
    :param chooser: a chooser for this part alone; None if everything counts.
    """
    if chooser is None:
        for together in gathered(lists):
            into.feed_all(together)
        return Part(into)
    connections: list[tuple[Connection, bool]] = []
    for event in chain.from_iterable(lists):
        counts = chooser.counts(event)
        if isinstance(event, Connection):
            connections.append((event, counts))
        else:
            into.feed(event, counts)
    return Part(into, frozenset(chooser.chosen), connections)


def add(whole: C, part: Part[C], chosen: set[int]) -> None:
    """Add the next part.

    :param chosen: connections with an exchange that counts in the parts before. This part's connections are
        added to it.
    """
    whole.merge(part.counted)
    for connection, counts in part.connections:
        whole.feed(connection, counts or connection.connection in chosen)
    chosen |= part.chosen
