from __future__ import annotations

import pytest

from tests.client.broker import CLOSE, TestBroker
from tests.client.running import Capsys, client, fails, rows
from tests.kafka import request


def test_metadata_is_asked_in_the_newest_common_version_and_printed_as_a_tree(
    capsysbinary: Capsys, broker: TestBroker
) -> None:
    ran = client(capsysbinary, "metadata", broker, "orders")
    assert ran.code == 0
    assert ran.err == ""
    assert ran.lines[0].startswith("Exchange 3: Metadata v12, connection 0")
    assert [(each.api, each.version) for each in broker.asked] == [
        ("ApiVersions", 5),
        ("ApiVersions", 4),
        ("Metadata", 12),
    ]
    assert broker.asked[-1].body["allowAutoTopicCreation"] is False


def test_a_forced_version_is_asked_without_anything_before(capsysbinary: Capsys, broker: TestBroker) -> None:
    (row,) = rows(client(capsysbinary, "metadata", broker, "--api-version", 1, "-T", "ndjson"))
    assert (row["number"], row["api"], row["api_version"], row["correlation_id"]) == (1, "Metadata", 1, 1)
    assert row["request"]["body"] == {"topics": None}
    assert [each.api for each in broker.asked] == ["Metadata"]


def test_all_prints_what_had_to_be_asked_before(capsysbinary: Capsys, broker: TestBroker) -> None:
    found = rows(client(capsysbinary, "metadata", broker, "--all", "-T", "ndjson", "--client-id", "me"))
    assert [each["api"] for each in found] == ["ApiVersions", "ApiVersions", "Metadata"]
    assert found[0]["error"] == "UNSUPPORTED_VERSION"
    assert {each["client_id"] for each in found} == {"me"}


def test_a_topic_that_is_not_there_is_the_brokers_refusal(capsysbinary: Capsys, broker: TestBroker) -> None:
    ran = client(capsysbinary, "metadata", broker, "missing")
    assert ran.code == 6
    assert ran.err == "kdissect: topic missing: UNKNOWN_TOPIC_OR_PARTITION\n"


def test_why_a_forced_version_gets_no_answer_is_found_out_afterwards(
    capsysbinary: Capsys, broker: TestBroker
) -> None:
    broker.answers["Metadata"] = lambda *_: CLOSE
    for version, why in (
        (0, "it advertises versions 1 to 12 of Metadata"),
        (3, "it advertises this version: does it want a login (--sasl)? see the broker's log"),
    ):
        broker.versions["Metadata"] = (1, 12)
        broker.asked.clear()
        line = fails(capsysbinary, broker, "--api-version", version)
        closed = f"it closed the connection instead of answering Metadata v{version}"
        assert line == f"kdissect: {broker.address}: {closed}: {why}\n"
        assert [each.api for each in broker.asked] == ["Metadata", "ApiVersions", "ApiVersions"]
    del broker.versions["Metadata"]
    options = ("--api", "Metadata", "--version", 3)
    assert "it does not advertise Metadata\n" in client(capsysbinary, "send", broker, *options).err
    whole = request("Metadata", 3, 1, "me", topics=None).hex()
    assert "it does not advertise Metadata\n" in client(capsysbinary, "send", broker, "--hex", whole).err


@pytest.mark.parametrize("host", ["a\0b", "..", "x" * 300])
def test_a_leader_whose_host_is_no_name_is_told(capsysbinary: Capsys, broker: TestBroker, host: str) -> None:
    of_metadata = broker.answers["Metadata"]
    broker.answers["Metadata"] = lambda version, body: (
        of_metadata(version, body) | {"brokers": [{"nodeId": 1, "host": host, "port": 9092}]}
    )
    ran = client(capsysbinary, "fetch", broker, "orders")
    assert (ran.code, ran.err.count("\n")) == (6, 1)
    assert "9092: it is not possible to connect to this address" in ran.err


def test_what_a_version_cannot_say_is_told(capsysbinary: Capsys, broker: TestBroker) -> None:
    ran = client(capsysbinary, "metadata", broker, "--api-version", 77)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "send --hex" in ran.err
    for command, *more in (("produce", "t", "--value", "v"), ("fetch", "t")):
        ran = client(capsysbinary, command, broker, *more, "--api-version", 77)
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert "unknown version 77" in ran.err or "version 77" in ran.err
    broker.asked.clear()
    ran = client(capsysbinary, "metadata", broker, "x" * 40_000, "--api-version", 1)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "at most 32,767 are allowed" in ran.err
    assert broker.asked == []
