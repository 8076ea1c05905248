"""The part of a file that a batch reads → its items. Reading goes on from where the last batch stopped.

A compressed file cannot be read on. It is read from its beginning, and so is one whose reader was not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from copy import deepcopy
from itertools import islice

from kdissect.capture.compressed import PIECE_BYTES
from kdissect.capture.files import read_packets
from kdissect.capture.reader import Item, Reader
from kdissect.faults import fault
from kdissect.limits import Limits
from kdissect.model import CaptureError, Fault
from kdissect.spark.spool import FileSpan, limited
from kdissect.spark.storage import open_file

OTHERS_ARE_READ = "; the other files are read"


class SpanReading:
    """Reads a span once.

    :param reader: what read the file up to here, if it was kept.
    """

    def __init__(self, span: FileSpan, limits: Limits, reader: Reader | None) -> None:
        self._span = span
        self._limits = limits
        self.goes_on = reader is not None and reader.fed_bytes <= span.size
        """Whether the items are those behind what was read before; else they are those of the whole file."""
        self.reader = reader if self.goes_on else None
        """What can go on when the file has grown further, once all items were given."""

    def items(self) -> Iterator[Item]:
        """What the span holds. Unless it is final, what is incomplete at its end is left for later."""
        if self.reader is not None:
            yield from map(self._named, self._further(self.reader))
        else:
            yield from self._whole(is_final=self._span.is_final, keeps=True)

    def items_at_end(self, taken: int) -> Iterator[Item]:
        """What would come next if the file ended here.

        :param taken: how many items it had.
        """
        if self.reader is not None:
            yield from map(self._named, deepcopy(self.reader).close())
        else:
            yield from islice(self._whole(is_final=True, keeps=False), taken, None)

    def _whole(self, *, is_final: bool, keeps: bool) -> Iterator[Item]:
        span = self._span
        unfinished = () if is_final else (span.path,)
        try:
            capture = read_packets([span.path], self._limits, limited(span.size), unfinished)
            yield from map(self._named, capture)
        except CaptureError as error:
            if is_final:
                kind = "unreadable" if isinstance(error.__cause__, OSError) else "not-a-capture"
                yield fault(kind, f"{error}{OTHERS_ARE_READ}")
            return
        if keeps:
            self.reader = _if_all(capture.reader, span)

    def _further(self, reader: Reader) -> Iterator[Item]:
        span = self._span
        left = 0 if reader.stopped else span.size - reader.fed_bytes
        try:
            with closing(open_file(span.path, reader.fed_bytes)) as file:
                while left and not reader.stopped and (piece := file.read1(min(left, PIECE_BYTES))):
                    left -= len(piece)
                    yield from reader.feed(piece)
        except OSError as error:
            yield fault("unreadable", f"reading failed: {error.strerror or error}")
        if span.is_final:
            yield from reader.close()
        self.reader = _if_all(reader, span)

    def _named(self, item: Item) -> Item:
        return (
            item._replace(message=f"{self._span.path}: {item.message}") if isinstance(item, Fault) else item
        )


def _if_all(reader: Reader | None, span: FileSpan) -> Reader | None:
    """The reader, if it was fed all of a span."""
    return reader if reader is not None and (reader.stopped or reader.fed_bytes == span.size) else None
