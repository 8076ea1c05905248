"""The nodes of a message, one at a time. Each has the bytes that its range refers to, its children, and
whether its value must be hidden.

``annotate`` draws a whole message. Record sets are drawn only when they are opened, because they must be
unpacked for it. Every tree that is shown, as text or on the screen, is made of these branches. So a single
rule decides what is a secret (:mod:`kdissect.present.redact`).
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from kdissect.embedded.decoded import Context
from kdissect.embedded.fields import NO_CONTEXT
from kdissect.embedded.internal import family_of_topic
from kdissect.embedded.tree import expand_embedded
from kdissect.message import SASL_TOKEN, Message, Token, is_slice
from kdissect.model import Node
from kdissect.names import NO_NAMES, Names
from kdissect.payload.decoder import SIDES, PayloadDecoder
from kdissect.payload.tree import draw
from kdissect.present.decoded import topic_of
from kdissect.present.options import Options
from kdissect.present.plain_records import may_hold_secrets as may_hold_secrets_in
from kdissect.present.record_secrets import is_connect_config, is_secret_header, shown_config
from kdissect.present.redact import (
    Asked,
    asked_of,
    is_metadata_topic,
    is_secret,
    is_secret_record,
    may_hold_secrets,
)
from kdissect.present.secret_names import contains_secret_name
from kdissect.protocol import apis
from kdissect.protocol.annotate import expand
from kdissect.protocol.imported import is_class
from kdissect.protocol.schema import REMAINDER, Struct
from kdissect.protocol.topics import partition_of
from kdissect.record.annotate import annotate_record_set
from kdissect.record.sets import read_record_set

RESTS = (REMAINDER, "(data)", "(not drawn)", "(remainder)", "(cut)")
"""Names of nodes for bytes of unknown meaning."""

TEXTS = ("[]string", "[]bytes")
"""Types of arrays whose elements are values."""


class NodePlace(NamedTuple):
    """The position of a node in its message."""

    message: str = ""
    """The message class that contains it."""
    ancestors: tuple[dict[str, Any], ...] = ()
    """The values of the structs that contain it, the message's first."""
    hidden: bool = False
    """Whether everything at this place is hidden."""
    asked: Asked | None = None
    """The request that the message answers, if all of it is known."""
    is_metadata: bool | None = False
    """Whether it is in a record of ``__cluster_metadata``; None if the topic is unknown."""
    names: Names = NO_NAMES
    """The names of topic ids."""


class Branch:
    """A node, the bytes that it was read from, and its place."""

    __slots__ = ("_options", "_place", "data", "node")

    def __init__(self, node: Node, data: bytes, place: NodePlace, options: Options) -> None:
        self.node = node
        self.data = data
        """The bytes that the node's range refers to."""
        self._place = place
        self._options = options

    @property
    def is_record_set(self) -> bool:
        """Whether it is a record set that can be read by itself."""
        node, ancestors = self.node, self._place.ancestors
        is_set = "records" in node.type and isinstance(node.value, bytes)
        return is_set and not (ancestors and is_slice(node.name, ancestors[-1]))

    @property
    def is_closed(self) -> bool:
        """Whether it is a record set that has not been opened."""
        return self.is_record_set and not self.node.children

    @property
    def holds_metadata(self) -> bool | None:
        """Whether it is a record set of ``__cluster_metadata``, or inside one; None if the topic is
        unknown."""
        if self._place.is_metadata is None:
            return None
        return self._place.is_metadata or (self.is_record_set and is_metadata_topic(self._place.ancestors))

    @property
    def partition(self) -> tuple[str | None, int | None]:
        """The topic (else its id) and the partition of the structs that contain it."""
        topic, topic_id, partition = partition_of(self._place.ancestors)
        return topic or topic_id, partition

    @property
    def topic_name(self) -> str | None:
        """The name of the topic, if the node is the id of a topic with a known name."""
        node = self.node
        if node.type != "uuid" or not isinstance(node.value, str):
            return None
        return self._place.names.get(node.value)

    def open(self) -> None:
        """Draw the contents of a record set that is not open yet. Other nodes stay as they are."""
        if self.is_closed:
            node = self.node
            assert isinstance(node.value, bytes)
            expand(node, annotate_record_set(node.value, node.end - len(node.value), self._options.limits))

    @property
    def is_hidden(self) -> bool:
        """Whether its value must not be shown. If a node has children, they decide."""
        node, place = self.node, self._place
        if node.children or self._options.show_secrets:
            return False
        if place.hidden or _may_be_secret_record(node, self.holds_metadata):
            return True
        if _is_secret_of_record(node, place.ancestors):
            return True
        if node.type == "unknown tagged field" or node.name in RESTS:
            return may_hold_secrets(place.message) or _contains_secret_name(node)
        return self._is_secret(node.value)

    def _is_secret(self, value: Any) -> bool:
        place = self._place
        shown = self._options.shown_fields
        return bool(place.ancestors) and is_secret(
            place.message, self.node.name, place.ancestors, value, shown, place.asked
        )

    @property
    def may_hide(self) -> bool:
        """Whether a record set may contain something that must not be shown. Its records decide; if it is
        damaged, it may.
        """
        if not self.is_record_set or self._options.show_secrets:
            return False
        if self.holds_metadata:
            return True
        value = self.node.value
        assert isinstance(value, bytes)
        found = read_record_set(value, self._options.limits)
        return bool(found.faults) or any(may_hold_secrets_in(batch.columns()) for batch in found.batches)

    def inside(self, first: int = 0, last: int | None = None) -> list[Branch]:
        """Its children; of many children only those from ``first`` to before ``last``."""
        node = self.node
        data = self.data if node.buffer is None else node.buffer
        if self._options.payloads is not None and node.type in RECORD_TYPES:
            self._draw_payloads(data, self._options.payloads)
        place = _inside(node, self._place)._replace(is_metadata=self.holds_metadata)
        # The names of array elements are numbers.
        hides = node.type in TEXTS and not self._options.show_secrets and self._is_secret(node.type)
        secretive = ""
        if not node.type.startswith("[]"):  # an array may have a million children
            secretive = next((child.type for child in node.children if may_hold_secrets(child.type)), "")
        out = []
        for child in node.children[first:last]:
            # Bytes that remain after an embedded struct are its sibling, and may belong to its secrets.
            is_rest = secretive and child.name == REMAINDER
            at = place._replace(message=secretive) if is_rest else place
            if hides and isinstance(child.value, str | bytes):
                at = at._replace(hidden=True)
            out.append(Branch(child, data, at, self._options))
        return out

    def _draw_payloads(self, data: bytes, decoder: PayloadDecoder) -> None:
        """Draw the decoded key and value of a record, unless they are already drawn or hidden."""
        place = _inside(self.node, self._place)._replace(is_metadata=self.holds_metadata)
        topic = topic_of(self._place.ancestors, place.names)
        if self.holds_metadata is not False or family_of_topic(topic) is not None:
            return  # the format of Kafka's own records is not guessed
        headers = headers_of(self.node)
        for child in self.node.children:
            side, value = child.name, child.value
            if side not in SIDES or child.children or not isinstance(value, bytes) or not value:
                continue
            if not Branch(child, data, place, self._options).is_hidden:
                contents = draw(decoder, topic, side, value, headers, child.end - len(value))
                if contents:
                    expand(child, contents)


