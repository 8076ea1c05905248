"""The connection of a packet, found by the bytes of its ends alone: the fast path of ordinary packets."""

from __future__ import annotations

from kdissect.model import Segment
from kdissect.session.conversation import Conversation
from kdissect.tcp.duplex import Side

RECENT_LANES = 256


class Lane:
    """The fast path of packets from one side of a connection."""

    __slots__ = ("conversation", "ends", "side")

    def __init__(self, conversation: Conversation, side: Side, ends: bytes) -> None:
        self.conversation = conversation
        self.side = side
        self.ends = ends
        """The bytes of both ends, as in packets."""


def _lane(conversation: Conversation, side: Side, ends: bytes) -> Lane:
    """``Lane(conversation, side, ends)``, set attribute by attribute: compiled, that is several times
    faster."""
    lane = Lane.__new__(Lane)
    lane.conversation, lane.side, lane.ends = conversation, side, ends
    return lane


class LaneTable:
    """The fast paths of the remembered connections."""

    __slots__ = ("_recent", "by_ends")

    def __init__(self) -> None:
        self.by_ends: dict[bytes, Lane] = {}
        """The lanes, by the bytes of both ends as in packets."""
        self._recent: list[Lane | None] = [None] * RECENT_LANES
        """Some lanes used recently, by :func:`_recent_at`: most packets belong to few connections."""

    def find(self, data: bytes, place: int, size: int) -> Lane | None:
        """The lane of packets between the ends in ``data``; None if there is no lane."""
        raw, at = data, _recent_at(data, place + size)
        lane = self._recent[at]
        if lane is not None and len(lane.ends) == size and data.startswith(lane.ends, place):
            return lane
        lane = self.by_ends.get(raw[place : place + size])
        if lane is not None:
            self._recent[at] = lane
        return lane

    def open(self, conversation: Conversation, segment: Segment) -> None:
        """Open a lane to a connection for packets between the ends of a segment."""
        if conversation.ends is not None:
            return
        source, destination = segment.source, segment.destination
        side = 0 if source == conversation._duplex.endpoints[0] else 1
        one, two = source, destination
        size = len(destination) - 2
        first, second = one[:size], two[:size]
        first_port, second_port = one[size : size + 2], two[size : size + 2]
        ends = b"".join((first, second, first_port, second_port))
        other = b"".join((second, first, second_port, first_port))
        conversation.ends = [ends, other]
        self.by_ends[ends] = _lane(conversation, side, ends)
        self.by_ends[other] = _lane(conversation, 1 - side, other)

    def close(self, conversation: Conversation) -> None:
        """Close the lanes of a connection: another connection may use its ends from now on."""
        if conversation.ends is not None:
            for ends in conversation.ends:
                self._recent[_recent_at(ends, len(ends))] = None
                lane = self.by_ends.get(ends)
                if lane is not None and lane.conversation is conversation:
                    del self.by_ends[ends]
            conversation.ends = None

    def clear(self) -> None:
        """Close all lanes; no packet takes the fast path until a lane is opened again."""
        self.by_ends.clear()
        self._recent = [None] * RECENT_LANES


def _recent_at(data: bytes, end: int) -> int:
    """The place of a lane among the recent ones, by the ports at the end of its bytes."""
    raw = data
    return (raw[end - 1] + 31 * raw[end - 3]) & 0xFF
