"""Segments of one direction → its bytes in order, each once: Chunk, or Gap where bytes are missing.

Rules

1. Offsets count the direction's bytes from 0: the byte after the SYN, or the first position that is
   known where the capture began later. Sequence numbers wrap at 2**32; offsets do not. A number is
   placed by its signed 32-bit distance from the next byte wanted (RFC 1982's serial arithmetic).
2. The first copy of a byte counts (Zeek, Suricata's BSD policy for equal offsets). A later copy with
   other contents, as far as the first is still at hand, is a Fault.
3. A hole is a fact once the peer has acknowledged past it: it had the bytes, the capture lost them.
   Capture points reorder packets, so the hole is given ``PATIENCE_SEGMENTS`` more segments of the
   connection, or ``PATIENCE_NS``, to be filled. Without acknowledgements only ``Limits.reorder_bytes``,
   or the end, declares it.
4. Bytes that the snap length cut off are a Gap at once: nothing can bring them.
5. Chunks and gaps join without a seam: the offset of each is the end of the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import FIN, RST, SYN, Chunk, Fault, Gap, Segment

PATIENCE_SEGMENTS = 8
"""Enough for the reordering of multi-queue cards and of ``any`` captures, which is a few packets."""
PATIENCE_NS = 1_000_000_000

NO_ACKNOWLEDGEMENT_BYTES = 1 << 20
"""Bytes that may wait behind a hole while the peer was never heard (a capture of one side)."""

FARTHEST_ACKNOWLEDGEMENT = 1 << 30
"""The largest window of TCP (RFC 7323): an acknowledgement beyond it is damage, not news."""

REBASE_BYTES = 65_536
"""How far before a merely acknowledged position the first captured byte may lie."""

Piece = tuple[int, int, bytes, int, int]
"""offset, length on the wire, captured bytes, packet, time: something that waits for its turn."""


class Reassembler:
    """The machine of one direction. ``feed`` takes its segments, ``acknowledge`` the peer's."""

    __slots__ = (
        "_base",
        "_base_is_sure",
        "_impatience",
        "_last",
        "_limits",
        "_overdue_since",
        "_waiting",
        "_waiting_bytes",
        "acknowledged",
        "ended_at",
        "gap_bytes",
        "gaps",
        "next",
        "opened",
        "retransmitted",
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._limits = limits
        self._base: int | None = None
        self._base_is_sure = False
        self._waiting: list[Piece] = []
        self._waiting_bytes = 0
        self._last: Chunk | None = None
        self._impatience = 0
        self._overdue_since = 0
        self.next = 0
        """Offset of the next byte wanted: the length of the stream so far."""
        self.acknowledged: int | None = None
        """Offset up to which the peer has acknowledged."""
        self.opened = False
        """Whether the stream was seen from its SYN."""
        self.ended_at: int | None = None
        """Offset of the FIN."""
        self.retransmitted = 0
        """Bytes that came again."""
        self.gaps = 0
        self.gap_bytes = 0

    @property
    def done(self) -> bool:
        """The FIN and everything before it were seen."""
        return self.ended_at is not None and self.next >= self.ended_at

    @property
    def is_waiting(self) -> bool:
        """Whether bytes wait behind a hole."""
        return bool(self._waiting)

    def offset_of(self, seq: int) -> int:
        """The offset that a sequence number stands for; the base must be known."""
        return self._place(seq)

    def initial(self, seq: int) -> bool:
        """Whether a SYN with this number opens the stream that is being reassembled."""
        return self.opened and self._base == (seq + 1) & 0xFFFFFFFF

    def feed(self, segment: Segment) -> Sequence[Chunk | Gap | Fault]:
        """The bytes that ``segment`` makes available, in order."""
        seq = segment.seq
        if segment.flags & SYN:
            seq = (seq + 1) & 0xFFFFFFFF
            if self._base is None or not self._base_is_sure:
                self._base, self._base_is_sure, self.opened = seq, True, True
                self.acknowledged = None
        elif self._base is None:
            if segment.flags & RST and not segment.length:
                return ()  # the numbers of a reset are often made up
            self._base, self._base_is_sure = seq, bool(segment.length)
        offset = self._place(seq)
        if segment.flags & FIN:
            self.ended_at = offset + segment.length
        if not segment.length:
            return self._declare(segment.packet, segment.timestamp_ns) if self._waiting else ()
        if not self._base_is_sure:
            self._settle_base(segment, offset)
            offset = self._place(seq)
        if offset == self.next and not self._waiting:
            return self._deliver(
                (offset, segment.length, segment.payload, segment.packet, segment.timestamp_ns)
            )
        return self._feed_slow(segment, offset)

    def acknowledge(self, ack: int, packet: int, timestamp_ns: int) -> Sequence[Chunk | Gap]:
        """The peer has everything before ``ack``. Gives what a hole, now known to be one, held back."""
        if self._base is None:
            self._base, self.acknowledged = ack, 0
            return ()
        offset = self._place(ack)
        if offset - self.next > FARTHEST_ACKNOWLEDGEMENT:
            return ()
        if self.acknowledged is None or offset > self.acknowledged:
            self.acknowledged = offset
        return self._declare(packet, timestamp_ns) if self.acknowledged > self.next else ()

    def close(self, packet: int, timestamp_ns: int) -> Sequence[Chunk | Gap]:
        """No more segments will come: every hole is one now."""
        out: list[Chunk | Gap] = []
        while self._waiting:
            out += self._give_up("not captured", packet, timestamp_ns)
        known = max(self.acknowledged or 0, self.ended_at or 0)
        # One byte more than the data is the FIN's own number, whose segment may be the lost one.
        if known > self.next + 1 or (self.ended_at is not None and self.ended_at > self.next):
            out.append(
                self._gap(
                    min(known, self.ended_at or known) - self.next, "not captured", packet, timestamp_ns
                )
            )
        return out

    def _place(self, seq: int) -> int:
        assert self._base is not None
        distance = (seq - self._base - self.next) & 0xFFFFFFFF
        return self.next + (distance - 0x1_0000_0000 if distance & 0x8000_0000 else distance)

    def _settle_base(self, segment: Segment, offset: int) -> None:
        """Before any data the base was only acknowledged; captured bytes just before it move it back."""
        if offset == -1 and segment.length == 1:
            return  # a keep-alive probe says nothing about data
        if -REBASE_BYTES <= offset < 0:
            self._base = segment.seq
            if self.acknowledged is not None:
                self.acknowledged -= offset
        self._base_is_sure = True

    def _feed_slow(self, segment: Segment, offset: int) -> Sequence[Chunk | Gap | Fault]:
        end = offset + segment.length
        out: list[Chunk | Gap | Fault] = []
        if end <= self.next:
            if segment.length > 1 or end != self.next:  # else a keep-alive probe (RFC 9293, 3.8.4)
                self.retransmitted += segment.length
                out += self._compare(offset, segment)
            return out
        if offset < self.next:
            self.retransmitted += self.next - offset
            out += self._compare(offset, segment)
        out += self._keep(segment, offset)
        while self._waiting and self._waiting[0][0] <= self.next:
            piece = self._waiting.pop(0)
            self._waiting_bytes -= len(piece[2])
            out += self._deliver(piece)
        if self._waiting:
            out += self._declare(segment.packet, segment.timestamp_ns)
        return out

    def _keep(self, segment: Segment, offset: int) -> list[Fault]:
        """Put those bytes of ``segment`` that are new among the waiting ones, in order of offset."""
        faults: list[Fault] = []
        start, end, payload = max(offset, self.next), offset + segment.length, segment.payload
        fresh: list[Piece] = []
        for piece in self._waiting:
            there, after = piece[0], piece[0] + piece[1]
            if after <= start:
                continue
            if there >= end:
                break
            if there > start:
                fresh.append(
                    (
                        start,
                        there - start,
                        payload[start - offset : there - offset],
                        segment.packet,
                        segment.timestamp_ns,
                    )
                )
            low, high = max(start, there), min(end, after)
            self.retransmitted += high - low
            if not _agree(piece[2], low - there, payload, low - offset, high - low):
                faults.append(_different(segment.packet, low))
            start = max(start, after)
        if start < end:
            fresh.append(
                (start, end - start, payload[start - offset :], segment.packet, segment.timestamp_ns)
            )
        if fresh:
            self._waiting = sorted(self._waiting + fresh)
            self._waiting_bytes += sum(len(piece[2]) for piece in fresh)
        return faults

    def _compare(self, offset: int, segment: Segment) -> list[Fault]:
        """Hold bytes that came again against the last chunk, the only one still at hand."""
        last = self._last
        if last is None:
            return []
        low, high = max(offset, last.offset), min(offset + segment.length, last.offset + len(last.data))
        if low < high and not _agree(last.data, low - last.offset, segment.payload, low - offset, high - low):
            return [_different(segment.packet, low)]
        return []

    def _deliver(self, piece: Piece) -> list[Chunk | Gap]:
        offset, length, data, packet, timestamp_ns = piece
        if offset < self.next:
            length -= self.next - offset
            data = data[self.next - offset :]
            offset = self.next
        out: list[Chunk | Gap] = []
        if data:
            self._last = Chunk(offset, data, packet, timestamp_ns)
            self.next += len(data)
            out.append(self._last)
        if len(data) < length:
            out.append(self._gap(length - len(data), "cut off by the snap length", packet, timestamp_ns))
        self._impatience = 0
        return out

    def _declare(self, packet: int, timestamp_ns: int) -> list[Chunk | Gap]:
        """Give up the hole at ``next`` if it is time (rule 3)."""
        if self.acknowledged is None:
            if self._waiting_bytes > min(NO_ACKNOWLEDGEMENT_BYTES, self._limits.reorder_bytes):
                return self._give_up("not captured (the peer was not captured either)", packet, timestamp_ns)
            return []
        if self._waiting_bytes > self._limits.reorder_bytes:
            return self._give_up("more waits behind it than the limit", packet, timestamp_ns)
        hole_end = self._waiting[0][0] if self._waiting else self.acknowledged
        if self.acknowledged < hole_end or self._is_fin(hole_end):
            return []
        if not self._impatience:
            self._overdue_since = timestamp_ns
        self._impatience += 1
        if self._impatience > PATIENCE_SEGMENTS or timestamp_ns - self._overdue_since > PATIENCE_NS:
            return self._give_up("acknowledged by the peer, not captured", packet, timestamp_ns)
        return []

    def _is_fin(self, position: int) -> bool:
        """Whether the one unseen number before ``position`` can be that of a FIN."""
        return not self._waiting and position == self.next + 1

    def _give_up(self, reason: str, packet: int, timestamp_ns: int) -> list[Chunk | Gap]:
        if self._waiting:
            end = self._waiting[0][0]
        else:
            end = self.acknowledged or self.next
            if self.ended_at is not None:  # the number after the last byte is the FIN's own
                end = min(end, max(self.ended_at, self.next))
        self._impatience = 0
        out: list[Chunk | Gap] = []
        if end > self.next:
            out.append(self._gap(end - self.next, reason, packet, timestamp_ns))
        while self._waiting and self._waiting[0][0] <= self.next:
            piece = self._waiting.pop(0)
            self._waiting_bytes -= len(piece[2])
            out += self._deliver(piece)
        return out

    def _gap(self, length: int, reason: str, packet: int, timestamp_ns: int) -> Gap:
        gap = Gap(self.next, length, reason, packet, timestamp_ns)
        self.next += length
        self.gaps += 1
        self.gap_bytes += length
        return gap


def _agree(first: bytes, first_at: int, second: bytes, second_at: int, length: int) -> bool:
    """Whether two captured pieces have the same bytes, as far as both were captured."""
    length = min(length, len(first) - first_at, len(second) - second_at)
    return length <= 0 or first[first_at : first_at + length] == second[second_at : second_at + length]


def _different(packet: int, offset: int) -> Fault:
    return fault(
        "different-retransmission",
        "bytes sent again differ from the first copy, which counts",
        packet,
        offset,
    )
