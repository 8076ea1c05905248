"""Segments of one direction → its bytes in order, each once: Chunk, or Gap if bytes are missing.

Rules

1. Offsets count the direction's bytes from 0: the byte after the SYN, or the first known position if the
   capture began later. Sequence numbers wrap at 2**32; offsets do not. A number is placed by its signed
   32-bit distance from the next byte wanted (RFC 1982's serial arithmetic).
2. The first copy of a byte counts (Zeek, Suricata's BSD policy for equal offsets). A later copy with other
   contents is a Fault, if the first is still in memory.
3. A hole is proven once the peer has acknowledged past it: the peer had the bytes, and the capture lost them.
   Capture points reorder packets, so reassembly waits ``PATIENCE_SEGMENTS`` more segments of the connection,
   or ``PATIENCE_NS``, for the bytes. Without acknowledgements a hole becomes a gap only by
   ``Limits.reorder_bytes``, or at the end. If a hole is acknowledged in part, only that part is given up.
4. Bytes that the snap length cut off are a Gap at once, because they cannot come any more.
5. Chunks and gaps join without a seam: the offset of each is the end of the one before it.
6. A packet that several interfaces captured is a copy, not a retransmission, and is counted separately.
7. If the sender opened with several initial numbers, :mod:`kdissect.tcp.initials` decides which counts. A SYN
   with another number after the peer has acknowledged data does not count. Bytes at a number that the peer
   did not confirm do not count either.
8. A round trip begins when bytes are first captured in order, and ends with their acknowledgement. It is the
   time from the capture point to the receiver and back. One at a time is measured. Retransmitted bytes are
   never measured, because the acknowledged copy is unknown (Karn's rule). Late acknowledgements make a round
   trip longer, never shorter. So the smallest one is the best measure of the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import FIN, RST, SYN, Chunk, Fault, Gap, Segment
from kdissect.tcp.copies import COPY_NS, Copies, copies_of
from kdissect.tcp.initials import Initials, signed_distance
from kdissect.tcp.options import first_block
from kdissect.tcp.packed import BYTES, number, put
from kdissect.tcp.troubles import REORDERED_NS, Resent, Troubles
from kdissect.tcp.waiting import OutOfOrderBytes, Piece
from kdissect.wording import plural

PATIENCE_SEGMENTS = 8
"""Enough for the reordering by multi-queue cards and in ``any`` captures, which is a few packets."""
PATIENCE_NS = 1_000_000_000

FARTHEST_ACKNOWLEDGEMENT = 1 << 30
"""The largest window of TCP (RFC 7323). An acknowledgement farther ahead is damaged."""

NEAR = 16 << 20
"""The largest distance between the numbers of two segments of one stream that are captured soon after each
other. It is more than windows in use, and one in 128 of all numbers."""

REBASE_BYTES = 65_536
"""The largest distance of the first captured byte before a position that was only acknowledged."""

KEPT_BYTES = 1_460
"""The number of the last delivered bytes that are kept, to compare retransmissions with them. An ordinary
packet has as many; of larger ones, which offloading makes, the end is kept."""


FARTHEST_AHEAD = 64 << 20
"""The largest distance of a segment from all known bytes; more than any window in use. If a forged or damaged
segment farther ahead counted, all later segments would seem to be retransmissions."""

ROUND_TRIPS = 32
"""The number of round trips kept for a direction."""

_ROUND_TRIPS = ROUND_TRIPS
_BYTES = BYTES
_NUMBERS_BYTES = 31 * BYTES
"""The packed bytes of the numbers of a direction."""

NOWHERE = -(1 << 62)
"""The offset of a position that was not seen: before any other."""
_NOWHERE = NOWHERE
"""The same as a C number when compiled, which other modules cannot import."""

_LAST_NUMBER = 0xFFFF_FFFF
_HALF_WAY = 0x7FFF_FFFF
"""Half of the 32-bit sequence numbers. A named constant: compiled, such a large number in an expression would
be an object."""


class RoundTrips:
    """Round trips of a direction, fewer than :data:`ROUND_TRIPS`."""

    __slots__ = ("_count", "_kept")

    def __init__(self, values: Iterable[int] = ()) -> None:
        """:param values: round trips to add."""
        self._kept = [0] * 32
        """:data:`ROUND_TRIPS` places. Compiled they are C numbers: objects would take five times the memory
        in every connection."""
        self._count = 0
        """The number of places in use, from the first on."""
        for each in values:
            self.add(each)

    def __reduce__(self) -> tuple[Callable[[bytearray], RoundTrips], tuple[bytearray]]:
        return round_trips_of, (self.packed(),)

    def packed(self) -> bytearray:
        """All kept round trips, for :func:`round_trips_of`."""
        numbers = bytearray(_BYTES * self._count)
        raw, at = numbers, 0
        while at < self._count:
            put(raw, _BYTES * at, self._kept[at])
            at += 1
        return numbers

    def add(self, round_trip_ns: int) -> bool:
        """Add a round trip. Return True if there were too many, and every second one was dropped."""
        self._kept[self._count] = round_trip_ns
        self._count += 1
        if self._count < _ROUND_TRIPS:
            return False
        self._count = at = 0
        while at < _ROUND_TRIPS:
            self._kept[self._count] = self._kept[at]
            self._count += 1
            at += 2
        return True

    def values(self) -> list[int]:
        """All kept round trips."""
        return [self._kept[at] for at in range(self._count)]


class Reassembler:
    """Reassembles one direction. ``feed`` takes its segments, ``acknowledge`` the peer's."""

    __slots__ = (
        "_base",
        "_base_is_sure",
        "_copies",
        "_impatience",
        "_initial",
        "_initials",
        "_last_data",
        "_last_ns",
        "_last_offset",
        "_last_packet",
        "_last_size",
        "_last_start",
        "_limits",
        "_overdue_since",
        "_passed",
        "_stray_end",
        "_stride",
        "_timed_end",
        "_timed_ns",
        "_waiting",
        "_zero_since_ns",
        "acknowledged",
        "clock",
        "clock_ns",
        "copied",
        "ended_at",
        "gap_bytes",
        "gaps",
        "kept",
        "next",
        "opened",
        "path_ns",
        "retransmitted",
        "round_trip_ns",
        "round_trips",
        "syn_acknowledged_ns",
        "syn_ns",
        "syn_options",
        "troubles",
        "unmeasured_ms",
        "window",
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._limits = limits
        self._base = -1
        """The number of the byte at offset 0; -1 while unknown."""
        self._base_is_sure = False
        self._initial: int | None = None
        """The number of the first byte, if the SYN was seen."""
        self._initials: Initials | None = None
        """The possible initial numbers, if there are several and the peer has not acknowledged data."""
        self._waiting: OutOfOrderBytes | None = None
        """The waiting bytes; made on demand, because most directions of most connections never need it."""
        self._copies: Copies | None = None
        self._last_data: bytes | None = None
        """Contains the bytes delivered last; None without any."""
        self._last_start = self._last_size = 0
        """Their position in it, and their number."""
        self._last_offset = self._last_packet = self._last_ns = 0
        self._stray_end: int | None = None
        """The end of the last segment that was too far ahead."""
        self._impatience = 0
        self._overdue_since = 0
        self._timed_end = -1
        """The end of the bytes whose acknowledgement is timed; -1 without any."""
        self._timed_ns = 0
        """The time at which they were captured."""
        self.next = 0
        """The offset of the next byte wanted: the length of the stream so far."""
        self.acknowledged = _NOWHERE
        """The offset up to which the peer has acknowledged; :data:`NOWHERE` before the first
        acknowledgement."""
        self.opened = False
        """Whether the stream was seen from its SYN."""
        self.ended_at = _NOWHERE
        """The offset of the FIN; :data:`NOWHERE` without one so far."""
        self.retransmitted = 0
        """The number of retransmitted bytes."""
        self.copied = 0
        """The number of bytes captured again, at another interface."""
        self.kept = False
        """Whether new bytes of the segment fed last wait behind a hole."""
        self.gaps = 0
        self.gap_bytes = 0
        self.round_trip_ns = -1
        """The smallest round trip so far between the capture point and the receiver; -1 if unknown."""
        self.path_ns = -1
        """The smallest round trip whose acknowledgement did not wait for the receiver's data: of the
        handshake, or without bytes."""
        self.round_trips: RoundTrips | None = None
        """Some of these round trips, spread evenly over all."""
        self._stride = 1
        """One in this number is kept."""
        self._passed = 0
        """The number left out since the last kept one."""
        self.syn_ns = -1
        """The round trip of the SYN."""
        self.syn_acknowledged_ns = -1
        """The time at which the SYN was acknowledged first."""
        self.syn_options: bytes | None = None
        """The options of the SYN."""
        self.window = -1
        """The largest window that the sender offered, not scaled; -1 if no window was seen."""
        self._zero_since_ns = -1
        """The time since which its window is closed; -1 if it is open."""
        self.troubles: Troubles | None = None
        """The direction's troubles; None without any."""
        self.clock = 0
        """The sender's own clock at ``clock_ns``."""
        self.clock_ns = -1
        """The time of its last reading; -1 if unknown."""
        self.unmeasured_ms = 0
        """Later pauses whose length by that clock is unknown."""

    def parts(self) -> tuple[Any, ...]:
        """All its values, for :func:`reassembler_of`."""
        copies, round_trips = self._copies, self.round_trips
        numbers = bytearray(_NUMBERS_BYTES)
        raw = numbers
        put(raw, 0, self._base)
        put(raw, 8, self._base_is_sure)
        put(raw, 16, self._impatience)
        put(raw, 24, self._last_ns)
        put(raw, 32, self._last_offset)
        put(raw, 40, self._last_packet)
        put(raw, 48, self._last_size)
        put(raw, 56, self._last_start)
        put(raw, 64, self._overdue_since)
        put(raw, 72, self._passed)
        put(raw, 80, self._stride)
        put(raw, 88, self._timed_end)
        put(raw, 96, self._timed_ns)
        put(raw, 104, self._zero_since_ns)
        put(raw, 112, self.acknowledged)
        put(raw, 120, self.clock)
        put(raw, 128, self.clock_ns)
        put(raw, 136, self.copied)
        put(raw, 144, self.ended_at)
        put(raw, 152, self.gap_bytes)
        put(raw, 160, self.gaps)
        put(raw, 168, self.kept)
        put(raw, 176, self.next)
        put(raw, 184, self.opened)
        put(raw, 192, self.path_ns)
        put(raw, 200, self.retransmitted)
        put(raw, 208, self.round_trip_ns)
        put(raw, 216, self.syn_acknowledged_ns)
        put(raw, 224, self.syn_ns)
        put(raw, 232, self.unmeasured_ms)
        put(raw, 240, self.window)
        return (
            numbers,
            None if copies is None else copies.packed(),
            None if round_trips is None else round_trips.packed(),
            self._initial, self._initials, self._last_data, self._limits, self._stray_end, self._waiting,
            self.syn_options, self.troubles,
        )  # fmt: skip

    @property
    def done(self) -> bool:
        """Whether the FIN and everything before it were seen."""
        return self.ended_at != _NOWHERE and self.next >= self.ended_at

    @property
    def is_waiting(self) -> bool:
        """Whether bytes wait behind a hole."""
        return bool(self._waiting)

    @property
    def held_bytes(self) -> int:
        """The cost of the bytes behind holes, as the limits count it."""
        return self._waiting.cost if self._waiting is not None else 0

    def waiting_packets(self) -> set[int]:
        """The packets whose bytes wait."""
        return self._waiting.packets() if self._waiting is not None else set()

    def offset_of(self, seq: int) -> int:
        """The offset of a sequence number; the base must be known."""
        return self._place(seq)

    def initial(self, seq: int) -> bool:
        """Whether a SYN with this number opens the current stream."""
        return self._initial == (seq + 1) & 0xFFFFFFFF

    def confirms(self, ack: int) -> bool:
        """Whether a number acknowledges the SYN that opened this stream, and any bytes sent with it."""
        return self._initial is not None and 0 <= signed_distance(ack, self._initial) <= self.next

    def is_next(self, seq: int) -> bool:
        """Whether a sequence number is the next byte's, in a stream that was seen from its SYN."""
        return self.opened and self._place(seq) == self.next

    @property
    def is_base_final(self) -> bool:
        """Whether the peer has acknowledged data, so that no other initial number can count any more."""
        return self.acknowledged > 0

    def is_near(self, seq: int) -> bool | None:
        """Whether a sequence or acknowledgement number is near the stream's position; None if the position is
        unknown."""
        return None if self._base < 0 else abs(self._place(seq) - self.next) <= NEAR

    def feed(self, segment: Segment) -> Sequence[Chunk | Gap | Fault]:
        """The bytes that ``segment`` makes available, in order."""
        seq, flags, payload, length = segment.seq, segment.flags, segment.payload, segment.length
        self.kept = False
        if (
            self._base_is_sure
            and length
            and not self._waiting
            and self.ended_at == _NOWHERE
            and not flags & (SYN | FIN)
            and len(payload) == length
            and self._place(seq) == self.next
        ):  # nearly all segments with bytes: the next ones
            chunk = Chunk.__new__(Chunk)
            chunk.offset, chunk.data, chunk.packets = self.next, payload, ()
            chunk.packet, chunk.timestamp_ns = segment.packet, segment.timestamp_ns
            self.append(segment.packet, segment.timestamp_ns, segment.identity, payload, 0, length)
            return [chunk]
        packet, timestamp_ns, identity = segment.packet, segment.timestamp_ns, segment.identity
        if flags & SYN or self._initials is not None:
            known = self._begin(segment)
            if known is not None:
                return known
            if flags & SYN:
                seq = (seq + 1) & _LAST_NUMBER
        if self._base < 0:
            if segment.flags & RST and not segment.length:
                return ()  # the numbers of a reset are often made up
            self._base, self._base_is_sure = seq, bool(segment.length)
        offset = self._place(seq)
        if self.ended_at != _NOWHERE and segment.length and offset + segment.length > self.ended_at:
            self.ended_at = _NOWHERE  # more data follow, so it was no FIN
        if segment.flags & FIN and offset - self._known_end() <= FARTHEST_AHEAD:
            self.ended_at = offset + segment.length
        if not segment.length:
            return self._declare(segment.packet, segment.timestamp_ns) if self._waiting else ()
        if not self._base_is_sure:
            self._set_base(segment, offset)
            offset = self._place(seq)
        piece = Piece(offset, length, payload, packet, timestamp_ns)
        if offset == self.next and not self._waiting:
            self._remember(identity, timestamp_ns)
            out = self._deliver(piece)
            if self._timed_end < 0:
                self._begin_timing(timestamp_ns)
            return out
        return self._feed_slow(piece, identity)

    def is_even(self) -> bool:
        """Whether nothing is in doubt, and nothing waits."""
        if not self._base_is_sure or self._initials is not None:
            return False
        return self._waiting is None or not self._waiting

    def has_all(self) -> bool:
        """Whether nothing waits, and nothing is known to be missing."""
        if self._waiting is not None and self._waiting:
            return False
        # One number more than the bytes may be the FIN's; its segment may be the lost one.
        return self.acknowledged <= self.next + 1 and self.ended_at <= self.next

    def append(
        self, packet: int, timestamp_ns: int, identity: int, data: bytes, start: int, length: int
    ) -> None:
        """Take the next bytes, which are in ``data``; the stream must be even."""
        if self._copies is None:
            self._copies = Copies()
        self._copies.remember(identity, timestamp_ns)
        self._keep(packet, timestamp_ns, self.next, data, start, length)
        self.next += length
        self._impatience = 0
        if self._timed_end < 0:
            self._begin_timing(timestamp_ns)

    def _keep(
        self, packet: int, timestamp_ns: int, offset: int, data: bytes, start: int, length: int
    ) -> None:
        """Keep the end of these bytes for comparisons."""
        before = length - KEPT_BYTES
        if before > 0:
            raw = data
            data, start, length = raw[start + before : start + length], 0, KEPT_BYTES
            offset += before
        self._last_data, self._last_start, self._last_size = data, start, length
        self._last_offset, self._last_packet, self._last_ns = offset, packet, timestamp_ns

    def drop_kept_bytes(self) -> None:
        """Drop the kept bytes, because hardly any more segments come."""
        if self._last_data is not None:
            self._last_data, self._last_start, self._last_size = b"", 0, 0

    def acknowledge(
        self, ack: int, packet: int, timestamp_ns: int, is_bare: bool = True
    ) -> Sequence[Chunk | Gap | Fault]:
        """Take an acknowledgement: the peer has everything before ``ack``. Return the pieces behind a hole,
        if it is now proven.

        :param is_bare: whether it came without bytes, and so was not delayed by data.
        """
        if self._base < 0:
            self._base, self.acknowledged = ack, 0
            return ()
        freed: Sequence[Chunk | Gap | Fault] = ()
        if self._initials is not None:
            freed = self._confirm(ack, packet)
        offset = self._place(ack)
        is_possible = offset - self.next <= FARTHEST_ACKNOWLEDGEMENT
        if not is_possible or (offset < 0 and self.opened and not self.is_base_final):
            if self.opened and not self.is_base_final and not self.next:
                self._take_ack(ack)
            return freed
        if self.acknowledged == _NOWHERE:
            before = offset - 1
            self.syn_acknowledged_ns = timestamp_ns
        else:
            before = self.acknowledged
        if offset > before:
            self.acknowledged = before = offset
            if self.troubles is not None:
                self.troubles.take_ack(timestamp_ns)
            if offset > 0:
                self._initials = None
        if 0 <= self._timed_end <= offset:
            if 0 <= self._timed_ns <= timestamp_ns:
                round_trip_ns = timestamp_ns - self._timed_ns
                if round_trip_ns < self.round_trip_ns or self.round_trip_ns < 0:
                    self.round_trip_ns = round_trip_ns
                if is_bare or self._timed_end == 0:
                    self._note_round_trip(round_trip_ns)
                elif round_trip_ns < self.path_ns:
                    self.path_ns = round_trip_ns  # all bare ones may have been delayed, by 40 ms and more
            self._timed_end = -1
        if before > self.next and (before > self.next + 1 or self._waiting):  # one number more may be the FIN
            freed = [*freed, *self._declare(packet, timestamp_ns)]
        return freed

    def close(self, packet: int, timestamp_ns: int) -> Sequence[Chunk | Gap | Fault]:
        """End the stream: every hole becomes a gap."""
        out = self.give_up("not captured", packet, timestamp_ns)
        if not self.has_all():
            known = max(0, self.acknowledged, self.ended_at)
            ends = self.ended_at not in (_NOWHERE, 0)
            length = (min(known, self.ended_at) if ends else known) - self.next
            if length > 0:  # the peer may acknowledge numbers after the FIN
                out.append(self._gap(length, "not captured", packet, timestamp_ns))
        return out

    def give_up(self, reason: str, packet: int, timestamp_ns: int) -> list[Chunk | Gap | Fault]:
        """Stop waiting for the missing bytes before the waiting ones."""
        out: list[Chunk | Gap | Fault] = []
        while self._waiting:
            out += self._give_up(self._waiting.first_offset, reason, packet, timestamp_ns)
        return out

    def _begin(self, segment: Segment) -> Sequence[Chunk | Gap | Fault] | None:
        """Take a SYN, or a segment while the beginning of the stream is in doubt (rule 7). Return None if the
        segment belongs to the stream as now known."""
        seq, is_syn = segment.seq, segment.flags & SYN != 0
        if is_syn:
            seq = (seq + 1) & _LAST_NUMBER
            if self._base < 0 or (not self._base_is_sure and abs(self._place(seq)) <= NEAR):
                self._base, self._base_is_sure, self.acknowledged = seq, True, _NOWHERE
                self._initial, self.opened = seq, True
                self.syn_options = segment.options
                self._timed_end, self._timed_ns = 0, segment.timestamp_ns
                return None
            if seq == (self._base if self._initial is None else self._initial):
                if segment.timestamp_ns - self._timed_ns > COPY_NS:
                    self._timed_end = -1  # a retransmission: the acknowledged copy is unknown
                if self._initials is not None:
                    self._initials.add(seq)  # retransmitted, it is the newest
                    self.opened = True
                return None
            if not self.is_base_final and not (self._base_is_sure and not self.opened):
                if self._initials is None:
                    self._initials = Initials(self._initial)
                self._initials.add(seq)
                if not self._base_is_sure and self._base >= 0:
                    self._initials.add_acknowledged(self._base)
                if not self._base_is_sure or (self.acknowledged == _NOWHERE and not self.next):
                    return [*self._adopt(seq, segment.packet), *self.feed(segment)]
        elif not segment.length and not segment.flags & FIN:
            return None
        else:
            assert self._initials is not None
            assert self._initial is not None
            wanted = (self._base + self.next) & 0xFFFFFFFF
            best = self._initials.continued_by(seq, self._initial, wanted)
            if best == self._initial:
                return None
            if self.acknowledged == _NOWHERE or self._initials.is_only_acknowledged(best):
                return [*self._adopt(best, segment.packet), *self.feed(segment)]
        if not segment.length:
            return ()
        message = (
            f"kdissect left out {plural(segment.length, 'byte')}: the other end did not confirm their "
            "initial sequence number"
        )
        return [fault("out-of-window", message, segment.packet, self.next)]

    def _adopt(self, initial: int, packet: int) -> list[Chunk | Gap | Fault]:
        """Set the number at which the stream begins. If bytes were already given, the stream continues at
        it."""
        self._base = (initial - self.next) & 0xFFFFFFFF
        self._base_is_sure, self._initial = True, initial
        self._timed_end = -1  # the acknowledged SYN is unknown
        self.opened = self._initials is not None and not self._initials.is_only_acknowledged(initial)
        self.acknowledged = self.ended_at = _NOWHERE
        if not self._waiting:
            return []
        waited = self._waiting.length
        self._waiting = None
        message = (
            f"kdissect left out {plural(waited, 'byte')} that waited: the other end did not confirm the "
            "initial sequence number before them"
        )
        return [fault("out-of-window", message, packet, self.next)]

    def _confirm(self, ack: int, packet: int) -> list[Chunk | Gap | Fault]:
        """Use the initial number that the peer acknowledges."""
        assert self._initials is not None
        if self.next and 0 < self._place(ack) <= self.next:
            return []
        initial = self._initials.confirmed_by(ack, FARTHEST_ACKNOWLEDGEMENT)
        return [] if initial in (None, self._initial) else self._adopt(initial, packet)

    def _take_ack(self, ack: int) -> None:
        if self._initials is None:
            self._initials = Initials(self._initial)
        self._initials.add_acknowledged(ack)

    def _begin_timing(self, timestamp_ns: int) -> None:
        """Time the bytes before ``next``, which were captured now. They are not timed if they are already
        acknowledged, because the capture reordered the two."""
        if self.next > self.acknowledged:
            self._timed_end, self._timed_ns = self.next, timestamp_ns

    def _note_round_trip(self, round_trip_ns: int) -> None:
        if self._timed_end == 0:
            self.syn_ns = round_trip_ns
        if round_trip_ns < self.path_ns or self.path_ns < 0:
            self.path_ns = self.round_trip_ns  # an answer may have come sooner than this bare one
        self._passed += 1
        if self._passed < self._stride:
            return
        self._passed = 0
        if self.round_trips is None:
            self.round_trips = RoundTrips()
        if self.round_trips.add(round_trip_ns):
            self._stride *= 2

    def _note_resent(self, piece: Piece, due_ns: int) -> None:
        if self.troubles is None:
            self.troubles = Troubles()
        gap_ns = max(0, piece.timestamp_ns - due_ns)
        self.troubles.resent(Resent(piece.offset, piece.end, piece.packet, piece.timestamp_ns, gap_ns))

    def take_sack(self, options: bytes, ack: int) -> None:
        """Read the options of the peer's acknowledgement, which may show that it had some bytes before (RFC
        2883)."""
        block = first_block(options) if self.troubles is not None and self._base >= 0 else None
        if block is not None and self.troubles is not None and self._place(block[1]) <= self._place(ack):
            self.troubles.duplicate(self._place(block[0]), self._place(block[1]))

    def offer(self, window: int, timestamp_ns: int) -> None:
        """Take a window of 0 from the sender, or the window after it."""
        if self.troubles is None:
            self.troubles = Troubles()
        if window == 0:
            if self._zero_since_ns < 0 <= timestamp_ns:
                self.troubles.zeros += 1
                self._zero_since_ns = timestamp_ns
        elif window > 0:
            self.troubles.add_zero_window(self.shut_ns(timestamp_ns))
            self._zero_since_ns = -1

    def shut_ns(self, now_ns: int) -> int:
        """The time since the sender's window was closed; 0 if it is open."""
        return 0 if self._zero_since_ns < 0 else max(0, int(now_ns) - int(self._zero_since_ns))

    def _place(self, seq: int) -> int:
        distance = (seq - self._base - self.next) & _LAST_NUMBER
        return self.next + (distance - _LAST_NUMBER - 1 if distance > _HALF_WAY else distance)

    def _set_base(self, segment: Segment, offset: int) -> None:
        """Set the base with the first captured bytes. Before any data it came only from an acknowledgement;
        bytes just before it move it back."""
        if offset == -1 and segment.length == 1:
            return  # a keep-alive probe shows nothing about data
        if -REBASE_BYTES <= offset < 0:
            self._base = segment.seq
            if self.acknowledged != _NOWHERE:
                self.acknowledged -= offset
        self._base_is_sure = True

    def _feed_slow(self, piece: Piece, identity: int) -> Sequence[Chunk | Gap | Fault]:
        out: list[Chunk | Gap | Fault] = []
        is_copy = self._copies is not None and self._copies.has(identity, piece.timestamp_ns)
        if piece.offset < 0 and (piece.length > 1 or piece.end != self.next):
            # They may have been sent before, or are late. They were not seen before, and the stream has
            # already begun.
            before = plural(min(0, piece.end) - piece.offset, "byte")
            message = f"kdissect left out {before} before the first byte that was captured in time"
            out.append(fault("out-of-window", message, piece.packet, 0))
            if piece.end <= 0:
                return out
            piece = piece.part(0, piece.end)
        if piece.end <= self.next:
            if piece.length > 1 or piece.end != self.next:  # otherwise a keep-alive probe (RFC 9293, 3.8.4)
                self._count_again(piece.length, is_copy)
                if not is_copy and piece.end > self.acknowledged:
                    last_ns = piece.timestamp_ns if self._last_data is None else self._last_ns
                    self._note_resent(piece, last_ns)
                self._compare(piece, out)
            return out
        if self._is_stray(piece):
            ahead = piece.offset - self.next
            message = (
                f"kdissect left out {plural(piece.length, 'byte')} that were {plural(ahead, 'byte')} ahead"
            )
            return [fault("out-of-window", message, piece.packet, piece.offset)]
        if piece.offset < self.next:
            self._count_again(self.next - piece.offset, is_copy)
            self._compare(piece, out)
            piece = piece.part(self.next, piece.end)
        if self._waiting is None:
            self._waiting = OutOfOrderBytes()
        if self._waiting and piece.offset < self._waiting.end and not is_copy:
            since_ns = self._waiting.since_ns
            if piece.timestamp_ns - since_ns >= REORDERED_NS:
                self._note_resent(piece, since_ns)
        cost = self._waiting.cost
        again, agree = self._waiting.add(piece)
        self.kept = self._waiting.cost > cost and piece.offset > self.next
        self._count_again(again, is_copy)
        if not agree:
            out.append(_different(piece.packet, piece.offset))
        if again < piece.length:
            self._remember(identity, piece.timestamp_ns)
        for ready in self._waiting.take(self.next):
            out += self._deliver(ready)
        if self._waiting:
            out += self._declare(piece.packet, piece.timestamp_ns)
        return out

    def _remember(self, identity: int, timestamp_ns: int) -> None:
        if self._copies is None:
            self._copies = Copies()
        self._copies.remember(identity, timestamp_ns)

    def _count_again(self, length: int, is_copy: bool) -> None:
        if is_copy:
            self.copied += length
        else:
            self.retransmitted += length

    def _is_stray(self, piece: Piece) -> bool:
        """Whether a segment is too far away to belong to the stream. The peer's acknowledgements show the
        stream's position. If the peer was not captured, a second segment that joins the first shows it."""
        if piece.offset - self._known_end() <= FARTHEST_AHEAD:
            return False
        joins = self.acknowledged == _NOWHERE and self._stray_end == piece.offset
        self._stray_end = piece.end
        return not joins

    def _known_end(self) -> int:
        """The offset up to which bytes were seen or acknowledged."""
        return max(self.next, self.acknowledged, self._waiting.end if self._waiting else 0)

    def _compare(self, piece: Piece, out: list[Chunk | Gap | Fault]) -> None:
        """Compare retransmitted bytes with the last delivered ones, which are the only ones still kept."""
        if self._last_data is None:
            return
        offset, size = self._last_offset, self._last_size
        data = self._last_data[self._last_start : self._last_start + size]
        if not Piece(offset, size, data, self._last_packet, self._last_ns).agrees_with(piece):
            out.append(_different(piece.packet, max(piece.offset, offset)))

    def _deliver(self, piece: Piece) -> list[Chunk | Gap | Fault]:
        if piece.offset < self.next:
            piece = piece.part(self.next, piece.end)
        out: list[Chunk | Gap | Fault] = []
        if piece.data:
            self._keep(piece.packet, piece.timestamp_ns, piece.offset, piece.data, 0, len(piece.data))
            self.next += len(piece.data)
            out.append(Chunk(piece.offset, piece.data, piece.packet, piece.timestamp_ns))
        if len(piece.data) < piece.length:
            cut = piece.length - len(piece.data)
            out.append(self._gap(cut, "cut off by the snap length", piece.packet, piece.timestamp_ns))
        self._impatience = 0
        return out

    def _declare(self, packet: int, timestamp_ns: int) -> list[Chunk | Gap | Fault]:
        """Give up the hole at ``next``, or its proven part, if it is time (rule 3)."""
        limit = self._limits.reorder_bytes
        waiting = self._waiting
        if self.acknowledged == _NOWHERE:
            limit = min(self._limits.reorder_one_sided_bytes, limit)
            if not waiting or waiting.cost <= limit:
                return []
            reason = "not captured (the peer was not captured either)"
            return self._relieve(waiting, limit, reason, packet, timestamp_ns)
        if waiting and waiting.cost > limit:
            message = (
                f"more than {limit:,} bytes wait behind a gap that nobody acknowledged; kdissect gave it up"
            )
            known = fault("buffer-limit", message, packet, self.next)
            reason = "more bytes wait after it than the limit allows"
            return [known, *self._relieve(waiting, limit, reason, packet, timestamp_ns)]
        end = min(self.acknowledged, waiting.first_offset) if waiting else self.acknowledged
        if end <= self.next or self._is_fin(end):
            return []
        if not self._impatience:
            self._overdue_since = timestamp_ns
        self._impatience += 1
        if self._impatience > PATIENCE_SEGMENTS or timestamp_ns - self._overdue_since > PATIENCE_NS:
            return self._give_up(end, "acknowledged by the peer, but not captured", packet, timestamp_ns)
        return []

    def _is_fin(self, position: int) -> bool:
        """Whether the one unseen number before ``position`` can be a FIN's."""
        return not self._waiting and position == self.next + 1

    def _relieve(
        self, waiting: OutOfOrderBytes, limit: int, reason: str, packet: int, timestamp_ns: int
    ) -> list[Chunk | Gap | Fault]:
        """Give up holes until at most ``limit`` bytes wait. One segment that overlaps many may add a lot."""
        out: list[Chunk | Gap | Fault] = []
        while waiting.cost > limit:
            out += self._give_up(waiting.first_offset, reason, packet, timestamp_ns)
        return out

    def _give_up(self, end: int, reason: str, packet: int, timestamp_ns: int) -> list[Chunk | Gap | Fault]:
        if not self._waiting and self.ended_at != _NOWHERE:  # the number after the last byte is the FIN's
            end = min(end, max(self.ended_at, self.next))
        self._impatience = 0
        out: list[Chunk | Gap | Fault] = []
        if end > self.next:
            out.append(self._gap(end - self.next, reason, packet, timestamp_ns))
        if self._waiting:
            for ready in self._waiting.take(self.next):
                out += self._deliver(ready)
        return out

    def _gap(self, length: int, reason: str, packet: int, timestamp_ns: int) -> Gap:
        gap = Gap(self.next, length, reason, packet, timestamp_ns)
        self.next += length
        self.gaps += 1
        self.gap_bytes += length
        return gap


def _different(packet: int, offset: int) -> Fault:
    return fault(
        "different-retransmission",
        "bytes were sent again and differ from the first copy; kdissect uses the first copy",
        packet,
        offset,
    )


def reassembler_of(parts: tuple[Any, ...]) -> Reassembler:
    """The reassembler with these :meth:`~Reassembler.parts`."""
    made = Reassembler.__new__(Reassembler)
    (
        numbers, copies, round_trips,
        made._initial, made._initials, made._last_data, made._limits, made._stray_end, made._waiting,
        made.syn_options, made.troubles,
    ) = parts  # fmt: skip
    raw = numbers
    made._base = number(raw, 0)
    made._base_is_sure = number(raw, 8) != 0
    made._impatience = number(raw, 16)
    made._last_ns = number(raw, 24)
    made._last_offset = number(raw, 32)
    made._last_packet = number(raw, 40)
    made._last_size = number(raw, 48)
    made._last_start = number(raw, 56)
    made._overdue_since = number(raw, 64)
    made._passed = number(raw, 72)
    made._stride = number(raw, 80)
    made._timed_end = number(raw, 88)
    made._timed_ns = number(raw, 96)
    made._zero_since_ns = number(raw, 104)
    made.acknowledged = number(raw, 112)
    made.clock = number(raw, 120)
    made.clock_ns = number(raw, 128)
    made.copied = number(raw, 136)
    made.ended_at = number(raw, 144)
    made.gap_bytes = number(raw, 152)
    made.gaps = number(raw, 160)
    made.kept = number(raw, 168) != 0
    made.next = number(raw, 176)
    made.opened = number(raw, 184) != 0
    made.path_ns = number(raw, 192)
    made.retransmitted = number(raw, 200)
    made.round_trip_ns = number(raw, 208)
    made.syn_acknowledged_ns = number(raw, 216)
    made.syn_ns = number(raw, 224)
    made.unmeasured_ms = number(raw, 232)
    made.window = number(raw, 240)
    made._copies = None if copies is None else copies_of(copies)
    made.round_trips = None if round_trips is None else round_trips_of(round_trips)
    return made


def round_trips_of(numbers: bytearray) -> RoundTrips:
    """The object with these :meth:`~RoundTrips.packed` values."""
    made = RoundTrips()
    raw, count, at = numbers, len(numbers) // _BYTES, 0
    while at < count:
        made._kept[at] = number(raw, _BYTES * at)
        at += 1
    made._count = count
    return made
