"""Chunk | Gap of one direction → Frame: cut at the int32 sizes, and find the boundary again after a gap.

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

from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Chunk, Direction, Fault, Frame, Gap, Skipped
from kdissect.wording import plural

Event = Frame | Gap | Skipped | Fault

Witness = Callable[[bytes, int, bool], bool | None]
"""``(data, position, at_segment_start)``: can a frame begin there? None: more bytes are needed to tell."""


PART_BYTES = 256
"""What a captured piece costs beside its bytes: about what its objects take."""
_PART_BYTES = PART_BYTES
_SHORT = 4_096
"""So many bytes are copied in less time than a view of them takes to make."""


class Framer:
    """The machine of one direction."""

    __slots__ = (
        *("_cut_at", "_found_by_search", "_have", "_limits", "_most", "_parts"),
        *("_searching", "_size", "_skip", "direction"),
    )

    def __init__(self, direction: Direction, limits: Limits = DEFAULTS, trusted: bool = True) -> None:
        self.direction = direction
        self._limits = limits
        self._most = limits.frame_bytes
        self._parts: list[Chunk] = []
        """Captured pieces of the frame (or of its size prefix) at hand; while searching, of the search."""
        self._have = 0
        self._size = -1
        """What it announces; -1 while that is not known."""
        self._searching = not trusted
        self._skip = 0
        """Bytes still to be skipped, because they belong to a frame that a gap cut."""
        self._found_by_search = False
        self._cut_at = -1
        """Where the first piece at hand begins, if that is not where its segment began."""

    def feed(self, piece: Chunk | Gap, witness: Witness) -> Sequence[Event]:
        """The frames that ``piece`` completes, and everything that is in none."""
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
            self._parts.append(chunk)  # it lies in the midst of a frame
            self._have += len(data)
            return out
        self._feed_chunk(chunk, witness, out)
        return out

    def frame_of(
        self, packet: int, timestamp_ns: int, offset: int, data: bytes, start: int, length: int
    ) -> Frame | None:
        """The frame that the bytes of a segment are, if they are one frame from first to last and no earlier
        frame is unfinished. Else None; then the caller must feed them. They begin in ``data`` at
        ``start``.
        """
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

    def span(self, packet: int, timestamp_ns: int, offset: int, data: bytes, start: int, length: int) -> int:
        """Take bytes of a segment up to the end of the frame that they begin or go on with. They begin in
        ``data`` at ``start``.

        :returns: how many were taken. 0 if none were, and they are to be fed: it is not sure where the frame
            ends.
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
        self._parts.append(chunk_in(packet, timestamp_ns, offset, data, start, taken))
        self._have = have + taken
        return taken

    def spanned(self) -> Frame | None:
        """The frame whose bytes were taken. None while some are yet to come."""
        if self._size < 0 or self._have < self._size + 4:
            return None
        return self._take_frame(self._size)

    def held_bytes(self) -> int:
        """What the bytes of a frame cost whose others are yet to come."""
        return self._have + _PART_BYTES * len(self._parts) if self._parts else 0

    def give_up(self, reason: str) -> Sequence[Event]:
        """Keep none of the bytes at hand: the frame that they begin is cut, and its others are skipped."""
        out: list[Event] = []
        if self._searching:
            self._drop(out, reason)
        elif self._size >= 0:
            self._skip = self._size + 4 - self._have
            self._cut(out, reason)
        return out

    def close(self, witness: Witness) -> Sequence[Event]:
        """The stream is over: what is left of a frame is a cut frame, or skipped."""
        out: list[Event] = []
        if self._searching:
            self._search(witness, out, at_end=True)
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
        """Cut every complete frame off the parts."""
        while True:
            if self._size < 0:
                if len(self._parts) == 1:
                    self._cut_whole_frames(out)
                if self._have < 4:
                    return
                size = read_size_prefix(self._peek(4), 0)
                if not 0 <= size <= self._most:
                    first = self._parts[0]
                    limit = self._limits.frame_bytes
                    message = f"a frame announces a size of {size:,} (limit {limit:,}): the boundary is lost"
                    out.append(fault("bad-size", message, first.packet, first.offset))
                    self._lose()
                    self._search(witness, out, start=1)
                    if self._searching:
                        return
                    continue
                self._size = size
            if self._have < self._size + 4:
                return
            out.append(self._take_frame(self._size))

    def _cut_whole_frames(self, out: list[Event]) -> None:
        """Cut off the frames that lie one behind the other in the one chunk at hand: what is left of it is
        copied once, not behind each of them."""
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
            # So that the rest is copied once; a view of much is made in less time than a copy.
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
        """A frame that lies in one chunk, as nearly all small ones do."""
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
        # Made part by part: compiled, that is several times faster than a call with all of them.
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
            # Where the bytes behind it belong cannot be counted.
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
            self._search(witness, out, at_end=True)
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
        """Give out the frame at hand as far as it was captured."""
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
        out.append(frame._replace(fault=fault("cut-frame", message, frame.last_packet, frame.offset)))

    def _lose(self) -> None:
        self._searching = True
        self._size = -1

    def _search(self, witness: Witness, out: list[Event], start: int = 0, at_end: bool = False) -> None:
        """Look for a frame in what is at hand; what lies before it is skipped."""
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
        for position in range(start, len(data) - 4):
            if witness(data, position, False):
                self._found(position, out)
                return
        # The last bytes may be the beginning of a prefix and a header; keep them for the next chunk.
        self._forget(max(0, self._have - SEARCH_OVERLAP), out)

    def _found(self, position: int, out: list[Event]) -> None:
        self._forget(position, out)
        self._searching = False
        self._found_by_search = True

    def _forget(self, count: int, out: list[Event]) -> None:
        """Skip the first ``count`` bytes at hand."""
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
            out.append(Skipped(chunk.offset, len(chunk.data), reason, chunk.packet))
        self._parts, self._have, self._size = [], 0, -1

    def _peek(self, count: int) -> bytes:
        data = self._parts[0].data if self._parts else b""
        if len(data) >= count:
            return data[:count]
        return b"".join([chunk.data for chunk in self._parts])[:count]


