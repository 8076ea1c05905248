"""Captures → counts: statistics for tables, or a judge for findings.

A single process feeds some events at a time; several processes share batches. The counts of batches are added
in the order of the batches. The result is the same as if one fold had been fed with everything
(:mod:`kdissect.analysis.fold`).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, NamedTuple, TypeVar

import click

from kdissect.analysis.fold import Statistic
from kdissect.analysis.fold_set import Together
from kdissect.analysis.part import ChapterCounts, Counted, Part, counted, gathered
from kdissect.analysis.whole import WholeFold
from kdissect.cli.config import load_config
from kdissect.cli.errors import complain
from kdissect.cli.filters import Chooser, Within, chooser_of
from kdissect.cli.inputs import captures_of
from kdissect.cli.jobs import Jobs, jobs_of, problems_so_far, share
from kdissect.cli.output import inputs_of, open_output
from kdissect.cli.reading import Reading, reading_of
from kdissect.cli.tally import Tally
from kdissect.collector import restore_thresholds
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
"""Batches for counting are larger than batches for printing, because adding their results takes time, too."""


_LOOK_AFTER = 2_000_000, 20, 20
"""When the garbage collector runs: new objects, runs over the youngest generation, runs over the second one.
Counts do not lie in cycles: feeding 20,000 exchanges leaves 136 objects in cycles, as feeding 15 does. Each
run goes through all objects that were kept since the last one. Damaged input may leave cycles, so the
collector still runs now and then."""


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """Make the garbage collector run seldom, and ignore older objects."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_LOOK_AFTER)
    try:
        yield
    finally:
        restore_thresholds(before)


C = TypeVar("C", bound=Counted)
R = TypeVar("R")


def paths_of(given: dict[str, Any]) -> tuple[str, ...]:
    """The given captures.

    :raises click.UsageError: there is no capture.
    :raises Unreadable: a folder has no files.
    """
    paths = captures_of(given)
    if not paths:
        raise click.UsageError(
            "no capture is given: name a file, or - for standard input", click.get_current_context()
        )
    return paths


