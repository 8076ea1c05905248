"""Rows grouped by columns."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from kdissect.analysis.fold import Row


def group_rows(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows, grouped by the values of some columns."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    if len(names) == 1:
        (name,) = names
        for row in rows:
            found.setdefault((row[name],), []).append(row)
        return found
    values = itemgetter(*names)
    for row in rows:
        found.setdefault(values(row), []).append(row)
    return found
