"""Captures → what is counted in them: statistics for tables, or a judge for findings.

One process feeds some events at a time; several share batches. What a batch counts is added in the order of
the batches, which gives what one fed with all of it would hold (:mod:`kdissect.analysis.fold`).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, NamedTuple, Protocol, Self, TypeVar

import click

from kdissect.analysis.fold import Statistic
from kdissect.analysis.part import Counted, Part, add, counted, gathered
from kdissect.analysis.together import Together
from kdissect.cli.config import load_config
from kdissect.cli.errors import complain
from kdissect.cli.filters import Chooser, Within, chooser_of
from kdissect.cli.inputs import captures_of
from kdissect.cli.jobs import Jobs, jobs_of, problems_so_far, share
from kdissect.cli.output import inputs_of, open_output
from kdissect.cli.reading import Reading, reading_of
from kdissect.cli.tally import Tally
from kdissect.collector import look_again
from kdissect.dissect import Event
from kdissect.jobs.batches import EventBatch
from kdissect.limits import Limits
from kdissect.present.options import Options
from kdissect.present.statistics_text import left_out_text
from kdissect.protocol.library import Problem
from kdissect.session.briefs import Interest

if TYPE_CHECKING:
    from kdissect.jobs.serving import Before, Piece, Write

COUNTED_BYTES, COUNTED_EVENTS = 2 << 20, 2_048
"""A batch that is counted is larger than one that is printed: what it comes to must be added, too."""


_LOOK_AFTER = 2_000_000, 20, 20
"""Objects, looks at the youngest, looks at those that outlived one. Nothing that is counted lies in a cycle:
feeding 20,000 exchanges leaves 136 objects in cycles, as feeding 15 does. Each look goes through all that was
kept since the last one. Damaged input may leave cycles, so it looks now and then."""


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """While it lasts, the collector of cycles looks seldom, and not at what was there before."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_LOOK_AFTER)
    try:
        yield
    finally:
        look_again(before)


class CountedInParts(Counted, Protocol):
    """What events are counted into, a part of them by each of several processes."""

    @property
    def full_tables(self) -> int:
        """In how many tables no further key finds room."""

    def keep_to(self, whole: Self) -> None:
        """Make no rows that would find no room in what they are to be added to."""


C = TypeVar("C", bound=CountedInParts)
R = TypeVar("R")


def paths_of(given: dict[str, Any]) -> tuple[str, ...]:
    """The captures that are given.

    :raises click.UsageError: no capture is given.
    :raises Unreadable: no file is in a folder.
    """
    paths = captures_of(given)
    if not paths:
        raise click.UsageError(
            "no capture is given: name a file, or - for standard input", click.get_current_context()
        )
    return paths


class Folding(Generic[C]):
    """One reading of captures, in which something is fed with them.

    :param new: makes what is fed, with the limits of the configuration.
    :param within: a span of time in which exchanges must begin, if there is one.
    """

    def __init__(
        self,
        given: dict[str, Any],
        paths: tuple[str, ...],
        new: Callable[[Limits], C],
        *,
        within: Within | None = None,
    ) -> None:
        self._given = given
        self._paths = paths
        self._new = new
        self.config = load_config()
        self.options = Options(limits=self.config.limits, shown_fields=self.config.shown_fields)
        self.counted = new(self.config.limits)
        """What is fed."""
        self._chooser = chooser_of(
            given["filter"], given["slow"], "exchanges", self.options, self.config.slow_ms, within
        )
        if self._chooser is not None:
            self._chooser.refuse_to_judge(paths)
            if within is not None:
                within.first_ns = self._first_ns
        self._jobs = jobs_of(given, paths)
        self._reading: Reading | None = None

    @property
    def talks(self) -> bool:
        """Whether there is somebody who wants to know how it goes."""
        return sys.stderr.isatty() and not self._given["quiet"]

    def _first_ns(self) -> int | None:
        return None if self._reading is None else self._reading.first_ns

    def _reads_tcp(self) -> bool:
        """Whether what is fed reads what the rows of connections tell of TCP."""
        return True

    def _briefs(self) -> Interest | None:
        """What is asked of exchanges in brief; None where whole ones are fed."""
        return None

    def run(self, finish: Callable[[BinaryIO, Reading], R]) -> tuple[Reading, R]:
        """Read and feed; then ``finish`` with the output, also where Ctrl-C ended the input.

        :raises KeyboardInterrupt: after that.
        """
        given = self._given
        with self._open() as reading, open_output(given["output"], inputs_of(given)) as file:
            try:
                self._read(reading)
            except KeyboardInterrupt:
                if reading.is_interrupted:  # else it was pressed twice
                    finish(file, reading)
                raise
            return reading, finish(file, reading)

    def count(self) -> Reading:
        """Read and feed, for an output that comes later."""
        with self._open() as reading:
            self._read(reading)
            return reading

    @contextmanager
    def _open(self) -> Iterator[Reading]:
        given = self._given
        counts_faults = self.talks or bool(given.get("strict"))
        with (
            _seldom_collected(),
            reading_of(
                given,
                self._paths,
                self.config,
                self.options,
                twice=self._must_learn,
                progress=self.talks,
                count_faults=counts_faults,
                unpacks=bool(given.get("strict")),
                tells_tcp=self._reads_tcp() or (self._chooser is not None and self._chooser.must_judge),
                briefs=self._briefs() if self._chooser is None else None,
            ) as reading,
        ):
            self._reading = reading
            reading.open()
            yield reading

    @property
    def _must_learn(self) -> bool:
        return self._chooser is not None and self._chooser.must_learn

    def _read(self, reading: Reading) -> None:
        if self._chooser is not None and self._must_learn:
            self._chooser.learn(reading, names=False)
        self._feed(reading)

    def _feed(self, reading: Reading) -> None:
        limits = self.config.limits
        counts = FoldingWork(reading, lambda: self._new(limits), self.counted, self._chooser)
        _count(reading, counts, self._jobs)


