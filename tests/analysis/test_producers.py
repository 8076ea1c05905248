"""What producers sent again, by sequences and without; how they write."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.fold import Row
from kdissect.analysis.headers import HEADER_BYTES, Header
from kdissect.analysis.production import first_record
from kdissect.exchange import Exchange
from tests.analysis.folds import events_of, fold, rows_of
from tests.analysis.produced import MS, START_MS, batch, fetch, produce
from tests.tcp.segments import BROKER


def only_row(*exchanges: Exchange) -> Row:
    (row,) = fold("producers", exchanges).result()
    return row


def resends(row: Row) -> tuple[int, int, int]:
    return row["resent"], row["resent_appended"], row["absorbed"]


def numbered(*values: str, sequence: int, **more: Any) -> bytes:
    return batch(*values, producer_id=7, producer_epoch=0, base_sequence=sequence, **more)


def test_what_is_counted() -> None:
    row = only_row(
        produce(10, batch("a", "b"), 0), produce(20, batch("c", "d", "e", "f", codec=1), 2, acks=1)
    )
    assert (row["requests"], row["batches"], row["records"], row["records_per_batch"]) == (2, 2, 6, 3.0)
    assert (row["acks"], row["codecs"]) == (["all", "1"], ["gzip", "none"])
    assert (row["producer_id"], row["first_sequence"], row["gaps"]) == (None, None, 0)
    assert row["linger_p50_ns"] in range(9 * MS, 11 * MS)
    assert (row["skew_min_ms"], row["skew_max_ms"], row["ahead"]) == (-20, -10, 0)


def test_a_sequence_sent_again_and_answered_as_before_was_absorbed() -> None:
    data = numbered("a", sequence=0)
    row = only_row(produce(0, data, 5), produce(9, data, 5, connection=1))
    assert resends(row) == (1, 0, 1)


@pytest.mark.parametrize(
    ("copy", "expected"),
    [
        ({}, (0, 0, 0)),
        ({"answered_ms": 31}, (1, 0, 1)),  # answered after the first: sent again
        ({"connection": 0}, (1, 0, 1)),
        ({"offset": 9}, (1, 1, 0)),
        ({"offset": None}, (1, 0, 0)),
    ],
)
def test_what_a_proxy_passes_on_is_not_sent_again(
    copy: dict[str, Any], expected: tuple[int, int, int]
) -> None:
    """Where both of its sides were captured."""
    data = numbered("a", sequence=0)
    values = {"offset": 5, "connection": 1, "answered_ms": 29, **copy}
    assert resends(only_row(produce(0, data, 5, answered_ms=30), produce(2, data, **values))) == expected


@pytest.mark.parametrize(
    ("copy", "count"),
    [
        ({}, 0),
        ({"answered_ms": 31}, 1),  # answered after the first: sent again
        ({"connection": 0}, 1),
        ({"error": 7}, 1),
        ({"error": 0, "offset": 5}, 1),
    ],
)
def test_what_a_proxy_passes_on_and_the_broker_refuses_is_not_sent_again(
    copy: dict[str, Any], count: int
) -> None:
    data = numbered("a", sequence=0)
    values = {"error": 6, "connection": 1, "answered_ms": 29, **copy}
    first = produce(0, data, error=6, answered_ms=30)
    assert only_row(first, produce(2, data, **values))["resent"] == count


@pytest.mark.parametrize(("on_ms", "appended"), [(900, 1), (1_002, 0)])
def test_what_a_client_knew_to_be_written_it_does_not_send_again(on_ms: int, appended: int) -> None:
    """Its application writes the records again: a source of Connect that starts from an old position."""
    data, other, late = batch("a"), batch("b"), batch("c")
    begun = [produce(0, data, 0, answered_ms=1), produce(on_ms, other, 1)]
    assert resends(only_row(*begun, produce(5_000, data, 2, connection=1))) == (appended, appended, 0)
    # What was answered just before the connection ended comes again with it.
    row = only_row(
        *begun,
        produce(on_ms + 1, late, 2),
        produce(5_000, data, 3, connection=1),
        produce(5_001, late, 4, connection=1),
    )
    assert row["resent_appended"] == 2 * appended


@pytest.mark.parametrize(
    ("ms", "port", "count"), [(2, 19_093, 0), (49, 19_093, 0), (50, 19_093, 1), (2, 19_092, 1)]
)
def test_what_a_proxy_passes_on_and_nobody_answers_is_not_sent_again(ms: int, port: int, count: int) -> None:
    """A client waits before it tries again, and it tries the same broker."""
    data = numbered("a", sequence=0)
    copy = produce(ms, data, None, connection=1)
    copy.broker_endpoint = BROKER[:-2] + port.to_bytes(2, "big")
    assert only_row(produce(0, data, None), copy)["resent"] == count


def test_a_refused_duplicate_was_absorbed() -> None:
    data = numbered("a", sequence=0)
    row = only_row(produce(0, data, None), produce(9, data, error=46, connection=1))
    assert resends(row) == (1, 0, 1)


def test_whether_an_unanswered_batch_was_appended_before_is_not_told() -> None:
    data = numbered("a", sequence=0)
    row = only_row(produce(0, data, None), produce(9, data, 5, connection=1))
    assert resends(row) == (1, 0, 0)
    assert row["unanswered"] == 1


def test_the_same_sequence_at_two_offsets_stands_twice() -> None:
    data = numbered("a", "b", sequence=0)
    assert resends(only_row(produce(0, data, 5), produce(9, data, 9, connection=1))) == (1, 2, 0)


def test_a_jump_in_the_sequence_is_a_gap() -> None:
    row = only_row(
        produce(0, numbered("a", sequence=3), 0),
        produce(1, numbered("b", sequence=4), 1),
        produce(2, numbered("c", sequence=7), error=45),
    )
    assert (row["gaps"], row["lost_sequences"]) == (1, 2)
    assert row["error_codes"] == ["OUT_OF_ORDER_SEQUENCE_NUMBER"]


@pytest.mark.parametrize(
    ("later", "gaps"),
    [
        ([produce(3, numbered("b", "b", sequence=4), 1, connection=1)], (0, 0)),
        ([produce(3, numbered("b", sequence=4), 1), produce(4, numbered("b", sequence=5), 2)], (0, 0)),
        ([produce(3, numbered("b", sequence=5), 1)], (1, 1)),
        ([produce(3, numbered("b", "b", sequence=4), error=45)], (1, 2)),
        ([produce(3, numbered("b", "b", sequence=4), error=46)], (0, 0)),  # the broker has it
        ([produce(3, numbered("d", sequence=7), 1)], (1, 2)),
    ],
)
def test_what_is_sent_later_is_not_missing(later: list[Exchange], gaps: tuple[int, int]) -> None:
    """What got lost with a connection comes on the next one, after what the broker refuses."""
    first = [produce(0, numbered("a", sequence=3), 0), produce(1, numbered("c", sequence=6), error=45)]
    row = only_row(*first, *later)
    assert (row["gaps"], row["lost_sequences"]) == gaps


def test_a_gap_over_the_highest_sequence_is_filled_too() -> None:
    last = (1 << 31) - 1
    first = [produce(0, numbered("a", sequence=last - 1), 0), produce(1, numbered("c", sequence=1), error=45)]
    assert only_row(*first)["lost_sequences"] == 2
    later = [produce(2, numbered("b", sequence=last), 1), produce(3, numbered("b", sequence=0), 2)]
    assert only_row(*first, *later)["gaps"] == 0


def test_sequences_go_on_at_0_after_the_highest() -> None:
    last = (1 << 31) - 1
    row = only_row(produce(0, numbered("a", sequence=last), 0), produce(1, numbered("b", sequence=0), 1))
    assert row["gaps"] == 0


def test_a_new_epoch_begins_anew() -> None:
    again = batch("b", producer_id=7, producer_epoch=1, base_sequence=0)
    row = only_row(produce(0, numbered("a", sequence=9), 0), produce(1, again, 1))
    assert (row["gaps"], row["epochs"], row["producer_epoch"]) == (0, 2, 1)


def test_a_single_batch_has_an_epoch_if_it_has_an_id() -> None:
    assert only_row(produce(0, numbered("a", sequence=0), 0))["epochs"] == 1
    assert only_row(produce(0, batch("a"), 0))["epochs"] == 0


def test_without_an_id_the_same_batch_on_another_connection_stands_twice() -> None:
    data = batch("a", "b")
    row = only_row(produce(0, batch("x"), 4), produce(1, data, 5), produce(9, data, 7, connection=1))
    assert resends(row) == (1, 2, 0)


def test_what_is_packed_with_later_records_is_known_by_its_first_record() -> None:
    """As librdkafka sends again: with what came since."""
    row = only_row(produce(0, batch("a", "b"), 5), produce(9, batch("a", "b", "c"), 7, connection=1))
    assert resends(row) == (1, 2, 0)
    packed = only_row(
        produce(0, batch("a", "b", codec=1), 5), produce(9, batch("a", "b", "c", codec=1), 7, connection=1)
    )
    assert resends(packed) == (1, 2, 0)


def test_what_is_dated_anew_each_time_is_known_by_its_sequence() -> None:
    """As KafkaJS sends again."""
    again = numbered("a", sequence=0, at_ms=START_MS + 9)
    assert resends(
        only_row(produce(0, numbered("a", sequence=0), None), produce(9, again, 5, connection=1))
    ) == (
        1,
        0,
        0,
    )
    other = batch("a", producer_id=7, producer_epoch=1, base_sequence=0, at_ms=START_MS + 9)
    row = only_row(produce(0, numbered("a", sequence=0), None), produce(9, other, 5, connection=1))
    assert resends(row) == (0, 0, 0), "of another epoch"


@pytest.mark.parametrize(
    ("before", "again", "count"),
    [
        ("x", {}, 1),
        ("a", {}, 0),  # its records often look like that
        ("x", {"connection": 0}, 0),
        ("x", {"value": "b"}, 0),
        ("x", {"value": "ab"}, 0),
        ("x", {"codec": 1}, 0),
    ],
)
def test_what_is_dated_anew_each_time_is_known_by_its_look(
    before: str, again: dict[str, Any], count: int
) -> None:
    """As kafka-go sends again, without a producer id."""
    wanted = {"value": "a", "codec": 0, "connection": 1, **again}
    first = produce(0, batch(before, at_ms=START_MS - 9, codec=wanted["codec"]), 4)
    lost = produce(1, batch("a", codec=wanted["codec"]), None)
    data = batch(wanted["value"], at_ms=START_MS + 9, codec=wanted["codec"])
    row = only_row(first, lost, produce(9, data, 5, connection=wanted["connection"]))
    assert resends(row) == (count, 0, 0)


@pytest.mark.parametrize(("length", "is_known"), [("10", True), ("9080808000", True), ("9080808010", False)])
def test_a_first_record_longer_than_its_batch_is_not_known(length: str, is_known: bool) -> None:
    data = bytes(HEADER_BYTES) + bytes.fromhex(length) + bytes(20)
    header = Header(0, len(data), 2, 0, 0, 0, 0, 0, 0, -1, -1, -1, 1)
    assert (first_record(data, header) != -1) == is_known


def test_all_that_was_in_flight_is_sent_again_together() -> None:
    row = only_row(
        produce(0, batch("a"), 5),
        produce(1, batch("b", at_ms=START_MS + 1), 6),
        produce(9, batch("a", "b", "c"), 7, connection=1),
    )
    assert resends(row) == (1, 2, 0)


def test_equal_batches_of_a_connection_that_goes_on_are_no_resends() -> None:
    """A program may write the same again, in the same millisecond."""
    data = batch("a")
    assert resends(only_row(*(produce(at, data, at) for at in range(5)))) == (0, 0, 0)


def test_an_unanswered_batch_shows_in_the_offsets_of_a_single_writer() -> None:
    earlier = [produce(at, batch(str(at)), at) for at in range(5)]
    data = batch("lost")
    lost, again = produce(7, data, None), produce(9, data, 6, connection=1)
    assert resends(only_row(*earlier, lost, again)) == (1, 1, 0)
    fitting = produce(9, data, 5, connection=1)
    assert resends(only_row(*earlier, lost, fitting)) == (1, 0, 0)
    other = produce(8, batch("other"), 5, connection=2)
    assert other.request is not None
    other.client_endpoint = bytes((10, 0, 0, 9)) + (50_000).to_bytes(2, "big")
    rows = fold("producers", [*earlier, lost, again, other]).result()
    assert [row["resent_appended"] for row in rows] == [0, 0]  # another one may have written it


def test_a_retry_after_a_refusal_was_not_appended_before() -> None:
    data = batch("a")
    row = only_row(produce(0, data, error=6), produce(9, data, 5))
    assert resends(row) == (1, 0, 0)
    late = only_row(produce(0, data, error=20), produce(9, data, 5))
    assert resends(late) == (1, 1, 0)  # NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_retry_behind_a_later_batch_is_overtaken() -> None:
    first, second = batch("a"), batch("b", at_ms=START_MS + 1)
    refused = produce(0, first, error=6, answered_ms=5)
    row = only_row(refused, produce(1, second, 5, answered_ms=6), produce(9, first, 6))
    assert (row["resent"], row["overtaken"]) == (1, 1)


def test_a_batch_that_is_tried_and_never_taken_is_given_up() -> None:
    data = numbered("a", sequence=0)
    tries = [produce(at * 20_000, data, error=19) for at in range(3)]
    row = only_row(*tries, produce(90_000, numbered("b", sequence=1), 0))
    assert (row["given_up"], row["tried_ns"]) == (1, 40_000 * MS)


def test_acks_0_is_no_answer_that_is_missing() -> None:
    data = batch("a")
    row = only_row(produce(0, data, None, acks=0), produce(9, data, None, acks=0, connection=1))
    assert resends(row) == (0, 0, 0)


def test_gaps_are_not_told_where_bytes_of_the_connection_are_missing() -> None:
    one, other = produce(0, numbered("a", sequence=0), 0), produce(1, numbered("b", sequence=5), 1)
    orphan = produce(2, b"", 0)
    orphan.request = None
    assert only_row(one, other)["gaps"] == 1
    assert only_row(one, other, orphan)["gaps"] is None


def test_what_is_fetched_with_another_codec_was_compressed_anew() -> None:
    sent = produce(0, batch("a", "b", codec=1), 5)
    data = batch("a", "b", codec=2, base_offset=5, last_offset=6)
    fetched = fetch(5, data, high=7)
    row = only_row(sent, fetched)
    assert (row["codecs"], row["codecs_fetched"], row["recompressed"]) == (["gzip"], ["snappy"], 1)


def test_records_dated_ahead_are_counted() -> None:
    row = only_row(produce(0, batch("a", at_ms=START_MS + 60_000), 0))
    assert (row["ahead"], row["skew_max_ms"]) == (1, 60_000)


def ahead(ms: int, number: int, connection: int = 0, **values: Any) -> Exchange:
    """A request with a record dated ahead, numbered as it came."""
    data = batch("a", at_ms=START_MS + 100_000)
    out = produce(ms, data, **{"offset": number, "connection": connection, **values})
    out.number = number
    return out


@pytest.mark.parametrize(
    ("at_ms", "set_back_ms"), [((0, 9, 20), 0), ((90_000, 0, 10), 90_000), ((0, 60_000, 1_000), 59_000)]
)
def test_a_clock_that_was_set_back_shows_by_the_order_of_the_requests(
    at_ms: tuple[int, ...], set_back_ms: int
) -> None:
    events = [ahead(at, number, answered_ms=at) for number, at in enumerate(at_ms)]
    assert only_row(*events)["set_back_ns"] == set_back_ms * MS
    events = [ahead(at, number, acks=0, offset=None) for number, at in enumerate(at_ms)]
    assert only_row(*events)["set_back_ns"] == set_back_ms * MS
    assert only_row(produce(0, batch("a"), 0))["set_back_ns"] is None


def test_a_request_that_was_lost_and_came_again_sets_no_clock_back() -> None:
    again, behind = ahead(8_000, 1, answered_ms=8_010), ahead(50, 2, answered_ms=8_020)
    assert only_row(ahead(0, 0), again, behind)["set_back_ns"] == 0
    assert only_row(ahead(0, 0), again, ahead(50, 2, offset=None))["set_back_ns"] == 0


def test_connections_that_are_told_late_set_no_clock_back() -> None:
    assert only_row(ahead(50_000, 7), ahead(0, 8, connection=1))["set_back_ns"] == 0


def test_records_and_batches_are_those_of_the_topics_table() -> None:
    for case in ("java43-basic", "librdkafka-new", "zk39-ibp28"):
        topics: dict[str, int] = {}
        for row in fold("topics", events_of(case)).result():
            if row["direction"] == "produce":
                topics[row["topic"]] = topics.get(row["topic"], 0) + row["batches"]
        producers: dict[str, int] = {}
        for row in rows_of("producers", case):
            producers[row["topic"]] = producers.get(row["topic"], 0) + row["batches"]
        assert producers == topics
