"""Packets ─► a pcapng file: one section, an interface for each link type and interface in use, times in
nanoseconds. Original lengths, comments and other options are kept. Names of addresses and counts of
interfaces are kept if the caller writes them. :mod:`~kdissect.capture.files` reads the same packets from the
result. Interfaces are numbered in the order of their first packet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import BinaryIO

from kdissect.capture.blocks import (
    counts_block,
    interface_block,
    names_block,
    packet_block,
    secrets_block,
    section_block,
)
from kdissect.capture.options import Option
from kdissect.capture.reader import Interface
from kdissect.model import Packet, Secrets

_EPOCH_OFFSET_SECONDS = -9_223_372_037
"""The time offset of interfaces with packets before 1970, because block times are unsigned."""


class PcapngWriter:
    """Writes a section to ``file``, which it neither flushes nor closes.

    :param interfaces: the known interfaces, by the index that packets have
        (:attr:`kdissect.capture.files.Capture.interfaces`; the list may still grow).
    """

    def __init__(
        self,
        file: BinaryIO,
        interfaces: Sequence[Interface] = (),
        section: Iterable[Option] | None = (),
    ) -> None:
        """:param section: the options of the section. None: the options of the first packet's section."""
        self._file = file
        self._interfaces = interfaces
        self._written: dict[tuple[int, int, bool], int] = {}
        """The index in this file, by (link type, interface, before 1970)."""
        self._has_head = False
        if section is not None:
            self._begin(section)

    def begin(self) -> None:
        """Write the head of the section, if nothing was written. So the file is valid without packets too."""
        if not self._has_head:
            self._begin(())

    def write(self, item: Packet | Secrets) -> None:
        """Append a packet, or key material for the packets after it."""
        if not self._has_head:
            self._begin(
                () if isinstance(item, Secrets) else self._known(item.interface, item.link_type).section
            )
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
        self._file.write(packet_block(index, time, item.wire_length, item.data, item.comments, item.options))

    def write_names(self, interfaces: Iterable[Interface]) -> None:
        """Write the names of addresses from the sections of these interfaces."""
        self.begin()
        for body in dict.fromkeys(body for each in interfaces for body in each.names):
            self._file.write(names_block(body))

    def write_counts(self, interfaces: Sequence[Interface]) -> None:
        """Write the counts of interfaces, after the last packet.

        :param interfaces: by the index that packets have; only interfaces with packets here are written.
        """
        for (_, interface, early), number in self._written.items():
            counts = interfaces[interface].counts if interface < len(interfaces) else None
            if counts is not None:
                offset_ns = _EPOCH_OFFSET_SECONDS * 1_000_000_000 if early else 0
                self._file.write(counts_block(number, counts, offset_ns))

    def _begin(self, section: Iterable[Option]) -> None:
        self._has_head = True
        self._file.write(section_block(section))

    def _known(self, interface: int, link_type: int) -> Interface:
        return self._interfaces[interface] if interface < len(self._interfaces) else Interface(link_type)

    def _write_interface(self, link_type: int, interface: int, early: bool) -> None:
        described = self._known(interface, link_type)._replace(link_type=link_type)
        self._file.write(interface_block(described, _EPOCH_OFFSET_SECONDS if early else 0))
