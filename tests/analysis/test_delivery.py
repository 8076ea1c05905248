"""What was produced and what was fetched, joined by offset."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kdissect.analysis.deliveries import Arrival, ConnectionLoss, after_loss
from kdissect.analysis.fold import MILLISECOND, Row
from kdissect.capture.files import read_packets
from kdissect.model import Packet
from tests.analysis.folds import fold, rows_of
from tests.analysis.traffic import commit, fetch, produce
from tests.dissecting import dissect
from tests.shared import requires_shared, shared


def only(rows: list[Row]) -> Row:
    (row,) = rows
    return row


def ms(value: int | None) -> float | None:
    """In ms; percentiles are within 0.4 %."""
    return None if value is None else round(value / MILLISECOND, -1)


def test_the_way_of_a_record_is_told_step_by_step() -> None:
    rows = fold(
        "delivery",
        [
            fetch((1_000, 1_450), 0, [(0, [200, 400])], 0, connection=4, replica=2),
            produce((1_200, 1_500), 0, [200, 400]),
            fetch((1_100, 1_700), 0, [(0, [200, 400])], 2),
            commit((1_800, 1_810), 2),
        ],
    ).result()
    row, follower = sorted(rows, key=lambda row: row["consumer"] or "", reverse=True)
    assert (row["consumer"], row["group"], row["sets"], row["records"]) == ("test", "readers", 1, 2)
    assert ms(row["send_to_fetched_p50_ns"]) == 500
    assert ms(row["ack_to_fetched_p50_ns"]) == 200
    assert ms(row["create_to_fetched_p50_ns"]) == 1350
    assert ms(row["linger_p50_ns"]) == 1000
    assert ms(row["produce_p50_ns"]) == 300
    assert ms(row["replicate_p50_ns"]) == 250
    assert ms(row["visible_p50_ns"]) == 500
    assert row["waited_p50_ns"] == 0
    assert (follower["consumer"], follower["group"], follower["records"]) == ("broker 2", None, 2)


def test_a_consumer_that_asks_late_was_busy() -> None:
    rows = fold("delivery", [produce((10, 20), 0, [5]), fetch((520, 530), 0, [(0, [5])], 1)]).result()
    assert ms(only(rows)["waited_p50_ns"]) == 500


def test_what_is_fetched_again_is_counted_and_not_joined() -> None:
    sets = [(0, [1, 1, 1])]
    row = only(
        fold(
            "delivery",
            [
                produce((2, 3), 0, [1, 1, 1]),
                fetch((4, 5), 0, sets, 3),
                fetch((900, 905), 1, sets, 3),
                fetch((950, 955), 0, sets, 3),
            ],
        ).result()
    )
    assert (row["records"], row["read_again"], row["sets"]) == (3, 5, 1)
    assert row["send_to_fetched_max_ns"] < 10 * MILLISECOND


def test_records_behind_all_that_was_fetched_are_unconsumed() -> None:
    events = [produce((2, 3), 0, [1]), fetch((4, 5), 0, [(0, [1])], 1), produce((6, 7), 1, [6, 6])]
    assert only(fold("delivery", events).result())["unconsumed"] == 2
    events.append(fetch((8, 9), 3, [], 3))  # it asks for what comes after: it has them
    assert only(fold("delivery", events).result())["unconsumed"] == 0


@pytest.mark.parametrize("lost", ["answer", "refusal"])
def test_a_batch_is_known_by_its_content_where_no_answer_tells_its_offset(lost: str) -> None:
    first = produce((10, 20), 40, [7, 8], answered=lost != "answer", error=7 if lost == "refusal" else 0)
    row = only(fold("delivery", [first, fetch((1, 30), 40, [(40, [7, 8])], 42)]).result())
    assert (row["records"], ms(row["send_to_fetched_p50_ns"])) == (2, 20)
    assert row["ack_to_fetched_p50_ns"] is None is row["produce_p50_ns"]


def test_only_the_answer_to_a_produce_tells_where_a_batch_begins() -> None:
    whole = produce((10, 20), 40, [7, 8])
    whole.request = None
    rows = fold("delivery", [whole, fetch((1, 30), 40, [(40, [7, 8])], 42)]).result()
    row = only(rows)
    assert (row["records"], row["send_to_fetched_p50_ns"], ms(row["ack_to_fetched_p50_ns"])) == (2, None, 10)


def test_another_batch_is_not_taken_for_one_without_an_offset() -> None:
    events = [produce((10, 20), 40, [7, 8], answered=False), fetch((1, 30), 40, [(40, [7, 9])], 42)]
    assert fold("delivery", events).result() == []


def test_what_came_before_it_was_sent_is_another_record() -> None:
    """A topic that was made anew has its offsets again."""
    events = [fetch((1, 5), 0, [(0, [1])], 1), produce((10, 20), 0, [9])]
    assert fold("delivery", events).result() == []


def test_an_answer_that_is_missing_brought_what_the_next_request_no_longer_asks_for() -> None:
    sets = [produce((at, at + 1), at - 10, [1]) for at in (10, 11, 12)]
    events: list[Any] = [*sets, fetch((20, 21), 0, [(0, [1])], 3), fetch((22, 23), 1, answered=False)]
    assert only(fold("delivery", events).result())["records"] == 1
    row = only(fold("delivery", [*events, fetch((30, 31), 3, [], 3)]).result())
    assert (row["records"], row["unconsumed"]) == (3, 0)
    assert row["send_to_fetched_max_ns"] == 11 * MILLISECOND
    # In a new session it may as well have been told to begin there.
    row = only(fold("delivery", [*events, fetch((30, 31), 3, [], 3, epoch=0)]).result())
    assert row["records"] == 1


def test_a_jump_without_a_missing_answer_brought_nothing() -> None:
    events = [produce((at, at + 1), at - 10, [1]) for at in (10, 11, 12)]
    events += [fetch((20, 21), 0, [(0, [1])], 3), fetch((22, 23), 3, [], 3)]
    assert only(fold("delivery", events).result())["records"] == 1


def test_times_of_single_records_are_those_that_stand_in_them() -> None:
    """Of a batch that waited a second for most of its records: the median is that of the records."""
    stamps = [0, *[900] * 8, 1_000]
    row = only(
        fold(
            "delivery", [produce((1_000, 1_001), 0, stamps), fetch((1, 1_010), 0, [(0, stamps)], 10)]
        ).result()
    )
    assert ms(row["create_to_fetched_p50_ns"]) == 110
    packed = only(
        fold(
            "delivery", [produce((1_000, 1_001), 0, stamps, codec=1), fetch((1, 1_010), 0, [(0, stamps)], 10)]
        ).result()
    )
    assert 400 < packed["create_to_fetched_p50_ns"] / MILLISECOND < 600, "taken to lie evenly"


def test_clients_of_the_lab_get_what_they_were_seen_to_fetch() -> None:
    for row in rows_of("delivery", "java43-groups"):
        assert row["records"] >= row["sets"] > 0
        assert row["unconsumed"] >= 0
        assert row["send_to_fetched_p50_ns"] is None or row["send_to_fetched_p50_ns"] > 0


def capture(case: str) -> list[Path]:
    folder = shared(f"testdata/incidents/{case}")
    files = sorted(folder.glob("capture*"))
    return [file for file in files if "broker" in file.name] or files[:1]


@requires_shared
@pytest.mark.parametrize("case", ["healthy", "lag-grows", "exactly-once-v2", "max-poll-exceeded"])
def test_with_2_percent_of_the_packets_lost_9_of_10_records_are_told_and_none_is_invented(case: str) -> None:
    items = list(read_packets(capture(case)))
    chosen = random.Random(case)
    thin = [item for item in items if not isinstance(item, Packet) or chosen.random() >= 0.02]
    whole, lossy = (
        {key_of(row): row for row in fold("delivery", dissect(each)).result()} for each in (items, thin)
    )
    assert lossy.keys() <= whole.keys()
    for key, row in lossy.items():
        assert row["records"] <= whole[key]["records"]
        assert row["unconsumed"] <= whole[key]["unconsumed"]
    told, all_of_them = (sum(row["records"] for row in rows.values()) for rows in (lossy, whole))
    assert told >= 0.9 * all_of_them


def key_of(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("topic", "partition", "consumer", "client", "group"))


def test_a_partition_that_was_let_go_meanwhile_was_not_fetched_in_the_answer_that_is_lost() -> None:
    """Another member of the group had it, and committed what it read."""

    def asked(ns: int, offset: int) -> Arrival:
        return Arrival(offset, None, -1, ns, ns, None, None, None, counts=True)

    loss = ConnectionLoss(lost=[25], asks=[10, 30], anew=[])
    for let_go, is_after_loss in (((), True), ((5,), True), ((20,), False), ((35,), True)):
        *_, last = after_loss([asked(10, 0), asked(30, 50)], loss, let_go)
        assert last.is_after_loss == is_after_loss
