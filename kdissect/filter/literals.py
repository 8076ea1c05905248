"""Words → values: numbers with units, times, and the whole numbers for which a comparison is true."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from time import localtime
from typing import NamedTuple

from kdissect.durations import DURATIONS
from kdissect.filter.syntax import Word
from kdissect.filter.units import SIZES
from kdissect.present.form import SECOND

LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""Numbers in captures are int64 at most."""

Interval = tuple[int, int]
"""The whole numbers from the first to the second, inclusive."""

_NUMBER = re.compile(
    r"([+-]?)(?:0[xX]([0-9a-fA-F]{1,16})|(\d{1,40}(?:\.\d{1,40})?(?:[eE][+-]?\d{1,3})?))(\D*)",
    re.ASCII,
)
_TIME = r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
_TIME_OF_DAY = re.compile(_TIME, re.ASCII)
_MOMENT = re.compile(rf"(\d{{4}}-\d{{2}}-\d{{2}})(?:[T ]{_TIME})?(Z|[+-]\d{{2}}:\d{{2}})?", re.ASCII)


def number(word: Word, unit: str, name: str) -> Fraction:
    """A number in the ``unit`` of a field: ``ns``, ``ms``, ``bytes``, or none.

    :raises FilterError: the word is no number, or has a unit that the field does not have.
    """
    found = None if word.quoted else _NUMBER.fullmatch(word.text)
    if found is None:
        raise word.error(f"{name} is a number, and {word.text!r} is not")
    sign, digits, decimal, suffix = found.groups()
    value = Fraction(int(digits, 16)) if digits else Fraction(decimal)
    value = -value if sign == "-" else value
    if not suffix:
        return value
    scale = (SIZES if unit == "bytes" else DURATIONS if unit else {}).get(suffix)
    if scale is None:
        raise word.error(_wrong_unit(suffix, unit, name))
    return value * scale / (1_000_000 if unit == "ms" else 1)


def _wrong_unit(suffix: str, unit: str, name: str) -> str:
    if not unit:
        return f"{name} has no unit"
    units = "us ms s m h" if unit != "bytes" else "B kB MB KiB MiB GiB"
    if suffix not in SIZES and suffix not in DURATIONS:
        return f"there is no unit {suffix!r}: a {'size' if unit == 'bytes' else 'time'} has {units}"
    return f"{name} is {'a size' if unit == 'bytes' else 'a time'}: its units are {units}"


class TimeLiteral(NamedTuple):
    """A point in time."""

    value: Fraction
    """The time since the epoch or since midnight, in the unit of the field."""
    of_day: bool
    """Whether it is a time of every day, local, as ``-t a`` prints it."""


def moment(word: Word, unit: str, name: str) -> TimeLiteral:
    """``12:03:01.5``; ``2025-11-21T12:03Z``, local without ``Z`` or offset; or a number since the epoch.

    :raises FilterError: the word has another form.
    """
    per_second = _per_second(unit)
    day = _TIME_OF_DAY.fullmatch(word.text)
    if day:
        return TimeLiteral(_seconds(word, day.groups()) * per_second, True)
    date = _MOMENT.fullmatch(word.text)
    if date is None:
        if word.quoted or _NUMBER.fullmatch(word.text) is None:
            raise word.error(f"{name} is a time, such as 12:03:01 or 2025-11-21T12:03:01Z")
        return TimeLiteral(number(word, unit, name), False)
    text, *time, zone = date.groups()
    try:
        start = datetime.fromisoformat(text)
        start = start.astimezone() if zone is None else start.replace(tzinfo=UTC)
        if zone is None and time[0] is not None:
            # A day on which the clocks change does not have 24 hours: take the offset at that hour.
            start = datetime.fromisoformat(f"{text}T{time[0]}:{time[1]}").astimezone()
    except (ValueError, OverflowError, OSError):
        raise word.error(f"this time does not exist: {word.text}") from None
    seconds = Fraction((start - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1))
    if time[0] is not None:
        within = _seconds(word, tuple(time))
        seconds += within if zone is not None else within % 60
    return TimeLiteral((seconds - _offset(word, zone)) * per_second, False)


def _seconds(word: Word, parts: tuple[str | None, ...]) -> Fraction:
    """Hours, minutes, seconds and digits after the point, as seconds since midnight."""
    hours, minutes, seconds = (int(part or 0) for part in parts[:3])
    if hours > 23 or minutes > 59 or seconds > 59:
        raise word.error(f"this time does not exist: {word.text}")
    return 3_600 * hours + 60 * minutes + seconds + Fraction(f"0.{parts[3] or 0}")


def _offset(word: Word, zone: str | None) -> int:
    """Seconds east of Greenwich."""
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:])
    if hours > 23 or minutes > 59:
        raise word.error(f"this time does not exist: {word.text}")
    return (-1 if zone[0] == "-" else 1) * (3_600 * hours + 60 * minutes)


def _per_second(unit: str) -> int:
    return 1_000 if unit == "ms" else SECOND


# -- times of day -----------------------------------------------------------------------------------

QUARTER = 900
"""The time, in seconds, in which the local offset is assumed not to change: clocks change at quarters of an
hour."""


def day_length(unit: str) -> int:
    """A day in the unit of a field."""
    return 86_400 * _per_second(unit)


def quarter_length(unit: str) -> int:
    """A quarter of an hour in the unit of a field."""
    return QUARTER * _per_second(unit)


def time_of_day(value: int, unit: str) -> int:
    """The local time since midnight of a time since the epoch, both in the unit of a field."""
    day = day_length(unit)
    return (value % day + local_offset(value // quarter_length(unit)) * _per_second(unit)) % day


@lru_cache(maxsize=65_536)
def local_offset(quarter: int) -> int:
    """Seconds by which the local clock is ahead of UTC in a quarter of an hour, counted since the epoch. 0
    for times that the system does not know."""
    try:
        return localtime(quarter * QUARTER).tm_gmtoff
    except (OverflowError, ValueError, OSError):
        return 0


# -- comparisons as intervals -----------------------------------------------------------------------


def interval_of(operator: str, value: Fraction) -> list[Interval]:
    """The whole numbers for which ``number operator value`` is true; ``!=`` and ``!==`` give the same."""
    low, high = ceil(value), floor(value)
    if operator in ("==", "==="):
        return [(low, high)]
    if operator in ("!=", "!=="):
        return merged([(LEAST, low - 1), (high + 1, MOST)])
    if operator == "<":
        return [(LEAST, low - 1)]
    if operator == "<=":
        return [(LEAST, high)]
    return [(high + 1 if operator == ">" else low, MOST)]


def merged(intervals: list[Interval]) -> list[Interval]:
    """The same numbers in ascending intervals that do not touch, within int64."""
    out: list[Interval] = []
    for low, high in sorted((max(low, LEAST), min(high, MOST)) for low, high in intervals):
        if low > high:
            continue
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out
