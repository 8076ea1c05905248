"""The test of a field's values: a function, and for whole numbers the intervals that pass."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

from kdissect.filter.literals import Interval, time_of_day

Predicate = Callable[[Any], bool]


class Check(NamedTuple):
    """A test of the values of a field."""

    one: Predicate
    """Tests one value."""
    every: bool = False
    """Whether all values must pass (and there must be at least one); else any."""
    intervals: tuple[Interval, ...] | None = None
    """The intervals of whole numbers for which ``one`` is true."""
    day_unit: str = ""
    """The unit of the field, if the intervals are times of day."""
    presence: bool = False
    """Whether ``one`` is true of every value."""


def present(_: Any) -> bool:
    """Always true: there is a value."""
    return True


PRESENT = Check(present, presence=True)


def within(intervals: list[Interval]) -> Predicate:
    """A test whether a number is in one of the intervals, which are ascending."""
    if not intervals:
        return lambda value: False
    if len(intervals) == 1:
        low, high = intervals[0]
        return lambda value: bool(low <= value <= high)
    lows = [low for low, _ in intervals]
    highs = [high for _, high in intervals]

    def test(value: int) -> bool:
        at = bisect_right(lows, value) - 1
        return at >= 0 and value <= highs[at]

    return test


def whole_numbers(intervals: list[Interval], every: bool = False) -> Check:
    """A check of whole numbers."""
    return Check(within(intervals), every, tuple(intervals))


def times_of_day(intervals: list[Interval], unit: str, every: bool = False) -> Check:
    """A check of the time of day of points in time."""
    test = within(intervals)
    return Check(lambda value: test(time_of_day(value, unit)), every, tuple(intervals), unit)


def converted(check: Check, convert: Callable[[Any], Any]) -> Check:
    """The same check after ``convert``; false if ``convert`` returns None."""
    test = check.one

    def one(value: Any) -> bool:
        found = convert(value)
        return found is not None and test(found)

    return Check(one, check.every)


def as_bytes(text: str) -> bytes:
    """Text as it was on the wire; bytes that were not UTF-8 are restored (PEP 383)."""
    return text.encode("utf-8", "surrogateescape")


def contains(needle: str) -> Predicate:
    """A test whether text or bytes contain ``needle``."""
    raw = as_bytes(needle)
    return lambda value: (raw in value) if isinstance(value, bytes) else (needle in value)


def mentions(needle: str) -> Predicate:
    """A test whether text or bytes contain ``needle``, ignoring case."""
    low = needle.lower()

    def test(value: str | bytes) -> bool:
        text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
        return low in text.lower()

    return test


def matches(pattern: str) -> Predicate:
    """A test whether a regular expression occurs in text or bytes, ignoring case.

    :raises ValueError: RE2 rejects the pattern.
    """
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        search = re2.compile(as_bytes(pattern), options).search
    except re2.error as error:
        reason = error.args[0]
        raise ValueError(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason) from None
    return lambda value: search(value if isinstance(value, bytes) else as_bytes(value)) is not None
