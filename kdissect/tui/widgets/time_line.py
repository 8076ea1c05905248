"""A time line of the whole capture. A range of it can be chosen by keys or with the mouse.

Each column is a span of time. Lines show the brokers' times, requests, errors, and events. With a filter they
are about the filtered exchanges, and have their own scale, so that few among many are still visible. A line
of all requests is below, if there is room for it. A dot means that only other exchanges are there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import clamp
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from kdissect.analysis.fold import MILLISECOND, Row
from kdissect.analysis.moments import LEADER, REBALANCE, TRANSACTION
from kdissect.feed.summary import NONE, OverTime
from kdissect.present.form import duration, plural, size
from kdissect.settings.places import PLACES
from kdissect.tui.colors import Legible
from kdissect.tui.keys import bindings_of

GUTTER = 20
"""The width of the labels of lines, in front of the columns."""
SIGNS = {REBALANCE: "▲", LEADER: "◆", TRANSACTION: "●"}
MIXED = "✱"
"""The sign for moments of more than one kind."""
_WORDS = (
    {REBALANCE: "rebalance", LEADER: "leader", TRANSACTION: "transaction"},
    {REBALANCE: "rebalance", LEADER: "lead", TRANSACTION: "txn"},
    {REBALANCE: "rebal", LEADER: "lead", TRANSACTION: "tx"},
)
"""The words for the kinds of moments, shorter if several need room."""
_BLOCKS = " ▁▂▃▄▅▆▇█"
_SHADE = "▒"
_OTHERS = "·"
"""The sign for exchanges that the filter hides."""
_EIGHTHS = 8
_HALF_AND_MOST = f"p50 {_BLOCKS[_EIGHTHS]} p99 {_SHADE}"
_PAGE = 10
"""The columns that a page key moves."""
_WITH_BYTES, _MORE_BYTES = 9, 16
"""The numbers of lines from which on a time line shows bytes in one of them, and in two."""

_COUNTED = {"requests": ("request", "requests"), "bytes": ("byte", "bytes"), "error": ("error", "errors")}
"""The names of the counted things, in the singular and the plural."""

Cell = tuple[str, str]
"""A character, and the component class that colours it."""


class TimeLine(Legible, can_focus=True):
    """The line, with a cursor and perhaps a range."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "time--label",
        "time--half",
        "time--most",
        "time--requests",
        "time--bytes",
        "time--error",
        "time--mark",
        "time--axis",
        "time--range",
        "time--finding",
    }
    DEFAULT_CSS = """
    TimeLine { height: 8; background: $surface; }
    TimeLine .time--label { background: $surface; color: $text-muted; }
    TimeLine .time--half { background: $surface; color: $text-primary; }
    TimeLine .time--most { background: $surface; color: $text-muted; }
    TimeLine .time--requests { background: $surface; color: $text-accent; }
    TimeLine .time--bytes { background: $surface; color: $text-secondary; }
    TimeLine .time--error { background: $surface; color: $text-error; }
    TimeLine .time--mark { background: $surface; color: $text-warning; text-style: bold; }
    TimeLine .time--axis { background: $surface; color: $text-muted; }
    TimeLine .time--finding { background: $surface; color: $text-warning; text-style: bold; }
    TimeLine .time--range { background: $accent; color: $text; text-style: bold; }
    TimeLine:focus .time--label { background: $surface; color: $foreground; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("time")
    BINDING_GROUP_TITLE = PLACES["time"]
    cursor: reactive[int] = reactive(0)
    """The column under the cursor."""
    begun: reactive[int | None] = reactive(None)
    """The column where a range was begun that is not complete yet."""

    class Moved(Message):
        """The cursor is in another column, or a range was begun."""

    class Chosen(Message):
        """A range was chosen: from one column to another, both inclusive."""

        def __init__(self, first: int, last: int) -> None:
            self.first, self.last = first, last
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.over_time: OverTime | None = None
        self.shown: OverTime | None = None
        """The figures of the filtered exchanges; None without a filter."""
        self.prefers_bytes = False
        """Whether bars of bytes replace those of requests, if there is no room for both."""
        self.without_any = "reading …"
        """The text while there is nothing to draw."""
        self.marks: Sequence[Row] = ()
        """The events, from :mod:`kdissect.feed.judging`."""
        self._signs: dict[int, str] = {}
        self._range: tuple[int, int] | None = None
        """The chosen range, from and to in ns."""
        self._finding: tuple[int, int] | None = None
        """The range of the finding under the cursor of the list."""

    @property
    def spans(self) -> int:
        """The number of columns of time."""
        return max(1, self.size.width - GUTTER - 1)

    def show(self, over_time: OverTime | None, marks: Sequence[Row], shown: OverTime | None = None) -> None:
        """Show other figures.

        :param shown: the figures of the filtered exchanges, in the same spans.
        """
        self.over_time, self.marks, self.shown = over_time, marks, shown
        self._signs = {}
        if over_time is not None:
            for mark in marks:
                at, sign = over_time.at(mark["ns"]), SIGNS[mark["kind"]]
                self._signs[at] = sign if self._signs.get(at, sign) == sign else MIXED
            self.cursor = min(self.cursor, len(over_time) - 1)
        self.refresh()

    def set_empty_text(self, text: str) -> None:
        """Show another text if there is nothing to draw."""
        if text != self.without_any:
            self.without_any = text
            self.refresh()

    def point_at(self, chosen: tuple[int, int] | None, finding: tuple[int, int] | None) -> None:
        """Mark the chosen range and the finding; each from and to in ns."""
        if (chosen, finding) != (self._range, self._finding):
            self._range, self._finding = chosen, finding
            self.refresh()

    def words(self, chosen: tuple[int, int] | None = None) -> str:
        """The contents of some columns, from the first to the last; by default the begun range, or the column
        under the cursor."""
        over = self.over_time
        if over is None:
            return ""
        first, last = chosen or self._under_cursor()
        start, end = over.span(first, last)
        some = slice(first, last + 1)
        seconds = (end - start) / 1e9
        requests, errors = int(over.requests[some].sum()), int(over.errors[some].sum())
        of_requests, of_errors, p99_ns, amount = "", "", over.p99_ns[some], int(over.bytes[some].sum())
        if self.shown is not None:
            count, bad = int(self.shown.requests[some].sum()), int(self.shown.errors[some].sum())
            of_requests = f"{_rate(count / seconds) if seconds >= 1 else f'{count:,}'} of "
            of_errors, p99_ns = f"{bad:,} of ", self.shown.p99_ns[some]
            amount = int(self.shown.bytes[some].sum())
        parts = [
            f"{_seconds(max(0, start - over.zero_ns))} to {_seconds(end - over.zero_ns)}",
            of_requests
            + (f"{_rate(requests / seconds)} requests" if seconds >= 1 else plural(requests, "request")),
            of_errors + plural(errors, "error"),
        ]
        known = p99_ns[p99_ns != NONE]
        if len(known):
            parts.append(f"p99 {'up to ' if len(known) > 1 else ''}{duration(int(known.max()))}")
        parts.append(f"{size(round(amount / seconds))}/s" if seconds >= 1 else size(amount))
        told = [mark for mark in self.marks if start <= mark["ns"] < end]
        for mark in told[:2]:
            parts.append(mark["text"] + (f" and {mark['count'] - 1:,} more" if mark["count"] > 1 else ""))
        if len(told) > 2:
            parts.append(f"{len(told) - 2:,} more")
        return " · ".join(parts)

    @property
    def _figures(self) -> OverTime:
        """The drawn figures."""
        found = self.over_time if self.shown is None else self.shown
        assert found is not None
        return found

    def _under_cursor(self) -> tuple[int, int]:
        begun = self.cursor if self.begun is None else self.begun
        return min(begun, self.cursor), max(begun, self.cursor)

    # -- drawing --------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        lines = self._lines()
        over = self.over_time
        if over is None or y >= len(lines):
            text = f" {self.without_any}" if y == 0 and over is None else ""
            return self._strip([(each, "time--label") for each in f"{text:<{width}}"[:width]], width)
        label, cells = lines[y]()
        before = [(each, _LEGEND.get(each, "time--label")) for each in f" {label:<{GUTTER - 1}}"[:GUTTER]]
        return self._strip([*before, *cells], width)

    def _strip(self, cells: Sequence[Cell], width: int) -> Strip:
        first, last = self._under_cursor() if self.over_time is not None else (0, -1)
        shows_cursor = self.has_focus or self.begun is not None
        under = range(first + GUTTER, last + 1 + GUTTER) if shows_cursor else range(0)
        segments: list[Segment] = []
        at = 0
        kind: str
        for kind, run in groupby(cells, itemgetter(1)):
            style = self.get_component_rich_style(kind)
            text = "".join(character for character, _ in run)
            for part, is_under in _parts(text, at, under):
                shown = style + _REVERSED if is_under else style
                if segments and segments[-1].style == shown:
                    segments[-1] = Segment(segments[-1].text + part, shown)
                else:
                    segments.append(Segment(part, shown))
            at += len(text)
        return Strip(segments).adjust_cell_length(width, self.get_component_rich_style("time--label"))

    def _lines(self) -> list[Callable[[], tuple[str, list[Cell]]]]:
        """The functions that make the lines, from the top."""
        height = self.size.height
        with_bytes = (height >= _WITH_BYTES) + (height >= _MORE_BYTES)
        first = "requests" if with_bytes or not self.prefers_bytes else "bytes"
        rest = max(2, height - 3 - with_bytes)
        work = (3 * rest + 2) // 5
        out: list[Callable[[], tuple[str, list[Cell]]]] = []
        out += [lambda row=row: self._work(row, work) for row in range(work)]  # type: ignore[misc]
        with_all = int(self.shown is not None and rest - work > 1)
        bars = rest - work - with_all
        out += [lambda row=row: self._bars(row, bars, first) for row in range(bars)]  # type: ignore[misc]
        out += [self._all_requests] * with_all
        out += [lambda row=row: self._bars(row, with_bytes, "bytes") for row in range(with_bytes)]  # type: ignore[misc]
        out.append(lambda: self._bars(0, 1, "error"))
        return [*out, self._marks_line, self._axis]

    def _work(self, row: int, rows: int) -> tuple[str, list[Cell]]:
        """The brokers' times, on a logarithmic scale: up to the p50 of a column, and up to its p99."""
        over = self._figures
        most = int(over.p99_ns.max())
        if most == NONE:
            is_known = bool(over.requests.any())
            return ("broker time ?" if row == 0 and is_known else ""), [(" ", "time--most")] * len(over)
        known = over.p50_ns[over.p50_ns != NONE]
        least = min(max(1, int(known.min())), max(1, most // 10))
        p50, p99 = (_levels(each, least, most, rows) for each in (over.p50_ns, over.p99_ns))
        base = (rows - 1 - row) * _EIGHTHS
        if rows == 1:
            label = f"broker p99≤{duration(most)}"
        else:
            label = f"broker ≤ {duration(most)}" if row == 0 else _HALF_AND_MOST if row == 1 else ""
        if row == rows - 1 and rows > 2:
            label = f"≥ {duration(least)}"
        return label, [
            _half_or_most(half - base, all_of - base, rows)
            for half, all_of in zip(p50.tolist(), p99.tolist(), strict=True)
        ]

    def _bars(self, row: int, rows: int, what: str) -> tuple[str, list[Cell]]:
        over = self._figures
        counts = self._counts(over, what)
        most = int(counts.max())
        base = (rows - 1 - row) * _EIGHTHS
        rate = float(over.rate(counts).max())
        one, name = _COUNTED[what]
        if most == 0:
            label = f"no {name}" if self.shown is None else f"no {one} shown"
        elif over.length_ns < MILLISECOND:  # a rate would be far higher than the count
            label = f"≤ {size(most)}" if what == "bytes" else f"≤ {plural(most, one)}"
        else:
            label = f"≤ {size(round(rate))}/s" if what == "bytes" else _most_of(name, rate)
        levels = -(-counts * rows * _EIGHTHS // max(1, most))
        kind = f"time--{what}"
        cells = [(_BLOCKS[level], kind) for level in np.clip(levels - base, 0, _EIGHTHS).tolist()]
        if rows == 1 and self.shown is not None and self.over_time is not None:
            all_of = self._counts(self.over_time, what)
            cells = [
                (_OTHERS, "time--label") if not count and others else cell
                for cell, count, others in zip(cells, counts, all_of, strict=True)
            ]
        return (label if row == 0 else ""), cells

    def _all_requests(self) -> tuple[str, list[Cell]]:
        """The exchanges that the filter shows, and all others."""
        over = self.over_time
        assert over is not None
        most = int(over.requests.max())
        short = over.length_ns < MILLISECOND
        label = f"all ≤ {most:,}" if short else _most_of("all", float(over.rate(over.requests).max()))
        levels = -(-over.requests * _EIGHTHS // max(1, most))
        return label, [(_BLOCKS[level], "time--label") for level in levels.tolist()]

    @staticmethod
    def _counts(over: OverTime, what: str) -> NDArray[np.int64]:
        return {"requests": over.requests, "bytes": over.bytes, "error": over.errors}[what]

    def _marks_line(self) -> tuple[str, list[Cell]]:
        over = self.over_time
        assert over is not None
        kinds = dict.fromkeys(mark["kind"] for mark in self.marks)
        labels = [" ".join(f"{SIGNS[kind]}{words[kind]}" for kind in kinds) for words in _WORDS]
        label = next((each for each in labels if len(each) < GUTTER - 1), labels[-1])
        return label, [(self._signs.get(at, " "), "time--mark") for at in range(len(over))]

    def _axis(self) -> tuple[str, list[Cell]]:
        over = self.over_time
        assert over is not None
        cells: list[Cell] = [("─", "time--axis")] * len(over)
        for place, kind, sign in ((self._finding, "time--finding", "═"), (self._range, "time--range", "━")):
            if place is not None:
                first, last = over.at(place[0]), over.at(max(place[0], place[1] - 1))
                cells[first : last + 1] = [(sign, kind)] * (last - first + 1)
        whole = _seconds(len(over) * over.length_ns)
        for at, text in ((0, "0 s"), (len(over) - len(whole), whole)):
            for step, character in enumerate(text):
                if 0 <= at + step < len(over):
                    cells[at + step] = character, cells[at + step][1]
        return self._text_below(), cells

    def _text_below(self) -> str:
        """The text before the axis: the meaning of a dot, and the key for bars without room."""
        if self.size.height >= _WITH_BYTES:
            return "since the start" if self.shown is None else f"{_OTHERS} not shown"
        if self.shown is None:
            return f"B shows {'requests' if self.prefers_bytes else 'bytes'}"
        return f"{_OTHERS} hidden B: {'req/s' if self.prefers_bytes else 'bytes'}"

    def swap_bars(self) -> bool:
        """Show bytes in place of requests, or requests again; return False if both have room anyway."""
        if self.size.height >= _WITH_BYTES:
            return False
        self.prefers_bytes = not self.prefers_bytes
        self.refresh()
        return True

    # -- keys and mouse -------------------------------------------------------------------------------

    def validate_cursor(self, column: int) -> int:
        return clamp(column, 0, (len(self.over_time) if self.over_time is not None else 1) - 1)

    def watch_cursor(self) -> None:
        if self.is_mounted:
            self.post_message(self.Moved())

    def on_focus(self) -> None:
        self.post_message(self.Moved())

    def action_move(self, columns: int) -> None:
        self.cursor += columns

    def action_stretch(self, columns: int) -> None:
        """Begin a range unless one is begun, and move its end."""
        if self.begun is None:
            self.begun = self.cursor
        self.cursor += columns

    def action_page(self, pages: int) -> None:
        self.cursor += pages * _PAGE

    def action_to(self, column: int) -> None:
        self.cursor = column if column >= 0 else 1 << 30

    def action_begin(self) -> None:
        """Begin a range at the cursor; if one was begun, forget it."""
        self.begun = self.cursor if self.begun is None else None
        self.post_message(self.Moved())

    def action_choose(self) -> None:
        if self.over_time is not None:
            first, last = self._under_cursor()
            self.begun = None
            self.post_message(self.Chosen(first, last))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if event.x >= GUTTER:
            self.cursor = event.x - GUTTER
            self.begun = self.cursor
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.begun is not None and self.app.mouse_captured is self:
            self.cursor = event.x - GUTTER

    def on_mouse_up(self) -> None:
        if self.app.mouse_captured is self:
            self.release_mouse()
            if self.begun != self.cursor:
                self.action_choose()
            self.begun = None


def _levels(values: NDArray[np.int64], least: int, most: int, rows: int) -> NDArray[np.int64]:
    """Times as eighths of a line, logarithmic; 0 without a known time. A time of 0, or less, is as low as the
    least: with a clock of microseconds all of them may be 0."""
    top = rows * _EIGHTHS - 1
    scale = math.log(max(most, least) / least) or 1.0
    found = 1 + np.log(np.maximum(values, least) / least) / scale * top
    return np.where(values == NONE, 0, np.rint(found)).astype(np.int64)


def _parts(text: str, at: int, under: range) -> Iterator[tuple[str, bool]]:
    """The parts of a text before, under and after the cursor, and whether each is under it.

    :param at: the cell of its first character.
    :param under: the cells under the cursor.
    """
    start, end = (clamp(cell - at, 0, len(text)) for cell in (under.start, under.stop))
    for part, is_under in ((text[:start], False), (text[start:end], True), (text[end:], False)):
        if part:
            yield part, is_under


_REVERSED = Style(reverse=True)
_LEGEND = {_BLOCKS[_EIGHTHS]: "time--half", _SHADE: "time--most"}
"""The signs for bars in a label: each has the colour of its bars."""


def _half_or_most(half: int, most: int, rows: int) -> Cell:
    """A cell of a column with these eighths below the p50, and below the p99."""
    if half > 0 and rows > 1:
        return _BLOCKS[min(half, _EIGHTHS)], "time--half"
    if most >= _EIGHTHS:
        return (_SHADE if rows > 1 else _BLOCKS[_EIGHTHS]), "time--most"
    return _BLOCKS[max(0, most)], "time--most"


def _most_of(name: str, rate: float) -> str:
    """The text before the bars of a rate: as much as has room with its unit."""
    texts = (f"{name} ≤ {_rate(rate)}", f"≤ {_rate(rate)} {name}", f"≤ {rate:,.0f} {name[:3]}/s")
    return next((each for each in texts if len(each) < GUTTER - 1), f"≤ {rate:.1e} {name[:3]}/s")


def _rate(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"


def _seconds(ns: int) -> str:
    return duration(ns) if ns else "0 s"
