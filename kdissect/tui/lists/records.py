"""The records of the shown exchanges, as rows of a table. Nothing here draws.

:mod:`kdissect.feed.records` lists them. It gets the exchanges bit by bit. The found records are read when
    they are drawn, a page of lines at a time. Records are in the order in which they were found. That is the
    order of the exchanges, unless exchanges came later.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from kdissect.feed.batches import Ended
from kdissect.feed.index import Index, Places
from kdissect.feed.records import (
    ASK_EXCHANGES,
    HAS_TIME,
    IS_CONTROL,
    IS_RELATIVE,
    KEY_FRAMED,
    KEY_IS_WORDS,
    VALUE_FRAMED,
    VALUE_IS_WORDS,
    AskRecords,
    FoundRecords,
    RecordLine,
)
from kdissect.filter.compiled import Filter
from kdissect.payload.framing import framing_of
from kdissect.present.form import Clock, size
from kdissect.present.payload import is_json, one_line
from kdissect.present.sanitise import CUT
from kdissect.tui.lists.layout import Turned, Want, granted, taken, turned
from kdissect.tui.widgets.table import Heading

CARRIERS = ("Produce", "Fetch", "FetchSnapshot", "ShareFetch")
"""APIs with records in them."""


def direction_of(api: str) -> str:
    """The direction of records, in the form of the filter's ``record.direction``."""
    return "produce" if api == "Produce" else "fetch"


_PAGE = 64
"""The lines that are read at a time."""
_PAGES = 32
"""The pages that are kept."""
_MEASURED = 2
"""The widths of columns follow from all cells of this number of pages, and of the last."""

_MOST_ASKED = 2
"""The most requests that may wait for answers."""

_SPAN = np.dtype([("place", "<u4"), ("at", "<i8"), ("length", "<u4")])

_HEADINGS = (
    *(Heading("No.", 11, True), Heading("Time", 27), Heading("Direction", 9)),
    *(Heading("Client id", 40, is_name=True), Heading("Topic", 60, is_name=True), Heading("Part", 11, True)),
    *(Heading("Offset", 20, True), Heading("Key", 60), Heading("Value", 0), Heading("Hdr", 4, True)),
    *(Heading("Size", 10, True), Heading("Codec", 6)),
)
"""The columns, with their greatest widths."""
_AT = {heading.title: at for at, heading in enumerate(_HEADINGS)}
_KEPT = ("Part", "Offset")
"""The columns that are on every page of columns."""
_ALL = 1_000
_SHORT_TIME = 13
"""The width of a shortened long time, in cells: :meth:`RecordRows._time_in`."""
_LONG_TIME = 24
"""A time with this many cells is long: it has a date."""
_MUST = (("Topic", 8), ("Part", _ALL), ("Offset", _ALL), ("Key", 8), ("Value", 10))
_WANTS = (
    *(("Topic", 12), ("Direction", _ALL), ("Time", _SHORT_TIME), ("Key", 10), ("Value", 18), ("Key", 14)),
    *(("Value", 28), ("Topic", 18), ("Key", 18), ("Client id", 12), ("Value", 30), ("Time", _ALL)),
    *(("Client id", 20), ("Size", _ALL), ("Value", 40), ("Hdr", _ALL), ("Topic", 26), ("Key", 30)),
    *(("No.", _ALL), ("Codec", _ALL), ("Value", 60), ("Client id", _ALL), ("Topic", _ALL), ("Key", _ALL)),
)
"""The widths that columns get before others get any, or more. No column gets more than it needs, but the
value gets the rest."""


class Listing(Protocol):
    """Lists records: :class:`kdissect.feed.records.ListedRecords`."""

    def request(self, asked: AskRecords) -> None:
        """Hand over some exchanges."""

    def poll(self) -> Sequence[FoundRecords | Ended]:
        """The results since the last call."""

    def lines(self, start: int, count: int) -> list[RecordLine]:
        """Lines that were reported before.

        :raises OSError: they cannot be read.
        """

    def places(self, start: int, count: int) -> Places:
        """The places of their exchanges in the index.

        :raises OSError: they cannot be read.
        """


