"""The vocabulary: the values that layers pass to each other. It imports nothing of kdissect.

Read from top to bottom, it is the journey of the data:

    capture file ─► Packet ─► Segment ─► Chunk | Gap ─► Frame ─► Request, Response ─► Exchange

Everything here is a plain value. Times are integers, nanoseconds since the epoch. Packet numbers count from 1
over the whole input, as Wireshark's ``frame.number`` does for one file. Offsets of chunks, gaps and frames
count bytes of one direction of one connection, from 0.

A defect in the captured bytes is a :class:`Fault`, a value that travels beside the data. It is never an
exception that crosses a layer. The two exceptions that every layer uses are defined here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Any, NamedTuple, Self


class CaptureError(Exception):
    """kdissect cannot read the input at all: not a capture, no permission, no such file."""


class DecodeError(Exception):
    """Bytes do not fit their schema.

    Raised by the cursor and by all code that uses it. The code that decodes a frame, a record batch or a file
    catches it and makes a Fault of it. It never reaches a user.
    """

    def __init__(self, reason: str, offset: int, kind: str = "malformed") -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset
        """The position in the buffer that was being read."""
        self.kind = kind
        """A key of :data:`kdissect.faults.KINDS`."""


class Fault(NamedTuple):
    """A defect in the captured bytes, and its place."""

    layer: str
    """``file``, ``link``, ``tcp``, ``frame``, ``session``, ``message``, ``records`` or ``tls``."""
    kind: str
    """One of the closed list in :mod:`kdissect.faults`."""
    message: str
    """What is wrong, in words, with the numbers that show it."""
    packet: int | None = None
    """The packet in which it was found; None without packets (log files, raw bytes)."""
    offset: int | None = None
    """Offset in the file for the layer ``file``, in the direction's stream for ``tcp`` and ``frame``, in the
    message for ``session`` and ``message``, and in the record set for ``records``."""
    connection: int | None = None
    exchange: int | None = None


class Value:
    """A plain value like a named tuple. Its parts are its slots: they are compared, and must not be changed
    once it is made. It is not a tuple, so that its compiled form can hold C numbers."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and parts(other) == parts(self)

    def __hash__(self) -> int:
        return hash(parts(self))

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({told})"

    def __reduce__(self) -> tuple[type[Value], tuple[Any, ...]]:
        return type(self), parts(self)

    def _replace(self, **changed: Any) -> Self:
        """A copy with some parts replaced, as of a named tuple."""
        return type(self)(**({name: getattr(self, name) for name in self.__slots__} | changed))


def parts(value: Value) -> tuple[Any, ...]:
    """The parts of a value, in order."""
    return tuple([getattr(value, name) for name in value.__slots__])


# -- capture ----------------------------------------------------------------------------------------


class Packet(Value):
    """One captured packet, as in the capture file."""

    __slots__ = (
        *("number", "timestamp_ns", "link_type", "data", "wire_length", "interface", "comments"),
        "options",
    )

    def __init__(
        self,
        number: int,
        timestamp_ns: int,
        link_type: int,
        data: bytes,
        wire_length: int,
        interface: int = 0,
        comments: tuple[str, ...] = (),
        options: tuple[tuple[int, bytes], ...] = (),
    ) -> None:
        self.number = number
        self.timestamp_ns = timestamp_ns
        self.link_type = link_type
        """A LINKTYPE number of the tcpdump.org registry."""
        self.data = data
        self.wire_length = wire_length
        """Length on the wire; larger than ``len(data)`` if the snap length cut the packet."""
        self.interface = interface
        """Index of the interface over the whole input. (pcapng sections and files each count their own.)"""
        self.comments = comments
        self.options = options
        """Its other options (pcapng): code and value, numbers little-endian."""


def renumbered(packet: Packet, number: int, interface: int) -> Packet:
    """The same packet, numbered for an input of several files."""
    other = Packet.__new__(Packet)
    other.number, other.timestamp_ns = number, packet.timestamp_ns
    other.link_type, other.data, other.wire_length = packet.link_type, packet.data, packet.wire_length
    other.interface, other.comments = interface, packet.comments
    other.options = packet.options
    return other


TLS_KEY_LOG = 0x544C534B
"""The type of a Decryption Secrets Block with a key log for TLS (draft-ietf-opsawg-pcapng, 4.7)."""


class Secrets(NamedTuple):
    """Key material in a pcapng Decryption Secrets Block."""

    kind: int
    """:data:`TLS_KEY_LOG`, or another type."""
    data: bytes


Endpoint = bytes
"""A packed IP address (4 or 16 bytes) followed by the port (2 bytes): cheap to cut from a packet,
to compare and to hash. :func:`endpoint_text` prints it."""
_OCTETS = tuple(map(str, range(256)))
_IPV4_ENDPOINT = 6
"""The bytes of an endpoint with an IPv4 address."""


def endpoint_text(endpoint: Endpoint) -> str:
    """``10.0.0.1:9092``; IPv6 addresses in brackets."""
    if len(endpoint) == _IPV4_ENDPOINT:
        # Written out: as fast as a cache, even with more connections than a cache would hold.
        part, raw = _OCTETS, endpoint
        return f"{part[raw[0]]}.{part[raw[1]]}.{part[raw[2]]}.{part[raw[3]]}:{raw[4] << 8 | raw[5]}"
    return _ipv6_text(endpoint)


@lru_cache(maxsize=4096)
def _ipv6_text(endpoint: Endpoint) -> str:
    return f"[{IPv6Address(endpoint[:-2])}]:{int.from_bytes(endpoint[-2:], 'big')}"


