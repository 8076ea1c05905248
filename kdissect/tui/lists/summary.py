"""The exchanges that are shown → the figures above them: the brokers' work, errors, their rate over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kdissect.present.form import SECOND
from kdissect.tui.feed.index import Index, Places, grades
from kdissect.tui.feed.rows import GRADES, IS_WORK

BARS = 20
"""Equal spans of time in which exchanges are counted."""
PIECE = 1 << 16
"""Exchanges that are looked at together."""

NEVER = int(np.iinfo(np.int64).max)


class Summary(NamedTuple):
    """Figures of some exchanges."""

    p50_ns: int | None = None
    p99_ns: int | None = None
    """Of the times that brokers worked, where known (:mod:`kdissect.analysis.waits`), by nearest rank; None
    without any."""
    graded: tuple[int, ...] = (0,) * len(GRADES)
    """How many have errors, by the gravest of them."""
    counts: tuple[int, ...] = ()
    """Exchanges in each of the :data:`BARS` spans from the first to the last."""
    per_second: float | None = None
    """None where all are of one moment."""


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
    """The places in pieces, so that what is taken of the columns for them needs little memory."""
    return (places[at : at + PIECE] for at in range(0, len(places), PIECE))


def percentiles(values: NDArray[Any], *percents: int) -> list[int | None]:
    """For each percentage: the smallest value that so many percent of all do not exceed. None without values.
    Changes the order of the values."""
    if not len(values):
        return [None] * len(percents)
    ranks = [max(1, -(-percent * len(values) // 100)) - 1 for percent in percents]
    values.partition(ranks)
    return [int(values[rank]) for rank in ranks]
