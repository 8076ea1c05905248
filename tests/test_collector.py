from __future__ import annotations

import gc

from kdissect.collector import COLLECTOR_THRESHOLD, rarely_collected


def test_the_last_to_leave_puts_things_back_in_whatever_order_they_leave() -> None:
    before = gc.get_threshold()
    first, second = rarely_collected(), rarely_collected()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold()[0] == COLLECTOR_THRESHOLD
    first.__exit__(None, None, None)
    assert (gc.get_threshold()[0], gc.get_freeze_count() > 0) == (COLLECTOR_THRESHOLD, True)
    second.__exit__(None, None, None)
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_what_runs_more_rarely_stays_so() -> None:
    before = gc.get_threshold()
    try:
        gc.set_threshold(10 * COLLECTOR_THRESHOLD, 20, 20)
        with rarely_collected():
            assert gc.get_threshold()[0] == 10 * COLLECTOR_THRESHOLD
        assert gc.get_threshold() == (10 * COLLECTOR_THRESHOLD, 20, 20)
    finally:
        gc.set_threshold(*before)


def test_what_came_meanwhile_is_not_looked_at_when_it_ends() -> None:
    looks: list[str] = []

    def look(phase: str, _: dict[str, int]) -> None:
        looks.append(phase)

    gc.callbacks.append(look)
    try:
        with rarely_collected():
            kept = [[number] for number in range(COLLECTOR_THRESHOLD - 10_000)]
            looks.clear()
        assert len([[each] for each in kept[:100]]) == 100
    finally:
        gc.callbacks.remove(look)
    assert not looks
