"""How many cells the exchanges of an index need in the columns of a list.

Rows are looked at once, when they are new, so that this costs nothing while a list is drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from kdissect.tui.feed.index import Index
from kdissect.tui.feed.rows import HAS_VERSION, TEXT_FIELDS

_NUMBERS = (
    *("number", "connection", "correlation_id", "api_version"),
    *("request_packet", "response_packet", "faults"),
)
_SIZES = ("request_size", "response_size")
_SIDE_MISSING = cell_len("[no response: ]")
_FAULTS = cell_len("[ faults]")


class Needs:
    """The cells, by the names of columns of the index."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._rows = 0
        self._cells = np.zeros(0, np.int64)
        """Of every text of the index."""
        self._most: dict[str, int] = {}
        self.ends: tuple[int, ...] = ()
        """The earliest and the latest time of any row; nothing without rows."""

    def look(self) -> None:
        """Take in the rows that are new."""
        index, start, end = self._index, self._rows, len(self._index)
        if start == end:
            return
        self._rows = end
        new = index.texts[len(self._cells) :]
        lengths = (len(each) if each.isascii() else cell_len(each) for each in new)
        cells = np.fromiter(lengths, np.int64, len(new))
        self._cells = np.concatenate((self._cells, cells))
        texts = {name: self._cells[index.column(name, start, end)] for name in TEXT_FIELDS}
        for name, found in texts.items():
            self._grow(name, found)
        for name in _NUMBERS:
            column = index.column(name, start, end)
            self._grow_to(name, max(len(str(int(column.max()))), len(str(int(column.min())))))
        sizes = {name: _size_cells(index.column(name, start, end)) for name in _SIZES}
        for name, found in sizes.items():
            self._grow(name, found)
        self._grow("sizes", sizes["request_size"] + sizes["response_size"] + len(" → "))
        times = index.column("time_ns", start, end)
        ends = (*self.ends, int(times.min()), int(times.max()))
        self.ends = min(ends), max(ends)
        has_version = (index.column("flags", start, end) & HAS_VERSION) != 0
        version = np.where(has_version, _digits(index.column("api_version", start, end)) + len(" v"), 0)
        self._grow("what", texts["api"] + version)
        self._grow("who", np.where(texts["client_id"] > 0, texts["client_id"], texts["client"]))
        faults = index.column("faults", start, end)
        parts = (
            texts["error"],
            np.where(texts["missing"] > 0, texts["missing"] + _SIDE_MISSING, 0),
            np.where(faults > 0, _digits(faults) + _FAULTS, 0),
            texts["topics"],
        )
        blanks = np.maximum(sum((part > 0).astype(np.int64) for part in parts) - 1, 0)
        self._grow("info", sum(parts) + blanks)

    def _grow(self, name: str, cells: NDArray[Any]) -> None:
        self._grow_to(name, int(cells.max()))

    def _grow_to(self, name: str, cells: int) -> None:
        self._most[name] = max(self._most.get(name, 0), cells)

    def of(self, name: str) -> int:
        """The most cells that any row needs; ``what``, ``who`` and ``info`` are columns of the list."""
        return self._most.get(name, 0)

    @property
    def all(self) -> tuple[int, ...]:
        """All of them: other ones where any column needs more."""
        return tuple(self._most.values())


def _digits(values: NDArray[Any]) -> NDArray[np.int64]:
    """Digits of numbers below a million."""
    found = np.ones(len(values), np.int64)
    for power in range(1, 6):
        found += np.abs(values.astype(np.int64)) >= 10**power
    return found


def _size_cells(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Cells of :func:`kdissect.present.form.size`; one for a side that is not there."""
    found = np.where(counts < 0, 1, _digits(counts) + len(" B"))
    for power in (1, 2, 3):
        # Rounded to one digit after the point, what is nearly a unit is one.
        least = 1_024 if power == 1 else 1_023.95 * 1_024 ** (power - 1)
        digits = _digits(counts / 1_024**power + 0.05)
        found = np.where(counts >= least, digits + len(".0 KiB"), found)
    return found
