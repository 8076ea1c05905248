"""Events of a capture → chapters: the same ones however the capture is read.

A chapter begins with the first event that is beyond a multiple of some thousand exchanges, packets or
connections. Their numbers are those of the capture, and all events before count. So each of several parts
finds the chapters of its events by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.session.briefs import Brief
from kdissect.session.conversation import Connection

EXCHANGES, PACKETS, CONNECTIONS = 8_192, 32_768, 8_192
"""The most numbers of each kind in a chapter. Larger chapters take more memory, smaller ones more time."""


class Chapter(NamedTuple):
    """The position of a chapter: multiples of each number that the events had reached."""

    exchanges: int = 0
    packets: int = 0
    connections: int = 0

    def after(self, earlier: Chapter) -> Chapter:
        """The chapter, if the events before it had reached an earlier one."""
        return Chapter(*map(max, self, earlier))


FIRST = Chapter()


Ends = tuple[int, int, int]
"""The first exchange, packet and connection of later chapters."""


def in_chapters(
    events: Sequence[Event], chapter: Chapter = FIRST
) -> Iterator[tuple[Chapter, Sequence[Event]]]:
    """The events, in lists of one chapter each.

    :param chapter: the chapter of the events before.
    """
    begin = 0
    while (at := first_beyond(events, begin, ends_of(chapter))) >= 0:
        if at > begin:
            yield chapter, events[begin:at]
        begin, chapter = at, after(chapter, events[at])
    if begin < len(events):
        yield chapter, events[begin:] if begin else events


def first_beyond(events: Sequence[Event], begin: int, ends: Ends) -> int:
    """The position of the first event of a later chapter, from a position on; -1 without any. An event of no
    exchange and no connection is in the chapter of the events before."""
    exchange, packet, connection = ends
    at, count = begin, len(events)
    while at < count:
        event = events[at]
        kind: Any = type(event)
        if kind is Exchange:
            whole: Any = event
            if whole.number >= exchange or whole._last() >= packet:
                return at
        elif kind is Brief:
            brief: Any = event
            if brief.number >= exchange or brief._last() >= packet:
                return at
        elif kind is Connection:
            ended: Any = event
            if ended.connection >= connection:
                return at
        at += 1
    return -1


def after(chapter: Chapter, event: Event) -> Chapter:
    """The chapter that begins with an event.

    :param chapter: the chapter of the events before.
    """
    if isinstance(event, Exchange | Brief):
        return Chapter(event.number // EXCHANGES, event.last_packet // PACKETS).after(chapter)
    assert isinstance(event, Connection)
    return Chapter(connections=event.connection // CONNECTIONS).after(chapter)


def ends_of(chapter: Chapter) -> Ends:
    """The end of a chapter."""
    return (
        (chapter.exchanges + 1) * EXCHANGES,
        (chapter.packets + 1) * PACKETS,
        (chapter.connections + 1) * CONNECTIONS,
    )
