"""Against the mock cluster that librdkafka has built in: brokers that are not our own, without Java."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kdissect.record.compression import CODECS
from tests.cli.run import Ran, run

confluent_kafka = pytest.importorskip("confluent_kafka")

Capsys = pytest.CaptureFixture[bytes]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A producer whose own cluster has three brokers."""
    producer = confluent_kafka.Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 3})
    yield producer
    producer.flush(5)


@pytest.fixture(scope="module")
def address(cluster: Any) -> str:
    found = next(iter(cluster.list_topics(timeout=10).brokers.values()))
    return f"{found.host}:{found.port}"


def rows(ran: Ran) -> list[dict[str, Any]]:
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.lines]


def consumed(address: str, topic: str, count: int) -> list[tuple[Any, Any, int]]:
    """What librdkafka's own consumer reads."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": topic, "check.crcs": True})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, each, 0) for each in partitions])
    found = []
    for _ in range(100):
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append((message.key(), message.value(), message.partition()))
        if len(found) == count:
            break
    consumer.close()
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_another_client_reads_what_ours_produces(capsysbinary: Capsys, address: str, codec: str) -> None:
    topic = f"ours-{codec}"
    for at in range(6):
        options = ("--key", f"k{at}", "--value", f"v{at}", "--codec", codec, "--create", "-T", "records")
        (sent,) = rows(run(capsysbinary, "client", "produce", address, topic, *options))
        assert sent["codec"] == codec
    found = sorted(consumed(address, topic, 6))
    assert [(key, value) for key, value, _ in found] == [
        (f"k{at}".encode(), f"v{at}".encode()) for at in range(6)
    ]
    assert len({partition for _, _, partition in found}) > 1  # by the key, to several leaders


@pytest.mark.parametrize("codec", CODECS)
def test_ours_reads_what_another_client_produces(
    capsysbinary: Capsys, address: str, codec: str, cluster: Any
) -> None:
    topic = f"theirs-{codec}"
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "compression.codec": codec})
    wanted = {f"v{at}" * 50 for at in range(10)}
    for value in wanted:
        producer.produce(topic, value.encode(), b"k", headers=[("h", b"x")])
    assert producer.flush(10) == 0
    found = rows(run(capsysbinary, "client", "fetch", address, topic))
    assert {each["value"] for each in found} == wanted
    assert {(each["codec"], each["key"]) for each in found} == {(codec, "k")}
    assert found[0]["headers"] == [{"key": "h", "value": "x"}]


def test_every_broker_is_asked_for_what_it_leads(capsysbinary: Capsys, address: str) -> None:
    for at in range(8):
        options = ("-p", at % 4, "--value", at, "--create")
        assert run(capsysbinary, "client", "produce", address, "spread", *options).code == 0
    ran = run(capsysbinary, "client", "fetch", address, "spread", "-T", "ndjson")
    oldest = ("--api-version", 8, "-T", "ndjson")  # from 9 on the mock's answer has a byte too many
    (told,) = rows(run(capsysbinary, "client", "metadata", address, "spread", *oldest))
    body = told["response"]["body"]
    ports = {each["nodeId"]: f"{each['host']}:{each['port']}" for each in body["brokers"]}
    leaders = {ports[each["leaderId"]] for each in body["topics"][0]["partitions"]}
    assert {each["broker"] for each in rows(ran)} == leaders
    found = rows(run(capsysbinary, "client", "fetch", address, "spread"))
    assert sorted(each["value"] for each in found) == [str(at) for at in range(8)]


def test_the_byte_that_the_mock_brokers_send_too_much_is_told(capsysbinary: Capsys, address: str) -> None:
    ran = run(capsysbinary, "client", "metadata", address, "--api-version", 12)
    assert ran.code == 6
    assert "its response to Metadata v12 has bytes after the last field: 1 byte (00)" in ran.err


def test_metadata_1_produce_3_and_fetch_6(capsysbinary: Capsys, address: str) -> None:
    options = ("--api-version", 3, "--value", "x", "-p", 0, "--create", "-T", "records")
    (sent,) = rows(run(capsysbinary, "client", "produce", address, "seed", *options))
    (row,) = rows(
        run(capsysbinary, "client", "metadata", address, "seed", "--api-version", 1, "-T", "ndjson")
    )
    assert (row["api_version"], row["error"], row["topics"]) == (1, None, ["seed"])
    (got,) = rows(run(capsysbinary, "client", "fetch", address, "seed", "-p", 0, "--api-version", 6))
    assert (got["value"], got["offset"]) == ("x", sent["assigned_offset"])


def test_what_the_mock_brokers_answer_is_told_apart(capsysbinary: Capsys, address: str) -> None:
    ran = run(capsysbinary, "client", "conformance", address, "--timeout", 2, "-T", "ndjson")
    found = [json.loads(line) for line in ran.lines]
    assert [each["outcome"] for each in found if each["check"] == "order"] == ["right"]
    answers = [each for each in found if each["check"] == "answer"]
    assert len(answers) > 30
    wrong = [each for each in answers if each["outcome"] not in ("right", "skipped")]
    assert {each["api"] for each in wrong} == {"Metadata"}  # the byte too many, as above
    assert {each["detail"] for each in wrong} == {"remainder: 1 byte is left after the last field"}
