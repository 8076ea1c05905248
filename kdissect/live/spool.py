"""Blocks of packets ─► rotating pcapng files, each valid at any time.

Only complete pcapng blocks are written. If the disk is full, a partly written block is removed, and its
packets are counted as lost. The capture continues. The file continues, too, when there is room. When writing
has gone well for a while, the spool reports the lost packets with their first and last time. A file ends with
the counts of its interfaces since the capture began (Interface Statistics Blocks), as dumpcap's files do.
"""

from __future__ import annotations

import errno
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from kdissect.capture.blocks import (
    Captured,
    interface_block,
    packet_blocks,
    section_block,
    statistics_block,
)
from kdissect.capture.reader import Interface
from kdissect.live.disk_limit import SpoolRoom
from kdissect.live.journal import Begun, Complete, Entry, Lost
from kdissect.live.rotation import Bounds, file_name
from kdissect.live.sources import SourceCounts
from kdissect.system import OPENING

SECOND = 1_000_000_000
_BLOCK_BYTES = 32
"""The bytes of a packet's block besides its data."""
_CALM_SECONDS = 1.0
"""How long no packet must be lost before a loss is reported: losses in quick succession are one."""


class SystemClocks:
    """Both clocks of the system: one can be set, the other cannot."""

    def wall_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return time.time_ns()

    def seconds(self) -> float:
        """Seconds of a clock that cannot be set."""
        return time.monotonic()


class _SpoolFile:
    """A file that is being written, always with complete blocks."""

    def __init__(self, path: str, clock: SystemClocks) -> None:
        """:raises OSError: the file cannot be created."""
        self.path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OPENING, 0o600)
        self.bytes = self.packets = 0
        self.began_ns = clock.wall_ns()
        self.began_at = clock.seconds()

    def write(self, blocks: bytes) -> None:
        """Append blocks.

        :raises OSError: they cannot be written; then the file has no part of them.
        """
        rest = memoryview(blocks)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError as error:
            with suppress(OSError):  # a pipe without a reader
                os.ftruncate(self._descriptor, self.bytes)
                os.lseek(self._descriptor, self.bytes, os.SEEK_SET)
            error.filename = self.path
            raise
        self.bytes += len(blocks)

    def close(self) -> None:
        os.close(self._descriptor)


