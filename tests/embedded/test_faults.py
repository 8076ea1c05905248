"""Faults inside bytes reach who asks for a message's faults, with the tree showing them where they lie."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.embedded.decoded import Context
from kdissect.embedded.faults import embedded_faults
from kdissect.embedded.internal import encode_internal
from kdissect.embedded.tree import expand_embedded
from kdissect.model import Fault, Node
from kdissect.protocol.annotate import annotate
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import data_struct, message_struct

NAME = "ConsumerProtocolSubscription"


def subscription(version: int) -> bytes:
    body: dict[str, object] = {"topics": ["a"], "userData": None}
    body |= {"ownedPartitions": [], "generationId": 1, "rackId": None} if version == 3 else {}
    blob = encode_internal("consumer-protocol", NAME, version, None, body)[1]
    assert blob is not None
    return blob


SUBSCRIPTION = subscription(0)
NEWER = b"\x7f\xff" + subscription(3)[2:]


def join(metadata: bytes, protocol_type: str = "consumer") -> dict[str, Any]:
    protocols = [{"name": "range", "metadata": metadata}]
    return {"groupId": "g", "protocolType": protocol_type, "protocols": protocols}


def join_faults(metadata: bytes) -> list[Fault]:
    return list(embedded_faults("JoinGroupRequest", join(metadata)))


def test_whole_bytes_have_none() -> None:
    assert join_faults(SUBSCRIPTION) == []


@pytest.mark.parametrize(
    ("metadata", "kind", "words"),
    [
        (SUBSCRIPTION[:-3], "embedded", f"{NAME}: "),
        (SUBSCRIPTION + b"\0", "embedded", f"{NAME}: 1 byte is left after the last field"),
        (NEWER, "unknown-version", "is newer than any known"),
        (b"\0", "embedded", "needs 2 bytes, but 1 is left"),
    ],
)
def test_what_is_wrong_is_told_without_an_offset_and_shown_in_the_tree(
    metadata: bytes, kind: str, words: str
) -> None:
    (found,) = join_faults(metadata)
    assert (found.layer, found.kind, found.offset, found.packet) == ("message", kind, None, None)
    assert words in found.message

    struct = message_struct(11, 0, "request")
    data = encode(struct, join(metadata))
    tree = annotate(struct, Cursor(data))
    expand_embedded(struct.name, join(metadata), tree, data)
    assert faulty(tree)


def faulty(node: Node) -> list[str]:
    own = [node.name] if node.fault else []
    return own + [name for child in node.children for name in faulty(child)]


def test_a_blob_of_a_protocol_that_is_not_known_is_nobodys_fault() -> None:
    values = join(SUBSCRIPTION[:-3], "mine")
    assert list(embedded_faults("JoinGroupRequest", values)) == []


def test_what_is_embedded_in_something_embedded_is_looked_into_as_well() -> None:
    header = encode(
        data_struct("RequestHeader", 1),
        {"requestApiKey": 11, "requestApiVersion": 0, "correlationId": 1, "clientId": "c"},
    )
    body = encode(message_struct(11, 0, "request"), join(SUBSCRIPTION + b"\0"))
    (found,) = embedded_faults("EnvelopeRequest", {"requestData": header + body})
    assert found.message == f"{NAME}: 1 byte is left after the last field (at its byte {len(SUBSCRIPTION)})"
    (found,) = embedded_faults("EnvelopeRequest", {"requestData": header + body[:-1]})
    assert found.message.startswith("JoinGroupRequest: ")


def test_a_response_needs_its_request() -> None:
    asked = {"requestData": bytes.fromhex("000c 0000 00000001 0000")}  # a Heartbeat
    answer = {"responseData": bytes.fromhex("00000001 00")}
    assert list(embedded_faults("EnvelopeResponse", answer)) == []
    (found,) = embedded_faults("EnvelopeResponse", answer, Context(asked))
    assert found.message.startswith("HeartbeatResponse: ")
