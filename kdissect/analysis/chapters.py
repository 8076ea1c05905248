"""Events of a capture → chapters: the same ones however the capture is read.

A chapter begins with the first event that is beyond a multiple of some thousand exchanges, packets or
connections. Their numbers are those of the capture, and all events before count. So each of several parts
finds the chapters of its events by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

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


def in_chapters(
    events: Sequence[Event], chapter: Chapter = FIRST
) -> Iterator[tuple[Chapter, Sequence[Event]]]:
    """The events, in lists of one chapter each.

    :param chapter: the chapter of the events before.
    """
    begin = 0
    exchange, packet, connection = _ends(chapter)
    for at, event in enumerate(events):
        if isinstance(event, Exchange | Brief):
            if event.number < exchange and event.last_packet < packet:
                continue
            reached = Chapter(event.number // EXCHANGES, event.last_packet // PACKETS)
        elif isinstance(event, Connection) and event.connection >= connection:
            reached = Chapter(connections=event.connection // CONNECTIONS)
        else:
            continue
        if at > begin:
            yield chapter, events[begin:at]
            begin = at
        chapter = reached.after(chapter)
        exchange, packet, connection = _ends(chapter)
    if begin < len(events):
        yield chapter, events[begin:] if begin else events


def _ends(chapter: Chapter) -> tuple[int, int, int]:
    """The first number of each kind that is in a later chapter."""
    return (
        (chapter.exchanges + 1) * EXCHANGES,
        (chapter.packets + 1) * PACKETS,
        (chapter.connections + 1) * CONNECTIONS,
    )
