"""How the columns of a list share the cells of a table, and how many cells its rows need.

A list gives its wants, the most important first. They are granted strictly in that order, until there is no
more room. So a wider table has everything that a narrower one has. When a terminal grows, no column gets
narrower or disappears.

Rows are measured once, when they are new, so that drawing a list needs no measuring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size

from kdissect.feed.index import Index
from kdissect.feed.rows import HAS_VERSION, TEXT_FIELDS
from kdissect.present.sanitise import CUT


class Want(NamedTuple):
    """The cells that a column wants."""

    column: int
    """Its place among the columns."""
    cells: int
    """The total number of cells, not the additional ones."""


def granted(must: Iterable[Want], wants: Iterable[Want], columns: int, room: int) -> list[int]:
    """The cells of each column; 0 for a hidden one. There is a blank between two shown columns.

    :param must: wants that are granted even if there is no room for them.
    :param wants: a shown column may get a part of a want; a hidden one appears only with all of it.
    """
    widths, left = [0] * columns, room + 1
    for column, cells in must:
        left -= max(0, cells - widths[column]) + (not widths[column])
        widths[column] = max(widths[column], cells)
    for column, cells in wants:
        shown = widths[column] > 0
        more = cells - widths[column] + (not shown)
        if cells <= widths[column]:
            continue
        if left < more and not shown:
            break
        granted = min(more, max(0, left))
        widths[column] += granted - (not shown)
        left -= granted
        if granted < more:
            break
    return widths


def evenly(least: Sequence[Want], most: Sequence[Want]) -> Iterable[Want]:
    """The wants of columns that share the room: those with the fewest cells get the next."""
    if least and most:
        for cells in range(min(each.cells for each in least) + 1, max(each.cells for each in most) + 1):
            for low, high in zip(least, most, strict=True):
                if low.cells < cells <= high.cells:
                    yield Want(low.column, cells)


HINT_CELLS = 8
"""The cells at the right end of the headings that pages of columns keep for the hint of :func:`turned`."""


class Turned(NamedTuple):
    """The columns that are shown if there is not room for all."""

    widths: list[int]
    """The cells of each column; 0 for one that is not shown."""
    hint: str = ""
    """The number of hidden columns, and the arrow keys that lead there."""
    turn: int = 0
    """The page of columns: 0 for those wanted most."""


def turned(
    fit: Callable[[int], list[int]],
    needs: Sequence[int],
    kept: Collection[int],
    room: int,
    turn: int,
) -> Turned:
    """The columns of a page. The first page has those that are wanted most. Each other page has the kept
    ones, which identify rows, and then those without room on a page before.

    :param fit: gives the widths of the columns that are wanted most, for a given room.
    :param needs: the cells that each column needs.
    """
    first = fit(room)
    if all(first):
        return Turned(first)
    base = [cells if at in kept else 0 for at, cells in enumerate(first)]
    others: list[list[int]] = []
    for at, need in enumerate(needs):
        if first[at]:
            continue
        if not others or need >= room - HINT_CELLS - taken(others[-1]):
            others.append(list(base))
        others[-1][at] = max(1, min(need, room - HINT_CELLS - taken(base) - 1))
    turn = min(turn, len(others))
    if not turn:
        return Turned(first, f"+{first.count(0)} →")
    on = " →" if turn < len(others) else ""
    return Turned(others[turn - 1], f"← {turn}/{len(others)}{on}", turn)


def taken(widths: Iterable[int]) -> int:
    """The cells that columns take, with the blanks between them."""
    shown = [width for width in widths if width]
    return sum(shown) + max(0, len(shown) - 1)


def shortened(text: str, end: str, room: int) -> str:
    """``text`` with ``end`` after it, cut to the room. If both do not fit, the text is cut and the end stays
    whole. If the end does not fit either, the beginning of both."""
    whole = text + end
    if cell_len(whole) <= room:
        return whole
    left = room - cell_len(CUT) - cell_len(end)
    if left < 1:
        return (set_cell_size(whole, room - 1) if room > 1 else "") + CUT
    return set_cell_size(text, left) + CUT + end


_NUMBERS = (
    *("number", "connection", "correlation_id", "api_version"),
    *("request_packet", "response_packet", "faults"),
)
_SIZES = ("request_size", "response_size")
_SIDE_MISSING = cell_len("[no response: ]")
_FAULTS = cell_len("[ faults]")


class Needs:
    """The needed cells, by the names of columns of the index."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._rows = 0
        self._cells = np.zeros(0, np.int64)
        """The width of every text of the index."""
        self._most: dict[str, int] = {}
        self.ends: tuple[int, ...] = ()
        """The earliest and the latest time of any row; empty without rows."""

    def look(self) -> None:
        """Measure the new rows."""
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
        """All needs. The result differs if any column needs more."""
        return tuple(self._most.values())


_POWERS = np.array([10**power for power in range(1, 6)])


def _digits(values: NDArray[Any]) -> NDArray[np.int64]:
    """The number of digits of numbers from 0 to below a million."""
    return np.searchsorted(_POWERS, values, side="right") + 1


def _size_steps() -> Iterator[tuple[int, int]]:
    """Numbers, and the cells that :func:`kdissect.present.form.size` needs from each of them on."""
    for digits in range(1, 5):
        yield 10 ** (digits - 1) if digits > 1 else 0, digits + len(" B")
    for power in (1, 2, 3):
        unit = 1_024**power
        # Rounded to one digit after the point, what is nearly a unit is one.
        yield math.ceil(1_023.95 * unit / 1_024) if power > 1 else unit, 1 + len(".0 KiB")
        for digits in range(2, 5):
            yield math.ceil((10 ** (digits - 1) - 0.05) * unit), digits + len(".0 KiB")


_SIZE_FROM, _SIZE_CELLS = (np.array(each) for each in zip(*((-1, 1), *_size_steps()), strict=True))


def _size_cells(counts: NDArray[Any]) -> NDArray[np.int64]:
    """The cells of :func:`kdissect.present.form.size`; one for an absent side."""
    found: NDArray[np.int64] = _SIZE_CELLS[np.searchsorted(_SIZE_FROM, counts, side="right") - 1]
    return found
