"""The first stage of a filter, beside the screens: for one that is asked of a million different texts."""

from __future__ import annotations

from threading import Thread

from kdissect.filter.compiled import Filter
from kdissect.filter.masks import Masks
from kdissect.tui.feed.columns import FilterColumns

MOST_TEXTS = 5_000
"""Different texts that can be asked while a key waits. The slowest questions take 6 µs each."""


def is_long(columns: FilterColumns, chosen: Filter) -> bool:
    """Whether the first stage takes longer than a key may wait."""
    return columns.texts_asked(chosen) > MOST_TEXTS


class Stage:
    """A first stage that goes on in a thread. It is left to itself when nobody wants it any more."""

    def __init__(self, columns: FilterColumns, chosen: Filter, end: int) -> None:
        self.end = end
        """The rows up to here are asked."""
        self._columns, self._chosen = columns, chosen
        self._found: Masks | None = None
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found = self._columns.masks(self._chosen)
        except Exception as error:  # whatever it is, it is raised again where the answer is asked for
            self._failure = error

    def masks(self) -> Masks | None:
        """The answer; None if it is still to come."""
        if self._failure is not None:
            raise self._failure
        return self._found
