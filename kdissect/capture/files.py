"""Capture files ─► packets: several files are one capture.

Files are ordered by the time of their first packet (equal times: as given). Where they overlap, they are
merged by packet time; each keeps its own order. Files of several capture points are merged by the time that
agreeing clocks would show. Packets are numbered from 1 over the whole input and interfaces indexed over it.
An item that is not a packet comes right after the packet that it follows in its file.

``-`` is standard input. A file that is no capture is a CaptureError if it is the only file. Among several
files it is a Fault, and the others are read.
"""

from __future__ import annotations

import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from heapq import heappop, heappush, heapreplace
from io import BufferedIOBase
from itertools import chain
from typing import cast

from kdissect.capture import pcap, pcapng
from kdissect.capture.compressed import PIECE_BYTES, Pieces, compression_of
from kdissect.capture.reader import Interface, Item, Points, Reader
from kdissect.capture.runs import PacketRun
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError, Fault, Packet, renumbered

Path = str | os.PathLike[str]
Opener = Callable[[str], BufferedIOBase]

PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"
_PROBED_BYTES = 1 << 10
"""The number of bytes read at a time to find the first packet of a file that is read again later. More bytes
would be a large share of a small file."""


def open_capture(path: str) -> BufferedIOBase:
    """Open a file of this machine, or standard input, for reading.

    :raises CaptureError: it is a directory.
    :raises OSError: it cannot be opened, or it is a directory that cannot be listed.
    """
    if path == "-":
        return cast(BufferedIOBase, sys.stdin.buffer)
    if stat.S_ISDIR(_mode(path)):
        try:
            os.scandir(path).close()
        except OSError as error:
            raise OSError(error.errno, f"the files in it cannot be listed ({error.strerror})", path) from None
        raise CaptureError("is a directory; give the capture files in it")
    return cast(BufferedIOBase, open(path, "rb"))


def counts(name: str) -> bool:
    """Whether a file with this name counts in a folder of captures."""
    return not name.startswith((".", "_"))


def in_folders(paths: Iterable[str]) -> tuple[str, ...]:
    """The files, with each folder replaced by the files in it, by name. Folders inside it do not count. A
    folder that cannot be listed stays: opening it raises the error.

    :raises CaptureError: no file is in a folder.
    """
    found: list[str] = []
    for path in paths:
        if path == "-" or not stat.S_ISDIR(_mode(path)):
            found.append(path)
            continue
        try:
            named = [entry for entry in os.scandir(path) if counts(entry.name)]
        except OSError:
            found.append(path)
            continue
        inside = [entry.path for entry in named if entry.is_file()]
        if not inside:
            has_folders = any(entry.is_dir() for entry in named)
            raise CaptureError(no_file_in(path, each_folder_in(path) if has_folders else None))
        found += sorted(inside)
    return tuple(found)


def no_file_in(folder: str, instead: str | None = None) -> str:
    """The reason why a folder without files is refused.

    :param instead: a pattern for the files in the folders inside it; None without any.
    """
    if instead is None:
        return f"{folder}: no file is in this directory"
    return f"{folder}: no file is in this directory, only folders, and these are not searched; give {instead}"


def each_folder_in(folder: str) -> str:
    """The shell pattern of all folders in a folder."""
    from shlex import quote

    return f"{quote(os.path.join(folder, ''))}*/"


def has_captures(folder: str) -> bool:
    """Whether one of the files in a folder begins like a capture."""
    try:
        for path in in_folders((folder,)):
            with suppress(OSError, CaptureError), open_capture(path) as file:
                if begins_like_a_capture(file.read(len(PCAPNG_MAGIC))):
                    return True
    except CaptureError:
        pass
    return False


def read_packets(
    paths: Iterable[Path],
    limits: Limits = DEFAULTS,
    opener: Opener = open_capture,
    unfinished: Container[str] = (),
    points: Points | None = None,
) -> Capture:
    """The packets, secrets and faults of these files, as of one capture.

    :param opener: opens the files; needed for files that are not on this machine.
    :param unfinished: the files that may still grow: an incomplete item at their end is no damage.
    :param points: the capture points of the files, if there are several; their interfaces are added to it.
    :raises CaptureError: no file among them can be read as a capture; the text has one line, with the path,
        what it is and what to do.
    """
    return Capture(paths, limits, opener, unfinished, points)