FIN, SYN, RST, PSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10


class Segment(Value):
    """One TCP segment."""

    __slots__ = (
        *("packet", "timestamp_ns", "source", "destination", "seq", "ack", "flags", "payload", "length"),
        *("identity", "network", "window", "options", "clock"),
    )

    def __init__(
        self,
        packet: int,
        timestamp_ns: int,
        source: Endpoint,
        destination: Endpoint,
        seq: int,
        ack: int | None,
        flags: int,
        payload: bytes,
        length: int,
        identity: int = 0,
        network: int = 0,
        window: int = -1,
        options: bytes = b"",
        clock: int = -1,
    ) -> None:
        self.packet = packet
        self.timestamp_ns = timestamp_ns
        self.source = source
        self.destination = destination
        self.seq = seq
        self.ack = ack
        """The acknowledgement number; None without the ACK flag."""
        self.flags = flags
        self.payload = payload
        self.length = length
        """Payload bytes on the wire; larger than ``len(payload)`` if the snap length cut the packet."""
        self.identity = identity
        """The IP identification (0 for IPv6) and the TCP checksum, in 16 bits each. Copies of one packet,
        captured at several interfaces, have the same value; a retransmission hardly ever has. 0 if
        unknown."""
        self.network = network
        """Distinguishes networks that may have the same addresses: the identifiers of the tunnels that the
        packet came through (VXLAN's and Geneve's network identifier, GRE's key). 0 without a tunnel."""
        self.window = window
        """The window in the header, not scaled; -1 if unknown."""
        self.options = options
        """The TCP options of a SYN, and any options longer than a timestamp, which may contain a SACK."""
        self.clock = clock
        """The sender's own clock, which nobody sets: the TSval of RFC 7323, nearly always in milliseconds. -1
        if unknown."""


# -- tcp --------------------------------------------------------------------------------------------


class Direction(Enum):
    """The direction in which bytes go."""

    TO_BROKER = "to broker"
    FROM_BROKER = "from broker"


class Chunk(Value):
    """The next bytes of one direction, in order, each once."""

    __slots__ = ("offset", "data", "packet", "timestamp_ns", "packets")  # noqa: RUF023 - the order counts

    def __init__(
        self, offset: int, data: bytes, packet: int, timestamp_ns: int, packets: tuple[int, ...] = ()
    ) -> None:
        self.offset = offset
        self.data = data
        self.packet = packet
        self.timestamp_ns = timestamp_ns
        self.packets = packets
        """Every packet with a part of the bytes, if ``packet`` is not the only one. Bytes of a TLS record are
        available when its last packet arrives."""


class Gap(NamedTuple):
    """Bytes of one direction that existed and were not captured."""

    offset: int
    length: int
    reason: str
    packet: int
    """The packet that showed that they are missing."""
    timestamp_ns: int
    is_exact: bool = True
    """False if the length is an estimate: the length of data in lost TLS records is unknown."""


# -- frames and messages ----------------------------------------------------------------------------


class Frame(Value):
    """One size-prefixed unit of a direction: the payload, without the int32 size."""

    __slots__ = (
        *("direction", "offset", "payload", "size", "first_packet", "first_ns", "last_packet", "last_ns"),
        *("packets", "searched", "fault"),
    )

    def __init__(
        self,
        direction: Direction,
        offset: int,
        payload: bytes,
        size: int,
        first_packet: int,
        first_ns: int,
        last_packet: int,
        last_ns: int,
        packets: tuple[int, ...],
        searched: bool = False,
        fault: Fault | None = None,
    ) -> None:
        self.direction = direction
        self.offset = offset
        """The offset of its size prefix in the direction's stream."""
        self.payload = payload
        """The captured bytes from its start, up to the first gap."""
        self.size = size
        """The bytes that it announces; larger than ``len(payload)`` if a gap or the end cut it."""
        self.first_packet = first_packet
        self.first_ns = first_ns
        self.last_packet = last_packet
        self.last_ns = last_ns
        self.packets = packets
        """Every packet with bytes of it."""
        self.searched = searched
        """Whether its beginning was found by a search, after a gap or after the capture began in
        mid-stream."""
        self.fault = fault
        """The fault of a cut frame, with the reason."""


class Skipped(NamedTuple):
    """Captured bytes of a stream that are in no frame, and why."""

    offset: int
    length: int
    reason: str
    packet: int


@dataclass(slots=True)
class Node:
    """One line of the tree that ``annotate`` draws: a value and the bytes it was read from.

    ``start`` and ``end`` are offsets in the buffer of the message, or of the nearest ancestor that
    has a ``buffer`` of its own (decompressed records). The nodes without children, read in order,
    cover every byte of their buffer once.
    """

    name: str
    """Kafka's field name in its JSON spelling, ``[i]`` for an array's element, or a word in
    parentheses for bytes that frame a value, such as ``(length)``."""
    type: str
    """Kafka's name of the type: ``compact string``, ``int32``, ``[]FetchTopic`` …"""
    value: object
    """The result of ``decode`` for it; None for structs and arrays, whose children have the values."""
    start: int
    end: int
    children: list[Node] = field(default_factory=list)
    fault: Fault | None = None
    """The fault at this place."""
    buffer: bytes | None = None
    """The bytes unpacked from this node's own bytes; its children's ranges count in them."""
    is_decoded: bool = True
    """False for a struct or array that is incomplete. Without children its value is unknown: it is not
    null."""
