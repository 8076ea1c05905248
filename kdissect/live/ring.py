"""A packet socket ─► blocks of packets, through a ring of memory that the kernel fills (TPACKET_V3).

The kernel writes packets into a block, and releases the block when it is full or some time has passed. That
needs no call for each packet and no copy between kernel and process. A block that is not returned in time is
not overwritten; the kernel drops new packets then, and counts them.
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
"""The size of a block, larger than the largest packet."""
BLOCKS = 128
"""The number of blocks of a ring. At 100,000 packets of 300 bytes a second it takes two seconds to fill."""
RETIRE_MS = 40
"""The time after which the kernel releases a block that is not full. So even a few packets fill the ring
after this time for each block: if nobody reads for five seconds, packets are dropped."""

_SOL_PACKET, _RX_RING, _STATISTICS, _VERSION = 263, 5, 6, 10
_TPACKET_V3 = 2
_TO_USER = 1
_HAS_TAG, _HAS_TAG_PROTOCOL = 1 << 4, 1 << 6
_FRAME_BYTES = 2048
"""Not used in this version of the ring; must divide a block."""

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
        # Do not call scapy's __init__: it would open a socket, and this process has no privilege for that.
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
        """The number of blocks that may still be read after stopping."""
        self._is_down = self._is_gone = False
        self._read_statistics()  # packets before the ring do not count

    def read(self) -> tuple[int, list[Captured]] | None:
        """The packets of the next block; None if the kernel has released no more."""
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
                # Restore the tag that the network card or the kernel removed.
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
        """The kernel's counts so far."""
        received, dropped = self._read_statistics()
        self._counts = SourceCounts(self._counts.received + received, self._counts.dropped + dropped)
        return self._counts

    def _read_statistics(self) -> tuple[int, int]:
        # The kernel resets the counts at each call.
        said = self.ins.getsockopt(_SOL_PACKET, _STATISTICS, 12)
        return int.from_bytes(said[:4], "little"), int.from_bytes(said[4:8], "little")

    def fill(self) -> float:
        """The share of the ring that waits to be read."""
        waiting: int = 0
        for at in range(self._blocks):
            (status,) = _status.unpack_from(self._ring, at * BLOCK_BYTES + 8)
            waiting += status & _TO_USER
        return waiting / self._blocks

    def trouble(self) -> str | None:
        """A change of the interface's state since the last call, in words."""
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
            if found is None:  # the kernel reports no error for an interface that was already down
                self._is_gone = True
                return f"{self.name} is gone"
            if found:
                self._is_down = False
                return f"{self.name} is up again"
        return None

    def is_over(self) -> bool:
        """Whether the interface no longer exists."""
        return self._is_gone

    def has_vanished(self) -> bool:
        """Whether the interface no longer exists: a ring ends for no other reason."""
        return self._is_gone

    def stop(self) -> None:
        """Let the kernel release the block that it is filling. From now on at most one full ring is read."""
        time.sleep(3 * RETIRE_MS / 1_000)
        self._left = self._blocks

    def close(self) -> None:
        """Release the ring and the socket."""
        if not self.closed:
            self._ring.close()
            super().close()