class TableFolding(Folding[Together]):
    """One reading of captures, from which tables are printed.

    :param make: makes the statistics.
    """

    def __init__(self, given: dict[str, Any], make: Callable[[Limits], Sequence[Statistic]]) -> None:
        super().__init__(given, paths_of(given), lambda limits: Together(make(limits)))
        self.statistics = self.counted.statistics

    def _reads_tcp(self) -> bool:
        return any(each.reads_tcp for each in self.statistics)

    def _briefs(self) -> Interest | None:
        asked = self.counted.briefs
        if asked is None or self._given["strict"]:
            return None
        return asked._replace(records=True) if self.talks else asked

    def print(self, print_rows: Callable[[BinaryIO, Reading], int]) -> int:
        """Read, count, print; gives the exit code.

        :param print_rows: prints to a file what was counted; gives how many rows that were.
        """
        reading, rows = self.run(print_rows)
        return reading.exit_code(
            self.talks, self._given["strict"], rows > 0 or not self._given["exit_status"]
        )

    def complain_of_left_out(self, text: str, fold: Statistic) -> None:
        """Say on stderr what a statistic did not count."""
        if fold.left_out:
            complain(left_out_text(text, fold.left_out, self.config.limits))


class FoldedBatch(NamedTuple, Generic[C]):
    """What comes of a batch."""

    part: Part[C]
    tally: Tally
    problems: list[Problem]


class FoldingWork(Generic[C]):
    """Feeds what counts: what is not chosen too, for what it tells of the rest."""

    state: None = None
    """No batch depends on how the one before it ended."""

    def __init__(
        self,
        reading: Reading,
        new: Callable[[], C],
        counted: C,
        chooser: Chooser | None,
    ) -> None:
        """
        :param new: makes one like ``counted`` that nothing was fed to.
        :param counted: what all is counted into.
        """
        self._reading = reading
        self._new = new
        self._counted = counted
        self._chooser = chooser

    @property
    def is_light(self) -> bool:
        """As :class:`~kdissect.cli.jobs.SharedWork` has it: of exchanges in brief only numbers are asked."""
        return self._reading.source.briefs is not None

    @property
    def full_tables(self) -> int:
        """As :class:`~kdissect.cli.jobs.SharedWork` has it."""
        return self._counted.full_tables

    def expected(self, state: None, before: Before) -> None:
        """As :class:`~kdissect.jobs.serving.Work` has it."""

    def go_on(self, state: None) -> None:
        """As :class:`~kdissect.cli.jobs.SharedWork` has it. Batches have no state."""

    def many(self, events: Sequence[Event]) -> None:
        """Count events, the next."""
        feed, chooser = self._counted.feed, self._chooser
        if chooser is None:
            self._counted.feed_all(events)
            return
        for event in events:
            feed(event, chooser.counts(event))

    def do(self, lists: Iterable[Sequence[Event]], state: None, write: Write) -> tuple[None, FoldedBatch[C]]:
        """Count a batch."""
        tally = self._reading.tally.part()
        if tally.looks_inside:  # else whoever reads has counted them
            lists = _tallied(lists, tally)
        new = self._new()
        new.keep_to(self._counted)
        part = counted(lists, new, None if self._chooser is None else self._chooser.part())
        return None, FoldedBatch(part, tally, problems_so_far())

    def done(self, batched: FoldedBatch[C]) -> None:
        """Add what a batch counted."""
        self._reading.tally.merge(batched.tally)
        add(self._counted, batched.part, set() if self._chooser is None else self._chooser.chosen)

    def write(self, _: Piece) -> None:
        """Counting writes nothing."""


def _tallied(lists: Iterable[Sequence[Event]], tally: Tally) -> Iterator[Sequence[Event]]:
    for events in lists:
        for event in events:
            tally.add(event)
        yield events


def _count(reading: Reading, counts: FoldingWork[C], jobs: Jobs) -> None:
    """Feed all that is read, in as many processes as are wanted and worth it."""
    if jobs.processes > 1:
        batch = EventBatch(COUNTED_BYTES, COUNTED_EVENTS)
        share(reading, reading.events(), counts, jobs, counts.write, batch)
        return
    for events in gathered(reading.events()):
        counts.many(events)
