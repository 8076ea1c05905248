"""A packet socket ─► blocks of packets, through a ring of memory that the kernel fills (TPACKET_V3).

The kernel writes packets into a block and hands the block over when it is full or some time has passed. That
needs no call for each packet and no copy between kernel and process. A block that we do not hand back in time
is not overwritten; the kernel drops packets then, and counts them.
"""

from __future__ import annotations

import errno
import mmap
import os
import socket
import sys
import time
from struct import Struct

from scapy.arch.linux import L2ListenSocket

from kdissect.capture.blocks import Captured
from kdissect.capture.reader import Interface
from kdissect.live import devices
from kdissect.live.bpf import COOKED, SNAP_LENGTH
from kdissect.live.sources import SourceCounts

assert sys.platform == "linux"

BLOCK_BYTES = 1 << 19
"""More than the largest packet takes."""
BLOCKS = 128
"""Of a ring: at 100,000 packets of 300 bytes a second it takes two seconds to fill."""
RETIRE_MS = 40
"""When a block is handed over that is not full. However little comes, the ring is full after so long for each
block: if nobody reads for five seconds, packets are dropped."""

_SOL_PACKET, _RX_RING, _STATISTICS, _VERSION = 263, 5, 6, 10
_TPACKET_V3 = 2
_TO_USER = 1
_HAS_TAG, _HAS_TAG_PROTOCOL = 1 << 4, 1 << 6
_FRAME_BYTES = 2048
"""Says nothing in this version of the ring; must divide a block."""

_request = Struct("IIIIIII").pack
_block = Struct("IIIIII").unpack_from
"""Version, offset of private bytes, status, packets, offset of the first, bytes used."""
_status = Struct("I")
_packet = Struct("IIIIIIHH").unpack_from
"""Offset of the next, seconds, nanoseconds, bytes captured, bytes on the wire, status, offset of the data."""
_tag = Struct("IH").unpack_from
"""VLAN: control information, protocol."""
_tag_bytes = Struct(">HH").pack
_TAG_AT, _ADDRESS_AT = 32, 48
_address = Struct("=H2siHBB8s").unpack_from
"""The sockaddr_ll: family, protocol, interface, hardware type, packet type, address length, address."""
_cooked = Struct(">2s2xiHBB8s").pack
"""The SLL2 header: protocol, interface, hardware type, packet type, address length, address."""


class RingListenSocket(L2ListenSocket):
    """A socket that :mod:`~kdissect.live.privileged` opened, as one of scapy's."""

    desc = "read packets at layer 2 through a TPACKET_V3 ring"

    def __init__(
        self,
        opened: socket.socket,
        interface: str,
        link_type: int,
        snap_length: int = SNAP_LENGTH,
        blocks: int = BLOCKS,
    ) -> None:
        # Not scapy's own beginning: it would open a socket, for which there is no privilege here.
        self.ins, self.iface, self.promisc = opened, interface, False
        self._interface = interface
        self.name = interface or devices.ANY
        self.interfaces = (Interface(link_type, snap_length, self.name),)
        self.link_type = link_type
        """:data:`~kdissect.live.bpf.ETHERNET` or :data:`~kdissect.live.bpf.COOKED`."""
        opened.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V3)
        size = BLOCK_BYTES * blocks
        opened.setsockopt(
            _SOL_PACKET,
            _RX_RING,
            _request(BLOCK_BYTES, blocks, _FRAME_BYTES, size // _FRAME_BYTES, RETIRE_MS, 0, 0),
        )
        self._ring = mmap.mmap(opened.fileno(), size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self._blocks = blocks
        self._next = 0
        self._counts = SourceCounts()
        self._left: int | None = None
        """Blocks that may still be read, once it was stopped."""
        self._is_down = self._is_gone = False
        self._read_statistics()  # what came before there was a ring does not count

    def read(self) -> tuple[int, list[Captured]] | None:
        """The packets of the next block; None if the kernel has handed over no more."""
        if self._left == 0:
            return None
        base = self._next * BLOCK_BYTES
        ring = self._ring
        _, _, status, count, first, _ = _block(ring, base)
        if not status & _TO_USER:
            return None
        packets: list[Captured] = []
        append = packets.append
        at = base + first
        cooked = self.link_type == COOKED
        for _ in range(count):
            following, seconds, nanoseconds, captured, wire_length, status, data_at, _ = _packet(ring, at)
            data = ring[at + data_at : at + data_at + captured]
            if cooked:
                data = self._cooked_header(at) + data
                wire_length += 20
            elif status & _HAS_TAG:
                # The tag that the network card, or the kernel, took off.
                control, protocol = _tag(ring, at + _TAG_AT)
                tag = _tag_bytes(protocol if status & _HAS_TAG_PROTOCOL else 0x8100, control & 0xFFFF)
                data = data[:12] + tag + data[12:]
                wire_length += 4
            append((seconds * 1_000_000_000 + nanoseconds, wire_length, data))
            at += following
        _status.pack_into(ring, base + 8, 0)
        self._next = (self._next + 1) % self._blocks
        if self._left is not None:
            self._left -= 1
        return 0, packets

    def _cooked_header(self, at: int) -> bytes:
        _, protocol, index, hardware, kind, length, address = _address(self._ring, at + _ADDRESS_AT)
        return _cooked(protocol, index, hardware, kind, length, address)

    def counts(self) -> SourceCounts:
        """What the kernel counted so far."""
        received, dropped = self._read_statistics()
        self._counts = SourceCounts(self._counts.received + received, self._counts.dropped + dropped)
        return self._counts

    def _read_statistics(self) -> tuple[int, int]:
        # The kernel begins anew at each call.
        said = self.ins.getsockopt(_SOL_PACKET, _STATISTICS, 12)
        return int.from_bytes(said[:4], "little"), int.from_bytes(said[4:8], "little")

    def fill(self) -> float:
        """The share of the ring that waits for us."""
        waiting: int = 0
        for at in range(self._blocks):
            (status,) = _status.unpack_from(self._ring, at * BLOCK_BYTES + 8)
            waiting += status & _TO_USER
        return waiting / self._blocks

    def trouble(self) -> str | None:
        """What has gone wrong with the interface since the last call, or right again."""
        error = self.ins.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error == errno.ENETDOWN:
            self._is_down = True
            self._is_gone = devices.is_up(self._interface) is None
            what = "is gone" if self._is_gone else "went down; packets come again when it is up"
            return f"{self.name} {what}"
        if error:
            return f"{self.name}: {os.strerror(error)}"
        if self._is_down and not self._is_gone:
            found = devices.is_up(self._interface)
            if found is None:  # the kernel says nothing more of one that was down before
                self._is_gone = True
                return f"{self.name} is gone"
            if found:
                self._is_down = False
                return f"{self.name} is up again"
        return None

    def is_over(self) -> bool:
        """Whether the interface does not exist any more."""
        return self._is_gone

    def has_vanished(self) -> bool:
        """The same: there is no other end."""
        return self._is_gone

    def stop(self) -> None:
        """Let the kernel hand over the block it is filling; one ring full is read from now on, no more."""
        time.sleep(3 * RETIRE_MS / 1_000)
        self._left = self._blocks

    def close(self) -> None:
        """Let go of the ring and the socket."""
        if not self.closed:
            self._ring.close()
            super().close()
