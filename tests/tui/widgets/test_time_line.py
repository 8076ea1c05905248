"""The words before the time lines."""

from __future__ import annotations

import numpy as np
import pytest

from kdissect.feed.summary import NONE
from kdissect.tui.widgets.time_line import GUTTER, _levels, _most_of


@pytest.mark.parametrize("name", ["requests", "errors"])
@pytest.mark.parametrize("rate", [0.4, 2.8, 99.0, 1_508.0, 98_765.0, 1_234_567.0, 987_654_321.0])
def test_a_rate_keeps_its_unit(name: str, rate: float) -> None:
    text = _most_of(name, rate)
    assert len(text) < GUTTER - 1  # a blank stands before it and behind it
    assert text.endswith("/s") or text.endswith(f"/s {name}")


@pytest.mark.parametrize("most", [0, -300])
def test_brokers_that_took_no_time_are_drawn_as_low_as_can_be(most: int) -> None:
    found = _levels(np.array([NONE, most, most]), 1, most, 4)
    assert found.tolist() == [0, 1, 1]


def test_times_are_drawn_between_the_least_and_the_most() -> None:
    assert _levels(np.array([10, 100, 1_000, 0]), 10, 1_000, 2).tolist() == [1, 8, 16, 1]
