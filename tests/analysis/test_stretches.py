"""Stretches of time are the same in whatever order they are told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kdissect.analysis.stretches import Stretches

SPANS = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 20)), max_size=20)


def of(spans: list[tuple[int, int]], most: int = 100) -> Stretches:
    found = Stretches(5, most)
    for first, length in spans:
        found.add(first, first + length)
    return found


@given(SPANS, st.randoms())
def test_order_does_not_matter(spans: list[tuple[int, int]], random: object) -> None:
    shuffled = list(spans)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert list(of(spans)) == list(of(shuffled))


@given(SPANS, SPANS)
def test_parts_merged_are_the_whole(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    first = of(one)
    first.merge(of(other))
    assert list(first) == list(of([*one, *other]))


def test_what_is_close_is_one_stretch() -> None:
    found = of([(0, 3), (8, 2), (16, 0)])
    assert list(found) == [(0, 10), (16, 16)]
    assert (found.last_until(5), found.last_until(12), found.last_until(-1)) == (5, 10, None)
    assert (found.first_from(5), found.first_from(12), found.first_from(17)) == (5, 16, None)
    assert found.touches(10, 12)
    assert not found.touches(11, 15)


def test_more_than_it_may_keep_is_counted() -> None:
    found = of([(0, 1), (10, 1), (20, 1)], most=2)
    assert (list(found), found.left_out) == ([(0, 1), (10, 11)], 1)
