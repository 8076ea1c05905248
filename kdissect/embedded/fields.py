"""What the bytes fields of messages hold, as the definitions tell it beside the field: ``holds …``.

Group members send each other blobs through the coordinator, which does not look into them: what they
are depends on the group's protocol type (KIP-62, Connect's KIP-415), and their user data on the
partition assignor. Where the message says the protocol type, the blob is read as that and defects are
reported. Where it does not (SyncGroup before version 5), the blob is only decoded if it is a consumer
protocol blob to its last byte; anything else would be a guess.
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
"""The two kinds of blobs of every group protocol: what members tell the leader, what it tells them. A family
has its classes in this order."""

GROUP_PROTOCOLS = {"consumer": "consumer-protocol", "connect": "connect"}
"""Protocol type: family of the blobs."""


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
    """What a field of decoded values holds; None where it holds nothing that is known for certain.

    :param message: Kafka's name of the message class, such as ``JoinGroupRequest``.
    :param ancestors: the values of the structs around the field, the message's first.
    :param name: of the field.
    :param context: :attr:`Embedded.context` where the message is embedded itself; for a response, with
        the values of its request.
    """
    if not value or not isinstance(value, bytes):
        return None
    held = field_traits(message).holds.get(name)
    if held is None:
        return None
    what, _, more = held.partition(" ")
    return HOLDERS.get(what, _structs)(Holding(held, what, more, ancestors, value, context))


class Holding(NamedTuple):
    """Bytes of a field, and what is known of them."""

    trait: str
    """What follows ``holds`` in the definitions."""
    what: str
    """Its first word."""
    more: str
    """The words after it."""
    ancestors: Sequence[dict[str, Any]]
    value: bytes
    context: Context


def _group_blob(held: Holding) -> Embedded | None:
    """``[consumer] subscription|assignment by FIELD``: what a member tells, or what it is told; the field
    names the assignor. Of a consumer's the protocol type is known without a field."""
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
    """The value of a field in the innermost struct that says it; empty, as for a dead group, is nothing."""
    for values in reversed(around):
        if values.get(name):
            return str(values[name])
    return None


def _structs(held: Holding) -> Embedded | None:
    """``CLASS``, ``CLASS if whole`` or ``CLASS of ASSIGNOR or CLASS of …``.

    The last is an assignor's user data. Other clients have assignors of the same names with forms of their
    own, and a broker may have a principal builder of its own: there only what fits to the last byte is taken
    for Kafka's.
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
    """``response to FIELD``: the field of the request that holds the request it answers."""
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
"""First word after ``holds`` in the definitions: who reads the bytes. Any other is the name of a class."""


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
