"""Medians are those of the standard library."""

from __future__ import annotations

import random
import statistics

import pytest

from kdissect.analysis.medians import median, median_low


def test_they_are_those_of_statistics() -> None:
    lots = random.Random(7)
    for size in range(1, 12):
        values = [lots.randrange(1_000) for _ in range(size)]
        assert median(values) == statistics.median(values)
        assert median_low(values) == statistics.median_low(values)
        assert median(each / 8 for each in values) == statistics.median(each / 8 for each in values)


def test_nothing_has_no_median() -> None:
    with pytest.raises(IndexError):
        median([])
    with pytest.raises(IndexError):
        median_low([])
