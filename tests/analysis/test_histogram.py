"""Percentiles are within their bound of the value at that rank, and the rest is exact."""

from __future__ import annotations

import pickle
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.analysis.histogram import Histogram, add_known, ceiling_of, of_parts

VALUES = st.lists(
    st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300) | st.integers(0, 10**10), min_size=1
)


def of(values: list[int]) -> Histogram:
    found = Histogram()
    for value in values:
        found.add(value)
    return found


@given(VALUES, st.integers(0, 100))
def test_a_percentile_is_near_the_value_at_its_rank(values: list[int], percent: int) -> None:
    rank = max(1, -(-percent * len(values) // 100))
    exact = sorted(values)[rank - 1]
    (found,) = of(values).percentiles(percent)
    assert found is not None
    assert abs(found - exact) * 256 <= abs(exact)


@given(VALUES)
def test_the_rest_is_exact(values: list[int]) -> None:
    found = of(values)
    assert (found.count, found.total, found.least, found.most, found.mean) == (
        len(values),
        sum(values),
        min(values),
        max(values),
        sum(values) // len(values),
    )
    several = found.percentiles(1, 50, 99)
    assert several == [found.percentiles(percent)[0] for percent in (1, 50, 99)]


@given(st.lists(st.integers(1 - 2**63, 2**63 - 1) | st.integers(-300, 300) | st.integers(0, 10**10)))
def test_values_of_63_bits_are_counted_alike_one_by_one(values: list[int]) -> None:
    found = Histogram()
    for value in values:
        found.add_one(value)
    assert found == of(values)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300) | st.integers(0, 10**10)), VALUES)
def test_pickled_it_counts_as_before(values: list[int], later: list[int]) -> None:
    found = pickle.loads(pickle.dumps(of(values)))
    assert found == of(values)
    assert found.percentiles(1, 50, 99) == of(values).percentiles(1, 50, 99)
    for value in later:
        found.add(value)
    assert found == of(values + later)


@given(VALUES, VALUES)
def test_merged_is_the_whole(one: list[int], other: list[int]) -> None:
    found = of(one)
    found.merge(of(other))
    assert found == of(one + other)


@given(VALUES, st.integers(1, 100))
def test_a_ceiling_is_exceeded_by_no_more_than_the_rest(values: list[int], percent: int) -> None:
    found = of(values).ceiling(percent)
    assert found is not None
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert ceiling_of(min(values)) >= min(values)


def test_of_nothing_there_is_nothing() -> None:
    assert Histogram().percentiles(50, 99) == [None, None]
    assert Histogram().mean is None
    filled = of([1])
    filled.merge(Histogram())
    assert filled == of([1])


def test_memory_does_not_grow_with_the_values() -> None:
    assert len(of([7**power for power in range(23)] * 1000).buckets) == 23
    assert len(of(list(range(1 << 20, 1 << 21, 37))).buckets) == 128


def test_only_what_is_known_is_counted() -> None:
    found = [Histogram(), Histogram(), Histogram()]
    add_known(found, (7, None, 0))
    assert found == [of([7]), Histogram(), of([0])]


@given(st.integers(-(2**57) + 1, 2**57 - 1) | st.integers(-300, 300))
def test_a_percentile_of_few_values_is_that_of_many(value: int) -> None:
    """A few are kept as they are, and many in buckets."""
    least, most = -(2**57) + 1, 2**57 - 1
    assert of([least, value, value, most]).percentiles(50) == of([least, *[value] * 20, most]).percentiles(50)


ANY_LENGTH = st.integers(-(1 << 62), 1 << 62) | st.integers(-(1 << 70), 1 << 70) | st.integers(-999, 999)


@given(
    values=st.lists(ANY_LENGTH, min_size=1, max_size=30), ends=st.lists(ANY_LENGTH | st.none(), max_size=5)
)
def test_values_up_to_an_end_are_those_in_its_bucket_and_below(
    values: list[int], ends: list[int | None]
) -> None:
    """Also for values and ends that are no C numbers."""
    found = Histogram()
    for value in values:
        found.add(value)
    buckets = {value: next(iter(_one(value).buckets)) for value in (*values, *ends) if value is not None}
    assert found.up_to(ends) == [
        0 if end is None else sum(buckets[value] <= buckets[end] for value in values) for end in ends
    ]


def _one(value: int) -> Histogram:
    found = Histogram()
    found.add(value)
    return found


@pytest.mark.parametrize(
    "forged",
    [
        b"",
        b"abc",
        pack("<q", 8),
        pack("<q", -1),
        pack("<q", 1 << 40),
        pack("<qq", 0, 5),
        pack("<qq", 0, 5) + b"abc",
        pack("<qqq", 3, 1, 2),
    ],
)
def test_bytes_that_are_no_histogram_are_refused(forged: bytes) -> None:
    with pytest.raises(ValueError, match="not a histogram"):
        of_parts(1, 0, None, None, forged)


def test_pairs_count_as_values_that_come_several_times() -> None:
    pairs = [(5, 1), (7, 3), (-400, 2), (1 << 70, 1)]
    one, each = Histogram(), Histogram()
    one.add_pairs(pairs)
    for value, times in pairs:
        each.add(value, times)
    assert one == each
    assert (one.count, one.least, one.most) == (7, -400, 1 << 70)
