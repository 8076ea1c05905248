from __future__ import annotations

import pytest

from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.summary import by_topic
from tests.analysis.folds import rows_of


@pytest.mark.parametrize(
    "case", ["java43-basic", "java39-transactions", "java43-share-2", "cluster43-combined"]
)
def test_a_topic_has_the_sums_of_its_partitions(case: str) -> None:
    topics, positions = rows_of("topics", case), rows_of("positions", case)
    found = by_topic(topics, positions)
    assert [row["topic"] for row in found] == sorted({row["topic"] for row in (*topics, *positions)})
    for row in found:
        mine = [each for each in topics if each["topic"] == row["topic"]]
        for name, directions in (
            ("produced", ("produce",)),
            ("fetched", ("fetch", "share")),
            ("replicated", ("replicate", "snapshot")),
        ):
            here = [each for each in mine if each["direction"] in directions]
            assert row[f"{name}_records"] == sum(each["records"] for each in here)
            assert row[f"{name}_bytes"] == sum(each["bytes"] for each in here)
        for name in ("errors", "fatal", "routine"):
            assert row[name] == sum(each[name] for each in mine)
        assert row["codecs"] == sorted({codec for each in mine for codec in each["codecs"]})


def topic(first: int, last: int, **more: object) -> Row:
    row: Row = {"topic": "t", "partition": 0, "direction": "produce", "records": 10, "bytes": 100}
    row |= {
        "codecs": [],
        "batch_bytes_min": None,
        "batch_bytes_max": None,
        "errors": 0,
        "fatal": 0,
        "routine": 0,
    }
    return {**row, "first_ns": first, "last_ns": last, **more}


def test_rates_count_from_the_first_exchange_of_any_partition_to_the_last() -> None:
    (row,) = by_topic([topic(0, SECOND), topic(SECOND, 4 * SECOND, partition=1)], [])
    assert row["partitions"] == 2
    assert row["produced_records_per_s"] == 5
    assert row["fetched_records_per_s"] is None


def position(partition: int, lag: int | None, asked: bool, last: int = 0, replica: int = -1) -> Row:
    row: Row = {"topic": "t", "partition": partition, "lag": lag, "asked": asked, "replica_id": replica}
    return {**row, "first_ns": last, "last_ns": last}


def lags(*positions: Row) -> tuple[int | None, int | None]:
    (row,) = by_topic([], positions)
    return row["lag_min"], row["lag_max"]


def test_the_lag_is_that_of_all_who_still_ask() -> None:
    assert lags(
        position(0, 5, True), position(0, 7, True), position(1, 900, False), position(1, 1, True)
    ) == (1, 7)


def test_where_nobody_asks_any_more_the_last_who_did_counts() -> None:
    assert lags(position(0, 5, False, 1), position(0, 3, False, 9), position(0, 8, False, 4)) == (3, 3)
    assert lags(position(0, 5, False, 9), position(0, 7, True, 1)) == (7, 7)
    assert lags(position(0, 7, True, 1), position(0, 5, False, 9)) == (7, 7)


def test_brokers_that_follow_do_not_count_as_lag() -> None:
    assert lags(position(0, 5, True, replica=2)) == (None, None)
    assert lags(position(0, None, True)) == (None, None)
