"""How a fetcher moves on in a partition, or does not.

What it asked for and what it was told, in order → trend of the lag, longest stop at one offset, rewinds,
resets.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from kdissect.analysis.fold import SECOND
from kdissect.analysis.ledgers import NONE
from kdissect.analysis.packed import packed
from kdissect.analysis.trend import sampled, slope_per_s
from kdissect.record.records import wrap64

OUT_OF_RANGE = 1
"""The code of OFFSET_OUT_OF_RANGE."""

Move = tuple[int, ...]
"""Time; number of the exchange; the offset asked for, or :data:`NONE`; high watermark, last stable offset,
log start that were told, or NONE; records that came, NONE where the capture lacks bytes of the answer; error
code; bytes: those that a request allows, or those that came."""
NEARLY = 0.9
"""An answer with so much of what was allowed was cut by it."""
APART_NS = 2 * SECOND
"""Answers with records that lie no further apart are of one stretch of reading."""
MOST_STRETCHES = 64


class Stall(NamedTuple):
    """Answers with records while one offset was asked for, again and again. A client that fetches ahead asks
    for later offsets between: then each time counts that it comes back to the same one."""

    offset: int
    answers: int
    first_ns: int
    last_ns: int


class Reset(NamedTuple):
    """What was asked for was not there, and something else was asked for."""

    before: int
    after: int | None
    exchange: int
    ns: int


@packed
@dataclass(slots=True)
class Progress:
    """What becomes of the moves."""

    lag_first: int | None = None
    lag_per_s: float | None = None
    points: int = 0
    stall: Stall | None = None
    """The longest, of two answers or more."""
    begun_at: int | None = None
    """The offset that is asked for first."""
    rewinds: int = 0
    rewound: tuple[int, int] | None = None
    """The last: from where, to where."""
    out_of_range: int = 0
    reset: Reset | None = None
    """The last."""
    starved: int = 0
    """The most answers without a whole record at one offset, which is below the high watermark."""
    starved_at: int | None = None
    answers: int = 0
    """With records."""
    max_bytes: int | None = None
    """How many bytes were allowed last."""
    cut: int = 0
    """Answers that came near that, with more to come."""
    reading: list[tuple[int, int]] = field(default_factory=list)
    """Stretches in which records came: first and last time."""
    _hungry: int = 0
    _at: int | None = None
    _answers: int = 0
    _first_ns: int = 0
    _back: Stall | None = None
    """Where it came back to last, and what came there."""
    _lags: list[tuple[int, int]] = field(default_factory=list)

    def ask(self, offset: int) -> None:
        """An offset is asked for."""
        if offset == self._at:
            return
        if self.begun_at is None:
            self.begun_at = offset
        if self.reset is not None and self.reset.after is None:
            self.reset = self.reset._replace(after=offset)
        elif self._at is not None and offset < self._at:
            self.rewinds, self.rewound = self.rewinds + 1, (self._at, offset)
            if self._back is None or self._back.offset != offset:
                self._back = Stall(offset, 0, 0, 0)
        self._at, self._answers, self._hungry = offset, 0, 0

    def answer(self, ns: int, records: int, size: int, high: int) -> None:
        """Records came."""
        self.answers += 1
        if self.reading and ns - self.reading[-1][1] <= APART_NS:
            self.reading[-1] = self.reading[-1][0], max(ns, self.reading[-1][1])
        elif len(self.reading) < MOST_STRETCHES:
            self.reading.append((ns, ns))
        if self._at is None:
            return
        has_more = high != NONE and self._at + records < high
        self.cut += has_more and bool(self.max_bytes) and size >= NEARLY * (self.max_bytes or 0)
        self._first_ns = self._first_ns if self._answers else ns
        self._answers += 1
        self._hungry = 0
        self._stop(Stall(self._at, self._answers, self._first_ns, ns))
        back = self._back
        if back is not None and back.offset == self._at:
            self._back = Stall(self._at, back.answers + 1, back.first_ns if back.answers else ns, ns)
            self._stop(self._back)

    def _stop(self, stall: Stall) -> None:
        if stall.answers > 1 and (self.stall is None or stall.answers > self.stall.answers):
            self.stall = stall

    def nothing(self, high: int, stable: int) -> None:
        """No records came."""
        if self._at is None or self._at >= (high if stable == NONE else min(high, stable)):
            return
        self._hungry += 1
        if self._hungry > self.starved:
            self.starved, self.starved_at = self._hungry, self._at

    def unknown(self) -> None:
        """What came was not captured, so that nobody knows where it goes on from."""
        self._at, self._hungry, self._answers = None, 0, 0

    def watermark(self, ns: int, high: int) -> None:
        """Where the log ends was told."""
        if self._at is not None:
            self._lags.append((ns, wrap64(high - self._at)))

    def refuse(self, ns: int, exchange: int) -> None:
        """The offset that is asked for is not there."""
        self.out_of_range += 1
        if self._at is not None:
            self.reset = Reset(self._at, None, exchange, ns)

    def end(self) -> None:
        """That is all."""
        points = sampled(sorted(self._lags))
        self.lag_first = self._lags[0][1] if self._lags else None
        self.lag_per_s, self.points = slope_per_s(points), len(points)


def progress(moves: Iterable[Move]) -> Progress:
    """What the moves of a fetcher in a partition come to, in the order of its requests."""
    out = Progress()
    for ns, exchange, offset, high, stable, _, records, code, size in moves:
        if offset != NONE:
            out.max_bytes = size
            out.ask(offset)
        if high != NONE:
            out.watermark(ns, high)
        if records == NONE:
            out.unknown()
        elif records:
            out.answer(ns, records, size, high)
        elif high != NONE:
            out.nothing(high, stable)
        if code == OUT_OF_RANGE:
            out.refuse(ns, exchange)
    out.end()
    return out
