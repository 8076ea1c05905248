"""Searching in the list of records: the exchanges with a match, and their matching records.

A line of the list has only the beginnings of key and value. So a process searches the exchanges, as it does
for the list of exchanges (:mod:`kdissect.feed.searching`). A thread then searches those that match for their
matching records.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial

import numpy as np

from kdissect.feed.index import Places
from kdissect.feed.searching import ListSearch, MatchCount, RecordPattern
from kdissect.filter.masks import Mask
from kdissect.present.records import Address
from kdissect.tui.lists.records import RecordRows
from kdissect.tui.pages.page import Page

LOOK_SECONDS = 0.01
"""How long rows are searched before keys are handled."""
ROWS_AT_ONCE = 1_000
"""The rows of one exchange that are searched between two looks at the clock."""
PORTION_SECONDS, MOST_IN_PORTION = 0.05, 256
"""How long the thread searches exchanges before it reports, and the most exchanges that it gets."""


class RecordSearch:
    """The matching records of a list.

    :param page: has the list; its threads search exchanges.
    :param exchanges: the same search in the exchanges of the rows.
    """

    def __init__(self, page: Page, rows: RecordRows, pattern: RecordPattern, exchanges: ListSearch) -> None:
        self.pattern = pattern
        self._page, self._rows, self._exchanges = page, rows, exchanges
        self._generation = rows.generation
        """The generation of rows to which the masks belong."""
        self._hit: Mask = np.zeros(0, np.bool_)
        self._known: Mask = np.zeros(0, np.bool_)
        """Rows with a known result. Those of an exchange without a match need no search."""
        self._looked_into: Mapping[int, frozenset[Address]] = {}
        """Some matching exchanges, by their places in the index, with their matching records."""
        self._job = 0
        """The number of the thread's current job. It rises with each job, and when a job's answer is no
        longer wanted."""
        self._is_looking = False
        """Whether the thread is working."""
        self._is_late = False
        """Whether keys are handled before a search continues."""
        self._to_count = 0
        """The rows that may still be searched only to count."""

    def next(self, row: int, step: int) -> int | None:
        """The next matching row after one (or before, with -1). None if no row matches. Also None while it is
        unknown: then :attr:`is_going_on` is true."""
        self._is_late = not self._rows.read_places()
        if self._is_late:
            return None
        began = time.monotonic()
        hits, misses = self._answers()
        wanted = self._hit | ~(self._known | misses)
        while True:
            at = _first(wanted, row, step)
            if at is None or self._hit[at]:
                return at
            if not hits[at]:
                self._exchanges.next(at - step, step)  # searches it, and some after it
                return None
            looked_at = self._look_at(at, step, hits)
            if not looked_at:
                return None
            part = slice(at, at + looked_at) if step > 0 else slice(at - looked_at + 1, at + 1)
            wanted[part] = self._hit[part]
            if time.monotonic() - began > LOOK_SECONDS:
                self._is_late = True
                return None

    def count(self, row: int) -> MatchCount | None:
        """The number of a row's match among all matches; None while that is unknown."""
        _, misses = self._answers()
        known = self._known | misses
        if row >= len(known) or not self._hit[row] or not known[:row].all():
            return None
        is_all = bool(known.all()) and len(known) == len(self._rows)
        return MatchCount(int(self._hit[: row + 1].sum()), int(self._hit.sum()), is_all)

    def ask_others(self, most: int) -> None:
        """Search the rows that are still unknown, to count matches.

        :param most: the most exchanges and the most rows to search.
        """
        self._exchanges.ask_others(most)
        self._to_count = most

    def _count_on(self) -> None:
        began = time.monotonic()
        hits, _ = self._answers()
        for at in np.flatnonzero(hits & ~self._known)[: self._to_count].tolist():
            if self._known[at]:  # with one before
                continue
            looked_at = self._look_at(at, 1, hits)
            self._to_count -= looked_at
            if not looked_at or self._to_count <= 0 or time.monotonic() - began > LOOK_SECONDS:
                return
        if not self._exchanges.is_going_on:
            self._to_count = 0

    @property
    def is_going_on(self) -> bool:
        """Whether more results are expected."""
        return self._exchanges.is_going_on or self._is_looking or self._is_late or self._to_count > 0

    @property
    def reason(self) -> str | None:
        """Why the search stopped early."""
        return self._exchanges.reason

    def poll(self) -> None:
        """Take in the results so far."""
        self._exchanges.poll()
        if self._to_count > 0:
            self._count_on()

    def stop(self) -> None:
        """End the search."""
        self._exchanges.stop()
        self._job += 1
        self._is_looking = self._is_late = False
        self._to_count = 0

    def _answers(self) -> tuple[Mask, Mask]:
        """The rows of exchanges that match, and those of exchanges that do not. Makes room for the results
        about the rows."""
        if self._generation != self._rows.generation:
            self._generation = self._rows.generation
            self._hit = self._known = np.zeros(0, np.bool_)
        answers = self._exchanges.answers()
        more = np.zeros(len(answers[0]) - len(self._hit), np.bool_)
        if len(more):
            self._hit, self._known = np.concatenate((self._hit, more)), np.concatenate((self._known, more))
        return answers

    # -- into exchanges -------------------------------------------------------------------------------

    def _look_at(self, row: int, step: int, hits: Mask) -> int:
        """Search a row and the following ones of the same exchange; return their number. It is 0 if the
        exchange was not searched yet: then the thread searches it and some after it."""
        view = self._rows.places
        place, at = view[row], row
        found = self._looked_into.get(int(place))
        if found is None:
            if not self._is_looking:
                ahead = slice(row, None) if step > 0 else slice(row + 1)
                places = view[ahead][(hits & ~self._known)[ahead]][::step]
                self._look_into(places[np.flatnonzero(np.diff(places, prepend=-1))][:MOST_IN_PORTION])
            return 0
        while 0 <= at < len(view) and view[at] == place and abs(at - row) < ROWS_AT_ONCE:
            line = self._rows.line(at)
            self._hit[at] = line is not None and line.address in found
            self._known[at] = True
            at += step
        return abs(at - row)

    def _look_into(self, places: Places) -> None:
        self._job += 1
        self._is_looking = True
        index = self._page.kdissect.index
        spooled = [(at, index.value("place", at), index.value("length", at)) for at in places.tolist()]
        self._page.run_worker(partial(self._look, spooled, self._job), thread=True, group="find")

    def _look(self, spooled: list[tuple[int, int, int]], job: int) -> None:
        """Find the matching records of the first exchange, and of others while there is time."""
        app, began = self._page.kdissect, time.monotonic()
        found: dict[int, frozenset[Address]] = {}
        for place, at, length in spooled:
            try:
                found[place] = frozenset(self.pattern.addresses(app.feed.exchange(at, length)))
            except OSError:
                found[place] = frozenset()  # the record itself reports it when it is to be shown
            if time.monotonic() - began > PORTION_SECONDS:
                break
        app.call_from_thread(self._looked, found, job)

    def _looked(self, found: Mapping[int, frozenset[Address]], job: int) -> None:
        if job == self._job:
            self._looked_into, self._is_looking = found, False


def _first(mask: Mask, row: int, step: int) -> int | None:
    """The first row of a mask after one, or before it with -1."""
    ahead = mask[row + 1 :] if step > 0 else mask[: max(0, row)][::-1]
    if not ahead.any():
        return None
    away = int(ahead.argmax())
    return row + 1 + away if step > 0 else min(row, len(mask)) - 1 - away
