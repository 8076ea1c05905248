"""Rows by what they have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kdissect.analysis.fold import Row


def together(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows by the values of some columns."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found
