"""Which bytes fields of which messages hold what: one table, and the one function that follows it.

Group members send each other blobs through the coordinator, which does not look into them: what they
are depends on the group's protocol type (KIP-62, Connect's KIP-415), and their user data on the
partition assignor. Where the message says the protocol type, the blob is read as that and defects are
reported. Where it does not (SyncGroup before version 5), the blob is only decoded if it is a consumer
protocol blob to its last byte; anything else would be a guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any, NamedTuple

from kdissect.embedded.decoded import Context, Embedded, Render, plain, read_struct
from kdissect.embedded.envelope import EmbeddedMessage, inner_request, inner_response
from kdissect.embedded.internal import read_blob
from kdissect.faults import fault
from kdissect.model import Fault, Node
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.schema import data_struct

SUBSCRIPTION, ASSIGNMENT = 0, 1
"""The two kinds of blobs of every group protocol: what members tell the leader, what it tells them."""

GROUP_PROTOCOLS = {
    "consumer": ("consumer-protocol", ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")),
    "connect": ("connect", ("ConnectWorkerState", "ConnectAssignment")),
}
"""Protocol type: family, classes of the two kinds."""

GROUP_FIELDS = {
    ("JoinGroupRequest", "metadata"): (SUBSCRIPTION, "name"),
    ("JoinGroupResponse", "metadata"): (SUBSCRIPTION, "protocolName"),
    ("SyncGroupRequest", "assignment"): (ASSIGNMENT, "protocolName"),
    ("SyncGroupResponse", "assignment"): (ASSIGNMENT, "protocolName"),
    ("DescribeGroupsResponse", "memberMetadata"): (SUBSCRIPTION, "protocolData"),
    ("DescribeGroupsResponse", "memberAssignment"): (ASSIGNMENT, "protocolData"),
    ("GroupMetadataValue", "subscription"): (SUBSCRIPTION, "protocol"),
    ("GroupMetadataValue", "assignment"): (ASSIGNMENT, "protocol"),
    ("ConsumerGroupMemberMetadataValue", "metadata"): (SUBSCRIPTION, "name"),
}
"""Message class and field: kind of blob, and the field that names the assignor."""

ALWAYS_CONSUMER = ("ConsumerGroupMemberMetadataValue",)
"""Classes that keep no protocol type, for there is only one it can be."""

USER_DATA = {
    ("ConsumerProtocolSubscription", "stream"): ("SubscriptionInfoData",),
    ("ConsumerProtocolAssignment", "stream"): ("AssignmentInfo",),
    ("ConsumerProtocolSubscription", "sticky"): ("StickyAssignorUserData",),
    ("ConsumerProtocolSubscription", "cooperative-sticky"): ("CooperativeStickyAssignorUserData",),
}
"""Class and the name that Kafka's own assignor has: class of its user data."""


class EmbeddedText(NamedTuple):
    """Bytes that are one plain value."""

    name: str
    data: bytes
    text: str
    faults: tuple[Fault, ...] = ()

    def json(self, _: Render = plain) -> str:
        """The value itself."""
        return self.text

    def draw(self, _: bytes, at: int) -> list[Node]:
        """One node."""
        return [Node("(value)", self.name, self.text, at, at + len(self.data))]


TEXTS = {
    ("SubscriptionInfoData", "userEndPoint"),
    ("SubscriptionInfoData", "key"),
    ("SubscriptionInfoData", "value"),
}
"""Bytes that are text: a Streams instance's ``host:port``, and its client tags."""

CARRIERS = frozenset(
    {"ConnectWorkerState", "EnvelopeRequest", "EnvelopeResponse"}
    | {message for message, _ in (*GROUP_FIELDS, *USER_DATA, *TEXTS)}
)
"""Message classes that have bytes with something in them; in no other need be looked for any."""

NO_CONTEXT = Context()

Decoded = Embedded | EmbeddedMessage | EmbeddedText


