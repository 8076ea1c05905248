"""Events → statistics: by one process, event by event, or shared, batch by batch.

What a batch counts is added in the order of the batches, which gives what one statistic fed with all of it
would hold (:mod:`kdissect.analysis.fold`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kdissect.analysis.catalogue import statistic
from kdissect.analysis.together import Together
from kdissect.cli.filtering import Chooser
from kdissect.cli.jobs import problems_so_far
from kdissect.cli.reading import Reading
from kdissect.cli.tally import Tally
from kdissect.dissect import Event
from kdissect.jobs.batches import opened
from kdissect.jobs.serving import Piece, Write
from kdissect.limits import Limits
from kdissect.names import TopicNames
from kdissect.protocol.library import Problem
from kdissect.session.conversation import Connection

COUNTED_BYTES, COUNTED_EVENTS = 2 << 20, 2_048
"""A batch that is counted is larger than one that is printed: what it comes to must be added, too."""


class Part(NamedTuple):
    """What comes of a batch."""

    counted: Together
    tally: Tally
    chosen: frozenset[int]
    """Connections with an exchange that the filter shows."""
    connections: Sequence[tuple[Connection, bool]]
    """Those that are over, where a filter chooses; and whether the batch itself tells that it does."""
    problems: list[Problem]


class Counts:
    """Feeds statistics: what is not chosen too, for what it tells of the rest."""

    state: None = None
    """No batch depends on how the one before it ended."""

    def __init__(
        self,
        reading: Reading,
        texts: Sequence[str],
        counted: Together,
        limits: Limits,
        chooser: Chooser | None,
    ) -> None:
        """:param texts: what was asked for, of which ``counted`` has the statistics."""
        self.history = TopicNames()
        self._reading = reading
        self._texts = texts
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

    def do(self, batch: bytes, state: None, write: Write) -> tuple[None, Part]:
        """Count a batch."""
        _, events = opened(batch, self.history, self._limits)
        counted = Together(statistic(text, self._limits)[1] for text in self._texts)
        tally = self._reading.tally.part()
        chooser = None if self._chooser is None else self._chooser.part()
        connections: list[tuple[Connection, bool]] = []
        for event in events:
            if tally.looks_inside:  # else whoever reads has counted it
                tally.add(event)
            counts = chooser is None or chooser.counts(event)
            if chooser is not None and isinstance(event, Connection):
                connections.append((event, counts))
            else:
                counted.feed(event, counts)
        chosen = frozenset(() if chooser is None else chooser.chosen)
        return None, Part(counted, tally, chosen, connections, problems_so_far())

    def done(self, part: Part) -> None:
        """Add what a batch counted."""
        self._reading.tally.merge(part.tally)
        self._counted.merge(part.counted)
        if self._chooser is not None:
            for connection, counts in part.connections:
                self._counted.feed(connection, counts or connection.connection in self._chooser.chosen)
            self._chooser.chosen |= part.chosen

    def write(self, _: Piece) -> None:
        """Counting writes nothing."""