class Spool:
    """Writes the files of one capture.

    :param path: the file; with bounds that rotate, each file has its number and time in its name.
    :param tell: gets each file that is begun, and each loss.
    :param stop: the limits of the capture: beyond these bytes, packets and files nothing is written.
    :param room: how much all files may take. It decides how long each file is; ``bounds`` must be empty then.
    :raises OSError: the first file cannot be written.
    """

    def __init__(
        self,
        path: str,
        bounds: Bounds,
        clock: SystemClocks,
        report: Callable[[Entry], None],
        stop: Bounds = Bounds(),  # noqa: B008 - it cannot be changed
        room: SpoolRoom | None = None,
    ) -> None:
        self._path = path
        self._stop = stop
        self._interfaces: list[Interface] = []
        self._bounds = bounds
        self._room = room
        self._clock = clock
        self._report = report
        self._start_ns = clock.wall_ns()
        self._kept: deque[str] = deque()
        self.bytes = self.files = self.packets = 0
        """The totals of all files."""
        self._lost: list[int] = []
        """The number of lost packets, by interface."""
        self._loss: Lost | None = None
        """The latest loss, if it is not reported yet."""
        self._lost_at = 0.0
        self.counts: list[SourceCounts] = []
        """The counts of sources, by interface."""
        self._delivered: list[int] = []
        self._file: _SpoolFile | None = None
        self._look()
        self._file = self._begin()

    @property
    def failure(self) -> str | None:
        """Why packets are being lost; None if they are not."""
        return None if self._loss is None else self._loss.why

    @property
    def lost(self) -> int:
        """The number of packets that could not be written."""
        return sum(self._lost)

    @property
    def is_complete(self) -> bool:
        """Whether a limit is reached, so that nothing more is written."""
        files = self._stop.files
        if files is not None and self._file is None and self.files >= files:
            return True
        return self._stop.are_reached(0, self.bytes, self.packets)

    def add(self, interface: Interface) -> int:
        """Add an interface; return its number."""
        self._interfaces.append(interface)
        self.counts.append(SourceCounts())
        self._delivered.append(0)
        self._lost.append(0)
        if self._file is not None:
            try:
                self._write(self._file, interface_block(interface))
            except OSError:  # this file lacks the interface: begin the next file, which has it
                self._end_file()
        return len(self._interfaces) - 1

    def write(self, interface: int, packets: Sequence[Captured]) -> None:
        """Append packets of an interface; begins a new file whenever it is time."""
        done = 0
        while done < len(packets):
            self.tick()
            if self.is_complete:
                return
            end = done + self._fitting(packets, done)
            self._append(interface, packets[done:end])
            done = end

    def _fitting(self, packets: Sequence[Captured], start: int) -> int:
        """How many of the packets, from ``start`` on, go to the current file: at least one."""
        count = len(packets) - start
        size, written = (0, 0) if self._file is None else (self._file.bytes, self._file.packets)
        rooms: list[int] = []
        for bounds, has_bytes, has_packets in (
            (self._bounds, size, written),
            (self._stop, self.bytes, self.packets),
        ):
            if bounds.packets is not None:
                count = min(count, max(1, bounds.packets - has_packets))
            if bounds.bytes is not None:
                rooms.append(bounds.bytes - has_bytes)
        if self._room is not None:
            rooms.append(self._room.file_bytes - size)
        if not rooms:
            return count
        room = min(rooms)
        for taken in range(count):
            room -= _BLOCK_BYTES + len(packets[start + taken][2])
            if room <= 0:
                return taken + 1
        return count

    def _append(self, interface: int, packets: Sequence[Captured]) -> None:
        blocks = packet_blocks(interface, packets)
        try:
            self._write_packets(blocks)
        except OSError as error:
            if self._is_no_room(error) and self._room is not None and self._room.make(len(blocks)):
                try:
                    self._write_packets(blocks)
                except OSError as again:
                    self._lose(interface, packets, again)
                    return
            else:
                self._lose(interface, packets, error)
                return
        assert self._file is not None
        self._file.packets += len(packets)
        self.packets += len(packets)
        self._delivered[interface] += len(packets)

    @staticmethod
    def _is_no_room(error: OSError) -> bool:
        return error.errno in (errno.ENOSPC, errno.EDQUOT)

    def _write_packets(self, blocks: bytes) -> None:
        """:raises OSError: there is no room for the blocks, or they cannot be written."""
        room = self._room
        if room is not None and not room.takes(len(blocks) + (0 if self._file is None else self._file.bytes)):
            raise OSError(errno.ENOSPC, "", room.why_full())
        if self._file is None:
            self._file = self._begin()
        self._write(self._file, blocks)

    def _lose(self, interface: int, packets: Sequence[Captured], error: OSError) -> None:
        self._lost[interface] += len(packets)
        self._lost_at = self._clock.seconds()
        first_ns, last_ns = packets[0][0], packets[-1][0]
        loss = self._loss
        if loss is None:
            why = f"{error.filename}: {error.strerror}" if error.strerror else str(error.filename)
            loss = Lost(0, self.packets, first_ns, last_ns, why)
        self._loss = loss._replace(
            packets=loss.packets + len(packets),
            first_ns=min(loss.first_ns, first_ns),
            last_ns=max(loss.last_ns, last_ns),
        )
        if self._room is not None and self._file is not None and self._file.packets:
            # The decoder can release the file only when the file is complete.
            self._end_file()
            with suppress(OSError):
                self._report(Complete())

    def _report_loss(self) -> None:
        """Report the latest loss; if that fails, try again later."""
        loss = self._loss
        if loss is not None:
            with suppress(OSError):
                self._report(loss)
                self._loss = None

    def tick(self) -> None:
        """Check the time: a file may be complete although no packets come. The next file begins with the next
        packet."""
        if self._file is not None and self._is_full(self._file):
            self._end_file()
        self._look()
        self._remove_old()
        if self._loss is not None and self._clock.seconds() - self._lost_at >= _CALM_SECONDS:
            self._report_loss()

    def _look(self) -> None:
        if self._room is not None:
            self._room.look(self._clock.seconds(), 0 if self._file is None else self._file.bytes)

    def close(self) -> None:
        """End the current file, and report losses."""
        self._end_file()
        self._report_loss()

    def _end_file(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        now_ns = self._clock.wall_ns()
        blocks = b"".join(
            statistics_block(number, now_ns, self._start_ns, received, dropped + lost, delivered)
            for number, ((received, dropped), lost, delivered) in enumerate(
                zip(self.counts, self._lost, self._delivered, strict=True)
            )
        )
        with suppress(OSError):  # the disk is full; that was reported when packets were lost
            self._write(file, blocks)
        file.close()
        if self._room is not None:
            self._room.complete(file.path, file.bytes)

    def _write(self, file: _SpoolFile, blocks: bytes) -> None:
        file.write(blocks)
        self.bytes += len(blocks)

    def _begin(self) -> _SpoolFile:
        number = self.files + 1
        path = self._path
        rotates = self._bounds.rotates or self._room is not None
        if rotates:
            path = file_name(path, number, self._clock.wall_ns())
        file = _SpoolFile(path, self._clock)
        head = [section_block(), *(interface_block(each) for each in self._interfaces)]
        try:
            self._write(file, b"".join(head))
            self._report(Begun(path, self.packets))
        except OSError:
            file.close()
            if rotates:  # the next attempt uses another name
                os.unlink(path)
            raise
        self.files = number
        if self._bounds.files is not None:
            self._kept.append(path)
            self._remove_old()
        return file

    def _remove_old(self) -> None:
        while self._bounds.files is not None and len(self._kept) > self._bounds.files:
            try:
                with suppress(FileNotFoundError):  # another process removed it
                    os.unlink(self._kept[0])
            except OSError:  # on Windows, while another process reads it
                return
            self._kept.popleft()

    def _is_full(self, file: _SpoolFile) -> bool:
        bounds = self._bounds
        if not file.packets:
            return False
        if self._room is not None:
            return file.bytes >= self._room.file_bytes
        if not bounds.rotates:
            return False
        every = bounds.interval
        if every is not None and file.began_ns // (every * SECOND) != self._clock.wall_ns() // (
            every * SECOND
        ):
            return True
        age = self._clock.seconds() - file.began_at
        return bounds.are_reached(age, file.bytes, file.packets)


def cut_to_whole_blocks(path: str) -> int:
    """Cut off the bytes after the last complete block of a file whose writer was killed. Return how many
    bytes.

    :raises OSError: the file cannot be read or written.
    """
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        at = 0
        while at + 12 <= size:
            file.seek(at + 4)
            length = int.from_bytes(file.read(4), "little")
            if length < 12 or at + length > size:
                break
            at += length
        file.truncate(at)
    return size - at
