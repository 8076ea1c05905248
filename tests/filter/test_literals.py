"""Numbers, times, and the whole numbers that a comparison stands for."""

from __future__ import annotations

import operator
import time
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.filter.checks import within
from kdissect.filter.errors import FilterError
from kdissect.filter.literals import (
    LEAST,
    MOST,
    Interval,
    TimeLiteral,
    interval_of,
    merged,
    moment,
    number,
    time_of_day,
)
from kdissect.filter.syntax import Word

OPERATORS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le} | {
    ">": operator.gt,
    ">=": operator.ge,
}


def word(text: str, quoted: bool = False) -> Word:
    return Word(text, text, quoted, 0, len(text))


@given(st.sampled_from(sorted(OPERATORS)), st.fractions(-4, 4, max_denominator=3), st.integers(-6, 6))
def test_the_intervals_are_those_of_which_the_comparison_is_true(asked: str, value: Fraction, x: int) -> None:
    assert within(merged(interval_of(asked, value)))(x) == OPERATORS[asked](x, value)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9))), st.integers(-10, 10))
def test_merged_intervals_hold_the_same_numbers(intervals: list[Interval], x: int) -> None:
    out = merged(intervals)
    assert within(out)(x) == any(low <= x <= high for low, high in intervals)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(out))


def test_intervals_end_where_numbers_do() -> None:
    assert merged([(-(10**30), 10**30)]) == [(LEAST, MOST)]
    assert merged([(MOST + 1, 10**30)]) == []


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("5", "", 5),
        ("-5", "", -5),
        ("+5", "", 5),
        ("0x1F", "", 31),
        ("1.5e3", "", 1_500),
        ("61.2ms", "ns", 61_200_000),
        ("1s", "ms", 1_000),
        ("1us", "ms", Fraction(1, 1_000)),
        ("2m", "ns", 120_000_000_000),
        ("1h", "ms", 3_600_000),
        ("1.5KiB", "bytes", 1_536),
        ("1GB", "bytes", 1_000_000_000),
        ("1e3MiB", "bytes", 1_000 << 20),
        ("7ns", "ns", 7),
        ("3µs", "ns", 3_000),
        ("3μs", "ns", 3_000),
        ("4min", "ns", 240_000_000_000),
        ("2d", "ms", 172_800_000),
        ("6B", "bytes", 6),
        ("6kB", "bytes", 6_000),
        ("6KB", "bytes", 6_000),
        ("6MB", "bytes", 6_000_000),
        ("6GiB", "bytes", 6 << 30),
    ],
)
def test_numbers_have_the_unit_of_their_field(text: str, unit: str, value: Fraction) -> None:
    assert number(word(text), unit, "field") == value


@pytest.mark.parametrize(
    "text", ["", "-", "1.", ".5", "1e", "0x", "1 s", "٣", "1_000", "1" * 41, "1sec", "nan"]
)
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(FilterError):
        number(word(text), "ns", "field")


MOMENTS = [
    ("1970-01-01T00:00Z", 0),
    ("1970-01-02T00:00:00.000000001Z", 86_400_000_000_001),
    ("1970-01-01 01:00+01:00", 0),
    ("1969-12-31T23:59:59Z", -1_000_000_000),
    ("1970-01-01", -3_600_000_000_000),
    ("1970-01-01T01:00:30.5", 30_500_000_000),
    ("2024-03-31T03:00", 1_711_846_800_000_000_000),
    ("2024-03-31T01:59:59", 1_711_846_799_000_000_000),
    ("1700000000s", 1_700_000_000_000_000_000),
    ("17", 17),
]


@pytest.mark.parametrize(("text", "ns"), MOMENTS)
def test_times_are_local_unless_they_say_where(text: str, ns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert moment(word(text), "ns", "time") == TimeLiteral(Fraction(ns), False)
        assert moment(word(text), "ms", "time").value == Fraction(ns, 1 if text == "17" else 1_000_000)
        assert moment(word("12:03"), "ms", "time") == TimeLiteral(Fraction(43_380_000), True)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text",
    [
        "24:00",
        "12:60",
        "12:00:60",
        "2023-13-01",
        "2023-02-29",
        "12",
        "noon",
        "2023-01-01T25:00Z",
        "0000-01-01",
    ],
)
def test_times_that_there_are_not_are_refused(text: str) -> None:
    with pytest.raises(FilterError):
        moment(word(text, quoted=True), "ns", "time")


@given(st.integers(LEAST, MOST), st.sampled_from(("ns", "ms")))
def test_any_number_has_a_time_of_day(value: int, unit: str) -> None:
    assert 0 <= time_of_day(value, unit) < 86_400 * (1_000 if unit == "ms" else 1_000_000_000)
