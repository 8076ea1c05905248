"""The pcapng capture file (draft-ietf-opsawg-pcapng): sections of blocks.

Every block has its length at both ends. If the two lengths agree but the contents do not fit, only this block
is lost. If a length is impossible, :mod:`~kdissect.capture.resync` searches for the next certain block.

Packets of Simple Packet Blocks have the time 0, because these blocks have none. Blocks without packets,
interfaces, statistics, names or secrets (custom, unknown ones) are skipped by their length.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from kdissect.capture.names import names_body
from kdissect.capture.options import (
    END_TIME,
    INTERFACE_DESCRIPTION,
    INTERFACE_NAME,
    INTERFACE_NUMBERS,
    START_TIME,
    STATISTICS_NUMBERS,
    TIME_OFFSET,
    TIME_RESOLUTION,
    InterfaceClock,
    Option,
    interface_clock,
    option_number,
    option_text,
    option_time,
    others,
    packet_options,
    read_options,
)
from kdissect.capture.reader import Interface, InterfaceCounts, Item, Reader
from kdissect.capture.resync import (
    ENHANCED_PACKET,
    INTERFACE,
    NAMES,
    OBSOLETE_PACKET,
    SECRETS,
    SECTION,
    SIMPLE_PACKET,
    STATISTICS,
    Resynchroniser,
    section_order,
)
from kdissect.capture.runs import BlockRun, PacketRun, end_of_blocks
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError, Packet
from kdissect.model import Secrets as SecretsItem
from kdissect.wording import plural

HEADER_BYTES = 12
"""The bytes of the first section header that show the byte order."""

_MIN_TIME, _MAX_TIME = -(1 << 63), (1 << 63) - 1

_OWN = (INTERFACE_NAME, INTERFACE_DESCRIPTION, TIME_RESOLUTION, TIME_OFFSET)
"""The interface options that are read."""

_NAMES = {
    SECTION: "Section Header Block",
    INTERFACE: "Interface Description Block",
    OBSOLETE_PACKET: "Packet Block",
    SIMPLE_PACKET: "Simple Packet Block",
    STATISTICS: "Interface Statistics Block",
    ENHANCED_PACKET: "Enhanced Packet Block",
    SECRETS: "Decryption Secrets Block",
}
_SHORTEST = {
    SECTION: 28,
    INTERFACE: 20,
    OBSOLETE_PACKET: 32,
    SIMPLE_PACKET: 16,
    NAMES: 12,
    STATISTICS: 24,
    ENHANCED_PACKET: 32,
    SECRETS: 20,
}
"""The bytes of a block without packet data and options, by type."""


class _SectionInterface(NamedTuple):
    """An interface of the current section, with the values that its packets need."""

    number: int
    """The index over the whole input."""
    link_type: int
    snap_length: int
    clock: InterfaceClock
    latest: int
    """The last time that surely fits in 64 bits of nanoseconds without a check."""


class PcapngReader(Reader):
    """Reads one pcapng file, including its first section header.

    :param head: the beginning of the file, at least :data:`HEADER_BYTES`; it is only inspected.
    :raises CaptureError: it does not begin with a section header.
    """

    def __init__(
        self, head: bytes, limits: Limits = DEFAULTS, interfaces: list[Interface] | None = None
    ) -> None:
        super().__init__(limits, [] if interfaces is None else interfaces)
        if len(head) < HEADER_BYTES:
            raise CaptureError(f"a pcapng file cut short in its header ({len(head)} bytes)")
        order = section_order(head, 0)
        if order is None:
            raise CaptureError("begins like a pcapng file, but its byte-order magic is wrong")
        self._lost: tuple[str, str, int] | None = None
        """During a search for a block: the kind and the words of the fault, and its offset."""
        self._set_order(order)

    def _set_order(self, order: str) -> None:
        self._order = order
        self._section: list[_SectionInterface | None] = []
        self._told: tuple[Option, ...] = ()
        """The options of the section."""
        self._names: tuple[bytes, ...] = ()
        """The contents of the section's Name Resolution Blocks."""
        self._resynchroniser = Resynchroniser(order, self._limits.block_bytes)
        self._set_forms()

    def _set_forms(self) -> None:
        order = self._order
        self._block = Struct(order + "II").unpack_from
        self._length = Struct(order + "I").unpack_from
        self._five = Struct(order + "IIIII").unpack_from

    def _read(self, buffer: bytes, items: list[Item | PacketRun], final: bool) -> int:
        at, size = 0, len(buffer)
        limit = self._limits.block_bytes
        while True:
            if self._lost is not None:
                at, found = self._resynchroniser.find(buffer, at, -self._offset & 3, final)
                if not found:
                    self._needed = self._resynchroniser.needed
                    break
                self._report_lost(items, at, found=True)
            if at + 12 > size:
                self._needed = 12
                break
            kind, length = self._block(buffer, at)
            if kind == ENHANCED_PACKET and length >= 32:
                stop = self._add_run(buffer, at, items)
                if stop > at:
                    at = stop
                    continue
            if kind == SECTION:
                order = section_order(buffer, at)
                if order is None:
                    self._lose("bad-block", "a Section Header Block without a byte-order magic", at)
                    at += 4
                    continue
                self._set_order(order)
                length = self._length(buffer, at + 4)[0]
            if length < 12 or length & 3 or length > limit:
                self._lose(
                    "bad-length", f"a block announces an impossible length of {plural(length, 'byte')}", at
                )
                at += 4
                continue
            end = at + length
            if end > size:
                if not final:
                    self._needed = length
                    break
                words = f"the file ends inside a block: {size - at:,} of {length:,} bytes are there"
                self._lose("cut-short", words, at)
                at += 4
                continue
            if self._length(buffer, end - 4)[0] != length:
                self._lose(
                    "bad-length",
                    f"a block announces {length:,} bytes at its beginning, and another length at its end",
                    at,
                )
                at += 4
                continue
            if kind == ENHANCED_PACKET and length >= 32:
                self._read_packet(kind, buffer, at, end, items)
            elif kind in _SHORTEST:
                if length < _SHORTEST[kind]:
                    self._bad_block(items, kind, at, f"is only {plural(length, 'byte')} long")
                    if kind == INTERFACE:
                        self._section.append(None)
                else:
                    self._read_other(kind, buffer, at, end, items)
            at = end
        if final:
            if self._lost is not None:
                self._report_lost(items, size, found=False)
            elif at < size:
                words = f"the file ends inside a block's header: {size - at} of 12 bytes are there"
                items.append(fault("cut-short", words, offset=self._offset + at))
        return at

    # -- damage

    def _lose(self, kind: str, words: str, at: int) -> None:
        self._lost = (kind, words, self._offset + at)

    def _report_lost(self, items: list[Item | PacketRun], at: int, found: bool) -> None:
        assert self._lost is not None
        kind, words, offset = self._lost
        skipped = self._offset + at - offset
        if found:
            # A block that only seemed to extend past the end was not cut short: its length was wrong.
            kind = "bad-length" if kind == "cut-short" else kind
            words += f"; {plural(skipped, 'byte is', 'bytes are')} skipped up to the next whole block"
        elif kind != "cut-short":
            words += f"; no whole block follows in the {plural(skipped, 'byte')} up to the end of the file"
        items.append(fault(kind, words, offset=offset))
        self._lost = None

    def _bad_block(
        self, items: list[Item | PacketRun], kind: int, at: int, what: str, packet: int | None = None
    ) -> None:
        words = f"{_NAMES[kind]} {what}"
        items.append(fault("bad-block", words, packet=packet, offset=self._offset + at))

    # -- blocks with packets

    def _add_run(self, buffer: bytes, at: int, items: list[Item | PacketRun]) -> int:
        """Append the packets of a run of blocks from ``at`` on, and return the end of the run."""
        section, limits = self._section, self._limits
        number: int = self._length(buffer, at + 8)[0]
        interface = section[number] if number < len(section) else None
        if interface is None:
            return at
        is_little = self._order == "<"
        stop, count = end_of_blocks(
            buffer, at, is_little, number, interface.latest, limits.packet_bytes, limits.block_bytes
        )
        if count:
            form = (is_little, *interface.clock)
            items.append(
                BlockRun(buffer, at, stop, self._number, form, interface.link_type, interface.number)
            )
            self._number += count
        return stop

    def _read_packet(
        self, kind: int, buffer: bytes, at: int, end: int, items: list[Item | PacketRun]
    ) -> None:
        """Read an Enhanced Packet Block, or the obsolete Packet Block, which differs in the first field."""
        number, high, low, captured, wire_length = self._five(buffer, at + 8)
        if kind == OBSOLETE_PACKET:
            # Here the number has 16 bits; the next 16 bits count dropped packets.
            number = number >> 16 if self._order == ">" else number & 0xFFFF
        self._add(kind, buffer, at, at + 28, end, number, high << 32 | low, captured, wire_length, items)

    def _read_simple(self, buffer: bytes, at: int, end: int, items: list[Item | PacketRun]) -> None:
        (wire_length,) = self._length(buffer, at + 8)
        captured: int = wire_length
        if self._section and self._section[0] is not None and self._section[0].snap_length:
            captured = min(captured, self._section[0].snap_length)
        self._add(SIMPLE_PACKET, buffer, at, at + 12, end, 0, None, captured, wire_length, items)

    def _add(
        self,
        kind: int,
        buffer: bytes,
        at: int,
        start: int,
        end: int,
        interface_number: int,
        ticks: int | None,
        captured: int,
        wire_length: int,
        items: list[Item | PacketRun],
    ) -> None:
        """Append the packet whose data begins at ``start`` in the block from ``at`` to ``end``."""
        section = self._section
        interface = section[interface_number] if interface_number < len(section) else None
        if interface is None:
            words = f"a packet names interface {interface_number}, which the section does not describe"
            items.append(fault("bad-interface", words, offset=self._offset + at))
            return
        room = end - 4 - start
        if captured > room:
            self._bad_block(items, kind, at, f"announces {captured} captured bytes, but has room for {room}")
            return
        limit = self._limits.packet_bytes
        if captured > limit:
            self._bad_block(items, kind, at, f"has {captured} captured bytes, more than the limit of {limit}")
            return
        wrong = None
        time = 0
        if ticks is not None:
            multiplier, divisor, offset_ns = interface.clock
            time = ticks * multiplier // divisor + offset_ns
            if not _MIN_TIME <= time <= _MAX_TIME:
                wrong = "has a time that does not fit into 64 bits of nanoseconds; kdissect uses 0"
                time = 0
        said: tuple[str, ...] = ()
        kept: tuple[Option, ...] = ()
        options = start + (captured + 3 & ~3)
        if options + 4 < end and kind != SIMPLE_PACKET:
            said, kept, wrong_option = packet_options(buffer, options, end - 4, self._order)
            wrong = wrong or wrong_option
        self._number = number = self._number + 1
        data = buffer[start : start + captured]
        items.append(
            Packet(number, time, interface.link_type, data, wire_length, interface.number, said, kept)
        )
        if wrong:
            self._bad_block(items, kind, at, wrong, number)

    # -- the other blocks

    def _read_other(self, kind: int, buffer: bytes, at: int, end: int, items: list[Item | PacketRun]) -> None:
        if kind == INTERFACE:
            self._read_interface(buffer, at, end, items)
        elif kind == SECTION:
            options, wrong = read_options(buffer, at + 24, end - 4, self._order)
            self._told = others(options, (), self._order)
            if wrong:
                self._bad_block(items, SECTION, at, wrong)
        elif kind == STATISTICS:
            self._read_statistics(buffer, at, end, items)
        elif kind == NAMES:
            self._read_names(buffer, at, end)
        elif kind == SECRETS:
            secrets_kind, length = Struct(self._order + "II").unpack_from(buffer, at + 8)
            if at + 16 + length > end - 4:
                self._bad_block(
                    items, kind, at, f"announces {plural(length, 'byte')}, but has room for {end - at - 20:,}"
                )
            else:
                items.append(SecretsItem(secrets_kind, buffer[at + 16 : at + 16 + length]))
        elif kind == SIMPLE_PACKET:
            self._read_simple(buffer, at, end, items)
        elif kind == OBSOLETE_PACKET:
            self._read_packet(kind, buffer, at, end, items)

    def _read_interface(self, buffer: bytes, at: int, end: int, items: list[Item | PacketRun]) -> None:
        link_type, _reserved, snap_length = Struct(self._order + "HHI").unpack_from(buffer, at + 8)
        options, wrong = read_options(buffer, at + 16, end - 4, self._order)
        if wrong:
            self._bad_block(items, INTERFACE, at, wrong)
        index = len(self.interfaces)
        clock = interface_clock(options, self._order)
        self._section.append(_SectionInterface(index, link_type, snap_length, clock, _latest(clock)))
        self.interfaces.append(
            Interface(
                link_type,
                snap_length,
                option_text(options, INTERFACE_NAME),
                option_text(options, INTERFACE_DESCRIPTION),
                options=others(options, _OWN, self._order, INTERFACE_NUMBERS),
                section=self._told,
                names=self._names,
            )
        )

    def _read_names(self, buffer: bytes, at: int, end: int) -> None:
        """Read addresses and their names. Complete ones are kept for writing them again."""
        records = []
        place, last = at + 8, end - 4
        head = Struct(self._order + "HH")
        while place + 4 <= last:
            kind, size = head.unpack_from(buffer, place)
            place += 4
            if kind == 0 or place + size > last:
                break
            records.append((kind, buffer[place : place + size]))
            place += size + 3 & ~3
        options, _ = read_options(buffer, place, last, self._order)
        made = names_body(records, others(options, (), self._order))
        if not records or made in self._names or sum(map(len, self._names)) > self._limits.block_bytes:
            return
        self._names = (*self._names, made)
        for each in self._section:
            if each is not None:
                self.interfaces[each.number] = self.interfaces[each.number]._replace(names=self._names)

    def _read_statistics(self, buffer: bytes, at: int, end: int, items: list[Item | PacketRun]) -> None:
        number, high, low = Struct(self._order + "III").unpack_from(buffer, at + 8)
        options, wrong = read_options(buffer, at + 20, end - 4, self._order)
        if wrong:
            self._bad_block(items, STATISTICS, at, wrong)
        interface = self._section[number] if number < len(self._section) else None
        if interface is None:
            self._bad_block(items, STATISTICS, at, f"counts for interface {number}, which is not described")
            return
        self.interfaces[interface.number] = self.interfaces[interface.number]._replace(
            received=option_number(options, 4, self._order),
            dropped=option_number(options, 5, self._order),
            dropped_by_system=option_number(options, 7, self._order),
            counts=InterfaceCounts(
                interface.clock.ns(high << 32 | low),
                option_time(options, START_TIME, self._order, interface.clock),
                option_time(options, END_TIME, self._order, interface.clock),
                others(options, (START_TIME, END_TIME), self._order, STATISTICS_NUMBERS),
            ),
        )


def _latest(clock: InterfaceClock) -> int:
    """The last time in ticks that does not overflow during the conversion to nanoseconds; -1 if there is
    none."""
    if clock.divisor > _MAX_TIME or not _MIN_TIME <= clock.offset_ns <= _MAX_TIME:
        return -1
    return (_MAX_TIME - max(0, clock.offset_ns)) // clock.multiplier
