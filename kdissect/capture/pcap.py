"""The classic capture file, pcap (draft-ietf-opsawg-pcap): a 24-byte header, then records.

The reader supports microseconds and nanoseconds, and both byte orders. It supports the "modified" format of
Kuznetzov's libpcap patch (magic a1b2cd34, record headers of 24 bytes), if the first records prove it. Files
of version 2.0 to 2.2 have the two lengths of a record in the reverse order. Some files of 2.3 do too
(libpcap's ``sf-pcap.c``). In files of 2.3 the smaller length is that of the captured bytes.

After a record with an impossible length, reading goes on only if the next record is certain. The record's
other length, on the wire, must lead to two more plausible record headers in a row, or to the end of the file.
Otherwise no later record can be found, and the file ends there.

A file header in place of a record begins another file (``cat a.pcap b.pcap``). Read as a record, it would be
an empty packet of an empty packet from the year 2055 or 2083. So the two cannot be confused.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from kdissect.capture.reader import Interface, Item, Reader
from kdissect.capture.runs import PacketRun, end_of_run
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError, Packet
from kdissect.wording import plural

HEADER_BYTES = 24

MAGICS: dict[bytes, tuple[str, int, int]] = {
    bytes.fromhex("a1b2c3d4"): (">", 1_000, 16),
    bytes.fromhex("d4c3b2a1"): ("<", 1_000, 16),
    bytes.fromhex("a1b23c4d"): (">", 1, 16),
    bytes.fromhex("4d3cb2a1"): ("<", 1, 16),
    bytes.fromhex("a1b2cd34"): (">", 1_000, 24),
    bytes.fromhex("34cdb2a1"): ("<", 1_000, 24),
}
"""The formats, by the first four bytes: byte order, nanoseconds in a unit of the fraction, bytes of a record
header."""

NEWEST_MINOR = 4
MIXED_MINOR = 3
"""The minor version in which some writers reversed the lengths."""

RecordHeader = tuple[int, int, int, int]
"""A record's header: seconds, fraction, captured bytes, bytes on the wire."""

_VERSIONS = frozenset((2, minor, 0, 0) for minor in range(NEWEST_MINOR + 1))
"""The known versions, with the time zone and the accuracy, which are 0 in all files."""

_PLAUSIBLE_SECONDS = 86_400
"""The longest time between consecutive records during a search for a lost boundary."""


def head_bytes(begin: bytes, limits: Limits) -> int:
    """The number of bytes that :class:`PcapReader` needs to inspect, by the file's first four bytes."""
    header_bytes = MAGICS[begin[:4]][2]
    return HEADER_BYTES if header_bytes == 16 else HEADER_BYTES + 2 * header_bytes + limits.packet_bytes


