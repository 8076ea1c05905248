"""A key or value → its format and its value: by the user's rule, by its schema, or by its bytes.

    decoder = Decoder(schemas, rules)
    decoder.decode("orders", "value", data, headers)   ─► Decoded

Bytes that do not fit their schema have a problem, in one line, and no value: no value is guessed. JSON can be
read without its schema, so it has its value too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from kdissect.limits import DEFAULTS, Limits
from kdissect.model import DecodeError
from kdissect.payload.avro import decode_avro
from kdissect.payload.avro_values import AvroType
from kdissect.payload.framing import Framing, Headers, framing_of
from kdissect.payload.json_schema import Checked
from kdissect.payload.packed import Unpacker
from kdissect.payload.plain import decode_json
from kdissect.payload.plain_text import plain_text, said_shortly
from kdissect.payload.proto_types import ProtoMessage
from kdissect.payload.protobuf import decode_protobuf, has_unknown, messages_at
from kdissect.payload.recognise import (
    CERTAIN,
    LIKELY,
    POSSIBLE,
    TOO_MUCH,
    RecognisedBytes,
    enveloped,
    recognise,
)
from kdissect.payload.schemas import AVRO, PROTOBUF, Schemas, ValueReader
from kdissect.protocol.cursor import Cursor

SIDES = ("key", "value")
ASKABLE = ("confluent", "apicurio")
"""Registries whose ids ``--registry`` can look up; ids of other registries mean something else there."""
ENVELOPE = ".Envelope"
"""The end of the name of Debezium's Avro records."""
MISFIT = "does not match its schema"
"""The beginning of such a problem; the reason follows a colon."""


Span = tuple[str, int, int]
"""A name, and the start and end of the bytes with that name."""


class DecodingRule(NamedTuple):
    """A user's rule for a topic: ``--decode-as 'orders*=avro:order.avsc'``."""

    topic: str
    """A pattern with ``*`` and ``?``."""
    side: str
    """``key`` or ``value``."""
    format: str
    """``avro``, ``protobuf``, ``auto``, ``raw``, or the name of another decoder (:attr:`decode`)."""
    reader: ValueReader | None = None
    """The reader of a named schema."""
    message: ProtoMessage | None = None
    """The named message of a Protobuf file."""
    decode: Callable[[bytes], Any] | None = None
    """Another decoder. It raises DecodeError or ValueError if the bytes have another form."""
    has_spans: bool = False
    """Whether it returns the value and its spans, a tuple of :data:`Span`."""


class DecodedPayload(NamedTuple):
    """The result of decoding a key or value."""

    format: str
    """``avro``, ``json``, ``text`` …; ``unknown`` if the schema that is needed is unknown."""
    value: Any = None
    """The value in JSON's types; None if it is null or missing."""
    confidence: str = CERTAIN
    framing: Framing | None = None
    name: str | None = None
    """The name of the schema's record or message."""
    envelope: str | None = None
    compression: str | None = None
    problem: str | None = None
    """Why an expected value is missing, or why a JSON value does not fit its schema; it shows no part of the
    value."""
    offset: int | None = None
    """The place of the problem in the key or value."""
    is_unknown: bool = False
    """Whether the problem is an unknown schema."""
    is_unvalidated: bool = False
    """Whether a JSON Schema leaves open whether the value fits (:mod:`kdissect.payload.json_schema`)."""
    type: AvroType | ProtoMessage | None = None
    """The type that read it, if it can show the bytes of each part."""
    at: int = 0
    """Where the value begins; in the unpacked bytes if the value was compressed after a framing."""
    spans: tuple[Span, ...] = ()
    """The bytes of its parts, if another package's decoder reports them."""

    def columns(self) -> dict[str, Any]:
        """The columns of a row about it, besides the value."""
        framing = self.framing
        out: dict[str, Any] = {"format": self.format, "confidence": self.confidence}
        if framing is not None:
            id = framing.schema
            out["registry"], out["schema"] = (
                framing.registry,
                int(id) if id.isdecimal() and len(id) < 20 else id,
            )
        for name in ("name", "envelope", "compression", "problem", "offset"):
            value = getattr(self, name)
            if value is not None:
                out[name] = value
        if self.is_unvalidated:
            out["unvalidated"] = True
        return out


