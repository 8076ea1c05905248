"""The texts that were removed from a capture, so that the result can be searched for them.

They may not fit in memory. So the newest of each kind stay in memory, and the others go to a temporary file
without a name.
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
"""Shorter names and values are in every file by chance, so they are not searched."""
MOST_BYTES = 64
"""The most bytes of a removed text that are remembered, from its beginning. A hit of them is a hit of the
text."""
MOST_IN_MEMORY = 250_000
MOST_BYTES_IN_MEMORY = 32 << 20
"""The most bytes of one pile in memory."""
_LEAST_UNKNOWN = 6
"""The least characters of a text in bytes of unknown meaning."""
_TEXT = re.compile(rb"[\x20-\x7e]{6,}")

_head = Struct("<qI")


class Pile:
    """Byte strings, each with a number for the caller. A duplicate of one in memory is skipped.

    :param most: how many are in memory.
    """

    def __init__(self, most: int = MOST_IN_MEMORY) -> None:
        self._most = most
        self._kept: dict[bytes, int] = {}
        self._size = 0
        self._file: IO[bytes] | None = None
        self._ends: list[int] = []
        """The ends of the parts that are in the file."""

    def add(self, data: bytes, number: int = 0) -> None:
        """Add a byte string."""
        if data in self._kept:
            return
        self._kept[data] = number
        self._size += len(data)
        if len(self._kept) >= self._most or self._size >= MOST_BYTES_IN_MEMORY:
            self._spill()

    def parts(self) -> Iterator[dict[bytes, int]]:
        """The whole pile, in parts that fit in memory, with the numbers."""
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
    """The removed texts, and their replacements.

    :param most: the amount of each kind in memory.
    """

    def __init__(self, most: int = MOST_IN_MEMORY) -> None:
        self.texts = Pile(most)
        """Names, passwords, values and other texts; of long ones the beginning."""
        self.addresses = Pile(most)
        """Removed addresses, packed."""
        self.tokens = Pile(most)
        """The replacements of names and keys."""

    def add(self, before: bytes, after: bytes = b"") -> None:
        """Note a removed text and its replacement."""
        if len(before) >= LEAST_BYTES and before != after:
            self.texts.add(before[:MOST_BYTES])
            if after:
                self.tokens.add(after)

    def add_unknown(self, data: bytes) -> None:
        """Note removed bytes of unknown meaning. Texts in them are remembered. Numbers, addresses and words
        that stay are not, because they may be elsewhere, too."""
        for text in _TEXT.findall(data):
            for each in without_kept_words(text.decode("ascii")):
                if len(each) >= _LEAST_UNKNOWN:
                    self.add(each.encode("ascii"))
