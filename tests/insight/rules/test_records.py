"""Rules on records that are damaged, read too early, or lost without a word."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.positions import Positions
from kdissect.analysis.tcp import Tcp
from kdissect.analysis.topics import Topics
from kdissect.exchange import Exchange
from kdissect.insight.finding import CRITICAL, LIKELY, WARNING, Finding
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.analysis.folds import fold
from tests.analysis.produced import START_MS, batch, fetch
from tests.analysis.produced import produce as sent
from tests.insight.made import WHOLE, row, said, unjudged


def topic(direction: str, corrupt: int = 1) -> Row:
    made = {"topic": "sales", "partition": 0, "first_ns": 1, "last_ns": 2, "corrupt_exchanges": [7]}
    return row(Topics, direction=direction, corrupt_batches=corrupt, **made)


def test_where_records_were_damaged_is_told() -> None:
    (produced,) = said("corrupt-records", {Topics: [topic("produce"), topic("fetch", 0)]})
    assert (produced.severity, produced.subject.partition, produced.exchanges) == (CRITICAL, 0, (7,))
    assert produced.message == "One batch of sales-0 was damaged on the way to the broker."
    (read,) = said("corrupt-records", {Topics: [topic("fetch", 3), topic("produce", 0)]})
    assert read.message.startswith("3 batches of sales-0 were damaged when they came from the broker")
    (both,) = said("corrupt-records", {Topics: [topic("fetch"), topic("produce")]})
    assert "when written" in both.message
    assert not said("corrupt-records", {Topics: [topic("fetch", 0)]})


def test_records_that_the_broker_cannot_read_are_damaged_and_refused_ones_need_not_be() -> None:
    def error(api: str) -> Row:
        made = {"error": "CORRUPT_MESSAGE", "topic": "sales", "partition": 0, "count": 2}
        return row(Errors, api=api, **made, first_exchange=1, last_exchange=2, first_ns=1, last_ns=2)

    (found,) = said("corrupt-records", {Errors: [error("Fetch")]})
    assert "damaged on its disk" in found.message
    assert not said("corrupt-records", {Errors: [error("Produce")]})


def test_a_wrong_checksum_is_counted_in_either_direction() -> None:
    data = batch("a", "b")
    broken = data[:-1] + bytes((data[-1] ^ 1,))
    rows = fold(
        "topics", [sent(0, data), sent(1, broken, topic="bad"), fetch(2, broken, 2, topic="worse")]
    ).result()
    assert {(each["topic"], each["corrupt_batches"]) for each in rows} == {("t", 0), ("bad", 1), ("worse", 1)}
    (bad,) = (each for each in rows if each["topic"] == "bad")
    assert bad["corrupt_exchanges"] == [2]


def test_records_beyond_the_last_stable_offset_are_told_if_it_still_stands_there_later() -> None:
    data = batch("a", "b")
    events = [
        *(fetch(1, data, 2, stable=0, topic="late"), fetch(2, data, 2, stable=0, topic="late")),
        *(fetch(3, data, 2, stable=0, topic="raced"), fetch(4, data, 2, stable=2, topic="raced")),
        *(fetch(5, data, 2, stable=2, topic="well"), fetch(6, data, 2, stable=0, topic="last")),
    ]
    rows = fold("positions", events).result()
    assert {each["topic"]: each["beyond_stable"] for each in rows if each["beyond_stable"]} == {"late": 1}
    for at in range(len(events)):
        first, second = fold("positions", events[:at]), fold("positions", events[at:])
        first.merge(second)
        assert first.result() == rows
    (found,) = said("aborted-records-read", {Positions: rows})
    assert (found.severity, found.subject.topic, found.exchanges) == (CRITICAL, "late", (2,))


def aborted(topic: str, committed: bool = False, named: Any = None, isolation: int = 1) -> Exchange:
    """A Fetch that brings a transaction of the producer 7 and the marker behind it."""
    key = b"\0\0\0" + (b"\1" if committed else b"\0")
    marker = Record(offset=2, timestamp=START_MS, key=key, value=b"\0\0\0\0\0\0")
    more: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    data = batch("a", "b", **more) + write_batch([marker], base_offset=2, control=True, **more)
    return fetch(1, data, 3, topic=topic, aborted=named, isolation=isolation)


def test_an_aborted_transaction_that_the_answer_does_not_name_is_told() -> None:
    mine, others = {"producerId": 7, "firstOffset": 0}, {"producerId": 8, "firstOffset": 0}
    events = [
        aborted("null"),
        aborted("other", named=[others]),
        aborted("later", named=[{**mine, "firstOffset": 2}]),
        aborted("named", named=[others, mine]),
        aborted("committed", committed=True),
        aborted("uncommitted", isolation=0),
    ]
    rows = fold("positions", events).result()
    told = {each["topic"] for each in rows if each["aborted_unnamed"]}
    assert told == {"null", "other", "later"}
    found = said("aborted-records-read", {Positions: rows})
    assert {each.subject.topic for each in found} == told
    assert all(
        "of aborted transactions that the response does not list, in 1 answer." in each.message
        for each in found
    )


def line(number: int, **values: Any) -> Row:
    made = {
        "client": f"10.0.0.1:{5000 + number}",
        "client_id": "till",
        "broker": "b:9092",
        "connection": number,
    }
    made |= {"first_ns": 0, "last_ns": 90 * SECOND, "last_api": "Fetch", "exchanges": 3}
    return row(Tcp, **{**made, **values})


def cut(number: int, at_s: float, idle_ms: int = 3, **values: Any) -> Row:
    made = {"closed_by": "broker", "closed_ns": int(at_s * SECOND), "idle_ns": idle_ms * MILLISECOND}
    made |= {
        "last_ns": int(at_s * SECOND),
        "last_api": "Produce",
        "last_missing": "acks=0",
        "last_exchange": 4,
    }
    return line(number, **{**made, **values})


def silent(*rows: Row) -> list[Finding]:
    return said("acks0-closed", {Tcp: list(rows)})


@pytest.mark.parametrize(("connection", "gap_bytes", "is_judged"), [(1, 0, 1), (1, 1, 0), (2, 25, 1)])
def test_where_bytes_of_a_connection_are_missing_its_client_may_have_closed_it(
    connection: int, gap_bytes: int, is_judged: int
) -> None:
    seen = {"connection": connection, "gap_bytes": gap_bytes}
    rows = {Tcp: [line(0), cut(1, 10)], Connections: [seen]}
    lossy = WHOLE._replace(gap_bytes=gap_bytes)
    assert len(said("acks0-closed", rows, context=lossy)) == is_judged
    assert len(unjudged("acks0-closed", rows, context=lossy)) == 1 - is_judged


def test_a_connection_that_is_closed_after_a_silent_write_is_told() -> None:
    (found,) = silent(line(0), cut(1, 10), cut(2, 20))
    assert (found.severity, found.confidence, found.count) == (WARNING, LIKELY, 2)
    assert found.exchanges == (4,)
    assert silent(line(0), cut(1, 10, 100))
    assert not silent(line(0), cut(1, 10, 101))
    assert not silent(line(0), cut(1, 10, last_missing=None))
    assert not silent(line(0), cut(1, 10, closed_by="client"))


def test_a_broker_that_stops_closes_all_and_says_nothing_about_writes() -> None:
    assert not silent(cut(1, 10))  # nothing shows that it went on
    other = cut(2, 10.5, last_api="Fetch", last_missing=None)
    assert not silent(line(0), cut(1, 10), other)
    assert not silent(line(0), cut(1, 10), cut(2, 11, last_api="Fetch", last_missing=None))
    assert silent(line(0), cut(1, 10), cut(2, 11.001, last_api="Fetch", last_missing=None))
    assert not silent(line(0, last_ns=11 * SECOND), cut(1, 10))
    assert silent(line(0, last_ns=11 * SECOND + 1), cut(1, 10))
