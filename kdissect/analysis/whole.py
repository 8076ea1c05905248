"""All events of a capture → one fold, whose contents depend on the events alone.

    whole = WholeFold(lambda: Together(…))
    whole.feed_all(events)                          or whole.add(part, chosen), part by part, or both
    whole.finish()
    whole.counted                                   the fold

Which things a full fold keeps depends on where its input was cut into parts. So limits apply only at the ends
of chapters (:mod:`kdissect.analysis.chapters`), which are the same for any parts. Until then an open fold
accepts what comes, and what was fed is the same as what was added. If the fold is too full at the end of a
chapter, its contents are added to a new fold, which keeps to the limits. From then on an open fold counts
each further chapter, and is added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from kdissect.analysis.chapters import FIRST, Chapter, after, ends_of, first_beyond, in_chapters
from kdissect.analysis.part import C, Part, opened
from kdissect.dissect import Event


class WholeFold(Generic[C]):
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
        self._chapter: C | None = None
        """The fold of the current chapter, if the whole accepts no more."""
        self._at = FIRST
        self._ends = ends_of(FIRST)

    def feed(self, event: Event, counts: bool = True) -> None:
        """Take in the next event. An event that does not count may tell of others."""
        if first_beyond((event,), 0, self._ends) >= 0:
            self._go_to(after(self._at, event))
        self._current().feed(event, counts)

    def feed_all(self, events: Sequence[Event]) -> None:
        """Take in the next events, all of which count."""
        for chapter, several in in_chapters(events, self._at):
            self._go_to(chapter)
            self._current().feed_all(several)

    def add(self, part: Part[C], chosen: set[int]) -> None:
        """Add the next part.

        :param chosen: connections with an exchange that counts in the parts before. This part's connections
            are added to it.
        """
        for piece in part.pieces:
            self._go_to(piece.chapter.after(self._at))
            if not self._is_open and self._chapter is None:
                self._chapter = piece.counted
            else:
                self._current().merge(piece.counted)
            for connection, counts in piece.connections:
                self._current().feed(connection, counts or connection.connection in chosen)
        chosen |= part.chosen

    def finish(self) -> None:
        """Apply the limits after the last event."""
        self._end_chapter()
        if self._is_open:
            self.counted.close()
            self._is_open = False

    def _current(self) -> C:
        """The fold that takes in the events of the current chapter."""
        if self._is_open:
            return self.counted
        if self._chapter is None:
            self._chapter = opened(self.new)
        return self._chapter

    def _go_to(self, chapter: Chapter) -> None:
        if chapter != self._at:
            self._end_chapter()
            self._at, self._ends = chapter, ends_of(chapter)

    def _end_chapter(self) -> None:
        if self._chapter is not None:
            self.counted.merge(self._chapter)
            self._chapter = None
        elif self._is_open and self.counted.exceeds:
            strict = self.new()
            strict.take(self.counted)
            self.counted, self._is_open = strict, False
