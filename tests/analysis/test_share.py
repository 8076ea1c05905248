"""Share groups: what became of records that members acquired."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdissect.analysis.fold import Row
from kdissect.capture.files import read_packets
from kdissect.dissect import Event
from tests.analysis.connected import over
from tests.analysis.folds import fold, made, rows_of, rows_of_parts
from tests.dissecting import dissect

INCIDENT = Path(__file__).parents[2] / "captures" / "incidents" / "share-delivery-limit.pcapng.gz"
TOPIC = "lVhqmGaYRoKUVMnTbJRSXA"
SECOND = 1_000_000_000


def test_records_come_again_until_they_are_given_up() -> None:
    rows = fold("share", dissect(read_packets([INCIDENT]))).result()
    assert {(row["group"], row["topic"], row["partition"]) for row in rows} == {("job-workers", "jobs", 0)}
    total = {
        name: sum(row[name] for row in rows) for name in ("acquired", "accepted", "released", "given_up")
    }
    assert total == {"acquired": 140, "accepted": 90, "released": 50, "given_up": 10}
    assert {row["max_delivery_count"] for row in rows} == {5}
    assert {(row["lock_ms"], row["expired"]) for row in rows} == {(15_000, 0)}


def test_records_are_accepted_released_and_rejected() -> None:
    (row,) = [row for row in rows_of("share", "java43-share-2") if row["partition"] == 2]
    names = ("acquired", "accepted", "released", "rejected", "redelivered", "max_delivery_count", "errors")
    assert [row[name] for name in names] == [66, 53, 7, 6, 7, 3, 0]


def fetch(
    at: int, member: str, got: tuple[int, int, int] | None, said: list[Any] | None = None, error: int = 0
) -> Event:
    """A ShareFetch: acknowledges ``said`` (first, last, types), is given ``got`` (first, last, count)."""
    batches = [
        dict(zip(("firstOffset", "lastOffset", "acknowledgeTypes"), each, strict=True)) for each in said or ()
    ]
    request: dict[str, Any] = {
        "groupId": "g",
        "memberId": member,
        "shareSessionEpoch": 1,
        "maxWaitMs": 500,
        "minBytes": 1,
        "maxBytes": 1,
        "maxRecords": 1,
        "batchSize": 1,
        "topics": [
            {"topicId": TOPIC, "partitions": [{"partitionIndex": 0, "acknowledgementBatches": batches}]}
        ],
        "forgottenTopicsData": [],
    }
    acquired = [dict(zip(("firstOffset", "lastOffset", "deliveryCount"), got, strict=True))] if got else []
    partition = {
        "partitionIndex": 0,
        "errorCode": 0,
        "errorMessage": None,
        "acknowledgeErrorCode": error,
        "acknowledgeErrorMessage": None,
        "currentLeader": {"leaderId": 1, "leaderEpoch": 0},
        "records": None,
        "acquiredRecords": acquired,
    }
    answer = {
        "throttleTimeMs": 0,
        "errorCode": 0,
        "errorMessage": None,
        "acquisitionLockTimeoutMs": 1_000,
        "responses": [{"topicId": TOPIC, "partitions": [partition]}],
        "nodeEndpoints": [],
    }
    return made("ShareFetch", 1, request, answer, (at, at + 1))


def by_member(events: list[Event]) -> dict[str, Row]:
    return {row["member_id"]: row for row in fold("share", events).result()}


def test_a_lock_that_ran_out_is_told_of_its_member() -> None:
    events = [fetch(1, "a", (0, 9, 1)), fetch(2 * SECOND, "b", (0, 4, 2))]
    rows = by_member(events)
    assert (rows["a"]["expired"], rows["b"]["redelivered"], rows["b"]["expired"]) == (5, 5, 0)


def test_what_came_again_before_the_lock_ran_out_did_not_expire() -> None:
    events = [fetch(1, "a", (0, 9, 1)), fetch(SECOND // 2, "b", (0, 4, 2))]
    assert by_member(events)["a"]["expired"] == 0


@pytest.mark.parametrize(
    ("connection", "end", "ended_ns", "expired"),
    [
        (0, "fin", SECOND // 2, 0),
        (0, "rst", SECOND // 2, 0),
        (0, "open", SECOND // 2, 5),
        (0, "fin", SECOND + 1, 0),
        (0, "fin", SECOND + 2, 5),  # the lock is over
        (0, "fin", 3 * SECOND, 5),  # after others got them
        (1, "fin", SECOND // 2, 5),  # another one's
    ],
)
def test_the_end_of_its_connection_frees_what_a_member_holds(
    connection: int, end: str, ended_ns: int, expired: int
) -> None:
    closed = over(connection)._replace(end=end, end_ns=ended_ns)
    events = [fetch(1, "a", (0, 9, 1)), closed, fetch(2 * SECOND, "b", (0, 4, 2))]
    rows = by_member(events)
    assert (rows["a"]["expired"], rows["b"]["redelivered"]) == (expired, 5)
    for parts in rows_of_parts("share", events):
        assert {row["member_id"]: row for row in parts} == rows


def test_what_is_refused_after_the_lock_has_expired() -> None:
    invalid = 121  # INVALID_RECORD_STATE
    late = fetch(SECOND + 2, "a", None, [(0, 4, [1])], invalid)
    row = by_member([fetch(1, "a", (0, 9, 1)), late])["a"]
    assert (row["expired"], row["accepted"], row["errors"]) == (5, 0, 1)
    again = fetch(2 * SECOND, "b", (0, 9, 2))
    assert by_member([fetch(1, "a", (0, 9, 1)), late, again])["a"]["expired"] == 10  # each once
    soon = fetch(SECOND // 2, "a", None, [(0, 4, [1])], invalid)
    assert by_member([fetch(1, "a", (0, 9, 1)), soon])["a"]["expired"] == 0


def test_types_of_single_offsets() -> None:
    events = [fetch(1, "a", (0, 3, 1)), fetch(101, "a", None, [(0, 3, [1, 2, 3, 0])])]
    row = by_member(events)["a"]
    assert [row[name] for name in ("accepted", "released", "rejected", "gaps")] == [1, 1, 1, 1]
    assert (row["hold_p50_ns"], row["hold_max_ns"]) == (99, 99)


@pytest.mark.parametrize(("later", "given_up"), [(SECOND - 1, 0), (SECOND + 1_000, 2)])
def test_what_nobody_gets_again_at_the_highest_count_is_given_up(later: int, given_up: int) -> None:
    events = [
        fetch(1, "a", (0, 1, 5)),
        fetch(10, "a", None, [(0, 1, [2])]),
        fetch(later, "a", None),
    ]
    assert by_member(events)["a"]["given_up"] == given_up
