"""Counts in words. Messages of faults and lines for people both say them, so this stands below both."""

from __future__ import annotations


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 packet``, ``1,234 packets``; ``plural(left, "is", "are")`` gives ``1 is``, ``3 are``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