class Folding(Generic[C]):
    """One reading of captures that feeds a fold.

    :param new: makes the fold, with the limits of the configuration.
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
        self.config = load_config()
        self.options = Options(limits=self.config.limits, shown_fields=self.config.shown_fields)
        self._whole = WholeFold(lambda: new(self.config.limits))
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
    def counted(self) -> C:
        """The fold. It has its contents only once all is read."""
        return self._whole.counted

    @property
    def shows_progress(self) -> bool:
        """Whether to print the progress."""
        return sys.stderr.isatty() and not self._given["quiet"]

    def _first_ns(self) -> int | None:
        return None if self._reading is None else self._reading.first_ns

    def _reads_tcp(self) -> bool:
        """Whether the fold uses the TCP columns of connections."""
        return True

    def _briefs(self) -> Interest | None:
        """What the fold needs of exchanges in brief; None if it needs whole ones."""
        return None

    def run(self, finish: Callable[[BinaryIO, Reading], R]) -> tuple[Reading, R]:
        """Read and feed, then call ``finish`` with the output, even if Ctrl-C ended the input.

        :raises KeyboardInterrupt: after that.
        """
        given = self._given
        with self._open() as reading, open_output(given["output"], inputs_of(given)) as file:
            try:
                self._read(reading)
            except KeyboardInterrupt:
                if reading.is_interrupted:  # otherwise it was pressed twice
                    finish(file, reading)
                raise
            return reading, finish(file, reading)

    def count(self) -> Reading:
        """Read and feed. The output comes later."""
        with self._open() as reading:
            self._read(reading)
            return reading

    @contextmanager
    def _open(self) -> Iterator[Reading]:
        given = self._given
        counts_faults = self.shows_progress or bool(given.get("strict"))
        with (
            _seldom_collected(),
            reading_of(
                given,
                self._paths,
                self.config,
                self.options,
                twice=self._must_learn,
                progress=self.shows_progress,
                count_faults=counts_faults,
                unpacks=bool(given.get("strict")),
                adds_tcp=self._reads_tcp() or (self._chooser is not None and self._chooser.must_judge),
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
        try:
            _count(reading, FoldingWork(reading, self._whole, self._chooser), self._jobs)
        finally:
            self._whole.finish()


class TableFolding(Folding[Together]):
    """One reading of captures that prints tables.

    :param make: makes the statistics.
    """

    def __init__(self, given: dict[str, Any], make: Callable[[Limits], Sequence[Statistic]]) -> None:
        super().__init__(given, paths_of(given), lambda limits: Together(make(limits)))

    @property
    def statistics(self) -> list[Statistic]:
        """The statistics. They have their rows only once all is read."""
        return self.counted.statistics

    def _reads_tcp(self) -> bool:
        return any(each.reads_tcp for each in self.statistics)

    def _briefs(self) -> Interest | None:
        asked = self.counted.briefs
        if asked is None or self._given["strict"]:
            return None
        return asked._replace(records=True, faults=True) if self.shows_progress else asked

    def print(self, print_rows: Callable[[BinaryIO, Reading], int]) -> int:
        """Read, count and print; return the exit code.

        :param print_rows: prints the counts to a file, and returns the number of rows.
        """
        reading, rows = self.run(print_rows)
        return reading.exit_code(
            self.shows_progress, self._given["strict"], rows > 0 or not self._given["exit_status"]
        )

    def complain_of_left_out(self, text: str, fold: Statistic) -> None:
        """Report on stderr what a statistic did not count."""
        if fold.left_out:
            complain(left_out_text(text, fold.left_out, self.config.limits))


class FoldedChapter(NamedTuple):
    """A chapter of a batch that ended before the batch did."""

    data: bytes
    """Its :class:`~kdissect.analysis.part.ChapterCounts`, pickled: that takes less memory until its turn
    comes."""


class FoldedBatch(NamedTuple, Generic[C]):
    """The result of a batch."""

    part: Part[C]
    """Its last chapter, and what it chose."""
    tally: Tally
    problems: list[Problem]


class FoldingWork(Generic[C]):
    """Feeds a fold with all events. It feeds those that are not chosen too, because they help to understand
    the others."""

    state: None = None
    """Always None: no batch depends on how the previous one ended."""

    def __init__(self, reading: Reading, whole: WholeFold[C], chooser: Chooser | None) -> None:
        """
        :param whole: receives everything.
        """
        self._reading = reading
        self._whole = whole
        self._chooser = chooser

    @property
    def is_light(self) -> bool:
        """As :class:`~kdissect.cli.jobs.SharedWork` defines it: only numbers are read of exchanges in
        brief."""
        return self._reading.source.briefs is not None

    def expected(self, state: None, before: Before) -> None:
        """As :class:`~kdissect.jobs.serving.Work` defines it."""

    def go_on(self, state: None) -> None:
        """As :class:`~kdissect.cli.jobs.SharedWork` defines it. Batches have no state."""

    def many(self, events: Sequence[Event]) -> None:
        """Count the next events."""
        chooser = self._chooser
        if chooser is None:
            self._whole.feed_all(events)
            return
        for event in events:
            self._whole.feed(event, chooser.counts(event))

    def do(self, lists: Iterable[Sequence[Event]], state: None, write: Write) -> tuple[None, FoldedBatch[C]]:
        """Count a batch."""
        from kdissect.jobs.serving import dump

        tally = self._reading.tally.part()
        if tally.looks_inside:  # otherwise the reader has counted them
            lists = _tallied(lists, tally)
        names = (self._reading.names,)

        def send(ended: ChapterCounts[C]) -> None:
            write(FoldedChapter(dump(ended, names)))

        part = counted(lists, self._whole.new, None if self._chooser is None else self._chooser.part(), send)
        return None, FoldedBatch(part, tally, problems_so_far())

    def done(self, batched: FoldedBatch[C]) -> None:
        """Add the counts of a batch."""
        self._reading.tally.merge(batched.tally)
        self._add(batched.part)

    def write(self, piece: Piece) -> None:
        """Add a chapter of the next batch."""
        from kdissect.jobs.serving import load

        if isinstance(piece, FoldedChapter):
            self._add(Part([load(piece.data, (self._reading.names,))]))

    def _add(self, part: Part[C]) -> None:
        self._whole.add(part, set() if self._chooser is None else self._chooser.chosen)


def _tallied(lists: Iterable[Sequence[Event]], tally: Tally) -> Iterator[Sequence[Event]]:
    for events in lists:
        for event in events:
            tally.add(event)
        yield events


def _count(reading: Reading, counts: FoldingWork[C], jobs: Jobs) -> None:
    """Feed everything, in as many processes as are allowed and worthwhile."""
    if jobs.processes > 1:
        batch = EventBatch(COUNTED_BYTES, COUNTED_EVENTS)
        share(reading, reading.events(), counts, jobs, counts.write, batch)
        return
    for events in gathered(reading.events()):
        counts.many(events)
