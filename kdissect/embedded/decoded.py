"""Bytes of a known class → :class:`Embedded`: values, faults, and bytes that no field accounts for.

Every form of embedded bytes is some framing words (a version, a record type) and then one struct. The caller
knows the framing: it reads the words and passes the structs that may follow. This module tries them, turns
the struct that fits into Kafka's JSON, and draws it as a tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kdissect.embedded import streams
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import DecodeError, Fault, Node
from kdissect.protocol.annotate import annotate
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.json_form import base64_text, to_json
from kdissect.protocol.schema import REMAINDER, Struct
from kdissect.wording import plural


class LeadingWord(NamedTuple):
    """An integer before the struct, such as its version or type."""

    name: str
    type: str
    value: int
    start: int
    end: int


class Context(NamedTuple):
    """Facts from outside the embedded bytes that are needed to identify them."""

    request: dict[str, Any] | None = None
    """The values of the request, if the bytes are in its response."""
    is_whole: bool = False
    """Whether ``request`` has all values of the request."""
    assignor: str | None = None
    """The partition assignor, if the bytes are its user data."""
    enveloped: bool = False
    """Whether the message is itself inside an Envelope; Kafka never nests them."""
    limits: Limits = DEFAULTS
    """The limits for decoding the bytes."""


Render = Callable[[Struct, dict[str, Any], bytes, Context], dict[str, Any]]
"""``render(struct, values, remainder, context)`` makes the JSON of one struct and of the bytes that follow
it. Output code passes a function that hides secrets and that shows the bytes embedded in this struct. It uses
the context for that."""


def plain(struct: Struct, values: dict[str, Any], remainder: bytes, _: Context) -> dict[str, Any]:
    """Kafka's JSON form with all fields, and the remainder as ``_remainder``."""
    out = to_json(struct, values)
    if remainder:
        out[REMAINDER] = base64_text(remainder)
    return out


class Embedded(NamedTuple):
    """Embedded bytes, decoded up to the first error."""

    name: str
    """Kafka's name of the class; ``Unknown(n)`` for a type that the definitions do not have."""
    version: int | None
    data: bytes
    """All of the bytes."""
    values: dict[str, Any]
    words: tuple[LeadingWord, ...] = ()
    struct: Struct | None = None
    """None if the definitions have no struct for this type or version."""
    start: int = 0
    """Where the struct begins."""
    end: int = 0
    """Where decoding ended."""
    faults: tuple[Fault, ...] = ()
    """The faults; their offsets count in :attr:`data`."""
    context: Context = Context()
    """The context of bytes that are embedded in this struct."""
    era: bool = False
    """Whether an older release's layout of the same version was the one that fits."""

    @property
    def remainder(self) -> bytes:
        """Bytes that no field accounts for."""
        return self.data[self.end :]

    @property
    def is_exact(self) -> bool:
        """Whether every byte was accounted for, without faults."""
        return self.struct is not None and not self.faults and self.end == len(self.data)

    def json(self, render: Render = plain) -> dict[str, Any]:
        """Kafka's JSON form; bytes that no field accounts for are in ``_remainder``."""
        if self.struct is None:
            return {REMAINDER: base64_text(self.remainder)} if self.remainder else {}
        out = render(self.struct, self.values, self.remainder, self.context)
        return streams.to_kafka(out) if self.name == streams.ASSIGNMENT else out

    def draw(self, buffer: bytes | None = None, at: int = 0) -> list[Node]:
        """The nodes of embedded bytes; the nodes without children cover every byte once.

        :param buffer: contains the bytes at position ``at``; the nodes' ranges count in it. By default the
            bytes themselves.
        """
        data = self.data if buffer is None else buffer
        stop = at + len(self.data)
        nodes = [Node(w.name, w.type, w.value, at + w.start, at + w.end) for w in self.words]
        position, told = at + self.end, False
        if self.struct is not None:
            begin = at + self.start
            node = Node(self.name, self.struct.name, None, begin, begin)
            nodes.append(node)
            cursor = Cursor(data, begin, stop, self.context.limits)
            try:
                annotate(self.struct, cursor, node)
            except DecodeError as error:
                node.fault = fault(error.kind, error.reason, offset=error.offset)
                told = True
            position = node.end
        if position < stop:
            rest = Node(REMAINDER, "bytes", data[position:stop], position, stop)
            rest.fault = self.faults[0] if self.faults and not told else None
            nodes.append(rest)
        return nodes


def opaque(
    name: str, version: int | None, data: bytes, words: Sequence[LeadingWord], kind: str, reason: str
) -> Embedded:
    """Bytes with at most the framing decoded."""
    end = words[-1].end if words else 0
    found = (fault(kind, f"{name}: {reason}" if name else reason, offset=end),)
    return Embedded(name, version, data, {}, tuple(words), None, end, end, found)


def read_struct(
    name: str, version: int, cursor: Cursor, words: Sequence[LeadingWord], candidates: Sequence[Struct]
) -> Embedded:
    """Decode the bytes after the words with the first candidate that fits to the last byte. If none fits,
    return the result of the first candidate."""
    first: Embedded | None = None
    start = cursor.position
    for struct in candidates:
        cursor.position = start
        cursor.notes.clear()
        found = _try(name, version, cursor, tuple(words), struct)
        if found.is_exact:
            return found._replace(era=first is not None and struct.version == candidates[0].version)
        first = first or found
    assert first is not None
    return first


def _try(name: str, version: int, cursor: Cursor, words: tuple[LeadingWord, ...], struct: Struct) -> Embedded:
    start = cursor.position
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    try:
        decode(struct, cursor, values)
    except DecodeError as error:
        faults.append(fault(error.kind, f"{name}: {error.reason}", offset=error.offset))
    else:
        if cursor.remaining():
            left = plural(cursor.remaining(), "byte is", "bytes are")
            message = f"{name}: {left} left after the last field"
            faults.append(fault("remainder", message, offset=cursor.position))
    faults += [fault(kind, f"{name}: {message}", offset=offset) for kind, message, offset in cursor.notes]
    if name == streams.ASSIGNMENT:
        faults += [fault("embedded", f"{name}: {message}") for message in streams.defects(values)]
    end = cursor.position
    context = Context(limits=cursor.limits)
    return Embedded(name, version, cursor.data, values, words, struct, start, end, tuple(faults), context)
