"""Events → what is counted of them: by one process, event by event, or shared, batch by batch.

What a batch counts is added in the order of the batches, which gives what one fed with all of it would hold
(:mod:`kdissect.analysis.fold`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple

from kdissect.analysis.part import C, Part, add, counted
from kdissect.cli.filters import Chooser
from kdissect.cli.jobs import Jobs, problems_so_far, share
from kdissect.cli.reading import Reading
from kdissect.cli.tally import Tally
from kdissect.dissect import Event
from kdissect.jobs.batches import Batch, opened
from kdissect.jobs.serving import Piece, Write
from kdissect.limits import Limits
from kdissect.names import TopicNames
from kdissect.protocol.library import Problem

COUNTED_BYTES, COUNTED_EVENTS = 2 << 20, 2_048
"""A batch that is counted is larger than one that is printed: what it comes to must be added, too."""


class Batched(NamedTuple, Generic[C]):
    """What comes of a batch."""

    part: Part[C]
    tally: Tally
    problems: list[Problem]


class Counts(Generic[C]):
    """Feeds what counts: what is not chosen too, for what it tells of the rest."""

    state: None = None
    """No batch depends on how the one before it ended."""

    def __init__(
        self,
        reading: Reading,
        new: Callable[[], C],
        counted: C,
        limits: Limits,
        chooser: Chooser | None,
    ) -> None:
        """
        :param new: makes one like ``counted`` that nothing was fed to.
        :param counted: what all is counted into.
        """
        self.history = TopicNames()
        self._reading = reading
        self._new = new
        self._counted = counted
        self._limits = limits
        self._chooser = chooser

    def many(self, events: Sequence[Event]) -> None:
        """Count events, the next."""
        for event in events:
            self._counted.feed(event, self._chooser is None or self._chooser.counts(event))

    def wants(self, _: Event) -> bool:
        """Every event tells something."""
        return True

    def hear(self, news: Sequence[Any]) -> None:
        """Names of topic ids."""
        for told in news:
            self.history.learn(*told)

    def do(self, batch: bytes, state: None, write: Write) -> tuple[None, Batched[C]]:
        """Count a batch."""
        _, events = opened(batch, self.history, self._limits)
        tally = self._reading.tally.part()
        if tally.looks_inside:  # else whoever reads has counted them
            events = _tallied(events, tally)
        part = counted(events, self._new(), None if self._chooser is None else self._chooser.part())
        return None, Batched(part, tally, problems_so_far())

    def done(self, batched: Batched[C]) -> None:
        """Add what a batch counted."""
        self._reading.tally.merge(batched.tally)
        add(self._counted, batched.part, set() if self._chooser is None else self._chooser.chosen)

    def write(self, _: Piece) -> None:
        """Counting writes nothing."""


def _tallied(events: Iterable[Event], tally: Tally) -> Iterator[Event]:
    for event in events:
        tally.add(event)
        yield event


def count(reading: Reading, counts: Counts[C], jobs: Jobs) -> None:
    """Feed all that is read, in as many processes as are wanted and worth it."""
    if jobs.processes > 1:
        batch = Batch(COUNTED_BYTES, COUNTED_EVENTS)
        share(reading, reading.events(), counts, jobs, counts.write, batch)
        return
    for events in reading.events():
        counts.many(events)
