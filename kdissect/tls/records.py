"""Chunk | Gap of one direction → TLS records (RFC 8446, 5.1): cut at their headers, found again after a gap.

Rules

1. A gap inside a record whose header was captured costs only that record: its end is known. The loss says
   which record it was.
2. A gap with a header in it loses the boundary. So do bytes that are no header. Then the next record is
   searched for: a header at the start of a segment, or a header anywhere whose record ends at another header.
   The number of lost records is then unknown.
3. A stream that loses the boundary ``MOST_DEFECTS`` times by its own bytes is not TLS. No more records are
   searched for.
4. Every byte of the stream is in a record, counted in a Loss, or was passed over by
   :meth:`RecordReader.skip` or :meth:`RecordReader.skip_held`. Whole records that :meth:`Tls.take
   <kdissect.tls.decrypting.Tls.take>` reads from packets do not come here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from kdissect.model import Chunk, Gap

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23

HEADER_BYTES = 5
LONGEST_FRAGMENT = (1 << 14) + 2048
"""RFC 5246, 6.2.3."""
MOST_DEFECTS = 64
_HEADER_BYTES, _LONGEST_FRAGMENT = HEADER_BYTES, LONGEST_FRAGMENT
_LEAST_TYPE, _LARGEST_TYPE = CHANGE_CIPHER_SPEC, APPLICATION_DATA
PART_BYTES = 256
"""About how much memory a captured piece takes besides its bytes."""
_PART_BYTES = PART_BYTES

_HEADER = re.compile(rb"[\x14-\x17]\x03[\x00-\x03]")

_packet_of = attrgetter("packet")
_named = tuple.__new__


class TlsRecord(NamedTuple):
    """One record."""

    type: int
    header: bytes
    fragment: bytes
    offset: int
    """The offset of its header in the direction's stream."""
    packet: int
    """The packet that completed it."""
    timestamp_ns: int
    packets: tuple[int, ...]
    """Every packet with bytes of it."""


class Loss(NamedTuple):
    """Bytes of a stream that belong to no complete record."""

    offset: int
    length: int
    type: int | None
    """The type of the record, if its header was captured; else None."""
    fragment_bytes: int
    """The length of that record's fragment."""
    reason: str
    packet: int
    timestamp_ns: int
    is_defect: bool = False
    """Whether the captured bytes themselves are wrong."""


Item = TlsRecord | Loss


def length_at(data: bytes, at: int) -> int:
    """The length of the fragment after the header at a position; -1 if the bytes are no header."""
    if at < 0 or at + _HEADER_BYTES > len(data):
        return -1
    raw = data
    if raw[at] < _LEAST_TYPE or raw[at] > _LARGEST_TYPE or raw[at + 1] != 3 or raw[at + 2] > 3:
        return -1
    length = raw[at + 3] << 8 | raw[at + 4]
    return length if length <= _LONGEST_FRAGMENT else -1


