"""Margins come from how slices of time differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.analysis.slices import MOST_SLICES, SHORTEST_SHIFT, SlicedAlike, SlicedSums, SlicedTimes

WIDTH = 1 << SHORTEST_SHIFT


def counted(totals: list[int], count: int = 10) -> SlicedSums:
    """So much in each slice, one after the other."""
    out = SlicedSums()
    for at, total in enumerate(totals):
        out.add(at * WIDTH, total, count)
    return out


def test_even_slices_give_a_narrow_margin_and_uneven_ones_a_wide_one() -> None:
    even, uneven = counted([5] * 12).mean(), counted([0, 10] * 6).mean()
    assert even.value == uneven.value == 0.5
    assert even.low == even.high == 0.5
    assert uneven.low is not None
    assert uneven.high is not None
    assert uneven.low < 0.2
    assert uneven.high > 0.8


def test_a_pause_widens_the_margin_of_a_rate() -> None:
    steady, paused = SlicedSums(), SlicedSums()
    for at in range(12):
        steady.add(at * WIDTH, 100)
        if not 3 <= at < 9:
            paused.add(at * WIDTH, 200)
    for sums, least in ((steady, 380), (paused, 100)):
        found = sums.rate()
        assert found.value == pytest.approx(1_200 / (11 * WIDTH / 10**9))
        assert found.low is not None
        assert (found.low > least) is (sums is steady)


def test_a_burst_has_no_rate() -> None:
    """Three in 2 ms are not 1,500 a second."""
    burst, second = SlicedSums(), SlicedSums()
    for at in range(3):
        burst.add(at * 1_000_000, 1)
        second.add(at * 500_000_000, 1)
    assert burst.rate() == (None, None, None)
    assert second.rate().value == 3


def test_one_slice_has_no_margin() -> None:
    """However much it holds: all of it met the same moment."""
    one = counted([1_000], 1_000)
    assert one.mean() == (1.0, None, None)
    times = SlicedTimes()
    for _ in range(1_000):
        times.add(0, 5)
    assert times.percentiles(times.all(), [50]) == [(5, None, None)]


def test_a_share_of_none_has_a_margin() -> None:
    none = counted([0] * 10).share()
    assert none.value == none.low == 0.0
    assert none.high is not None
    assert 0 < none.high < 0.15


def test_a_slow_slice_widens_the_margin_of_a_percentile() -> None:
    steady, shaken = SlicedTimes(), SlicedTimes()
    for at in range(10):
        for _ in range(100):
            steady.add(at * WIDTH, 100)
            shaken.add(at * WIDTH, 10_000 if at >= 7 else 100)
    for times, highest in ((steady, 100), (shaken, 10_000)):
        (found,) = times.percentiles(times.all(), [50])
        assert found.value == 100
        assert found.high == pytest.approx(highest, rel=0.01)


EVENTS = st.lists(st.tuples(st.integers(-(10**13), 10**13), st.integers(0, 10**9)), max_size=60)


@given(events=EVENTS, at=st.integers(0, 60))
def test_parts_that_are_merged_are_the_whole(events: list[tuple[int, int]], at: int) -> None:
    whole, parts = (
        (SlicedSums(), SlicedTimes()),
        ((SlicedSums(), SlicedTimes()), (SlicedSums(), SlicedTimes())),
    )
    for place, (ns, value) in enumerate(events):
        for each in (whole, parts[place >= at]):
            each[0].add(ns, value)
            each[1].add(ns, value)
    parts[0][0].merge(parts[1][0])
    parts[0][1].merge(parts[1][1])
    assert parts[0] == whole
    assert len(whole[0].slices) <= MOST_SLICES
    assert whole[0].count == len(events)


ALIKE = st.lists(
    st.tuples(st.integers(-(10**13), 10**13), st.booleans(), st.integers(0, 10**9), st.integers(0, 10**6)),
    max_size=60,
)


@given(events=ALIKE, at=st.integers(0, 60))
def test_what_is_counted_together_is_what_is_counted_one_by_one(
    events: list[tuple[int, bool, int, int]], at: int
) -> None:
    """Also where measures take it in twice, and have others before."""
    asked, errors, broker, network = SlicedSums(), SlicedSums(), SlicedTimes(), SlicedTimes()
    taken = SlicedSums(), SlicedSums(), SlicedTimes(), SlicedTimes()
    for part in (events[:at], events[at:]):
        alike = SlicedAlike()
        for ns, has_errors, broker_ns, network_ns in part:
            alike.add(ns, has_errors, broker_ns, network_ns)
            asked.add(ns, 3, 2)
            errors.add(ns, has_errors)
            broker.add(ns, broker_ns)
            network.add(ns, network_ns)
        taken[0].merge_alike(alike, 3, 2)
        taken[1].merge_errors(alike)
        taken[2].merge_broker(alike)
        taken[3].merge_network(alike)
        assert alike.count == len(part)
    assert taken == (asked, errors, broker, network)