class PayloadDecoder:
    """Decodes keys and values. Can be copied into other processes.

    :param rules: the last rule that matches is used; without one, ``auto``.
    :param learns: whether to add schemas from records of the registry's topic.
    """

    def __init__(
        self,
        schemas: Schemas | None = None,
        rules: Sequence[DecodingRule] = (),
        limits: Limits = DEFAULTS,
        *,
        learns: bool = True,
    ) -> None:
        self.schemas = Schemas() if schemas is None else schemas
        self.learns = learns
        self._rules = tuple(rules)
        self._limits = limits
        self._unpacker = Unpacker(limits)
        self._chosen: dict[tuple[str, str], DecodingRule | None] = {}

    def rule(self, topic: str, side: str) -> DecodingRule | None:
        """The rule for a topic, None for ``auto``."""
        try:
            return self._chosen[topic, side]
        except KeyError:
            found = None
            for rule in self._rules:
                if rule.side == side and fnmatchcase(topic, rule.topic):
                    found = rule if rule.format != "auto" else None
            if len(self._chosen) < self._limits.topic_names:
                self._chosen[topic, side] = found
            return found

    def decode(self, topic: str, side: str, data: bytes, headers: Headers = ()) -> DecodedPayload:
        """Decode a key or value.

        :param side: one of :data:`SIDES`.
        """
        rule = self.rule(topic, side)
        framing = framing_of(data, headers, side)
        if rule is not None:
            return self._by_rule(rule, data, framing, headers)
        if framing is not None:
            reader = self._reader(framing)
            if reader is not None:
                return self._by_schema(reader, data, framing, headers)
            return self._without_schema(topic, side, data, framing, headers)
        reader = self.schemas.reader_of_subject(f"{topic}-{side}") if len(self.schemas) else None
        if reader is not None and data:
            found = self._by_schema(reader, data, None, headers)
            if found.problem is None or found.value is not None:
                return found._replace(confidence=LIKELY)
        return _decoded(recognise(data, side, topic, headers, self._unpacker), None)

    def _reader(self, framing: Framing) -> ValueReader | None:
        """The reader of values with this framing."""
        return self.schemas.reader(framing.schema, framing.registry in ASKABLE)

    # -- with a schema

    def _by_schema(
        self, reader: ValueReader, data: bytes, framing: Framing | None, headers: Headers
    ) -> DecodedPayload:
        """A value with a known schema."""
        start = 0 if framing is None else framing.size
        compression = None if framing is None else framing.compression
        name = reader.name
        if compression is not None:
            unpacked = self._unpacker.unpack(compression, data[start:])
            if unpacked is None:
                problem = f"{compression} behind the schema's id cannot be unpacked"
                if self._unpacker.is_exhausted:
                    problem = TOO_MUCH
                return DecodedPayload(
                    reader.kind.lower(), None, CERTAIN, framing, name, problem=problem, offset=start
                )
            data, start = unpacked, 0
        type: AvroType | ProtoMessage | None = reader.avro
        confidence = CERTAIN
        try:
            if reader.avro is not None:
                value = decode_avro(reader.avro, data, start)
            elif reader.proto is not None:
                messages, start = _messages_of(reader, data, start, framing)
                type, confidence = _fitting(messages, data, start)
                name = type.name
                value = decode_protobuf(type, data, start)
            else:
                value = decode_json(data, start)
        except DecodeError as error:
            return DecodedPayload(
                reader.kind.lower(), None, CERTAIN, framing, name, None, compression,
                f"{MISFIT}: {said_shortly(error.reason)}", error.offset, type=type, at=start,
            )  # fmt: skip
        if type is None:
            found = enveloped(RecognisedBytes("json", value), headers)
            checked = Checked(is_open=True) if reader.json is None else reader.json.check(value, len(data))
            misfit = None if checked.problem is None else f"{MISFIT}: {said_shortly(checked.problem)}"
            return DecodedPayload(
                *("json", found.value, CERTAIN, framing, name, found.envelope, compression, misfit),
                is_unvalidated=checked.is_open,
            )
        envelope = None
        if name is not None and name.endswith(ENVELOPE) and isinstance(value, dict) and "op" in value:
            envelope = "debezium"
        return DecodedPayload(
            reader.kind.lower(), value, confidence, framing, name, envelope, compression, type=type, at=start
        )

    def _without_schema(
        self, topic: str, side: str, data: bytes, framing: Framing, headers: Headers
    ) -> DecodedPayload:
        """A value with an unknown schema: only JSON can be read."""
        inside = data[framing.size :]
        if framing.compression is not None:
            inside = self._unpacker.unpack(framing.compression, inside) or b""
        if inside[:1] in (b"{", b"["):
            found = recognise(inside, side, topic, headers, self._unpacker)
            if found.format == "json":
                return _decoded(found._replace(confidence=LIKELY), framing)
        if not framing.size:  # a header has the id, so the value may be anything
            found = recognise(inside, side, topic, headers, self._unpacker)
            if found.confidence == CERTAIN and found.format != "binary":
                return _decoded(found, framing)
        is_known = self.schemas.knows(framing.schema)
        what = "cannot be used" if is_known else "is not known"
        registry = self.schemas.registry
        if registry is not None and registry.failure is not None and not is_known:
            what += ", and kdissect cannot ask the registry"
        problem = f"schema {framing.schema} {what}"
        # A zero at the start may be no framing at all. An id in a header is certain.
        confidence = POSSIBLE if framing.size and not is_known else LIKELY
        return DecodedPayload("unknown", None, confidence, framing, problem=problem, is_unknown=not is_known)

    # -- as the user said

    def _by_rule(
        self, rule: DecodingRule, data: bytes, framing: Framing | None, headers: Headers
    ) -> DecodedPayload:
        if rule.format == "raw":
            return DecodedPayload("raw")
        if rule.format == "json":
            return self._json(data, framing, headers)
        if rule.decode is not None:
            try:
                value = rule.decode(data)
                if rule.has_spans:
                    return DecodedPayload(rule.format, value[0], spans=value[1])
                return DecodedPayload(rule.format, value)
            except DecodeError as error:
                return DecodedPayload(
                    rule.format,
                    problem=f"is not {rule.format}: {said_shortly(error.reason)}",
                    offset=error.offset,
                )
            except Exception as error:
                return DecodedPayload(rule.format, problem=f"is not {rule.format}: {type(error).__name__}")
        reader = rule.reader
        if framing is not None:
            # The schema that wrote the value, if it is known; else the given one.
            own = self._reader(framing)
            if own is not None and own.kind == (AVRO if rule.format == "avro" else PROTOBUF):
                found = self._by_schema(own, data, framing, headers)
                if found.problem is None or reader is None:
                    return found
        if reader is None:
            problem = "its schema is unknown"
            return DecodedPayload("unknown", None, CERTAIN, framing, problem=problem, is_unknown=True)
        return self._by_given(rule, reader, data, framing)

    def _by_given(
        self, rule: DecodingRule, reader: ValueReader, data: bytes, framing: Framing | None
    ) -> DecodedPayload:
        """A value of the schema that the user gave: after a framing, if it fits there, else from the first
        byte."""
        error = None
        for frame in (framing, None) if framing is not None else (None,):
            try:
                if rule.message is not None:
                    start = 0 if frame is None else _after_indexes(data, frame)
                    value = decode_protobuf(rule.message, data, start)
                    return DecodedPayload(
                        *("protobuf", value, CERTAIN, frame, rule.message.name), type=rule.message, at=start
                    )
                found = self._by_schema(reader, data, frame, ())
                if found.problem is None:
                    return found
                error = error or found
            except DecodeError as failed:
                problem = f"{MISFIT}: {said_shortly(failed.reason)}"
                error = error or DecodedPayload(
                    *(rule.format, None, CERTAIN, frame),
                    problem=problem,
                    offset=failed.offset,
                    type=rule.message,
                )
        assert error is not None
        return error

    def _json(self, data: bytes, framing: Framing | None, headers: Headers) -> DecodedPayload:
        start = 0
        if framing is not None and data[framing.size : framing.size + 1] in (b"{", b"[", b'"'):
            start = framing.size
        try:
            found = enveloped(RecognisedBytes("json", decode_json(data, start)), headers)
        except DecodeError as error:
            return DecodedPayload("json", problem=f"is not JSON: {error.reason}", offset=error.offset)
        return _decoded(found, framing if start else None)


