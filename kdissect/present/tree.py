"""An exchange → a tree: every field with its value, its type and the bytes it was read from.

Ranges are ``[start:end]``, from the first byte after the size prefix; below records that were unpacked they
count in the unpacked bytes. With ``dump``, the bytes themselves follow below each value; bytes of secrets are
masked.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.embedded.decoded import Context
from kdissect.embedded.fields import NO_CONTEXT
from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.model import Fault, Node, endpoint_text
from kdissect.names import NO_NAMES, Names
from kdissect.present.body import context_of
from kdissect.present.branch import Branch, NodePlace, message_branches
from kdissect.present.form import duration, plural
from kdissect.present.hexdump import hexdump
from kdissect.present.options import PLAIN, Options
from kdissect.present.payload import one_line
from kdissect.present.sanitise import pad, sanitise
from kdissect.present.secret_names import REDACTED
from kdissect.present.text import api_text, error_text
from kdissect.protocol import apis
from kdissect.protocol.errors import error_name

INDENT = "  "
NAME_COLUMNS = 56
TYPE_COLUMNS = 20


def exchange_tree(exchange: Exchange, options: Options = PLAIN, dump: bool = False) -> Iterator[str]:
    """The lines of one exchange."""
    yield _heading(exchange)
    for message in exchange.messages:
        context = context_of(exchange, message, options)
        yield from message_tree(message, options, dump, context, exchange.topic_names)
    for fault in exchange.faults:
        yield INDENT + fault_text(fault)


def _heading(exchange: Exchange) -> str:
    parts = [
        f"Exchange {exchange.number}: {api_text(exchange)}",
        f"connection {exchange.connection}",
        f"{exchange.client} → {exchange.broker}",
    ]
    if exchange.proxied is not None and exchange.proxied.client != exchange.client_endpoint:
        parts.append(f"through {endpoint_text(exchange.proxied.client)}")
    if exchange.is_encrypted:
        parts.append("in TLS")
    if exchange.latency_ns is not None:
        waited = f" ({behind_text(exchange)})" if exchange.behind_ns else ""
        parts.append(duration(exchange.latency_ns) + waited)
    if exchange.between_ns is not None:
        parts.append(f"{duration(exchange.between_ns)} between capture points")
    if exchange.error:
        parts.append(error_text(exchange))
    if exchange.missing:
        side = "request" if exchange.request is None else "response"
        whole = exchange.request is not None and exchange.response is not None
        parts.append(f"{'cut' if whole else 'no'} {side}: {exchange.missing}")
    if exchange.inferred:
        parts.append(f"inferred {exchange.inferred}")
    return sanitise(", ".join(parts), None)


def behind_text(exchange: Exchange) -> str:
    """``502 ms of it behind #353``: how long the request waited behind another one, with the correlation id
    of that one."""
    waited = f"{duration(exchange.behind_ns or 0)} of it behind "
    before = exchange.behind_correlation_id
    return waited + ("an earlier one" if before is None else f"#{before}")


def fault_text(fault: Fault) -> str:
    """``fault: bad-crc (records) at 61, packet 7: …``."""
    where = "" if fault.offset is None else f" at {fault.offset}"
    packet = f", packet {fault.packet}" if fault.packet else ""  # 0: bytes without a packet
    return f"fault: {fault.kind} ({fault.layer}){where}{packet}: {sanitise(fault.message, None)}"


def message_tree(
    message: Message,
    options: Options = PLAIN,
    dump: bool = False,
    context: Context = NO_CONTEXT,
    names: Names = NO_NAMES,
) -> Iterator[str]:
    """The lines of a request or response.

    :param context: the request, which may determine what is embedded in a response.
    :param names: the names of topic ids.
    """
    frame = message.frame
    captured = f", {len(frame.payload)} captured" if message.is_cut else ""
    packets = f", packet {frame.last_packet}" if frame.last_packet else ""
    if frame.first_packet != frame.last_packet:
        packets = f", packets {frame.first_packet} to {frame.last_packet}"
    quirk = message.decoded().quirk
    known = f", known quirk: {quirk}" if quirk else ""
    yield f"{INDENT}{message.kind}: {plural(frame.size, 'byte')}{captured}{packets}{known}"
    walk = _BranchPrinter(dump)
    for branch in message_branches(message, options, context, names):
        yield from walk.lines(branch, 2)


def struct_tree(
    node: Node, data: bytes, options: Options = PLAIN, dump: bool = False, message: str = ""
) -> Iterator[str]:
    """The lines of a tree that ``annotate`` drew of bytes without a frame.

    :param message: the message class of the bytes, if it is known.
    """
    yield from _BranchPrinter(dump).lines(
        Branch(node, data, NodePlace(message, is_metadata=None), options), 0
    )


class _BranchPrinter:
    """Prints each branch on a line, with its children below."""

    def __init__(self, dump: bool) -> None:
        self._dump = dump

    def lines(self, branch: Branch, depth: int) -> Iterator[str]:
        """The branch's line, then the lines of its children."""
        branch.open()
        node, hidden = branch.node, branch.is_hidden
        yield self._line(branch, depth, hidden)
        if node.fault is not None:
            yield INDENT * (depth + 1) + fault_text(node.fault)
        if not node.children:
            if self._dump and node.end > node.start:
                indent = INDENT * (depth + 1)
                yield from hexdump(branch.data[node.start : node.end], node.start, indent, hidden)
            return
        if node.buffer is not None:
            size = plural(len(node.buffer), "byte")
            yield f"{INDENT * (depth + 1)}unpacked: {size}; ranges below are offsets in them"
        for inner in branch.inside():
            yield from self.lines(inner, depth + 1)

    def _line(self, branch: Branch, depth: int, hidden: bool) -> str:
        node = branch.node
        name = INDENT * depth + sanitise(node.name, None)
        if hidden:
            name += f": {REDACTED}"
        elif not node.children:
            name += f": {value_text(node, branch.topic_name)}"
        return f"{pad(name, NAME_COLUMNS)} {pad(sanitise(node.type), TYPE_COLUMNS)} [{node.start}:{node.end}]"


def value_text(node: Node, topic: str | None = None) -> str:
    """The value of a leaf for people; for a number with a name or the id of a topic, with the name.

    :param topic: the name of the topic whose id it is.
    """
    value = node.value
    if not node.is_decoded:
        return "(not decoded)"
    if value is None:
        if node.end > node.start:
            return "null"
        # Null takes bytes. If there are none, the node is simply empty: a body without fields, a batch
        # without records.
        return "[]" if node.type.startswith("[]") else "(empty)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and topic is not None:
        return f"{sanitise(value)} ({sanitise(topic)})"
    if isinstance(value, str):
        return sanitise(value) if "string" not in node.type else f'"{sanitise(value)}"'
    if isinstance(value, bytes):
        return one_line(value)
    if node.type != "int16":  # names of Kafka; fields of other definitions may have them too
        return sanitise(str(value))
    if isinstance(value, int) and value and node.name.endswith(("errorCode", "ErrorCode")):
        return f"{value} ({error_name(value)})"
    if isinstance(value, int) and node.name in ("requestApiKey", "apiKey"):
        return f"{value} ({apis.api_name(value)})"
    return sanitise(str(value))
