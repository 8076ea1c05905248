"""The blocks of a pcapng file, as bytes: little-endian, times in nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from kdissect import __version__
from kdissect.capture.options import (
    APPLICATION,
    COMMENT,
    END_TIME,
    INTERFACE_DESCRIPTION,
    INTERFACE_NAME,
    START_TIME,
    TIME_OFFSET,
    TIME_RESOLUTION,
    Option,
)
from kdissect.capture.reader import Interface, InterfaceCounts
from kdissect.capture.resync import ENHANCED_PACKET, INTERFACE, NAMES, SECRETS, SECTION, STATISTICS
from kdissect.model import Secrets

WRITER = f"kdissect {__version__}".encode()
"""The application that a section names as its writer."""
_RECEIVED, _DROPPED, _DELIVERED = 4, 5, 8
"""The codes of options in an Interface Statistics Block."""
_LONGEST_OPTION = 0xFFFC

Captured = tuple[int, int, bytes]
"""A captured packet: time in nanoseconds, length on the wire, data."""

_head = Struct("<II").pack
_option = Struct("<HH").pack
_uint32 = Struct("<I").pack
_section = Struct("<IHHq").pack
_interface = Struct("<HHI").pack
_statistics = Struct("<III").pack
_time = Struct("<II").pack
_enhanced = Struct("<IIIIIII").pack
_PADDING = (b"", b"\0\0\0", b"\0\0", b"\0")
"""The padding, by the length modulo four."""


def section_block(options: Iterable[Option] = ()) -> bytes:
    """The head of a section of unknown length.

    :param options: the section's options. If they do not name the application, it is kdissect.
    """
    told = tuple(options)
    if all(code != APPLICATION for code, _ in told):
        told = (*told, (APPLICATION, WRITER))
    return _block(SECTION, _section(0x1A2B3C4D, 1, 0, -1) + _options(*told))


def interface_block(interface: Interface, offset_seconds: int = 0) -> bytes:
    """The block of an interface; the times of its packets count from ``offset_seconds``."""
    options = [(TIME_RESOLUTION, b"\x09")]
    if interface.name is not None:
        options.append((INTERFACE_NAME, _cut(interface.name.encode())))
    if interface.description is not None:
        options.append((INTERFACE_DESCRIPTION, _cut(interface.description.encode())))
    if offset_seconds:
        options.append((TIME_OFFSET, offset_seconds.to_bytes(8, "little", signed=True)))
    options += interface.options
    head = _interface(interface.link_type, 0, interface.snap_length)
    return _block(INTERFACE, head + _options(*options))


def statistics_block(
    number: int, now_ns: int, start_ns: int, received: int, dropped: int, delivered: int
) -> bytes:
    """The block of an interface's counts since the capture began: packets received, packets lost, and packets
    in this file and the files before it."""
    counts = ((_RECEIVED, received), (_DROPPED, dropped), (_DELIVERED, delivered))
    body = _statistics(number, now_ns >> 32, now_ns & 0xFFFFFFFF) + _options(
        (START_TIME, _time(start_ns >> 32, start_ns & 0xFFFFFFFF)),
        (END_TIME, _time(now_ns >> 32, now_ns & 0xFFFFFFFF)),
        *((code, count.to_bytes(8, "little")) for code, count in counts),
    )
    return _block(STATISTICS, body)


def counts_block(number: int, counts: InterfaceCounts, offset_ns: int = 0) -> bytes:
    """The block of the counts of interface ``number``, as read from a file.

    :param offset_ns: the offset of its packets' times.
    """
    times = [
        (code, _time(*_halves(ns - offset_ns)))
        for code, ns in ((START_TIME, counts.start_ns), (END_TIME, counts.end_ns))
        if ns is not None
    ]
    body = _statistics(number, *_halves(counts.at_ns - offset_ns))
    return _block(STATISTICS, body + _options(*times, *counts.options))


def _halves(ns: int) -> tuple[int, int]:
    ticks = min(max(ns, 0), (1 << 64) - 1)
    return ticks >> 32, ticks & 0xFFFFFFFF


def names_block(body: bytes) -> bytes:
    """The block of addresses and their names (:func:`kdissect.capture.names.names_body`)."""
    return _block(NAMES, body)


def secrets_block(secrets: Secrets) -> bytes:
    """The block of key material for the packets after it."""
    return _block(SECRETS, _uint32(secrets.kind) + _uint32(len(secrets.data)) + _padded(secrets.data))


def packet_block(
    number: int,
    time: int,
    wire_length: int,
    data: bytes,
    comments: Iterable[str] = (),
    others: tuple[Option, ...] = (),
) -> bytes:
    """The block of a packet of interface ``number``; ``time`` counts from the interface's offset.

    :param others: options beside comments.
    """
    options = b""
    if comments or others:
        options = _options(*others, *((COMMENT, _cut(text.encode())) for text in comments))
    padding = _PADDING[len(data) & 3]
    length = 32 + len(data) + len(padding) + len(options)
    head = _enhanced(ENHANCED_PACKET, length, number, time >> 32, time & 0xFFFFFFFF, len(data), wire_length)
    return b"".join((head, data, padding, options, _uint32(length)))


def packet_blocks(number: int, packets: Iterable[Captured]) -> bytes:
    """The blocks of many packets of interface ``number``, without comments."""
    parts: list[bytes] = []
    append = parts.append
    for time, wire_length, data in packets:
        size = len(data)
        padding = _PADDING[size & 3]
        length = 32 + size + len(padding)
        append(_enhanced(ENHANCED_PACKET, length, number, time >> 32, time & 0xFFFFFFFF, size, wire_length))
        append(data)
        append(padding + _uint32(length))
    return b"".join(parts)


def _block(kind: int, body: bytes) -> bytes:
    length = 12 + len(body)
    return _head(kind, length) + body + _uint32(length)


def _options(*options: tuple[int, bytes]) -> bytes:
    parts = [_option(code, len(value)) + _padded(value) for code, value in options]
    return b"".join(parts) + _option(0, 0)


def _padded(data: bytes) -> bytes:
    return data + _PADDING[len(data) & 3]


def _cut(text: bytes) -> bytes:
    """Cut UTF-8 between characters so that it fits an option (a comment read with U+FFFD may have grown)."""
    return text if len(text) <= _LONGEST_OPTION else text[:_LONGEST_OPTION].decode("utf-8", "ignore").encode()
