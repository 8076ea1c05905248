from __future__ import annotations

import pickle
import random
from bisect import bisect_right

import pytest

from kdissect.dissect import BEFORE_ALL
from kdissect.parts.ticks import Ticks

_LAST_NS = (1 << 63) - 1


def told(ticks: list[tuple[int, int]]) -> Ticks:
    found = Ticks()
    for packet, time_ns in ticks:
        found.add(packet, time_ns)
    return found


@pytest.mark.parametrize("most_later", [1, 1_000, 1 << 31, 1 << 33, 1 << 50])
@pytest.mark.parametrize("most_step", [1, 3, 300, 1 << 40])
def test_the_first_packet_that_is_later_than_any_time(most_step: int, most_later: int) -> None:
    chance = random.Random(most_step * most_later)
    ticks, packet, time_ns = [], 5, -(1 << 40)
    for _ in range(3_000):
        packet, time_ns = packet + chance.randint(1, most_step), time_ns + chance.randint(1, most_later)
        ticks.append((packet, time_ns))
    found = told(ticks)
    times = [time_ns for _, time_ns in ticks]
    asked = [chance.randint(times[0] - 5, times[-1] + 5) for _ in range(500)]
    asked += [each + change for each in chance.sample(times, 500) for change in (-1, 0, 1)]
    for each in (found, pickle.loads(pickle.dumps(found))):
        for time_ns in asked:
            at = bisect_right(times, time_ns)
            assert each.later_than(time_ns) == (ticks[at] if at < len(ticks) else None)


def test_times_may_be_absurd() -> None:
    """What lies between two of them may be more than a number of C holds."""
    found = told([(1, BEFORE_ALL + 1), (2, 0), (3, _LAST_NS)])
    assert found.later_than(BEFORE_ALL) == (1, BEFORE_ALL + 1)
    assert found.later_than(BEFORE_ALL + 1) == (2, 0)
    assert found.later_than(_LAST_NS - 1) == (3, _LAST_NS)
    assert found.later_than(_LAST_NS) is None
    assert found.later_than(_LAST_NS + (1 << 40)) is None
    assert Ticks().later_than(0) is None


def test_each_takes_some_bytes_only() -> None:
    found = told([(number, 1_000 * number) for number in range(1, 10_001)])
    assert len(pickle.dumps(found)) < 7 * 10_000
