"""The clocks of the two ends of a connection, beside the clock of the capture.

With TCP timestamps (RFC 7323), each segment has the value of its sender's own clock, which nobody sets. If
nothing of a connection was captured for a while, this clock shows how long the pause was. If the capture's
clock was set forward, or the machine slept, the clocks of both ends hardly advanced.
"""

from __future__ import annotations

from typing import NamedTuple

PAUSE_NS = 1_000_000_000
"""If nothing is captured for this time, the pause is also measured by the clocks of the ends."""
MOST_HALTS = 16
"""The largest number of halts kept for a connection."""
_TICK_NS = 1_000_000
"""Nearly all systems count milliseconds."""
_LONG_TICKS_US = (2_000, 3_333, 4_000, 5_000, 8_000, 10_000, 20_000, 100_000, 500_000, 1_000_000)
"""Longer ticks, in microseconds, that systems have used: those of Linux kernels of 100 to 500 Hz, of BSD and
of Windows. RFC 7323 (5.4) allows no tick longer than a second."""
_SLACK_NS = 50_000_000
"""The tolerance between the time in a segment and its capture time."""
_DRIFT = 5_000
"""The tolerance for drift: one clock may be ahead of the other by this fraction of the time."""
LONG_NS = PAUSE_NS * _DRIFT // 2
"""After this time the clock is read again, because one clock may be ahead by up to half of a pause."""
_MOST_TICKS = 0xFFFFFFFF
"""A named constant: compiled, such a large number in an expression would be an object."""

MISCOUNTED, UNDECIDED = -1, -2
"""The results of :func:`own_time_ns` without a time. ``MISCOUNTED``: the clock does not count milliseconds,
or was set. ``UNDECIDED``: it may count longer ticks; the time before the pause was too short to decide."""
_MISCOUNTED, _UNDECIDED = MISCOUNTED, UNDECIDED
"""The same as C numbers when compiled, which other modules cannot import."""


class ClockHalt(NamedTuple):
    """A time that did not pass by the clock of one end."""

    side: int
    from_ns: int
    to_ns: int
    """The end, by the clock of the capture."""
    passed_ns: int
    """The time that passed by the clock of the end."""


def own_time_ns(ticks: int, before_ns: int, pause_ns: int, after_ns: int) -> int:
    """The length of a pause by the clock of an end; :data:`MISCOUNTED` or :data:`UNDECIDED` if it is unknown.

    :param ticks: the advance of that clock since its previous reading.
    :param before_ns: from the previous reading until the pause, by the clock of the capture.
    :param pause_ns: the pause, by the same clock.
    :param after_ns: from the end of the pause until the current reading.
    """
    slack_ns = _slack_ns(before_ns)
    if before_ns < pause_ns - before_ns and _counts_longer_ticks(
        ticks & _MOST_TICKS, before_ns, pause_ns, after_ns, slack_ns
    ):
        return _UNDECIDED
    passed_ns = (ticks & _MOST_TICKS) * _TICK_NS - before_ns - after_ns
    if passed_ns < -slack_ns or passed_ns - slack_ns > pause_ns:
        return _MISCOUNTED
    return max(0, passed_ns)


def _counts_longer_ticks(ticks: int, before_ns: int, pause_ns: int, after_ns: int, slack_ns: int) -> bool:
    """Whether a clock may have gone on all the time, in longer ticks. It would then seem to have stood still
    in the pause."""
    whole_us = before_ns // 1_000 + pause_ns // 1_000 + after_ns // 1_000
    for tick_us in _LONG_TICKS_US:
        if abs(ticks * tick_us - whole_us) <= 2 * tick_us + slack_ns // 1_000 + whole_us // _DRIFT:
            return True
    return False


def _slack_ns(before_ns: int) -> int:
    return _SLACK_NS + before_ns // _DRIFT


def passed_for_both(passed_ns: int, pause_ns: int, before_ns: int) -> bool:
    """Whether a pause took the same time by the clock of an end as by the clock of the capture."""
    return abs(passed_ns - pause_ns) <= _slack_ns(before_ns)


def is_halt(passed_ns: int, pause_ns: int, before_ns: int, unmeasured_ns: int) -> bool:
    """Whether at most half of a pause passed by the clock of an end.

    :param unmeasured_ns: earlier pauses since the clock was read. The missing time may belong to them. It may
        also be the drift of the clocks since then.
    """
    most_ns = passed_ns + unmeasured_ns + before_ns // _DRIFT
    return most_ns <= pause_ns - most_ns


def halted_on_both_sides(halts: list[ClockHalt] | None) -> list[int]:
    """The times that did not pass for either end, in a flat list: from, to, and their length by the clocks of
    the ends."""
    found: list[int] = []
    by_time: dict[tuple[int, int], dict[int, int]] = {}
    for each in halts or ():
        by_time.setdefault((each.from_ns, each.to_ns), {})[each.side] = each.passed_ns
    for (from_ns, to_ns), sides in by_time.items():
        if len(sides) == 2:
            found += [from_ns, to_ns, max(sides.values())]
    return found
