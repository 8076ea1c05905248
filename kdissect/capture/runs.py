"""Consecutive ordinary packets of a capture, read in place from the file's bytes.

Most packets need no object: the dissector reads their bytes in place. A run makes objects only for the other
packets.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.capture.options import packet_options
from kdissect.model import Packet

_ENHANCED_PACKET = 6
_BEFORE_DATA = 28
"""The bytes of an Enhanced Packet Block before the packet's data."""
_AROUND_DATA = 32
"""The bytes before and after the data."""
_HALF_WAY = 0x7FFF_FFFF
"""Larger upper halves make a signed 64-bit number in C negative."""


class PacketRun:
    """Consecutive whole records of a pcap file, each with bytes. A run is iterated once; a copy made before
    can be iterated again.

    :param buffer: contains the records, from ``start`` to ``stop``.
    :param number: the number of the packet before.
    :param form: whether numbers are little-endian, the bytes of a record's header, and nanoseconds in a unit
        of the fraction.
    """

    __slots__ = (
        *("_header_bytes", "_is_little", "_scale", "at", "buffer", "data_end", "data_start", "interface"),
        *("link_type", "number", "start", "stop", "timestamp_ns", "wire_length"),
    )

    def __init__(
        self,
        buffer: bytes,
        start: int,
        stop: int,
        number: int,
        form: tuple[bool, int, int],
        link_type: int,
        interface: int,
    ) -> None:
        self.buffer, self.start, self.stop = buffer, start, stop
        self.at = start
        """The beginning of the next record."""
        self.number = number
        """The number of the current packet."""
        self._is_little, self._header_bytes, self._scale = form
        self.link_type, self.interface = link_type, interface
        self.timestamp_ns = self.wire_length = 0
        """The time and wire length of the current packet."""
        self.data_start = self.data_end = start
        """The range of its bytes in the buffer."""

    def __iter__(self) -> Iterator[Packet]:
        """The remaining packets."""
        while self.next():
            yield self.packet()

    def copy(self) -> PacketRun:
        """A run of the remaining packets, to iterate separately."""
        form = (self._is_little, self._header_bytes, self._scale)
        return PacketRun(self.buffer, self.at, self.stop, self.number, form, self.link_type, self.interface)

    @property
    def size(self) -> int:
        """The bytes of the file in the run."""
        return self.stop - self.start

    @property
    def first_ns(self) -> int:
        """The time of its first packet."""
        raw, at, scale = self.buffer, self.start, self._scale
        if self._is_little:
            return _little(raw, at) * 1_000_000_000 + _little(raw, at + 4) * scale
        return _big(raw, at) * 1_000_000_000 + _big(raw, at + 4) * scale

    def next(self) -> bool:
        """Go to the next packet. Return False at the end of the run."""
        raw, at, scale = self.buffer, self.at, self._scale
        if at >= self.stop:
            return False
        if self._is_little:
            seconds, fraction = _little(raw, at), _little(raw, at + 4)
            captured, self.wire_length = _little(raw, at + 8), _little(raw, at + 12)
        else:
            seconds, fraction = _big(raw, at), _big(raw, at + 4)
            captured, self.wire_length = _big(raw, at + 8), _big(raw, at + 12)
        self.timestamp_ns = seconds * 1_000_000_000 + fraction * scale
        self.data_start = at + self._header_bytes
        self.at = self.data_end = self.data_start + captured
        self.number += 1
        return True

    def packet(self) -> Packet:
        """The current packet."""
        raw = self.buffer
        # Set attribute by attribute: compiled, that is several times faster than one call with all values.
        packet = Packet.__new__(Packet)
        packet.number, packet.timestamp_ns = self.number, self.timestamp_ns
        packet.link_type, packet.interface = self.link_type, self.interface
        packet.comments = packet.options = ()
        packet.data, packet.wire_length = raw[self.data_start : self.data_end], self.wire_length
        return packet


