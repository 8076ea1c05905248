"""How many cells the columns of a list get of those that a table has.

A list says what it wants, the most wanted first. It gets as much of that as there is room for, strictly in
that order. So a wider table has all that a narrower one has. When a terminal grows, no column gets narrower
or goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from kdissect.present.sanitise import CUT


class Want(NamedTuple):
    """Cells that a column wants."""

    column: int
    """Its place among the columns."""
    cells: int
    """In all, not more than before."""


def granted(must: Iterable[Want], wants: Iterable[Want], columns: int, room: int) -> list[int]:
    """The cells of each column; 0 for one that is not shown. A blank stands between two that are.

    :param must: what is granted even if there is no room for it.
    :param wants: of a column that is shown already, a part can be granted; one that is not, is shown with all
        that it wants.
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
    """Wants of columns that share the room: those with the fewest cells get the next."""
    if least and most:
        for cells in range(min(each.cells for each in least) + 1, max(each.cells for each in most) + 1):
            for low, high in zip(least, most, strict=True):
                if low.cells < cells <= high.cells:
                    yield Want(low.column, cells)


def taken(widths: Iterable[int]) -> int:
    """Cells that columns take, with the blanks between them."""
    shown = [width for width in widths if width]
    return sum(shown) + max(0, len(shown) - 1)


def shortened(text: str, end: str, room: int) -> str:
    """``text`` with ``end`` after it, in so many cells. If both do not fit, the text is cut and the end stays
    whole. If the end does not fit either: the beginning of both."""
    whole = text + end
    if cell_len(whole) <= room:
        return whole
    left = room - cell_len(CUT) - cell_len(end)
    if left < 1:
        return (set_cell_size(whole, room - 1) if room > 1 else "") + CUT
    return set_cell_size(text, left) + CUT + end
