"""Figures of the exchanges that are shown, and by equal spans of time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.feed import summary
from kdissect.feed.rows import FIELDS, GRADES, GRAVEST, HAS_TAKEN, IS_WORK
from kdissect.feed.summary import BARS, NONE, NOTHING, over_same_time, over_time, summarise, where_bad
from kdissect.protocol.errors import ROUTINE
from tests.feed.feeds import index_with


@given(
    st.lists(st.tuples(st.integers(-50, 10**9), st.integers(0, 10**12), st.booleans()), max_size=60),
    st.integers(1, 70),
)
def test_figures_are_those_of_the_rows(rows: list[tuple[int, int, bool]], piece: int) -> None:
    index = index_with(
        {
            "taken_ns": taken,
            "time_ns": time,
            "error": int(bad),
            "flags": HAS_TAKEN | IS_WORK * (at % 3 > 0) | bad << GRAVEST,
        }
        for at, (taken, time, bad) in enumerate(rows)
    )
    places = np.arange(len(rows), dtype=np.uint32)[::2]
    chosen = rows[::2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary, "PIECE", piece)
        found = summarise(index, places)
    known = sorted(taken for at, (taken, _, _) in enumerate(rows) if at % 3 > 0 and at % 2 == 0)
    assert found.graded[1] == sum(bad for _, _, bad in chosen)
    assert sum(found.graded) == len(chosen)
    assert found.p50_ns == (known[-(-50 * len(known) // 100) - 1] if known else None)
    assert found.p99_ns == (known[-(-99 * len(known) // 100) - 1] if known else None)
    assert sum(found.counts) == len(chosen)
    times = [time for _, time, _ in chosen]
    if times and max(times) > min(times):
        assert len(found.counts) == BARS
        assert found.per_second == pytest.approx(len(times) * 1e9 / (max(times) - min(times)))


def test_nothing_has_no_figures() -> None:
    assert summarise(index_with([]), np.zeros(0, np.uint32)) == NOTHING


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 20), st.integers(1, 9))
def test_the_parts_of_a_list_with_errors_or_faults(kinds: list[int], parts: int, piece: int) -> None:
    """Of the kinds of rows, one is well, one is routine, two are bad."""
    worst, routine = len(GRADES) - 1, GRADES.index(ROUTINE)
    fields: tuple[dict[str, int], ...] = (
        {},
        {"flags": routine << GRAVEST},
        {"flags": worst << GRAVEST},
        {"faults": 1},
    )
    index = index_with({"time_ns": at, **fields[kind]} for at, kind in enumerate(kinds))
    places = np.arange(len(kinds), dtype=np.uint32)[::-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary, "PIECE", piece)
        found = where_bad(index, places, parts)
    bad = [at for at, kind in enumerate(reversed(kinds)) if kind > 1]
    assert found == tuple(sorted({at * parts // len(kinds) for at in bad}))


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


def test_the_last_is_in_where_a_round_span_would_end_with_it() -> None:
    over = over_time(index_with([{"time_ns": 1}, {"time_ns": 100}]), 1)
    assert over is not None
    assert (over.start_ns, over.length_ns) == (0, 110)
    assert over.requests.tolist() == [2]


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


def test_some_of_the_exchanges_are_counted_in_the_spans_of_all() -> None:
    fatal = GRADES.index("fatal") << GRAVEST
    rows = [
        {"time_ns": at, "taken_ns": at + 1, "flags": WORK | (fatal if at % 4 == 0 else 0)}
        for at in range(100)
    ]
    index = index_with(rows)
    whole = over_time(index, 10)
    assert whole is not None
    even = over_same_time(index, index.order()[::2], whole)
    assert even[:3] == whole[:3]
    assert (2 * even.requests == whole.requests).all()
    assert (even.errors == whole.errors).all()
    assert even.p99_ns.tolist() == [at * 10 + 9 for at in range(10)]
    everything = over_same_time(index, index.order(), whole)
    assert all((ours == theirs).all() for ours, theirs in zip(everything[3:], whole[3:], strict=True))
    nothing = over_same_time(index, index.order()[:0], whole)
    assert int(nothing.requests.sum()) == 0
    assert set(nothing.p50_ns.tolist()) == {NONE}


def test_what_came_after_the_spans_is_left_out() -> None:
    whole = over_time(index_with([{"time_ns": 0}, {"time_ns": 9}]), 2)
    assert whole is not None
    index = index_with([{"time_ns": 0}, {"time_ns": 9}, {"time_ns": 1_000}])
    assert over_same_time(index, index.order(), whole).requests.tolist() == [1, 1]
