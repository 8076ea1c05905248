"""Segments of one connection → the bytes of both directions, in the order of cause and effect.

A segment's acknowledgement number shows what its sender had received when it sent the segment. So bytes are
held until the acknowledged bytes of the other direction have been given. A response is never given before its
request. This holds even if the capture reordered the two, or if a hole in the requests may still be filled.
Each direction's bytes keep their order.

A connection without bytes costs little: the queues are only made when bytes have to wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence, Set
from typing import Any

from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import ACK, FIN, RST, SYN, Chunk, Endpoint, Fault, Gap, Segment
from kdissect.tcp.clocks import (
    LONG_NS,
    MOST_HALTS,
    PAUSE_NS,
    UNDECIDED,
    ClockHalt,
    is_halt,
    own_time_ns,
    passed_for_both,
)
from kdissect.tcp.copies import COPY_NS
from kdissect.tcp.reassembly import NOWHERE, Reassembler, reassembler_of
from kdissect.tcp.waiting import PIECE_BYTES

_NOWHERE = NOWHERE
"""The same as a C number when compiled."""
_PAUSE_NS, _LONG_NS, _UNDECIDED = PAUSE_NS, LONG_NS, UNDECIDED
_MILLISECOND = 1_000_000
_MOST_MS = 0xFFFFFFFF
"""The longest time in ms that a connection keeps: 49 days."""

Side = int
"""0 for the endpoint that opened the connection in the capture, else for the first one seen; 1 for the
other."""

Piece = tuple[Side, Chunk | Gap | Fault]

CLAIMS = 64
"""The number of claims that may remain from packets whose bytes no longer wait, before the claims are cleaned
up."""


class _Backlog:
    """The pieces of one side that wait for the other side."""

    __slots__ = ("claims", "queue", "tidy_at")

    def __init__(self) -> None:
        self.queue: deque[tuple[int, Chunk | Gap | Fault]] = deque()
        """Each piece with the offset of the other direction that its sender had received."""
        self.claims: dict[int, int] = {}
        """The acknowledged offset of each packet whose bytes wait behind a hole."""
        self.tidy_at = CLAIMS
        """The number of claims at which unneeded ones are removed."""

    def tidy(self, packets: Set[int]) -> None:
        """Keep the claims of these packets only."""
        for packet in self.claims.keys() - packets:
            del self.claims[packet]
        self.tidy_at = CLAIMS + 2 * len(self.claims)


class Duplex:
    """Orders the bytes of one connection."""

    __slots__ = (
        "_backlogs",
        "_clocks_due",
        "_limit",
        "_pause",
        "_queued_cost",
        "_syn_ns",
        "clock_halts",
        "closed_ns",
        "closed_side",
        "endpoints",
        "first_is_other",
        "first_ns",
        "held_bytes",
        "last_ns",
        "last_packet",
        "packets",
        "reset",
        "reset_side",
        "streams",
        "syns",
    )

    def __init__(self, segment: Segment, limits: Limits = DEFAULTS) -> None:
        """Take the endpoints from the connection's first segment. The segment must still be fed."""
        self.begin(segment, limits)

    def begin(self, segment: Segment, limits: Limits) -> None:
        """Do the work of ``__init__``; a fast path for compiled callers."""
        first, other = segment.source, segment.destination
        if segment.flags & (SYN | ACK) == SYN | ACK:
            first, other = other, first
        self.endpoints: tuple[Endpoint, Endpoint] = (first, other)
        self.first_is_other = first != segment.source
        """Whether the first segment is from the second endpoint: the answer to a SYN that was not
        captured."""
        self.streams = (Reassembler(limits), Reassembler(limits))
        self.packets = 0
        self.first_ns = segment.timestamp_ns
        self.last_ns = segment.timestamp_ns
        self.last_packet = segment.packet
        self.reset = False
        self.reset_side: Side | None = None
        """The side that reset the connection first."""
        self.syns = 0
        """How often a client tried to open it."""
        self._syn_ns: int | None = None
        """The time of the last try."""
        self.closed_side: Side | None = None
        """The side that closed first, by FIN or reset. None if the first FIN may not have been captured. An
        end that closes first has no FIN to acknowledge."""
        self.closed_ns: int | None = None
        """The time of the first captured FIN or reset."""
        self.held_bytes = 0
        """The cost of all waiting bytes, as the limits count it."""
        self._backlogs: tuple[_Backlog, _Backlog] | None = None
        self._limit = limits.reorder_bytes
        self._queued_cost = 0
        """The cost of the pieces in both queues; 0 without any."""
        self._clocks_due = 3
        """The sides whose clocks are read next, as bits 1 and 2."""
        self._pause: tuple[int, int] | None = None
        """The last long time without captured segments: from and to."""
        self.clock_halts: list[ClockHalt] | None = None
        """The halts, at most :data:`MOST_HALTS`; None without any."""

    def parts(self) -> tuple[Any, ...]:
        """All its values, for :func:`duplex_of`."""
        first, second = self.streams
        return (
            first.parts(), second.parts(),
            self._backlogs, self._clocks_due, self._limit, self._pause, self._queued_cost, self._syn_ns,
            self.clock_halts, self.closed_ns, self.closed_side, self.endpoints, self.first_is_other,
            self.first_ns, self.held_bytes, self.last_ns, self.last_packet, self.packets, self.reset,
            self.reset_side, self.syns,
        )  # fmt: skip

    @property
    def finished(self) -> bool:
        """Whether both ends sent FIN and everything before was delivered, so that no byte can come any
        more."""
        return self.is_finished()

    def is_finished(self) -> bool:
        """Whether it is :attr:`finished`; a fast path for compiled callers."""
        first, second = self.streams
        if _NOWHERE in (first.ended_at, second.ended_at):
            return False
        return first.next >= first.ended_at and second.next >= second.ended_at and not self._queued_cost

    def has_fin(self) -> bool:
        """Whether one end sent FIN."""
        first, second = self.streams
        return first.ended_at != _NOWHERE or second.ended_at != _NOWHERE

    @property
    def has_ended(self) -> bool:
        """Whether both ends sent FIN, or one reset it."""
        first, second = self.streams
        return self.reset or (_NOWHERE not in (first.ended_at, second.ended_at))

    def is_reopened_by(self, segment: Segment) -> bool:
        """Whether a SYN opens another connection on the same addresses and ports.

        It does with another initial number, and with the same number once the connection has ended.
        """
        if segment.flags & (SYN | ACK) != SYN:
            return False
        stream = self.streams[self._side(segment)]
        if stream.next == 0 and not stream.opened:
            return False
        return self.has_ended or not stream.initial(segment.seq)

    def continues(self, segment: Segment) -> bool:
        """Whether the sequence numbers of a segment between the same endpoints belong to this connection."""
        side = self._side(segment)
        ours, theirs = self.streams[side], self.streams[1 - side]
        if segment.flags & SYN and ours.opened:
            # Another SYN-ACK may answer the same SYN.
            is_other = segment.ack is not None and not ours.is_base_final and theirs.confirms(segment.ack)
            return ours.initial(segment.seq) or is_other
        said = ours.is_near(segment.seq)
        heard = None if segment.ack is None else theirs.is_near(segment.ack)
        return (said or heard or False) and said is not False and heard is not False

    def is_confirmed_by(self, segment: Segment) -> bool:
        """Whether a segment shows that the SYN of this connection was received, or continues after it."""
        side = self._side(segment)
        if segment.ack is not None and self.streams[1 - side].confirms(segment.ack):
            return True
        return not segment.flags & (SYN | RST) and self.streams[side].is_next(segment.seq)

    def feed(self, segment: Segment) -> Sequence[Piece]:
        """The pieces of both directions that this segment makes available."""
        packet, timestamp_ns = segment.packet, segment.timestamp_ns
        ack, flags = segment.ack, segment.flags
        side = 0 if segment.source == self.endpoints[0] else 1
        if self._clocks_due or timestamp_ns - self.last_ns >= _PAUSE_NS:
            # A SYN may have its timestamp at another position.
            self._read_clock(side, segment.clock, timestamp_ns, flags & SYN == 0)
        self.packets += 1
        self.last_packet = packet
        self.last_ns = max(self.last_ns, timestamp_ns)
        ours, theirs = self.streams
        if side:
            ours, theirs = theirs, ours
        may_be_first = False
        if flags & (RST | SYN | FIN):
            may_be_first = self.closed_side is None
            self._note_flags(side, flags, timestamp_ns)
        if not flags & (RST | SYN):
            window = segment.window
            ours.window = max(ours.window, window)
            if window == 0 or ours._zero_since_ns >= 0:
                ours.offer(window, timestamp_ns)
            if segment.options and ack is not None and theirs.troubles is not None:
                theirs.take_sack(segment.options, ack)
        freed: Sequence[Chunk | Gap | Fault] = ()
        if ack is not None and not flags & RST:  # the numbers of a reset are often made up
            freed = theirs.acknowledge(ack, packet, timestamp_ns, segment.length == 0)
        if (
            may_be_first
            and self.closed_side == side
            and theirs.ended_at == _NOWHERE
            and theirs.acknowledged == theirs.next + 1
            and not theirs._waiting
        ):
            self.closed_side = None  # it received a FIN that was not captured, or not yet
        pieces = ours.feed(segment)
        if not freed and not self._queued_cost and not ours._waiting:
            if not pieces:
                return ()
            if theirs.acknowledged <= theirs.next:
                if self._backlogs is not None:
                    self._backlogs[side].claims.clear()
                    self.held_bytes = theirs.held_bytes
                if len(pieces) == 1:
                    return [(side, pieces[0])]
                return [(side, piece) for piece in pieces]
        if self._backlogs is None:
            self._backlogs = (_Backlog(), _Backlog())
        claims = self._backlogs[side].claims
        claims[segment.packet] = self._claim(segment, theirs)
        self._hold(1 - side, freed)
        self._hold(side, pieces)
        if not ours.kept:
            claims.pop(segment.packet, None)
        elif len(claims) > self._backlogs[side].tidy_at:
            self._backlogs[side].tidy(ours.waiting_packets())
        out = self._release()
        if self._queued_cost > self._limit:
            out += self.give_up(self._limit, "for the other direction")
        return out

    def take(
        self,
        packet: int,
        timestamp_ns: int,
        side: Side,
        seq: int,
        ack: int,
        window: int,
        identity: int,
        data: bytes,
        start: int,
        length: int,
        is_end: bool,
        clock: int,
    ) -> bool:
        """Take an ordinary segment as :meth:`feed` does. Nearly all are ordinary. An ordinary segment has the
        next bytes of its side, or no bytes, while nothing waits. It acknowledges bytes that were already
        given, or the FIN after them. It has ACK, neither SYN nor RST, and no options beyond a timestamp. The
        caller may then use its bytes, which are in ``data``, at once. Return False for other segments:
        nothing was taken, and the caller must feed it.

        :param is_end: whether it has FIN, and no bytes.
        :param clock: the value of its timestamp; -1 without one.
        """
        ours, theirs = self.streams
        if side:
            ours, theirs = theirs, ours
        if self.reset or self._queued_cost or window == 0 or ours._zero_since_ns >= 0:
            return False
        if not ours.is_even() or not theirs.is_even():
            return False
        if (length or is_end) and (ours._place(seq) != ours.next or ours.ended_at != _NOWHERE):
            return False
        heard, most = theirs._place(ack), theirs.next
        if theirs.ended_at == most and not length:
            most += 1  # for the FIN
        if heard < 0 or heard > most or theirs.acknowledged > most:
            return False
        if self._clocks_due or timestamp_ns - self.last_ns >= _PAUSE_NS:
            self._read_clock(side, clock, timestamp_ns, True)
        self.packets += 1
        self.last_packet = packet
        self.last_ns = max(self.last_ns, timestamp_ns)
        ours.window = max(ours.window, window)
        theirs.acknowledge(ack, packet, timestamp_ns, length == 0)
        ours.kept = False
        if is_end:
            self._note_flags(side, FIN, timestamp_ns)
            ours.ended_at = ours.next
        if length:
            ours.append(packet, timestamp_ns, identity, data, start, length)
            if self._backlogs is not None:
                self._backlogs[side].claims.clear()
                self.held_bytes = theirs.held_bytes
        return True

    def _read_clock(self, side: Side, clock: int, timestamp_ns: int, is_told: bool) -> None:
        """Check whether a pause took the same time by the sender's clock as by the capture's.

        :param clock: its value; -1 if unknown.
        :param is_told: whether the segment can have a clock value.
        """
        if timestamp_ns > self.last_ns and timestamp_ns - self.last_ns >= _PAUSE_NS:
            self._pause = self.last_ns, timestamp_ns
            self._clocks_due = 3
        ours = self.streams[side]
        if not is_told or not self._clocks_due & (1 << side):
            return
        self._clocks_due &= ~(1 << side)
        if clock < 0:
            return
        if ours.clock_ns >= 0 and self._pause is not None and self._pause[1] > ours.clock_ns:
            from_ns, to_ns = self._pause
            before_ns, pause_ns = from_ns - ours.clock_ns, to_ns - from_ns
            after_ns = max(timestamp_ns, to_ns) - to_ns  # the distance of absurd times may not fit in 64 bits
            passed_ns = own_time_ns(clock - ours.clock, before_ns, pause_ns, after_ns)
            if passed_ns == _UNDECIDED:
                ours.unmeasured_ms = min(ours.unmeasured_ms + -(-pause_ns // _MILLISECOND), _MOST_MS)
                return
            if passed_ns >= 0:
                if passed_for_both(passed_ns, pause_ns, before_ns) and before_ns < _LONG_NS:
                    ours.unmeasured_ms = 0
                    return
                if is_halt(passed_ns, pause_ns, before_ns, ours.unmeasured_ms * _MILLISECOND):
                    self.clock_halts = self.clock_halts or []
                    if len(self.clock_halts) < MOST_HALTS:
                        self.clock_halts.append(ClockHalt(side, from_ns, to_ns, passed_ns))
        ours.clock, ours.clock_ns, ours.unmeasured_ms = clock, timestamp_ns, 0

    def _note_flags(self, side: Side, flags: int, timestamp_ns: int) -> None:
        if flags & RST:
            if not self.reset:
                self.reset_side = side
            self.reset = True
        elif flags & SYN:
            if side == 0:
                # Another interface may have captured the same SYN; clients try again only after a second.
                self.syns += self._syn_ns is None or timestamp_ns - self._syn_ns > COPY_NS
                self._syn_ns = timestamp_ns
            return
        if self.closed_side is None:
            self.closed_side = side
            if self.closed_ns is None:
                self.closed_ns = timestamp_ns

    def give_up(self, limit: int, where: str = "in all connections") -> Sequence[Piece]:
        """Give the waiting pieces, with the gaps before them, because more than ``limit`` bytes wait. Each
        direction with waiting pieces reports it."""
        if self._backlogs is not None:
            for side, stream in enumerate(self.streams):
                if stream.is_waiting or self._backlogs[side].queue:
                    message = (
                        f"more than {limit:,} bytes wait {where}; kdissect gave up waiting for the "
                        "missing bytes here"
                    )
                    self._hold(side, [fault("buffer-limit", message, self.last_packet, stream.next)])
                    reason = f"more bytes wait {where} than the limit allows"
                    self._hold(side, stream.give_up(reason, self.last_packet, self.last_ns))
        return self._release(final=True)

    def close(self) -> Sequence[Piece]:
        """End the connection or the capture: give everything, with the remaining gaps."""
        first, second = self.streams
        if self._backlogs is None and first.has_all() and second.has_all():
            return ()
        for side, stream in enumerate(self.streams):
            self._hold(side, stream.close(self.last_packet, self.last_ns))
        return self._release(final=True)

    def _side(self, segment: Segment) -> Side:
        return 0 if segment.source == self.endpoints[0] else 1

    def _hold(self, side: Side, pieces: Sequence[Chunk | Gap | Fault]) -> None:
        """Put pieces in the queue, each with the offset of the other direction that its sender had received.
        A gap requires no offset, because its segments were not captured."""
        if self._backlogs is None:
            if not pieces:
                return
            self._backlogs = (_Backlog(), _Backlog())
        queue, claims = self._backlogs[side].queue, self._backlogs[side].claims
        for piece in pieces:
            queue.append((claims.get(piece.packet, 0) if isinstance(piece, Chunk) else 0, piece))
            self._queued_cost += _cost(piece)
        if not self.streams[side].is_waiting:
            claims.clear()

    def _claim(self, segment: Segment, theirs: Reassembler) -> int:
        if segment.ack is None or segment.flags & RST or theirs.acknowledged == _NOWHERE:
            return 0
        return min(theirs.offset_of(segment.ack), theirs.acknowledged)

    def _release(self, final: bool = False) -> list[Piece]:
        out: list[Piece] = []
        if self._backlogs is not None:
            while (side := self._next_side(self._backlogs, final)) is not None:
                piece = self._backlogs[side].queue.popleft()[1]
                self._queued_cost -= _cost(piece)
                out.append((side, piece))
        self.held_bytes = self.streams[0].held_bytes + self.streams[1].held_bytes + self._queued_cost
        return out

    def _delivered_offset(self, backlogs: tuple[_Backlog, _Backlog], side: Side) -> int:
        """The offset up to which a side's bytes were given."""
        for _, piece in backlogs[side].queue:
            if not isinstance(piece, Fault):
                return piece.offset
        return self.streams[side].next

    def _next_side(self, backlogs: tuple[_Backlog, _Backlog], final: bool) -> Side | None:
        """The side whose piece is next; None while bytes are awaited. With ``final``, nothing is awaited."""
        blocked: list[tuple[int, Side]] = []
        for side in (0, 1):
            if not backlogs[side].queue:
                continue
            claim, piece = backlogs[side].queue[0]
            other, others = self.streams[1 - side], backlogs[1 - side].queue
            # The number after the last byte may be a FIN's: then it acknowledges no data.
            if claim <= self._delivered_offset(backlogs, 1 - side) or (
                claim == other.next + 1 and not others
            ):
                return side
            if final or (others and claim <= other.next + 1):
                blocked.append((piece.packet or 0, side))
        # If the two wait for each other, that contradicts cause and effect: then the capture's order decides.
        return min(blocked)[1] if len(blocked) == 2 or (final and blocked) else None


def _cost(piece: Chunk | Gap | Fault) -> int:
    return PIECE_BYTES + (len(piece.data) if isinstance(piece, Chunk) else 0)


def duplex_of(parts: tuple[Any, ...]) -> Duplex:
    """The connection's bytes with these :meth:`~Duplex.parts`."""
    made = Duplex.__new__(Duplex)
    (
        first, second,
        made._backlogs, made._clocks_due, made._limit, made._pause, made._queued_cost, made._syn_ns,
        made.clock_halts, made.closed_ns, made.closed_side, made.endpoints, made.first_is_other,
        made.first_ns, made.held_bytes, made.last_ns, made.last_packet, made.packets, made.reset,
        made.reset_side, made.syns,
    ) = parts  # fmt: skip
    made.streams = reassembler_of(first), reassembler_of(second)
    return made
