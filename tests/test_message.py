"""Message: a frame, its header, and its decoded body."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from kdissect.limits import DEFAULTS
from kdissect.message import Message, Request, Response, Token, bare_frame, parse_request, parse_response
from kdissect.model import DecodeError, Node
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.kafka import METADATA_RESPONSE_1, request, response
from tests.session.runs import cut_frame, frame, metadata, metadata_answer


def leaves(node: Node) -> list[Node]:
    return [node] if not node.children else [leaf for child in node.children for leaf in leaves(child)]


def assert_covers(message: Message) -> None:
    """Check that the leaves of its tree contain every byte of the payload exactly once."""
    position = 0
    for leaf in leaves(message.annotate()):
        assert leaf.start == position
        position = leaf.end
    assert position == len(message.frame.payload)


def test_a_request_says_itself_what_it_is() -> None:
    message = parse_request(frame(metadata(7)))
    assert (message.api_key, message.api_version, message.correlation_id) == (3, 1, 7)
    assert (message.client_id, message.header_version) == ("test", 1)
    assert message.header() == {
        "requestApiKey": 3,
        "requestApiVersion": 1,
        "correlationId": 7,
        "clientId": "test",
    }
    assert message.body() == {"topics": [{"name": "orders"}]}
    assert message.decoded().is_exact
    assert message.faults == ()
    assert_covers(message)


def test_a_response_is_read_as_its_request_says() -> None:
    message = parse_response(frame(metadata_answer(7)), 3, 1)
    assert (message.correlation_id, message.header_version) == (7, 0)
    assert message.body() == METADATA_RESPONSE_1
    assert_covers(message)


def test_a_response_whose_request_is_not_known_is_opaque() -> None:
    message = parse_response(frame(metadata_answer(7)), None, None)
    body = message.decoded()
    assert (body.struct, body.opaque) == (None, "the request is not known")
    assert body.remainder == metadata_answer(7)[4:]
    assert message.faults == ()
    assert_covers(message)


def test_an_unknown_api_or_version_is_opaque_and_a_fault() -> None:
    for payload, why in (
        ((4711).to_bytes(2, "big") + metadata(1)[2:], "unknown API key 4711"),
        (metadata(1)[:2] + b"\0\x63" + metadata(1)[4:], "unknown version 99 of Metadata (known: 0 to 13)"),
    ):
        message = parse_request(frame(payload))
        assert message.decoded().opaque == why
        assert [(fault.layer, fault.kind) for fault in message.faults] == [("session", "unknown-api")]
        assert_covers(message)


def test_a_token_has_no_header_and_its_bytes_are_its_body() -> None:
    message = Token(frame(b"\0alice\0secret"), "request")
    assert (message.header_struct(), message.header(), message.header_version) == (None, {}, None)
    assert message.body() == {"authBytes": b"\0alice\0secret"}
    assert_covers(message)


def test_a_message_that_is_only_a_body_has_no_header() -> None:
    data = request("Metadata", 1, topics=[])[14:]
    message = Request(bare_frame(data), 3, 1, 0, None, header_version=None, body_start=0)
    assert (message.header_struct(), message.header(), message.body()) == (None, {}, {"topics": []})
    answer = Response(bare_frame(metadata_answer(1)[4:]), 3, 1, 0, header_version=None, body_start=0)
    assert (answer.header(), answer.body()) == ({}, METADATA_RESPONSE_1)


def test_a_message_that_was_cut_has_what_was_captured_and_only_the_fault_of_its_frame() -> None:
    whole = metadata_answer(7)
    for captured in range(4, len(whole)):
        message = parse_response(cut_frame(whole, captured), 3, 1)
        assert message.is_cut
        assert message.faults == (), captured
        assert_covers(message)
    assert message.body()["brokers"] == METADATA_RESPONSE_1["brokers"]


def test_what_is_wrong_with_a_message_that_was_cut_is_told_all_the_same() -> None:
    broken = metadata(1)[:-6] + b"\xff\xfe" + metadata(1)[-4:]
    message = parse_request(cut_frame(broken, len(broken) - 1))
    assert [fault.kind for fault in message.faults] == []
    names: list[dict[str, Any]] = [{"name": "a"}, {"name": "b"}]
    broken = request("Metadata", 1, 1, topics=names).replace(b"\0\x01a", b"\0\x01\xff")
    message = parse_request(cut_frame(broken, len(broken) - 1))
    assert [fault.kind for fault in message.faults] == ["not-utf8"]


def test_a_limit_is_told_also_where_the_message_was_cut() -> None:
    whole = request("Metadata", 1, 1, topics=[{"name": "orders"}] * 20)
    limits = DEFAULTS._replace(elements=10)
    for captured in (len(whole), len(whole) - 1):
        message = parse_request(cut_frame(whole, captured), limits)
        assert [(fault.kind, fault.message) for fault in message.faults] == [
            ("too-many-elements", "announces 20 elements, but the limit is 10")
        ]
        assert_covers(message)


def test_the_limits_hold_for_body_and_tree_and_records() -> None:
    whole = request("Metadata", 1, 1, topics=[{"name": "orders"}] * 20)
    message = parse_request(frame(whole), DEFAULTS._replace(message_elements=19))
    assert [fault.kind for fault in message.faults] == ["too-many-elements"]
    (node,) = [node for node in message.annotate().children if node.fault is not None]
    assert node.fault is not None
    assert node.fault.kind == "too-many-elements"
    answer = response("Metadata", 1, 1, **METADATA_RESPONSE_1)
    small = parse_response(frame(answer), 3, 1, DEFAULTS._replace(message_elements=1))
    assert [fault.kind for fault in small.faults] == ["too-many-elements"]
    batch = write_batch([Record(0, 1, None, b"v" * 100_000)], 1)
    produce = parse_request(frame(produced(batch)), DEFAULTS._replace(decompressed_bytes=1_000))
    assert [fault.kind for fault in produce.record_faults(may_end_early=False)] == ["decompression-limit"]
    assert list(produce.records()) == []
    assert len(list(parse_request(frame(produced(batch))).records())) == 1


def produced(batch: bytes) -> bytes:
    """A Produce request with this record set, which the encoder takes as base64."""
    partition = {"index": 0, "records": b64encode(batch).decode()}
    topics = [{"name": "orders", "partitionData": [partition]}]
    return request("Produce", 9, 1, transactionalId=None, acks=1, timeoutMs=1, topicData=topics)


def test_a_record_set_that_ends_early_is_a_fault_where_that_is_not_ordinary() -> None:
    batch = write_batch([Record(0, 1, None, b"value")])
    message = parse_request(frame(produced(batch + batch[:30])))
    assert [fault.kind for fault in message.record_faults(may_end_early=False)] == ["partial-batch"]
    assert list(message.record_faults(may_end_early=True)) == []
    assert [record.value for record in message.records()] == [b"value"]


def test_bytes_that_no_field_accounts_for_are_the_remainder() -> None:
    message = parse_request(frame(metadata(1) + b"more"))
    assert message.decoded().remainder == b"more"
    assert not message.decoded().is_exact
    assert [(f.kind, f.packet, f.offset) for f in message.faults] == [("remainder", 1, len(metadata(1)))]
    assert message.annotate().children[-1].value == b"more"
    assert_covers(message)


def test_a_header_that_breaks_off_is_an_error() -> None:
    for end in range(14):
        with pytest.raises(DecodeError):
            parse_request(frame(metadata(1)[:end]))
    with pytest.raises(DecodeError):
        parse_response(frame(b"\0\0\0"), None, None)


def test_a_broker_that_does_not_know_the_version_of_api_versions_answers_in_version_0() -> None:
    answer = response("ApiVersions", 0, 1, errorCode=35, apiKeys=[])
    for version in (3, 99):
        message = parse_response(frame(answer), 18, version)
        assert message.body() == {"errorCode": 35, "apiKeys": []}
        assert message.faults == ()
