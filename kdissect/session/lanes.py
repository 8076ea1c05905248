"""Which connection a packet is of, by the bytes of its ends alone: the short way of ordinary packets."""

from __future__ import annotations

from kdissect.model import Segment
from kdissect.session.conversation import Conversation
from kdissect.tcp.duplex import Side

RECENT_LANES = 256


class Lane:
    """The short way of packets from one side of a connection."""

    __slots__ = ("conversation", "ends", "side")

    def __init__(self, conversation: Conversation, side: Side, ends: bytes) -> None:
        self.conversation = conversation
        self.side = side
        self.ends = ends
        """The bytes of both ends, as packets have them."""


def _lane(conversation: Conversation, side: Side, ends: bytes) -> Lane:
    """``Lane(conversation, side, ends)``, made part by part: compiled, that is several times faster."""
    lane = Lane.__new__(Lane)
    lane.conversation, lane.side, lane.ends = conversation, side, ends
    return lane


class LaneTable:
    """The short ways of connections that are remembered."""

    __slots__ = ("_recent", "by_ends")

    def __init__(self) -> None:
        self.by_ends: dict[bytes, Lane] = {}
        """By the bytes of both ends as packets have them."""
        self._recent: list[Lane | None] = [None] * RECENT_LANES
        """Some of those taken last, by :func:`_recent_at`: most packets are of few connections."""

    def find(self, data: bytes, place: int, size: int) -> Lane | None:
        """The short way of packets between the ends that stand in ``data``; None if it is not known."""
        raw, at = data, _recent_at(data, place + size)
        lane = self._recent[at]
        if lane is not None and len(lane.ends) == size and data.startswith(lane.ends, place):
            return lane
        lane = self.by_ends.get(raw[place : place + size])
        if lane is not None:
            self._recent[at] = lane
        return lane

    def open(self, conversation: Conversation, segment: Segment) -> None:
        """Let packets between the ends of a segment take the short way to its connection."""
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
        """Another connection may have its ends from now on."""
        if conversation.ends is not None:
            for ends in conversation.ends:
                self._recent[_recent_at(ends, len(ends))] = None
                lane = self.by_ends.get(ends)
                if lane is not None and lane.conversation is conversation:
                    del self.by_ends[ends]
            conversation.ends = None

    def clear(self) -> None:
        """No packet takes the short way any more, unless it is opened anew."""
        self.by_ends.clear()
        self._recent = [None] * RECENT_LANES


def _recent_at(data: bytes, end: int) -> int:
    """Where a lane is kept as a recent one, by the ports that end the bytes of its ends."""
    raw = data
    return (raw[end - 1] + 31 * raw[end - 3]) & 0xFF
