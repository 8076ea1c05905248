from __future__ import annotations

import json
from typing import Any

import pytest

from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.client.broker import TOPIC_ID, TestBroker
from tests.client.running import Capsys, client, rows
from tests.client.stored import THREE, batch, stored


def test_records_are_fetched_from_the_beginning_to_the_end(capsysbinary: Capsys, broker: TestBroker) -> None:
    stored(broker, *THREE, end=5)
    found = rows(client(capsysbinary, "fetch", broker, "orders"))
    assert [(each["offset"], each["value"]) for each in found] == list(enumerate("abcde"))
    assert {(each["topic"], each["topic_id"]) for each in found} == {("orders", TOPIC_ID)}
    assert [each.version for each in broker.asked if each.api == "Fetch"] == [17, 17]


@pytest.mark.parametrize("version", [0, 4, 6, 12, 13, 17])
def test_every_version_gives_the_same_records(capsysbinary: Capsys, broker: TestBroker, version: int) -> None:
    stored(broker, *THREE, end=5)
    found = rows(client(capsysbinary, "fetch", broker, "orders", "--api-version", version))
    assert [each["value"] for each in found] == list("abcde")
    assert {each["api_version"] for each in found} == {version}


def test_records_before_the_offset_and_beyond_the_count_are_not_shown(
    capsysbinary: Capsys, broker: TestBroker
) -> None:
    stored(broker, *THREE, end=5)
    found = rows(client(capsysbinary, "fetch", broker, "orders", "--from", 1, "-c", 2))
    assert [each["value"] for each in found] == ["b", "c"]
    found = rows(client(capsysbinary, "fetch", broker, "orders", "--from", "2026-01-01T00:00:00Z"))
    assert [each["value"] for each in found] == ["d", "e"]
    broker.asked.clear()
    client(capsysbinary, "fetch", broker, "orders", "--from", "1969-12-31T23:59:59.999Z")  # -1 is latest
    times = [
        each.body["topics"][0]["partitions"][0]["timestamp"]
        for each in broker.asked
        if each.api == "ListOffsets"
    ]
    assert times == [-1, 0]
    assert rows(client(capsysbinary, "fetch", broker, "orders", "--from", "latest")) == []
    assert client(capsysbinary, "fetch", broker, "orders", "--from", "latest", "--exit-status").code == 1


def test_read_committed_passes_over_aborted_transactions_and_markers(
    capsysbinary: Capsys, broker: TestBroker
) -> None:
    of_7 = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    of_8 = of_7 | {"producer_id": 8}

    def marker(offset: int, kind: int, of: dict[str, Any]) -> bytes:
        record = Record(offset, 100, bytes((0, 0, 0, kind)), bytes(6))
        return write_batch([record], control=True, **of | {"base_sequence": -1})

    log = (
        *(batch(0, "plain"), batch(1, "aborted", **of_7), batch(2, "kept", **of_8), marker(3, 0, of_7)),
        *(batch(4, "again", **of_7), marker(5, 1, of_7), marker(6, 1, of_8)),
    )
    stored(broker, *log, end=7, aborted=[{"producerId": 7, "firstOffset": 1}])
    everything = rows(client(capsysbinary, "fetch", broker, "orders"))
    assert [each["value"] for each in everything] == ["plain", "aborted", "kept", "again"]
    committed = rows(client(capsysbinary, "fetch", broker, "orders", "--isolation", "read_committed"))
    assert [each["value"] for each in committed] == ["plain", "kept", "again"]


def test_that_nothing_is_there_is_told_with_the_numbers(capsysbinary: Capsys, broker: TestBroker) -> None:
    stored(broker, *THREE, end=5)
    ran = client(capsysbinary, "fetch", broker, "orders", "--from", 9)
    assert (ran.code, ran.out) == (0, b"")
    assert ran.err == "kdissect: orders-0 ends at offset 5: nothing there from offset 9 on\n"
    ran = client(capsysbinary, "fetch", broker, "orders", "--from", "latest")
    assert (ran.code, ran.err) == (0, "kdissect: nothing to read: orders-0 ends at offset 5\n")
    for options in (("--from", 4), ("-T", "faults"), ("-T", "ndjson")):
        assert client(capsysbinary, "fetch", broker, "orders", *options).err == ""
    ran = client(capsysbinary, "fetch", broker, "orders", "--from", 5, "-T", "ndjson")
    assert (ran.code, ran.err) == (0, "kdissect: nothing to read: orders-0 ends at offset 5\n")


def test_a_forced_version_that_is_not_advertised_is_told_and_asked(
    capsysbinary: Capsys, broker: TestBroker
) -> None:
    broker.versions["Fetch"] = (6, 12)
    stored(broker, *THREE, end=5)
    ran = client(capsysbinary, "fetch", broker, "orders", "--api-version", 4)
    assert ran.code == 0
    assert len(ran.lines) == 5
    assert ran.err == (
        f"kdissect: {broker.address}: it advertises versions 6 to 12 of Fetch; kdissect sends v4 anyway, "
        "because of --api-version\n"
    )
    assert {each.version for each in broker.asked if each.api == "Fetch"} == {4}


