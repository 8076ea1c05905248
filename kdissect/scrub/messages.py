"""A message → one of the same length that contains only what is allowed.

The tree of the message says which bytes belong to which value (:mod:`kdissect.protocol.annotate`). Numbers,
and the bytes that frame values, are copied. Everything else is written by its meaning.
"""

from __future__ import annotations

from typing import Any

from kdissect.embedded.decoded import Context
from kdissect.embedded.tree import expand_embedded
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.message import Message, Token, is_slice
from kdissect.model import Node
from kdissect.names import is_metadata_topic
from kdissect.protocol import apis
from kdissect.scrub.damaged_numbers import Range, blank_texts
from kdissect.scrub.logins import scrubbed_token
from kdissect.scrub.record_sets import RecordSetScrubber
from kdissect.scrub.values import Scrubber, encoded

_NUMBERS = frozenset(
    (
        *("int8", "int16", "int32", "int64", "uint16", "uint32", "float64", "bool"),
        *("varint", "varlong", "unsigned varint", "length"),
    )
)
"""Types of leaves that are copied."""
MOST_NODES = 4_000_000
"""The most nodes of the tree of a message; further ones are left out."""
_LENGTH_BYTES = 5
"""The most bytes of a length. If a message breaks off after one, it is still written."""

Ancestors = tuple[dict[str, Any], ...]


class MessageScrubber:
    """Replaces messages."""

    def __init__(self, scrubber: Scrubber, limits: Limits) -> None:
        self._scrubber = scrubber
        self._limits = limits._replace(tree_nodes=MOST_NODES)
        self.record_sets = RecordSetScrubber(scrubber, limits, self._embedded)
        self._mechanisms: dict[int, str] = {}
        """The login mechanism of each client, by connection."""

    def scrubbed(self, exchange: Exchange, message: Message) -> bytes:
        """The replacement of the bytes of a message."""
        payload = message.frame.payload
        out = bytearray(len(payload))
        mechanism = self._mechanism(exchange, message)
        if isinstance(message, Token):
            return scrubbed_token(mechanism, payload, self._scrubber)
        walk = _TreeWalk(self, payload, out, mechanism)
        walk.is_doubtful = _is_doubtful(exchange, message)
        for child in whole_tree(exchange, message, self._limits).children:
            if child.type == "bytes":
                self._scrubber.taken.add_unknown(payload[child.start : child.end])
                continue
            end = walk.node(child, child.name, ({},))
            last = _last_length(child, payload)
            if child.children and end < last <= end + _LENGTH_BYTES:
                walk.keep(end, last)
        walk.close()
        return bytes(out)

    def _mechanism(self, exchange: Exchange, message: Message) -> str | None:
        """The login mechanism of the client of a connection, which the client requests first."""
        connection = exchange.connection
        if message is exchange.request and message.api_key == apis.SASL_HANDSHAKE:
            said = message.body().get("mechanism")
            if isinstance(said, str):
                self._mechanisms[connection] = said
        return self._mechanisms.get(connection)

    def _embedded(self, nodes: list[Node], data: bytes, out: bytearray) -> None:
        walk = _TreeWalk(self, data, out, None)
        for node in nodes:
            walk.node(node, node.name, ({},))
        walk.close()

    def bytes_of(
        self, node: Node, name: str, ancestors: Ancestors, mechanism: str | None, is_sure: bool
    ) -> bytes:
        """The replacement of the bytes of a field, without its length.

        :param is_sure: whether the bytes are known to be what they seem to be.
        """
        value = node.value
        assert isinstance(value, bytes)
        if "records" in node.type and not is_slice(name, ancestors[-1]):
            return self.record_sets.scrubbed(value, is_metadata_topic_around(ancestors), is_sure)
        if name == "authBytes":
            return scrubbed_token(mechanism, value, self._scrubber)
        if self._scrubber.is_secret(name):
            self._scrubber.taken.add(value)
        else:
            self._scrubber.taken.add_unknown(value)
        return bytes(len(value))


