"""Rules on share groups, Streams and Connect, at their edges."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.rebalances import RebalanceSteps
from kdissect.analysis.share import Share
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import CERTAIN, LIKELY
from kdissect.insight.judge import judge
from tests.insight.made import row, said, unjudged
from tests.insight.rules.test_groups import rebalance, step, told


def share(member: str = "m", **values: Any) -> Row:
    row: Row = {
        "group": "g",
        "topic": "jobs",
        "partition": 0,
        "member_id": member,
        "client_id": "worker",
        "acquired": 100,
        "accepted": 100,
        "released": 0,
        "rejected": 0,
        "renewed": 0,
        "expired": 0,
        "redelivered": 0,
        "max_delivery_count": 1,
        "given_up": 0,
        "lock_ms": 15_000,
        "hold_p50_ns": 1,
        "hold_p99_ns": 1,
        "hold_max_ns": 1,
        "gaps": 0,
        "errors": 0,
        "first_ns": 0,
        "last_ns": 9 * SECOND,
    }
    return row | values


@pytest.mark.parametrize(("again", "count"), [(4, 0), (5, 1)])
def test_the_edge_of_redelivery(again: int, count: int) -> None:
    assert len(told("share-redelivery", share=[share(redelivered=again)])) == count


def test_of_few_records_nothing_is_said() -> None:
    assert not told("share-redelivery", share=[share(acquired=99, redelivered=50)])
    # But of those that were delivered so often that no member gets them again.
    assert told("share-redelivery", share=[share(acquired=25, redelivered=20, given_up=5)])
    assert not told("share-redelivery", share=[share(acquired=5, redelivered=0, given_up=5)])


def test_members_of_a_partition_count_together() -> None:
    (found,) = told("share-redelivery", share=[share("a", redelivered=6), share("b", redelivered=6)])
    assert (found.count, found.subject.partition) == (12, 0)


@pytest.mark.parametrize(("deliveries", "confidence"), [(5, CERTAIN), (3, LIKELY), (2, None)])
def test_records_that_are_given_up(deliveries: int, confidence: str | None) -> None:
    found = told("share-poison", share=[share(given_up=1, max_delivery_count=deliveries)])
    assert [each.confidence for each in found] == ([confidence] if confidence else [])


@pytest.mark.parametrize(("deliveries", "count"), [(5, 1), (3, 0)])
def test_where_bytes_are_missing_a_member_may_have_accepted_what_seems_given_up(
    deliveries: int, count: int
) -> None:
    member = share(given_up=1, max_delivery_count=deliveries)
    own, other = (
        {Share: [member], Connections: [row(Connections, client_id=each, gap_bytes=9)]}
        for each in (member["client_id"], "another")
    )
    assert [each.confidence for each in said("share-poison", own)] == [LIKELY] * count
    assert len(unjudged("share-poison", own)) == 1 - count
    assert said("share-poison", other)


def test_a_lock_that_ran_out() -> None:
    assert not told("share-lock-expired", share=[share()])
    (found,) = told("share-lock-expired", share=[share(expired=3)])
    assert "worker did not acknowledge 3 records within 15.00 s" in found.message


@pytest.mark.parametrize(("rejected", "count"), [(9, 0), (10, 1)])
def test_the_edge_of_rejecting(rejected: int, count: int) -> None:
    assert len(told("share-rejected", share=[share(rejected=rejected)])) == count


@pytest.mark.parametrize(("errors", "count"), [(2, 0), (3, 1)])
def test_the_edge_of_refused_acknowledgements(errors: int, count: int) -> None:
    assert len(told("share-ack-refused", share=[share(errors=errors)])) == count


@pytest.mark.parametrize(("times", "count"), [(2, 0), (3, 1)])
def test_the_edge_of_followups(times: int, count: int) -> None:
    rows = [rebalance(60 * each, trigger="probing") for each in range(1, times + 1)]
    assert len(told("streams-followup-rebalance", rebalances=rows)) == count


def test_tasks_that_were_corrupted() -> None:
    reason = "Active tasks corrupted"
    assert len(told("streams-corrupted", rebalance_steps=[step("joined", 1, detail=reason)])) == 1
    assert not told("streams-corrupted", rebalance_steps=[step("joined", 1)])


@pytest.mark.parametrize(("last_s", "count"), [(2.9, 0), (3, 1)])
def test_a_coordinator_that_complains(last_s: float, count: int) -> None:
    """At the start of an application internal topics are missing for a moment."""
    names = "MISSING_INTERNAL_TOPICS"
    steps = [step("status", 1, detail=names), step("status", last_s, detail=names)]
    assert len(told("streams-status", rebalance_steps=steps)) == count


def test_a_delay_of_connect() -> None:
    rows = [rebalance(9, delay_ns=300 * SECOND)]
    (found,) = told("connect-delayed-rebalance", rebalances=rows)
    assert "up to 300 s" in found.message
    assert not told("connect-delayed-rebalance", rebalances=[rebalance(9, delay_ns=0)])


def fetcher(**values: Any) -> Row:
    row: Row = {
        "client_id": "app-StreamThread-1-restore-consumer",
        "connection": 3,
        "topic": "app-store-changelog",
        "partition": 0,
        "records": 1_000,
        "bytes": 11 << 20,
        "max_lag": 900,
        "begun_at": 0,
        "lag_first": 900,
        "position": 900,
        "first_ns": 0,
        "last_ns": 5 * SECOND,
    }
    return row | values


def test_state_that_is_rebuilt() -> None:
    assert len(told("streams-restoring", positions=[fetcher()])) == 1
    assert not told("streams-restoring", positions=[fetcher(bytes=9 << 20)])
    assert not told("streams-restoring", positions=[fetcher(max_lag=3)])  # a standby follows
    assert not told("streams-restoring", positions=[fetcher(topic="orders")])


@pytest.mark.parametrize(("position", "count"), [(900, 1), (901, 0)])
def test_a_standby_that_began_far_behind_follows_what_others_write(position: int, count: int) -> None:
    """Nobody writes to the changelog of a task while its state is rebuilt."""
    assert len(told("streams-restoring", positions=[fetcher(position=position)])) == count


@pytest.mark.parametrize(("second_s", "count"), [(14, 0), (15, 1)])
def test_the_time_between_two_rebuilds_does_not_count(second_s: int, count: int) -> None:
    once = fetcher(bytes=9, last_ns=15 * SECOND)
    again = fetcher(bytes=9, connection=4, first_ns=300 * SECOND, last_ns=(300 + second_s) * SECOND)
    beside = once | {"partition": 1, "first_ns": SECOND}
    assert len(told("streams-restoring", positions=[once, beside, again])) == count


def test_a_process_that_died_explains_its_corrupted_tasks() -> None:
    steps = [
        step("expired", 20, silent_ns=11 * SECOND),
        step("joined", 60, detail="Active tasks corrupted"),
    ]
    rules = {id: RULES[id] for id in ("session-timeout", "streams-corrupted")}
    facts: dict[Any, list[Row]] = {need: [] for each in rules.values() for need in each.needs}
    facts[RebalanceSteps] = steps
    lost, corrupted = judge(rules, facts, JudgingContext(first_ns=0, last_ns=600 * SECOND)).findings
    assert (lost.id, corrupted.id, corrupted.because) == ("session-timeout", "streams-corrupted", lost.key)
    facts[RebalanceSteps] = [steps[0] | {"client_id": "other", "member_id": "other"}, steps[1]]
    found = judge(rules, facts, JudgingContext(first_ns=0, last_ns=600 * SECOND)).findings
    assert [each.because for each in found] == [None, None]
