"""A message keeps its form and its numbers; what it says is said in tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kdissect.exchange import Exchange
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from kdissect.scrub.values import Scrubber
from tests.amount import some
from tests.kafka import Talk, request, response
from tests.lab import CLEAR_CASES, Case
from tests.scrub.runs import KEY, exchanges, packets_of, scrubbed


def after(*talk: tuple[bytes, bytes]) -> list[Exchange]:
    """What becomes of exchanges, as kdissect reads it."""
    said = Talk()
    for asked, answered in talk:
        said.ask(asked)
        said.answer(answered)
    result = scrubbed(packets_of(said))
    assert result.found() is None
    return exchanges(result.packets)


def name(text: str) -> str:
    return Scrubber(KEY).name(text)


def host(text: str) -> str:
    return Scrubber(KEY).host(text)


def test_a_name_has_the_same_token_in_every_message() -> None:
    topic = {"errorCode": 0, "name": "orders", "isInternal": False, "partitions": []}
    first, second = after(
        (
            request("Metadata", 1, 1, "billing", topics=[{"name": "orders"}]),
            response("Metadata", 1, 1, brokers=[], controllerId=1, topics=[topic]),
        ),
        (
            request("FindCoordinator", 0, 2, "billing", key="orders"),
            response("FindCoordinator", 0, 2, errorCode=0, nodeId=7, host="10.0.0.2", port=9092),
        ),
    )
    assert first.client_id == second.client_id == name("billing")
    assert first.topics == [name("orders")]
    assert second.request is not None
    assert second.request.body()["key"] == name("orders")
    assert second.response is not None
    assert second.response.body()["host"] == host("10.0.0.2")
    assert second.response.body()["port"] == 9092


def test_what_messages_tell_of_addresses_is_what_headers_have() -> None:
    (found,) = after(
        (
            request("FindCoordinator", 0, key="g"),
            response("FindCoordinator", 0, errorCode=0, nodeId=7, host="10.0.0.2", port=9092),
        )
    )
    assert found.response is not None
    assert found.broker.startswith(found.response.body()["host"])


def configs() -> tuple[bytes, bytes]:
    entries = [
        {"name": "retention.ms", "value": "60000"},
        {"name": "cleanup.policy", "value": "compact,delete"},
        {"name": "sasl.jaas.config", "value": "password of alice"},
        {"name": "acme.secret", "value": "12345678"},
    ]
    asked = request(
        "AlterConfigs",
        0,
        resources=[{"resourceType": 2, "resourceName": "orders", "configs": entries}],
        validateOnly=False,
    )
    answer = {
        "errorCode": 40,
        "errorMessage": "no 'password of alice'",
        "resourceType": 2,
        "resourceName": "orders",
    }
    return asked, response("AlterConfigs", 0, throttleTimeMs=0, responses=[answer])


def test_settings_that_are_no_secrets_stay_and_others_go() -> None:
    (found,) = after(configs())
    assert found.request is not None
    (resource,) = found.request.body()["resources"]
    values = {each["name"]: each["value"] for each in resource["configs"]}
    assert values["retention.ms"] == "60000"
    assert values["cleanup.policy"] == "compact,delete"
    assert set(values[name("sasl.jaas.config")]) == {"x"}
    assert set(values[name("acme.secret")]) == {"x"}
    assert found.error == "INVALID_CONFIG"
    assert found.response is not None
    assert set(found.response.body()["responses"][0]["errorMessage"]) == {"x"}


def test_brokers_keep_their_numbers() -> None:
    resource = {"resourceType": 4, "resourceName": "1001", "configurationKeys": None}
    (found,) = after(
        (
            request("DescribeConfigs", 1, resources=[resource], includeSynonyms=False),
            response("DescribeConfigs", 1, throttleTimeMs=0, results=[]),
        )
    )
    assert found.request is not None
    assert found.request.body()["resources"][0]["resourceName"] == "1001"


def test_unknown_tagged_fields_are_left_out() -> None:
    asked = request("ApiVersions", 3, clientSoftwareName="acme", clientSoftwareVersion="3.9.0")
    tagged = asked[:-1] + b"\x01\x63\x0b" + b"tell-secret"[:11]
    said = Talk()
    said.ask(tagged)
    result = scrubbed(packets_of(said))
    assert b"tell-secret" not in result.file
    (found,) = exchanges(result.packets)
    assert found.request_size == len(tagged)


def test_of_an_unknown_api_only_the_header_stays() -> None:
    asked = b"\x7f\x00\x00\x01\0\0\0\x05\0\x04test" + b"whatever it says"
    said = Talk()
    said.ask(request("ApiVersions", 0)).answer(response("ApiVersions", 0, errorCode=0, apiKeys=[]))
    said.ask(asked)
    result = scrubbed(packets_of(said))
    assert b"whatever" not in result.file
    assert exchanges(result.packets)[-1].api_key == 0x7F00


def test_records_become_filler_and_keep_their_places() -> None:
    records = write_batch([Record(0, 1, b"customer-1", b"bought a car"), Record(1, 2, b"customer-1", None)])
    (found,) = after((produce(records), response("Produce", 3, responses=[], throttleTimeMs=0)))
    assert found.request is not None
    first, second = found.request.records()
    assert first.key == second.key == Scrubber(KEY).key(b"customer-1")
    assert first.value == bytes(len("bought a car"))
    assert second.value is None


def produce(records: bytes) -> bytes:
    """A Produce request of version 3: tests' JSON has no form for records."""
    text = b"\0\x06orders"
    head = b"\0\0\0\x03\0\0\0\x01\0\x04test"
    data = b"\0\0\0\x01" + text + b"\0\0\0\x01\0\0\0\x03" + len(records).to_bytes(4, "big") + records
    return head + b"\xff\xff" + b"\0\x01" + b"\0\0\x75\x30" + data


def shape(value: Any) -> Any:
    """A body without what texts and bytes say."""
    if isinstance(value, dict):
        return {each: shape(inner) for each, inner in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogateescape"))
    return len(value) if isinstance(value, bytes) else value


def bodies(found: list[Exchange]) -> Iterator[Any]:
    for exchange in found:
        for message in exchange.messages:
            yield exchange.number, message.kind, message.header().get("correlationId"), shape(message.body())
            message.forget_body()


CASES = ["java43-kip848", "java43-denied", "sweep-44"]


@pytest.mark.parametrize("case", some(CLEAR_CASES, len(CASES), *CASES))
def test_messages_keep_their_form(case: str) -> None:
    items = list(Case(case).packets())
    before, made = exchanges(items), exchanges(scrubbed(items).packets)
    for was, now in zip(bodies(before), bodies(made), strict=True):
        assert was == now


@pytest.mark.parametrize("at", range(0, 60, 3))
def test_a_damaged_message_tells_nothing(at: int) -> None:
    topics = [{"name": "orders-of-alice"}, {"name": "invoices-of-bob"}]
    asked = request("Metadata", 1, client_id="billing", topics=topics)
    begin = asked.index(b"\0\0\0\x02") + at % (len(asked) - asked.index(b"\0\0\0\x02"))
    for change in (0x01, 0x55, 0x7F, 0xFF):
        broken = bytearray(asked)
        broken[begin] ^= change
        said = (
            Talk().ask(request("ApiVersions", 0)).answer(response("ApiVersions", 0, errorCode=0, apiKeys=[]))
        )
        said.ask(bytes(broken))
        data = scrubbed(packets_of(said)).file
        assert not any(word in data for word in (b"orde", b"alice", b"invo", b"bob", b"billing"))