RECORD_TYPES = ("Record", "Message")
"""Types of the nodes of records. A message of magic 0 or 1 is a record, too."""


def headers_of(record: Node) -> list[tuple[str, bytes | None]]:
    """The headers in the nodes of a record."""
    found = []
    for headers in record.children:
        for header in headers.children if headers.name == "headers" else ():
            said = {each.name: each.value for each in header.children}
            name, value = said.get("key"), said.get("value")
            if isinstance(name, str) and isinstance(value, bytes | None):
                found.append((name, value))
    return found


def message_branches(
    message: Message, options: Options, context: Context = NO_CONTEXT, names: Names = NO_NAMES
) -> list[Branch]:
    """The header, the body, and the bytes outside of all fields.

    :param context: the request, which may determine what is embedded in a response.
    :param names: the names of topic ids.
    """
    payload = message.frame.payload
    body = message.decoded()
    context = context._replace(limits=options.limits)
    out = []
    for child in message.annotate().children:
        is_body = body.struct is not None and child.type == body.struct.name
        if options.embedded and body.struct is not None and is_body and holds_bytes(body.struct):
            expand_embedded(child.type, body.values, child, payload, context)
        rest = child.type == "bytes" and not isinstance(message, Token)
        hidden = rest and is_hidden_rest(message, options)
        place = NodePlace(hidden=hidden, asked=asked_of(child.type, context), names=names)
        if isinstance(message, Token):
            place = NodePlace(SASL_TOKEN, ({child.name: child.value},))
        out.append(Branch(child, payload, place, options))
    return out


def may_hide(message: Message, options: Options) -> bool:
    """Whether a message can contain a value that must not be shown."""
    struct = message.decoded().struct
    if struct is None or is_hidden_rest(message, options):
        return not options.show_secrets
    return not options.show_secrets and holds_bytes(struct)


@cache
def holds_bytes(struct: Struct) -> bool:
    """Whether a struct contains fields of bytes or records, at any depth."""
    return any(
        field.type.endswith(("bytes", "records")) or (field.struct is not None and holds_bytes(field.struct))
        for field in struct.fields
    )


def is_hidden_rest(message: Message, options: Options) -> bool:
    """Whether its bytes outside of all fields may be secrets. If a response's request is not known, they may
    be.
    """
    if options.show_secrets:
        return False
    if message.api_key is None:
        return True
    return may_hold_secrets(apis.api_name(message.api_key) + message.kind.capitalize())


def _inside(node: Node, place: NodePlace) -> NodePlace:
    """The place of a node's children. Arrays and bytes are no structs, and a message class begins a new
    place."""
    if node.type.startswith("[]") or isinstance(node.value, bytes):
        return place
    values = {child.name: child.value for child in node.children}
    if (not place.message and node.type.endswith(("Request", "Response"))) or is_class(node.type):
        asked = None if place.message else place.asked  # an embedded message answers no known request
        return place._replace(message=node.type, ancestors=(values,), asked=asked)
    return place._replace(ancestors=(*place.ancestors, values))


def _is_secret_of_record(node: Node, ancestors: tuple[dict[str, Any], ...]) -> bool:
    """Whether it is the value of a record, or of a record header, that is or contains a secret."""
    if node.name != "value" or not isinstance(node.value, bytes) or not ancestors:
        return False
    key = ancestors[-1].get("key")
    if isinstance(key, str):
        return bool(node.value) and is_secret_header(key)
    if not isinstance(key, bytes) or not is_connect_config(key, node.value):
        return False
    return shown_config(key, node.value) != node.value


def _contains_secret_name(node: Node) -> bool:
    return isinstance(node.value, bytes) and contains_secret_name(node.value)


def _may_be_secret_record(node: Node, is_metadata: bool | None) -> bool:
    if not isinstance(node.value, bytes):
        return False
    if node.name in ("(remainder)", "(cut)"):
        return bool(is_metadata)
    return node.name == "value" and is_secret_record(node.value, is_metadata)
