"""An exchange → a tree: every field with its value, its type and the bytes it was read from.

Ranges are ``[start:end]``, from the first byte after the size prefix; below records that were unpacked
they count in the unpacked bytes. With ``dump``, the bytes themselves stand below each value; those of
secrets are masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from kdissect.embedded.decoded import Context
from kdissect.embedded.fields import NO_CONTEXT
from kdissect.embedded.tree import expand_embedded
from kdissect.exchange import Exchange
from kdissect.message import SASL_TOKEN, Message, Token, is_slice
from kdissect.model import Fault, Node
from kdissect.present.body import REMAINDER
from kdissect.present.form import duration, plural
from kdissect.present.hexdump import hexdump
from kdissect.present.options import PLAIN, Options
from kdissect.present.redact import (
    REDACTED,
    is_metadata_topic,
    is_secret,
    is_secret_metadata,
    may_hold_secrets,
)
from kdissect.present.sanitise import LONGEST, pad, sanitise
from kdissect.present.text import api_text
from kdissect.protocol import apis
from kdissect.protocol.annotate import expand
from kdissect.protocol.errors import error_name
from kdissect.record.annotate import annotate_record_set

INDENT = "  "
NAME_COLUMNS = 56
TYPE_COLUMNS = 20


def exchange_tree(exchange: Exchange, options: Options = PLAIN, dump: bool = False) -> Iterator[str]:
    """The lines of one exchange."""
    yield _heading(exchange)
    asked = exchange.request.body() if exchange.request is not None and options.embedded else None
    for message in exchange.messages:
        context = Context(asked if message is exchange.response else None)
        yield from message_tree(message, options, dump, context)
    for fault in exchange.faults:
        yield INDENT + fault_text(fault)


def _heading(exchange: Exchange) -> str:
    parts = [
        f"Exchange {exchange.number}: {api_text(exchange)}",
        f"connection {exchange.connection}",
        f"{exchange.client} → {exchange.broker}",
    ]
    if exchange.latency_ns is not None:
        parts.append(duration(exchange.latency_ns))
    if exchange.error:
        parts.append(exchange.error)
    if exchange.missing:
        side = "request" if exchange.request is None else "response"
        whole = exchange.request is not None and exchange.response is not None
        parts.append(f"{'cut' if whole else 'no'} {side}: {exchange.missing}")
    if exchange.inferred:
        parts.append(f"inferred {exchange.inferred}")
    return sanitise(", ".join(parts), None)


def fault_text(fault: Fault) -> str:
    """``fault: bad-crc (records) at 61, packet 7: …``."""
    where = "" if fault.offset is None else f" at {fault.offset}"
    packet = "" if fault.packet is None else f", packet {fault.packet}"
    return f"fault: {fault.kind} ({fault.layer}){where}{packet}: {sanitise(fault.message, None)}"


def message_tree(
    message: Message, options: Options = PLAIN, dump: bool = False, context: Context = NO_CONTEXT
) -> Iterator[str]:
    """The lines of a request or response.

    :param context: what is embedded in a response may only be told with its request.
    """
    frame = message.frame
    captured = f", {len(frame.payload)} captured" if message.is_cut else ""
    packets = f", packet {frame.last_packet}" if frame.last_packet else ""
    if frame.first_packet != frame.last_packet:
        packets = f", packets {frame.first_packet} to {frame.last_packet}"
    yield f"{INDENT}{message.kind}: {plural(frame.size, 'byte')}{captured}{packets}"
    root = message.annotate()
    body = message.decoded()
    walk = _Walk(options, dump)
    for child in root.children:
        if options.embedded and body.struct is not None and child.type == body.struct.name:
            expand_embedded(child.type, body.values, child, frame.payload, context)
        rest = child.type == "bytes" and not isinstance(message, Token)
        place = _Place(SASL_TOKEN, ({child.name: child.value},), rest and is_hidden_rest(message, options))
        yield from walk.node(child, frame.payload, 2, place)


def is_hidden_rest(message: Message, options: Options) -> bool:
    """Whether bytes of it that no field accounts for may be secrets. Of a response whose request is not
    known nothing can be told, so they may."""
    if options.show_secrets:
        return False
    if message.api_key is None:
        return True
    return may_hold_secrets(apis.api_name(message.api_key) + message.kind.capitalize())


def struct_tree(node: Node, data: bytes, options: Options = PLAIN, dump: bool = False) -> Iterator[str]:
    """The lines of a tree that ``annotate`` drew of bytes without a frame."""
    yield from _Walk(options, dump).node(node, data, 0, _Place("", (), False))


class _Place(NamedTuple):
    """Where a node stands."""

    message: str
    """The message class around it."""
    ancestors: tuple[dict[str, Any], ...]
    """The values of the structs around it, the message's first."""
    hidden: bool
    """Whether everything here is hidden."""
    is_metadata: bool = False
    """Whether it is in a record of ``__cluster_metadata``."""


