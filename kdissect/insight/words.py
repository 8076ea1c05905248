"""Numbers in the words of findings."""

from __future__ import annotations

from collections.abc import Iterable

_UNITS = ((1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"))


def span(ns: float) -> str:
    """A time with two or three digits: ``850 µs``, ``61 ms``, ``1.5 s``, ``312 s``."""
    for scale, unit in _UNITS:
        value = ns / scale
        if abs(value) < 999.5 or unit == "s":
            return f"{value:.1f} {unit}" if abs(value) < 9.95 else f"{value:,.0f} {unit}"
    raise AssertionError


def numbers(exchanges: Iterable[int]) -> str:
    """The display filter of some exchanges; empty for none."""
    found = ", ".join(str(each) for each in exchanges)
    return f"number in {{{found}}}" if found else ""


def quoted(name: str) -> str:
    """A text in a display filter."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
