"""Points in time → how a number changes: the line through them that outliers do not bend (Theil and Sen)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kdissect.analysis.fold import SECOND
from kdissect.analysis.medians import median

MOST_POINTS = 60
"""The most points that are used; of longer series, evenly spread ones."""


def sampled(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """A number at the ends of seconds, or of longer intervals if there are too many: the last value before
    each.

    :param points: times, ns, ascending, and the number from then on.
    """
    if not points:
        return []
    first, last = points[0][0], points[-1][0]
    step = max(SECOND, -(-(last - first) // MOST_POINTS))
    out: list[tuple[int, int]] = []
    at, value = 0, points[0][1]
    for ns in range(first, last + 1, step):
        while at < len(points) and points[at][0] <= ns:
            value = points[at][1]
            at += 1
        out.append((ns, value))
    return out


WINDOWS = 8
"""The number of equal parts of the time in which growth is judged."""


def rising(points: Sequence[tuple[int, int]]) -> float | None:
    """The share of eight equal parts of the time in which the number grew; None for too few points."""
    if len(points) <= WINDOWS:
        return None
    ends = [points[part * (len(points) - 1) // WINDOWS][1] for part in range(WINDOWS + 1)]
    return sum(later > earlier for earlier, later in pairwise(ends)) / WINDOWS


def slope_per_s(points: Sequence[tuple[int, int]]) -> float | None:
    """The median of the slopes between all points, per second; None for fewer than two."""
    slopes = [
        (there - here) * SECOND / (later - earlier)
        for at, (earlier, here) in enumerate(points)
        for later, there in points[at + 1 :]
        if later > earlier
    ]
    return median(slopes) if slopes else None
