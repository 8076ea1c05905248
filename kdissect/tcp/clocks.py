"""The clocks of the two ends of a connection, beside that of the capture.

An end that uses TCP timestamps (RFC 7323) sends along what a clock of its own shows, which nobody sets. If
nothing was captured of a connection for a while, this clock tells how long that was. Where the clock of the
capture was set forward, or the machine slept, the clocks of both ends hardly went on.
"""

from __future__ import annotations

from typing import NamedTuple

PAUSE_NS = 1_000_000_000
"""If nothing is captured for so long, it is looked at how long that was by the clocks of the ends."""
MOST_HALTS = 16
"""That are kept of a connection."""
_TICK_NS = 1_000_000
"""Nearly all systems count milliseconds."""
_SLACK_NS = 50_000_000
"""Between the time that a segment bears and that at which it was captured."""
_DRIFT = 5_000
"""One clock may go ahead of the other by this part of the time."""
LONG_NS = PAUSE_NS * _DRIFT // 2
"""After so long a clock is read again: one may be ahead by as much as half of a pause."""
_MOST_TICKS = 0xFFFFFFFF
"""With a name: compiled, a number so large is an object."""

MISCOUNTED, UNTOLD = -1, -2
"""What :func:`own_time_ns` gives where the clock counts something else than milliseconds, or was set, and
where too little came before a pause to tell."""
_MISCOUNTED, _UNTOLD = MISCOUNTED, UNTOLD
"""The same, compiled numbers of C, which nobody else can import."""


class ClockHalt(NamedTuple):
    """A time that did not pass by the clock of one end."""

    side: int
    from_ns: int
    to_ns: int
    """By the clock of the capture."""
    passed_ns: int
    """By the clock of the end."""


def own_time_ns(ticks: int, before_ns: int, pause_ns: int, after_ns: int) -> int:
    """How long a pause was by the clock of an end; :data:`MISCOUNTED` or :data:`UNTOLD` if it is silent.

    :param ticks: by which that clock went on: since it was read before, for so long before the pause.
    :param before_ns: from when it was read before until the pause, by the clock of the capture.
    :param pause_ns: the pause, by the same clock.
    :param after_ns: from the end of the pause until it was read now.
    """
    if before_ns < pause_ns - before_ns:
        return _UNTOLD  # a clock that counts 4 ms or 10 ms would seem to stand still
    passed_ns = (ticks & _MOST_TICKS) * _TICK_NS - before_ns - after_ns
    slack_ns = _slack_ns(before_ns)
    if passed_ns < -slack_ns or passed_ns - slack_ns > pause_ns:
        return _MISCOUNTED
    return max(0, passed_ns)


def _slack_ns(before_ns: int) -> int:
    return _SLACK_NS + before_ns // _DRIFT


def passed_for_both(passed_ns: int, pause_ns: int, before_ns: int) -> bool:
    """Whether a pause took as long by the clock of an end as by that of the capture."""
    return abs(passed_ns - pause_ns) <= _slack_ns(before_ns)


def is_halt(passed_ns: int, pause_ns: int, before_ns: int, unmeasured_ns: int) -> bool:
    """Whether at most half of a pause passed by the clock of an end.

    :param unmeasured_ns: earlier pauses since the clock was read. The missing time may belong to them. It may
        also be the drift of the clocks since then.
    """
    most_ns = passed_ns + unmeasured_ns + before_ns // _DRIFT
    return most_ns <= pause_ns - most_ns


def halted_on_both_sides(halts: list[ClockHalt] | None) -> list[int]:
    """The times that passed for neither end: from, to, and how long it was for them, one after the other."""
    found: list[int] = []
    by_time: dict[tuple[int, int], dict[int, int]] = {}
    for each in halts or ():
        by_time.setdefault((each.from_ns, each.to_ns), {})[each.side] = each.passed_ns
    for (from_ns, to_ns), sides in by_time.items():
        if len(sides) == 2:
            found += [from_ns, to_ns, max(sides.values())]
    return found
