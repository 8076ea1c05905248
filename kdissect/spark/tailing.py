"""The part of a file that a batch reads → its items. Reading goes on where the last batch stopped.

A compressed file cannot be continued: it is read from its beginning. The same holds for a file whose reader
was not kept, and for a rewritten file. The bytes before the place where reading stopped show that. If a file
has another inode, everything that was read is compared.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from itertools import islice
from typing import NamedTuple
from zlib import crc32

from kdissect.capture.compressed import PIECE_BYTES
from kdissect.capture.files import read_packets
from kdissect.capture.reader import Item, Reader
from kdissect.faults import fault
from kdissect.limits import Limits
from kdissect.model import CaptureError, Fault, Packet
from kdissect.spark.spool import FileSpan, limited
from kdissect.spark.storage import is_remote, open_file, plain_path

OTHERS_ARE_READ = "; the other files are read"
END_BYTES = 4096
"""The number of bytes before the place where reading stopped that are compared with the file."""


class Bookmark(NamedTuple):
    """The place where reading of a file stopped."""

    reader: Reader
    """The reader that goes on there."""
    end: bytes
    """The digest of the last bytes that the reader received."""
    inode: int | None
    """The inode of the file; None if there is none."""


class ReadSum(NamedTuple):
    """The size and the checksum of the read part of a file, to recognise it."""

    size: int = 0
    """Bytes from the beginning of the file."""
    checksum: int = 0
    """Their CRC-32."""

    def plus(self, piece: bytes) -> ReadSum:
        """The sum with the next bytes added."""
        return ReadSum(self.size + len(piece), crc32(piece, self.checksum))


class SpanReading:
    """Reads a span once. Errors are faults among its items.

    :param bookmark: where reading of the file stopped before, if that was kept.
    :param before: the sum of the bytes read before, if that was kept.
    """

    def __init__(
        self, span: FileSpan, limits: Limits, bookmark: Bookmark | None, before: ReadSum | None = None
    ) -> None:
        self._span = span
        self._limits = limits
        self._before = before
        self.is_other = before is not None
        """Whether the file does not begin with the bytes that were read before. It is valid after all items
        were given."""
        self.sum = ReadSum()
        """The sum of the bytes that were read so far."""
        self._end = b""
        """The last bytes that were read."""
        self.goes_on = bookmark is not None and self._fits(bookmark)
        """Whether the items are only the new ones; otherwise they are those of the whole file."""
        if self.goes_on and before is not None:
            self.is_other, self.sum = False, before
        self.bookmark = bookmark if self.goes_on else None
        """The place where reading can go on if the file grows further. It is valid after all items were
        given."""

    def items(self) -> Iterator[Item]:
        """The items of the span. Unless it is final, an incomplete item at its end is left for later."""
        if self.bookmark is not None:
            yield from map(self._named, self._further(self.bookmark.reader))
        else:
            yield from self._whole(is_final=self._span.is_final, keeps=True)

    def items_at_end(self, taken: int) -> Iterator[Item]:
        """The items that would come next if the file ended here.

        :param taken: how many items it had.
        """
        if self.bookmark is not None:
            yield from map(self._named, deepcopy(self.bookmark.reader).close())
        else:
            yield from islice(self._whole(is_final=True, keeps=False), taken, None)

    def _fits(self, bookmark: Bookmark) -> bool:
        """Whether the file still begins with the bytes that were read, as far as the last of them show."""
        fed = bookmark.reader.fed_bytes
        if fed > self._span.size:
            return False
        if self._before is not None and bookmark.inode != _inode(self._span.path):
            return self._begins_with(self._before)
        start = max(0, fed - END_BYTES)
        try:
            with closing(open_file(self._span.path, start)) as file:
                while (left := fed - start - len(self._end)) and (piece := file.read1(left)):
                    self._end += piece
        except OSError:
            return True  # reading on fails as well, and reports the reason
        return _digest(self._end) == bookmark.end

    def _begins_with(self, before: ReadSum) -> bool:
        """Whether the file begins with the bytes that were read before."""
        found = ReadSum()
        try:
            with closing(limited(before.size, self._keep_end)(self._span.path)) as file:
                while piece := file.read1(PIECE_BYTES):
                    found = found.plus(piece)
        except OSError:
            return True  # reading on fails as well, and reports the reason
        return found == before

    def _whole(self, *, is_final: bool, keeps: bool) -> Iterator[Item]:
        span = self._span
        self._end, self.sum = b"", ReadSum()
        unfinished = () if is_final else (span.path,)
        try:
            capture = read_packets([span.path], self._limits, limited(span.size, self._note), unfinished)
            yield from map(self._named, capture)
        except CaptureError as error:
            if is_final:
                kind = "unreadable" if isinstance(error.__cause__, OSError) else "not-a-capture"
                yield fault(kind, f"{error}{OTHERS_ARE_READ}")
            return
        if keeps:
            self.bookmark = self._if_all(capture.reader)

    def _further(self, reader: Reader) -> Iterator[Item]:
        span = self._span
        left = 0 if reader.stopped else span.size - reader.fed_bytes
        try:
            with closing(open_file(span.path, reader.fed_bytes)) as file:
                while left and not reader.stopped and (piece := file.read1(min(left, PIECE_BYTES))):
                    left -= len(piece)
                    self._note(piece)
                    yield from reader.feed(piece)
        except OSError as error:
            yield fault("unreadable", f"reading failed: {error.strerror or error}")
        if span.is_final:
            yield from reader.close()
        self.bookmark = self._if_all(reader)

    def _note(self, piece: bytes) -> None:
        """Keep the end and the sum of the bytes as they were read, because the file may have changed
        since."""
        self._keep_end(piece)
        before, now = self._before, self.sum
        if before is not None and now.size < before.size <= now.size + len(piece):
            self.is_other = now.plus(piece[: before.size - now.size]) != before
        self.sum = now.plus(piece)

    def _keep_end(self, piece: bytes) -> None:
        self._end = (self._end + piece[-END_BYTES:])[-END_BYTES:]

    def _if_all(self, reader: Reader | None) -> Bookmark | None:
        """The place where reading can go on, if the reader received all of the span."""
        if reader is None or not (reader.stopped or reader.fed_bytes == self._span.size):
            return None
        return Bookmark(reader, _digest(self._end), _inode(self._span.path))

    def _named(self, item: Item) -> Item:
        return (
            item._replace(message=f"{self._span.path}: {item.message}") if isinstance(item, Fault) else item
        )


def _inode(path: str) -> int | None:
    try:
        return None if is_remote(path) else os.stat(plain_path(path)).st_ino
    except OSError:
        return None


def _digest(end: bytes) -> bytes:
    return hashlib.blake2b(end, digest_size=16).digest()


def ends_whole(path: str, size: int, limits: Limits) -> bool:
    """Whether a file up to ``size`` has a complete last item."""
    items = read_packets([path], limits, limited(size, lambda _: None))
    try:
        last = deque(items, maxlen=1)
    except CaptureError:
        return False
    return all(isinstance(item, Packet) for item in last) and bool(last)
