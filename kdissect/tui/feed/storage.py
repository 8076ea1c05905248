"""Rows of fixed size → columns of equal length that grow, in memory of their own.

Rows are appended a hundred times a minute, and this must never take long. So a full column moves to a larger
place, and no two columns are full at the same time. Each place is mapped from the system, and goes back to it
when the column has moved out. On the heap it would leave a hole that nothing fits into.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdissect.system import anonymous_memory

_FIRST = 1_024
"""Rows that there is room for at first."""
_GROWTH = 1.125
"""How much larger a full column is made. What it has in reserve takes no memory before it is written to."""


class Columns:
    """The columns.

    :param fields: name and type of each, as the rows have them.
    """

    def __init__(self, fields: Sequence[tuple[str, str]]) -> None:
        self.row = np.dtype(
            {"names": [name for name, _ in fields], "formats": ["<" + kind for _, kind in fields]}
        )
        """What a row is."""
        self._order = {name: at / len(fields) for at, (name, _) in enumerate(fields)}
        self._columns = {name: self._room(name, 1) for name, _ in fields}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> NDArray[Any]:
        """A column with what it has in reserve. Its place is another one when it has grown."""
        return self._columns[name]

    def append(self, packed: bytes) -> None:
        """Append rows, one after another."""
        rows = np.frombuffer(packed, dtype=self.row)
        start, end = self._length, self._length + len(rows)
        for name, column in self._columns.items():
            if end > len(column):
                larger = self._room(name, end)
                larger[:start] = column[:start]
                self._columns[name] = column = larger
            column[start:end] = rows[name]
        self._length = end

    def _room(self, name: str, rows: int) -> NDArray[Any]:
        """A place for at least so many. Each column goes through sizes of its own."""
        steps = max(0, math.ceil(math.log(rows / _FIRST, _GROWTH) - self._order[name]))
        room = max(rows, math.ceil(_FIRST * _GROWTH ** (steps + self._order[name])))
        kind = self.row[name]
        return np.frombuffer(anonymous_memory(room * kind.itemsize), dtype=kind)
