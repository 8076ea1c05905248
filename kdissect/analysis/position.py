"""One partition of one fetcher: since when it is fetched, from which offset, and what the responses
contained.

The requests of a connection are its steps, numbered from 0: :mod:`kdissect.analysis.positions`.
"""

from __future__ import annotations

from copy import copy

from kdissect.analysis.batches import Batches
from kdissect.analysis.counters import Grades, Span
from kdissect.analysis.fold import most
from kdissect.record.records import wrap64


class Position:
    """The state of the partition."""

    __slots__ = (
        *("aborted_unnamed", "aborted_unnamed_count", "batches", "beyond", "beyond_stable"),
        *("beyond_stable_count", "counts", "errors", "fetches", "first_stable", "full"),
        *("high_watermark", "last_stable_offset", "log_start_offset", "max_lag", "named"),
        *("position", "since", "span", "touched", "unplaced"),
    )

    def __init__(self) -> None:
        self.fetches = 0
        """Requests that fetched it, up to the last :meth:`count_fetches`."""
        self.counts = False
        """Whether an exchange that names it counts. With a filter, other exchanges are replayed too."""
        self.since: int | None = None
        """The step since which it is fetched; None if it is not."""
        self.touched: int | None = None
        """The step at which it was first named or forgotten."""
        self.named = 0
        self.position: int | None = None
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.max_lag: int | None = None
        self.unplaced: int | None = None
        """The largest high watermark while the position was unknown."""
        self.full = 0
        """Answers with its records whose size came near the limit of the request."""
        self.beyond_stable = Span()
        """Exchanges that brought records from the last stable offset on to a reader of committed records."""
        self.beyond_stable_count = 0
        self.beyond: tuple[int, int, int] | None = None
        """The offset of such records, and the time and the number of the exchange. It is kept until a later
        answer shows whether the last stable offset had already moved on when they were read."""
        self.first_stable: int | None = None
        """The first last stable offset in an answer."""
        self.aborted_unnamed = Span()
        """Exchanges that brought records of an aborted transaction to such a reader, and did not name the
        transaction."""
        self.aborted_unnamed_count = 0
        self.batches = Batches()
        self.errors = Grades()
        self.span = Span()

    def take_request(self, step: int, offset: int) -> None:
        """A request names the partition."""
        self.named += 1
        self.position = offset
        self._touch(step)
        if self.since is None:
            self.since = step

    def forget(self, step: int) -> None:
        """The fetcher no longer asks for the partition."""
        self._touch(step)
        self.count_fetches(step)

    def count_fetches(self, step: int) -> None:
        """Count the requests that asked for it before this step."""
        if self.since is not None:
            self.fetches += step - self.since
            self.since = None

    def _touch(self, step: int) -> None:
        if self.touched is None:
            self.touched = step

    def set_offsets(self, high: int, stable: int, start: int) -> None:
        """Note the high watermark, the last stable offset and the log start of a response; -1 means
        absent."""
        if high >= 0:
            self.high_watermark = high
            self._place(high)
        if stable >= 0:
            self._resolve_beyond(stable)
            self.first_stable = stable if self.first_stable is None else self.first_stable
            self.last_stable_offset = stable
        if start >= 0:
            self.log_start_offset = start

    def _resolve_beyond(self, stable: int) -> None:
        """Judge the kept case by the last stable offset of a later answer. That offset never goes back."""
        if self.beyond is None:
            return
        offset, ns, number = self.beyond
        if stable <= offset:
            self.beyond_stable.add(ns, number)
            self.beyond_stable_count += 1
        self.beyond = None

    def _place(self, high: int) -> None:
        if self.position is None:
            self.unplaced = most(self.unplaced, high)
        else:
            self.max_lag = most(self.max_lag, wrap64(high - self.position))

    @property
    def lag(self) -> int | None:
        """The high watermark minus the requested offset, from the last messages."""
        if self.high_watermark is None or self.position is None:
            return None
        return wrap64(self.high_watermark - self.position)

    def shifted(self, steps: int) -> Position:
        """A copy with ``steps`` earlier steps before its first."""
        out = copy(self)
        out.since = None if self.since is None else self.since + steps
        out.touched = None if self.touched is None else self.touched + steps
        return out

    def merge(self, later: Position) -> None:
        """Add a later part. Its steps continue those here."""
        self.fetches += later.fetches
        self.counts |= later.counts
        if later.touched is not None:
            self.since = later.since
            self.touched = later.touched if self.touched is None else self.touched
        self.named += later.named
        if later.unplaced is not None:
            self._place(later.unplaced)
        self.max_lag = most(self.max_lag, later.max_lag)
        for name in ("position", "high_watermark", "last_stable_offset", "log_start_offset"):
            if getattr(later, name) is not None:
                setattr(self, name, getattr(later, name))
        if later.first_stable is not None:
            self._resolve_beyond(later.first_stable)
            self.beyond = later.beyond
            self.first_stable = later.first_stable if self.first_stable is None else self.first_stable
        self.full += later.full
        self.beyond_stable.merge(later.beyond_stable)
        self.beyond_stable_count += later.beyond_stable_count
        self.aborted_unnamed.merge(later.aborted_unnamed)
        self.aborted_unnamed_count += later.aborted_unnamed_count
        self.batches.merge(later.batches)
        self.errors.merge(later.errors)
        self.span.merge(later.span)