def _packets_of(used: list[Chunk]) -> tuple[list[int], Chunk]:
    """The packets that carried chunks, each once, and the chunk with the latest. A segment that fills a hole
    is older than the last: the frame is complete when the latest came."""
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
    """The bytes of a segment that stand in ``data``.

    :raises IndexError: they do not stand there.
    """
    if start < 0 or length < 0 or start + length > len(data):
        raise IndexError(start)
    raw = data
    # Made part by part: compiled, that is several times faster than a call with all of them.
    chunk = Chunk.__new__(Chunk)
    chunk.offset, chunk.packets = offset, ()
    # Bytes of which nothing is left out need no copy.
    chunk.data = data if length == len(data) else raw[start : start + length]
    chunk.packet, chunk.timestamp_ns = packet, timestamp_ns
    return chunk


def read_size_prefix(data: bytes, at: int) -> int:
    """The int32 with which a frame begins.

    :raises IndexError: four bytes are not there.
    """
    if not 0 <= at <= len(data) - 4:
        raise IndexError(at)
    raw = data
    high = raw[at]
    if high > 0x7F:
        high -= 0x100
    return high * 0x100_0000 + (raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3])


REST = "they are the rest of a frame that a gap cut"
"""Why bytes are skipped of which it is known whose they are."""

SEARCH_OVERLAP = 64
"""Bytes that stay at hand while searching: a size, a request header and a client id fit in them."""


def _tail(chunk: Chunk, count: int) -> Chunk:
    return Chunk(chunk.offset + count, chunk.data[count:], chunk.packet, chunk.timestamp_ns, chunk.packets)
