"""Response times over time as a heat map, and its pane.

The map has a line for each band of response times, the longest at the top, and a column for each span of
time. A cell with more exchanges is darker. With more lines, the bands are narrower. In the pane a cursor goes
through bands and moments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import clamp
from textual.reactive import reactive
from textual.strip import Strip

from kdissect.analysis.histogram import BANDS_NS
from kdissect.durations import exact_duration
from kdissect.feed.index import Index, Places
from kdissect.feed.summary import equal_spans
from kdissect.present.form import duration, plural
from kdissect.settings.actions import HEAT_HELP
from kdissect.tui.keys import bindings_of
from kdissect.tui.widgets.table import Heading, TableMessage, VirtualTable

SHADES = " ·░▒▓█"
"""The shades from no exchanges to the most of any cell."""
_LABEL, _COUNT = 10, 9
"""The widths of the first columns, in cells."""
BEFORE = _LABEL + _COUNT + 2
"""The cells before the columns of time."""


def _edges(parts: int) -> NDArray[np.int64]:
    """The ends of bands if each of the usual bands is divided into this many parts."""
    usual = np.log(np.array(BANDS_NS, np.float64))
    at = np.linspace(0, len(usual) - 1, (len(usual) - 1) * parts + 1)
    found = np.exp(np.interp(at, np.arange(len(usual)), usual)).round().astype(np.int64)
    found[::parts] = BANDS_NS
    return found


WIDE_EDGES_NS, EDGES_NS = np.array(BANDS_NS[::2]), np.array(BANDS_NS)
"""The ends of bands if each reaches to ten times its beginning, and the ends of the usual bands."""
EDGES_BY_ROOM = (WIDE_EDGES_NS, EDGES_NS, *map(_edges, (2, 3, 4, 5)))
"""The bands from few lines to many."""


class HeatCell(NamedTuple):
    """The meaning of a cell, or of a whole line."""

    lowest_ns: int | None
    below_ns: int | None
    """The response times from the first value up to the second, exclusive; None for no end."""
    span: tuple[int, int] | None
    """The time from and to, ns since the epoch; the end is exclusive. None for a line."""
    exchanges: int
    slowest_ns: int | None
    slowest: int | None
    """The longest response time, and the number of its exchange."""

    @property
    def band(self) -> str:
        """The filter for the response times, with the exact ends."""
        ends = (("latency >=", self.lowest_ns), ("latency <", self.below_ns))
        return " and ".join(f"{words} {exact_duration(ns)}" for words, ns in ends if ns is not None)

    def words(self, text_of: Callable[[int], str]) -> str:
        """The meaning of the cell, in a line.

        :param text_of: writes a time.
        """
        parts = [_band_words(self.lowest_ns, self.below_ns)]
        if self.span is not None:
            parts.append(" to ".join(map(text_of, self.span)))
        said = plural(self.exchanges, "exchange")
        if self.slowest_ns is not None:
            said += f", the slowest {duration(self.slowest_ns)} (No. {self.slowest:,})"
        return " · ".join([*parts, said])


def _band_words(lowest_ns: int | None, below_ns: int | None) -> str:
    if lowest_ns is None or below_ns is None:
        return f"≥ {duration(lowest_ns)}" if lowest_ns is not None else f"< {duration(below_ns or 0)}"
    return f"{duration(lowest_ns)} to {duration(below_ns)}"


class Heat:
    """The lines.

    :param text_of: writes a time.
    """

    def __init__(self, text_of: Callable[[int], str]) -> None:
        self._text_of = text_of
        self._times: NDArray[Any] = np.zeros(0, np.int64)
        self._latencies: NDArray[Any] = np.zeros(0, np.int64)
        self._numbers: Callable[[int], int] = int
        """Gives the number of an exchange."""
        self._edges: NDArray[Any] = EDGES_NS
        self._bands: NDArray[Any] = np.zeros(0, np.int64)
        """The band of each exchange."""
        self._counts: list[int] = []
        """The number of exchanges in each band."""
        self._whole = 0, 1
        """The beginning and the end of the capture, or of the chosen range of time."""
        self._span = 0, 1
        """The same span, widened to contain all exchanges."""
        self._title = ""
        self._version = 0
        self._made: dict[int, tuple[NDArray[np.int64], list[str]]] = {}
        """Counts and lines, by the number of columns."""

    def show(self, index: Index, places: Places, title: str, chosen: tuple[int, int] | None = None) -> None:
        """Take other exchanges.

        :param title: the text about them, sanitised.
        :param chosen: the beginning and end of the chosen range of time; None for the whole capture.
        """
        self._times = index.column("time_ns")[places]
        self._latencies = index.column("latency_ns")[places]
        self._numbers = lambda at: index.value("number", int(places[at]))
        start, end = index.first_ns or 0, index.last_ns or 0
        if chosen is not None:
            start, end = max(start, chosen[0]), min(end, chosen[1])
        self._whole = self._span = start, max(start + 1, end)
        if len(places):
            self._span = min(start, int(self._times.min())), max(self._span[1], int(self._times.max()))
        self._title = title
        self._sort_in()

    def fit(self, lines: int) -> None:
        """Use as many bands as there are lines for, but at least the fewest possible."""
        edges = next((each for each in reversed(EDGES_BY_ROOM) if len(each) < lines), EDGES_BY_ROOM[0])
        if edges is not self._edges:
            self._edges = edges
            self._sort_in()

    def _sort_in(self) -> None:
        self._bands = np.searchsorted(self._edges, self._latencies, side="right")
        self._counts = np.bincount(self._bands, minlength=len(self._edges) + 1).tolist()
        self._version += 1
        self._made.clear()

    def __len__(self) -> int:
        return len(self._edges) + 1 if len(self._times) else 0

    # -- bands and columns ----------------------------------------------------------------------------

    def band(self, row: int) -> tuple[int | None, int | None]:
        """The times of a line: from, in ns, and below; None for no end."""
        edges = self._edges.tolist()
        at = len(edges) - row
        return edges[at - 1] if at else None, edges[at] if at < len(edges) else None

    def row_of(self, lowest: int | None) -> int:
        """The line of the band with a time, or the last line for None."""
        at = 0 if lowest is None else int(np.searchsorted(self._edges, lowest, side="right"))
        return len(self._edges) - at

    def slowest_row(self) -> int:
        """The line of the slowest exchange; the first line without any."""
        return self.row_of(int(self._latencies.max())) if len(self._times) else 0

    def span(self, column: int, columns: int) -> tuple[int, int]:
        """The beginning and the exclusive end of a column's time.

        :param columns: the number of columns.
        """
        start, length = equal_spans(*self._span, columns)
        return start + column * length, start + (column + 1) * length

    def column_of(self, ns: int, columns: int) -> int:
        """The column of a time, or the nearest.

        :param columns: the number of columns.
        """
        start, length = equal_spans(*self._span, columns)
        return max(0, min(columns - 1, (ns - start) // length))

    def columns_with_any(self, row: int, columns: int) -> Sequence[int]:
        """The columns in which a line has exchanges.

        :param columns: the number of columns.
        """
        found: list[int] = np.flatnonzero(self._grid(columns)[0][row]).tolist()
        return found

    def cell(self, row: int, column: int | None, columns: int) -> HeatCell:
        """The meaning of a cell of a line; without a column, of the whole line."""
        some = self._bands == len(self._edges) - row
        span = None if column is None else self.span(column, columns)
        if span is not None:
            some &= (self._times >= span[0]) & (self._times < span[1])
            # Columns begin at round times. The first one may begin before the capture does.
            span = max(span[0], self._span[0]), span[1]
        found = np.flatnonzero(some)
        at = int(found[self._latencies[found].argmax()]) if len(found) else None
        slowest = (None, None) if at is None else (int(self._latencies[at]), self._numbers(at))
        return HeatCell(*self.band(row), span, len(found), *slowest)

    # -- lines ----------------------------------------------------------------------------------------

    def headings(self, width: int) -> Sequence[Heading]:
        first, last = map(self._text_of, self._whole)
        return (
            Heading("Latency", _LABEL, True),
            Heading("Count", _COUNT, True),
            Heading(f"{first} to {last}   {self._title}" if len(self) else "no response times", 0),
        )

    def key(self, row: int) -> Hashable:
        return self._version, row

    def tone(self, row: int) -> str | None:
        return None

    def cells(self, row: int, width: int) -> Sequence[str]:
        lowest, below = self.band(row)
        label = _band_words(lowest, None if lowest is not None else below)
        count = self._counts[len(self._edges) - row]
        return [label, f"{count:,}" if count else "", self._grid(max(1, width - BEFORE))[1][row]]

    def _grid(self, columns: int) -> tuple[NDArray[np.int64], list[str]]:
        found = self._made.get(columns)
        if found is None:
            start, length = equal_spans(*self._span, columns)
            lines = len(self._edges) + 1
            at = (lines - 1 - self._bands) * columns + (self._times - start) // length
            grid = np.bincount(at, minlength=lines * columns).reshape(lines, columns)
            # A single exchange is visible among thousands.
            scale = np.log1p(grid) / max(1.0, float(np.log1p(grid.max())))
            shades = np.where(grid > 0, np.maximum(1, np.ceil(scale * (len(SHADES) - 1))), 0).astype(int)
            found = self._made[columns] = grid, ["".join(SHADES[at] for at in line) for line in shades]
        return found


CROSS = "┼"
"""The sign in the cell under the cursor, whatever its shade: with reversed colours a full cell would look
like an empty one."""


def _bindings() -> list[BindingType]:
    return [
        replace(each, tooltip=HEAT_HELP[each.id])
        if isinstance(each, Binding) and each.id in HEAT_HELP
        else each
        for each in bindings_of("list")
    ]


class HeatTable(VirtualTable, inherit_bindings=False):
    """The heat map, with as many bands as it has lines. Until the cursor is moved, it is at the slowest band
    that has an exchange."""

    BINDINGS: ClassVar[list[BindingType]] = _bindings()
    rows: Heat
    moment: reactive[int | None] = reactive(None, repaint=False)
    """The beginning of the column of time under the cursor, ns since the epoch; None for the whole band."""
    _put = 0
    """The line on which the cursor was put."""

    class Moved(TableMessage):
        """The cursor is in another column, or the focus came or went."""

    @property
    def room(self) -> int:
        """The number of columns of time."""
        return max(1, self.columns - BEFORE)

    @property
    def moment_column(self) -> int | None:
        """The column of time under the cursor; None for the whole band."""
        return None if self.moment is None else self.rows.column_of(self.moment, self.room)

    @property
    def cell(self) -> HeatCell | None:
        """The cell under the cursor; None without any."""
        return self.rows.cell(self.cursor, self.moment_column, self.room) if len(self.rows) else None

    @property
    def _is_moved(self) -> bool:
        return self.moment is not None or self.cursor != self._put

    def show_others(self, is_of_other: bool) -> None:
        """Show changed rows.

        :param is_of_other: whether their subject is another one, for which the cursor starts again.
        """
        if is_of_other:
            self.moment = None
        is_moved = self._is_moved and not is_of_other
        self._put = self.rows.slowest_row()
        self.rows_changed(self.cursor if is_moved else self._put)

    def on_resize(self) -> None:
        (lowest, _), is_moved = self.rows.band(self.cursor), self._is_moved
        self.rows.fit(self.page)
        self._put = self.rows.slowest_row()
        self.rows_changed(self.rows.row_of(lowest) if is_moved else self._put)

    # -- drawing --------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        strip, column = super().render_line(y), self.moment_column
        is_head = y == 0
        if column is None or not (is_head or self.scroll_offset.y + y - 1 == self.cursor):
            return strip
        x = BEFORE + column
        here = strip.crop(x, x + 1)
        style = next((each.style for each in here if each.style is not None), Style())
        mark = Segment(here.text if is_head else CROSS, style + Style(reverse=not style.reverse))
        return Strip.join([strip.crop(0, x), Strip([mark]), strip.crop(x + 1)])

    def watch_moment(self) -> None:
        if self.is_mounted:
            self.refresh()
            self.post_message(self.Moved(self))

    # -- keys and mouse -------------------------------------------------------------------------------

    def on_focus(self) -> None:
        self.post_message(self.Moved(self))

    def on_blur(self) -> None:
        self.post_message(self.Moved(self))

    def action_column(self, step: int) -> None:
        """Go to the moment after (1) or before (-1). From the whole band, go to the first or the last moment
        with exchanges; before the first moment is the whole band."""
        if not len(self.rows):
            return
        at, room = self.moment_column, self.room
        if at is None:
            found = self.rows.columns_with_any(self.cursor, room) or (0, room - 1)
            at = found[0 if step > 0 else -1]
        else:
            at += step
        self._go_to_column(at)

    def _go_to_column(self, at: int) -> None:
        room = self.room
        self.moment = None if at < 0 else self.rows.span(clamp(at, 0, room - 1), room)[0]

    def on_click(self, event: events.Click) -> None:
        """Choose the cell; the list handles the rest of the click. A click on the words before the cells
        chooses the band."""
        at = event.get_content_offset(self)
        if at is not None and at.y and self.scroll_offset.y + at.y - 1 < len(self.rows):
            self._go_to_column(min(at.x - BEFORE, self.room - 1))