class _TreeWalk:
    """One walk through a tree."""

    def __init__(self, messages: MessageScrubber, data: bytes, out: bytearray, mechanism: str | None) -> None:
        self._messages, self._data, self._out, self._mechanism = messages, data, out, mechanism
        self._scrubber = messages._scrubber
        self._copied: list[Range] = []
        self.is_doubtful = False
        """Whether the bytes have a fault."""

    def keep(self, start: int, end: int) -> None:
        """Copy bytes."""
        self._out[start:end] = self._data[start:end]
        self._copied.append((start, end))

    def close(self) -> None:
        """Finish writing."""
        if self.is_doubtful:
            blank_texts(self._out, self._copied)

    def node(self, node: Node, name: str, ancestors: Ancestors) -> int:
        """Write the parts of a node that may stay; return the end of its last leaf.

        :param name: the name of the field; elements of arrays have their array's name.
        """
        if node.fault is not None:
            self.is_doubtful = True
        if not node.children:
            self._leaf(node, name, ancestors)
            return node.end
        if not node.type.startswith("[]") and not isinstance(node.value, bytes):
            ancestors = (*ancestors, {child.name: child.value for child in node.children})
        end = node.start
        for child in node.children:
            is_own = child.name.startswith("[") or child.name == "(value)"
            end = self.node(child, name if is_own else child.name, ancestors)
        return end

    def _leaf(self, node: Node, name: str, ancestors: Ancestors) -> None:
        start, end, value, kind = node.start, node.end, node.value, node.type
        data, out = self._data, self._out
        if kind in _NUMBERS or (value is None and end - start <= _LENGTH_BYTES):
            self.keep(start, end)
        elif kind == "uuid":
            out[start:end] = self._scrubber.id(data[start:end])
        elif kind == "InetAddress":
            out[start:end] = self._scrubber.address(data[start:end])
        elif isinstance(value, str) and kind in ("string", "compact string", "UTF-8"):
            made = encoded(self._scrubber.text(name, value, ancestors[-1]))
            assert len(made) == len(encoded(value))
            middle = end - len(made)
            self.keep(start, middle)
            out[middle:end] = made
        elif isinstance(value, bytes) and not node.name.startswith("("):
            middle = end - len(value)
            self.keep(start, middle)
            is_sure = not self.is_doubtful
            out[middle:end] = self._messages.bytes_of(node, name, ancestors, self._mechanism, is_sure)
        elif isinstance(value, bytes):
            self._scrubber.taken.add_unknown(value)


def whole_tree(exchange: Exchange, message: Message, limits: Limits) -> Node:
    """The tree of a message of an exchange, with all embedded messages. Record sets are leaves."""
    body = message.decoded()
    context = Context(limits=limits)
    if message is not exchange.request and exchange.request is not None:
        context = context._replace(request=exchange.request.body())
    message.limits = limits._replace(tree_nodes=MOST_NODES)
    tree = message.annotate()
    for child in tree.children:
        if body.struct is not None and child.type == body.struct.name:
            expand_embedded(child.type, body.values, child, message.frame.payload, context)
    return tree


def _is_doubtful(exchange: Exchange, message: Message) -> bool:
    """Whether the body has a fault, other than that it breaks off at the end of its frame. Or whether nothing
    shows that it is a message: neither its body, nor a message of the other side."""
    body = message.decoded()
    if body.struct is None and (exchange.request is None or exchange.response is None):
        return True
    has_rest = body.struct is not None and bool(body.remainder) and not body.quirk
    return bool(body.faults) or (has_rest and not message.is_cut)


def _last_length(tree: Node, data: bytes) -> int:
    """The end of the length or count after which a message breaks off; else the end of its tree."""
    last, is_broken = tree, not tree.is_decoded
    while last.children:
        last = last.children[-1]
    if not is_broken or not last.type.startswith("[]") or last.is_decoded:
        return tree.end
    return max(tree.end, min(last.start + 4, len(data)))


def is_metadata_topic_around(ancestors: Ancestors) -> bool:
    """Whether the record set in these structs is one of ``__cluster_metadata``."""
    words = (values.get(name) for values in ancestors for name in ("topic", "name", "topicId"))
    return any(is_metadata_topic(word) for word in words)
