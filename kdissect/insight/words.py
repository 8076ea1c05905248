"""Words for findings: durations, lists of names, and the display filters that show the evidence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice

from kdissect.analysis.fold import MILLISECOND, SECOND
from kdissect.insight.finding import MOST_EVIDENCE

_MINUTE = 60 * SECOND
_MOST_NAMED = 4


def span(ns: float) -> str:
    """``115 ms``, ``9.42 s``, ``12.5 min``."""
    if ns < MILLISECOND:
        return f"{ns / 1000:.0f} µs"
    if ns < SECOND:
        return f"{ns / MILLISECOND:.0f} ms"
    if ns < 5 * _MINUTE:
        return f"{ns / SECOND:.3g} s"
    return f"{ns / _MINUTE:,.1f} min" if ns < 120 * _MINUTE else f"{ns / _MINUTE / 60:,.1f} h"


def named(names: Iterable[object]) -> str:
    """``a, b and c``. If there are more than four, the text says how many others there are."""
    found = [str(each) for each in dict.fromkeys(names)]
    if len(found) > _MOST_NAMED:
        found = [*found[: _MOST_NAMED - 1], f"{len(found) - _MOST_NAMED + 1} others"]
    return found[0] if len(found) == 1 else ", ".join(found[:-1]) + f" and {found[-1]}" if found else ""


def share(part: float, whole: float) -> str:
    """``37 %``."""
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


def having(**values: object) -> str:
    """The filter for exchanges that have all of these values; None values are skipped: ``topic == "a" and api
    == "Fetch"``."""
    return " and ".join(
        f"{name} == {json.dumps(value)}" for name, value in values.items() if value is not None
    )


def of_numbers(numbers: Iterable[int]) -> str:
    """The filter for exchanges by number."""
    found = sorted(set(numbers))
    return f"number in {{{', '.join(map(str, found))}}}" if found else ""


def of_connections(numbers: Iterable[int]) -> str:
    """The filter for exchanges of connections. It names the first few; without any it is empty."""
    found = [str(number) for number in islice(numbers, MOST_EVIDENCE)]
    return f"connection in {{{', '.join(found)}}}" if found else ""


def showing(numbers: Iterable[int], filter: str) -> str:
    """The filter for exchanges by number, joined with another filter."""
    found = of_numbers(tuple(dict.fromkeys(numbers))[:MOST_EVIDENCE])
    return f"{filter} or {found}" if filter and found else filter or found


def quoted(text: str) -> str:
    """A text in the quoted form of a display filter."""
    return json.dumps(text, ensure_ascii=False)