class BlockRun(PacketRun):
    """Consecutive Enhanced Packet Blocks of one interface in a pcapng file.

    :param form: whether numbers are little-endian. Then the conversion of the interface's times to
        nanoseconds since the epoch: the multiplier, the divisor, and the offset.
    """

    __slots__ = ("_divisor", "_offset_ns")

    def __init__(
        self,
        buffer: bytes,
        start: int,
        stop: int,
        number: int,
        form: tuple[bool, int, int, int],
        link_type: int,
        interface: int,
    ) -> None:
        is_little, multiplier, self._divisor, self._offset_ns = form
        pcap_form = is_little, _BEFORE_DATA, multiplier
        PacketRun.__init__(self, buffer, start, stop, number, pcap_form, link_type, interface)

    def copy(self) -> PacketRun:
        """As in the base class."""
        form = (self._is_little, self._scale, self._divisor, self._offset_ns)
        return BlockRun(self.buffer, self.at, self.stop, self.number, form, self.link_type, self.interface)

    @property
    def first_ns(self) -> int:
        """The time of its first packet."""
        return self._time_ns(self.start)

    def next(self) -> bool:
        """As in the base class."""
        raw, at = self.buffer, self.at
        if at >= self.stop:
            return False
        if self._is_little:
            length, captured = _little(raw, at + 4), _little(raw, at + 20)
            self.wire_length = _little(raw, at + 24)
        else:
            length, captured = _big(raw, at + 4), _big(raw, at + 20)
            self.wire_length = _big(raw, at + 24)
        self.timestamp_ns = self._time_ns(at)
        self.data_start = at + _BEFORE_DATA
        self.data_end = self.data_start + captured
        self.at = at + length
        self.number += 1
        return True

    def packet(self) -> Packet:
        """As in the base class."""
        packet = PacketRun.packet(self)
        options, end = self.data_end + (-(self.data_end - self.data_start) & 3), self.at - 4
        if options < end:
            order = "<" if self._is_little else ">"
            packet.comments, packet.options, _ = packet_options(self.buffer, options, end, order)
        return packet

    def _time_ns(self, at: int) -> int:
        """The time of the packet in the block at a position."""
        raw = self.buffer
        if self._is_little:
            ticks = _little(raw, at + 12) << 32 | _little(raw, at + 16)
        else:
            ticks = _big(raw, at + 12) << 32 | _big(raw, at + 16)
        return ticks * self._scale // self._divisor + self._offset_ns


def end_of_run(buffer: bytes, at: int, form: tuple[bool, int, int], limit: int) -> tuple[int, int]:
    """The end of the consecutive records from ``at`` on that are complete and have packets with bytes; and
    their number.

    :param form: as in :class:`PacketRun`.
    :param limit: the most bytes of a packet.
    """
    is_little, header_bytes, _ = form
    raw, size, count = buffer, len(buffer), 0
    while at + header_bytes <= size:
        if is_little:
            captured, wire_length = _little(raw, at + 8), _little(raw, at + 12)
        else:
            captured, wire_length = _big(raw, at + 8), _big(raw, at + 12)
        end = at + header_bytes + captured
        if not captured or captured > limit or captured > wire_length or end > size:
            break
        count += 1
        at = end
    return at, count


def end_of_blocks(
    buffer: bytes, at: int, is_little: bool, interface: int, latest: int, limit: int, block_limit: int
) -> tuple[int, int]:
    """The end of the consecutive blocks from ``at`` on, and their number. The blocks are complete, undamaged,
    of one interface, and have packets with bytes.

    :param interface: its index in the section.
    :param latest: the last of its times that fits in 64 bits of nanoseconds.
    :param limit: the most bytes of a packet; ``block_limit`` is the same for a block.
    """
    raw, size, count = buffer, len(buffer), 0
    while at + _AROUND_DATA <= size:
        if is_little:
            kind, length, number = _little(raw, at), _little(raw, at + 4), _little(raw, at + 8)
            high, low, captured = _little(raw, at + 12), _little(raw, at + 16), _little(raw, at + 20)
        else:
            kind, length, number = _big(raw, at), _big(raw, at + 4), _big(raw, at + 8)
            high, low, captured = _big(raw, at + 12), _big(raw, at + 16), _big(raw, at + 20)
        if kind != _ENHANCED_PACKET or number != interface or high > _HALF_WAY or high << 32 | low > latest:
            break
        end = at + length
        if length < _AROUND_DATA or length & 3 or length > block_limit or end > size:
            break
        if not captured or captured > limit or captured > length - _AROUND_DATA:
            break
        if (_little(raw, end - 4) if is_little else _big(raw, end - 4)) != length:
            break
        options = at + _BEFORE_DATA + captured + (-captured & 3)
        if options < end - 4 and not _are_whole(raw, options, end - 4, is_little):
            break
        count += 1
        at = end
    return at, count


def _are_whole(raw: bytes, at: int, end: int, is_little: bool) -> bool:
    """Whether the options are undamaged (:func:`kdissect.capture.options.read_options`)."""
    while at < end:
        if at + 4 > end:
            return False
        if is_little:
            code, length = raw[at + 1] << 8 | raw[at], raw[at + 3] << 8 | raw[at + 2]
        else:
            code, length = raw[at] << 8 | raw[at + 1], raw[at + 2] << 8 | raw[at + 3]
        if not code:
            return True
        if at + 4 + length > end:
            return False
        at += 4 + length + (-length & 3)
    return True


def _little(raw: bytes, at: int) -> int:
    """A little-endian number of 32 bits."""
    high = raw[at + 3]  # a separate number: compiled, shifting a byte would lose bits
    return high << 24 | raw[at + 2] << 16 | raw[at + 1] << 8 | raw[at]


def _big(raw: bytes, at: int) -> int:
    """A big-endian number of 32 bits."""
    high = raw[at]
    return high << 24 | raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3]
