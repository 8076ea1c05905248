"""Exchanges in the spool → the rows of statistics: the machine that counts, without the process it runs in.

    take(Begin | Grown | Ask)  ─►  step()  ─►  [Rows, …]

Rule 1  A *count* is what one screen asked for: some statistics, by the names that ``-z`` gives them, fed
        together, so that an exchange is read and decoded once for all of them. Counts are kept: a screen
        that is shown again goes on from where it was. :data:`FINDINGS` has the capture judged.
Rule 2  Only the count asked for last goes on. What it has found is given out half a second after it was
        asked for, when it has caught up with what there is, and in between as often as making the rows
        takes no more than a tenth of the time.
Rule 3  :class:`Begin` forgets everything: other exchanges are shown now. What is given out says of which
        beginning it is, so that what was under way is told from what was asked for since.
Rule 4  Rows go out in pieces, so that nobody who takes them in waits long.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kdissect.analysis.catalogue import statistic
from kdissect.analysis.fold import Row
from kdissect.analysis.together import Together
from kdissect.dissect import Event
from kdissect.feed.batches import CountedFault, read_exchange
from kdissect.feed.packing import PackedRows
from kdissect.feed.stories import Telling, is_story
from kdissect.limits import DEFAULTS, Limits
from kdissect.names import TopicNames
from kdissect.session.conversation import Connection
from kdissect.settings.screens import Rules

if TYPE_CHECKING:
    from kdissect.feed.judging import Judging

STEP_SECONDS = 0.02
"""How long one step goes on, so that what comes is heard soon."""
FIRST_SECONDS = 0.5
"""When the first rows are given out."""
RESULT_SHARE = 0.1
"""How much of the time goes into making rows, at most."""
PIECE_ROWS = 1_000

FINDINGS = "findings"
"""Asked for beside statistics, this has what there is judged."""

LOOKED_AT = "looked at"
"""The table of what was judged, of one row: ``captured`` and ``judged``, a line each; ``short``, how
many rules were judged; ``first_ns``, what times count from."""

MARKS = "marks"
"""The table of what happened, for a time line: ``ns``, ``kind``, ``text``, ``count``."""

Asked = tuple[str, ...]
"""Statistics by name, :data:`FINDINGS`, or stories (:mod:`kdissect.feed.stories`)."""


class Begin(NamedTuple):
    """Forget everything; what follows belongs to this beginning."""

    serial: int


class Grown(NamedTuple):
    """There is more to count."""

    places: bytes
    """Of exchanges in the spool, 8 bytes each, in the order in which they were complete."""
    lengths: bytes
    """Theirs, 4 bytes each."""
    connections: tuple[PackedRows, ...] = ()
    names: tuple[tuple[str, str, int], ...] = ()
    """Topic ids with their names and the packets that told them."""
    faults: tuple[CountedFault, ...] = ()
    """Faults that the snap length made, a connection each; and those of files that could not be read."""
    packets: int = 0
    """How many were read so far, whatever they carry."""


class AskTables(NamedTuple):
    """What is to be counted now; with nothing in it, nothing."""

    asked: Asked


Order = Begin | Grown | AskTables


class CountedRows(NamedTuple):
    """A piece of what was counted."""

    serial: int
    asked: Asked
    number: int
    """Of this piece; those of all tables are counted from 0."""
    table: str
    """One of ``asked``, or what else came of one of them."""
    rows: list[Row]
    left_out: int
    """Of this statistic, how often something was not counted because of the limit of rows."""
    counted: int
    """How many exchanges that was made of, out of ``of``."""
    of: int
    connections: int
    """How many connections that are over were counted."""
    is_last: bool
    """Whether this was the last piece of all tables."""
    faults: int = 0
    """How many entries of :attr:`Grown.faults` were counted."""


class _Count:
    """One count."""

    def __init__(self, asked: Asked, limits: Limits, rules: Rules) -> None:
        self._stories = {text: Telling(text, limits) for text in asked if is_story(text)}
        names = (text for text in asked if text != FINDINGS and text not in self._stories)
        self._folds = {text: statistic(text, limits)[1] for text in names}
        self._together = Together(self._folds.values())
        self._judging: Judging | None = None
        if FINDINGS in asked:
            # All rules are imported with it, which only the process that counts should wait for.
            from kdissect.feed.judging import Judging

            self._judging = Judging(limits, rules.thresholds, rules.ignored)
        self.exchanges = self.connections = self.faults = 0
        """How many were fed."""
        self.given: tuple[int, int, int] | None = None
        """How many when rows were given out last."""
        self.due = 0.0
        """When to give them out again."""

    @property
    def fed(self) -> tuple[int, int, int]:
        return self.exchanges, self.connections, self.faults

    def feed(self, event: Event) -> None:
        """Count one event."""
        self._together.feed(event)
        for story in self._stories.values():
            story.feed(event)
        if self._judging is not None:
            self._judging.feed(event)

    def tables(self, packets: int) -> Iterator[tuple[str, list[Row], int]]:
        """The rows as of now, with how often something was left out.

        :param packets: how many were read.
        """
        for text, fold in self._folds.items():
            yield text, fold.result(), fold.left_out
        for text, story in self._stories.items():
            yield text, story.rows(), story.left_out
        if self._judging is not None:
            found, looked_at = self._judging.rows(packets)
            yield FINDINGS, found, 0
            yield LOOKED_AT, [looked_at], 0
            yield MARKS, self._judging.marks(), 0


class Counting:
    """The machine over the spool ``descriptor``."""

    def __init__(self, descriptor: int, limits: Limits = DEFAULTS, rules: Rules = Rules()) -> None:  # noqa: B008 - it cannot be changed
        self._descriptor = descriptor
        self._limits = limits
        self._rules = rules
        self._serial = 0
        self._asked: Asked = ()
        self._forget()

    def _forget(self) -> None:
        self._places, self._lengths = array("q"), array("I")
        self._connections: list[Connection] = []
        self._names = TopicNames()
        self._faults: list[CountedFault] = []
        self._packets = 0
        self._counts: dict[Asked, _Count] = {}

    def take(self, order: Order) -> None:
        """Take in what is wanted now."""
        if isinstance(order, Begin):
            self._serial = order.serial
            self._forget()
            self._begin()
        elif isinstance(order, AskTables):
            self._asked = order.asked
            self._begin()
        else:
            self._places.frombytes(order.places)
            self._lengths.frombytes(order.lengths)
            for packed in order.connections:
                self._connections += packed.rows()
            self._faults += order.faults
            self._packets = order.packets
            for told in order.names:
                self._names.learn(*told)

    def _begin(self) -> None:
        if self._asked and self._asked not in self._counts:
            # Of stories only the one that is shown is kept: there are as many as exchanges.
            for other in [each for each in self._counts if any(map(is_story, each))]:
                del self._counts[other]
            self._counts[self._asked] = _Count(self._asked, self._limits, self._rules)
        count = self._counts.get(self._asked)
        if count is not None:
            count.due = time.monotonic() + FIRST_SECONDS
            count.given = None

    @property
    def wait(self) -> float | None:
        """How long :meth:`step` has nothing to do, in seconds; None: until something is taken in."""
        count = self._counts.get(self._asked)
        if count is None:
            return None
        if not self._has_caught_up(count):
            return 0.0
        if count.given is None:
            return 0.0
        return None if count.given == count.fed else max(0.0, count.due - time.monotonic())

    def _has_caught_up(self, count: _Count) -> bool:
        return count.fed == (len(self._places), len(self._connections), len(self._faults))

    def step(self) -> Iterator[CountedRows]:
        """Count on for a moment; gives the rows, if it is time.

        :raises OSError: the spool cannot be read.
        """
        count = self._counts.get(self._asked)
        if count is None:
            return
        until = time.monotonic() + STEP_SECONDS
        self._feed(count, until)
        now = time.monotonic()
        first_is_whole = count.given is None and self._has_caught_up(count)
        if (now >= count.due or first_is_whole) and count.given != count.fed:
            yield from self._result(count)
            spent = time.monotonic() - now
            count.due = time.monotonic() + max(FIRST_SECONDS, spent / RESULT_SHARE)

    def _feed(self, count: _Count, until: float) -> None:
        for number, fault in self._faults[count.faults :]:
            for _ in range(number):
                count.feed(fault)
        count.faults = len(self._faults)
        for connection in self._connections[count.connections :]:
            count.feed(connection)
        count.connections = len(self._connections)
        end = len(self._places)
        while count.exchanges < end:
            at = count.exchanges
            exchange = read_exchange(self._descriptor, self._places[at], self._lengths[at], self._limits)
            exchange.topic_names = self._names.up_to(exchange.last_packet)
            count.feed(exchange)
            count.exchanges = at + 1
            if time.monotonic() >= until:
                break

    def _result(self, count: _Count) -> Iterator[CountedRows]:
        count.given = count.fed
        state = count.exchanges, len(self._places), count.connections
        faults = count.faults
        pieces = [piece for table in count.tables(self._packets) for piece in _pieces(*table)]
        for number, (text, rows, left_out) in enumerate(pieces):
            is_last = number == len(pieces) - 1
            yield CountedRows(
                self._serial, self._asked, number, text, rows, left_out, *state, is_last, faults
            )


def _pieces(text: str, rows: list[Row], left_out: int) -> Iterator[tuple[str, list[Row], int]]:
    for at in range(0, max(1, len(rows)), PIECE_ROWS):
        yield text, rows[at : at + PIECE_ROWS], left_out
