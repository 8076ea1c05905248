"""The exchanges of an index over time: so many equal spans, and what each of them has.

An exchange counts for the span in which it began. Nothing here draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kdissect.present.form import SECOND
from kdissect.tui.feed.index import Index
from kdissect.tui.feed.rows import IS_WORK

NONE = -1
"""In a span of which no time is known."""


class OverTime(NamedTuple):
    """Figures by span."""

    zero_ns: int
    """What times count from: the first packet of the capture."""
    start_ns: int
    """Where the first span begins."""
    length_ns: int
    """Of each span."""
    requests: NDArray[np.int64]
    errors: NDArray[np.int64]
    """Exchanges with an error that is not routine."""
    bytes: NDArray[np.int64]
    """Of requests and responses."""
    p50_ns: NDArray[np.int64]
    p99_ns: NDArray[np.int64]
    """What brokers worked, where known (:mod:`kdissect.analysis.waits`), by nearest rank; or :data:`NONE`."""

    def __len__(self) -> int:
        return len(self.requests)

    def rate(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Counts of spans by second."""
        return counts.astype(np.float64) * (SECOND / self.length_ns)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """From the beginning of one span to the end of another, in ns; the end is not in it."""
        return self.start_ns + first * self.length_ns, self.start_ns + (last + 1) * self.length_ns

    def at(self, ns: int) -> int:
        """The span of a time; of one outside, the nearest."""
        return max(0, min(len(self) - 1, (ns - self.start_ns) // self.length_ns))


def over_time(index: Index, spans: int) -> OverTime | None:
    """The exchanges so far in so many spans; None without any."""
    end = len(index)  # which may grow meanwhile
    if not end or spans < 1:
        return None
    times, flags = index.column("time_ns", 0, end), index.column("flags", 0, end)
    first, last = int(times.min()), int(times.max())
    start, length = _round(first, last, spans)
    at = ((times - start) // length).astype(np.int64)

    def counted(weights: NDArray[Any] | None = None) -> NDArray[np.int64]:
        return np.bincount(at, weights, minlength=spans).astype(np.int64)

    sizes = sum(np.maximum(index.column(name, 0, end), 0) for name in ("request_size", "response_size"))
    works = (flags & IS_WORK) != 0
    p50, p99 = _percentiles(at[works], index.column("taken_ns", 0, end)[works], spans)
    bad = index.has_errors()[:end]
    zero = first if index.first_ns is None else index.first_ns
    return OverTime(zero, start, length, counted(), counted(bad), counted(np.asarray(sizes)), p50, p99)


def _round(first: int, last: int, spans: int) -> tuple[int, int]:
    """Where spans begin, and their length: with two digits, so that a filter of some of them can be read."""
    wanted = (last - first) // spans + 1
    unit = 10 ** max(0, len(str(wanted)) - 2)
    start, length = first - first % unit, -(-wanted // unit) * unit
    while start + spans * length <= last:
        length += unit
    return start, length


def _percentiles(
    at: NDArray[np.int64], values: NDArray[np.int64], spans: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of the values of each span: those that half of them, and 99 %, do not exceed."""
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
