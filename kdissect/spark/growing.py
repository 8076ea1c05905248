"""The part of a file that a batch reads → its items. Reading goes on from where the last batch stopped.

A compressed file cannot be read on: it is read from its beginning. So is one whose reader was not kept, and
one that was written anew. The bytes before the place where reading stopped tell that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from itertools import islice
from typing import NamedTuple

from kdissect.capture.compressed import PIECE_BYTES
from kdissect.capture.files import read_packets
from kdissect.capture.reader import Item, Reader
from kdissect.faults import fault
from kdissect.limits import Limits
from kdissect.model import CaptureError, Fault
from kdissect.spark.spool import FileSpan, limited
from kdissect.spark.storage import open_file

OTHERS_ARE_READ = "; the other files are read"
END_BYTES = 4096
"""So many bytes before the place where reading stopped tell whether a file is still the same."""


class Bookmark(NamedTuple):
    """Where reading of a file stopped."""

    reader: Reader
    """What goes on there."""
    end: bytes
    """The digest of the last bytes that it was fed."""


class SpanReading:
    """Reads a span once.

    :param bookmark: where reading of the file stopped before, if that was kept.
    """

    def __init__(self, span: FileSpan, limits: Limits, bookmark: Bookmark | None) -> None:
        self._span = span
        self._limits = limits
        self._end = b""
        """The last bytes that were read."""
        self.goes_on = bookmark is not None and self._fits(bookmark)
        """Whether the items are those behind what was read before; else they are those of the whole file."""
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
        start = max(0, fed - END_BYTES)
        try:
            with closing(open_file(self._span.path, start)) as file:
                while (left := fed - start - len(self._end)) and (piece := file.read1(left)):
                    self._end += piece
        except OSError:
            return True  # reading on fails as well, and tells why
        return _digest(self._end) == bookmark.end

    def _whole(self, *, is_final: bool, keeps: bool) -> Iterator[Item]:
        span = self._span
        self._end = b""
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
        """Keep the end of what is read. It is taken from what was fed: the file may be another one by now."""
        self._end = (self._end + piece[-END_BYTES:])[-END_BYTES:]

    def _if_all(self, reader: Reader | None) -> Bookmark | None:
        """Where one can go on, if the reader was fed all of the span."""
        if reader is None or not (reader.stopped or reader.fed_bytes == self._span.size):
            return None
        return Bookmark(reader, _digest(self._end))

    def _named(self, item: Item) -> Item:
        return (
            item._replace(message=f"{self._span.path}: {item.message}") if isinstance(item, Fault) else item
        )


def _digest(end: bytes) -> bytes:
    return hashlib.blake2b(end, digest_size=16).digest()
