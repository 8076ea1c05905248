"""What many processors are supposed to take."""

from __future__ import annotations

from benchmarks.jobs import Simulated


def test_parts_are_spread_with_the_longest_first() -> None:
    run = Simulated(start=0.25, rest=1.0, parts=[2.0, 3.0, 2.0, 3.0, 2.0])
    assert run.spread(1) == 12.0
    assert run.spread(2) == 7.0
    assert run.spread(9) == 3.0


def test_the_first_process_begins_before_all_parts_and_works_beside_them() -> None:
    assert Simulated(0.25, 1.0, [2.0, 3.0]).all(2) == 3.25
    assert Simulated(0.25, 5.0, [2.0, 3.0]).all(2) == 5.25
    assert Simulated(0.25, 0.5, []).all(2) == 0.75
