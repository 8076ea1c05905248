"""How fine a line of lag is: so many points for all of a capture."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kdissect.present.form import SECOND
from kdissect.tui.feed.index import Index

_STEPS = (1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600)
"""Seconds between points."""
USUAL = 10
"""The same while a capture is read, whose end is not known."""
POINTS = 16
"""Of a line, at most."""


def step_of(index: Index) -> int:
    """Seconds between the points of a line for all of a capture."""
    if index.first_ns is None or index.last_ns is None:
        return USUAL
    wanted = (index.last_ns - index.first_ns) / SECOND / POINTS
    return next((step for step in _STEPS if step >= wanted), _STEPS[-1])


def thinned(values: Sequence[int]) -> list[int]:
    """As many values as a line has points: of those that share one, the largest."""
    points = min(POINTS, len(values))
    cuts = [at * len(values) // points for at in range(points + 1)] if points else []
    return [max(0, *values[first:last]) for first, last in pairwise(cuts)]
