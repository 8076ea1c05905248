"""Rules on producers: what is refused, lost, doubled, out of order, or dated wrongly."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterTopics
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.pace import Pace
from kdissect.analysis.producers import Producers
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import SLEPT
from kdissect.insight.finding import CRITICAL, INFO, LIKELY, NOTICE, WARNING, Finding
from tests.insight.judged import CAPTURES, judged_file
from tests.insight.made import WHOLE, row, said, unjudged

SEVERITIES = {
    "produce-refused": WARNING,
    "message-too-large": WARNING,
    "under-min-isr": CRITICAL,
    "produce-retries-exhausted": CRITICAL,
    "acks-none": NOTICE,
    "acks-leader-only": INFO,
    "duplicate-appended": WARNING,
    "duplicate-absorbed": INFO,
    "sequence-gap": CRITICAL,
    "producer-id-forgotten": WARNING,
    "reordered-by-retry": WARNING,
    "producer-id-churn": NOTICE,
    "time-in-future": WARNING,
}

COUNTS = (
    *("resent", "resent_appended", "absorbed", "unanswered", "gaps", "lost_sequences", "overtaken"),
    *("given_up", "tried_ns", "ahead", "recompressed", "converted"),
)


def producer(**values: Any) -> Row:
    defaults = {
        "client_id": "till",
        "client": "10.0.0.1",
        "topic": "sales",
        "partition": 0,
        "batches": 200,
        "records": 200,
        "bytes": 50_000,
        "acks": ["all"],
        "first_ns": 1 * SECOND,
        "last_ns": 9 * SECOND,
        "exchanges": [4, 9],
        "transactional": False,
    }
    counts = dict.fromkeys(COUNTS, 0)
    return row(Producers, **(defaults | counts | values))


def failed(error: str, **values: Any) -> Row:
    defaults = {
        "error": error,
        "api": "Produce",
        "client": "10.0.0.1",
        "client_id": "till",
        "topic": "sales",
        "partition": 0,
        "count": 3,
        "first_ns": 1 * SECOND,
        "last_ns": 2 * SECOND,
        "first_exchange": 5,
        "last_exchange": 8,
    }
    return row(Errors, **(defaults | values))


def judged(id: str, *rows: Row) -> list[Finding]:
    return said(id, {Producers: list(rows)})


@pytest.mark.parametrize(("id", "severity"), SEVERITIES.items())
def test_severities_are_the_catalogue_s(id: str, severity: str) -> None:
    assert (RULES[id].severity, RULES[id].category) == (severity, "produce")
    page = RULES[id].page
    assert page.what
    assert page.why
    assert page.do


@pytest.mark.parametrize("id", SEVERITIES)
def test_an_ordinary_producer_is_no_finding(id: str) -> None:
    assert not said(id, {Producers: [producer(producer_id=7), producer(partition=1)]})


def test_a_refusal_says_what_the_clock_shows() -> None:
    rows = {
        Errors: [failed("INVALID_TIMESTAMP"), failed("INVALID_TIMESTAMP", partition=1)],
        Producers: [producer(skew_min_ms=-7_200_000, skew_max_ms=-7_199_000)],
    }
    (found,) = said("produce-refused", rows)
    assert (found.subject.client_id, found.subject.topic, found.count) == ("till", "sales", 6)
    assert found.message.endswith("Its records are dated up to 2.0 h behind the packets.")
    assert "message.timestamp.before.max.ms" in found.fix
    assert found.fix.startswith("Set the clock of the producer's host")


@pytest.mark.parametrize(("skew_ms", "is_of_broker"), [(-5_000, True), (5_000, True), (-5_001, False)])
def test_records_that_are_dated_when_they_were_sent_show_that_another_clock_is_wrong(
    skew_ms: int, is_of_broker: bool
) -> None:
    dated = producer(skew_min_ms=min(skew_ms, 0), skew_max_ms=max(skew_ms, 0))
    (found,) = said("produce-refused", {Errors: [failed("INVALID_TIMESTAMP")], Producers: [dated]})
    assert ("the clock of the broker is probably wrong" in found.cause) == is_of_broker
    assert found.fix.startswith("Compare the clocks of the broker") == is_of_broker


@pytest.mark.parametrize(
    "error",
    ["MESSAGE_TOO_LARGE", "TOPIC_AUTHORIZATION_FAILED", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT"],
)
def test_what_has_a_finding_of_its_own_or_goes_by_is_not_refused(error: str) -> None:
    assert not said("produce-refused", {Errors: [failed(error)]})


def test_a_batch_that_is_too_large_is_told_with_its_size() -> None:
    rows = {Errors: [failed("MESSAGE_TOO_LARGE", count=1)], Producers: [producer(batch_bytes_max=100_070)]}
    (found,) = said("message-too-large", rows)
    assert found.message == (
        "The broker refused 1 batch of till for sales: larger than the topic allows (max.message.bytes). "
        "The largest batch of this producer for this topic has 100,070 bytes."
    )
    assert (found.measure, found.unit) == (100_070, "bytes")


def test_too_few_replicas_in_sync_is_told_once_a_topic() -> None:
    rows = [
        failed("NOT_ENOUGH_REPLICAS"),
        failed("NOT_ENOUGH_REPLICAS_AFTER_APPEND", partition=1, last_ns=5 * SECOND),
    ]
    (found,) = said("under-min-isr", {Errors: rows})
    assert (found.subject.topic, found.count, found.cost_ns) == ("sales", 6, 4 * SECOND)


@pytest.mark.parametrize(
    ("copies", "is_single"), [((1,), True), ((1, 1), True), ((1, 3), False), ((3,), False)]
)
def test_a_topic_may_have_fewer_replicas_than_must_be_in_sync(
    copies: tuple[int, ...], is_single: bool
) -> None:
    """kcat #184: all replicas are in sync, and there is one."""
    topics = [row(ClusterTopics, topic="sales", replication=each) for each in copies]
    (found,) = said("under-min-isr", {Errors: [failed("NOT_ENOUGH_REPLICAS")], ClusterTopics: topics})
    assert ("has a single replica" in found.message) == ("made with one replica" in found.cause) == is_single


