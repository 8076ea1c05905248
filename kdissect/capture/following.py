"""Files that other programs still write → their packets, as they come.

:class:`FollowedFiles` are captures that grow, and folders in which captures appear (rotated files).
:mod:`kdissect.live.spooled` follows the files of a capture process.

At the end of a file that may grow, reading waits. A file is complete when the next one has begun, or its
writer has ended. Until then an incomplete record at its end is no damage. Packets are numbered over all
files. Interfaces with the same description in several files are one interface.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import TypeVar, cast

from kdissect.capture.compressed import PIECE_BYTES, NothingYetError
from kdissect.capture.files import Capture, begins_like_a_capture, counts
from kdissect.capture.pcapng import HEADER_BYTES
from kdissect.capture.reader import Interface, Item
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError, Fault, Packet, renumbered
from kdissect.system import OPENING

FIRST_WAIT, LONGEST_WAIT = 0.005, 0.05
"""The seconds between two looks for new bytes. The wait doubles while nothing comes."""
PAUSE = 0.2
"""The seconds without new bytes after which a caller that asked for pauses gets one."""

Found = TypeVar("Found")


class Growing(BufferedIOBase):
    """A file that may grow.

    :param is_complete: whether the file grows no more. It is called at the file's end. After that the file is
        read once more, so that no earlier bytes are missed.
    """

    def __init__(self, path: str, is_complete: Callable[[], bool]) -> None:
        """:raises OSError: it cannot be opened."""
        self._descriptor = os.open(path, os.O_RDONLY | OPENING)
        self._is_complete = is_complete
        self._is_last_look = False
        self._wait = FIRST_WAIT

    def read1(self, size: int = -1, /) -> bytes:
        """:raises NothingYetError: nothing came for a while; the call may be repeated."""
        waited = 0.0
        while True:
            data = os.read(self._descriptor, PIECE_BYTES if size < 0 else size)
            if data:
                self._wait = FIRST_WAIT
                return data
            if self._is_last_look:
                return b""
            self._is_last_look = self._is_complete()
            if not self._is_last_look:
                if waited >= PAUSE:
                    raise NothingYetError
                time.sleep(self._wait)
                waited += self._wait
                self._wait = min(LONGEST_WAIT, 2 * self._wait)

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


class Following(Iterator[Item]):
    """Iterates over the packets of files that follow each other. The base of the classes that find the
    files."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.interfaces: list[Interface] = []
        """The interfaces, by the index that packets have. The list grows, and drop counts are updated, while
        packets are read."""
        self.is_stopped = False
        """Set by :meth:`stop`."""
        self.packets = 0
        """The number of packets read."""
        self._limits = limits
        self._capture: Capture | None = None
        self._numbers: dict[tuple[int, int, str | None, str | None], int] = {}
        """The numbers of interfaces, by their description."""
        self._reported: list[Fault] = []
        """Faults found beside the files, which are given next."""
        self._items = self._read()

    def __next__(self) -> Item:
        while (item := next(self._items)) is None:
            pass
        return item

    def with_pauses(self) -> Iterator[Item | None]:
        """The same items; None means that nothing came for a while, so that the caller can do other work."""
        return self._items

    def stop(self) -> None:
        """Read the existing bytes, and do not wait for more."""
        self.is_stopped = True

    def close(self) -> None:
        """Close the files."""
        if self._capture is not None:
            self._capture.close()

    @abstractmethod
    def _next_file(self) -> str | None:
        """The path of the next file; None if there is none, and none will come."""

    @abstractmethod
    def _is_complete(self) -> bool:
        """Whether the current file grows no more."""

    def _why_unread(self, path: str) -> str | None:
        """The reason why a file cannot be opened, if more is known than the system's error."""
        return None

    def _read(self) -> Iterator[Item | None]:
        while (path := self._next_file()) is not None:
            yield from self._news()
            yield from self._read_file(path)
        yield from self._news()

    def _news(self) -> list[Fault]:
        told, self._reported = self._reported, []
        return told

    def _read_file(self, path: str) -> Iterator[Item | None]:
        try:
            capture = self._capture = Capture((path,), self._limits, self._opened)
        except CaptureError as error:
            kind = "unreadable" if isinstance(error.__cause__, OSError) else "not-a-capture"
            yield fault(kind, self._why_unread(path) or str(error))
            return
        numbers: list[int] = []
        before = self.packets
        try:
            for item in capture.with_pauses():
                if self._reported:
                    yield from self._news()
                if isinstance(item, Packet):
                    if item.interface >= len(numbers):
                        self._describe(capture.interfaces, numbers)
                    self.packets += 1
                    yield renumbered(item, before + item.number, numbers[item.interface])
                elif isinstance(item, Fault):
                    moved = None if item.packet is None else before + item.packet
                    yield item._replace(packet=moved, message=f"{path}: {item.message}")
                else:
                    yield item
        finally:
            self._describe(capture.interfaces, numbers)
            capture.close()

    def _opened(self, path: str) -> BufferedIOBase:
        return cast(BufferedIOBase, Growing(path, self._is_complete))

    def _describe(self, described: list[Interface], numbers: list[int]) -> None:
        """Take in the interfaces of a file. Their newest counts are kept, because they count from the
        beginning of the capture."""
        for at, interface in enumerate(described):
            key = (interface.link_type, interface.snap_length, interface.name, interface.description)
            number = self._numbers.setdefault(key, len(self.interfaces))
            if number == len(self.interfaces):
                self.interfaces.append(interface)
            elif interface.received is not None or interface.dropped is not None:
                self.interfaces[number] = interface
            if at == len(numbers):
                numbers.append(number)

    def _wait_for(self, found: Callable[[], Found | None]) -> Found | None:
        """Look repeatedly until something is found, or after the last look."""
        wait = FIRST_WAIT
        while True:
            is_last_look = self._is_over()
            file = found()
            if file is not None or is_last_look:
                return file
            time.sleep(wait)
            wait = min(LONGEST_WAIT, 2 * wait)

    def _is_over(self) -> bool:
        """Whether no more files come."""
        return self.is_stopped


