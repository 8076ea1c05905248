"""A part of a capture's events, counted elsewhere: in another process, or in a task of Spark.

    part = counted(lists, lambda: Together(…), chooser)
    whole.add(part, chosen)                         part by part, in the order of the events

:class:`~kdissect.analysis.whole.WholeFold` adds them. If a filter chooses the events that count, an ended
connection counts if one of its exchanges does. That exchange may have been in an earlier part. So such
connections travel with the part and are fed when parts are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from kdissect.analysis.chapters import FIRST, Chapter, in_chapters
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.session.conversation import Connection


class Counted(Protocol):
    """A fold, or folds, that count events and have limits."""

    def feed(self, event: Event, counts: bool = True) -> None:
        """Take in the next event. An event that does not count may tell of others."""

    def feed_all(self, events: Sequence[Event]) -> None:
        """Take in the next events, all of which count."""

    def merge(self, later: Self) -> None:
        """Add later counts."""

    def take(self, later: Self) -> None:
        """Add later counts, and empty ``later`` meanwhile. If ``later`` is the current chapter, what it has
        for something too full stays there."""

    def set_open(self) -> None:
        """Accept more than the limits allow, until :meth:`close`. Call it before the first event."""

    @property
    def awaits_chapter(self) -> bool:
        """Whether something is too full and takes in whole chapters only, and the current chapter has not
        begun."""

    def begin_chapter(self, chapter: Self) -> None:
        """Let ``chapter``, which is open, take in the events of the current chapter for what is too full."""

    def end_chapter(self, new: Callable[[], Self]) -> None:
        """Add the current chapter to what is too full, and apply the limits to the rest.

        :param new: makes the same without any contents.
        """

    def close(self) -> None:
        """Keep to the limits from now on, as events come."""


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


class ChapterCounts(NamedTuple, Generic[C]):
    """The counts of those events of a part that belong to one chapter."""

    chapter: Chapter
    """The chapter, as far as the part knows: the events before it may have reached a later one."""
    counted: C
    connections: list[tuple[Connection, bool]]
    """Ended connections, if a filter chooses; and whether an exchange in this part already makes them
    count."""


class Part(NamedTuple, Generic[C]):
    """The counts of a part of the events, in the order of the chapters."""

    pieces: Sequence[ChapterCounts[C]]
    chosen: frozenset[int] = frozenset()
    """Connections with an exchange that counts."""


def counted(
    lists: Iterable[Sequence[Event]],
    new: Callable[[], C],
    chooser: Chooses | None,
    send: Callable[[ChapterCounts[C]], None] | None = None,
) -> Part[C]:
    """Count a part.

    :param lists: its events, in lists of any length.
    :param new: makes an empty fold.
    :param chooser: a chooser for this part alone; None if everything counts.
    :param send: takes each chapter that has ended. Then the part has only its last chapter: several chapters
        would take much memory.
    """
    pieces: list[ChapterCounts[C]] = []
    for together in gathered(lists):
        before = pieces[-1].chapter if pieces else FIRST  # the last one is never sent
        for chapter, events in in_chapters(together, before):
            if not pieces or pieces[-1].chapter != chapter:
                if pieces and send is not None:
                    send(pieces.pop())
                pieces.append(ChapterCounts(chapter, opened(new), []))
            if chooser is None:
                pieces[-1].counted.feed_all(events)
            else:
                _choose(pieces[-1], events, chooser)
    return Part(pieces, frozenset() if chooser is None else frozenset(chooser.chosen))


def opened(new: Callable[[], C]) -> C:
    """A new fold that accepts more than its limits allow."""
    made = new()
    made.set_open()
    return made


def _choose(piece: ChapterCounts[C], events: Sequence[Event], chooser: Chooses) -> None:
    """Add events, of which some count."""
    for event in events:
        counts = chooser.counts(event)
        if isinstance(event, Connection):
            piece.connections.append((event, counts))
        else:
            piece.counted.feed(event, counts)
