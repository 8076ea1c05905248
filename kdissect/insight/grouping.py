"""Rows grouped by columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from kdissect.analysis.fold import Row


def group_rows(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows, grouped by the values of some columns."""
    found: defaultdict[Any, list[Row]] = defaultdict(list)
    values = itemgetter(*names)
    for row in rows:
        found[values(row)].append(row)
    if len(names) == 1:
        return {(value,): some for value, some in found.items()}
    return dict(found)
