"""How a fetcher moves on in a partition, or does not: what it asked for and what it was told, in order →
trend of the lag, the longest stop at one offset, rewinds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kdissect.analysis.ledgers import NONE
from kdissect.analysis.trend import sampled, slope_per_s
from kdissect.record.records import wrap64

Move = tuple[int, ...]
"""Time; the offset asked for, or :data:`NONE`; the high watermark told, or NONE; records that came."""


class Stall(NamedTuple):
    """Answers with records while one offset was asked for, again and again."""

    offset: int
    answers: int
    first_ns: int
    last_ns: int


class Progress(NamedTuple):
    """What becomes of the moves."""

    lag_first: int | None
    lag_per_s: float | None
    points: int
    stall: Stall | None
    """The longest, of two answers or more."""
    rewinds: int
    rewound: tuple[int, int] | None
    """The last: from where, to where."""


def progress(moves: Iterable[Move]) -> Progress:
    """What the moves of a fetcher in a partition come to, in the order of its requests."""
    at: int | None = None
    stall: Stall | None = None
    answers, first_ns = 0, 0
    rewinds, rewound = 0, None
    lags: list[tuple[int, int]] = []
    for ns, offset, high, records in moves:
        if offset not in (NONE, at):
            if at is not None and offset < at:
                rewinds, rewound = rewinds + 1, (at, offset)
            at, answers = offset, 0
        if high != NONE and at is not None:
            lags.append((ns, wrap64(high - at)))
        if records and at is not None:
            first_ns = first_ns if answers else ns
            answers += 1
            if answers > 1 and (stall is None or answers > stall.answers):
                stall = Stall(at, answers, first_ns, ns)
    points = sampled(sorted(lags))
    return Progress(lags[0][1] if lags else None, slope_per_s(points), len(points), stall, rewinds, rewound)
