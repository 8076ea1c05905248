"""Rows of figures as rows of a table: columns that fit their values, and an order. Nothing here draws.

Empty columns are left out, unless they are always shown. If there is not room for all, optional columns are
left out first. Then texts get shorter. Then the other columns of the highest rank are left out. No column is
narrower in a wider table (:mod:`kdissect.tui.lists.layout`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from kdissect.analysis.fold import Row
from kdissect.feed.searching import in_texts
from kdissect.present.form import duration, size
from kdissect.present.sanitise import sanitise, width
from kdissect.tui.lists.layout import Turned, Want, evenly, granted, turned
from kdissect.tui.widgets.table import WRONG_TONES, Heading

MEASURED = 300
"""The rows that are measured for the widths of columns. A wider cell further below is cut."""
MUST_TEXT, LEAST_TEXT, MOST_TEXT = 8, 12, 48
"""The widths of text columns, in cells: one that every required column gets if it needs it, one that it gets
before others get any, and the most."""
WHOLE_TEXT = 120
"""The most cells of a text when all columns have the widths that they want."""
WIDE_PICTURE = 72
"""The most cells of a picture then: it shows finer differences."""
ADDRESS = 26
"""The cells for an address with its port. It is never cut; IPv6 addresses may need more."""
LEGIBLE = 24
"""The cells that a text column gets before merely useful columns get any."""
USEFUL, NICE = 3, 5
"""The ranks from which on columns are useful, and optional."""
UP, DOWN = "▴", "▾"

Text = Callable[[Row], str]


def asked_text(text: str) -> tuple[bool, str]:
    """Whether rows without a text are requested, as in ``!text``; and that text."""
    is_without = len(text) > 1 and text[0] == "!"
    return is_without, text[1:] if is_without else text


class FigureColumn(NamedTuple):
    """A column of figures or texts."""

    title: str
    text: Text
    """The text in a row, sanitised."""
    sort: Callable[[Row], Any] | None = None
    """The sort key of a row; None if rows cannot be ordered by it. Rows with the key None come last."""
    rank: int = 0
    """0 for a column that gets room before all others. It is always shown, unless it is rare."""
    is_right: bool = True
    most: int = MOST_TEXT
    """The most cells of a text."""
    is_most_first: bool = True
    """Whether ordering by it begins with the largest."""
    least: int = LEAST_TEXT
    """The least cells of a text, if it needs them."""
    is_name: bool = False
    """Whether texts are names, which differ at the end as often as at the beginning."""
    is_rare: bool = False
    """Whether it is usually empty: then it is left out, whatever its rank."""
    fitted: Callable[[Row, int], str] | None = None
    """The text in a row for a given width; None for ``text``, cut to the width."""


class Figures:
    """The rows, in an order.

    :param key: identifies a row, so that the cursor can stay on it.
    :param turns: whether the arrow keys lead to columns without room; if not, the screen mentions them
        elsewhere.
    """

    def __init__(
        self,
        columns: Sequence[FigureColumn],
        key: Callable[[Row], Hashable],
        tone: Callable[[Row], str | None] | None = None,
        *,
        turns: bool = True,
    ) -> None:
        self.columns = columns
        self.sorted_by: str | None = None
        """The title of the column that orders the rows; None for the original order."""
        self.descending = False
        self.only_text = ""
        """Only rows with this text in some column are shown; all if it is empty."""
        self.only_trouble = False
        """Whether only rows with a colour for a problem are shown."""
        self._identity = key
        self._tone = tone
        self._turns = turns
        self._unordered: Sequence[Row] = ()
        self._rows: Sequence[Row] = ()
        self._version = 0
        self._layouts: dict[int, list[tuple[FigureColumn, Heading]]] = {}
        self._longest: dict[FigureColumn, int] = {}
        """The longest text of each column, in cells, in the measured rows. It is kept because three methods
        need it: making the texts of some hundred rows is most of the work for new rows."""
        self._hints: dict[int, str] = {}
        """The text about columns without room, by the width of the table."""
        self._turn = 0
        """The page of columns that is shown (:func:`~kdissect.tui.lists.layout.turned`)."""

    def show(self, rows: Sequence[Row], columns: Sequence[FigureColumn] | None = None) -> None:
        """Take other rows, perhaps with other columns."""
        if columns is not None and columns is not self.columns:
            titles = [column.title for column in columns]
            if titles != [column.title for column in self.columns]:
                self._turn = 0
            self.columns = columns
            if self.sorted_by not in titles:
                self.sorted_by = None
        self._unordered = rows
        self._arrange()

    def _arrange(self) -> None:
        rows = self._unordered
        if self.only_text:
            is_without, text = asked_text(self.only_text)
            is_in = in_texts(text)
            rows = [row for row in rows if self._has(row, is_in) != is_without]
        if self.only_trouble:
            rows = [row for row in rows if self._tone is not None and self._tone(row) in WRONG_TONES]
        column = next((each for each in self.columns if each.title == self.sorted_by), None)
        if column is not None and column.sort is not None:
            key = column.sort
            known = [row for row in rows if key(row) is not None]
            known.sort(key=key, reverse=self.descending)
            rows = [*known, *(row for row in rows if key(row) is None)]
        self._rows = rows
        self._longest.clear()
        self._changed()

    def _changed(self) -> None:
        self._version += 1
        self._layouts.clear()

    # -- the order ------------------------------------------------------------------------------------

    def sort_by(self, title: str | None) -> None:
        """Order by a column; if it is already the order, reverse it."""
        column = next((each for each in self.columns if each.title == title), None)
        if column is not None and column.sort is None:
            return
        if title is not None and title == self.sorted_by:
            self.descending = not self.descending
        else:
            self.sorted_by = title
            self.descending = column is not None and column.is_most_first
        self._arrange()

    def orders(self) -> list[str]:
        """The titles of the columns that rows can be ordered by."""
        return [each.title for each in self.columns if each.sort is not None and self._is_filled(each)]

    def sort_by_next(self, table_width: int) -> None:
        """Order by the next of the shown columns; after the last one, in the original order."""
        titles = [column.title for column, _ in self._layout(table_width) if column.sort is not None]
        at = titles.index(self.sorted_by) + 1 if self.sorted_by in titles else 0
        self.sort_by(titles[at] if at < len(titles) else None)

    def turn(self) -> None:
        """Reverse the order."""
        if self.sorted_by is None:
            self._unordered = self._unordered[::-1]
            self._arrange()
        else:
            self.sort_by(self.sorted_by)

    def sort_at(self, column: int, table_width: int) -> None:
        """Order by a column, by its place among the shown ones."""
        layout = self._layout(table_width)
        if column < len(layout):
            self.sort_by(layout[column][0].title)

    # -- which rows -----------------------------------------------------------------------------------

    def narrow(self, text: str, only_trouble: bool = False) -> None:
        """Show only rows with a text in some column, whether it has room or not; all for an empty text.

        :param text: in the form of :func:`~kdissect.feed.searching.in_texts`; with a ``!`` before it, rows
            without the text.
        :param only_trouble: whether to show only rows with errors, or with another colour.
        """
        self.only_text, self.only_trouble = text, only_trouble
        self._arrange()

    @property
    def marks_trouble(self) -> bool:
        """Whether rows with a problem have a colour."""
        return self._tone is not None

    @property
    def is_narrow(self) -> bool:
        """Whether only some rows are shown."""
        return bool(self.only_text) or self.only_trouble

    @property
    def narrowed(self) -> str:
        """The text about which rows are shown; empty if all are."""
        if not self.is_narrow:
            return ""
        is_without, text = asked_text(self.only_text)
        kinds = [f"{'without' if is_without else 'with'} {text}"] if text else []
        kinds += ["with trouble"] if self.only_trouble else []
        return f"only {len(self._rows):,} of {len(self._unordered):,}, {' and '.join(kinds)}"

    # -- for the table --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def all(self) -> Sequence[Row]:
        """All rows, also those that are not shown."""
        return self._unordered

    def row(self, row: int) -> Row:
        """The row at a place."""
        return self._rows[row]

    def row_of(self, identity: Hashable) -> int | None:
        """The current row of an identity."""
        return next((at for at, row in enumerate(self._rows) if self._identity(row) == identity), None)

    def identity(self, row: int) -> Hashable:
        """The value that identifies a row."""
        return self._identity(self._rows[row])

    def find(self, text: str, start: int, step: int) -> int | None:
        """The next row (1) with a text in some column, or the one before (-1), whether the column has room or
        not. After the last row comes the first.

        :param text: in the form of :func:`~kdissect.feed.searching.in_texts`.
        :param start: the row to search from, which is itself searched last.
        """
        is_in, count = in_texts(text), len(self._rows)
        every = ((start + step * away) % count for away in range(1, count + 1))
        return next((at for at in every if self._has(self._rows[at], is_in)), None)

    def _has(self, row: Row, is_in: Callable[[str], bool]) -> bool:
        return any(is_in(column.text(row)) for column in self.columns)

    def as_text(self, row: Row | None = None) -> str:
        """One row or all of them, with tabs between the columns that are not empty, and their headings."""
        columns = [column for column in self.columns if self._is_filled(column)]
        rows = self._rows if row is None else [row]
        lines = [
            [column.title for column in columns],
            *([each.text(row) for each in columns] for row in rows),
        ]
        return "\n".join(map("\t".join, lines))

    def headings(self, width: int) -> Sequence[Heading]:
        return [heading for _, heading in self._layout(width)]

    def columns_hint(self, width: int) -> str:
        self._layout(width)
        return self._hints.get(width, "")

    def turn_columns(self, step: int, width: int) -> bool:
        self._layout(width)
        before, self._turn = self._turn, max(0, self._turn + step)
        self._changed()
        self._layout(width)
        return self._turn != before

    def cells(self, row: int, width: int) -> Sequence[str]:
        found = self._rows[row]
        return [
            column.text(found) if column.fitted is None else column.fitted(found, heading.width)
            for column, heading in self._layout(width)
        ]

    def tone(self, row: int) -> str | None:
        return None if self._tone is None else self._tone(self._rows[row])

    def key(self, row: int) -> Hashable:
        return self._version, row

    def _layout(self, table_width: int) -> list[tuple[FigureColumn, Heading]]:
        found = self._layouts.get(table_width)
        if found is None:
            found = self._layouts[table_width] = self._laid_out(table_width)
        return found

    def _laid_out(self, room: int) -> list[tuple[FigureColumn, Heading]]:
        columns = [column for column in self.columns if self._is_filled(column)]
        most = [Want(at, self._wanted_width(column)) for at, column in enumerate(columns)]
        least = [
            each if column.is_right else each._replace(cells=min(each.cells, column.least))
            for each, column in zip(most, columns, strict=True)
        ]
        by_rank = sorted(range(len(columns)), key=lambda at: (columns[at].rank, at))
        must = [
            least[at] if columns[at].is_right else _at_most(least[at], MUST_TEXT)
            for at in by_rank
            if not columns[at].rank and columns[at].fitted is None  # a picture is never cut
        ]
        wants: list[Want] = []
        for first, last in ((0, 0), (1, USEFUL - 1), (USEFUL, NICE - 1)):
            ranks = [at for at in by_rank if first <= columns[at].rank <= last]
            wants += (least[at] for at in ranks)
            texts = [at for at in by_rank if not columns[at].is_right and columns[at].rank <= last]
            enough = [
                most[at] if last == NICE - 1 else _at_most(most[at], max(LEGIBLE, least[at].cells))
                for at in texts
            ]
            wants += evenly([least[at] for at in texts], enough)
        nice = [at for at in by_rank if columns[at].rank >= NICE]
        wants += (least[at] for at in nice)
        wants += (most[at] for at in nice)
        texts = [at for at in by_rank if not columns[at].is_right]
        wants += evenly(
            [most[at] for at in texts],
            [Want(at, self._wanted_width(columns[at], WHOLE_TEXT)) for at in texts],
        )

        def fit(cells: int) -> list[int]:
            return granted(must, wants, len(columns), cells)

        needs = [each.cells for each in most]
        found = turned(fit, needs, by_rank[:1], room, self._turn) if self._turns else Turned(fit(room))
        self._hints[room], self._turn = found.hint, found.turn
        return [
            (column, Heading(self._title(column), cells, column.is_right, column.is_name))
            for column, cells in zip(columns, found.widths, strict=True)
            if cells
        ]

    def _is_filled(self, column: FigureColumn) -> bool:
        if column.title == self.sorted_by or not (column.rank or column.is_rare):
            return True
        return self._cells(column) > 0

    def _cells(self, column: FigureColumn) -> int:
        """The width of the longest text of a column, in cells."""
        found = self._longest.get(column)
        if found is None:
            found = max((width(column.text(row)) for row in self._rows[:MEASURED]), default=0)
            self._longest[column] = found
        return found

    def _title(self, column: FigureColumn) -> str:
        if column.title != self.sorted_by:
            return column.title
        mark = DOWN if self.descending else UP
        return f"{mark}{column.title}" if column.is_right else f"{column.title}{mark}"

    def _wanted_width(self, column: FigureColumn, least: int = 0) -> int:
        """The width that a column wants, in cells.

        :param least: the width of texts, if the column gives less.
        """
        longest = self._cells(column) if column.fitted is None or not least else WIDE_PICTURE
        apart = 1 if column.is_right else 0  # figures are more than one blank apart
        return max(width(self._title(column)), min(longest, max(column.most, least))) + apart


def _at_most(want: Want, cells: int) -> Want:
    return want._replace(cells=min(want.cells, cells))


# -- columns ------------------------------------------------------------------------------------------


def _of(name: str) -> Callable[[Row], Any]:
    return lambda row: row[name]


def _text_if(form: Callable[[Any], str], name: str) -> Text:
    def text(row: Row) -> str:
        value = row[name]
        return "" if value is None else form(value)

    return text


def number(title: str, name: str, rank: int = 0) -> FigureColumn:
    """A count."""
    return FigureColumn(title, _text_if(lambda value: f"{value:,}", name), _of(name), rank)


def exchange_number(name: str, rank: int = 0) -> FigureColumn:
    """The number of an exchange, as all outputs write it: without commas."""
    return FigureColumn("No.", _text_if(str, name), _of(name), rank)


def rare(title: str, name: str, rank: int = 0) -> FigureColumn:
    """A count of unwanted events: empty for 0."""
    text = _text_if(lambda value: f"{value:,}" if value else "", name)
    return FigureColumn(title, text, _of(name), rank, is_rare=True)


def error_columns(rank: int = 0) -> tuple[FigureColumn, FigureColumn, FigureColumn]:
    """The columns of errors: all, fatal ones, and routine ones."""
    return rare("Errors", "errors", rank), rare("Fatal", "fatal", rank), rare("Routine", "routine", NICE)


def grave_tone(row: Row) -> str | None:
    """The tone of a row with errors: red with fatal ones, else amber."""
    if row.get("fatal"):
        return "table--error"
    return "table--warning" if row.get("errors") else None


def rate(title: str, name: str, rank: int = 0) -> FigureColumn:
    """A rate per second."""
    return FigureColumn(title, _text_if(lambda value: f"{value:,.1f}", name), _of(name), rank)


def time_span(title: str, name: str, rank: int = 0) -> FigureColumn:
    """A duration in nanoseconds."""
    return FigureColumn(title, _text_if(duration, name), _of(name), rank)


def rare_span(title: str, name: str, rank: int = 0) -> FigureColumn:
    """The duration of unwanted events: empty for 0."""
    return FigureColumn(
        title, _text_if(lambda value: duration(value) if value else "", name), _of(name), rank
    )


def in_bytes(title: str, name: str, rank: int = 0) -> FigureColumn:
    """A size; empty for 0."""
    return FigureColumn(title, _text_if(lambda value: size(value) if value else "", name), _of(name), rank)


def words(
    title: str, name: str, rank: int = 0, most: int = MOST_TEXT, least: int = LEAST_TEXT
) -> FigureColumn:
    """A text from the wire."""
    return FigureColumn(title, _text_if(sanitise, name), _of(name), rank, False, most, False, least)


def name_column(
    title: str, name: str, rank: int = 0, most: int = MOST_TEXT, least: int = LEAST_TEXT
) -> FigureColumn:
    """A name from the wire: of a topic, client, group …"""
    return words(title, name, rank, most, least)._replace(is_name=True)


CLUSTER = name_column("Cluster", "cluster_id", 1, 24)
"""The cluster of a row, if rows look the same without it."""


def address(title: str, name: str, rank: int = 0) -> FigureColumn:
    """An address, perhaps with a port."""
    return name_column(title, name, rank, ADDRESS, ADDRESS)


def list_column(title: str, name: str, rank: int = 0, most: int = MOST_TEXT) -> FigureColumn:
    """Several texts."""

    def text(row: Row) -> str:
        return ", ".join(sanitise(each) for each in row[name])

    return FigureColumn(title, text, text, rank, False, most, False)
