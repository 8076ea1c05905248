"""Medians, as those of ``statistics``, which brings ``decimal`` and ``fractions``: a tenth of a start."""

from __future__ import annotations

from collections.abc import Iterable


def median(values: Iterable[float]) -> float:
    """The middle one of some values; of an even number of them the mean of the middle two.

    :raises IndexError: it is given no values.
    """
    every = sorted(values)
    middle = len(every) // 2
    return every[middle] if len(every) % 2 else (every[middle - 1] + every[middle]) / 2


def median_low(values: Iterable[int]) -> int:
    """The same; of an even number of values the smaller one of the middle two.

    :raises IndexError: it is given no values.
    """
    every = sorted(values)
    return every[(len(every) - 1) // 2]
