"""Arrays of 64-bit numbers, for records that no caller needs as objects.

The compiled form is ``rows.pyx``. It keeps the numbers in memory of C. Making a view of an array would take
longer than writing the numbers of a small batch.
"""

from __future__ import annotations

from array import array

LEAST = 56
"""The smallest room, in numbers, once there is any: a few records."""


class Int64Rows:
    """An array of numbers that grows. Positions are not checked: the writer reserves room first."""

    __slots__ = ("numbers",)

    def __init__(self) -> None:
        self.numbers = array("q")

    def reserve(self, count: int) -> None:
        """Make room for ``count`` numbers. Existing numbers stay. :attr:`numbers` may move."""
        missing = count - len(self.numbers)
        if missing > 0:
            self.numbers.frombytes(bytes(8 * max(missing, len(self.numbers), LEAST)))

    def part(self, start: int, end: int) -> array[int]:
        """A copy of some of the numbers.

        :raises IndexError: there is no room for so many.
        """
        if not 0 <= start <= end <= len(self.numbers):
            raise IndexError("numbers that are not there")
        return self.numbers[start:end]
