"""Transactions: what began, held and ended each, by exchanges made here and by captures of the lab."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.fold import Row
from kdissect.exchange import Exchange
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.analysis.folds import fold, rows_of
from tests.analysis.produced import MS, START_MS, batch, exchange, fetch, produce

ID = "pay"


def init(
    ms: int, epoch: int = 0, error: int = 0, timeout_ms: int = 3_000, connection: int = 0, own: bool = False
) -> Exchange:
    asked = {"transactionalId": ID, "transactionTimeoutMs": timeout_ms}
    asked |= {"producerId": 7 if own else -1, "producerEpoch": epoch - 1 if own else -1}
    told = {"throttleTimeMs": 0, "errorCode": error, "producerId": -1 if error else 7}
    return exchange(
        "InitProducerId",
        4,
        asked,
        told | {"producerEpoch": -1 if error else epoch},
        ms,
        connection=connection,
    )


def add(
    ms: int, epoch: int = 0, error: int = 0, connection: int = 0, partitions: tuple[int, ...] = (0,)
) -> Exchange:
    asked: dict[str, Any] = {
        "v3AndBelowTransactionalId": ID,
        "v3AndBelowProducerId": 7,
        "v3AndBelowProducerEpoch": epoch,
        "v3AndBelowTopics": [{"name": "t", "partitions": list(partitions)}],
    }
    results = [{"partitionIndex": each, "partitionErrorCode": error} for each in partitions]
    told = {"throttleTimeMs": 0, "resultsByTopicV3AndBelow": [{"name": "t", "resultsByPartition": results}]}
    return exchange("AddPartitionsToTxn", 1, asked, told, ms, connection=connection)


def write(
    ms: int,
    *values: str,
    epoch: int = 0,
    sequence: int = 0,
    offset: int = 0,
    error: int = 0,
    version: int = 9,
) -> Exchange:
    data = batch(*values, producer_id=7, producer_epoch=epoch, base_sequence=sequence, transactional=True)
    return produce(ms, data, None if error else offset, error, transactional_id=ID, version=version)


def end(
    ms: int, committed: bool = True, epoch: int = 0, error: int = 0, answered: bool = True, version: int = 1
) -> Exchange:
    asked = {"transactionalId": ID, "producerId": 7, "producerEpoch": epoch, "committed": committed}
    told: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": error}
    if version >= 5:
        told |= {"producerId": 7, "producerEpoch": epoch + 1}
    out = exchange("EndTxn", version, asked, told if answered else None, ms)
    out.missing = None if answered else "not captured"
    return out


def rows(*exchanges: Exchange) -> list[Row]:
    return fold("transactions", exchanges).result()


def test_a_transaction_from_begin_to_end() -> None:
    (row,) = rows(init(0), add(10), write(12, "a", "b"), end(20))
    assert (row["transactional_id"], row["producer_id"], row["producer_epoch"]) == (ID, 7, 0)
    assert (row["outcome"], row["ended_by"], row["version"]) == ("committed", "EndTxn", "TV1")
    assert row["begin_ns"] == (START_MS + 10) * MS
    assert row["end_ns"] == (START_MS + 21) * MS
    assert (row["partitions"], row["records"], row["timeout_ms"]) == (1, 2, 3_000)
    assert row["exchanges"] == [11, 13, 21]


def test_one_that_is_aborted_and_the_next() -> None:
    found = rows(init(0), add(10), write(12, "a"), end(20, committed=False), add(30), end(40))
    assert [row["outcome"] for row in found] == ["aborted", "committed"]


def test_waiting_for_the_one_before_is_its_cost_and_not_its_begin() -> None:
    (row,) = rows(init(0), add(10, error=51), add(30, error=51), add(60), write(62, "a"), end(70))
    assert row["begin_ns"] == (START_MS + 60) * MS
    assert (row["retries"], row["retry_ns"]) == (2, 50 * MS)
    assert row["errors"] == ["CONCURRENT_TRANSACTIONS"]


def test_each_transaction_of_version_2_has_its_epoch() -> None:
    found = rows(
        init(0),
        write(10, "a", version=12),
        end(20, version=5),
        write(30, "b", epoch=1, version=12),
        write(50, "c", epoch=2, version=12),
    )
    assert [(row["producer_epoch"], row["outcome"], row["version"]) for row in found] == [
        (0, "committed", "TV2"),
        (1, "unknown", "TV2"),  # its end was not captured, as the next epoch shows
        (2, "open", "TV2"),
    ]


def test_another_producer_that_takes_the_id_fences() -> None:
    found = rows(
        init(0), add(10), init(50, error=51, connection=1), init(80, epoch=2, connection=1), add(90, error=47)
    )
    (row,) = found
    assert (row["outcome"], row["end_ns"]) == ("fenced", (START_MS + 51) * MS)
    assert (row["taken_by_client_id"], row["errors"]) == (
        "test",
        ["CONCURRENT_TRANSACTIONS", "INVALID_PRODUCER_EPOCH"],
    )


def test_its_own_new_begin_aborts() -> None:
    (row,) = rows(init(0), add(10), init(50, epoch=1, own=True))
    assert row["outcome"] == "aborted"


def test_a_producer_that_is_fenced_while_idle_says_by_whom() -> None:
    (row,) = rows(init(0), add(10), end(20), init(50, epoch=1, connection=1), add(90, error=90))
    assert (row["outcome"], row["taken_by_client_id"], row["errors"]) == (
        "committed",
        "test",
        ["PRODUCER_FENCED"],
    )


def test_a_refusal_after_the_timeout_is_a_timeout() -> None:
    (row,) = rows(init(0), add(10), write(4_000, "a", error=47))
    assert (row["outcome"], row["end_ns"]) == ("timed-out", None)
    (row,) = rows(init(0), add(10), write(2_000, "a", error=47))
    assert (row["outcome"], row["taken_by_client"]) == ("fenced", None)


def test_an_abort_that_only_readers_see_is_a_timeout_where_it_is_late() -> None:
    marker = control(offset=1, committed=False)
    begun = (init(0), add(10), write(12, "a", offset=0))
    (row,) = rows(*begun, fetch(5_000, marker, high=2))
    assert row["outcome"] == "timed-out"
    (row,) = rows(*begun, fetch(1_000, marker, high=2))
    assert row["outcome"] == "aborted"
    (row,) = rows(*begun, fetch(1_000, control(offset=1, committed=True), high=2))
    assert row["outcome"] == "committed"


def control(offset: int, committed: bool) -> bytes:
    key = b"\0\0\0" + (b"\1" if committed else b"\0")
    record = Record(offset=0, timestamp=START_MS, key=key, value=b"\0\0\0\0\0\0")
    more = {"producer_id": 7, "producer_epoch": 0, "control": True, "transactional": True}
    return write_batch([record], base_offset=offset, last_offset=offset, **more)  # type: ignore[arg-type]


def test_readers_that_are_held_back_and_go_on() -> None:
    waiting = [fetch(at, b"", high=9, stable=0) for at in (100, 2_000, 2_600)]
    (row,) = rows(
        init(0),
        add(10),
        write(12, "a", offset=0),
        *waiting,
        end(2_700),
        fetch(2_750, control(1, True), high=9),
    )
    assert (row["held_ns"], row["held_offsets"]) == (2_500 * MS, 9)
    assert (row["held_topic"], row["held_partition"]) == ("t", 0)
    assert row["visible_ns"] == 50 * MS


@pytest.mark.parametrize(
    ("at", "stable", "outcome"),
    [(600_000, 3, "unknown"), (600_000, 0, "open"), (5, 3, "open")],
)
def test_one_that_readers_passed_in_a_hole_of_the_capture_is_not_open(
    at: int, stable: int, outcome: str
) -> None:
    """They come back when all is over, and see nothing of it."""
    begun = init(0), add(10), write(12, "a", offset=0)
    (row,) = rows(*begun, fetch(at, b"", high=stable, stable=stable))
    assert row["outcome"] == outcome
    (held, *_) = rows(*(fetch(ms, b"", high=9, stable=4) for ms in (100, 2_000)), fetch(9_000, b"", high=9))
    assert held["outcome"] == "unknown"


def test_one_that_readers_passed_in_a_topic_that_was_made_anew_is_not_open() -> None:
    """The offsets of the older topic were higher."""
    older = fetch(1, b"", high=100, stable=100)
    begun = init(4), add(10), write(12, "a", offset=0)
    (row,) = rows(older, *begun, fetch(600_000, b"", high=3, stable=3))
    assert row["outcome"] == "unknown"
    (row,) = rows(older, *begun, fetch(600_000, b"", high=0, stable=0))
    assert row["outcome"] == "open"


def test_who_takes_the_id_of_one_that_timed_out_is_told() -> None:
    begun = init(0), add(10), write(12, "a", offset=0)
    (row,) = rows(*begun, init(20_000, epoch=1, connection=1))
    assert (row["outcome"], row["taken_by_client_id"]) == ("timed-out", "test")
    (own,) = rows(*begun, init(20_000, epoch=1, own=True))
    assert (own["outcome"], own["taken_by_client_id"]) == ("timed-out", None)
    (refused,) = rows(*begun, init(20_000, error=51, connection=1))
    assert (refused["outcome"], refused["taken_by_client_id"]) == ("timed-out", None)


def test_readers_held_back_by_nobody_that_was_captured() -> None:
    (row,) = rows(*(fetch(at, b"", high=9, stable=4) for at in (100, 2_000)))
    assert (row["transactional_id"], row["outcome"], row["held_ns"]) == (None, "open", 1_900 * MS)


def test_without_its_begin_nothing_is_counted() -> None:
    (row,) = rows(write(12, "a"), end(20))
    assert (row["begin_ns"], row["partitions"], row["records"], row["outcome"]) == (
        None,
        None,
        None,
        "committed",
    )


def test_an_end_without_an_answer_counts_where_the_producer_goes_on() -> None:
    found = rows(init(0), add(10), end(20, answered=False), add(40), end(50, answered=False))
    assert [row["outcome"] for row in found] == ["committed", "unknown"]


@pytest.mark.parametrize("missing", ["not captured", "connection closed"])
@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        (add(40, partitions=(0,)), "committed"),
        (add(40, partitions=(0, 1)), "committed"),
        (add(40, partitions=(1,)), "unknown"),
        (write(40, "b", sequence=1, offset=1), "unknown"),
    ],
)
def test_an_open_transaction_of_version_1_may_go_on_after_an_end_without_an_answer(
    more: Exchange, outcome: str, missing: str
) -> None:
    ended = end(20, answered=False)
    ended.missing = missing
    first, second = rows(init(0), add(10), write(12, "a"), ended, more, end(50, committed=False))
    assert (first["outcome"], first["end_ns"]) == (outcome, None)
    is_other = outcome == "committed"
    assert second["outcome"] == "aborted"
    assert (second["begin_ns"] is not None, second["partitions"] is not None) == (is_other, is_other)


@pytest.mark.parametrize("version", [3, 4])
def test_a_commit_that_may_be_refused_may_have_become_an_abort(version: int) -> None:
    def outcome(committed: bool) -> str:
        ended = end(20, committed, answered=False, version=version)
        return str(rows(init(0), add(10), ended, add(40))[0]["outcome"])

    assert (outcome(True), outcome(False)) == ("committed" if version == 3 else "unknown", "aborted")


@pytest.mark.parametrize(("missing", "begin"), [("connection closed", False), ("capture ended", True)])
def test_without_an_answer_nothing_began(missing: str, begin: bool) -> None:
    asked = add(10)
    asked.response, asked.missing = None, missing
    (row,) = rows(init(0), asked)
    assert (row["begin_ns"] is not None, row["outcome"]) == (begin, "open" if begin else "unknown")


@pytest.mark.parametrize("error", [0, 90])
def test_an_end_without_an_answer_says_what_was_asked(error: int) -> None:
    (row,) = rows(init(0), add(10), end(20, committed=False, answered=False), add(40, error=error))[:1]
    assert (row["outcome"], row["asked"]) == ("unknown" if error else "aborted", "abort")
    assert row["end_ns"] is None


def test_only_the_next_epoch_shows_that_an_end_of_version_2_was_accepted() -> None:
    def outcome(epoch: int, committed: bool = False) -> str:
        began = write(10, "a", version=12)
        ended = end(20, committed, answered=False, version=5)
        return str(rows(init(0), began, ended, write(30, "b", epoch=epoch, version=12))[0]["outcome"])

    assert [outcome(epoch) for epoch in range(3)] == ["unknown", "aborted", "unknown"]
    assert outcome(1, committed=True) == "unknown"  # a commit may have been refused, and then aborted


def test_a_producer_that_begins_anew_after_an_end_without_an_answer_may_have_aborted() -> None:
    lost = init(30, epoch=1, own=True)
    lost.response, lost.missing = None, "not captured"
    found = rows(init(0), add(10), end(20, answered=False), lost, add(40, epoch=1))
    assert [row["outcome"] for row in found] == ["unknown", "open"]


def test_with_requests_only_nothing_is_known_to_have_happened() -> None:
    found = [init(0), add(10), write(12, "a"), end(20), add(30), write(32, "b"), end(40, committed=False)]
    for each in found:
        each.response, each.missing = None, "not captured"
    told = rows(*found)
    assert [(row["outcome"], row["asked"]) for row in told] == [("unknown", "commit"), ("unknown", "abort")]
    for name in ("begin_ns", "end_ns", "ended_by", "partitions", "records"):
        assert [row[name] for row in told] == [None, None], name


def test_a_partition_that_is_added_anew_is_of_the_next_transaction() -> None:
    found = rows(init(0), add(10), write(12, "a"), add(40), end(50))
    assert [row["outcome"] for row in found] == ["unknown", "committed"]


def test_what_is_refused_from_the_start_is_no_transaction() -> None:
    assert rows(add(10, error=49), add(20, error=49)) == []


def test_what_the_coordinator_tells() -> None:
    state = {
        "errorCode": 0,
        "transactionalId": ID,
        "transactionState": "Ongoing",
        "transactionTimeoutMs": 900,
        "transactionStartTimeMs": START_MS - 5_000,
        "producerId": 7,
        "producerEpoch": 3,
        "topics": [{"topic": "t", "partitions": [0, 1]}],
    }
    told = exchange(
        "DescribeTransactions",
        0,
        {"transactionalIds": [ID]},
        {"throttleTimeMs": 0, "transactionStates": [state]},
        5,
    )
    (row,) = rows(told)
    assert (row["outcome"], row["state"], row["begin_ns"]) == ("open", "Ongoing", (START_MS - 5_000) * MS)
    assert (row["partitions"], row["records"], row["timeout_ms"]) == (2, None, 900)


@pytest.mark.parametrize("count", [0, 3])
def test_only_what_counts_is_a_row(count: int) -> None:
    """With a filter: all is taken in for the state, and rows have an exchange that counts."""
    all_of = [init(0), add(10), end(20), add(30), end(40)]
    whole = fold("transactions", [])
    for each in all_of[:count]:
        whole.feed(each)
    for each in all_of[count:]:
        whole.see(each)
    assert len(whole.result()) == count // 3


def test_the_lab_s_producers() -> None:
    outcomes = [row["outcome"] for row in rows_of("transactions", "java39-transactions")]
    assert outcomes.count("committed") == 5
    assert outcomes.count("aborted") == 3
    assert outcomes[-2:] == ["timed-out", "fenced"]
    told = rows_of("transactions", "kafkajs-on-39")
    assert [(row["outcome"], row["records"], row["offsets"]) for row in told] == [
        ("committed", 8, 1),
        ("aborted", 8, 1),
    ]
