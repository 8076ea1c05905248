"""Exchanges of an index → figures: the brokers' work, errors, their rate; for all, and over time.

Over time there are equal spans. An exchange counts in the span in which it began.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kdissect.feed.index import Index, Places, grades
from kdissect.feed.rows import GRADES, GRAVEST, IS_WORK
from kdissect.present.form import SECOND
from kdissect.protocol.errors import ROUTINE

BARS = 20
"""The number of equal spans of time in which exchanges are counted."""
PIECE = 1 << 16
"""The number of exchanges processed together."""

NEVER = int(np.iinfo(np.int64).max)


class Summary(NamedTuple):
    """Figures of some exchanges."""

    p50_ns: int | None = None
    p99_ns: int | None = None
    """The 99th percentile of the brokers' work, where known (:mod:`kdissect.analysis.waits`), by nearest
    rank; None without any."""
    graded: tuple[int, ...] = (0,) * len(GRADES)
    """The number of exchanges with errors, by the grade of the gravest."""
    counts: tuple[int, ...] = ()
    """The exchanges in each of the :data:`BARS` spans from the first to the last."""
    per_second: float | None = None
    """The exchanges per second; None if all are at one time."""


NOTHING = Summary()


def summarise(index: Index, places: Places) -> Summary:
    """The figures of these exchanges."""
    if not len(places):
        return NOTHING
    flags = index.column("flags")
    taken, time = index.column("taken_ns"), index.column("time_ns")
    worked = np.empty(len(places), np.int64)
    known, graded = 0, np.zeros(len(GRADES), np.intp)
    first, last = NEVER, -NEVER
    for some in _pieces(places):
        graded += grades(flags[some])
        found = taken[some][(flags[some] & IS_WORK) != 0]
        worked[known : known + len(found)] = found
        known += len(found)
        times = time[some]
        first, last = min(first, int(times.min())), max(last, int(times.max()))
    p50, p99 = percentiles(worked[:known], 50, 99)
    span = last - first
    if span <= 0:
        return Summary(p50, p99, tuple(graded.tolist()), (len(places),))
    counts = np.zeros(BARS, np.intp)
    for some in _pieces(places):
        counts += np.bincount((time[some] - first) // (span // BARS + 1), minlength=BARS)
    return Summary(p50, p99, tuple(graded.tolist()), tuple(counts.tolist()), len(places) * SECOND / span)


def _pieces(places: Places) -> Iterator[Places]:
    """The places in pieces, so that the column values for them need little memory."""
    return (places[at : at + PIECE] for at in range(0, len(places), PIECE))


def percentiles(values: NDArray[Any], *percents: int) -> list[int | None]:
    """For each percentage: the smallest value that this percentage of all values does not exceed. None
    without values. It changes the order of the values."""
    if not len(values):
        return [None] * len(percents)
    ranks = [max(1, -(-percent * len(values) // 100)) - 1 for percent in percents]
    values.partition(ranks)
    return [int(values[rank]) for rank in ranks]


def where_bad(index: Index, places: Places, parts: int) -> tuple[int, ...]:
    """The equal parts of these exchanges, in their order, that have a fault or an error that is not routine;
    ascending."""
    flags, faults = index.column("flags"), index.column("faults")
    found = np.zeros(parts, np.bool_)
    for at in range(0, len(places), PIECE):
        some = places[at : at + PIECE]
        bad = ((flags[some] >> GRAVEST & 3) > GRADES.index(ROUTINE)) | (faults[some] != 0)
        found[(np.flatnonzero(bad) + at) * parts // len(places)] = True
    return tuple(np.flatnonzero(found).tolist())


NONE = -1
"""Means that no time in a span is known."""


class OverTime(NamedTuple):
    """Figures by span."""

    zero_ns: int
    """The start of times: the first packet of the capture."""
    start_ns: int
    """The beginning of the first span."""
    length_ns: int
    """The length of each span."""
    requests: NDArray[np.int64]
    errors: NDArray[np.int64]
    """Exchanges with an error that is not routine."""
    bytes: NDArray[np.int64]
    """The bytes of requests and responses."""
    p50_ns: NDArray[np.int64]
    p99_ns: NDArray[np.int64]
    """The 99th percentile of the brokers' work, where known (:mod:`kdissect.analysis.waits`), by nearest
    rank; or :data:`NONE`."""

    def __len__(self) -> int:
        return len(self.requests)

    def rate(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Counts of spans, per second."""
        return counts.astype(np.float64) * (SECOND / self.length_ns)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """From the beginning of one span to the end of another, in ns; the end is exclusive."""
        return self.start_ns + first * self.length_ns, self.start_ns + (last + 1) * self.length_ns

    def at(self, ns: int) -> int:
        """The span of a time; for a time outside, the nearest."""
        return max(0, min(len(self) - 1, (ns - self.start_ns) // self.length_ns))


def over_time(index: Index, spans: int) -> OverTime | None:
    """The exchanges so far, in ``spans`` spans; None without any."""
    end = len(index)  # it may grow meanwhile
    if not end or spans < 1:
        return None
    times = index.column("time_ns", 0, end)
    first, last = int(times.min()), int(times.max())
    start, length = equal_spans(first, last, spans)
    zero = first if index.first_ns is None else index.first_ns
    return _in_spans(index, slice(0, end), zero, start, length, spans)


def over_same_time(index: Index, places: Places, whole: OverTime) -> OverTime:
    """Some of the exchanges in the spans of all. Exchanges later than the last span are left out."""
    times = index.column("time_ns")[places]
    end = whole.span(0, len(whole) - 1)[1]
    some = places[(times >= whole.start_ns) & (times < end)]
    return _in_spans(index, some, whole.zero_ns, whole.start_ns, whole.length_ns, len(whole))


def _in_spans(index: Index, some: slice | Places, zero: int, start: int, length: int, spans: int) -> OverTime:
    times, flags = index.column("time_ns")[some], index.column("flags")[some]
    at = ((times - start) // length).astype(np.int64)

    def counted(weights: NDArray[Any] | None = None) -> NDArray[np.int64]:
        return np.bincount(at, weights, minlength=spans).astype(np.int64)

    sizes = sum(np.maximum(index.column(name)[some], 0) for name in ("request_size", "response_size"))
    works = (flags & IS_WORK) != 0
    p50, p99 = _percentiles(at[works], index.column("taken_ns")[some][works], spans)
    bad = index.has_errors()[some]
    return OverTime(zero, start, length, counted(), counted(bad), counted(np.asarray(sizes)), p50, p99)


def equal_spans(first: int, last: int, spans: int) -> tuple[int, int]:
    """The beginning and the length of ``spans`` equal spans that contain both times. The length has two
    digits, so that a filter of some spans is readable."""
    wanted = (last - first) // spans + 1
    unit = 10 ** max(0, len(str(wanted)) - 2)
    start, length = first - first % unit, -(-wanted // unit) * unit
    while start + spans * length <= last:
        length += unit
    return start, length


def _percentiles(
    at: NDArray[np.int64], values: NDArray[np.int64], spans: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The median and the 99th percentile of the values of each span."""
    ordered = values[np.lexsort((values, at))]
    counts = np.bincount(at, minlength=spans)
    starts = np.cumsum(counts) - counts
    out = []
    for percent in (50, 99):
        found = np.full(spans, NONE, np.int64)
        has = counts > 0
        ranks = -(-percent * counts[has] // 100) - 1
        found[has] = ordered[starts[has] + ranks]
        out.append(found)
    return out[0], out[1]
