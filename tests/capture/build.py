"""Capture files and packets made by hand, byte by byte."""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack

from kdissect.capture.segments import SegmentReader
from kdissect.model import ACK, PSH, Packet

# -- pcap


def pcap(
    records: Iterable[bytes] = (),
    order: str = "<",
    magic: int = 0xA1B2C3D4,
    link_type: int = 1,
    snap_length: int = 262_144,
    version: tuple[int, int] = (2, 4),
) -> bytes:
    return pack(order + "IHHIIII", magic, *version, 0, 0, snap_length, link_type) + b"".join(records)


def record(
    data: bytes,
    seconds: int = 1_700_000_000,
    fraction: int = 0,
    wire_length: int | None = None,
    captured: int | None = None,
    order: str = "<",
    extra: bytes = b"",
) -> bytes:
    captured = len(data) if captured is None else captured
    wire_length = len(data) if wire_length is None else wire_length
    return pack(order + "IIII", seconds, fraction, captured, wire_length) + extra + data


# -- pcapng


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return pack(order + "HH", code, len(value)) + padded(value)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    length = pack(order + "I", 12 + len(body))
    return pack(order + "I", kind) + length + body + length


def section(order: str = "<", options: bytes = b"") -> bytes:
    return block(0x0A0D0D0A, pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + options, order)


def interface(link_type: int = 1, snap_length: int = 0, options: bytes = b"", order: str = "<") -> bytes:
    return block(1, pack(order + "HHI", link_type, 0, snap_length) + options, order)


def enhanced(
    data: bytes,
    ticks: int = 0,
    number: int = 0,
    wire_length: int | None = None,
    options: bytes = b"",
    order: str = "<",
    captured: int | None = None,
) -> bytes:
    captured = len(data) if captured is None else captured
    wire_length = len(data) if wire_length is None else wire_length
    head = pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, captured, wire_length)
    return block(6, head + padded(data) + options, order)


def obsolete(
    data: bytes, ticks: int = 0, number: int = 0, drops: int = 0, options: bytes = b"", order: str = "<"
) -> bytes:
    head = pack(order + "HHIIII", number, drops, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(2, head + padded(data) + options, order)


def simple(data: bytes, wire_length: int | None = None, order: str = "<") -> bytes:
    return block(
        3, pack(order + "I", len(data) if wire_length is None else wire_length) + padded(data), order
    )


# -- packets

SOURCE4, DESTINATION4 = bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))
SOURCE6, DESTINATION6 = bytes(15) + b"\x01", bytes(15) + b"\x02"


def tcp(
    payload: bytes = b"",
    seq: int = 1_000,
    ack: int = 2_000,
    flags: int = ACK | PSH,
    options: bytes = b"",
    offset: int | None = None,
) -> bytes:
    offset = 5 + len(options) // 4 if offset is None else offset
    return pack(">HHIIBBHHH", 40_000, 9_092, seq, ack, offset << 4, flags, 512, 0, 0) + options + payload


def ipv4(
    payload: bytes,
    protocol: int = 6,
    total: int | None = None,
    options: bytes = b"",
    identification: int = 7,
    fragment: int = 0,
    version: int = 4,
) -> bytes:
    header_bytes = 20 + len(options)
    total = header_bytes + len(payload) if total is None else total
    first = version << 4 | header_bytes // 4
    head = pack(">BBHHHBBH", first, 0, total, identification, fragment, 64, protocol, 0)
    return head + SOURCE4 + DESTINATION4 + options + payload


def ipv6(payload: bytes, protocol: int = 6, length: int | None = None, version: int = 6) -> bytes:
    length = len(payload) if length is None else length
    return pack(">IHBB", version << 28, length, protocol, 64) + SOURCE6 + DESTINATION6 + payload


def extension(next_header: int, body: bytes = bytes(6)) -> bytes:
    """A hop-by-hop, destination options or routing header: ``body`` is 6 bytes and a multiple of 8 more."""
    return bytes((next_header, len(body) // 8)) + body


def ipv6_fragment(next_header: int, offset: int, more: bool, identification: int, data: bytes) -> bytes:
    return pack(">BBHI", next_header, 0, offset // 8 << 3 | more, identification) + data


def ethernet(payload: bytes, ether_type: int = 0x0800, tags: Iterable[int] = ()) -> bytes:
    tagged = b"".join(pack(">HH", tag, 100) for tag in tags)
    return bytes(12) + tagged + pack(">H", ether_type) + payload


def packet(
    data: bytes,
    link_type: int = 1,
    number: int = 1,
    wire_length: int | None = None,
    timestamp_ns: int = 0,
    interface_number: int = 0,
) -> Packet:
    wire_length = len(data) if wire_length is None else wire_length
    return Packet(number, timestamp_ns, link_type, data, wire_length, interface_number)


def ends_of(reader: SegmentReader, given: Packet) -> bytes | None:
    """The bytes of a packet's addresses and ports; None where it is no ordinary one."""
    at = reader.look(given.data, 0, len(given.data), given.link_type)
    return None if at < 0 else given.data[at : at + reader.ends_size]
