"""Trees with trees in them, over real groups and a real cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.embedded.decoded import Context
from kdissect.embedded.fields import decode_field
from kdissect.embedded.tree import expand_embedded
from kdissect.model import Node
from kdissect.protocol.json_form import to_json
from kdissect.protocol.schema import Field, Struct
from tests.lab import Case, dissected
from tests.protocol.official import leaves


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        (
            "streams-classic",
            {
                "ConsumerProtocolSubscription",
                "ConsumerProtocolAssignment",
                "SubscriptionInfoData",
                "AssignmentInfo",
            },
        ),
        (
            "java43-groups",
            {"ConsumerProtocolSubscription", "CooperativeStickyAssignorUserData", "StickyAssignorUserData"},
        ),
        (
            "cluster43-combined",
            {"CreateTopicsRequest", "CreateTopicsResponse", "DefaultPrincipalData", "InetAddress"},
        ),
        ("sarama", {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"}),
        ("broker-0.9", {"ConsumerProtocolSubscription", "ConsumerProtocolAssignment"}),
    ],
)
def test_real_messages_hold_what_they_say_and_trees_cover_it(name: str, kinds: set[str]) -> None:
    seen: set[str] = set()
    for exchange in dissected(Case(name).packets()).exchanges:
        asked = exchange.request.body() if exchange.request else None
        for message in (exchange.request, exchange.response):
            if message is None or message.decoded().struct is None:
                continue
            body = message.decoded()
            assert body.struct is not None
            context = Context(request=asked if message is exchange.response else None)
            render(body.struct, body.values, b"", context, seen)
            root = message.annotate()
            (node,) = [child for child in root.children if child.name == "body"]
            expand_embedded(body.struct.name, body.values, node, message.frame.payload, context)
            assert_covers(root)
    assert kinds <= seen


def render(
    struct: Struct, values: dict[str, Any], remainder: bytes, context: Context, seen: set[str]
) -> dict[str, Any]:
    """What ``--embedded`` does: the decoded value beside the bytes, as deep as it goes."""
    assert not remainder

    def inner(struct: Struct, values: dict[str, Any], remainder: bytes, context: Context) -> dict[str, Any]:
        return render(struct, values, remainder, context, seen)

    def hook(
        ancestors: list[dict[str, Any]], _: Struct, field: Field, value: Any, out: dict[str, Any]
    ) -> bool:
        found = decode_field(struct.name, ancestors, field.name, value, context)
        if found is None:
            return False
        assert found.faults == ()
        seen.add(found.name)
        out[field.name + "Decoded"] = found.json(inner)
        return True

    return to_json(struct, values, hook)


def assert_covers(root: Node) -> None:
    end = 0
    for leaf in leaves(root):
        assert leaf.start == end
        end = leaf.end
    assert end == root.end


def test_trees_go_as_deep_as_the_bytes() -> None:
    for exchange in dissected(Case("streams-classic").packets()).exchanges:
        request = exchange.request
        if request is None or exchange.api != "JoinGroup":
            continue
        body = request.decoded()
        assert body.struct is not None
        root = request.annotate()
        (node,) = [child for child in root.children if child.name == "body"]
        expand_embedded(body.struct.name, body.values, node, request.frame.payload)
        path = ["protocols", "[0]", "metadata", "ConsumerProtocolSubscription", "userData"]
        for name in [*path, "SubscriptionInfoData", "processId"]:
            (node,) = [child for child in node.children if child.name == name]
        assert isinstance(node.value, str)
        return
    pytest.fail("the capture has no JoinGroup")


def test_a_tagged_field_is_expanded_too() -> None:
    from kdissect.protocol.annotate import annotate
    from kdissect.protocol.cursor import Cursor
    from kdissect.protocol.decode import decode
    from kdissect.protocol.encode import encode
    from kdissect.protocol.schema import data_struct
    from tests.embedded.official import one

    struct = data_struct("ConsumerGroupMemberMetadataValue", 0)
    blob = one("consumer-protocol", "ConsumerProtocolSubscription", 3)
    classic = {"sessionTimeoutMs": 1, "supportedProtocols": [{"name": "range", "metadata": blob.value}]}
    absent = {"instanceId": None, "rackId": None, "subscribedTopicRegex": None, "serverAssignor": None}
    data = encode(struct, {**absent, "classicMemberMetadata": classic})
    values, root = decode(struct, Cursor(data)), annotate(struct, Cursor(data))
    expand_embedded(struct.name, values, root, data)
    assert_covers(root)
    assert any(leaf.name == "rackId" and leaf.value == blob.json["rackId"] for leaf in leaves(root))
