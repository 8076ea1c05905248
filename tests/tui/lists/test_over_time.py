"""Exchanges by equal spans of time."""

from __future__ import annotations

from kdissect.tui.feed.rows import FIELDS, GRADES, GRAVEST, HAS_TAKEN, IS_WORK
from kdissect.tui.lists.over_time import NONE, over_time
from tests.tui.feeds import index_with

SECOND = 1_000_000_000
WORK = HAS_TAKEN | IS_WORK


def test_without_exchanges_there_is_nothing() -> None:
    assert over_time(index_with([]), 10) is None
    assert over_time(index_with([{"time_ns": 1}]), 0) is None
    assert FIELDS


def test_each_exchange_counts_once_and_the_first_and_last_are_in() -> None:
    start = 1_700_000_000 * SECOND + 123_456_789
    times = [start + at * 37_000_003 for at in range(1_000)]
    for spans in (1, 7, 60, 240, 5_000):
        over = over_time(index_with([{"time_ns": ns} for ns in times]), spans)
        assert over is not None
        assert len(over) == spans
        assert int(over.requests.sum()) == len(times)
        assert over.start_ns <= times[0]
        assert over.span(spans - 1, spans - 1)[1] > times[-1]
        for at in range(0, spans, max(1, spans // 10)):
            first, end = over.span(at, at)
            assert int(over.requests[at]) == sum(first <= ns < end for ns in times)
            assert over.at(first) == over.at(end - 1) == at


def test_the_ends_of_spans_are_round() -> None:
    over = over_time(index_with([{"time_ns": 1_234_567_891}, {"time_ns": 61_234_567_891}]), 100)
    assert over is not None
    assert (over.start_ns, over.length_ns) == (1_230_000_000, 610_000_000)


def test_percentiles_are_of_what_brokers_worked_and_errors_are_not_routine() -> None:
    fatal, routine = (GRADES.index(each) << GRAVEST for each in ("fatal", "routine"))
    rows = [{"time_ns": at, "taken_ns": 100 - at, "flags": WORK} for at in range(100)]
    rows += [{"time_ns": 50, "taken_ns": 10_000, "flags": HAS_TAKEN}]  # perhaps a long poll
    rows += [{"time_ns": 199, "flags": fatal, "request_size": 40, "response_size": -1}]
    rows += [{"time_ns": 199, "flags": routine}]
    over = over_time(index_with(rows), 2)
    assert over is not None
    assert over.length_ns == 100
    assert over.requests.tolist() == [101, 2]
    assert over.p50_ns.tolist() == [50, NONE]
    assert over.p99_ns.tolist() == [99, NONE]
    assert over.errors.tolist() == [0, 1]
    assert over.bytes.tolist() == [0, 40]
    assert over.rate(over.requests).tolist() == [101 * 1e7, 2e7]
