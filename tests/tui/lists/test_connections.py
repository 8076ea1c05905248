from __future__ import annotations

from kdissect.tui.pages.connections import SPARKS, Activity
from tests.tui.feeds import index_with


def test_activity_is_told_by_connection_over_the_time_of_the_whole_capture() -> None:
    rows = [{"connection": 2, "time_ns": n} for n in range(SPARKS)]
    rows += [{"connection": 5, "time_ns": 0}, {"connection": 5, "time_ns": 0}]
    index = index_with(rows)
    activity = Activity(index, index.order())
    assert activity.text(2) == "█" * SPARKS
    assert activity.text(5) == "█" + "·" * (SPARKS - 1)
    assert activity.text(3) == activity.text(99) == ""
    only = Activity(index, index.order()[-1:])
    assert only.text(2) == ""
    assert only.text(5) == "█" + "·" * (SPARKS - 1)


def test_times_that_are_absurdly_far_apart_do_no_harm() -> None:
    index = index_with(
        [{"connection": 0, "time_ns": -(1 << 63)}, {"connection": 0, "time_ns": (1 << 63) - 1}]
    )
    assert Activity(index, index.order()).text(0) == "█" + "·" * (SPARKS - 2) + "█"
    assert Activity(index_with([]), index_with([]).order()).text(0) == ""
