"""Numbers of 64 bits, one after the other: what records become that nobody asked for as objects.

Compiled, ``rows.pyx`` stands in its place. It keeps the numbers in memory of C. A view of an array would take
longer to make than the numbers of a small batch take to write.
"""

from __future__ import annotations

from array import array

LEAST = 56
"""Numbers that there is room for once there is any: a few records."""


class Int64Rows:
    """Numbers that grow. Positions are not checked: who writes asks for room before."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers = array("q")

    def reserve(self, count: int) -> None:
        """See to it that there is room for ``count`` numbers. Those that are there stay. Afterwards
        :attr:`numbers` may be elsewhere."""
        missing = count - len(self.numbers)
        if missing > 0:
            self.numbers.frombytes(bytes(8 * max(missing, len(self.numbers), LEAST)))

    def part(self, start: int, end: int) -> array[int]:
        """A copy of some of them.

        :raises IndexError: there is no room for so many.
        """
        if not 0 <= start <= end <= len(self.numbers):
            raise IndexError("numbers that are not there")
        return self.numbers[start:end]
