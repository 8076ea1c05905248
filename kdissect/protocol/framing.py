"""Chunk | Gap of one direction → Frame: cuts at the int32 sizes, and finds the boundary again after a gap.

Rules

1. A stream whose first byte surely begins a frame is trusted until a size is impossible or a gap swallows a
   boundary. A size below zero or above ``Limits.frame_bytes`` is impossible.
2. A gap inside a frame costs that frame's bytes from the gap on, and no more: its size is known, so its end
   is. What was captured before the gap is the frame's payload. What was captured after it, up to the frame's
   end, is Skipped.
3. A lost boundary is searched for, never assumed. The witness (the session) says of each position whether a
   frame can begin there. Starts of segments are tried first, because Kafka's clients and brokers begin to
   write there. A wrong frame is worse than a missing one.
4. Every byte of the stream ends up in a Frame (with its 4-byte size), a Gap or a Skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from kdissect.faults import fault, new_tuple
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Chunk, Direction, Fault, Frame, Gap, Skipped
from kdissect.wording import plural

Event = Frame | Gap | Skipped | Fault

Witness = Callable[[bytes, int, bool], bool | None]
"""``(data, position, at_segment_start)``: whether a frame can begin at the position. None: more bytes are
needed to decide."""


PART_BYTES = 256
"""The cost of a captured piece beside its bytes: about the memory that its objects take."""
_PART_BYTES = PART_BYTES
_SHORT = 4_096
"""Up to this number of bytes, a copy is faster than a view."""


class Framer:
    """Cuts the frames of one direction."""

    __slots__ = (
        *("_cut_at", "_found_by_search", "_have", "_limits", "_most", "_parts"),
        *("_searching", "_size", "_skip", "direction"),
    )

    def __init__(self, direction: Direction, limits: Limits = DEFAULTS, trusted: bool = True) -> None:
        self.direction = direction
        self._limits = limits
        self._most = limits.frame_bytes
        self._parts: list[Chunk] = []
        """The captured pieces of the current frame (or of its size prefix); during a search, the pieces
        searched."""
        self._have = 0
        self._size = -1
        """The size that the current frame announces; -1 if unknown."""
        self._searching = not trusted
        self._skip = 0
        """The number of bytes still to skip, because they belong to a frame that a gap cut."""
        self._found_by_search = False
        self._cut_at = -1
        """The beginning of the first current piece, if its segment did not begin there."""

    def feed(self, piece: Chunk | Gap, witness: Witness) -> Sequence[Event]:
        """The frames that ``piece`` completes, and all bytes outside of frames."""
        if isinstance(piece, Gap):
            return self._feed_gap(piece, witness)
        out: list[Event] = []
        chunk = piece
        data = chunk.data
        if not (self._parts or self._skip or self._searching) and len(data) > 4:
            length = read_size_prefix(data, 0)
            if length == len(data) - 4 and length <= self._most:
                return [self._frame_in(chunk, 0, length)]
        if self._size >= 0 and not self._skip and self._have + len(data) < self._size + 4:
            self._parts.append(chunk)  # it is in the middle of a frame
            self._have += len(data)
            return out
        self._feed_chunk(chunk, witness, out)
        return out

    def frame_of(
        self, packet: int, timestamp_ns: int, offset: int, data: bytes, start: int, length: int
    ) -> Frame | None:
        """The frame, if the bytes of a segment are exactly one frame and no earlier frame is unfinished. The
        bytes begin in ``data`` at ``start``. If it returns None, the caller must feed them."""
        if self._parts or self._skip or self._searching or length <= 4:
            return None
        size = read_size_prefix(data, start)
        if size != length - 4 or size > self._most:
            return None
        raw = data
        frame = Frame.__new__(Frame)
        frame.direction, frame.offset, frame.size = self.direction, offset, size
        frame.payload = raw[start + 4 : start + length]
        frame.first_packet = frame.last_packet = packet
        frame.first_ns = frame.last_ns = timestamp_ns
        frame.packets = (packet,)
        frame.searched, self._found_by_search = self._found_by_search, False
        frame.fault = None
        return frame

    def span(
        self,
        packet: int,
        timestamp_ns: int,
        offset: int,
        data: bytes,
        start: int,
        length: int,
        packets: tuple[int, ...] = (),
    ) -> int:
        """Take bytes of a segment up to the end of the frame that they begin or continue. They begin in
        ``data`` at ``start``.

        :param packets: all packets with parts of the bytes, if there are several.
        :returns: the number of bytes taken. If 0, none were taken, because the frame's end is not certain;
            the caller must feed them.
        """
        if self._skip or self._searching or length <= 0:
            return 0
        taken, have = length, self._have
        if self._size < 0 and have + length >= 4:
            raw = data
            size = read_size_prefix(data, start) if have == 0 else -1
            if have > 0:
                size = read_size_prefix(self._peek(have) + raw[start : start + 4 - have], 0)
            if not 0 <= size <= self._most:
                return 0
            self._size = size
        if self._size >= 0 and taken > self._size + 4 - have:
            taken = self._size + 4 - have
        part = chunk_in(packet, timestamp_ns, offset, data, start, taken)
        part.packets = packets
        self._parts.append(part)
        self._have = have + taken
        return taken

    def spanned(self) -> Frame | None:
        """The frame whose bytes were taken; None while some are still missing."""
        if self._size < 0 or self._have < self._size + 4:
            return None
        return self._take_frame(self._size)

    def is_at_boundary(self) -> bool:
        """Whether the next byte surely begins a frame, as after every ordinary one."""
        return not (self._parts or self._searching or self._skip or self._found_by_search)

    def held_bytes(self) -> int:
        """The cost of the bytes of an incomplete frame."""
        return self._have + _PART_BYTES * len(self._parts) if self._parts else 0

    def give_up(self, reason: str) -> Sequence[Event]:
        """Drop the current bytes: the frame that they begin is cut, and its later bytes are skipped."""
        out: list[Event] = []
        if self._searching:
            self._drop(out, reason)
        elif self._size >= 0:
            self._skip = self._size + 4 - self._have
            self._cut(out, reason)
        return out

    def close(self, witness: Witness) -> list[Event]:
        """End the stream: the rest of a frame becomes a cut frame, or is skipped."""
        out: list[Event] = []
        if not self._parts:
            return out  # in nearly all cases
        if self._searching:
            self._search(witness, out, 0, True)
        if not self._searching and self._parts:
            self._cut(out, "the stream ends inside it")
        self._drop(out, "the stream ends before a frame was found in them")
        return out

    def _feed_chunk(self, chunk: Chunk, witness: Witness, out: list[Event]) -> None:
        if self._skip:
            taken = min(self._skip, len(chunk.data))
            self._skip -= taken
            out.append(Skipped(chunk.offset, taken, REST, chunk.packet))
            if taken == len(chunk.data):
                return
            chunk = _tail(chunk, taken)
        self._parts.append(chunk)
        self._have += len(chunk.data)
        if self._searching:
            self._search(witness, out)
        if not self._searching:
            self._cut_frames(witness, out)

    def _cut_frames(self, witness: Witness, out: list[Event]) -> None:
        """Cut every complete frame off the current pieces."""
        while True:
            if self._size < 0:
                if len(self._parts) == 1:
                    self._cut_whole_frames(out)
                if self._have < 4:
                    return
                size = read_size_prefix(self._peek(4), 0)
                if not 0 <= size <= self._most:
                    first = self._parts[0]
                    message = _bad_size_text(size, self._limits.frame_bytes)
                    out.append(fault("bad-size", message, first.packet, first.offset))
                    self._lose()
                    self._search(witness, out, 1)
                    if self._searching:
                        return
                    continue
                self._size = size
            if self._have < self._size + 4:
                return
            out.append(self._take_frame(self._size))

    def _cut_whole_frames(self, out: list[Event]) -> None:
        """Cut off the consecutive frames in the one current chunk. The remainder of the chunk is copied once,
        not after each frame."""
        chunk = self._parts[0]
        left, begin = len(chunk.data), 0
        while left >= 4:
            size = read_size_prefix(chunk.data, begin)
            if not 0 <= size <= self._most or size > left - 4:
                break
            out.append(self._frame_in(chunk, begin, size))
            begin += 4 + size
            left -= 4 + size
        if begin:
            self._parts = [_tail(chunk, begin)] if left else []
            self._have = left

    def _take_frame(self, size: int) -> Frame:
        parts, total = self._parts, size + 4
        used: list[Chunk] = []
        length = 0
        while length < total:
            part = parts[len(used)]
            used.append(part)
            length += len(part.data)
        left = length - total
        pieces: list[bytes | memoryview] = []
        for chunk in used:
            pieces.append(chunk.data)
        last = used[-1]
        if left:
            pieces[-1] = last.data[:-left]
        if len(pieces[0]) >= 4:
            # So that the rest is copied once; a view of many bytes is faster than a copy.
            pieces[0] = memoryview(pieces[0])[4:] if len(pieces[0]) > _SHORT else pieces[0][4:]
            payload = b"".join(pieces)
        else:
            payload = b"".join(pieces)[4:]
        if len(used) == len(parts):
            self._parts = parts = []
        else:
            del parts[: len(used)]
        if left:
            parts.insert(0, _tail(last, len(last.data) - left))
        self._have -= total
        self._size = -1
        return self._frame(used, payload, size)

    def _frame_in(self, chunk: Chunk, begin: int, size: int) -> Frame:
        """The frame of bytes within one chunk, as nearly all small frames are."""
        frame = Frame.__new__(Frame)
        frame.direction, frame.offset = self.direction, chunk.offset + begin
        raw = chunk.data
        frame.payload = raw[begin + 4 : begin + 4 + size]
        frame.size = size
        frame.first_packet = frame.last_packet = chunk.packet
        frame.first_ns = frame.last_ns = chunk.timestamp_ns
        frame.packets = chunk.packets or (chunk.packet,)
        frame.searched, self._found_by_search = self._found_by_search, False
        frame.fault = None
        return frame

    def _frame(self, used: list[Chunk], payload: bytes, size: int) -> Frame:
        first, completed = used[0], used[-1]
        packets: list[int] = []
        previous = -1
        for chunk in used:
            if chunk.packets or chunk.packet <= previous:
                packets, completed = _packets_of(used)
                break
            previous = chunk.packet
            packets.append(previous)
        # Set attribute by attribute: compiled, that is several times faster than one call with all values.
        frame = Frame.__new__(Frame)
        frame.direction, frame.offset, frame.payload, frame.size = self.direction, first.offset, payload, size
        frame.first_packet, frame.first_ns = first.packet, first.timestamp_ns
        frame.last_packet, frame.last_ns = completed.packet, completed.timestamp_ns
        frame.packets = tuple(packets)
        frame.searched, self._found_by_search = self._found_by_search, False
        frame.fault = None
        return frame

    def _feed_gap(self, gap: Gap, witness: Witness) -> list[Event]:
        out: list[Event] = []
        length = gap.length
        if not gap.is_exact and (self._skip or not self._searching):
            # The size is unknown, so the end of the frame is too.
            self._skip = 0
            if self._size < 0:
                self._drop(out, "they are the size of a frame that a gap cut")
            else:
                self._cut(out, "an unknown number of its bytes was not captured")
            self._lose()
        elif self._skip:
            inside = min(self._skip, length)
            self._skip -= inside
            length -= inside
            if length:
                self._lose()
        elif self._searching:
            self._search(witness, out, 0, True)
            if not self._searching:
                self._cut_frames(witness, out)
                return out + self._feed_gap(gap, witness)
            self._drop(out, "no frame was found in them before the next gap")
        elif self._size < 0:
            self._drop(out, "they are the size of a frame that a gap cut")
            self._lose()
        else:
            left = self._size + 4 - self._have - length
            self._cut(out, f"{plural(length, 'byte')} of it {'was' if length == 1 else 'were'} not captured")
            if left >= 0:
                self._skip = left
            else:
                self._lose()
        out.append(gap)
        return out

    def _cut(self, out: list[Event], reason: str) -> None:
        """Append the current frame with the bytes that were captured."""
        if self._size < 0:
            self._drop(out, "they are the size of a frame whose rest is missing")
            return
        parts, size = self._parts, self._size
        self._parts, self._have, self._size = [], 0, -1
        data = b"".join(chunk.data for chunk in parts)
        frame = self._frame(parts, data[4:], size)
        message = (
            f"a frame announces {plural(size, 'byte')}, but {len(frame.payload):,} were captured: {reason}"
        )
        frame.fault = fault("cut-frame", message, frame.last_packet, frame.offset)
        out.append(frame)

    def _lose(self) -> None:
        self._searching = True
        self._size = -1

    def _search(self, witness: Witness, out: list[Event], start: int = 0, at_end: bool = False) -> None:
        """Search for a frame in the current pieces; bytes before it are skipped."""
        data = self._peek(self._have)
        starts, at = [], 0
        for chunk in self._parts:
            if chunk.offset != self._cut_at:
                starts.append(at)
            at += len(chunk.data)
        undecided = None
        for position in starts:
            verdict = witness(data, position, True) if position >= start else False
            if verdict:
                self._found(position, out)
                return
            if verdict is None and undecided is None:
                undecided = position
        if undecided is not None and not at_end and self._have - undecided < self._limits.frame_bytes:
            self._forget(undecided, out)
            return
        last = len(data) - 4
        for position in range(start, last):
            if witness(data, position, False):
                self._found(position, out)
                return
        # The last bytes may begin a size prefix and a header: keep them for the next chunk.
        self._forget(max(0, self._have - SEARCH_OVERLAP), out)

    def _found(self, position: int, out: list[Event]) -> None:
        self._forget(position, out)
        self._searching = False
        self._found_by_search = True

    def _forget(self, count: int, out: list[Event]) -> None:
        """Skip the first ``count`` current bytes."""
        while count:
            first = self._parts[0]
            taken = min(count, len(first.data))
            out.append(
                Skipped(first.offset, taken, "it is unknown where the next frame begins", first.packet)
            )
            if taken < len(first.data):
                self._parts[0] = _tail(first, taken)
                self._cut_at = first.offset + taken
            else:
                del self._parts[0]
            self._have -= taken
            count -= taken

    def _drop(self, out: list[Event], reason: str) -> None:
        for chunk in self._parts:
            skipped = (chunk.offset, len(chunk.data), reason, chunk.packet)
            out.append(new_tuple(Skipped, skipped))  # which takes a fifth of the time of its own __new__
        self._parts, self._have, self._size = [], 0, -1

    def _peek(self, count: int) -> bytes:
        data = self._parts[0].data if self._parts else b""
        if len(data) >= count:
            return data[:count]
        return b"".join([chunk.data for chunk in self._parts])[:count]


@lru_cache(64)
def _bad_size_text(size: int, limit: int) -> str:
    """Cached: other protocols begin with the same bytes in each connection."""
    return f"a frame announces a size of {size:,} (limit {limit:,}): the boundary is lost"


def _packets_of(used: list[Chunk]) -> tuple[list[int], Chunk]:
    """The packets of the chunks, each once, and the chunk with the latest packet. A segment that fills a hole
    may be later than the last chunk: the frame is complete at the latest packet."""
    packets: dict[int, None] = {}
    completed = used[-1]
    for chunk in used:
        if chunk.packets:
            packets.update(dict.fromkeys(chunk.packets))
        else:
            packets[chunk.packet] = None
        if chunk.packet > completed.packet:
            completed = chunk
    return list(packets), completed


def chunk_in(packet: int, timestamp_ns: int, offset: int, data: bytes, start: int, length: int) -> Chunk:
    """The chunk of a segment's bytes in ``data``.

    :raises IndexError: ``data`` does not have them.
    """
    if start < 0 or length < 0 or start + length > len(data):
        raise IndexError(start)
    raw = data
    # Set attribute by attribute: compiled, that is several times faster than one call with all values.
    chunk = Chunk.__new__(Chunk)
    chunk.offset, chunk.packets = offset, ()
    # If all bytes are used, no copy is needed.
    chunk.data = data if length == len(data) else raw[start : start + length]
    chunk.packet, chunk.timestamp_ns = packet, timestamp_ns
    return chunk


def read_size_prefix(data: bytes, at: int) -> int:
    """Read the int32 at the beginning of a frame.

    :raises IndexError: fewer than four bytes are there.
    """
    if not 0 <= at <= len(data) - 4:
        raise IndexError(at)
    raw = data
    high = raw[at]
    if high > 0x7F:
        high -= 0x100
    return high * 0x100_0000 + (raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3])


REST = "they are the rest of a frame that a gap cut"
"""The reason for skipping bytes that are known to belong to a frame."""

SEARCH_OVERLAP = 64
"""The number of bytes kept during a search: a size, a request header and a client id fit in them."""


def _tail(chunk: Chunk, count: int) -> Chunk:
    return Chunk(chunk.offset + count, chunk.data[count:], chunk.packet, chunk.timestamp_ns, chunk.packets)
