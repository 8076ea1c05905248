"""The exchange under the cursor is shown when the cursor rests: it is decoded beside the screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from textual.timer import Timer
from textual.worker import get_current_worker

from kdissect.present.detail import Detail
from kdissect.tui.pages.split import SplitPage

REST_SECONDS, REST_IN_A_ROW = 0.05, 0.12
"""How long the cursor must rest before the exchange under it is shown; and longer where it moves again and
again: to draw an exchange takes as long as two moves."""


class Resting:
    """What waits for the cursor of a page to rest.

    :param none: called where there is no exchange under the cursor.
    :param shown: called with an exchange when the panes show it.
    """

    def __init__(self, page: SplitPage, none: Callable[[], None], shown: Callable[[Detail], None]) -> None:
        self._page, self._none, self._shown = page, none, shown
        self._rest: Timer | None = None
        self._awaited: int | None = None
        """The exchange that is shown if the cursor rests."""
        self._moved_at = 0.0
        """When the cursor moved last, by :func:`time.monotonic`."""
        self._place: int | None = None
        """Of the exchange that is shown."""

    def rest_at(self, place: int | None) -> None:
        """The cursor is on the exchange at a place of the index, or on none."""
        if self._rest is not None:
            if place == self._awaited:
                return  # it rests there, whatever comes elsewhere
            self._rest.stop()
            self._rest = None
        self._awaited = place
        if place != self._place or self._page.panes.detail is None:
            now, before = time.monotonic(), self._moved_at
            self._moved_at = now
            rest = REST_IN_A_ROW if now - before < 2 * REST_IN_A_ROW else REST_SECONDS
            self._rest = self._page.set_timer(rest, lambda: self._load(place))

    def _load(self, place: int | None) -> None:
        self._rest, self._place = None, place
        if place is None:
            self._page.panes.show(None)
            self._none()
            return
        index = self._page.kdissect.index
        decode = partial(self.decode, place, index.value("place", place), index.value("length", place))
        self._page.run_worker(decode, thread=True, exclusive=True, group="decode")

    def decode(self, place: int, spooled: int, length: int) -> None:
        """Decode an exchange, and show it if the cursor is still there.

        :param spooled: where it stands in the spool, ``length`` bytes long.
        """
        worker, app = get_current_worker(), self._page.kdissect
        try:
            detail = Detail(app.feed.exchange(spooled, length), app.options, app.index.all_names())
        except OSError as error:
            why = error.strerror or error
            app.call_from_thread(self._page.say, f"the exchange cannot be shown: {why}")
            return
        if not worker.is_cancelled:
            app.call_from_thread(self._decoded, place, detail)

    def _decoded(self, place: int, detail: Detail) -> None:
        if place == self._place:
            self._page.panes.show(detail)
            self._shown(detail)
