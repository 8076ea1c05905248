"""Spans of time as users write them: ``500ms``, ``4s``, ``1.5 h``; one form on the command line, in the
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
"""Unit: nanoseconds."""
FORM = "a number, and after it us, ms, s, m, h or d"
_DURATION = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?|\.[0-9]{1,18})\s*([a-zµμ]*)")


def duration_ns(text: str, unit: str = "s") -> int:
    """How many nanoseconds a text means.

    :param unit: of a number that has none.
    :raises ValueError: it is no span of time; the text says what form one has.
    """
    found = _DURATION.fullmatch(text.strip())
    scale = DURATIONS.get(unit if found is None else found[2] or unit)
    if found is None or scale is None:
        raise ValueError(f"{text} is not a duration: the form is {FORM}")
    from fractions import Fraction

    return int(Fraction(found[1]) * scale)
