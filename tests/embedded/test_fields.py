"""Which bytes of which message hold what, and when it may be said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kdissect.embedded.decoded import Context, Embedded
from kdissect.embedded.envelope import EmbeddedMessage
from kdissect.embedded.fields import HOLDERS, KINDS, Decoded, decode_field
from kdissect.embedded.internal import encode_internal
from kdissect.limits import DEFAULTS
from kdissect.protocol import apis
from kdissect.protocol.definition import Document
from kdissect.protocol.library import library
from kdissect.protocol.traits import field_traits
from tests.embedded.official import one
from tests.kafka import request
from tests.protocol.structs import within

SUBSCRIPTION = one("consumer-protocol", "ConsumerProtocolSubscription", 3)
ASSIGNMENT = one("consumer-protocol", "ConsumerProtocolAssignment", 3)
WORKER = one("connect", "ConnectWorkerState", 2)
CONNECT = one("connect", "ConnectAssignment", 2)
JOIN: dict[str, Any] = {
    "groupId": "g",
    "sessionTimeoutMs": 1,
    "memberId": "",
    "protocolType": "consumer",
    "protocols": [{"name": name, "metadata": ""} for name in ("range", "sticky")],
}


def name_of(found: Decoded | None) -> str | None:
    return None if found is None else found.name


@pytest.mark.parametrize(
    ("message", "ancestors", "name", "kind"),
    [
        ("JoinGroupRequest", [{"protocolType": "TYPE"}, {"name": "range"}], "metadata", 0),
        ("JoinGroupResponse", [{"protocolType": "TYPE", "protocolName": "range"}, {}], "metadata", 0),
        ("SyncGroupRequest", [{"protocolType": "TYPE", "protocolName": "range"}, {}], "assignment", 1),
        ("SyncGroupResponse", [{"protocolType": "TYPE", "protocolName": "range"}], "assignment", 1),
        ("DescribeGroupsResponse", [{}, {"protocolType": "TYPE"}, {}], "memberMetadata", 0),
        ("DescribeGroupsResponse", [{}, {"protocolType": "TYPE"}, {}], "memberAssignment", 1),
        ("GroupMetadataValue", [{"protocolType": "TYPE", "protocol": "range"}, {}], "subscription", 0),
        ("GroupMetadataValue", [{"protocolType": "TYPE", "protocol": "range"}, {}], "assignment", 1),
    ],
)
def test_blobs_of_group_members_are_what_the_protocol_type_says(
    message: str, ancestors: list[dict[str, str]], name: str, kind: int
) -> None:
    for protocol_type, vectors in (("consumer", (SUBSCRIPTION, ASSIGNMENT)), ("connect", (WORKER, CONNECT))):
        around = [{k: v.replace("TYPE", protocol_type) for k, v in each.items()} for each in ancestors]
        found = decode_field(message, around, name, vectors[kind].value)
        assert isinstance(found, Embedded)
        assert (found.name, found.json(), found.faults) == (vectors[kind].name, vectors[kind].json, ())
    other = [{k: v.replace("TYPE", "sr") for k, v in each.items()} for each in ancestors]
    assert decode_field(message, other, name, b"{}") is None


def classes() -> Iterator[tuple[str, Document, str | None]]:
    """Every message class: its name, and where it is defined."""
    for key in apis.api_keys():
        for kind in ("request", "response"):
            yield apis.api_name(key) + kind.capitalize(), library().api(key), kind
    for name in apis.data_names():
        yield name, library().data_class(name), None


def names_in(document: Document, kind: str | None) -> set[str]:
    return {
        field.name
        for block in document.blocks
        if kind in (None, block.kind)
        for field in within(block.fields)
    }


def test_every_word_of_the_definitions_is_known_and_names_fields_and_classes_that_exist() -> None:
    asked = {}
    for message, document, kind in classes():
        for held in field_traits(message).holds.values():
            words = held.split()
            if words[0] in HOLDERS and " by " in held:
                assert words[-3] in KINDS, held
                assert words[-1] in names_in(document, kind), held
            elif words[0] == "response":
                assert words[-1] in names_in(document, "request"), held
            elif words[0] in HOLDERS:
                assert held == words[0]
            else:
                named = [each.split()[0] for each in held.split(" or ")]
                assert set(named) <= set(apis.data_names()), held
            asked[words[0]] = held
    assert asked.keys() >= HOLDERS.keys()


def test_only_bytes_hold_something() -> None:
    for message, document, _ in classes():
        for block in document.blocks:
            for field in within(block.fields):
                assert field.holds is None or field.type == "bytes", (message, field.name)


def test_an_old_join_response_takes_the_type_from_its_request() -> None:
    context = Context(request={"protocolType": "connect"})
    ancestors = [{"protocolName": "sessioned"}, {}]
    assert (
        name_of(decode_field("JoinGroupResponse", ancestors, "metadata", WORKER.value, context))
        == WORKER.name
    )
    assert decode_field("JoinGroupResponse", ancestors, "metadata", WORKER.value) is None


def test_without_a_type_only_a_whole_consumer_blob_is_decoded() -> None:
    value = ASSIGNMENT.value or b""
    assert name_of(decode_field("SyncGroupResponse", [{}], "assignment", value)) == ASSIGNMENT.name
    for wrong in (value + b"\0", value[:-1], b"\0\x09" + value[2:], CONNECT.value):
        assert decode_field("SyncGroupResponse", [{}], "assignment", wrong) is None


def test_with_a_type_defects_are_reported_without_an_offset_of_the_message() -> None:
    ancestors = [{"protocolType": "consumer"}]
    found = decode_field("SyncGroupResponse", ancestors, "assignment", (ASSIGNMENT.value or b"")[:-1])
    assert isinstance(found, Embedded)
    (fault,) = found.faults
    assert (fault.kind, fault.layer, fault.offset) == ("embedded", "message", None)
    newer = decode_field(
        "SyncGroupResponse", ancestors, "assignment", b"\0\x09" + (ASSIGNMENT.value or b"")[2:]
    )
    assert isinstance(newer, Embedded)
    assert [each.kind for each in newer.faults] == ["unknown-version"]


@pytest.mark.parametrize("value", [b"", None, "text", 7])
def test_nothing_is_nothing(value: Any) -> None:
    assert decode_field("SyncGroupResponse", [{"protocolType": "consumer"}], "assignment", value) is None


def test_fields_that_hold_nothing_known_are_left_alone() -> None:
    assert decode_field("SaslAuthenticateRequest", [{}], "authBytes", b"\0a\0b") is None
    assert decode_field("ConsumerProtocolSubscription", [{}], "userData", b"\0\0\0\x01") is None


# -- user data of assignors -------------------------------------------------------------------------


def user_data(kind: str, assignor: str, data: bytes) -> Decoded | None:
    message = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}[
        kind
    ]
    return decode_field(message, [{}], "userData", data, Context(assignor=assignor))


@pytest.mark.parametrize("version", range(1, 12))
def test_streams_user_data(version: int) -> None:
    for kind, name in (("subscription", "SubscriptionInfoData"), ("assignment", "AssignmentInfo")):
        known = one("streams", name, version)
        found = user_data(kind, "stream", known.value or b"")
        assert isinstance(found, Embedded)
        assert (found.name, found.version, found.json()) == (name, version, known.json)
        assert user_data(kind, "range", known.value or b"") is None


def test_sticky_user_data_with_and_without_a_generation() -> None:
    owned = bytes.fromhex("00000001 0001 61 00000002 00000000 00000001")
    partitions = [{"topic": "a", "partitions": [0, 1]}]
    found = user_data("subscription", "sticky", owned + b"\0\0\0\x07")
    assert isinstance(found, Embedded)
    assert (found.version, found.json()) == (1, {"previousAssignment": partitions, "generation": 7})
    older = user_data("subscription", "sticky", owned)
    assert isinstance(older, Embedded)
    assert (older.version, older.json()) == (0, {"previousAssignment": partitions})
    assert user_data("subscription", "sticky", owned[:-1]) is None
    assert user_data("assignment", "sticky", owned) is None


def test_cooperative_sticky_user_data() -> None:
    found = user_data("subscription", "cooperative-sticky", b"\0\0\0\x05")
    assert found is not None
    assert found.json() == {"generation": 5}
    assert user_data("subscription", "cooperative-sticky", b"\0\0\0\x05\0") is None


def test_the_assignor_comes_with_the_blob() -> None:
    found = decode_field(
        "JoinGroupRequest", [{"protocolType": "consumer"}, {"name": "stream"}], "metadata", SUBSCRIPTION.value
    )
    assert isinstance(found, Embedded)
    assert found.context.assignor == "stream"


def test_texts_of_streams_are_text() -> None:
    found = decode_field("SubscriptionInfoData", [{}], "userEndPoint", b"host:8080")
    assert found is not None
    assert found.json() == "host:8080"
    assert decode_field("SubscriptionInfoData", [{}, {}], "key", b"\xff") is None


def test_a_connect_worker_tells_its_last_assignment() -> None:
    found = decode_field("ConnectWorkerState", [{}], "allocation", CONNECT.value)
    assert found is not None
    assert found.json() == CONNECT.json


def test_a_converted_member_keeps_its_classic_subscription() -> None:
    found = decode_field(
        "ConsumerGroupMemberMetadataValue", [{}, {}, {"name": "range"}], "metadata", SUBSCRIPTION.value
    )
    assert found is not None
    assert found.json() == SUBSCRIPTION.json


# -- limits -----------------------------------------------------------------------------------------

FEW = DEFAULTS._replace(elements=1)


def test_the_limits_of_the_context_hold_for_what_is_embedded() -> None:
    _, data = encode_internal(
        "consumer-protocol",
        "ConsumerProtocolSubscription",
        0,
        None,
        {"topics": ["a", "b"], "userData": None},
    )
    around: list[dict[str, Any]] = [{"protocolType": "consumer"}, {"name": "range"}]
    found = decode_field("JoinGroupRequest", around, "metadata", data)
    assert found is not None
    assert found.faults == ()
    limited = decode_field("JoinGroupRequest", around, "metadata", data, Context(limits=FEW))
    assert isinstance(limited, Embedded)
    (fault,) = limited.faults
    assert "2 elements, but the limit is 1" in fault.message
    assert limited.context.limits is FEW


def test_they_hold_for_the_message_in_an_envelope_and_for_what_is_in_that() -> None:
    inner = request("JoinGroup", 0, 1, **JOIN)
    found = decode_field("EnvelopeRequest", [{}], "requestData", inner, Context(limits=FEW))
    assert isinstance(found, EmbeddedMessage)
    assert found.body.context == Context(enveloped=True, limits=FEW)
    (fault,) = found.faults
    assert "2 elements, but the limit is 1" in fault.message


# -- envelopes' other fields ------------------------------------------------------------------------


def test_the_principal_of_an_envelope() -> None:
    body = {"type": "User", "name": "alice", "tokenAuthenticated": False}
    _, data = encode_internal("principal", "DefaultPrincipalData", 0, None, body)
    found = decode_field("EnvelopeRequest", [{}], "requestPrincipal", data)
    assert found is not None
    assert found.json() == body
    assert decode_field("EnvelopeRequest", [{}], "requestPrincipal", b"\0\0of their own") is None


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"\x0a\0\0\x07", "10.0.0.7"), (bytes(15) + b"\x01", "::1"), (b"\x0a", None)],
)
def test_the_client_of_an_envelope(data: bytes, text: str | None) -> None:
    found = decode_field("EnvelopeRequest", [{}], "clientHostAddress", data)
    assert (found and found.json()) == text
