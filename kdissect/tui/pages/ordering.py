"""Which exchanges a list shows, in which order, and when it is to be put in order anew.

Ordering a million rows takes a tenth of a second, and while a capture is read, more rows come ten times a
second. So no more than :data:`SHARE` of the time goes into ordering.
"""

from __future__ import annotations

import time

from kdissect.feed.filtering import Shown
from kdissect.feed.index import Index
from kdissect.tui.lists.exchange_columns import LARGEST_FIRST, SORT_TITLES, SORTS
from kdissect.tui.lists.exchanges import Exchanges

SHARE = 0.1
USUAL = ("number", False)
"""The order of a list that nobody ordered otherwise: column of the index, and whether the largest stand
first."""


class Sparing:
    """Work that is done again and again, and takes no more than :data:`SHARE` of the time."""

    def __init__(self) -> None:
        self._at = self._seconds = 0.0

    def done(self, began: float) -> None:
        """It was done now, and began at a time of :func:`time.monotonic`."""
        self._at = time.monotonic()
        self._seconds = self._at - began

    @property
    def is_due(self) -> bool:
        """Whether it may be done now."""
        return self.wait_s <= 0

    @property
    def wait_s(self) -> float:
        """In how many seconds it may be done."""
        return self._at + self._seconds / SHARE - time.monotonic()


class Ordering:
    """The order of a list of exchanges."""

    def __init__(self, index: Index, shown: Shown, rows: Exchanges) -> None:
        self._index, self._shown, self._rows = index, shown, rows
        self.sort, self.descending = USUAL
        self.is_paused = False
        """Whether the list is left as it is, whatever comes, until there is another filter."""
        self._arranged = (-1, -1)
        self._filter = ("", True)
        """With which the list was put in order, and whether it was on."""
        self._work = Sparing()

    @property
    def _state(self) -> tuple[int, int]:
        return len(self._index), self._shown.version

    @property
    def _has_other_filter(self) -> bool:
        return self._filter != (self._shown.text, self._shown.is_on)

    @property
    def waiting(self) -> int:
        """How many exchanges came since the list was paused."""
        return len(self._index) - self._arranged[0] if self.is_paused else 0

    def is_due(self, is_last: bool) -> bool:
        """Whether the list is to be put in order anew.

        :param is_last: nothing more is expected to come.
        """
        if self._arranged == self._state or (self.is_paused and not self._has_other_filter):
            return False
        return is_last or self._work.is_due

    def arrange(self) -> None:
        """Put the list in order."""
        began = time.monotonic()
        self.is_paused = self.is_paused and not self._has_other_filter
        self._arranged, self._filter = self._state, (self._shown.text, self._shown.is_on)
        self._rows.view = self._index.view(self.sort, self.descending, self._shown.places)
        self._work.done(began)

    def by(self, column: str) -> None:
        """Order by a column of the index; by the one it is ordered by already, the other way round."""
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
        """The other way round."""
        self.descending = not self.descending

    def text(self) -> str:
        """The order in words; empty for the usual one."""
        if (self.sort, self.descending) == USUAL:
            return ""
        return f"by {SORT_TITLES[self.sort]}, {'largest' if self.descending else 'smallest'} first"
