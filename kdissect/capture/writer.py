"""Packets ─► a pcapng file: one section, an interface for each link type and interface in use, times in
nanoseconds, original lengths and comments kept. What :mod:`~kdissect.capture.files` reads from the result
are the same packets; interfaces count in the order of their first packet."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import BinaryIO

from kdissect import __version__
from kdissect.capture.options import (
    COMMENT,
    INTERFACE_DESCRIPTION,
    INTERFACE_NAME,
    TIME_OFFSET,
    TIME_RESOLUTION,
)
from kdissect.capture.reader import Interface
from kdissect.capture.resync import ENHANCED_PACKET, INTERFACE, SECRETS, SECTION
from kdissect.model import Packet, Secrets

_APPLICATION = 4
_LONGEST_OPTION = 0xFFFC

_EPOCH_OFFSET_SECONDS = -9_223_372_037
"""The time offset of interfaces with packets before 1970: block times are unsigned."""

_block = Struct("<II").pack
_option = Struct("<HH").pack
_uint32 = Struct("<I").pack
_interface = Struct("<HHI").pack
_enhanced = Struct("<IIIIIII").pack


class PcapngWriter:
    """Writes a section to ``file``, which it neither flushes nor closes.

    :param interfaces: what is known of the interfaces, by the index that packets have
        (:attr:`kdissect.capture.files.Capture.interfaces`; it may still grow).
    """

    def __init__(self, file: BinaryIO, interfaces: Sequence[Interface] = ()) -> None:
        self._file = file
        self._interfaces = interfaces
        self._written: dict[tuple[int, int, bool], int] = {}
        """(link type, interface, before 1970): index in this file."""
        body = Struct("<IHHq").pack(0x1A2B3C4D, 1, 0, -1)
        self._write_block(SECTION, body + _options((_APPLICATION, f"kdissect {__version__}".encode())))

    def write(self, item: Packet | Secrets) -> None:
        """Append a packet, or key material for the packets after it."""
        if isinstance(item, Secrets):
            body = _uint32(item.kind) + _uint32(len(item.data)) + _padded(item.data)
            self._write_block(SECRETS, body)
            return
        time = item.timestamp_ns
        early = time < 0
        key = (item.link_type, item.interface, early)
        index = self._written.get(key)
        if index is None:
            index = self._written[key] = len(self._written)
            self._write_interface(*key)
        if early:
            time -= _EPOCH_OFFSET_SECONDS * 1_000_000_000
        data = item.data
        padding = b"\0" * (-len(data) & 3)
        options = (
            _options(*((COMMENT, _cut(text.encode())) for text in item.comments)) if item.comments else b""
        )
        length = 32 + len(data) + len(padding) + len(options)
        head = _enhanced(
            ENHANCED_PACKET, length, index, time >> 32, time & 0xFFFFFFFF, len(data), item.wire_length
        )
        self._file.write(b"".join((head, data, padding, options, _uint32(length))))

    def _write_interface(self, link_type: int, interface: int, early: bool) -> None:
        known = self._interfaces[interface] if interface < len(self._interfaces) else Interface(link_type)
        options = [(TIME_RESOLUTION, b"\x09")]
        if known.name is not None:
            options.append((INTERFACE_NAME, _cut(known.name.encode())))
        if known.description is not None:
            options.append((INTERFACE_DESCRIPTION, _cut(known.description.encode())))
        if early:
            options.append((TIME_OFFSET, _EPOCH_OFFSET_SECONDS.to_bytes(8, "little", signed=True)))
        self._write_block(INTERFACE, _interface(link_type, 0, known.snap_length) + _options(*options))

    def _write_block(self, kind: int, body: bytes) -> None:
        length = 12 + len(body)
        self._file.write(_block(kind, length) + body + _uint32(length))


def _options(*options: tuple[int, bytes]) -> bytes:
    parts = [_option(code, len(value)) + _padded(value) for code, value in options]
    return b"".join(parts) + _option(0, 0)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) & 3)


def _cut(text: bytes) -> bytes:
    """UTF-8 that fits an option, cut between characters (a comment read with U+FFFD may have grown)."""
    return text if len(text) <= _LONGEST_OPTION else text[:_LONGEST_OPTION].decode("utf-8", "ignore").encode()
