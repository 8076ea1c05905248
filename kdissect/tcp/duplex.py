"""Segments of one connection → the bytes of both directions, in the order of cause and effect.

A segment's acknowledgement number says what its sender had received when it spoke. So bytes are held
back until the other direction has been reassembled up to what they acknowledge: a response is never
given out before the request that it answers, even where the capture reordered the two or a hole in
the requests is still being waited for. Each direction's bytes stay in their own order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from kdissect.limits import DEFAULTS, Limits
from kdissect.model import ACK, RST, SYN, Chunk, Endpoint, Fault, Gap, Segment
from kdissect.tcp.reassembly import Reassembler

Side = int
"""0 for the endpoint that was seen to open the connection, else for the one seen first; 1 for the other."""

Piece = tuple[Side, Chunk | Gap | Fault]


class Duplex:
    """The machine of one connection."""

    def __init__(self, segment: Segment, limits: Limits = DEFAULTS) -> None:
        """Take the endpoints from the connection's first segment, which is to be fed all the same."""
        first, other = segment.source, segment.destination
        if segment.flags & (SYN | ACK) == SYN | ACK:
            first, other = other, first
        self.endpoints: tuple[Endpoint, Endpoint] = (first, other)
        self.streams = (Reassembler(limits), Reassembler(limits))
        self.packets = 0
        self.first_ns = segment.timestamp_ns
        self.last_ns = segment.timestamp_ns
        self.last_packet = segment.packet
        self.reset = False
        self._held: tuple[deque[tuple[int, Chunk | Gap | Fault]], ...] = (deque(), deque())

    @property
    def finished(self) -> bool:
        """Both ends said FIN and everything before was delivered: no byte can come any more."""
        return self.streams[0].done and self.streams[1].done and not self._held[0] and not self._held[1]

    def is_reopened_by(self, segment: Segment) -> bool:
        """Whether a SYN begins another connection on the same addresses and ports.

        It does with another initial number, and with the same one once the connection has ended.
        """
        if segment.flags & (SYN | ACK) != SYN:
            return False
        stream = self.streams[self._side(segment)]
        if stream.next == 0 and not stream.opened:
            return False
        ended = self.reset or (self.streams[0].ended_at is not None and self.streams[1].ended_at is not None)
        return ended or not stream.initial(segment.seq)

    def feed(self, segment: Segment) -> Sequence[Piece]:
        """What this segment makes available, of both directions."""
        self.packets += 1
        self.last_packet = segment.packet
        self.last_ns = max(self.last_ns, segment.timestamp_ns)
        if segment.flags & RST:
            self.reset = True
        side = self._side(segment)
        ours, theirs = self.streams[side], self.streams[1 - side]
        freed: Sequence[Chunk | Gap] = ()
        if segment.ack is not None and not segment.flags & RST:  # a reset's numbers are often made up
            freed = theirs.acknowledge(segment.ack, segment.packet, segment.timestamp_ns)
        pieces = ours.feed(segment)
        if not pieces and not freed and not self._held[0] and not self._held[1]:
            return ()
        # What this side says now presupposes what it acknowledges. Pieces that a hole held back were
        # said earlier and presuppose less; the smaller claim would need a record of each segment.
        wanted = theirs.acknowledged if pieces and theirs.acknowledged is not None else 0
        self._held[1 - side].extend((0, piece) for piece in freed)
        self._held[side].extend((wanted, piece) for piece in pieces)
        return self._release()

    def close(self) -> Sequence[Piece]:
        """The connection is over, or the capture is: give out everything, with the gaps that remain."""
        for side in (0, 1):
            rest = self.streams[side].close(self.last_packet, self.last_ns)
            self._held[side].extend((0, piece) for piece in rest)
        return self._release()

    def _side(self, segment: Segment) -> Side:
        return 0 if segment.source == self.endpoints[0] else 1

    def _release(self) -> list[Piece]:
        out: list[Piece] = []
        moved = True
        while moved:
            moved = False
            for side in (0, 1):
                queue, other = self._held[side], self.streams[1 - side]
                while queue and (queue[0][0] <= other.next or _only_fin_is_missing(other, queue[0][0])):
                    out.append((side, queue.popleft()[1]))
                    moved = True
        return out


def _only_fin_is_missing(stream: Reassembler, wanted: int) -> bool:
    """The number after the last byte may be a FIN's: it acknowledges no data."""
    return wanted == stream.next + 1
