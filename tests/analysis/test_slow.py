"""What is slow, against the latencies themselves."""

from __future__ import annotations

import pickle
from math import ceil
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.slow import ENOUGH, HANDFUL, LONGEST_NS, POLL_ENDS_NS, Slowness, taken_ns
from kdissect.exchange import Exchange
from tests.analysis.folds import events_of, made

BEAT = {"groupId": "g", "generationId": 1, "memberId": "m"}
FETCH: dict[str, Any] = {"replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 1, "isolationLevel": 0}
FETCHED: dict[str, Any] = {"throttleTimeMs": 0, "responses": []}


def beat(ns: int) -> Exchange:
    return made("Heartbeat", 0, BEAT, {"errorCode": 0}, (1, 1 + ns))


def fetch(ms: int) -> Exchange:
    return made("Fetch", 4, {**FETCH, "topics": []}, FETCHED, (1, 1 + ms * MILLISECOND))


def fed(*exchanges: Exchange) -> Slowness:
    found = Slowness()
    for exchange in exchanges:
        found.feed(exchange)
    return found


@given(st.lists(st.integers(0, 10**7), min_size=ENOUGH, max_size=400))
def test_no_more_than_one_in_a_hundred_is_slow_and_all_that_are_took_longer(times: list[int]) -> None:
    found = fed(*map(beat, times))
    slow = [time for time in times if found.is_slow(beat(time))]
    assert len(slow) <= len(times) / 100
    exact = sorted(times)[ceil(0.99 * len(times)) - 1]
    assert all(time > exact for time in slow)
    assert all(time in slow for time in times if time * 127 > exact * 128)


def test_of_an_api_of_its_own_the_slow_ones_are_found() -> None:
    found = fed(*(beat(MILLISECOND + at) for at in range(99)), beat(9 * MILLISECOND))
    assert found.is_slow(beat(9 * MILLISECOND))
    assert not found.is_slow(beat(MILLISECOND))
    assert not found.is_slow(fetch(1_500))  # nothing is known of how long a Fetch takes here


def test_of_a_handful_what_took_longer_than_three_times_the_median_is_slow() -> None:
    found = fed(*(beat(MILLISECOND) for _ in range(HANDFUL - 1)), beat(4 * MILLISECOND))
    assert not found.is_none_slow
    assert found.is_slow(beat(4 * MILLISECOND))
    assert not found.is_slow(beat(3 * MILLISECOND))


def test_of_fewer_and_where_the_median_is_long_what_took_longer_than_a_second_is() -> None:
    for found in (fed(beat(1), beat(10**9)), fed(*(beat(10**9) for _ in range(HANDFUL)))):
        assert found.is_none_slow
        assert found.is_slow(beat(10**9 + 1))
        assert not found.is_slow(beat(10**9))
    assert not Slowness().is_slow(beat(LONGEST_NS))


@given(st.lists(st.integers(-1_000, 10**10), min_size=HANDFUL, max_size=ENOUGH - 1))
def test_the_median_is_that_of_the_times(times: list[int]) -> None:
    median = max(0, sorted(times)[ceil(len(times) / 2) - 1])
    limit = fed(*map(beat, times)).limit_ns(12)
    assert min(LONGEST_NS, 3 * median) <= limit <= min(LONGEST_NS, 3 * (median + median / 128 + 1))


def test_long_polls_that_simply_waited_are_not_slow_where_others_did_not_wait() -> None:
    polls = [*(fetch(3) for _ in range(HANDFUL)), fetch(502), fetch(503)]
    found = fed(*polls)
    assert found.is_none_slow
    assert not any(map(found.is_slow, polls))
    assert found.is_slow(fetch(1_501))


def test_a_long_poll_that_ends_a_moment_after_its_wait_is_not_slow() -> None:
    polls = [*(fetch(3) for _ in range(ENOUGH)), fetch(502)]
    late = fetch(500 + POLL_ENDS_NS // MILLISECOND + 1)
    found = fed(*polls, late)
    assert not found.is_slow(fetch(502))
    assert not found.is_slow(fetch(500 + POLL_ENDS_NS // MILLISECOND))
    assert found.is_slow(late)
    assert fed(*polls).is_none_slow
    assert not fed(*(fetch(502) for _ in range(HANDFUL)), fetch(510)).is_slow(fetch(510))


def test_where_nothing_is_slow_it_is_known_why() -> None:
    found = fed(*(beat(MILLISECOND) for _ in range(9)))
    assert found.is_none_slow
    assert "3 times their median, or 1 s" in found.none_slow_message
    assert not Slowness(200 * MILLISECOND).is_none_slow  # which needs no capture before
    assert "longer than 200 ms (slow_ms)" in Slowness(200 * MILLISECOND).none_slow_message


def test_what_a_request_waits_behind_another_is_not_its_time() -> None:
    """Exchange 355 took half a second, nearly all of it behind a Fetch that waited for records."""
    found = {event.number: event for event in events_of("zk39-ibp28") if isinstance(event, Exchange)}[355]
    assert (found.latency_ns or 0) > 500 * MILLISECOND
    taken = taken_ns(found)
    assert taken is not None
    assert taken < 4 * MILLISECOND
    assert not Slowness(200 * MILLISECOND).is_slow(found)
    found = made("Heartbeat", 0, BEAT, {"errorCode": 0}, (1, 10**10))
    found.behind_ns = None
    assert taken_ns(found) is None


def test_a_time_of_the_users_holds_for_every_api_and_needs_no_capture() -> None:
    found = Slowness(200 * MILLISECOND)
    assert found.is_slow(beat(201 * MILLISECOND))
    assert not found.is_slow(beat(200 * MILLISECOND))


def test_waits_that_were_asked_for_do_not_count() -> None:
    found = Slowness(200 * MILLISECOND)
    assert [taken_ns(fetch(ms)) for ms in (3, 500, 501, 701)] == [0, 0, MILLISECOND, 201 * MILLISECOND]
    assert [found.is_slow(fetch(ms)) for ms in (3, 500, 501, 701)] == [False, False, False, True]
    joins = [e for e in events_of("java43-groups") if isinstance(e, Exchange) and e.api == "JoinGroup"]
    assert max(exchange.latency_ns or 0 for exchange in joins) > 200 * MILLISECOND
    assert not any(found.is_slow(exchange) for exchange in joins)


def test_what_has_no_response_is_not_slow() -> None:
    assert not Slowness(1).is_slow(made("Heartbeat", 0, BEAT, None))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=150), st.integers(0, 150))
def test_parts_merged_and_sent_elsewhere_say_the_same(times: list[int], at: int) -> None:
    first, second = fed(*map(beat, times[:at])), fed(*map(beat, times[at:]))
    first.merge(pickle.loads(pickle.dumps(second)))
    assert first.limit_ns(12) == fed(*map(beat, times)).limit_ns(12)


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=200), st.integers(1, 100))
def test_the_ceiling_of_a_percentile_is_near_it_and_not_below(values: list[int], percent: int) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    exact = sorted(values)[ceil(percent * len(values) / 100) - 1]
    ceiling = histogram.ceiling(percent)
    assert ceiling is not None
    assert exact <= ceiling <= exact + abs(exact) / 128 + 1
    assert Histogram().ceiling(percent) is None
