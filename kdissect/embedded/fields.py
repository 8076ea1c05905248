"""The content of bytes fields, as the definitions name it beside the field: ``holds …``.

Group members send each other blobs through the coordinator, which does not read them. The group's protocol
type decides their class (KIP-62, Connect's KIP-415). The partition assignor decides the class of their user
data. If the message has the protocol type, the blob is read as that class, and faults are reported. SyncGroup
before version 5 has no protocol type. There a blob is decoded only if it is one of the consumer protocol to
its last byte, since anything else would be a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any, NamedTuple

from kdissect.embedded.decoded import Context, Embedded, Render, plain, read_struct
from kdissect.embedded.envelope import EmbeddedMessage, inner_request, inner_response
from kdissect.embedded.internal import OWN, VERSIONED, read_blob
from kdissect.faults import fault
from kdissect.model import Fault, Node
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.schema import data_struct
from kdissect.protocol.traits import field_traits

KINDS = ("subscription", "assignment")
"""The two kinds of blobs of every group protocol: from members to the leader, and from the leader to members.
A family has its classes in this order."""

GROUP_PROTOCOLS = {"consumer": "consumer-protocol", "connect": "connect"}
"""The family of blobs of each protocol type."""


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


NO_CONTEXT = Context()

Decoded = Embedded | EmbeddedMessage | EmbeddedText


def decode_field(
    message: str, ancestors: Sequence[dict[str, Any]], name: str, value: Any, context: Context = NO_CONTEXT
) -> Decoded | None:
    """The content of a field; None if its class is not known for certain.

    :param message: Kafka's name of the message class, such as ``JoinGroupRequest``.
    :param ancestors: the values of the structs around the field, the message's first.
    :param name: the field's name.
    :param context: :attr:`Embedded.context` if the message is itself embedded; for a response, with the
        values of its request.
    """
    if not value or not isinstance(value, bytes):
        return None
    held = field_traits(message).holds.get(name)
    if held is None:
        return None
    what, _, more = held.partition(" ")
    return HOLDERS.get(what, _structs)(Holding(held, what, more, ancestors, value, context))


class Holding(NamedTuple):
    """The bytes of a field, and the facts about them."""

    trait: str
    """The words after ``holds`` in the definitions."""
    what: str
    """The first of these words."""
    more: str
    """The words after it."""
    ancestors: Sequence[dict[str, Any]]
    value: bytes
    context: Context


def _group_blob(held: Holding) -> Embedded | None:
    """``[consumer] subscription|assignment by FIELD``: a blob from a member, or to a member; the field names
    the assignor. With ``consumer``, the protocol type is known without a field."""
    is_consumers = held.what == "consumer"
    what, _, assignor_field = (held.more if is_consumers else held.trait).partition(" by ")
    around = [held.context.request or {}, *held.ancestors]
    protocol_type = "consumer" if is_consumers else _nearest(around, "protocolType")
    family = GROUP_PROTOCOLS.get(protocol_type or "consumer")
    if family is None:
        return None
    name = VERSIONED[family][KINDS.index(what)]
    found = read_blob(family, held.value, name, held.context.limits)
    if protocol_type is None and not found.is_exact:
        return None
    assignor = _nearest(around, assignor_field)
    return _blamed(found._replace(context=Context(assignor=assignor, limits=held.context.limits)))


def _nearest(around: Sequence[dict[str, Any]], name: str) -> str | None:
    """The value of a field in the innermost struct that has it; an empty value, as in a dead group, counts as
    missing."""
    for values in reversed(around):
        if values.get(name):
            return str(values[name])
    return None


def _structs(held: Holding) -> Embedded | None:
    """``CLASS``, ``CLASS if whole`` or ``CLASS of ASSIGNOR or CLASS of …``.

    The last form is an assignor's user data. Other clients have assignors with the same names and other
    forms. A broker may have its own principal builder. So these bytes are decoded only if Kafka's class fits
    to the last byte.
    """
    if " of " not in held.trait:
        found = _struct(held.what, held)
        if held.more != "if whole":
            return _blamed(found)
        return found if found.is_exact else None
    for each in held.trait.split(" or "):
        name, _, assignor = each.partition(" of ")
        if assignor == held.context.assignor:
            found = _struct(name, held)
            return found if found.is_exact else None
    return None


def _struct(name: str, held: Holding) -> Embedded:
    limits = held.context.limits
    family = next((family for family, names in (VERSIONED | OWN).items() if name in names), None)
    if family is not None:
        return read_blob(family, held.value, name, limits)
    versions = reversed(apis.data_versions(name))
    structs = [data_struct(name, each) for each in versions]
    found = read_struct(name, 0, Cursor(held.value, limits=limits), (), structs)
    return found._replace(version=found.struct.version if found.struct else None)


def _text(held: Holding) -> EmbeddedText | None:
    try:
        return EmbeddedText("UTF-8", held.value, held.value.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _address(held: Holding) -> EmbeddedText | None:
    if len(held.value) not in (4, 16):
        return None
    return EmbeddedText("InetAddress", held.value, str(ip_address(held.value)))


def _request(held: Holding) -> EmbeddedMessage | None:
    if held.context.enveloped:
        return None
    return _blamed_message(inner_request(held.value, held.context.limits))


def _response(held: Holding) -> EmbeddedMessage | None:
    """``response to FIELD``: FIELD is the field of the outer request that holds the inner request."""
    asked = (held.context.request or {}).get(held.more.removeprefix("to "))
    if held.context.enveloped or not asked:
        return None
    answer = inner_response(held.value, asked, held.context.limits)
    return answer and _blamed_message(answer)


HOLDERS: dict[str, Callable[[Holding], Decoded | None]] = {
    "subscription": _group_blob,
    "assignment": _group_blob,
    "consumer": _group_blob,
    "text": _text,
    "address": _address,
    "request": _request,
    "response": _response,
}
"""The function that reads the bytes, by the first word after ``holds`` in the definitions. Any other word is
the name of a class."""


def _blamed_message(found: EmbeddedMessage) -> EmbeddedMessage:
    return found._replace(header=_blamed(found.header), body=_blamed(found.body))


def _blamed(found: Embedded) -> Embedded:
    """Faults in the form for the message around the bytes: without offsets, which would not count in that
    message."""
    faults = tuple(
        each
        if each.kind == "unknown-version"
        else fault("embedded", f"{each.message} (at its byte {each.offset})")
        for each in found.faults
    )
    return found._replace(faults=tuple(each._replace(offset=None) for each in faults))