def test_giving_up_is_after_30_s() -> None:
    assert not judged("produce-retries-exhausted", producer(given_up=1, tried_ns=30 * SECOND - 1))
    (found,) = judged("produce-retries-exhausted", producer(given_up=1, tried_ns=30 * SECOND))
    assert (found.subject.partition, found.measure) == (0, 30)


def test_while_the_capture_paused_nobody_knows_whether_a_producer_tried() -> None:
    tried = producer(given_up=1, first_ns=SECOND, last_ns=400 * SECOND, tried_ns=380 * SECOND)
    long = WHOLE._replace(last_ns=400 * SECOND, silences=((32 * SECOND, 396 * SECOND),))
    assert not said("produce-retries-exhausted", {Producers: [tried]}, context=long)
    assert unjudged("produce-retries-exhausted", {Producers: [tried]}, context=long) == [SLEPT]
    shorter = long._replace(silences=((32 * SECOND, 370 * SECOND),))
    (found,) = said("produce-retries-exhausted", {Producers: [tried]}, context=shorter)
    assert (found.measure, found.cost_ns) == (38, 38 * SECOND)
    assert "again and again for at least 38 s" in found.message


def test_acks_0_counts_from_100_records() -> None:
    assert not judged("acks-none", producer(acks=["0"], records=99))
    (found,) = judged(
        "acks-none", producer(acks=["0"], records=50), producer(acks=["0"], records=50, partition=1)
    )
    assert (found.subject.client_id, found.subject.topic, found.count) == ("till", "sales", 100)


def test_acks_1_counts_where_there_are_replicas() -> None:
    written = [producer(acks=["1"])]
    assert not said("acks-leader-only", {Producers: written})
    alone, two = (row(ClusterTopics, topic="sales", replication=number) for number in (1, 2))
    assert not said("acks-leader-only", {Producers: written, ClusterTopics: [alone]})
    assert said("acks-leader-only", {Producers: written, ClusterTopics: [two]})


def test_records_that_stand_twice() -> None:
    # Of seven batches sent again, three were written twice, or each was seen at both ends of a proxy.
    (found,) = judged("duplicate-appended", producer(resent=7, resent_appended=3))
    assert found.message == (
        "3 records of till stand twice in sales-0. The client sent them again after an answer did not come, "
        "and the broker had written them already."
    )
    (found,) = judged("duplicate-appended", producer(resent=1, resent_appended=1))
    assert found.message == (
        "1 record of till stands twice in sales-0. The client sent it again after an answer did not come, "
        "and the broker had written it already."
    )
    assert not judged("duplicate-appended", producer(resent=2, absorbed=2))
    assert judged("duplicate-absorbed", producer(resent=2, absorbed=2))


def test_a_gap_is_told_where_the_broker_complains() -> None:
    gap = producer(producer_id=7, gaps=1, lost_sequences=4)
    assert not judged("sequence-gap", gap)
    rows = {Producers: [gap], Errors: [failed("OUT_OF_ORDER_SEQUENCE_NUMBER")]}
    (found,) = said("sequence-gap", rows)
    assert "4 records are missing" in found.message
    rows[Producers] = [producer(producer_id=7, gaps=None)]
    assert not said("sequence-gap", rows)


def test_order_is_lost_without_a_producer_id_only() -> None:
    assert judged("reordered-by-retry", producer(overtaken=1))
    assert not judged("reordered-by-retry", producer(overtaken=1, producer_id=7))


def test_a_forgotten_producer() -> None:
    assert said("producer-id-forgotten", {Errors: [failed("UNKNOWN_PRODUCER_ID")]})
    assert not said("producer-id-forgotten", {Errors: [failed("OUT_OF_ORDER_SEQUENCE_NUMBER")]})


