"""Whether the capture's own clock is behind those of the hosts in it."""

from __future__ import annotations

from collections.abc import Iterable

from kdissect.analysis.fold import Row
from kdissect.insight.grouping import group_rows

AHEAD_MS = 5_000
"""How far ahead records must be dated to count as dated in the future."""
_AGREE_MS = 1_000
"""How far apart clocks may be that were set to the same time."""
_ZONE_MS = 900_000
"""The step between the offsets of time zones."""


def behind_ms(producers: Iterable[Row]) -> float | None:
    """How far the capture's clock is behind: by how much the records of all producers are dated after they
    were captured. None unless that is the same time for clients on two hosts or more.

    Programs may also date their records ahead, each by the same time. They may take local time for UTC, or
    the end of a minute for the time. So offsets of time zones do not count, and some records must not be
    less than half as far ahead as others.
    """
    dated = group_rows((row for row in producers if row["skew_max_ms"] is not None), "client", "client_id")
    ahead = [max(row["skew_max_ms"] for row in rows) for rows in dated.values()]
    if len({client for client, _ in dated}) < 2 or min(ahead) <= AHEAD_MS:
        return None
    if max(ahead) - min(ahead) > _AGREE_MS or _is_of_a_zone(min(ahead)):
        return None
    least = min(row["skew_min_ms"] for rows in dated.values() for row in rows)
    return min(ahead) if 2 * least >= min(ahead) else None


def _is_of_a_zone(ahead_ms: float) -> bool:
    """Whether a difference is the offset of a time zone, or a little less, because records take a while to be
    sent."""
    return ahead_ms >= _ZONE_MS - _AGREE_MS and (ahead_ms + _AGREE_MS) % _ZONE_MS <= 2 * _AGREE_MS
