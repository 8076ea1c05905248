"""What rules judge by: how quickly clients are served, and when a broker answered nobody."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kdissect.analysis.fold import MILLISECOND, SECOND, Statistic
from kdissect.analysis.pace import Pace, is_of_brokers
from kdissect.analysis.stalls import Spikes, Stalls
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from tests.analysis.folds import events_of, made

BEAT = {"groupId": "g", "generationId": 1, "memberId": "m"}
CASES = ("java43-groups", "zk39-ibp28")


def beat(at_ms: int, took_ms: int, connection: int = 0) -> Exchange:
    times = (at_ms * MILLISECOND, (at_ms + took_ms) * MILLISECOND)
    return made("Heartbeat", 0, BEAT, {"errorCode": 0}, times, connection)


def fed(statistic: Statistic, *exchanges: Exchange) -> list[dict[str, Any]]:
    for each in sorted(exchanges, key=lambda each: each.response_start_ns or 0):
        statistic.feed(each)
    return statistic.result()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kind", [Pace, Stalls, Spikes])
def test_parts_make_the_same_as_the_whole(kind: type[Statistic], case: str) -> None:
    events = events_of(case)
    whole = kind()
    for event in events:
        whole.feed(event)
    for cut in (0, 1, len(events) // 3, len(events) - 5, len(events)):
        first, second = kind(), kind()
        for at, event in enumerate(events):
            (first if at < cut else second).feed(event)
        first.merge(second)
        assert first.result() == whole.result()
    names = [each.name for each in kind.columns]
    assert all(list(row) == names or set(row) == set(names) for row in whole.result())


@pytest.mark.parametrize("kind", [Pace, Stalls, Spikes])
def test_limits_hold(kind: type[Statistic]) -> None:
    found = kind(Limits(rows=1))
    for event in events_of("java43-groups"):
        found.feed(event)
    assert len(found.result()) <= 1
    if kind is not Stalls:
        assert found.left_out


def test_requests_of_brokers_are_no_clients() -> None:
    exchange = beat(0, 1)
    assert exchange.request is not None
    for client_id, wanted in (
        ("raft-client-1", True),
        ("broker-2-fetcher-0", True),
        ("3", True),
        ("app-3", False),
    ):
        exchange.request.client_id = client_id
        assert is_of_brokers(exchange) is wanted


def test_two_connections_that_wait_for_a_second_and_are_answered_together_show_a_stall() -> None:
    (row,) = fed(Stalls(), beat(0, 1), beat(500, 2_000, 1), beat(700, 1_810, 2))
    assert (row["stalled_ns"], row["connections"], row["waiting"]) == (2 * SECOND, [1, 2], 2)
    assert row["from_ns"] == 500 * MILLISECOND
    assert row["asked_last_ns"] == 700 * MILLISECOND


@pytest.mark.parametrize("seed", range(100))
def test_parts_with_late_answers_make_the_same_as_the_whole(seed: int) -> None:
    random = Random(seed)
    waits = [beat(at, 12_000, at) for at in range(3)]
    for _ in range(4):
        waits.insert(random.randrange(len(waits) + 1), beat(random.randrange(12_000), 1, 3))
    for each in waits:
        if each.connection == 3:
            each.request = None
    whole = Stalls()
    for each in waits:
        whole.feed(each)
    for cut in range(len(waits) + 1):
        first, second = Stalls(), Stalls()
        for at, each in enumerate(waits):
            (first if at < cut else second).feed(each)
        first.merge(second)
        assert first.result() == whole.result()


def test_an_answer_that_comes_late_after_a_gap_shows_that_the_broker_was_not_silent() -> None:
    whole, first, second = Stalls(), Stalls(), Stalls()
    waited = [beat(0, 1), beat(500, 2_000, 1), beat(700, 1_810, 2)]
    late, soon = beat(1_700, 1, 3), beat(2_400, 1, 3)
    late.request = None  # nobody knows what it answers
    for each in (*waited, soon):
        whole.feed(each)
    assert whole.result()
    whole.feed(late)
    assert not whole.result()
    for each in waited:
        first.feed(each)
    second.feed(soon)
    second.feed(late)
    first.merge(second)
    assert not first.result()


ANSWERS: dict[str, dict[str, Any]] = {
    "Produce": {"responses": []},
    "Metadata": {"brokers": [], "topics": []},
    "Heartbeat": {"errorCode": 0},
}


def asked(api: str, version: int, body: dict[str, Any], connection: int) -> Exchange:
    times = (500 * MILLISECOND, 2_500 * MILLISECOND)
    answer = {**ANSWERS[api], "throttleTimeMs": 0} if api == "Produce" else ANSWERS[api]
    return made(api, version, body, answer, times, connection)


def test_what_other_brokers_are_needed_for_is_told_apart() -> None:
    def alone(*made: tuple[str, int, dict[str, Any]]) -> int:
        (row,) = fed(Stalls(), beat(0, 1), *(asked(*each, at) for at, each in enumerate(made, 1)))
        assert row["waiting"] == len(made)
        return int(row["alone"])

    body: dict[str, Any] = {"transactionalId": None, "acks": 1, "timeoutMs": 0, "topicData": []}
    leader, copies = ("Produce", 3, body), ("Produce", 3, {**body, "acks": -1})
    metadata: tuple[str, int, dict[str, Any]] = ("Metadata", 0, {"topics": []})
    assert alone(copies, copies) == 0
    assert alone(copies, leader) == 1
    assert alone(metadata, ("Heartbeat", 0, BEAT)) == 2


def test_one_connection_alone_shows_none() -> None:
    assert not fed(Stalls(), beat(0, 1), beat(500, 2_000, 1), beat(700, 1_805, 1))


def test_a_broker_that_answers_anybody_does_not_stand_still() -> None:
    assert not fed(Stalls(), beat(0, 1), beat(500, 2_000, 1), beat(700, 1_810, 2), beat(1_500, 1, 3))


def test_answers_that_come_one_by_one_later_show_none() -> None:
    assert not fed(Stalls(), beat(0, 1), beat(500, 2_000, 1), beat(700, 2_900, 2))


def test_long_polls_that_wait_as_they_were_asked_to_show_none() -> None:
    asked = {"replicaId": -1, "maxWaitMs": 2_000, "minBytes": 1, "topics": []}
    answer: dict[str, Any] = {"responses": []}

    def poll(at_ms: int, took_ms: int, connection: int) -> Exchange:
        times = (at_ms * MILLISECOND, (at_ms + took_ms) * MILLISECOND)
        return made("Fetch", 0, asked, answer, times, connection)

    assert not fed(Stalls(), beat(0, 1), poll(100, 2_000, 1), poll(120, 2_000, 2))
    assert fed(Stalls(), beat(0, 1), poll(100, 2_600, 1), poll(120, 2_600, 2))


def test_three_slow_requests_in_a_second_are_a_spike() -> None:
    usual = [beat(100 + at, 1) for at in range(90)]
    slow = [beat(5_000 + 300 * at, 150) for at in range(3)]
    (row,) = fed(Spikes(), *usual, *slow)
    assert (row["slow"], row["p50_ns"], row["worst_ns"]) == (
        3,
        pytest.approx(MILLISECOND, rel=0.01),
        150 * MILLISECOND,
    )
    assert (row["from_ns"], row["to_ns"]) == (5 * SECOND, 6 * SECOND)
    assert not fed(Spikes(), *usual, *slow[:2])
    assert not fed(Spikes(), *[beat(100 + 20 * at, 20) for at in range(90)], *slow)  # not ten times as long


@pytest.mark.parametrize(("code", "spikes"), [(58, 0), (0, 1)])
def test_refused_logins_are_no_spike(code: int, spikes: int) -> None:
    """Brokers delay them on purpose."""

    def login(at_ms: int, took_ms: int, error: int) -> Exchange:
        answer = {"errorCode": error, "errorMessage": None, "authBytes": "", "sessionLifetimeMs": 0}
        times = (at_ms * MILLISECOND, (at_ms + took_ms) * MILLISECOND)
        return made("SaslAuthenticate", 1, {"authBytes": ""}, answer, times)

    usual = [login(100 + at, 1, 0) for at in range(90)]
    slow = [login(5_000 + 300 * at, 150, code) for at in range(3)]
    assert len(fed(Spikes(), *usual, *slow)) == spikes


def test_spikes_that_are_three_seconds_apart_are_one() -> None:
    usual = [beat(100 + at, 1) for at in range(90)]

    def slow(second: int) -> list[Exchange]:
        return [beat(1_000 * second + 200 * at, 150) for at in range(3)]

    assert len(fed(Spikes(), *usual, *slow(5), *slow(8))) == 1
    assert len(fed(Spikes(), *usual, *slow(5), *slow(9))) == 2
