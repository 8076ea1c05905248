"""Packets of a pcap file in a row that are as nearly all are, as they stand in the file.

Most packets need no object: whoever dissects them looks at the bytes where they are. A run makes the objects
of those that do.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.model import Packet


class PacketRun:
    """Whole records in a row, each with bytes. It is gone through once; a copy of it before that, again.

    :param buffer: has them, from ``start`` to ``stop``.
    :param number: that of the packet before.
    :param form: whether numbers have their lowest byte first, the bytes of a record's header, and nanoseconds
        in a unit of the fraction.
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
        """Where the next record begins."""
        self.number = number
        """Of the packet that was reached last."""
        self._is_little, self._header_bytes, self._scale = form
        self.link_type, self.interface = link_type, interface
        self.timestamp_ns = self.wire_length = 0
        """Of the packet that was reached last."""
        self.data_start = self.data_end = start
        """Where its bytes stand in the buffer."""

    def __iter__(self) -> Iterator[Packet]:
        """The packets that are left."""
        while self.next():
            yield self.packet()

    def copy(self) -> PacketRun:
        """The packets that are left, to be gone through by somebody else."""
        form = (self._is_little, self._header_bytes, self._scale)
        return PacketRun(self.buffer, self.at, self.stop, self.number, form, self.link_type, self.interface)

    @property
    def size(self) -> int:
        """Bytes of the file that it has."""
        return self.stop - self.start

    @property
    def first_ns(self) -> int:
        """The time of its first packet."""
        raw, at, scale = self.buffer, self.start, self._scale
        if self._is_little:
            return _little(raw, at) * 1_000_000_000 + _little(raw, at + 4) * scale
        return _big(raw, at) * 1_000_000_000 + _big(raw, at + 4) * scale

    def next(self) -> bool:
        """Go on to the next packet. False if there are no more."""
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
        """The packet that was reached last."""
        raw = self.buffer
        # Made part by part: compiled, that is several times faster than a call with all of them.
        packet = Packet.__new__(Packet)
        packet.number, packet.timestamp_ns = self.number, self.timestamp_ns
        packet.link_type, packet.interface = self.link_type, self.interface
        packet.comments = packet.options = ()
        packet.data, packet.wire_length = raw[self.data_start : self.data_end], self.wire_length
        return packet


def end_of_run(buffer: bytes, at: int, form: tuple[bool, int, int], limit: int) -> tuple[int, int]:
    """Where the records in a row end, from ``at`` on, that are whole and of packets with bytes; and how many
    they are.

    :param form: as :class:`PacketRun` has it.
    :param limit: bytes that a packet may have.
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


def _little(raw: bytes, at: int) -> int:
    """A number of 32 bits, lowest byte first."""
    high = raw[at + 3]  # a number of its own: compiled, a byte would have no room to the left
    return high << 24 | raw[at + 2] << 16 | raw[at + 1] << 8 | raw[at]


def _big(raw: bytes, at: int) -> int:
    """A number of 32 bits, highest byte first."""
    high = raw[at]
    return high << 24 | raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3]
