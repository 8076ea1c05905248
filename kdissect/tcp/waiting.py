"""The bytes that wait behind a hole: pieces of one direction in order of offset, without overlaps.

A piece costs its captured bytes and the memory of its objects. So many tiny or cut segments are bounded like
few large ones.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

PIECE_BYTES = 256
"""The cost of a piece beside its bytes: about the memory that its objects take."""


class Piece(NamedTuple):
    """Bytes that wait for their turn."""

    offset: int
    length: int
    """The length on the wire; larger than ``len(data)`` if the snap length cut them."""
    data: bytes
    packet: int
    timestamp_ns: int

    @property
    def end(self) -> int:
        return self.offset + self.length

    def part(self, start: int, end: int) -> Piece:
        """The part between two offsets."""
        data = self.data[max(0, start - self.offset) : max(0, end - self.offset)]
        return Piece(start, end - start, data, self.packet, self.timestamp_ns)

    def agrees_with(self, other: Piece) -> bool:
        """Whether the two have the same bytes where they overlap and both were captured."""
        low = max(self.offset, other.offset)
        high = min(self.offset + len(self.data), other.offset + len(other.data))
        return low >= high or (
            self.data[low - self.offset : high - self.offset]
            == other.data[low - other.offset : high - other.offset]
        )


class OutOfOrderBytes:
    """The pieces. The first copy of a byte stays."""

    __slots__ = ("_pieces", "cost")

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self.cost = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    @property
    def first_offset(self) -> int:
        """The end of the hole before them; there must be pieces."""
        return self._pieces[0].offset

    @property
    def since_ns(self) -> int:
        """The time at which the first of them was captured, which showed the hole; there must be pieces."""
        return self._pieces[0].timestamp_ns

    @property
    def end(self) -> int:
        """The end of the last of them; there must be pieces."""
        return self._pieces[-1].end

    @property
    def length(self) -> int:
        """The number of bytes in all pieces."""
        return sum(piece.length for piece in self._pieces)

    def packets(self) -> set[int]:
        """The packets of the pieces."""
        return {piece.packet for piece in self._pieces}

    def add(self, piece: Piece) -> tuple[int, bool]:
        """Add the new bytes of ``piece``.

        :returns: the number of bytes that were there already, and whether these are the same.
        """
        pieces, start, again, agree = self._pieces, piece.offset, 0, True
        at = bisect_left(pieces, (piece.offset,))
        if at and pieces[at - 1].end > start:
            at -= 1
        fresh: list[Piece] = []
        last = at
        while last < len(pieces) and pieces[last].offset < piece.end:
            there = pieces[last]
            if there.offset > start:
                fresh.append(piece.part(start, there.offset))
            again += min(piece.end, there.end) - max(start, there.offset)
            agree = agree and there.agrees_with(piece)
            fresh.append(there)
            start = max(start, there.end)
            last += 1
        if start < piece.end:
            fresh.append(piece.part(start, piece.end))
        self.cost += _cost(fresh) - _cost(pieces[at:last])
        pieces[at:last] = fresh
        return again, agree

    def take(self, offset: int) -> list[Piece]:
        """Remove and return the pieces that join ``offset`` and each other."""
        pieces, count = self._pieces, 0
        while count < len(pieces) and pieces[count].offset <= offset:
            offset = max(offset, pieces[count].end)
            count += 1
        taken = pieces[:count]
        del pieces[:count]
        self.cost -= _cost(taken)
        return taken


def _cost(pieces: list[Piece]) -> int:
    return sum(len(piece.data) + PIECE_BYTES for piece in pieces)