class Capture(Iterator[Item]):
    """Iterates over one capture. A file is open only as long as its packets are needed."""

    def __init__(
        self,
        paths: Iterable[Path],
        limits: Limits = DEFAULTS,
        opener: Opener = open_capture,
        unfinished: Container[str] = (),
        points: Points | None = None,
    ) -> None:
        self.interfaces: list[Interface] = []
        """The interfaces, by the index that packets have. The list grows, and drop counts are updated, while
        packets are read."""
        self._files = [
            _CaptureFile(os.fspath(path), order, limits, opener, os.fspath(path) in unfinished)
            for order, path in enumerate(paths)
        ]
        self._points = points
        if not self._files:
            raise CaptureError("no capture file is given")
        if sum(file.path == "-" for file in self._files) > 1:
            raise CaptureError("- (standard input) can be read only once; give it once")
        if len(self._files) == 1:
            self._blocks = self._files[0].open(self.interfaces)
        else:
            refused = self._probe()
            self._blocks = ([] if item is None else [item] for item in self._merged(refused))
        self._items = chain.from_iterable(self._blocks)

    def blocks(self) -> Iterator[list[Item]]:
        """The same items as iterating gives, in lists of items that were read together. An empty list may
        mean that a growing file had no new bytes for a while."""
        return self._blocks

    def in_runs(self) -> Iterator[list[Item | PacketRun]]:
        """The same lists; consecutive ordinary packets may come as a run. Nothing must have been read
        before."""
        if len(self._files) == 1:
            self._files[0].in_runs = True
        return cast(Iterator[list[Item | PacketRun]], self._blocks)

    def __iter__(self) -> Iterator[Item]:
        return self._items

    def __next__(self) -> Item:
        return next(self._items)

    def with_pauses(self) -> Iterator[Item | None]:
        """The same items; None means that a growing file had no new bytes for a while."""
        return _with_pauses(self._blocks)

    @property
    def reader(self) -> Reader | None:
        """The reader of the only file, unless it is compressed. It can go on when the file has grown."""
        return self._files[0].reader if len(self._files) == 1 else None

    @property
    def can_hold_secrets(self) -> bool:
        """Whether the format of any of the files has a place for TLS secrets."""
        return any(file.can_hold_secrets for file in self._files)

    def close(self) -> None:
        """Close the files before the end is reached."""
        for file in self._files:
            file.close()

    def _probe(self) -> list[Fault]:
        """Put the files in order. Leave out unreadable files, and return their faults."""
        refused: list[str] = []
        faults: list[Fault] = []
        usable: list[_CaptureFile] = []
        for file in self._files:
            try:
                file.probe(self.interfaces)
            except CaptureError as error:
                kind = "unreadable" if isinstance(error.__cause__, OSError) else "not-a-capture"
                refused.append(str(error))
                faults.append(fault(kind, f"{error}; the other files are read"))
            else:
                usable.append(file)
        if not usable:
            raise CaptureError("; ".join(refused))
        # Files without packets go first, because they may have secrets for the others.
        usable.sort(key=lambda file: (file.first_ns is not None, self._begin(file)))
        self._files = usable
        return faults

    def _ahead(self, file: _CaptureFile) -> int:
        """How far the clock of its point is ahead of the first point's clock, ns."""
        return 0 if self._points is None else self._points.ahead_ns[self._points.of_path.get(file.path, 0)]

    def _begin(self, file: _CaptureFile) -> int:
        return 0 if file.first_ns is None else file.first_ns - self._ahead(file)

    def _merged(self, refused: list[Fault]) -> Iterator[Item | None]:
        yield from refused
        waiting = deque(enumerate(self._files))
        ahead = [self._ahead(file) for file in self._files]
        heap: list[tuple[int, int, Packet, Iterator[Item | None]]] = []
        number = 0
        while waiting or heap:
            while waiting and (not heap or self._begin(waiting[0][1]) <= heap[0][0]):
                order, file = waiting.popleft()
                items = file.named_items(self.interfaces)
                for item in items:
                    if isinstance(item, Packet):
                        heappush(heap, (item.timestamp_ns - ahead[order], order, item, items))
                        break
                    yield item
            if not heap:
                continue
            _, order, packet, items = heap[0]
            number += 1
            if self._points is not None:
                of_path = self._points.of_path
                self._points.of_interface[packet.interface] = of_path.get(self._files[order].path, 0)
            yield renumbered(packet, number, packet.interface)
            for item in items:
                if isinstance(item, Packet):
                    heapreplace(heap, (item.timestamp_ns - ahead[order], order, item, items))
                    break
                if isinstance(item, Fault) and item.packet == packet.number:
                    item = item._replace(packet=number)
                yield item
            else:
                heappop(heap)


