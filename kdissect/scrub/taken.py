"""What was taken away from a capture, so that the result can be searched for it.

A capture may have more of it than fits in memory. So of each kind the newest stay in memory, and the others
go to a temporary file, which has no name.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from struct import Struct
from tempfile import TemporaryFile
from typing import IO

from kdissect.scrub.allowed import without_kept_words

LEAST_BYTES = 4
"""Shorter names and values are in every file by chance: nobody looks for them."""
MOST_BYTES = 64
"""So much is remembered of what was taken away, from its beginning: who finds that finds the whole."""
MOST_IN_MEMORY = 250_000
MOST_BYTES_IN_MEMORY = 32 << 20
"""Of one pile."""
_LEAST_UNKNOWN = 6
"""Characters of a text in bytes of which nobody knows what they are."""
_TEXT = re.compile(rb"[\x20-\x7e]{6,}")

_head = Struct("<qI")


class Pile:
    """Bytes, each with a number of its owner's. What is added again while it is in memory is left out.

    :param most: how many are in memory.
    """

    def __init__(self, most: int = MOST_IN_MEMORY) -> None:
        self._most = most
        self._kept: dict[bytes, int] = {}
        self._size = 0
        self._file: IO[bytes] | None = None
        self._ends: list[int] = []
        """Of the parts that are in the file, where they end."""

    def add(self, data: bytes, number: int = 0) -> None:
        """Put something on the pile."""
        if data in self._kept:
            return
        self._kept[data] = number
        self._size += len(data)
        if len(self._kept) >= self._most or self._size >= MOST_BYTES_IN_MEMORY:
            self._spill()

    def parts(self) -> Iterator[dict[bytes, int]]:
        """All that is on the pile, in parts that fit in memory, with the numbers."""
        yield self._kept
        start = 0
        for end in self._ends:
            yield self._read(start, end)
            start = end

    def __contains__(self, data: bytes) -> bool:
        return any(data in part for part in self.parts())

    def __bool__(self) -> bool:
        return bool(self._kept or self._ends)

    def _spill(self) -> None:
        if self._file is None:
            self._file = TemporaryFile(prefix="kdissect-")  # noqa: SIM115 - it lives as long as the pile
            weakref.finalize(self, self._file.close)
        self._file.seek(0, 2)
        for data, number in self._kept.items():
            self._file.write(_head.pack(number, len(data)) + data)
        self._ends.append(self._file.tell())
        self._kept, self._size = {}, 0

    def _read(self, start: int, end: int) -> dict[bytes, int]:
        assert self._file is not None
        self._file.seek(start)
        found, at = self._file.read(end - start), 0
        out: dict[bytes, int] = {}
        while at < len(found):
            number, size = _head.unpack_from(found, at)
            at += _head.size
            out[found[at : at + size]] = number
            at += size
        return out


class Taken:
    """What was taken away, and what was put in its place.

    :param most: how much of each kind is in memory.
    """

    def __init__(self, most: int = MOST_IN_MEMORY) -> None:
        self.texts = Pile(most)
        """Names, passwords, values and whatever else; of long ones the beginning."""
        self.addresses = Pile(most)
        """Packed."""
        self.tokens = Pile(most)
        """What stands for names and keys."""

    def add(self, before: bytes, after: bytes = b"") -> None:
        """This was taken away, and this came in its place."""
        if len(before) >= LEAST_BYTES and before != after:
            self.texts.add(before[:MOST_BYTES])
            if after:
                self.tokens.add(after)

    def add_unknown(self, data: bytes) -> None:
        """Bytes were taken away of which nobody knows what they are. The texts in them are remembered.
        Numbers, addresses and words that stay are not: they may stand elsewhere, too."""
        for text in _TEXT.findall(data):
            for each in without_kept_words(text.decode("ascii")):
                if len(each) >= _LEAST_UNKNOWN:
                    self.add(each.encode("ascii"))