def _decoded(found: RecognisedBytes, framing: Framing | None) -> DecodedPayload:
    return DecodedPayload(
        *(found.format, found.value, found.confidence, framing, None, found.envelope, found.compression),
        problem=found.problem,
    )


def _messages_of(
    reader: ValueReader, data: bytes, start: int, framing: Framing | None
) -> tuple[tuple[ProtoMessage, ...], int]:
    """The messages of a Protobuf schema that the value may be, and the start of the value. Confluent writes
    indexes before it, Apicurio a reference with its name. Indexes may mean two messages
    (:func:`~kdissect.payload.protobuf.messages_at`)."""
    proto = reader.proto
    assert proto is not None
    first = proto.messages[:1]
    if framing is None:
        return tuple(first), start
    if framing.registry == "confluent":
        if framing.size:
            return messages_at(proto, data, start)
        return messages_at(proto, framing.indexes)[0] if framing.indexes else tuple(first), start
    if framing.registry == "glue":
        return messages_at(proto, data, start)
    if framing.registry == "apicurio" and framing.size:
        named = _apicurio_reference(data, start)
        if named is not None:
            for message in proto.messages:
                if message.name.rpartition(".")[2] == named[0].rpartition(".")[2]:
                    return (message,), named[1]
    return tuple(first), start