def test_a_forgotten_transactional_id() -> None:
    """It is told of the producer, not of the broker that asks the coordinator for it (KIP-890)."""
    own = failed("INVALID_PRODUCER_ID_MAPPING", transactional_id="pay-tx", client_id="pay")
    asked = {**own, "api": "AddPartitionsToTxn", "client_id": "AddPartitionsManager-client-1"}
    (found,) = said("producer-id-forgotten", {Errors: [own, asked]})
    assert (found.severity, found.subject.transactional_id) == (WARNING, "pay-tx")
    assert found.message == (
        "The coordinator does not know the transactional id pay-tx with the producer id of pay. Most often "
        "it has forgotten it."
    )
    assert found.confidence == LIKELY
    assert "transactional.id.expiration.ms" in found.cause
    assert not said("producer-id-forgotten", {Errors: [{**own, "transactional_id": None}]})


def test_producers_are_churned_at_10_a_minute() -> None:
    def made(number: int, every_s: int) -> list[Row]:
        return [producer(producer_id=at, first_ns=at * every_s * SECOND) for at in range(number)]

    assert judged("producer-id-churn", *made(10, 6))
    assert not judged("producer-id-churn", *made(9, 1))
    assert not judged("producer-id-churn", *made(10, 7))


def test_records_in_the_future_count_from_10_batches() -> None:
    assert not judged("time-in-future", producer(ahead=9, skew_max_ms=3_000_000))
    (found,) = judged("time-in-future", producer(ahead=10, skew_max_ms=3_000_000))
    assert "dated up to 50.0 min after they were sent (10 batches)" in found.message
    refused = producer(ahead=10, skew_max_ms=3_000_000, error_codes=["INVALID_TIMESTAMP"])
    assert not judged("time-in-future", refused)


@pytest.mark.parametrize(("set_back_s", "count"), [(None, 1), (14, 1), (15, 0), (30, 0)])
def test_nobody_lives_in_the_future_of_a_clock_that_was_set_back(set_back_s: int | None, count: int) -> None:
    backwards = {"backwards_max_ns": set_back_s * SECOND if set_back_s is not None else None}
    rows = {Producers: [producer(ahead=10, skew_max_ms=30_000)], Pace: [backwards]}
    assert len(said("time-in-future", rows)) == count
    set_back = producer(ahead=10, skew_max_ms=30_000, set_back_ns=(set_back_s or 0) * SECOND)
    assert len(judged("time-in-future", set_back)) == count
    context = WHOLE._replace(set_back=((1, 2),))
    assert not said("time-in-future", {Producers: [producer(ahead=10, skew_max_ms=10**7)]}, context=context)


@pytest.mark.parametrize(
    ("other", "skew_ms", "is_the_captures"),
    [
        ("10.0.0.2", 29_000, True),
        ("10.0.0.2", 28_999, False),
        ("10.0.0.2", 31_000, True),
        ("10.0.0.1", 30_000, False),
        ("10.0.0.2", None, False),
    ],
)
def test_a_capture_whose_clock_is_behind_accuses_no_producer(
    other: str, skew_ms: int | None, is_the_captures: bool
) -> None:
    ahead = producer(ahead=10, skew_max_ms=30_000, skew_min_ms=29_000)
    skew = {"skew_max_ms": skew_ms, "skew_min_ms": skew_ms}
    rows = [ahead, producer(client=other, client_id="desk", ahead=0, **skew)]
    assert (not judged("time-in-future", *rows)) == is_the_captures
    found = said("capture-clock", {Producers: rows, Pace: []})
    assert bool(found) == is_the_captures
    if found:
        assert "of all producers, on 2 hosts" in found[0].message
    barely = [{**row, "skew_max_ms": 5_000} for row in rows]
    assert not said("capture-clock", {Producers: barely, Pace: []})


@pytest.mark.parametrize(
    ("most_ms", "least_ms", "is_the_captures"),
    [
        (30_000, 15_000, True),
        (30_000, 14_999, False),
        (7_199_900, 7_199_000, False),
        (7_230_000, 7_229_000, True),
        (900_000, 899_000, False),
    ],
)
def test_programs_that_date_records_ahead_do_not_accuse_the_capture(
    most_ms: int, least_ms: int, is_the_captures: bool
) -> None:
    skew = {"ahead": 10, "skew_max_ms": most_ms, "skew_min_ms": least_ms}
    rows = [producer(**skew), producer(client="10.0.0.2", client_id="desk", **skew)]
    assert bool(said("capture-clock", {Producers: rows, Pace: []})) == is_the_captures
    assert (not judged("time-in-future", *rows)) == is_the_captures


def test_a_wrong_unit_of_time_is_recognised() -> None:
    at_ns = 1_700_000_000 * SECOND
    (found,) = judged("time-in-future", producer(ahead=10, skew_max_ms=at_ns // 1000, first_ns=at_ns))
    assert "microseconds" in found.message


def test_a_real_capture() -> None:
    found = {(each.id, each.subject.topic) for each in judged_file(CAPTURES / "errors.pcapng").findings}
    assert {id for id, _ in found} & SEVERITIES.keys() == {"message-too-large", "produce-refused"}