class PcapReader(Reader):
    """Reads one pcap file after its header.

    :param head: the beginning of the file, with a whole header. Its records are only inspected to recognise
        the modified format; they are not taken in.
    :raises CaptureError: it is not the header of a pcap file that can be read.
    """

    can_hold_secrets = False

    def __init__(
        self, head: bytes, limits: Limits = DEFAULTS, interfaces: list[Interface] | None = None
    ) -> None:
        super().__init__(limits, [] if interfaces is None else interfaces)
        if len(head) < HEADER_BYTES:
            raise CaptureError(f"a pcap file cut short in its header ({len(head)} of {HEADER_BYTES} bytes)")
        self._offset = HEADER_BYTES
        self._told_wire_length = False
        self._interface: int | None = None
        self._begin(head)
        if self._header_bytes == 24 and not self._is_plausible(head, HEADER_BYTES, None, 2, True):
            raise CaptureError("a pcap file with the modified magic a1b2cd34, but without its records")

    def _begin(self, header: bytes) -> None:
        order, self._scale, self._header_bytes = MAGICS[header[:4]]
        major, minor, snap_length, link = Struct(order + "4xHH8xII").unpack_from(header)
        if major != 2 or minor > NEWEST_MINOR:
            raise CaptureError(f"a pcap file of version {major}.{minor}; 2.0 to 2.{NEWEST_MINOR} can be read")
        self._is_little, self._minor = order == "<", minor
        self._set_forms()
        # The upper bits give the presence and length of a frame check sequence after each packet. The IP
        # length cuts it off, like padding.
        self._link_type = link & 0xFFFF
        interface = Interface(self._link_type, snap_length)
        if self._interface is None or self.interfaces[self._interface] != interface:
            self._interface = len(self.interfaces)
            self.interfaces.append(interface)

    def _set_forms(self) -> None:
        order = "<" if self._is_little else ">"
        record = Struct(order + "IIII" + ("8x" if self._header_bytes == 24 else "")).unpack_from
        self._is_newest = self._minor == NEWEST_MINOR
        self._record: Callable[[bytes, int], RecordHeader] = (
            record if self._is_newest else _older(record, self._minor == MIXED_MINOR)
        )

    def _read(self, buffer: bytes, items: list[Item | PacketRun], final: bool) -> int:
        at = self._records(buffer, 0, items, final)
        while _is_file_header(buffer, at):
            self._begin(buffer[at : at + HEADER_BYTES])
            at = self._records(buffer, at + HEADER_BYTES, items, final)
        if final and at < len(buffer):
            items.append(self._cut_short(buffer, at))
        return at

    def _records(self, buffer: bytes, at: int, items: list[Item | PacketRun], final: bool) -> int:
        """Read records from ``at`` on, up to the end, an incomplete record or another file's header."""
        header_bytes, limit, size = self._header_bytes, self._limits.packet_bytes, len(buffer)
        interface = self._interface
        assert interface is not None
        form = (self._is_little, header_bytes, self._scale)
        while True:
            if self._is_newest:
                stop, count = end_of_run(buffer, at, form, limit)
                if count:
                    run = PacketRun(buffer, at, stop, self._number, form, self._link_type, interface)
                    items.append(run)
                    self._number += count
                    at = stop
            start = at + header_bytes
            if start > size:
                self._needed = header_bytes
                break
            seconds, fraction, captured, wire_length = self._record(buffer, at)
            end = start + captured
            if captured > limit:
                resume = self._resume(buffer, at, final)
                if resume is None:
                    break
                items.append(self._bad_length(at, resume, captured))
                at = resume
                continue
            if end > size:
                self._needed = header_bytes + captured
                break
            if not captured and buffer[at : at + 4] in MAGICS:
                if at + HEADER_BYTES > size and not final:
                    self._needed = HEADER_BYTES
                    break
                if _is_file_header(buffer, at):
                    break
            self._number += 1
            time = seconds * 1_000_000_000 + fraction * self._scale
            items.append(
                Packet(self._number, time, self._link_type, buffer[start:end], wire_length, interface)
            )
            if captured > wire_length and not self._told_wire_length:
                items.append(self._bad_wire_length(self._number, at, captured, wire_length))
            at = end
        return at

    def _resume(self, buffer: bytes, at: int, final: bool) -> int | None:
        """The beginning of the record after the damaged one at ``at``; None if more bytes are needed to
        decide. If it is not certain, return the end of the buffer (then the reader stops)."""
        seconds, _, _, wire_length = self._record(buffer, at)
        after: int = at + self._header_bytes + wire_length
        if wire_length <= self._limits.packet_bytes:
            plausible = self._is_plausible(buffer, after, seconds, 2, final)
            if plausible is None:
                self._needed = len(buffer) - at + 1
                return None
            if plausible:
                return after
        self.stopped = True
        return len(buffer)

    def _is_plausible(
        self, buffer: bytes, at: int, before: int | None, records: int, final: bool
    ) -> bool | None:
        """Whether ``records`` record headers in a row, or the end of the file, follow at ``at``; None if the
        buffer is too short. ``before`` is the time of the record before, in seconds."""
        for _ in range(records):
            if at + self._header_bytes > len(buffer):
                return at == len(buffer) if final else None
            seconds, fraction, captured, wire_length = self._record(buffer, at)
            if (
                captured > self._limits.packet_bytes
                or captured > wire_length
                or fraction * self._scale >= 1_000_000_000
                or (before is not None and abs(seconds - before) > _PLAUSIBLE_SECONDS)
            ):
                return False
            before = seconds
            at += self._header_bytes + captured
        return True

    def _bad_length(self, at: int, resume: int, captured: int) -> Item:
        consequence = (
            "the rest cannot be read"
            if self.stopped
            else f"{plural(resume - at, 'byte is', 'bytes are')} skipped: the packet's length on the wire "
            "leads to the next record"
        )
        return fault(
            "bad-length",
            f"a record announces {captured:,} captured bytes, more than the limit of "
            f"{self._limits.packet_bytes:,}; {consequence}",
            offset=self._offset + at,
        )

    def _bad_wire_length(self, number: int, at: int, captured: int, wire_length: int) -> Item:
        self._told_wire_length = True
        return fault(
            "bad-length",
            f"a record has {plural(captured, 'captured byte')}, but its packet had only {wire_length:,}; "
            "kdissect keeps the packet and reports no further records of this kind",
            packet=number,
            offset=self._offset + at,
        )

    def _cut_short(self, buffer: bytes, at: int) -> Item:
        there, wanted = len(buffer) - at, self._header_bytes
        if there >= wanted:
            wanted += self._record(buffer, at)[2]
        words = f"the file ends inside a record: {there:,} of {plural(wanted, 'byte')} are there"
        return fault("cut-short", words, offset=self._offset + at)


def _older(
    record: Callable[[bytes, int], RecordHeader], is_mixed: bool
) -> Callable[[bytes, int], RecordHeader]:
    """The reader of record headers of versions before 2.4; it returns the fields in the order of 2.4."""

    def swapped(buffer: bytes, at: int) -> RecordHeader:
        seconds, fraction, first, second = record(buffer, at)
        if is_mixed and first <= second:
            return seconds, fraction, first, second
        return seconds, fraction, second, first

    return swapped


def _is_file_header(buffer: bytes, at: int) -> bool:
    """Whether a whole file header (time zone and accuracy are 0 in all) is at ``at``."""
    order, _, header_bytes = MAGICS.get(buffer[at : at + 4], ("", 0, 0))
    return (
        header_bytes == 16
        and at + HEADER_BYTES <= len(buffer)
        and Struct(order + "HHII").unpack_from(buffer, at + 4) in _VERSIONS
    )
