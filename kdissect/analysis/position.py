"""One partition of one fetcher: since when it is asked for, from which offset, and what responses told.

The requests of a connection are its steps, numbered from 0: :mod:`kdissect.analysis.positions`.
"""

from __future__ import annotations

from copy import copy

from kdissect.analysis.batches import Batches
from kdissect.analysis.counters import Grades, Span
from kdissect.analysis.fold import most
from kdissect.record.records import wrap64


class Position:
    """The state of it."""

    __slots__ = (
        *("aborted_unnamed", "aborted_unnamed_count", "batches", "beyond", "beyond_stable"),
        *("beyond_stable_count", "counts", "errors", "fetches", "first_stable", "full"),
        *("high_watermark", "last_stable_offset", "log_start_offset", "max_lag", "named"),
        *("position", "since", "span", "touched", "unplaced"),
    )

    def __init__(self) -> None:
        self.fetches = 0
        """Requests that asked for it, up to the last time it was let go."""
        self.counts = False
        """Whether an exchange that names it counts; where a filter chooses, others are replayed too."""
        self.since: int | None = None
        """The step since which it is asked for; None where it is not."""
        self.touched: int | None = None
        """The step at which it was first named or forgotten."""
        self.named = 0
        self.position: int | None = None
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.max_lag: int | None = None
        self.unplaced: int | None = None
        """The largest high watermark told while no position was known."""
        self.full = 0
        """Answers with its records that came near what the request allows as a whole."""
        self.beyond_stable = Span()
        """Exchanges that brought records from the last stable offset on, to whom only reads what is
        committed."""
        self.beyond_stable_count = 0
        self.beyond: tuple[int, int, int] | None = None
        """The offset of such records, the time and the number of the exchange, while no later answer has
        shown whether the last stable offset had already moved on when they were read."""
        self.first_stable: int | None = None
        """The first last stable offset told."""
        self.aborted_unnamed = Span()
        """Exchanges that brought records of an aborted transaction, and did not name it, to the same."""
        self.aborted_unnamed_count = 0
        self.batches = Batches()
        self.errors = Grades()
        self.span = Span()

    def ask(self, step: int, offset: int) -> None:
        """It is named."""
        self.named += 1
        self.position = offset
        self._touch(step)
        if self.since is None:
            self.since = step

    def forget(self, step: int) -> None:
        """It is no longer asked for."""
        self._touch(step)
        self.let_go(step)

    def let_go(self, step: int) -> None:
        """Count the requests that asked for it before this step."""
        if self.since is not None:
            self.fetches += step - self.since
            self.since = None

    def _touch(self, step: int) -> None:
        if self.touched is None:
            self.touched = step

    def tell(self, high: int, stable: int, start: int) -> None:
        """A response tells the high watermark, the last stable offset and where the log starts; each -1 where
        it does not."""
        if high >= 0:
            self.high_watermark = high
            self._place(high)
        if stable >= 0:
            self._settle(stable)
            self.first_stable = stable if self.first_stable is None else self.first_stable
            self.last_stable_offset = stable
        if start >= 0:
            self.log_start_offset = start

    def _settle(self, stable: int) -> None:
        """A later answer tells the last stable offset, which never goes back."""
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
        """The high watermark minus the offset asked for, both as last told."""
        if self.high_watermark is None or self.position is None:
            return None
        return wrap64(self.high_watermark - self.position)

    def shifted(self, steps: int) -> Position:
        """A copy with ``steps`` before its first."""
        out = copy(self)
        out.since = None if self.since is None else self.since + steps
        out.touched = None if self.touched is None else self.touched + steps
        return out

    def merge(self, later: Position) -> None:
        """Add what was found later; its steps count on from those here."""
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
            self._settle(later.first_stable)
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