class _Walk:
    """Prints nodes, each on a line, with those inside it below."""

    def __init__(self, options: Options, dump: bool) -> None:
        self._options = options
        self._dump = dump

    def _holds_records(self, node: Node, place: _Place) -> bool:
        is_set = "records" in node.type and isinstance(node.value, bytes) and not node.children
        return is_set and not (place.ancestors and is_slice(node.name, place.ancestors[-1]))

    def node(self, node: Node, data: bytes, depth: int, place: _Place) -> Iterator[str]:
        """The node's line, then its children's. ``data``: what its range counts in."""
        if self._holds_records(node, place):
            assert isinstance(node.value, bytes)
            expand(node, annotate_record_set(node.value, node.end - len(node.value), self._options.limits))
            place = place._replace(is_metadata=is_metadata_topic(place.ancestors))
        hidden = not node.children and self._is_hidden(node, place)
        yield self._line(node, depth, hidden)
        if node.fault is not None:
            yield INDENT * (depth + 1) + fault_text(node.fault)
        if not node.children:
            if self._dump and node.end > node.start:
                yield from hexdump(data[node.start : node.end], node.start, INDENT * (depth + 1), hidden)
            return
        if node.buffer is not None:
            data = node.buffer
            yield f"{INDENT * (depth + 1)}unpacked: {plural(len(data), 'byte')}; ranges below count in them"
        inner = _inside(node, place)
        for child in node.children:
            yield from self.node(child, data, depth + 1, inner)

    def _is_hidden(self, node: Node, place: _Place) -> bool:
        if self._options.show_secrets:
            return False
        if place.hidden or (place.is_metadata and _may_be_secret_record(node)):
            return True
        if node.type == "unknown tagged field" or node.name in (REMAINDER, "(data)"):
            return may_hold_secrets(place.message)
        return bool(place.ancestors) and is_secret(place.message, node.name, place.ancestors, node.value)

    def _line(self, node: Node, depth: int, hidden: bool) -> str:
        name = INDENT * depth + sanitise(node.name, None)
        if hidden:
            name += f": {REDACTED}"
        elif not node.children:
            name += f": {value_text(node)}"
        return f"{pad(name, NAME_COLUMNS)} {pad(sanitise(node.type), TYPE_COLUMNS)} [{node.start}:{node.end}]"


def _inside(node: Node, place: _Place) -> _Place:
    """Where the children of a node stand: an array and bytes are no struct, a class begins anew."""
    if node.type.startswith("[]") or isinstance(node.value, bytes):
        return place
    values = {child.name: child.value for child in node.children}
    if node.type.endswith(("Request", "Response")) or may_hold_secrets(node.type):
        return place._replace(message=node.type, ancestors=(values,))
    return place._replace(ancestors=(*place.ancestors, values))


def _may_be_secret_record(node: Node) -> bool:
    if not isinstance(node.value, bytes):
        return False
    return node.name in ("(remainder)", "(cut)") or (node.name == "value" and is_secret_metadata(node.value))


def value_text(node: Node) -> str:
    """A leaf's value for people; what it names, where it is a number with a name."""
    value = node.value
    if value is None:
        return "[]" if node.type.startswith("[]") and node.end > node.start else "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return sanitise(value) if "string" not in node.type else f'"{sanitise(value)}"'
    if isinstance(value, bytes):
        return _bytes_text(value)
    if isinstance(value, int) and value and node.name.endswith(("errorCode", "ErrorCode")):
        return f"{value} ({error_name(value)})"
    if isinstance(value, int) and node.name in ("requestApiKey", "apiKey"):
        return f"{value} ({apis.api_name(value)})"
    return sanitise(str(value))


def _bytes_text(value: bytes) -> str:
    """Text where the bytes are plainly that, else hex."""
    if not value:
        return "(empty)"
    head = value[:LONGEST]
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable():
        return f'"{sanitise(text, None)}"' + ("…" if len(value) > LONGEST else "")
    return head[:32].hex(" ") + (f" … ({len(value):,} bytes)" if len(value) > 32 else "")
