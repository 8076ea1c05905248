"""Rules on brokers that copy from each other."""

from __future__ import annotations

from typing import Any

from kdissect.analysis.cluster import ClusterChanges
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.replication import Replication
from kdissect.exchange import Exchange
from tests.analysis.folds import made
from tests.insight.rules.rows import row, said


def follower(gap_s: float = 0.5, **more: Any) -> tuple[type[Replication], Row]:
    values = {
        "node_id": 2,
        "broker": "10.0.0.1:9092",
        "fetches": 100,
        "gap_max_ns": int(gap_s * SECOND),
        "gap_from_ns": 10 * SECOND,
        "lag_max": 0,
        "exchanges": [4],
        "first_ns": 0,
        "last_ns": 90 * SECOND,
    }
    return Replication, row(Replication, **{**values, **more})


def test_writes_that_wait_for_a_follower_are_told_from_three_on() -> None:
    (found,) = said("replication-slow", follower(held_writes=3, held_ns=2 * SECOND))
    assert (found.subject.broker, found.count) == ("2", 3)
    assert "took up to 2.0 s" in found.message
    assert said("replication-slow", follower(held_writes=2, held_ns=2 * SECOND)) == []


def test_a_follower_lags_by_records_or_by_time() -> None:
    assert said("follower-lags", follower(lag_max=10_000))
    assert said("follower-lags", follower(lag_max=9_999)) == []
    assert said("follower-lags", follower(10))
    assert said("follower-lags", follower(9)) == []
    assert said("follower-lags", follower(2.5, held_writes=1, held_ns=SECOND))
    assert said("follower-lags", follower(2.4, held_writes=1, held_ns=SECOND)) == []


def test_a_follower_that_has_nothing_to_fetch_does_not_lag() -> None:
    moved = ClusterChanges, row(ClusterChanges, ns=12 * SECOND, what="leader-moved", subject="orders-0")
    assert said("follower-lags", follower(30), moved) == []


def test_a_log_that_is_cut_is_told() -> None:
    (found,) = said("log-truncated", follower(truncations=1))
    assert found.count == 1
    assert said("log-truncated", follower()) == []


# -- the table ------------------------------------------------------------------------------------------


def fetch(at_s: float, connection: int = 0, offset: int = 5, high_watermark: int = 5) -> Exchange:
    ns = int(at_s * SECOND)
    asked = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1, "logStartOffset": 0}
    told = {
        "partitionIndex": 0,
        "errorCode": 0,
        "highWatermark": high_watermark,
        "lastStableOffset": -1,
        "logStartOffset": 0,
        "abortedTransactions": None,
        "records": None,
    }
    return made(
        "Fetch",
        5,
        {
            "replicaId": 2,
            "maxWaitMs": 500,
            "minBytes": 1,
            "maxBytes": 1,
            "isolationLevel": 0,
            "topics": [{"topic": "orders", "partitions": [asked]}],
        },
        {"throttleTimeMs": 0, "responses": [{"topic": "orders", "partitions": [told]}]},
        (ns, ns + 1),
        connection,
    )


def rows(*exchanges: Exchange) -> list[Row]:
    found = Replication()
    for each in exchanges:
        found.feed(each)
    return found.result()


def test_a_gap_is_one_of_a_connection() -> None:
    (one,) = rows(fetch(1), fetch(2), fetch(7), fetch(8))
    assert (one["node_id"], one["fetches"], one["gap_max_ns"], one["gap_from_ns"]) == (
        2,
        4,
        5 * SECOND,
        2 * SECOND,
    )
    (other,) = rows(fetch(1), fetch(2), fetch(7, 1), fetch(8, 1))
    assert other["gap_max_ns"] == SECOND


def test_lag_is_what_others_have() -> None:
    (one,) = rows(fetch(1, offset=5, high_watermark=500), fetch(2, offset=400, high_watermark=500))
    assert one["lag_max"] == 495


def test_consumers_are_no_followers() -> None:
    consumer = fetch(1)
    assert consumer.request is not None
    assert rows(consumer)
    assert all(each["node_id"] >= 0 for each in rows(consumer))
