"""Segments of one connection → the bytes of both directions, in the order of cause and effect.

A segment's acknowledgement number says what its sender had received when it spoke. So bytes are held
back until the other direction has been given out up to what they acknowledge: a response is never
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
        self._given = [0, 0]
        """Per side, the offset up to which its bytes were given out."""
        self._claims: tuple[dict[int, int], ...] = ({}, {})
        """Per side, of packets whose bytes wait behind a hole: what their acknowledgement presupposes."""

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
        freed: Sequence[Chunk | Gap | Fault] = ()
        if segment.ack is not None and not segment.flags & RST:  # a reset's numbers are often made up
            freed = theirs.acknowledge(segment.ack, segment.packet, segment.timestamp_ns)
        pieces = ours.feed(segment)
        if not freed and not self._held[0] and not self._held[1] and not ours.is_waiting:
            if not pieces:
                return ()
            if (theirs.acknowledged or 0) <= self._given[1 - side]:
                self._given[side] = ours.next
                self._claims[side].clear()
                return [(side, piece) for piece in pieces]
        self._claims[side][segment.packet] = self._claim(segment, theirs)
        self._hold(1 - side, freed)
        self._hold(side, pieces)
        if not ours.kept:
            self._claims[side].pop(segment.packet, None)
        return self._release()

    def close(self) -> Sequence[Piece]:
        """The connection is over, or the capture is: give out everything, with the gaps that remain."""
        for side in (0, 1):
            self._hold(side, self.streams[side].close(self.last_packet, self.last_ns))
        return self._release(final=True)

    def _side(self, segment: Segment) -> Side:
        return 0 if segment.source == self.endpoints[0] else 1

    def _hold(self, side: Side, pieces: Sequence[Chunk | Gap | Fault]) -> None:
        """Put pieces in the queue, each with the offset of the other direction up to which its sender had
        received when it said them. A gap presupposes nothing: nobody was heard to say it."""
        claims = self._claims[side]
        for piece in pieces:
            claim = claims.get(piece.packet, 0) if isinstance(piece, Chunk) else 0
            self._held[side].append((claim, piece))
        if not self.streams[side].is_waiting:
            claims.clear()

    def _claim(self, segment: Segment, theirs: Reassembler) -> int:
        if segment.ack is None or segment.flags & RST or theirs.acknowledged is None:
            return 0
        return min(theirs.offset_of(segment.ack), theirs.acknowledged)

    def _release(self, final: bool = False) -> list[Piece]:
        out: list[Piece] = []
        while True:
            side = self._next_side(final)
            if side is None:
                return out
            piece = self._held[side].popleft()[1]
            if isinstance(piece, Chunk):
                self._given[side] = piece.offset + len(piece.data)
            elif isinstance(piece, Gap):
                self._given[side] = piece.offset + piece.length
            out.append((side, piece))

    def _next_side(self, final: bool) -> Side | None:
        """Whose turn it is; None while something is waited for, which in the end nothing is."""
        blocked: list[tuple[int, Side]] = []
        for side in (0, 1):
            if not self._held[side]:
                continue
            claim, piece = self._held[side][0]
            other, others = self.streams[1 - side], self._held[1 - side]
            # The number after the last byte may be a FIN's: it acknowledges no data.
            if claim <= self._given[1 - side] or (claim == other.next + 1 and not others):
                return side
            if final or (others and claim <= other.next + 1):
                blocked.append((piece.packet or 0, side))
        # Two that wait for each other contradict cause and effect: then the capture's order decides.
        return min(blocked)[1] if len(blocked) == 2 or (final and blocked) else None