def _fitting(messages: tuple[ProtoMessage, ...], data: bytes, start: int) -> tuple[ProtoMessage, str]:
    """The first of these messages that has all fields of the bytes, and the confidence in it."""
    if len(messages) == 1:
        return messages[0], CERTAIN
    fitting = []
    for message in messages:
        try:
            if not has_unknown(decode_protobuf(message, data, start)):
                fitting.append(message)
        except DecodeError:
            continue
    if len(fitting) == 1:
        return fitting[0], LIKELY
    return (fitting or messages)[0], POSSIBLE


def _apicurio_reference(data: bytes, start: int) -> tuple[str, int] | None:
    """Apicurio's ``Ref``, a delimited message with the name as its first field."""
    cursor = Cursor(data, start)
    try:
        size = cursor.read_unsigned_varint()
        end = cursor.position + size
        if size < 3 or cursor.read_int8() != 0x0A or end > len(data):
            return None
        name = cursor.read_bytes(cursor.read_unsigned_varint())
    except DecodeError:
        return None
    text = plain_text(name)
    return (text, end) if text and cursor.position <= end else None


def _after_indexes(data: bytes, framing: Framing) -> int:
    """The start of a Protobuf message, ignoring its indexes."""
    if framing.registry != "confluent" or not framing.size:
        return framing.size
    cursor = Cursor(data, framing.size)
    for _ in range(max(cursor.read_varint(), 0)):
        cursor.read_varint()
    return cursor.position
