"""Medians like those of ``statistics``, but without its imports ``decimal`` and ``fractions``, which take a
tenth of a start."""

from __future__ import annotations

from collections.abc import Iterable


def median(values: Iterable[float]) -> float:
    """The middle value; for an even number of values, the mean of the middle two.

    :raises IndexError: there are no values.
    """
    every = sorted(values)
    middle = len(every) // 2
    return every[middle] if len(every) % 2 else (every[middle - 1] + every[middle]) / 2


def median_low(values: Iterable[int]) -> int:
    """The middle value; for an even number of values, the smaller of the middle two.

    :raises IndexError: there are no values.
    """
    every = sorted(values)
    return every[(len(every) - 1) // 2]
