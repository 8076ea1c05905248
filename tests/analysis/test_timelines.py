"""Lines of marks are sorted at the end, bounded, and merge in any grouping."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kdissect.analysis.room import Room
from kdissect.analysis.timelines import Mark, Timelines
from kdissect.limits import DEFAULTS

MARKS = st.lists(
    st.tuples(st.sampled_from("ab"), st.tuples(st.integers(0, 9), st.integers(0, 9), st.just("x")))
)


def lines(marks: list[tuple[str, Mark]], **limits: int) -> Timelines[str]:
    found: Timelines[str] = Timelines(Room(DEFAULTS._replace(**limits)))
    for key, mark in marks:
        found.add(key, mark)
    return found


@given(MARKS, MARKS)
def test_parts_merged_are_the_whole(first: list[tuple[str, Mark]], second: list[tuple[str, Mark]]) -> None:
    merged, whole = lines(first), lines(first + second)
    merged.merge(lines(second))
    assert {key: merged.line(key) for key in merged} == {key: whole.line(key) for key in whole}


def test_a_line_goes_by_time_then_by_number() -> None:
    assert lines([("a", (2, 1, "late")), ("a", (1, 9, "b")), ("a", (1, 3, "a"))]).line("a") == [
        (1, 3, "a"),
        (1, 9, "b"),
        (2, 1, "late"),
    ]


def test_what_is_too_much_is_counted() -> None:
    marks: list[tuple[str, Mark]] = [("a", (n, n, "x")) for n in range(5)] + [("b", (0, 0, "x"))]
    few = lines(marks, timeline_key_events=3)
    assert (len(few.line("a")), len(few.line("b")), few.left_out) == (3, 1, 2)
    few = lines(marks, timeline_events=4)
    assert (len(few.line("a")), len(few.line("b")), few.left_out) == (4, 0, 2)
    few = lines(marks, rows=1)
    assert (len(few), few.left_out) == (1, 1)
    few.merge(lines(marks, rows=1))
    assert few.left_out == 2
    assert few.line("nobody") == []