def test_follow_goes_on_until_the_count(capsysbinary: Capsys, broker: TestBroker) -> None:
    stored(broker, *THREE, end=2)
    found = rows(client(capsysbinary, "fetch", broker, "orders", "--follow", "-c", 5))
    assert [each["value"] for each in found] == list("abcde")


def test_exchanges_are_counted_where_they_are_what_is_shown(capsysbinary: Capsys, broker: TestBroker) -> None:
    stored(broker, *THREE, end=5)
    found = rows(client(capsysbinary, "fetch", broker, "orders", "-T", "ndjson"))
    assert [each["api"] for each in found] == ["Fetch", "Fetch"]
    assert len(rows(client(capsysbinary, "fetch", broker, "orders", "-T", "ndjson", "-c", 1))) == 1


def test_an_offset_that_is_not_there_is_told(capsysbinary: Capsys, broker: TestBroker) -> None:
    stored(broker, end=5)
    broker.answers["Fetch"] = lambda _, body: {
        "responses": [
            {"topicId": TOPIC_ID, "partitions": [{"partitionIndex": 0, "errorCode": 1, "highWatermark": -1}]}
        ]
    }
    ran = client(capsysbinary, "fetch", broker, "orders", "--from", 3)
    assert ran.code == 6
    assert "orders-0: OFFSET_OUT_OF_RANGE: offset 3 is not there" in ran.err


def test_advice_names_options_that_the_command_has(capsysbinary: Capsys, broker: TestBroker) -> None:
    ran = client(capsysbinary, "fetch", broker, "missing")
    assert (ran.code, ran.err) == (
        6,
        "kdissect: topic missing: UNKNOWN_TOPIC_OR_PARTITION: is the name right?\n",
    )
    ran = client(capsysbinary, "produce", broker, "missing", "--value", "v")
    assert ran.err.endswith("is the name right? --create lets the broker make it\n")


def test_a_batch_that_does_not_fit_is_no_endless_loop(capsysbinary: Capsys, broker: TestBroker) -> None:
    stored(broker, THREE[0][:40], end=5)
    ran = client(capsysbinary, "fetch", broker, "orders")
    assert ran.code == 6
    assert "no whole batch fits in 40 bytes: --max-bytes N" in ran.err


def test_a_batch_at_the_end_of_all_offsets_is_no_endless_loop(
    capsysbinary: Capsys, broker: TestBroker
) -> None:
    last = (1 << 63) - 1
    stored(broker, last.to_bytes(8, "big") + batch(0, "a")[8:], end=5)
    ran = client(capsysbinary, "fetch", broker, "orders", "--follow")
    assert (ran.code, len(ran.lines)) == (6, 1)
    assert f"orders-0: a batch ends at {last}, the largest possible offset" in ran.err
    stored(broker, last.to_bytes(8, "big") + batch(0, "a", "b")[8:], end=5)
    ran = client(capsysbinary, "fetch", broker, "orders", "--follow")
    assert ran.code == 6
    assert "orders: the batches in 20 responses end before the requested offset" in ran.err


def test_an_end_that_is_never_reached_is_no_endless_loop(capsysbinary: Capsys, broker: TestBroker) -> None:
    stored(broker, *THREE, end=9)
    ran = client(capsysbinary, "fetch", broker, "orders")
    assert ran.code == 6
    assert [json.loads(line)["value"] for line in ran.lines] == list("abcde")
    assert "20 responses had no records" in ran.err


@pytest.mark.parametrize(("leader", "port"), [(9, None), (1, -5), (1, 99_999)])
def test_a_leader_that_cannot_be_asked_is_told(
    capsysbinary: Capsys, broker: TestBroker, leader: int, port: int | None
) -> None:
    of_metadata = broker.answers["Metadata"]

    def answer(version: int, body: dict[str, Any]) -> dict[str, Any]:
        said = of_metadata(version, body)
        said["topics"][0]["partitions"][0]["leaderId"] = leader
        said["brokers"][0]["port"] = port or broker.port
        return dict(said)

    broker.answers["Metadata"] = answer
    ran = client(capsysbinary, "fetch", broker, "orders")
    assert (ran.code, ran.err.count("\n")) == (6, 1)
    assert "has no address of its leader" in ran.err or "not possible to connect to this address" in ran.err


def test_a_wait_beyond_the_timeout_is_refused(capsysbinary: Capsys, broker: TestBroker) -> None:
    ran = client(capsysbinary, "fetch", broker, "orders", "--max-wait", 5_000)
    assert ran.code == 2
    assert "--max-wait 5000 is longer than --timeout" in ran.err
