"""What the two capture formats have in common: a machine from bytes to packets.

    feed(bytes) ─► [Packet | Secrets | Fault, …]          close() ─► what the end of the file leaves over

Rule 1  Pieces may have any size; the same bytes give the same items however they were cut.
Rule 2  No more than one record or block, bounded by the limits, waits for its rest.
Rule 3  What follows from damage is a Fault of the layer ``file`` with the offset of the damaged record
        or block; offsets count the uncompressed bytes of one file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from kdissect.capture.options import Option
from kdissect.capture.runs import PacketRun
from kdissect.limits import Limits
from kdissect.model import Fault, Packet, Secrets

Item = Packet | Secrets | Fault

PACKET_OVERHEAD = 24
"""About what a capture file adds to a packet's bytes: what is read is told from packets, not from files."""


class InterfaceCounts(NamedTuple):
    """What an interface counted: the last Interface Statistics Block."""

    at_ns: int
    start_ns: int | None
    """When the capture began; None where it does not tell."""
    end_ns: int | None
    options: tuple[Option, ...]
    """What else it tells: counts and comments; numbers little-endian."""


class Interface(NamedTuple):
    """Where packets were captured, if the file tells. A pcap file has one, without a name."""

    link_type: int
    """A LINKTYPE number of the tcpdump.org registry."""
    snap_length: int = 0
    """Bytes kept of each packet; 0 is no limit."""
    name: str | None = None
    description: str | None = None
    received: int | None = None
    """Packets the interface saw, by the last Interface Statistics Block (``isb_ifrecv``)."""
    dropped: int | None = None
    """Packets the interface lost for lack of resources (``isb_ifdrop``)."""
    dropped_by_system: int | None = None
    """Packets the operating system lost on their way to the capturing program (``isb_osdrop``)."""
    options: tuple[Option, ...] = ()
    """What else a pcapng file tells of it: the filter, the system, the speed …; numbers little-endian."""
    section: tuple[Option, ...] = ()
    """What a pcapng file tells of the section with it: hardware, system, application, comments."""
    counts: InterfaceCounts | None = None
    names: tuple[bytes, ...] = ()
    """The contents of the section's Name Resolution Blocks: addresses and their names."""


class Points(NamedTuple):
    """The capture points of an input whose files show one traffic as it was seen at several places."""

    names: tuple[str, ...]
    of_path: dict[str, int]
    """Of every file, as it is named, the place of its point in ``names``."""
    ahead_ns: tuple[int, ...]
    """Of every point, by how much its clock seems to be ahead of that of the first."""
    of_interface: dict[int, int]
    """Of the interfaces of the input, by the index that packets have, their points; it grows while packets
    are read."""


class Packets(Protocol):
    """The packets of a capture, wherever they come from, and whatever else it has."""

    @property
    def interfaces(self) -> Sequence[Interface]:
        """By the index that packets have; they grow."""

    def __iter__(self) -> Iterator[Item]:
        """In order."""

    def close(self) -> None:
        """Let go of what is open."""


class Reader(ABC):
    """Base of :class:`~kdissect.capture.pcap.PcapReader` and
    :class:`~kdissect.capture.pcapng.PcapngReader`.

    The readers of several files may share ``interfaces``. Each appends its own, so that an index into the
    list is unique over the whole input. Packets are numbered from 1 in their file.
    """

    def __init__(self, limits: Limits, interfaces: list[Interface]) -> None:
        self.interfaces = interfaces
        self.stopped = False
        """Nothing more can be read surely; the rest of the file need not be fed."""
        self._limits = limits
        self._number = 0
        self._offset = 0
        """Of the first byte that waits."""
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._needed = 1
        """Bytes that must wait before reading on makes sense: joins stay few when pieces are small."""

    def __getstate__(self) -> dict[str, Any]:
        """A reader may be kept, and go on later: all but what unpacks bytes, which is made again."""
        return {name: value for name, value in vars(self).items() if not callable(value)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._set_forms()

    @property
    def fed_bytes(self) -> int:
        """Bytes of the file that were fed: from there on it goes on."""
        return self._offset + self._waiting_bytes

    def goes_on(self, offset: int, packets: int) -> None:
        """Say that what is fed next stands at this offset of the file, behind so many packets."""
        self._offset, self._number = offset, packets

    def feed(self, data: bytes) -> list[Item]:
        """The items that ``data`` completes."""
        return one_by_one(self.feed_in_runs(data))

    def feed_in_runs(self, data: bytes) -> list[Item | PacketRun]:
        """The same; ordinary packets in a row may come as a run."""
        items: list[Item | PacketRun] = []
        if self.stopped or not data:
            return items
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= self._needed:
            self._run(items, final=False)
        return items

    def close(self) -> list[Item]:
        """Say that the file ends here."""
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
        """Make what unpacks bytes of this file."""

    @abstractmethod
    def _read(self, buffer: bytes, items: list[Item | PacketRun], final: bool) -> int:
        """Append what ``buffer`` holds to ``items``, set ``_needed`` and give the bytes used up."""


def first_time(items: Iterable[Item | PacketRun]) -> int | None:
    """When the first packet of these was captured, ns; None without packets. Nobody has gone through the runs
    yet."""
    for item in items:
        if isinstance(item, PacketRun):
            return item.first_ns
        if isinstance(item, Packet):
            return item.timestamp_ns
    return None


def one_by_one(items: Iterable[Item | PacketRun]) -> list[Item]:
    """The packets of runs one by one, among the other items."""
    out: list[Item] = []
    for item in items:
        if isinstance(item, PacketRun):
            out += item
        else:
            out.append(item)
    return out