class _CaptureFile:
    """One file of the input."""

    def __init__(self, path: str, order: int, limits: Limits, opener: Opener, unfinished: bool) -> None:
        self.path = path
        self.first_ns: int | None = None
        """The time of the first packet, after :meth:`probe`; None without packets."""
        self.reader: Reader | None = None
        """Its reader, once it is open, unless it is compressed."""
        self.can_hold_secrets = True
        """Whether its format has a place for TLS secrets, once it was open."""
        self.in_runs = False
        """Whether ordinary packets may come as runs."""
        self._name = "standard input" if path == "-" else path
        self._limits = limits
        self._opener = opener
        self._unfinished = unfinished
        self._pieces: Pieces | None = None
        self._items: Iterator[Item | None] | None = None
        self._held: list[Item | None] = []

    def open(self, interfaces: list[Interface], piece_bytes: int = PIECE_BYTES) -> Iterator[list[Item]]:
        """Open the file, read its header, and give its items, in lists of items that were read together.

        :param piece_bytes: the number of bytes read at a time.
        :raises CaptureError: it is not a capture, or cannot be read; caused by the OSError, if there was one.
        """
        try:
            self._pieces = pieces = Pieces(self._opener(self.path), piece_bytes)
            reader, rest = self._reader(pieces, interfaces)
            self.reader = None if pieces.is_packed else reader
            self.can_hold_secrets = reader.can_hold_secrets
        except OSError as error:
            self.close()
            raise CaptureError(f"{self._name}: cannot be read: {error.strerror or error}") from error
        except CaptureError as error:
            self.close()
            raise CaptureError(f"{self._name}: {error}") from None
        return self._read(pieces, reader, rest)

    def close(self) -> None:
        if self._pieces is not None and self.path != "-":
            self._pieces.close()
        self._pieces = self._items = None

    def probe(self, interfaces: list[Interface]) -> None:
        """Find the time of the first packet. A file that can be opened again is closed until its turn comes,
        so that a thousand rotated files are not open at once.

        :raises CaptureError: as for :meth:`open`.
        """
        again = self.path != "-" and stat.S_ISREG(_mode(self.path))
        opened = self.open([], _PROBED_BYTES) if again else self.open(interfaces)
        items = _with_pauses(opened)
        for item in items:
            self._held.append(item)
            if isinstance(item, Packet):
                self.first_ns = item.timestamp_ns
                break
        if again:
            self._held = []
            self.close()
        else:
            self._items = items

    def named_items(self, interfaces: list[Interface]) -> Iterator[Item | None]:
        """The items of a probed file; its faults have its name."""
        try:
            items = _with_pauses(self.open(interfaces)) if self._items is None else self._items
        except CaptureError as error:
            yield fault(
                "unreadable", f"{error}; the file could still be read when the files were put in order"
            )
            return
        held, self._held = self._held, []
        for source in (held, items):
            for item in source:
                yield (
                    item._replace(message=f"{self._name}: {item.message}")
                    if isinstance(item, Fault)
                    else item
                )

    def _reader(self, pieces: Pieces, interfaces: list[Interface]) -> tuple[Reader, bytes]:
        """A reader of the file's format, and the bytes not fed to it yet."""
        head = _gather(pieces, b"", pcapng.HEADER_BYTES)
        if head[:4] == PCAPNG_MAGIC:
            return pcapng.PcapngReader(head, self._limits, interfaces), head
        if head[:4] in pcap.MAGICS:
            head = _gather(pieces, head, pcap.head_bytes(head, self._limits))
            return pcap.PcapReader(head, self._limits, interfaces), head[pcap.HEADER_BYTES :]
        if pieces.fault is not None:
            raise CaptureError(f"nothing can be read: {pieces.fault.message}")
        raise no_capture(head)

    def _read(self, pieces: Pieces, reader: Reader, rest: bytes) -> Iterator[list[Item]]:
        try:
            # Only callers that accept runs ask for them.
            feed = cast(Callable[[bytes], list[Item]], reader.feed_in_runs) if self.in_runs else reader.feed
            yield feed(rest)
            while not reader.stopped and (piece := next(pieces, None)) is not None:
                yield feed(piece)
        except OSError as error:
            yield [fault("unreadable", f"reading failed: {error.strerror or error}")]
        finally:
            self.close()
        if self._unfinished:
            return
        if pieces.fault is not None:
            yield [pieces.fault]
        yield reader.close()


def _with_pauses(blocks: Iterable[list[Item]]) -> Iterator[Item | None]:
    for items in blocks:
        if items:
            yield from items
        else:
            yield None


def begins_like_a_capture(head: bytes) -> bool:
    """Whether bytes, at least four, may begin a capture, also a compressed one."""
    return head[:4] == PCAPNG_MAGIC or head[:4] in pcap.MAGICS or compression_of(head) is not None


def no_capture(head: bytes) -> CaptureError:
    """The error of bytes that begin no capture."""
    if not head:
        return CaptureError("is empty; a capture file begins with a header")
    return CaptureError(
        f"is not a capture (it begins with {head[:4].hex(' ')}); give a pcap or pcapng file, such as "
        "tcpdump and Wireshark write"
    )


def _gather(pieces: Pieces, head: bytes, wanted: int) -> bytes:
    """At least ``wanted`` bytes of the beginning, or all if there are fewer."""
    gathered, size = [head], len(head)
    while size < wanted and (piece := next(pieces, None)) is not None:
        gathered.append(piece)
        size += len(piece)
    return b"".join(gathered)


def _mode(path: str) -> int:
    try:
        return os.stat(path).st_mode
    except OSError:
        return stat.S_IFREG  # opening it raises the error
