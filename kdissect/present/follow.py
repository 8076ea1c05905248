"""The bytes of a connection as Wireshark follows a stream (``tshark -z follow,tcp,raw``), in hex.

Each connection is a block. It names both ends. Then comes a line for each piece, in the order in which pieces
are decoded. Lines of the second node begin with a tab.

For bytes that were not captured, Wireshark and kdissect write a text in hex.

Without ``--show-secrets``, ``**`` stands for every byte that is not known to be harmless. Values in messages
may be secrets, and so may bytes that are no Kafka message. TLS bytes are shown if the handshake shows that
they are encrypted.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.model import Chunk, Direction, Endpoint, Gap, endpoint_text
from kdissect.present.body import context_of
from kdissect.present.branch import RESTS, Branch, may_hide, message_branches
from kdissect.present.options import Options
from kdissect.session.conversation import Connection

RULE = "=" * 67
MASK = "**"
"""The text for a byte that may be a secret."""
_PREFIX_BYTES = 4
"""The bytes of a message's size."""

_CIPHER = re.compile(r"AES|CHACHA20|CAMELLIA|ARIA|SEED|SM4|AEGIS|3DES|RC4")
"""Parts of the names of cipher suites that encrypt. Other suites only sign, or are unknown."""

Range = tuple[int, int]
"""Offset of the first byte, and of the one after the last."""


class Ranges:
    """Ranges of a stream. They may be added in any order. Adjacent ranges become one."""

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in ranges:
            self.add(start, end)

    def add(self, start: int, end: int) -> None:
        """Add a range."""
        if start >= end:
            return
        first = bisect_right(self._starts, start)
        if first and self._ends[first - 1] >= start:
            first -= 1
            start = self._starts[first]
        last = bisect_right(self._starts, end)
        if last > first:
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def within(self, start: int, end: int) -> Iterator[Range]:
        """The parts of the ranges between two offsets, in order."""
        at = max(0, bisect_right(self._starts, start) - 1)
        while at < len(self._starts) and self._starts[at] < end:
            found = max(start, self._starts[at]), min(end, self._ends[at])
            if found[0] < found[1]:
                yield found
            at += 1


EVERYTHING = Ranges([(0, 1 << 62)])


class MayBeShown:
    """Learns from exchanges and connections which bytes of their streams may be shown."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._ranges: dict[tuple[int, Endpoint], Ranges] = {}
        """The ranges that may be shown, by connection and sender."""
        self._encrypted: set[int] = set()
        """Connections whose bytes are all encrypted or harmless."""

    def learn(self, event: Exchange | Connection) -> None:
        """Take in an exchange, or a connection that has ended."""
        if self._options.show_secrets:
            return
        if isinstance(event, Connection):
            if is_encrypted(event):
                self._encrypted.add(event.connection)
            return
        if event.is_encrypted:
            return  # its offsets refer to the decrypted bytes
        client, broker = event.client_endpoint, event.broker_endpoint
        if event.proxied is not None:
            client, broker = event.proxied.client, event.proxied.peer
        for message in event.messages:
            sender = client if message.frame.direction is Direction.TO_BROKER else broker
            ranges = self._ranges.setdefault((event.connection, sender), Ranges())
            for start, end in plain_ranges(event, message, self._options):
                ranges.add(start, end)

    def of(self, connection: int, sender: Endpoint) -> Ranges:
        """The bytes of one end of a connection that may be shown."""
        if self._options.show_secrets or connection in self._encrypted:
            return EVERYTHING
        return self._ranges.get((connection, sender)) or Ranges()


def is_encrypted(connection: Connection) -> bool:
    """Whether the bytes of a connection are encrypted, by its TLS handshake. The handshake contains no
    secret, but a client's message to a proxy may."""
    if connection.tls is None or connection.proxies:
        return False
    return _CIPHER.search(connection.tls.get("suite") or "") is not None


def plain_ranges(exchange: Exchange, message: Message, options: Options) -> Iterator[Range]:
    """The ranges of the sender's stream that belong to a message and are no secret."""
    frame = message.frame
    start = frame.offset + _PREFIX_BYTES
    yield frame.offset, start
    if not may_hide(message, options):
        yield start, start + len(frame.payload)
        return
    context = context_of(exchange, message, options)
    for branch in message_branches(message, options, context, exchange.topic_names):
        for first, last in _plain(branch):
            yield start + first, start + last


def _plain(branch: Branch) -> Iterator[Range]:
    """The bytes of a node that may be shown, in the buffer that its range refers to."""
    node = branch.node
    whole = (node.start, node.end)
    if branch.is_record_set and not branch.may_hide:
        yield whole
        return
    branch.open()
    if not node.children:
        if not branch.is_hidden and node.name not in RESTS:
            yield whole
        return
    inside = [found for inner in branch.inside() for found in _plain(inner)]
    if node.buffer is None:
        yield from inside
    elif sum(end - start for start, end in inside) == len(node.buffer):
        yield whole  # its unpacked contents have no secret


class Ends(NamedTuple):
    """The two nodes of a block."""

    first: Endpoint
    other: Endpoint


def heading(connection: int, ends: Ends) -> str:
    """The lines before the bytes of a connection."""
    first, other = map(endpoint_text, ends)
    told = ("", RULE, "Follow: tcp,raw", f"Filter: tcp.stream eq {connection}", f"Node 0: {first}")
    return "\n".join((*told, f"Node 1: {other}"))


def piece_line(node: int, piece: Chunk | Gap, shown: Ranges) -> str:
    """The line of a piece.

    :param node: 0 for the first, 1 for the other.
    :param shown: the bytes of that node that may be shown.
    """
    indent = "\t" if node else ""
    if isinstance(piece, Gap):
        return f"{indent}{missing_text(piece.length).encode('ascii').hex()}"
    out, at, data, offset = [indent], 0, piece.data, piece.offset
    for start, end in shown.within(offset, offset + len(data)):
        out += [MASK * (start - offset - at), data[start - offset : end - offset].hex()]
        at = end - offset
    out.append(MASK * (len(data) - at))
    return "".join(out)


def missing_text(length: int) -> str:
    """Wireshark's text in place of bytes that were not captured, with a zero byte at the end."""
    return f"[{length} bytes missing in capture file]\0"
