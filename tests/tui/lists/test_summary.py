"""Figures of the exchanges that are shown."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.tui.feed.rows import GRAVEST, HAS_TAKEN, IS_WORK
from kdissect.tui.lists import summary
from kdissect.tui.lists.summary import BARS, NOTHING, summarise
from tests.tui.feeds import index_with


@given(
    st.lists(st.tuples(st.integers(-50, 10**9), st.integers(0, 10**12), st.booleans()), max_size=60),
    st.integers(1, 70),
)
def test_figures_are_those_of_the_rows(rows: list[tuple[int, int, bool]], piece: int) -> None:
    index = index_with(
        {
            "taken_ns": taken,
            "time_ns": time,
            "error": int(bad),
            "flags": HAS_TAKEN | IS_WORK * (at % 3 > 0) | bad << GRAVEST,
        }
        for at, (taken, time, bad) in enumerate(rows)
    )
    places = np.arange(len(rows), dtype=np.uint32)[::2]
    chosen = rows[::2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary, "PIECE", piece)
        found = summarise(index, places)
    known = sorted(taken for at, (taken, _, _) in enumerate(rows) if at % 3 > 0 and at % 2 == 0)
    assert found.graded[1] == sum(bad for _, _, bad in chosen)
    assert sum(found.graded) == len(chosen)
    assert found.p50_ns == (known[-(-50 * len(known) // 100) - 1] if known else None)
    assert found.p99_ns == (known[-(-99 * len(known) // 100) - 1] if known else None)
    assert sum(found.counts) == len(chosen)
    times = [time for _, time, _ in chosen]
    if times and max(times) > min(times):
        assert len(found.counts) == BARS
        assert found.per_second == pytest.approx(len(times) * 1e9 / (max(times) - min(times)))


def test_nothing_has_no_figures() -> None:
    assert summarise(index_with([]), np.zeros(0, np.uint32)) == NOTHING
