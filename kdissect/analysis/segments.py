"""Events of a capture → segments: the same ones however the capture is read.

A segment begins with the first event that is beyond a multiple of some thousand exchanges, packets or
connections. Their numbers are those of the capture, and all events before count. So each of several parts
finds the segments of its events by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.session.briefs import Brief
from kdissect.session.conversation import Connection

EXCHANGES, PACKETS, CONNECTIONS = 8_192, 32_768, 8_192
"""The most numbers of each kind in a segment. Larger segments take more memory, smaller ones more time."""


class Segment(NamedTuple):
    """The position of a segment: multiples of each number that the events had reached."""

    exchanges: int = 0
    packets: int = 0
    connections: int = 0

    def after(self, earlier: Segment) -> Segment:
        """The segment, if the events before it had reached an earlier one."""
        return Segment(*map(max, self, earlier))


FIRST = Segment()


def in_segments(
    events: Sequence[Event], segment: Segment = FIRST
) -> Iterator[tuple[Segment, Sequence[Event]]]:
    """The events, in lists of one segment each.

    :param segment: the segment of the events before.
    """
    begin = 0
    exchange, packet, connection = _ends(segment)
    for at, event in enumerate(events):
        if isinstance(event, Exchange | Brief):
            if event.number < exchange and event.last_packet < packet:
                continue
            reached = Segment(event.number // EXCHANGES, event.last_packet // PACKETS)
        elif isinstance(event, Connection) and event.connection >= connection:
            reached = Segment(connections=event.connection // CONNECTIONS)
        else:
            continue
        if at > begin:
            yield segment, events[begin:at]
            begin = at
        segment = reached.after(segment)
        exchange, packet, connection = _ends(segment)
    if begin < len(events):
        yield segment, events[begin:] if begin else events


def _ends(segment: Segment) -> tuple[int, int, int]:
    """The first number of each kind that is in a later segment."""
    return (
        (segment.exchanges + 1) * EXCHANGES,
        (segment.packets + 1) * PACKETS,
        (segment.connections + 1) * CONNECTIONS,
    )
