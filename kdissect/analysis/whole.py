"""All events of a capture → one fold, whose contents depend on the events alone.

    whole = WholeFold(lambda: Together(…))
    whole.feed_all(events)                          or whole.add(part, chosen), part by part, or both
    whole.finish()
    whole.counted                                   the fold

Which things a full fold keeps depends on where its input was cut into parts. So limits apply only at the ends
of chapters (:mod:`kdissect.analysis.chapters`), which are the same for any parts. Until then an open fold
accepts what comes, and what was fed is the same as what was added. If a fold is too full at the end of a
chapter, it keeps to the limits from then on. An open fold counts each further chapter, and is added. If
several folds are fed together, only those that are too full do so.
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
        self.counted = opened(new)
        """The fold."""
        self._at = FIRST
        self._ends = ends_of(FIRST)

    def feed(self, event: Event, counts: bool = True) -> None:
        """Take in the next event. An event that does not count may tell of others."""
        if first_beyond((event,), 0, self._ends) >= 0:
            self._go_to(after(self._at, event))
        self._begin_chapter()
        self.counted.feed(event, counts)

    def feed_all(self, events: Sequence[Event]) -> None:
        """Take in the next events, all of which count."""
        for chapter, several in in_chapters(events, self._at):
            self._go_to(chapter)
            self._begin_chapter()
            self.counted.feed_all(several)

    def add(self, part: Part[C], chosen: set[int]) -> None:
        """Add the next part, and empty it.

        :param chosen: connections with an exchange that counts in the parts before. This part's connections
            are added to it.
        """
        for piece in part.pieces:
            self._go_to(piece.chapter.after(self._at))
            if self.counted.awaits_chapter:
                self.counted.begin_chapter(piece.counted)
            self.counted.take(piece.counted)
            for connection, counts in piece.connections:
                self.counted.feed(connection, counts or connection.connection in chosen)
        chosen |= part.chosen

    def finish(self) -> None:
        """Apply the limits after the last event."""
        self.counted.end_chapter(self.new)
        self.counted.close()

    def _begin_chapter(self) -> None:
        if self.counted.awaits_chapter:
            self.counted.begin_chapter(opened(self.new))

    def _go_to(self, chapter: Chapter) -> None:
        if chapter != self._at:
            self.counted.end_chapter(self.new)
            self._at, self._ends = chapter, ends_of(chapter)