class RecordReader:
    """The machine of one direction."""

    __slots__ = ("_cut_at", "_defects", "_have", "_lost", "_need", "_offset", "_parts", "_skip")

    def __init__(self) -> None:
        self._parts: list[Chunk] = []
        self._have = 0
        self._need = HEADER_BYTES
        """How many bytes must be held before the next step."""
        self._offset = 0
        """The offset of the first byte held."""
        self._cut_at = -1
        """The same offset, if that byte is not the first of its segment; else -1."""
        self._skip = 0
        """Bytes of a lost record, or of one passed over, that have not arrived yet."""
        self._lost: Loss | None = None
        """The loss so far while the boundary is searched for; else None."""
        self._defects = 0

    @property
    def held_bytes(self) -> int:
        """The memory that an incomplete record takes."""
        return self._held()

    def _held(self) -> int:
        return self._have + _PART_BYTES * len(self._parts)

    def is_empty(self) -> bool:
        """Whether the next byte begins a record: nothing is held, lost or skipped."""
        return not self._have and not self._skip and self._lost is None

    def feed(self, piece: Chunk | Gap) -> Sequence[Item]:
        """The records that ``piece`` completes, and losses."""
        if isinstance(piece, Gap):
            return self._feed_gap(piece)
        chunk = piece
        if not self._have:
            self._offset = chunk.offset
            self._cut_at = -1
        if self._skip:
            taken = min(self._skip, len(chunk.data))
            self._skip -= taken
            if taken == len(chunk.data):
                return ()
            chunk = chunk._replace(offset=chunk.offset + taken, data=chunk.data[taken:])
            self._offset = self._cut_at = chunk.offset
        self._parts.append(chunk)
        self._have += len(chunk.data)
        if self._have < self._need:
            return ()
        out: list[Item] = []
        while self._have >= self._need:
            if self._lost is None:
                self._cut(out)
            elif self._defects > MOST_DEFECTS:
                self._drop(self._have)
            else:
                self._search(out)
        return out

    def skip(self, data: bytes, start: int, length: int, least_type: int) -> int:
        """Pass over whole records at the beginning of the next bytes, and over the beginning of a last record
        whose rest comes later. Return how many bytes were passed over; feed the others. While an incomplete
        record is held, nothing is passed over.

        :param data: has the bytes, ``length`` of them at ``start``.
        :param least_type: records of this type and of higher types are passed over.
        """
        if self._have or self._lost is not None:
            return 0
        at, end, raw = start, start + length, data
        while at < end:
            if not self._skip:
                size = length_at(data, at) if end - at >= _HEADER_BYTES else -1
                if size < 0 or raw[at] < least_type:
                    break
                self._skip = _HEADER_BYTES + size
            taken = min(self._skip, end - at)
            self._skip -= taken
            at += taken
        return at - start

    def skip_held(self, least_type: int) -> None:
        """Pass over the incomplete record that is held, if its header is known. Its rest is then passed over
        too.

        :param least_type: a record of this type or of a higher type is passed over.
        """
        if self._lost is None and self._have >= _HEADER_BYTES and self._parts[0].data[0] >= least_type:
            self._skip = self._need - self._have
            self._forget()

    def close(self) -> Sequence[Item]:
        """End the stream; the bytes held are no whole record."""
        if self._lost is None and self._have:
            last = self._parts[-1]
            reason = "the stream ends inside a record"
            self._lost = Loss(self._offset, 0, None, 0, reason, last.packet, last.timestamp_ns)
        if self._lost is None:
            return ()
        self._drop(self._have)
        lost, self._lost = self._lost, None
        return (lost,)

    def _cut(self, out: list[Item]) -> None:
        """Cut every whole record off the parts."""
        parts, base = self._parts, self._offset
        data = parts[0].data if len(parts) == 1 else b"".join([part.data for part in parts])
        at, index, index_end = 0, 0, len(parts[0].data)
        size = len(data)
        while True:
            body = at + HEADER_BYTES
            header = data[at:body]
            length = length_at(data, at)
            if length < 0:
                if len(header) < HEADER_BYTES:
                    self._need = HEADER_BYTES
                    break
                self._keep(at, index, index_end)
                self._lose(header)
                return
            end = body + length
            if end > size:
                self._need = HEADER_BYTES + length
                break
            if end <= index_end:
                last = parts[index]
                packets: tuple[int, ...] = (last.packet,)
            else:
                first = index
                while index_end < end:
                    index += 1
                    index_end += len(parts[index].data)
                used = parts[first : index + 1]
                packets = tuple(dict.fromkeys([part.packet for part in used]))
                # The last part need not be the latest packet: a segment may fill a hole later.
                last = max(used, key=_packet_of)
            whole = (
                *(header[0], header, data[body:end], base + at),
                *(last.packet, last.timestamp_ns, packets),
            )
            out.append(_named(TlsRecord, whole))
            at = end
            if index_end == end and index + 1 < len(parts):
                index += 1
                index_end += len(parts[index].data)
        self._keep(at, index, index_end)

    def _keep(self, at: int, index: int, index_end: int) -> None:
        """Drop the bytes before ``at``, which is in or at the end of the part ``index``."""
        if not at:
            return
        self._offset += at
        self._have -= at
        part, left = self._parts[index], index_end - at
        del self._parts[: index + 1]
        self._cut_at = -1
        if left:
            cut = len(part.data) - left
            if cut:
                self._cut_at = part.offset + cut
                part = Chunk(self._cut_at, part.data[cut:], part.packet, part.timestamp_ns, part.packets)
            self._parts.insert(0, part)

    def _feed_gap(self, gap: Gap) -> list[Item]:
        out: list[Item] = []
        length, missing = gap.length, gap.length
        if self._skip:
            inside = min(self._skip, missing)
            self._skip -= inside
            missing -= inside
        elif self._lost is None and self._have >= HEADER_BYTES:
            # So many bytes are held only for an incomplete record with a header.
            header = b"".join([part.data for part in self._parts])[:HEADER_BYTES]
            size = self._need - HEADER_BYTES
            where = (gap.reason, gap.packet, gap.timestamp_ns)
            out.append(Loss(self._offset, self._need, header[0], size, *where))
            inside = min(self._need - self._have, missing)
            self._skip = self._need - self._have - inside
            missing -= inside
            self._forget()
        if missing:
            if self._lost is None:
                start = gap.offset + length - missing - self._have
                self._lost = Loss(start, 0, None, 0, gap.reason, gap.packet, gap.timestamp_ns)
            self._drop(self._have)
            self._add_lost(missing, gap.packet, gap.timestamp_ns)
        return out

    def _forget(self) -> None:
        self._parts, self._have, self._need = [], 0, HEADER_BYTES

    def _lose(self, header: bytes) -> None:
        """Note that the bytes held do not begin with a header."""
        first = self._parts[0]
        reason = f"{header.hex(' ')} is not the header of a record"
        self._lost = Loss(self._offset, 0, None, 0, reason, first.packet, first.timestamp_ns, is_defect=True)
        self._defects += 1
        self._drop(1)
        self._need = HEADER_BYTES

    def _search(self, out: list[Item]) -> None:
        """Search the bytes held for the next record; the bytes before it are lost."""
        data = b"".join([part.data for part in self._parts])
        starts: set[int] = set()
        at = 0
        for part in self._parts:
            if part.offset != self._cut_at:
                starts.add(at)
            at += len(part.data)
        for found in _HEADER.finditer(data):
            position = found.start()
            if position + HEADER_BYTES > len(data):
                self._drop(position)
                self._need = HEADER_BYTES
                return
            length = data[position + 3] << 8 | data[position + 4]
            if not 0 < length <= LONGEST_FRAGMENT:
                continue
            end = position + HEADER_BYTES + length
            if position in starts or _HEADER.match(data, end):
                self._drop(position)
                self._need = HEADER_BYTES
                assert self._lost is not None
                out.append(self._lost)
                self._lost = None
                return
            if end + HEADER_BYTES > len(data):
                self._drop(position)
                self._need = 2 * HEADER_BYTES + length
                return
        self._drop(max(0, len(data) - 2))
        self._need = HEADER_BYTES

    def _drop(self, count: int) -> None:
        """Count the first ``count`` bytes held as lost."""
        if not count:
            return
        index, end = 0, len(self._parts[0].data)
        while end < count:
            index += 1
            end += len(self._parts[index].data)
        last = self._parts[index]
        self._add_lost(count, last.packet, last.timestamp_ns)
        self._keep(count, index, end)

    def _add_lost(self, length: int, packet: int, timestamp_ns: int) -> None:
        assert self._lost is not None
        length += self._lost.length
        packet = max(packet, self._lost.packet)
        self._lost = self._lost._replace(length=length, packet=packet, timestamp_ns=timestamp_ns)
