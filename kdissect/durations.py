"""Durations as users write them: ``500ms``, ``4s``, ``1.5 h``; one form on the command line, in the
configuration and in display filters."""

from __future__ import annotations

import re

_SECOND = 1_000_000_000
DURATIONS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "min": 60 * _SECOND,
    "h": 3_600 * _SECOND,
    "d": 86_400 * _SECOND,
}
"""The nanoseconds of each unit."""
FORM = "a number, and after it us, ms, s, m, h or d"
_DURATION = r"([0-9]{1,18}(?:\.[0-9]{1,18})?|\.[0-9]{1,18})\s*([a-zµμ]*)"


def duration_ns(text: str, unit: str = "s") -> int:
    """The nanoseconds of a text.

    :param unit: the unit of a number without one.
    :raises ValueError: the text is no duration; the error's text gives the form.
    """
    found = re.fullmatch(_DURATION, text.strip())
    scale = DURATIONS.get(unit if found is None else found[2] or unit)
    if found is None or scale is None:
        raise ValueError(f"{text} is not a duration: the form is {FORM}")
    from fractions import Fraction

    return int(Fraction(found[1]) * scale)


_WRITTEN = {"s": _SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""The units in which a duration is written, the longest first."""


def exact_duration(ns: int) -> str:
    """A duration as :func:`duration_ns` reads it back, to the nanosecond: ``3.162278ms``, ``10ms``.

    :param ns: 0 or more.
    """
    unit, scale = next((each for each in _WRITTEN.items() if ns >= each[1]), ("ns", 1))
    whole, rest = divmod(ns, scale)
    digits = f"{scale + rest}"[1:].rstrip("0")  # with the zeros before them
    return f"{whole}.{digits}{unit}" if digits else f"{whole}{unit}"
