"""How a fetcher moves on in a partition, or stops.

Its requested offsets and the answers, in order → trend of the lag, longest stop at one offset, rewinds,
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
"""Time; number of the exchange; the requested offset, or :data:`NONE`; high watermark, last stable offset and
log start in the answer, or NONE; the number of records, NONE if the capture lacks bytes of the answer; error
code; bytes: those that a request allows, or those of an answer."""
NEARLY = 0.9
"""An answer with at least this share of the allowed bytes was cut by that limit."""
APART_NS = 2 * SECOND
"""The longest time between two answers with records that count as one stretch of reading."""
MOST_STRETCHES = 64


class Stall(NamedTuple):
    """Answers with records while the requested offset stayed the same. A client that fetches ahead asks for
    later offsets in between: then each return to the same offset counts."""

    offset: int
    answers: int
    first_ns: int
    last_ns: int


class Reset(NamedTuple):
    """A requested offset that was out of range, and the next requested offset."""

    before: int
    after: int | None
    exchange: int
    ns: int


@packed
@dataclass(slots=True)
class Progress:
    """The results of the moves."""

    lag_first: int | None = None
    lag_per_s: float | None = None
    points: int = 0
    stall: Stall | None = None
    """The longest stall, of two answers or more."""
    begun_at: int | None = None
    """The first requested offset."""
    rewinds: int = 0
    rewound: tuple[int, int] | None = None
    """The last rewind: from which offset, to which offset."""
    out_of_range: int = 0
    reset: Reset | None = None
    """The last reset."""
    starved: int = 0
    """The most answers without a whole record at one offset below the high watermark."""
    starved_at: int | None = None
    answers: int = 0
    """Answers with records."""
    max_bytes: int | None = None
    """The last request's limit of bytes."""
    cut: int = 0
    """Answers that came near the limit although the log had more records."""
    reading: list[tuple[int, int]] = field(default_factory=list)
    """Stretches in which records came: first and last time."""
    _hungry: int = 0
    _at: int | None = None
    _answers: int = 0
    _first_ns: int = 0
    _back: Stall | None = None
    """The last rewind's offset, and the answers with records there."""
    _lags: list[tuple[int, int]] = field(default_factory=list)

    def take_request(self, offset: int) -> None:
        """Take in a requested offset."""
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

    def take_records(self, ns: int, records: int, size: int, high: int) -> None:
        """Take in an answer with records."""
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

    def take_empty(self, high: int, stable: int) -> None:
        """Take in an answer without records."""
        if self._at is None or self._at >= (high if stable == NONE else min(high, stable)):
            return
        self._hungry += 1
        if self._hungry > self.starved:
            self.starved, self.starved_at = self._hungry, self._at

    def take_unknown(self) -> None:
        """Take in an answer whose records were not captured, so that the position is unknown."""
        self._at, self._hungry, self._answers = None, 0, 0

    def take_watermark(self, ns: int, high: int) -> None:
        """Take in a high watermark."""
        if self._at is not None:
            self._lags.append((ns, wrap64(high - self._at)))

    def take_refusal(self, ns: int, exchange: int) -> None:
        """Take in an answer that the requested offset is out of range."""
        self.out_of_range += 1
        if self._at is not None:
            self.reset = Reset(self._at, None, exchange, ns)

    def end(self) -> None:
        """Compute the results after the last move."""
        points = sampled(sorted(self._lags))
        self.lag_first = self._lags[0][1] if self._lags else None
        self.lag_per_s, self.points = slope_per_s(points), len(points)


def progress(moves: Iterable[Move]) -> Progress:
    """The results of a fetcher's moves in a partition, in the order of its requests."""
    out = Progress()
    for ns, exchange, offset, high, stable, _, records, code, size in moves:
        if offset != NONE:
            out.max_bytes = size
            out.take_request(offset)
        if high != NONE:
            out.take_watermark(ns, high)
        if records == NONE:
            out.take_unknown()
        elif records:
            out.take_records(ns, records, size, high)
        elif high != NONE:
            out.take_empty(high, stable)
        if code == OUT_OF_RANGE:
            out.take_refusal(ns, exchange)
    out.end()
    return out