def decode_field(
    message: str, ancestors: Sequence[dict[str, Any]], name: str, value: Any, context: Context = NO_CONTEXT
) -> Decoded | None:
    """What a field of decoded values holds; None where it holds nothing that is known for certain.

    :param message: Kafka's name of the message class, such as ``JoinGroupRequest``.
    :param ancestors: the values of the structs around the field, the message's first.
    :param name: of the field.
    :param context: :attr:`Embedded.context` where the message is embedded itself; for a response, with
        the values of its request.
    """
    if not value or not isinstance(value, bytes):
        return None
    place = (message, name)
    if place in GROUP_FIELDS:
        return _group_blob(message, name, ancestors, value, context)
    if name == "userData":
        return _user_data(message, value, context)
    if place in TEXTS:
        return _text(value)
    if place == ("ConnectWorkerState", "allocation"):
        return _blamed(read_blob("connect", value, "ConnectAssignment", context.limits))
    return None if context.enveloped else _envelope(place, value, context)


def _group_blob(
    message: str, name: str, ancestors: Sequence[dict[str, Any]], value: bytes, context: Context
) -> Embedded | None:
    kind, assignor_field = GROUP_FIELDS[message, name]
    around = [context.request or {}, *ancestors]
    protocol_type = "consumer" if message in ALWAYS_CONSUMER else _nearest(around, "protocolType")
    family, classes = GROUP_PROTOCOLS.get(protocol_type or "consumer", ("", ()))
    if not family:
        return None
    found = read_blob(family, value, classes[kind], context.limits)
    if protocol_type is None and not found.is_exact:
        return None
    assignor = _nearest(around, assignor_field)
    return _blamed(found._replace(context=Context(assignor=assignor, limits=context.limits)))


def _nearest(around: Sequence[dict[str, Any]], name: str) -> str | None:
    """The value of a field in the innermost struct that says it; empty, as for a dead group, is nothing."""
    for values in reversed(around):
        if values.get(name):
            return str(values[name])
    return None


def _user_data(message: str, value: bytes, context: Context) -> Embedded | None:
    """An assignor's user data. Other clients have assignors of the same names with forms of their own:
    only what fits to the last byte is taken for Kafka's."""
    (name,) = USER_DATA.get((message, context.assignor or ""), (None,))
    if name is None:
        return None
    if context.assignor == "stream":
        found = read_blob("streams", value, name, context.limits)
    else:
        versions = reversed(apis.data_versions(name))
        cursor = Cursor(value, limits=context.limits)
        found = read_struct(name, 0, cursor, (), [data_struct(name, each) for each in versions])
        found = found._replace(version=found.struct.version if found.struct else None)
    return found if found.is_exact else None


def _text(value: bytes) -> EmbeddedText | None:
    try:
        return EmbeddedText("UTF-8", value, value.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _envelope(place: tuple[str, str], value: bytes, context: Context) -> Decoded | None:
    if place == ("EnvelopeRequest", "requestData"):
        return _blamed_message(inner_request(value, context.limits))
    if place == ("EnvelopeRequest", "requestPrincipal"):
        # A broker may have a principal builder of its own, with a form of its own.
        found = read_blob("principal", value, "DefaultPrincipalData", context.limits)
        return found if found.is_exact else None
    if place == ("EnvelopeRequest", "clientHostAddress") and len(value) in (4, 16):
        return EmbeddedText("InetAddress", value, str(ip_address(value)))
    if place == ("EnvelopeResponse", "responseData"):
        asked = (context.request or {}).get("requestData")
        answer = inner_response(value, asked, context.limits) if asked else None
        return answer and _blamed_message(answer)
    return None


def _blamed_message(found: EmbeddedMessage) -> EmbeddedMessage:
    return found._replace(header=_blamed(found.header), body=_blamed(found.body))


def _blamed(found: Embedded) -> Embedded:
    """Defects as the message around reports them: in its offsets they have no place."""
    faults = tuple(
        each
        if each.kind == "unknown-version"
        else fault("embedded", f"{each.message} (at its byte {each.offset})")
        for each in found.faults
    )
    return found._replace(faults=tuple(each._replace(offset=None) for each in faults))
