"""Whether the capture's own clock is behind those of the hosts in it."""

from __future__ import annotations

from collections.abc import Iterable

from kdissect.analysis.fold import Row
from kdissect.insight.grouping import together

_AHEAD_MS = 5_000
"""As of which records are dated in the future."""
_AGREE_MS = 1_000
"""How far clocks that somebody sets may be from each other."""


def behind_ms(producers: Iterable[Row]) -> float | None:
    """By how much the records of all producers are dated after they were captured. None unless that is the
    same time for clients on two hosts or more: then it is the capture's clock that is wrong."""
    dated = together((row for row in producers if row["skew_max_ms"] is not None), "client", "client_id")
    ahead = [max(row["skew_max_ms"] for row in rows) for rows in dated.values()]
    if len({client for client, _ in dated}) < 2 or min(ahead) <= _AHEAD_MS:
        return None
    return min(ahead) if max(ahead) - min(ahead) <= _AGREE_MS else None
