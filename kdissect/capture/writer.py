"""Packets ─► a pcapng file: one section, an interface for each link type and interface in use, times in
nanoseconds, original lengths and comments kept. What :mod:`~kdissect.capture.files` reads from the result
are the same packets; interfaces count in the order of their first packet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from kdissect.capture.blocks import interface_block, packet_block, secrets_block, section_block
from kdissect.capture.reader import Interface
from kdissect.model import Packet, Secrets

_EPOCH_OFFSET_SECONDS = -9_223_372_037
"""The time offset of interfaces with packets before 1970: block times are unsigned."""


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
        self._file.write(section_block())

    def write(self, item: Packet | Secrets) -> None:
        """Append a packet, or key material for the packets after it."""
        if isinstance(item, Secrets):
            self._file.write(secrets_block(item))
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
        self._file.write(packet_block(index, time, item.wire_length, item.data, item.comments))

    def _write_interface(self, link_type: int, interface: int, early: bool) -> None:
        known = self._interfaces[interface] if interface < len(self._interfaces) else Interface(link_type)
        described = known._replace(link_type=link_type)
        self._file.write(interface_block(described, _EPOCH_OFFSET_SECONDS if early else 0))