_PLACES_AT_ONCE = 1 << 14
"""The lines whose places are read at a time."""


class RecordRows:
    """The list, and the work that remains for it."""

    def __init__(self, index: Index, records: Listing) -> None:
        self._index, self._records = index, records
        self.clock = Clock("u")
        self.form = "auto"
        """One of :data:`kdissect.present.payload.FORMS`."""
        self.reason: str | None = None
        """Why no more records come."""
        self.generation = 0
        """How often the list was restarted."""
        self._needs = [cell_len(heading.title) for heading in _HEADINGS]
        """The widths that columns need, as far as known."""
        self._layouts = 0
        """How often these widths changed."""
        self._turn = 0
        """The page of columns that is shown (:func:`~kdissect.tui.lists.layout.turned`)."""
        self._laid_out: tuple[object, Turned] | None = None
        """The columns, with the data that they were made from."""
        self.begin(None)

    def begin(self, chosen: Filter | None) -> None:
        """Restart, with the records that a filter chooses."""
        self._chosen = chosen
        self.generation += 1
        self._count = 0
        self.is_full = False
        self._texts = [""]
        self._measured: tuple[str, str, int] = "", "", 0
        """The form of times, the form of values, and the number of records for which :attr:`_needs` is
        valid."""
        self._seen = 0
        """The measured pages, without the last."""
        self._pages: dict[int, list[RecordLine]] = {}
        self._places: Places = np.zeros(0, np.uint32)
        """The places of the rows' exchanges, and room for more."""
        self._known = 0
        """The number of places that were read, on demand."""
        self._taken: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """The rows of the index that were taken in."""
        self._waiting = np.zeros(0, np.uint32)
        self._asked = self._done = self._taken_in = 0
        """The numbers of exchanges: handed over; finished; and taken in, with the waiting ones."""

    def take(self, places: Places) -> None:
        """Take in the exchanges of a view that were not taken in before."""
        index = self._index
        if len(self._taken) < len(index):
            grown = np.zeros(len(index), np.bool_)
            grown[: len(self._taken)] = self._taken
            self._taken = grown
        new = places[~self._taken[places]]
        self._taken[new] = True
        carriers = [at for at, text in enumerate(index.texts) if text in CARRIERS]
        new = new[np.isin(index.column("api")[new], carriers)]
        self._waiting = np.concatenate((self._waiting, new))
        self._taken_in += len(new)

    def step(self) -> bool:
        """Ask for more, and take in the results; return whether there is anything new."""
        is_new = False
        for found in self._records.poll():
            if isinstance(found, Ended):
                self.reason, self._waiting, is_new = found.reason, self._waiting[:0], True
                self._asked = self._done
            elif found.generation == self.generation:
                is_new = True
                self._done += found.exchanges
                self._texts += found.texts
                self._grow(found.records)
                if found.is_full:
                    self.is_full, self._waiting = True, self._waiting[:0]
        while len(self._waiting) and self._asked - self._done <= (_MOST_ASKED - 1) * ASK_EXCHANGES:
            some, self._waiting = self._waiting[:ASK_EXCHANGES], self._waiting[ASK_EXCHANGES:]
            self._records.request(AskRecords(self.generation, self._chosen, self._spans(some)))
            self._asked += len(some)
        return is_new

    def _grow(self, count: int) -> None:
        if count != self._count:
            self._pages.pop(self._count // _PAGE, None)  # the last page was not full
            self._count = count

    def _spans(self, places: Places) -> bytes:
        spans = np.empty(len(places), _SPAN)
        spans["place"] = places
        spans["at"] = self._index.column("place")[places]
        spans["length"] = self._index.column("length")[places]
        return spans.tobytes()

    @property
    def is_busy(self) -> bool:
        """Whether more records are expected."""
        return self._asked > self._done or bool(len(self._waiting))

    @property
    def share(self) -> float:
        """The finished share of the exchanges."""
        return self._done / self._taken_in if self._taken_in else 1.0

    # -- rows -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._count

    def line(self, row: int) -> RecordLine | None:
        """The data of a row; None if it cannot be read."""
        number, at = divmod(row, _PAGE)
        page = self._pages.get(number)
        if page is None:
            try:
                page = self._records.lines(number * _PAGE, min(_PAGE, self._count - number * _PAGE))
            except OSError:
                page = []
            if len(self._pages) >= _PAGES:
                del self._pages[next(iter(self._pages))]
            self._pages[number] = page
        return page[at] if at < len(page) else None

    def read_places(self) -> bool:
        """Read some more of :attr:`places`, in a few milliseconds; return whether all that exist are read."""
        start = self._known
        if start >= self._count:
            return True
        try:
            found = self._records.places(start, min(_PLACES_AT_ONCE, self._count - start))
        except OSError:
            return True
        if len(self._places) < start + len(found):
            room = np.zeros(max(_PLACES_AT_ONCE, 2 * len(self._places)), np.uint32)
            room[:start] = self._places[:start]
            self._places = room
        self._places[start : start + len(found)] = found
        self._known += len(found)
        return self._known == self._count or not len(found)

    @property
    def places(self) -> Places:
        """The places of the rows' exchanges that were read so far."""
        return self._places[: self._known]

    def is_relative(self, row: int) -> bool:
        """Whether the offset of a row is counted from the first of its batch, because the broker's offset is
        unknown."""
        line = self.line(row) if row < len(self) else None
        return line is not None and bool(line.flags & IS_RELATIVE)

    def names(self, width: int) -> list[str]:
        """The titles of the columns that a table of this width has."""
        return [heading.title for heading in self.headings(width)]

    def number(self, row: int) -> int | None:
        """The number of a row's exchange."""
        line = self.line(row)
        return None if line is None else self._index.value("number", line.place)

    def columns_hint(self, width: int) -> str:
        return self._turned(width).hint

    def turn_columns(self, step: int, width: int) -> bool:
        before = self._turned(width).turn
        self._turn = max(0, before + step)
        self._turn = self._turned(width).turn
        self._layouts += 1
        return self._turn != before

    def _turned(self, width: int) -> Turned:
        """The columns for a table of this width. They are kept until something that they depend on
        changes: each row asks for them."""
        self._measure()
        known = width, self._turn, tuple(self._needs)
        if self._laid_out is None or self._laid_out[0] != known:
            kept = [_AT[title] for title in _KEPT]
            self._laid_out = known, turned(self._fitted, self._needs, kept, width, self._turn)
        return self._laid_out[1]

    def _fitted(self, room: int) -> list[int]:
        must = [Want(_AT[title], self._cells_of(title, cells)) for title, cells in _MUST]
        wants = [Want(_AT[title], self._cells_of(title, cells)) for title, cells in _WANTS]
        widths = granted(must, wants, len(_HEADINGS), room)
        if _SHORT_TIME < widths[_AT["Time"]] < self._needs[_AT["Time"]]:
            widths[_AT["Time"]] = _SHORT_TIME
        if not all(widths):  # too little for the next column: the value would have to give it back
            widths[_AT["Key"]] += max(0, room - taken(widths))
        return widths

    def headings(self, width: int) -> Sequence[Heading]:
        widths = self._turned(width).widths
        rest = _AT["Value"] if widths[_AT["Value"]] else max(at for at, cells in enumerate(widths) if cells)
        found = enumerate(zip(_HEADINGS, widths, strict=True))
        return [each._replace(width=0 if at == rest else cells) for at, (each, cells) in found if cells]

    def _cells_of(self, title: str, cells: int) -> int:
        most = _HEADINGS[_AT[title]].width
        if title == "Time" and cells == _SHORT_TIME and self._needs[_AT[title]] < _LONG_TIME:
            cells = _ALL
        return min(self._needs[_AT[title]], cells, most) if most else cells

    def _measure(self) -> None:
        """Measure the first rows and the last; a wider cell between them is cut."""
        now = self.clock.letter, self.form, self._count
        if self._measured == now:
            return
        if self._measured[:2] != now[:2] or not self._seen:
            self._needs, self._seen = [cell_len(heading.title) for heading in _HEADINGS], 0
        self._measured, before = now, list(self._needs)
        whole = min(_MEASURED, self._count // _PAGE)
        for row in (
            *range(self._seen * _PAGE, whole * _PAGE),
            *range(max(whole, (self._count - 1) // _PAGE) * _PAGE, self._count),
        ):
            self._needs = list(map(max, self._needs, map(cell_len, self._texts_of(row))))
        self._seen = whole
        self._layouts += before != self._needs

    def key(self, row: int) -> Hashable:
        return self.generation, row, self._layouts

    def tone(self, row: int) -> str | None:
        line = self.line(row)
        if line is None:
            return "table--error"
        return "table--dim" if line.flags & IS_CONTROL or line.value_size < 0 else None

    def cells(self, row: int, width: int) -> Sequence[str]:
        texts = self._texts_of(row)
        headings = self.headings(width)
        room = next((each.width for each in headings if each.title == "Time"), 0)
        if room:
            texts[_AT["Time"]] = self._time_in(room, texts[_AT["Time"]], row)
        return [texts[_AT[heading.title]] for heading in headings]

    def _texts_of(self, row: int) -> list[str]:
        """The text of a row in each of :data:`_HEADINGS`."""
        line = self.line(row)
        if line is None:
            return ["" if heading.title != "Value" else "cannot be read" for heading in _HEADINGS]
        flags = line.flags
        return [
            str(self._index.value("number", line.place)),
            self._time(line.timestamp) if flags & HAS_TIME else "",
            direction_of(self._index.text("api", line.place)),
            self._index.text("client_id", line.place),
            self._texts[line.topic],
            "" if line.partition < 0 else str(line.partition),
            f"+{line.offset}" if flags & IS_RELATIVE else str(line.offset),
            self._cell(line.key, line.key_size, bool(flags & KEY_IS_WORDS), bool(flags & KEY_FRAMED)),
            self._cell(line.value, line.value_size, bool(flags & VALUE_IS_WORDS), bool(flags & VALUE_FRAMED)),
            str(line.headers) if line.headers else "",
            size(max(0, line.key_size) + max(0, line.value_size)),
            self._texts[line.codec],
        ]

    def _time(self, milliseconds: int) -> str:
        """A time, in its own precision."""
        whole, _, part = self.clock.text(milliseconds * 1_000_000).partition(".")
        return f"{whole}.{part[:3]}" + ("Z" if part.endswith("Z") else "")

    def _time_in(self, room: int, whole: str, row: int) -> str:
        """A time; shortened if there is not room for all of it: to the time of day on the day of the
        exchange, to the date on another day. A time of day alone would be read as one of that day."""
        if len(whole) <= room or "T" not in whole:
            return whole
        line = self.line(row)
        date, _, of_day = whole.partition("T")
        day = None if line is None else self.clock.text(self._index.value("time_ns", line.place))
        return of_day if day is not None and day.startswith(f"{date}T") else date

    def _cell(self, data: bytes, count: int, is_said: bool, has_schema: bool) -> str:
        if is_said and self.form != "hex":
            text = data.decode("utf-8", "ignore")
            return text + CUT if not text.endswith(("}", ">", CUT)) else text
        if is_said:
            return CUT
        if count < 0:
            return "null"
        if has_schema:
            return f"⟨schema⟩ {_one_line(data, count, self.form)}"
        framing = framing_of(data) if self.form == "auto" else None
        if framing is not None and count > framing.size:
            rest = _one_line(data[framing.size :], count - framing.size, self.form)
            return f"⟨{framing}⟩ {rest}"
        return _one_line(data, count, self.form)


_JSON_BEGINS = re.compile(rb'\s*(\{\s*["}]|\[\s*["\[{\]\d-])')
"""The beginning of an object or array of JSON; other texts rarely begin so."""


def _one_line(data: bytes, count: int, form: str) -> str:
    """The value in one line, like :func:`~kdissect.present.payload.one_line`, but without quotes around an
    object or array of JSON, which has its own. If the text is cut, its beginning must look like JSON."""
    text = one_line(data, count, form)
    if form == "text" or text[:1] != '"' or not _JSON_BEGINS.match(data):
        return text
    if text.endswith(CUT):
        return text[1 : -1 - len(CUT)] + CUT
    return text[1:-1] if is_json(data.decode("utf-8", "replace")) else text
