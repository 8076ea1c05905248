"""Spans of time as users write them."""

from __future__ import annotations

import pytest

from kdissect.durations import duration_ns, exact_duration


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("4s", "s", 4_000_000_000),
        ("4", "s", 4_000_000_000),
        ("4", "ms", 4_000_000),
        (" 0.1 s ", "ms", 100_000_000),
        (".5ms", "s", 500_000),
        ("2h", "ms", 7_200_000_000_000),
        ("3us", "s", 3_000),
    ],
)
def test_a_span_is_a_number_with_a_unit_or_without(text: str, unit: str, expected: int) -> None:
    assert duration_ns(text, unit) == expected


@pytest.mark.parametrize("text", ["", "s", "-1s", "1y", "1e3", "nan", "inf", "1 s x", "²", "٣", "9" * 40])
def test_what_is_no_span_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration: the form is"):
        duration_ns(text)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0ns"),
        (999, "999ns"),
        (100_000, "100us"),
        (146_780, "146.78us"),
        (3_162_278, "3.162278ms"),
        (1_000_000_000, "1s"),
        (1_000_000_001, "1.000000001s"),
        (3_162_277_660, "3.16227766s"),
    ],
)
def test_a_span_is_written_so_that_it_is_read_back_exactly(ns: int, text: str) -> None:
    assert exact_duration(ns) == text
    assert duration_ns(text) == ns
