"""The vocabulary: what the layers say to each other. It imports nothing of kdissect.

Read from top to bottom it is the journey of the data:

    capture file ─► Packet ─► Segment ─► Chunk | Gap ─► Frame ─► Request, Response ─► Exchange

Everything here is a plain value. Times are integers, nanoseconds since the epoch. Packet numbers
count from 1 over the whole input, as Wireshark's ``frame.number`` does for one file. Offsets of
chunks, gaps and frames count bytes of one direction of one connection, from 0.

A defect in the captured bytes is a :class:`Fault`, a value that travels beside the data; it is never an
exception that crosses a layer. The two exceptions of kdissect that every layer knows stand here.
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
    """Bytes do not have the form their schema asks for.

    Raised by the cursor and by everything built on it. It is caught where a frame, a record batch or
    a file is decoded, and becomes a Fault there; it never reaches a user.
    """

    def __init__(self, reason: str, offset: int, kind: str = "malformed") -> None:
        super().__init__(reason)
        self.reason = reason
        self.offset = offset
        """Where, in the buffer that was being read."""
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
    """A plain value like a named tuple, whose parts are its slots: compared by them, and not to be changed
    once it is made. It is no tuple, so that compiled it holds numbers of C."""

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
        """The same but for these parts, as of a named tuple."""
        return type(self)(**({name: getattr(self, name) for name in self.__slots__} | changed))


def parts(value: Value) -> tuple[Any, ...]:
    """The parts of a value, in their order."""
    return tuple([getattr(value, name) for name in value.__slots__])


# -- capture ----------------------------------------------------------------------------------------


class Packet(Value):
    """One captured packet, as the capture file has it."""

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
        """Length on the wire; larger than ``len(data)`` where the snap length cut the packet."""
        self.interface = interface
        """Index of the interface over the whole input (pcapng sections and files have their own)."""
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
"""The type of a Decryption Secrets Block that holds a key log for TLS (draft-ietf-opsawg-pcapng, 4.7)."""


class Secrets(NamedTuple):
    """Key material that a pcapng Decryption Secrets Block carries."""

    kind: int
    """:data:`TLS_KEY_LOG`, or another of the types."""
    data: bytes


Endpoint = bytes
"""A packed IP address (4 or 16 bytes) followed by the port (2 bytes): cheap to cut from a packet,
to compare and to hash. :func:`endpoint_text` prints it."""
_OCTETS = tuple(map(str, range(256)))
_IPV4_ENDPOINT = 6
"""Bytes of one with an IPv4 address."""


def endpoint_text(endpoint: Endpoint) -> str:
    """``10.0.0.1:9092``; IPv6 addresses in brackets."""
    if len(endpoint) == _IPV4_ENDPOINT:
        # By hand: as cheap as a cache, also where there are more connections than it would hold.
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
        """Payload bytes on the wire; larger than ``len(payload)`` where the snap length cut it."""
        self.identity = identity
        """The IP identification (0 for IPv6) and the TCP checksum, in 16 bits each: copies of one packet,
        captured at several interfaces, agree in it, a retransmission hardly ever. 0 where it is not
        known."""
        self.network = network
        """What tells networks apart that may have the same addresses: the identifiers of the tunnels that
        the packet came through (VXLAN's and Geneve's network identifier, GRE's key). 0 where there is
        none."""
        self.window = window
        """The window as the header has it, not scaled; -1 where it is not known."""
        self.options = options
        """The TCP options of a SYN, and those that are longer than a timestamp: they may have a SACK."""
        self.clock = clock
        """What the sender's own clock showed, which nobody sets: the TSval of RFC 7323, nearly always in
        milliseconds. -1 where it is not known."""


# -- tcp --------------------------------------------------------------------------------------------


class Direction(Enum):
    """Which way bytes go."""

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
        """Every packet that carried a part of them, where that is not ``packet`` alone: bytes out of a TLS
        record are there when its last packet is."""


class Gap(NamedTuple):
    """Bytes of one direction that existed and were not captured."""

    offset: int
    length: int
    reason: str
    packet: int
    """The packet that settled that they are missing."""
    timestamp_ns: int
    is_exact: bool = True
    """False where the length is an estimate: records of TLS that are lost do not say what was in them."""


# -- frames and messages ----------------------------------------------------------------------------


class Frame(Value):
    """One size-prefixed unit of a direction: the int32 size is cut off, what it counts is kept."""

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
        """Of its size prefix, in the direction's stream."""
        self.payload = payload
        """The captured bytes from its start, up to the first gap."""
        self.size = size
        """The bytes it announces; larger than ``len(payload)`` where a gap or the end cut it."""
        self.first_packet = first_packet
        self.first_ns = first_ns
        self.last_packet = last_packet
        self.last_ns = last_ns
        self.packets = packets
        """Every packet that carried bytes of it."""
        self.searched = searched
        """Its beginning was found by a search, after a gap or where the capture began in mid-stream."""
        self.fault = fault
        """That it is cut, and why."""


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
    """What ``decode`` gives for it; None for structs and arrays, whose children have the values."""
    start: int
    end: int
    children: list[Node] = field(default_factory=list)
    fault: Fault | None = None
    """What is wrong here."""
    buffer: bytes | None = None
    """Bytes that were unpacked from this node's own, in which its children's ranges count."""
    is_decoded: bool = True
    """False of a struct or array that broke off. Without children nothing is known of it: it is not null."""
