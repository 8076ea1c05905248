"""The common part of the two capture formats: a machine from bytes to packets.

    feed(bytes) ─► [Packet | Secrets | Fault, …]          close() ─► what the end of the file leaves over

Rule 1  Pieces may have any size; the same bytes give the same items, however they are cut.
Rule 2  At most one incomplete record or block, bounded by the limits, is kept.
Rule 3  Damage is reported as a Fault of the layer ``file`` with the offset of the damaged record or block.
        Offsets count the uncompressed bytes of one file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from kdissect.capture.options import Option
from kdissect.capture.runs import PacketRun
from kdissect.limits import Limits
from kdissect.model import Fault, Packet, Secrets

Item = Packet | Secrets | Fault

PACKET_OVERHEAD = 24
"""About the bytes that a capture file adds to a packet. The bytes read are estimated from packets, not from
files."""


class InterfaceCounts(NamedTuple):
    """The counts of an interface, from the last Interface Statistics Block."""

    at_ns: int
    start_ns: int | None
    """The time at which the capture began; None if unknown."""
    end_ns: int | None
    options: tuple[Option, ...]
    """Other options: counts and comments; numbers little-endian."""


class Interface(NamedTuple):
    """The interface where packets were captured, if the file has it. A pcap file has one, without a name."""

    link_type: int
    """A LINKTYPE number of the tcpdump.org registry."""
    snap_length: int = 0
    """The bytes kept of each packet; 0 means no limit."""
    name: str | None = None
    description: str | None = None
    received: int | None = None
    """Packets that the interface saw, from the last Interface Statistics Block (``isb_ifrecv``)."""
    dropped: int | None = None
    """Packets that the interface lost for lack of resources (``isb_ifdrop``)."""
    dropped_by_system: int | None = None
    """Packets that the operating system lost on their way to the capturing program (``isb_osdrop``)."""
    options: tuple[Option, ...] = ()
    """The other options of a pcapng file: the filter, the system, the speed …; numbers little-endian."""
    section: tuple[Option, ...] = ()
    """The options of the interface's section in a pcapng file: hardware, system, application, comments."""
    counts: InterfaceCounts | None = None
    names: tuple[bytes, ...] = ()
    """The contents of the section's Name Resolution Blocks: addresses and their names."""


class Points(NamedTuple):
    """The capture points of an input whose files show the same traffic at several places."""

    names: tuple[str, ...]
    of_path: dict[str, int]
    """The index of each file's point in ``names``, by the file's name."""
    ahead_ns: tuple[int, ...]
    """How far the clock of each point seems to be ahead of the first point's clock."""
    of_interface: dict[int, int]
    """The point of each interface, by the index that packets have; it grows while packets are read."""


class Packets(Protocol):
    """The packets of a capture, from any source, and its other items."""

    @property
    def interfaces(self) -> Sequence[Interface]:
        """The interfaces, by the index that packets have; the list grows."""

    def __iter__(self) -> Iterator[Item]:
        """The items in order."""

    def close(self) -> None:
        """Close open files."""


class Reader(ABC):
    """Base of :class:`~kdissect.capture.pcap.PcapReader` and
    :class:`~kdissect.capture.pcapng.PcapngReader`.

    The readers of several files may share ``interfaces``. Each appends its own, so that an index into the
    list is unique over the whole input. Packets are numbered from 1 in their file.
    """

    can_hold_secrets: ClassVar[bool] = True
    """Whether the format has a place for TLS secrets."""

    def __init__(self, limits: Limits, interfaces: list[Interface]) -> None:
        self.interfaces = interfaces
        self.stopped = False
        """Whether nothing more can be read with certainty; the rest of the file need not be fed."""
        self._limits = limits
        self._number = 0
        self._offset = 0
        """The offset of the first waiting byte."""
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._needed = 1
        """The number of waiting bytes needed before reading on makes sense. So small pieces are joined
        rarely."""

    def __getstate__(self) -> dict[str, Any]:
        """A reader can be pickled, and go on later. The functions that unpack bytes are left out, and made
        again."""
        return {name: value for name, value in vars(self).items() if not callable(value)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._set_forms()

    @property
    def fed_bytes(self) -> int:
        """The number of bytes of the file that were fed; reading goes on from there."""
        return self._offset + self._waiting_bytes

    def goes_on(self, offset: int, packets: int) -> None:
        """Set the position of the next bytes: their offset in the file, and the number of packets before
        them."""
        self._offset, self._number = offset, packets

    def feed(self, data: bytes) -> list[Item]:
        """The items that ``data`` completes."""
        return one_by_one(self.feed_in_runs(data))

    def feed_in_runs(self, data: bytes) -> list[Item | PacketRun]:
        """The same items; consecutive ordinary packets may come as a run."""
        items: list[Item | PacketRun] = []
        if self.stopped or not data:
            return items
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= self._needed:
            self._run(items, final=False)
        return items

    def close(self) -> list[Item]:
        """End the file, and return the remaining items."""
        items: list[Item | PacketRun] = []
        if not self.stopped and self._waiting_bytes:
            self._run(items, final=True)
        self.stopped = True
        return one_by_one(items)

    def _run(self, items: list[Item | PacketRun], final: bool) -> None:
        buffer = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
        consumed = self._read(buffer, items, final)
        self._offset += consumed
        self._waiting = [buffer[consumed:]]
        self._waiting_bytes = len(buffer) - consumed

    @abstractmethod
    def _set_forms(self) -> None:
        """Make the functions that unpack bytes of this file."""

    @abstractmethod
    def _read(self, buffer: bytes, items: list[Item | PacketRun], final: bool) -> int:
        """Append the items in ``buffer`` to ``items``, set ``_needed``, and return the number of bytes
        used."""


def first_time(items: Iterable[Item | PacketRun]) -> int | None:
    """The time of the first packet, ns; None without packets. The runs must still be unread."""
    for item in items:
        if isinstance(item, PacketRun):
            return item.first_ns
        if isinstance(item, Packet):
            return item.timestamp_ns
    return None


def one_by_one(items: Iterable[Item | PacketRun]) -> list[Item]:
    """The packets of runs one by one, with the other items."""
    out: list[Item] = []
    for item in items:
        if isinstance(item, PacketRun):
            out += item
        else:
            out.append(item)
    return out
