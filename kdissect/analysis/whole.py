"""All events of a capture → one fold, whose contents depend on the events alone.

    whole = Whole(lambda: Together(…))
    whole.feed_all(events)                          or whole.add(part, chosen), part by part, or both
    whole.finish()
    whole.counted                                   the fold

Which things a full fold keeps depends on where its input was cut into parts. So limits apply only at the ends
of segments (:mod:`kdissect.analysis.segments`), which are the same for any parts. Until then an open fold
accepts what comes, and what was fed is the same as what was added. If the fold is too full at the end of a
segment, its contents are added to a new fold, which keeps to the limits. From then on an open fold counts
each further segment, and is added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from kdissect.analysis.part import C, Part, opened
from kdissect.analysis.segments import FIRST, Segment, in_segments
from kdissect.dissect import Event


class Whole(Generic[C]):
    """Counts all events of a capture.

    :param new: makes an empty fold.
    """

    def __init__(self, new: Callable[[], C]) -> None:
        self.new = new
        """Makes an empty fold."""
        self.counted = new()
        """The fold. Once it is too full, another one takes its place."""
        self.counted.set_open()
        self._is_open = True
        """Whether the fold accepts what comes."""
        self._segment: C | None = None
        """The fold of the current segment, if the whole accepts no more."""
        self._at = FIRST

    def feed(self, event: Event, counts: bool = True) -> None:
        """Take in the next event. An event that does not count may tell of others."""
        for segment, _ in in_segments((event,), self._at):
            self._go_to(segment)
            self._current().feed(event, counts)

    def feed_all(self, events: Sequence[Event]) -> None:
        """Take in the next events, all of which count."""
        for segment, several in in_segments(events, self._at):
            self._go_to(segment)
            self._current().feed_all(several)

    def add(self, part: Part[C], chosen: set[int]) -> None:
        """Add the next part.

        :param chosen: connections with an exchange that counts in the parts before. This part's connections
            are added to it.
        """
        for piece in part.pieces:
            self._go_to(piece.segment.after(self._at))
            if not self._is_open and self._segment is None:
                self._segment = piece.counted
            else:
                self._current().merge(piece.counted)
            for connection, counts in piece.connections:
                self._current().feed(connection, counts or connection.connection in chosen)
        chosen |= part.chosen

    def finish(self) -> None:
        """Apply the limits after the last event."""
        self._end_segment()
        if self._is_open:
            self.counted.close()
            self._is_open = False

    def _current(self) -> C:
        """The fold that takes in the events of the current segment."""
        if self._is_open:
            return self.counted
        if self._segment is None:
            self._segment = opened(self.new)
        return self._segment

    def _go_to(self, segment: Segment) -> None:
        if segment != self._at:
            self._end_segment()
            self._at = segment

    def _end_segment(self) -> None:
        if self._segment is not None:
            self.counted.merge(self._segment)
            self._segment = None
        elif self._is_open and self.counted.exceeds:
            strict = self.new()
            strict.take(self.counted)
            self.counted, self._is_open = strict, False
