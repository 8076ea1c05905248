"""The arrangement of the list of exchanges: its columns, its order, and when it is sorted again.

Columns are chosen from all of them, or made from the field under the cursor. Sorting a million rows takes a
tenth of a second, and while a capture is read, more rows come ten times a second. So sorting takes at most
:data:`SHARE` of the time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from kdissect.feed.filtering import Shown
from kdissect.feed.index import Index
from kdissect.present.sanitise import sanitise
from kdissect.settings.list_columns import listed
from kdissect.tui.lists.exchange_columns import COLUMNS, LARGEST_FIRST, SORT_TITLES, SORTS
from kdissect.tui.lists.exchanges import Exchanges
from kdissect.tui.pages.split import SplitPage
from kdissect.tui.widgets.dialogs import Pick

SHARE = 0.1
USUAL = ("number", False)
"""The order of a list that nobody sorted: column of the index, and whether the largest come first."""


class Sparing:
    """Repeated work that takes at most :data:`SHARE` of the time."""

    def __init__(self) -> None:
        self._at = self._seconds = 0.0

    def done(self, began: float) -> None:
        """Note that the work has just ended, and that it began at a time of :func:`time.monotonic`."""
        self._at = time.monotonic()
        self._seconds = self._at - began

    @property
    def is_due(self) -> bool:
        """Whether the work may be done now."""
        return self.wait_s <= 0

    @property
    def wait_s(self) -> float:
        """The seconds until the work may be done."""
        return self._at + self._seconds / SHARE - time.monotonic()


class Ordering:
    """The order of a list of exchanges."""

    def __init__(self, index: Index, shown: Shown, rows: Exchanges) -> None:
        self._index, self._shown, self._rows = index, shown, rows
        self.sort, self.descending = USUAL
        self._before: tuple[str, bool] | None = None
        """The user's order, while the list has its usual one because another screen led here."""
        self.is_paused = False
        """Whether the list is frozen until there is another filter."""
        self._arranged = (-1, -1)
        self._filter = ("", True)
        """The filter of the last sorting, and whether it was on."""
        self._work = Sparing()

    @property
    def _state(self) -> tuple[int, int]:
        return len(self._index), self._shown.version

    @property
    def _has_other_filter(self) -> bool:
        return self._filter != (self._shown.text, self._shown.is_on)

    @property
    def waiting(self) -> int:
        """The number of new exchanges since the list was paused."""
        return len(self._index) - self._arranged[0] if self.is_paused else 0

    def is_due(self, is_last: bool) -> bool:
        """Whether the list should be sorted again.

        :param is_last: no more exchanges are expected.
        """
        if self._arranged == self._state or (self.is_paused and not self._has_other_filter):
            return False
        return is_last or self._work.is_due

    def arrange(self) -> None:
        """Sort the list."""
        began = time.monotonic()
        self.is_paused = self.is_paused and not self._has_other_filter
        self._arranged, self._filter = self._state, (self._shown.text, self._shown.is_on)
        self._rows.view = self._index.view(self.sort, self.descending, self._shown.places)
        self._work.done(began)

    @property
    def own(self) -> tuple[str, bool]:
        """The last order that the user chose."""
        return self._before or (self.sort, self.descending)

    def set(self, sort: str, descending: bool, *, is_own: bool = True) -> bool:
        """Set an order; return whether it is a different one.

        :param is_own: whether the user chose it, now or before.
        """
        if (sort, descending) == (self.sort, self.descending):
            return False
        self._before = None if is_own else self.own
        self.sort, self.descending = sort, descending
        return True

    def by(self, column: str) -> None:
        """Order by a column of the index; if it is already the order, reverse it."""
        self._before = None
        if column == self.sort:
            self.descending = not self.descending
        else:
            self.sort, self.descending = column, column in LARGEST_FIRST

    def by_next(self) -> None:
        """Order by the next of the usual columns."""
        names = list(SORTS)
        at = names.index(self.sort) + 1 if self.sort in names else 0
        self.by(names[at % len(names)])

    def turn(self) -> None:
        """Reverse the order."""
        self._before = None
        self.descending = not self.descending

    def text(self) -> str:
        """The order in words; empty for the usual one."""
        if (self.sort, self.descending) == USUAL:
            return ""
        return f"by {SORT_TITLES[self.sort]}, {'largest' if self.descending else 'smallest'} first"


class ColumnChoice:
    """The columns of a page."""

    def __init__(self, page: SplitPage, rows: Exchanges) -> None:
        self._page, self._rows = page, rows

    def ask(self) -> None:
        """Ask which columns to show; if none is ticked, there are as many as there is room for."""
        rows = self._rows
        shown = rows.names(self._page.list_pane.columns) if rows.is_usual else rows.chosen
        *others, info = (name for name in COLUMNS if name != "mark")
        fields = rows.fields.shown
        names = (*others, *fields, info)
        heads = {name: each.title for name, each in fields.items()}
        words = [(name, _column_words(name, heads), name in shown or name in fields) for name in names]
        usual = [name for name, _, is_ticked in words if is_ticked and name in COLUMNS]

        def chosen(picked: list[str] | None) -> None:
            if picked is None:
                return
            left = [name for name in picked if name in fields]
            is_usual = rows.is_usual and [name for name in picked if name in COLUMNS] == usual
            self._show(left if is_usual else picked)

        self._page.app.push_screen(Pick("Columns", words), chosen)

    def add_or_remove(self, name: str) -> None:
        """Make a field a column, or remove the column.

        :param name: the field's name in filters.
        """
        try:
            (name,) = listed((name,))
        except LookupError as error:
            self._page.show_message(str(error.args[0]))
            return
        rows, before = self._rows, self._rows.chosen
        if name in COLUMNS and rows.is_usual:  # the usual columns become the chosen ones
            shown = [each for each in rows.names(self._list_width) if each != "mark"]
            before = (*shown, *(each for each in before if each not in shown))
        if name in before:
            self._show([each for each in before if each != name])
            self._page.show_message(f"{sanitise(name)} was removed from the columns")
            return
        title = COLUMNS[name].heading.title if name in COLUMNS else None
        there = [COLUMNS[each].heading.title for each in rows.names(self._list_width) if each in COLUMNS]
        if title is not None and title in there:  # with more text, as the version of the API
            self._page.show_message(f"the column {title} shows it already")
            return
        at = before.index("info") if "info" in before else len(before)
        self._show((*before[:at], name, *before[at:]))
        has_room = name in rows.names(self._list_width)
        where = "the same key removes it" if has_room else "→ in the list leads to it"
        self._page.show_message(f"{sanitise(name)} is a column now; {where}")

    @property
    def _list_width(self) -> int:
        """The width of the list; if the tree has its place, about the same."""
        return self._page.list_pane.columns or self._page.app.size.width - 2

    def _show(self, names: Sequence[str]) -> None:
        rows, table = self._rows, self._page.list_pane
        rows.choose(names)
        self._page.kdissect.columns = rows.chosen
        table.column = None
        table.rows_changed()  # makes the values of the rows on the screen
        rows.fields.grow()
        table.rows_look_different()


def _column_words(name: str, heads: Mapping[str, str]) -> str:
    """The name of a column on the screen, and in the configuration.

    :param heads: the headings of columns with fields.
    """
    return f"{heads[name] if name in heads else COLUMNS[name].name:<12} {sanitise(name)}"
