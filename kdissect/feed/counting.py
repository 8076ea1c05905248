"""Exchanges in the spool → the rows of statistics: the machine that counts, without its process.

    take(Begin | Grown | Ask)  ─►  step()  ─►  [Rows, …]

Rule 1  A *count* is the request of one screen: some statistics, by their names for ``-z``, fed together. So
        an exchange is read and decoded once for all of them. Counts are kept: a screen that is shown again
        continues where it was. :data:`FINDINGS` judges the capture.
Rule 2  Only the count requested last continues. It gives its rows half a second after the request, and when
        it has counted all exchanges. In between it gives them so often that making them takes at most a tenth
        of the time.
Rule 3  :class:`Begin` forgets everything, because other exchanges are shown now. Results have the number of
        their beginning, so that older results are recognised.
Rule 4  With a filter, the exchanges that it does not choose are seen but not counted, as with
        ``kdissect stats -Y``. They may tell how a rebalance or a transaction of chosen exchanges ended.
Rule 5  Rows are sent in pieces, so that no receiver waits long.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kdissect.analysis.catalogue import statistic
from kdissect.analysis.fold import Row
from kdissect.analysis.fold_set import Together
from kdissect.dissect import Event
from kdissect.feed.batches import CountedFault, read_exchange
from kdissect.feed.packing import PackedRows
from kdissect.feed.stories import StoryCollector, is_story
from kdissect.limits import DEFAULTS, Limits
from kdissect.names import TopicNames
from kdissect.session.conversation import Connection
from kdissect.settings.screens import Rules

if TYPE_CHECKING:
    from kdissect.feed.judging import Judging

STEP_SECONDS = 0.02
"""The longest duration of one step, so that orders are read soon."""
FIRST_SECONDS = 0.5
"""The time until the first rows are given."""
RESULT_SHARE = 0.1
"""The largest share of the time for making rows."""
PIECE_ROWS = 1_000

FINDINGS = "findings"
"""Requested beside statistics, it has the exchanges judged."""

LOOKED_AT = "looked at"
"""The table about the judging, with one row. ``captured`` and ``judged`` are a line each; ``short`` is the
number of judged rules; ``first_ns`` is the start of times."""

MARKS = "marks"
"""The table of events for a time line: ``ns``, ``kind``, ``text``, ``count``."""

Asked = tuple[str, ...]
"""Statistics by name, :data:`FINDINGS`, or stories (:mod:`kdissect.feed.stories`)."""


class Begin(NamedTuple):
    """Forget everything; later orders belong to this beginning."""

    serial: int


class Grown(NamedTuple):
    """There is more to count."""

    places: bytes
    """The places of exchanges in the spool, 8 bytes each, in the order in which they were complete."""
    lengths: bytes
    """Their lengths, 4 bytes each."""
    connections: tuple[PackedRows, ...] = ()
    names: tuple[tuple[str, str, int], ...] = ()
    """Topic ids with their names, and the packets that had the names."""
    faults: tuple[CountedFault, ...] = ()
    """Faults caused by the snap length, one for each connection; and faults of unreadable files."""
    packets: int = 0
    """The number of packets read so far, of any kind."""
    chosen: bytes = b""
    """A byte for each exchange: 1 if it counts, 0 if it is only seen, for what it tells of others. Empty if
    all count."""


class AskTables(NamedTuple):
    """The statistics to count now; empty to count nothing."""

    asked: Asked


Order = Begin | Grown | AskTables


class CountedRows(NamedTuple):
    """A piece of a count's rows."""

    serial: int
    asked: Asked
    number: int
    """The number of this piece, from 0 over all tables."""
    table: str
    """One of ``asked``, or a further table of one of them."""
    rows: list[Row]
    left_out: int
    """How often the limit of rows prevented counting something in this statistic."""
    counted: int
    """The number of counted exchanges, out of ``of``."""
    of: int
    connections: int
    """The number of counted connections that are over."""
    is_last: bool
    """Whether it is the last piece of all tables."""
    faults: int = 0
    """The number of counted entries of :attr:`Grown.faults`."""


class _Count:
    """One count."""

    def __init__(self, asked: Asked, limits: Limits, rules: Rules) -> None:
        self._stories = {text: StoryCollector(text, limits) for text in asked if is_story(text)}
        names = (text for text in asked if text != FINDINGS and text not in self._stories)
        self._folds = {text: statistic(text, limits)[1] for text in names}
        self._together = Together(self._folds.values())
        self._judging: Judging | None = None
        if FINDINGS in asked:
            # It imports all rules; only the process that counts should wait for that.
            from kdissect.feed.judging import Judging

            self._judging = Judging(limits, rules.thresholds, rules.ignored)
        self.exchanges = self.connections = self.faults = 0
        """The numbers fed so far."""
        self.given: tuple[int, int, int] | None = None
        """The numbers when rows were given last."""
        self.due = 0.0
        """The time to give rows again."""

    @property
    def fed(self) -> tuple[int, int, int]:
        return self.exchanges, self.connections, self.faults

    @property
    def sees_others(self) -> bool:
        """Whether exchanges that do not count tell it something."""
        return self._together.sees_others

    def feed(self, event: Event, counts: bool = True) -> None:
        """Count one event; if it does not count, only see it."""
        self._together.feed(event, counts)
        if not counts:
            return
        for story in self._stories.values():
            story.feed(event)
        if self._judging is not None:
            self._judging.feed(event)

    def tables(self, packets: int) -> Iterator[tuple[str, list[Row], int]]:
        """The current rows, with how often something was left out.

        :param packets: the number of packets read.
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
    """Counts the exchanges of the spool ``descriptor``."""

    def __init__(self, descriptor: int, limits: Limits = DEFAULTS, rules: Rules = Rules()) -> None:  # noqa: B008 - it cannot be changed
        self._descriptor = descriptor
        self._limits = limits
        self._rules = rules
        self._serial = 0
        self._asked: Asked = ()
        self._forget()

    def _forget(self) -> None:
        self._places, self._lengths = array("q"), array("I")
        self._chosen = bytearray()
        """As in :class:`Grown`, without its abbreviation."""
        self._connections: list[Connection] = []
        self._names = TopicNames()
        self._faults: list[CountedFault] = []
        self._packets = 0
        self._counts: dict[Asked, _Count] = {}

    def take(self, order: Order) -> None:
        """Take an order."""
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
            self._chosen += order.chosen or b"\1" * (len(self._places) - len(self._chosen))
            for packed in order.connections:
                self._connections += packed.rows()
            self._faults += order.faults
            self._packets = order.packets
            for told in order.names:
                self._names.learn(*told)

    def _begin(self) -> None:
        if self._asked and self._asked not in self._counts:
            # Only the shown story is kept: there are as many as exchanges.
            for other in [each for each in self._counts if any(map(is_story, each))]:
                del self._counts[other]
            self._counts[self._asked] = _Count(self._asked, self._limits, self._rules)
        count = self._counts.get(self._asked)
        if count is not None:
            count.due = time.monotonic() + FIRST_SECONDS
            count.given = None

    @property
    def wait(self) -> float | None:
        """The time in seconds without work for :meth:`step`; None: until the next order."""
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
        """Count for a moment, and give the rows if it is time.

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
            counts = bool(self._chosen[at])
            if not counts and not count.sees_others:
                chosen = self._chosen.find(1, at)
                count.exchanges = end if chosen < 0 else chosen
                continue
            exchange = read_exchange(self._descriptor, self._places[at], self._lengths[at], self._limits)
            exchange.topic_names = self._names.up_to(exchange.last_packet)
            count.feed(exchange, counts)
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