class FollowedFiles(Following):
    """Captures that other programs write: files, and the files of folders, in the order of their first
    packets.

    A file in a folder does not count if its name begins with ``.``. A file waits while its content is too
    short to judge. A file that is no capture is left out; if the user named it, that is reported once.
    """

    def __init__(self, paths: tuple[str, ...], limits: Limits = DEFAULTS) -> None:
        self._paths = paths
        self._read_files: dict[str, tuple[int, int]] = {}
        """The device and inode of each file that was read or refused, by path."""
        self._current: str | None = None
        super().__init__(limits)

    def _next_file(self) -> str | None:
        self._current = self._wait_for(lambda: self._named_wrongly() or self._oldest_new())
        if self._current is not None:
            self._read_files[self._current] = _identity(self._current)
        return self._current

    def _is_complete(self) -> bool:
        return self._is_over() or self._oldest_new() is not None

    def _oldest_new(self) -> str | None:
        """The file with the earliest packet among the files not read yet."""
        found: list[tuple[int, str]] = []
        for path in filter(self._is_new, self._candidates()):
            first_ns = self._first_ns(path)
            if first_ns is not None:
                found.append((first_ns, path))
        return min(found)[1] if found else None

    def _named_wrongly(self) -> str | None:
        """A file named by the user that cannot become a capture, however it grows."""
        for path in filter(self._is_new, self._paths):
            head = _head(path)
            if len(head) == HEADER_BYTES and not begins_like_a_capture(head):
                return path
        return None

    def _is_new(self, path: str) -> bool:
        known = self._read_files.get(path)
        return known is None or known != _identity(path)

    def _candidates(self) -> Iterator[str]:
        for path in self._paths:
            if os.path.isdir(path):
                for entry in os.scandir(path):
                    if counts(entry.name) and entry.is_file():
                        yield entry.path
            elif os.path.exists(path):
                yield path

    def _first_ns(self, path: str) -> int | None:
        """The time of the first packet of a file; None if there is none yet, or it cannot be read."""
        try:
            capture = Capture((path,), self._limits, unfinished=(path,))
        except CaptureError:
            return None
        try:
            return next((item.timestamp_ns for item in capture if isinstance(item, Packet)), None)
        finally:
            capture.close()


def _head(path: str) -> bytes:
    """The first bytes of a file; empty if it is no file, or cannot be read now."""
    try:
        with open(path, "rb") as file:
            return file.read(HEADER_BYTES)
    except OSError:
        return b""


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino
