"""A key or value without a registry's framing → its format, the confidence in that, and its value.

``certain``: the bytes identify themselves (a magic number), or can be nothing else (text). ``likely``: all
bytes fit the format, and other bytes hardly ever do. ``possible``: other formats look the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from kdissect.model import DecodeError
from kdissect.payload.avro_file import MAGIC as AVRO_FILE
from kdissect.payload.avro_file import decode_avro_file
from kdissect.payload.cbor import SELF_DESCRIBED, decode_cbor
from kdissect.payload.framing import Headers
from kdissect.payload.msgpack import decode_msgpack
from kdissect.payload.packed import Unpacker, compression_of
from kdissect.payload.plain import bytes_object, decode_json, text_or_bytes
from kdissect.payload.plain_text import plain_text
from kdissect.payload.protobuf import raw_fields

CERTAIN, LIKELY, POSSIBLE = CONFIDENCES = ("certain", "likely", "possible")

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_XML = re.compile(r"\s*<(\?xml|[A-Za-z_][\w:.-]*[\s/>]|!DOCTYPE|!--)")
_EARLIEST_MS, _LATEST_MS = 946_684_800_000, 4_102_444_800_000
"""The years 2000 and 2100: a time in Streams' keys lies between them."""


class RecognisedBytes(NamedTuple):
    """The format of bytes, and their value."""

    format: str
    value: Any = None
    confidence: str = CERTAIN
    envelope: str | None = None
    """``connect``, ``debezium``, ``cloudevents`` or ``otlp``, if the value is one."""
    compression: str | None = None
    problem: str | None = None
    """Why there is no value."""


BINARY = RecognisedBytes("binary", None, CERTAIN)
"""Bytes of no known format."""
TOO_MUCH = "was not unpacked: earlier values already unpacked to too many bytes"


def recognise(data: bytes, side: str, topic: str, headers: Headers, unpacker: Unpacker) -> RecognisedBytes:
    """The format and the value of a key or value without a schema."""
    if not data:
        return RecognisedBytes("empty", "")
    packed = compression_of(data)
    if packed is not None:
        inside = unpacker.unpack(packed, data)
        if inside is not None:
            found = recognise(inside, side, topic, (), unpacker) if compression_of(inside) is None else BINARY
            return found._replace(compression=packed)
        if unpacker.is_exhausted:
            return BINARY._replace(compression=packed, problem=TOO_MUCH)
    by_magic = _by_magic(data)
    if by_magic is not None:
        return by_magic
    text = plain_text(data)
    if text is not None:
        return enveloped(_text(text, data), headers)
    if side == "key" and "-changelog" in topic:
        windowed = _windowed(data, topic, unpacker)
        if windowed is not None:
            return windowed
    number = _number(data) if side == "key" else None
    return number or _binary(data) or BINARY


def _text(text: str, data: bytes) -> RecognisedBytes:
    first = text.lstrip()[:1]
    if first in ("{", "["):
        try:
            return RecognisedBytes("json", decode_json(data))
        except DecodeError:
            return RecognisedBytes("text", text)
    if first == '"' and text.rstrip()[-1:] == '"' and len(text) > 1:
        try:
            return RecognisedBytes("json", decode_json(data), LIKELY)
        except DecodeError:
            return RecognisedBytes("text", text)
    if first == "<" and _XML.match(text) and text.rstrip().endswith(">"):
        return RecognisedBytes("xml", text, LIKELY)
    return RecognisedBytes("uuid" if len(text) == 36 and _UUID.fullmatch(text) else "text", text)


def enveloped(found: RecognisedBytes, headers: Headers) -> RecognisedBytes:
    """The same, with the name of the value's envelope. A value in Connect's envelope is taken out of it."""
    envelope = envelope_of(found.value, headers)
    if envelope is None:
        return found
    value = found.value["payload"] if envelope == "connect" else found.value
    inner = envelope_of(value, headers) if envelope == "connect" else None
    return found._replace(envelope=f"{envelope}, {inner}" if inner else envelope, value=value)


_OTLP = ("resourceSpans", "resourceLogs", "resourceMetrics")
_CLOUD_EVENT = ("id", "source", "specversion", "type")


def envelope_of(value: Any, headers: Headers) -> str | None:
    """The envelope of a value, by the members that its specification requires: Connect's ``JsonConverter``,
    Debezium's change events, CloudEvents 1.0, OTLP."""
    if any(name == "ce_specversion" for name, _ in headers):
        return "cloudevents"
    if not isinstance(value, dict):
        return None
    if len(value) == 2 and "schema" in value and "payload" in value:
        schema = value["schema"]
        if schema is None or (isinstance(schema, dict) and "type" in schema):
            return "connect"
    if "op" in value and "source" in value and ("before" in value or "after" in value):
        return "debezium"
    if all(isinstance(value.get(name), str) for name in _CLOUD_EVENT):
        return "cloudevents"
    if any(isinstance(value.get(name), list) for name in _OTLP):
        return "otlp"
    return None


# -- by their first bytes ---------------------------------------------------------------------------


def _by_magic(data: bytes) -> RecognisedBytes | None:
    if data.startswith(AVRO_FILE):
        try:
            return RecognisedBytes("avro-file", decode_avro_file(data))
        except (DecodeError, ValueError):
            return RecognisedBytes("avro-file", None, LIKELY)
    if data.startswith(b"\xac\xed\x00\x05"):
        return RecognisedBytes("java", None)
    if data.startswith(SELF_DESCRIBED):
        return _tried("cbor", decode_cbor, data, CERTAIN)
    if data.startswith(b":)\n"):
        return RecognisedBytes("smile", None)
    return None


# -- by trying --------------------------------------------------------------------------------------


def _tried(
    format: str, decode: Callable[[bytes], Any], data: bytes, confidence: str
) -> RecognisedBytes | None:
    try:
        return RecognisedBytes(format, decode(data), confidence)
    except DecodeError:
        return None


def _binary(data: bytes) -> RecognisedBytes | None:
    first = data[0]
    found = []
    if 0x80 <= first <= 0xBF or first in (0xDE, 0xDF, 0xDC, 0xDD):
        cbor = _tried("cbor", decode_cbor, data, LIKELY)
        packed = _tried("msgpack", decode_msgpack, data, LIKELY)
        found = [each for each in (cbor, packed) if each is not None and _has_content(each.value)]
    if len(found) == 1:
        return found[0]
    if found:
        return RecognisedBytes(found[0].format, None, POSSIBLE)
    return _protobuf(data)


def _has_content(value: Any) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _protobuf(data: bytes) -> RecognisedBytes | None:
    """A message without a schema. A few bytes are a message by chance, so two fields are needed, or one with
    text."""
    try:
        fields = raw_fields(data)
    except DecodeError:
        return None
    if len(data) < 4 or not fields:
        return None
    is_sure = len(data) >= 8 and (len(fields) > 1 or fields[0]["wire"] == "len")
    envelope = "otlp" if _is_telemetry(fields) else None
    return RecognisedBytes("protobuf", fields, LIKELY if is_sure else POSSIBLE, envelope)


_RESOURCE = re.compile(
    r"(service|telemetry\.sdk|host|process|os|k8s|container|cloud|deployment|faas)\.[a-z_.]+"
)
"""Names of attributes that OpenTelemetry's conventions use for a resource."""


def _is_telemetry(fields: list[dict[str, Any]]) -> bool:
    """Whether a message is OTLP's: ``ResourceSpans``, ``ResourceLogs`` or ``ResourceMetrics``. Each has a
    resource (field 1) with attribute names of the conventions, and its measurements (field 2)."""
    if any(each["field"] != 1 or not isinstance(each["value"], list) for each in fields):
        return False
    inner = fields[0]["value"]
    if not any(each["field"] == 2 and isinstance(each["value"], list) for each in inner):
        return False
    resources = [each["value"] for each in inner if each["field"] == 1 and isinstance(each["value"], list)]
    attributes = [each["value"] for resource in resources for each in resource if each["field"] == 1]
    return any(_is_attribute(each) for each in attributes)


def _is_attribute(value: Any) -> bool:
    if not isinstance(value, list) or len(value) < 2:
        return False
    key = value[0]
    return (
        key["field"] == 1 and isinstance(key["value"], str) and _RESOURCE.fullmatch(key["value"]) is not None
    )


def _number(data: bytes) -> RecognisedBytes | None:
    """A number or UUID as Kafka's own serializers write keys. Any bytes of that length could be one, so a
    number is likely only if it is small."""
    if len(data) in (4, 8):
        value = int.from_bytes(data, "big", signed=True)
        is_small = data[0] in (0, 0xFF)
        return RecognisedBytes("int32" if len(data) == 4 else "int64", value, LIKELY) if is_small else None
    if len(data) == 16 and data[6] >> 4 in (1, 4, 6, 7) and data[8] >> 6 == 2:
        return RecognisedBytes("uuid", str(UUID(bytes=data)), LIKELY)
    return None


def _windowed(data: bytes, topic: str, unpacker: Unpacker) -> RecognisedBytes | None:
    """The key of a window or session store of Kafka Streams. ``WindowKeySchema`` has key, start and sequence
    number, ``SessionKeySchema`` key, end and start."""

    def time_at(start: int) -> int:
        return int.from_bytes(data[start : start + 8], "big", signed=True)

    def inner(size: int) -> Any:
        found = recognise(data[:size], "key", "", (), unpacker)
        return text_or_bytes(data[:size]) if found.value is None else found.value

    size = len(data)
    if size > 16:
        end, start = time_at(size - 16), time_at(size - 8)
        if _EARLIEST_MS <= start <= end < _LATEST_MS:
            return RecognisedBytes(
                "session-key", {"key": inner(size - 16), "start": start, "end": end}, LIKELY
            )
    if size > 12:
        start, sequence = time_at(size - 12), int.from_bytes(data[size - 4 :], "big")
        if _EARLIEST_MS <= start < _LATEST_MS and sequence < 1 << 24:
            value = {"key": inner(size - 12), "start": start, "sequence": sequence}
            return RecognisedBytes("windowed-key", value, LIKELY)
    return None


# -- as the user says it ----------------------------------------------------------------------------


def _integer(size: int, data: bytes) -> int:
    if len(data) != size:
        raise DecodeError(f"{len(data)} bytes, and {size} are needed", 0)
    return int.from_bytes(data, "big", signed=True)


def _uuid(data: bytes) -> str:
    if len(data) == 16:
        return str(UUID(bytes=data))
    text = plain_text(data) or ""
    if not _UUID.fullmatch(text):
        raise DecodeError("not a UUID", 0)
    return text


FORMS: dict[str, Callable[[bytes], Any]] = {
    "json": decode_json,
    "text": text_or_bytes,
    "hex": bytes.hex,
    "int16": partial(_integer, 2),
    "int32": partial(_integer, 4),
    "int64": partial(_integer, 8),
    "uuid": _uuid,
    "cbor": decode_cbor,
    "msgpack": decode_msgpack,
    "protobuf": raw_fields,
    "bytes": bytes_object,
}
"""The formats that ``--decode-as`` accepts without a schema."""
