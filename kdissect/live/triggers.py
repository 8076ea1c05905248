"""Packets, and moments of interest ─► a pcapng file around each moment.

The latest packets are kept in memory, as far back as ``before_ns`` and at most ``most_bytes``. At a hit they
are written, together with the packets of the next ``after_ns``. A hit in that time extends it, in the same
file. Times are those of the packets.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import BinaryIO

from kdissect.capture.reader import Interface
from kdissect.capture.writer import PcapngWriter
from kdissect.live.rotation import file_name
from kdissect.model import Packet, Secrets

MOST_BYTES = 256 << 20
"""The most bytes of packets kept in memory."""
_PACKET_COST = 200
"""About how many bytes a packet takes besides its data."""


class CaptureTrigger:
    """Writes files named ``path`` with a number and a time.

    :param interfaces: the interfaces of the packets; more may be added.
    :param began: gets the path of each file.
    """

    def __init__(
        self,
        path: str,
        interfaces: Sequence[Interface],
        before_ns: int,
        after_ns: int,
        began: Callable[[str], None],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.hits = self.files = 0
        """The numbers of hits and of files."""
        self._path = path
        self._interfaces = interfaces
        self._before_ns = before_ns
        self._after_ns = after_ns
        self._began = began
        self._most_bytes = most_bytes
        self._kept: deque[Packet] = deque()
        self.kept_bytes = 0
        """About how many bytes the packets in memory take."""
        self._latest_ns = 0
        self._file: BinaryIO | None = None
        self._writer: PcapngWriter | None = None
        self._until_ns = 0

    def packet(self, item: Packet | Secrets) -> None:
        """Take in the next packet. Call this before its events are handled. Secrets are ignored.

        :raises OSError: a file cannot be written.
        """
        if not isinstance(item, Packet):
            return
        self._latest_ns = item.timestamp_ns
        if self._writer is not None:
            if item.timestamp_ns <= self._until_ns:
                self._writer.write(item)
                return
            self._end()
        self._kept.append(item)
        self.kept_bytes += len(item.data) + _PACKET_COST
        self._forget(item.timestamp_ns - self._before_ns)

    def _forget(self, since_ns: int) -> None:
        kept = self._kept
        while kept and (kept[0].timestamp_ns < since_ns or self.kept_bytes > self._most_bytes):
            self.kept_bytes -= len(kept.popleft().data) + _PACKET_COST

    def hit(self) -> None:
        """Mark the latest packet as a moment of interest.

        :raises OSError: the file cannot be written.
        """
        self.hits += 1
        self._until_ns = self._latest_ns + self._after_ns
        if self._writer is not None:
            return
        path = file_name(self._path, self.files + 1, self._latest_ns)
        # Readable for the owner only: captures may hold passwords.
        self._file = open(path, "wb", opener=_ours_alone)  # noqa: SIM115 - closed when the time is over
        self.files += 1
        self._began(path)
        self._writer = PcapngWriter(self._file, self._interfaces)
        for packet in self._kept:
            self._writer.write(packet)
        self._kept.clear()
        self.kept_bytes = 0

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = self._writer = None

    def close(self) -> None:
        """End the file: no more packets come."""
        self._end()


def _ours_alone(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
