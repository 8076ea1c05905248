"""The part of a file that a batch reads → its items. Reading goes on from where the last batch stopped.

A compressed file cannot be read on: it is read from its beginning. So is one whose reader was not kept, and
one that was written anew. The bytes before the place where reading stopped tell that. A file that has another
inode is compared as a whole with what was read.
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
"""So many bytes before the place where reading stopped tell whether a file is still the same."""


class Bookmark(NamedTuple):
    """Where reading of a file stopped."""

    reader: Reader
    """What goes on there."""
    end: bytes
    """The digest of the last bytes that it was fed."""
    inode: int | None
    """That of the file; None where there is none."""


class ReadSum(NamedTuple):
    """What was read of a file, by which it is known again."""

    size: int = 0
    """Bytes from its beginning."""
    checksum: int = 0
    """Their CRC-32."""

    def plus(self, piece: bytes) -> ReadSum:
        """With the bytes that come next."""
        return ReadSum(self.size + len(piece), crc32(piece, self.checksum))


class SpanReading:
    """Reads a span once. What cannot be read is a fault among its items.

    :param bookmark: where reading of the file stopped before, if that was kept.
    :param before: what was read of the file before, if that was kept.
    """

    def __init__(
        self, span: FileSpan, limits: Limits, bookmark: Bookmark | None, before: ReadSum | None = None
    ) -> None:
        self._span = span
        self._limits = limits
        self._before = before
        self.is_other = before is not None
        """Whether the file does not begin with what was read of it before, once all items were given."""
        self.sum = ReadSum()
        """What was read of it by now."""
        self._end = b""
        """The last bytes that were read."""
        self.goes_on = bookmark is not None and self._fits(bookmark)
        """Whether the items are those behind what was read before; else they are those of the whole file."""
        if self.goes_on and before is not None:
            self.is_other, self.sum = False, before
        self.bookmark = bookmark if self.goes_on else None
        """Where one can go on when the file has grown further, once all items were given."""

    def items(self) -> Iterator[Item]:
        """What the span holds. Unless it is final, what is incomplete at its end is left for later."""
        if self.bookmark is not None:
            yield from map(self._named, self._further(self.bookmark.reader))
        else:
            yield from self._whole(is_final=self._span.is_final, keeps=True)

    def items_at_end(self, taken: int) -> Iterator[Item]:
        """What would come next if the file ended here.

        :param taken: how many items it had.
        """
        if self.bookmark is not None:
            yield from map(self._named, deepcopy(self.bookmark.reader).close())
        else:
            yield from islice(self._whole(is_final=True, keeps=False), taken, None)

    def _fits(self, bookmark: Bookmark) -> bool:
        """Whether what was read before is still what the file begins with, as far as its end tells."""
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
            return True  # reading on fails as well, and tells why
        return _digest(self._end) == bookmark.end

    def _begins_with(self, before: ReadSum) -> bool:
        """Whether the file begins with what was read before."""
        found = ReadSum()
        try:
            with closing(limited(before.size, self._keep_end)(self._span.path)) as file:
                while piece := file.read1(PIECE_BYTES):
                    found = found.plus(piece)
        except OSError:
            return True  # reading on fails as well, and tells why
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
        """Keep the end and the sum of what is read, as it was fed: the file may be another by now."""
        self._keep_end(piece)
        before, now = self._before, self.sum
        if before is not None and now.size < before.size <= now.size + len(piece):
            self.is_other = now.plus(piece[: before.size - now.size]) != before
        self.sum = now.plus(piece)

    def _keep_end(self, piece: bytes) -> None:
        self._end = (self._end + piece[-END_BYTES:])[-END_BYTES:]

    def _if_all(self, reader: Reader | None) -> Bookmark | None:
        """Where one can go on, if the reader was fed all of the span."""
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
    """Whether nothing would be wrong with the end of a file that is read so far."""
    items = read_packets([path], limits, limited(size, lambda _: None))
    try:
        last = deque(items, maxlen=1)
    except CaptureError:
        return False
    return all(isinstance(item, Packet) for item in last) and bool(last)
