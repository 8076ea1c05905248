"""Protobuf's wire format → values that JSON can hold (protobuf.dev, "Encoding").

A message is an object with the names of the ``.proto`` file. Fields that cannot be absent are always present,
with their default; others only if the bytes have them. Enums are their symbols, bytes are base64, integers
stay integers. Google's own types are as in Protobuf's JSON (:data:`kdissect.payload.proto_known.SHOWN`).
Fields that the schema does not have are in ``_unknownFields``, in the form of :func:`raw_fields`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, NamedTuple

from kdissect.model import DecodeError
from kdissect.payload.avro_values import as_json
from kdissect.payload.proto_known import SHOWN
from kdissect.payload.proto_types import UNKNOWN, ProtoField, ProtoFile, ProtoMessage
from kdissect.protocol.cursor import Cursor

DEEPEST = 100
"""The deepest nesting of messages; Protobuf's own default."""

VARINT, I64, LEN, SGROUP, EGROUP, I32 = range(6)
WIRE_TYPES = ("varint", "i64", "len", "sgroup", "egroup", "i32")

_float64, _float32 = Struct("<d").unpack, Struct("<f").unpack
_int64, _uint64, _int32, _uint32 = (Struct(each).unpack for each in ("<q", "<Q", "<i", "<I"))


class Wire(NamedTuple):
    """One field on the wire."""

    number: int
    type: int
    value: Any
    """An integer for a varint, else bytes; for a group, the bytes of its fields."""
    start: int
    """The start of its tag."""
    at: int
    """The start of its value."""
    end: int


def messages_at(file: ProtoFile, data: bytes, start: int = 0) -> tuple[tuple[ProtoMessage, ...], int]:
    """The messages that Confluent's indexes may mean, and the start of the value. The indexes are a count and
    numbers, zigzag varints; a count of 0 means the first message.

    Serializers count messages that follow a map differently. Java counts the messages in the schema's text
    (``ProtobufSchema.toMessageIndexes``). Others count the messages in descriptors, where each map has a
    message for its entries (``_create_index_array`` of Python). If the results differ, there are two
    messages, Java's first.

    :raises DecodeError: there are no indexes, or there is no such message.
    """
    cursor = Cursor(data, start)
    count = cursor.read_varint()
    if not 0 <= count <= DEEPEST:
        raise DecodeError(f"{count} message indexes", start)
    indexes = [cursor.read_varint() for _ in range(count)] or [0]
    by_text, by_descriptor = file.messages, file.messages
    found: list[ProtoMessage | None] = []
    for index in indexes:
        found = [each[index] if 0 <= index < len(each) else None for each in (by_text, by_descriptor)]
        by_text, by_descriptor = (
            [] if found[0] is None else found[0].nested,
            [] if found[1] is None else found[1].described,
        )
    # No serializer writes the entry of a map alone.
    known = [each for each in found if each is not None and not each.is_entry]
    if not known:
        raise DecodeError(f"no message has the indexes {', '.join(map(str, indexes))}", start)
    return tuple(dict.fromkeys(known)), cursor.position


def wire_fields(cursor: Cursor, depth: int = 0, group: int = 0) -> Iterator[Wire]:
    """The fields up to the cursor's end, or to the end of a group.

    :raises DecodeError: the bytes are not Protobuf's.
    """
    while cursor.position < cursor.end:
        start = cursor.position
        tag = cursor.read_unsigned_varlong()
        number, kind = tag >> 3, tag & 7
        if not 1 <= number < 1 << 29:
            raise DecodeError(f"field number {number}", start)
        if kind == EGROUP:
            if number != group:
                raise DecodeError(f"the end of group {number}", start)
            return
        cursor.elements_left -= 1
        if cursor.elements_left < 0:
            raise DecodeError("more fields than the limit", start, "too-many-elements")
        at, value = _wire_value(cursor, kind, number, start, depth)
        yield Wire(number, kind, value, start, at, cursor.position)
    if group:
        raise DecodeError(f"group {group} does not end", cursor.position, "truncated")


def _wire_value(cursor: Cursor, kind: int, number: int, start: int, depth: int) -> tuple[int, Any]:
    """Where the value begins, and the value."""
    at = cursor.position
    if kind == VARINT:
        return at, read_varint(cursor)
    if kind == I64:
        return at, cursor.read_bytes(8)
    if kind == I32:
        return at, cursor.read_bytes(4)
    if kind == LEN:
        size = cursor.read_unsigned_varlong()
        if size > cursor.end - cursor.position:
            left = cursor.end - cursor.position
            raise DecodeError(f"the length is {size}, but {left} bytes are left", at, "truncated")
        at = cursor.position
        return at, cursor.read_bytes(size)
    if kind == SGROUP:
        if depth >= DEEPEST:
            raise _too_deep(start)
        end = at
        for each in wire_fields(cursor, depth + 1, number):
            end = each.end
        return at, cursor.data[at:end]
    raise DecodeError(f"wire type {kind}", start)


def read_varint(cursor: Cursor) -> int:
    """A varint of at most ten bytes; bits above 64 are ignored, as in Protobuf's own readers."""
    raw, value = cursor.data, 0
    start = cursor.position
    for at in range(10):
        position = start + at
        if position >= cursor.end:
            raise DecodeError("the varint ends too early", start, "truncated")
        byte = raw[position]
        value |= (byte & 0x7F) << (7 * at)
        if byte < 0x80:
            cursor.position = position + 1
            return value & 0xFFFF_FFFF_FFFF_FFFF
    raise DecodeError("a varint longer than 10 bytes", start, "varint-too-long")


def _too_deep(at: int) -> DecodeError:
    return DecodeError(f"messages nested deeper than {DEEPEST}", at, "too-many-elements")


# -- with a schema ----------------------------------------------------------------------------------


def decode_protobuf(message: ProtoMessage, data: bytes, start: int = 0, depth: int = 0) -> Any:
    """The value of a message in the bytes from ``start`` to the end.

    :param depth: how many messages are around it.
    :raises DecodeError: the bytes are not Protobuf's, or do not fit the message.
    """
    cursor = Cursor(data, start)
    cursor.elements_left = min(cursor.elements_left, 1024 + len(data))
    values: dict[str, Any] = {}
    _read(message, cursor, values, depth)
    return _whole(message, values, depth)


def has_unknown(value: Any) -> bool:
    """Whether a decoded value has fields that its schema does not have."""
    if isinstance(value, dict):
        return UNKNOWN in value or any(map(has_unknown, value.values()))
    return isinstance(value, list) and any(map(has_unknown, value))


def _read(message: ProtoMessage, cursor: Cursor, values: dict[str, Any], depth: int, group: int = 0) -> None:
    """Add the fields in the bytes to ``values``. A message that already has a value is merged, as Protobuf
    requires."""
    if depth > DEEPEST:
        raise _too_deep(cursor.position)
    for wire in wire_fields(cursor, depth, group):
        field = message.by_number.get(wire.number)
        if field is None or not _take(field, wire, cursor, values, depth):
            values.setdefault(UNKNOWN, []).append(_raw(wire, depth))


def _choose(field: ProtoField, values: dict[str, Any]) -> None:
    """Remove the value of the oneof's earlier field."""
    before = values.get(field.oneof, field.name)
    if before != field.name:
        values.pop(before, None)
    values[field.oneof] = field.name


def _take(field: ProtoField, wire: Wire, cursor: Cursor, values: dict[str, Any], depth: int) -> bool:
    """Add a field's value; return False if the field cannot have this wire type."""
    kind = field.kind
    if kind in ("message", "group"):
        if wire.type not in (LEN, SGROUP) or (kind == "message") != (wire.type == LEN):
            return False
        _message(field, wire, cursor, values, depth)
        return True
    wanted, read = SCALARS["int32" if kind == "enum" else kind]
    if wire.type == wanted:
        found = [read(wire.value)]
    elif wire.type == LEN and field.is_repeated and wanted != LEN:
        found = _packed(wanted, read, cursor, wire)
    else:
        return False
    if field.enum is not None:
        enum = field.enum
        if enum.is_closed:
            # Each number that a closed enum does not have is an unknown field.
            odd = [each for each in found if each not in enum.by_number]
            if odd:
                values.setdefault(UNKNOWN, []).extend(
                    {"field": wire.number, "wire": WIRE_TYPES[VARINT], "value": each % (1 << 64)}
                    for each in odd
                )
                found = [each for each in found if each in enum.by_number]
        found = [enum.by_number.get(each, each) for each in found]
    if not found:
        return True
    if field.is_repeated:
        values.setdefault(field.name, []).extend(found)
    else:
        if field.oneof:
            _choose(field, values)
        values[field.name] = found[-1]
    return True


def _message(field: ProtoField, wire: Wire, cursor: Cursor, values: dict[str, Any], depth: int) -> None:
    message = field.message
    assert message is not None
    inner = Cursor(cursor.data, wire.at, wire.end)
    inner.elements_left = cursor.elements_left
    if field.is_map:
        entry: dict[str, Any] = {}
        _read(message, inner, entry, depth + 1)
        if UNKNOWN in entry:
            values.setdefault(UNKNOWN, []).append(_raw(wire, depth))
            enum = message.by_number[2].enum
            if enum is not None and enum.is_closed:
                cursor.elements_left = inner.elements_left
                return  # the enum does not have the number: the whole entry is unknown
        entry = _whole(message, entry, depth + 1, is_entry=True)
        values.setdefault(field.name, {})[_key_text(entry["key"])] = entry["value"]
    elif field.is_repeated:
        own: dict[str, Any] = {}
        _read(message, inner, own, depth + 1, wire.number if wire.type == SGROUP else 0)
        values.setdefault(field.name, []).append(own)
    else:
        if field.oneof:
            _choose(field, values)
        own = values.setdefault(field.name, {})
        _read(message, inner, own, depth + 1, wire.number if wire.type == SGROUP else 0)
    cursor.elements_left = inner.elements_left


def _key_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _packed(wanted: int, read: Callable[[Any], Any], cursor: Cursor, wire: Wire) -> list[Any]:
    inner = Cursor(cursor.data, wire.at, wire.end)
    found = []
    while inner.position < inner.end:
        raw = read_varint(inner) if wanted == VARINT else inner.read_bytes(8 if wanted == I64 else 4)
        found.append(read(raw))
    return found


def _whole(message: ProtoMessage, values: dict[str, Any], depth: int, is_entry: bool = False) -> Any:
    """A message with its fields in order, and defaults for fields that the bytes do not have."""
    out: dict[str, Any] = {}
    for field in message.fields:
        name = field.name
        inner = field.message
        if name in values:
            value = values[name]
            if inner is not None and not field.is_map:
                if field.is_repeated:
                    value = [_whole(inner, each, depth + 1) for each in value]
                else:
                    value = _whole(inner, value, depth + 1)
            out[name] = value
        elif not field.has_presence or is_entry:
            out[name] = _default(field)
    if UNKNOWN in values:
        out[UNKNOWN] = values[UNKNOWN]
        return out
    if message.types is not None:
        return _any(message, out, depth)
    shown = SHOWN.get(message.name)
    return out if shown is None else shown(out)


def _any(message: ProtoMessage, values: dict[str, Any], depth: int) -> Any:
    """An ``Any`` in the form of Protobuf's JSON if the file has its type; else unchanged."""
    assert message.types is not None
    url, data = values.get("type_url"), values.get("value")
    if not (isinstance(url, str) and isinstance(data, str)):
        return values  # another type with the same name
    found = message.types.get(url.rpartition("/")[2])
    if not isinstance(found, ProtoMessage):
        return values
    try:
        value = decode_protobuf(found, b64decode(data, validate=True), 0, depth + 1)
    except (DecodeError, ValueError):
        return values
    if isinstance(value, dict) and found.name not in SHOWN and "@type" not in value:
        return {"@type": url, **value}
    return {"@type": url, "value": value}


def _default(field: ProtoField) -> Any:
    if field.is_map:
        return {}
    if field.is_repeated:
        return []
    if field.enum is not None:
        return field.enum.by_number.get(field.enum.first, field.enum.first)
    if field.message is not None:
        return _whole(field.message, {}, 0)
    if field.kind in ("string", "bytes"):
        return ""
    if field.kind == "bool":
        return False
    return 0.0 if field.kind in ("double", "float") else 0


def _signed(bits: int) -> Callable[[int], int]:
    top, all_bits = 1 << (bits - 1), (1 << bits) - 1
    return lambda value: ((value & all_bits) ^ top) - top


def _zigzag(bits: int) -> Callable[[int], int]:
    mask = (1 << bits) - 1
    return lambda value: ((value & mask) >> 1) ^ -(value & 1)


def _text(data: bytes) -> Any:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64_text(data)}


def base64_text(data: bytes) -> str:
    """Padded standard base64."""
    return b64encode(data).decode("ascii")


def _short_float(data: bytes) -> Any:
    """A float with the fewest digits that distinguish it from its neighbours, as in Protobuf's JSON."""
    value: float = _float32(data)[0]
    for digits in range(6, 10):  # nine digits distinguish any two floats
        short = float(f"{value:.{digits}g}")
        try:
            if Struct("<f").pack(short) == data:
                return as_json(short)
        except OverflowError:
            continue
    return as_json(value)


SCALARS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "int32": (VARINT, _signed(32)),
    "int64": (VARINT, _signed(64)),
    "uint32": (VARINT, lambda value: value & 0xFFFF_FFFF),
    "uint64": (VARINT, lambda value: value),
    "sint32": (VARINT, _zigzag(32)),
    "sint64": (VARINT, _zigzag(64)),
    "bool": (VARINT, bool),
    "double": (I64, lambda data: as_json(_float64(data)[0])),
    "fixed64": (I64, lambda data: _uint64(data)[0]),
    "sfixed64": (I64, lambda data: _int64(data)[0]),
    "float": (I32, _short_float),
    "fixed32": (I32, lambda data: _uint32(data)[0]),
    "sfixed32": (I32, lambda data: _int32(data)[0]),
    "string": (LEN, _text),
    "bytes": (LEN, base64_text),
}
"""The wire type of each scalar, and the function that reads it."""


def read_scalar(field: ProtoField, raw: Any) -> Any:
    """The value of a scalar or an enum.

    :param raw: the value of a :class:`Wire`.
    """
    if field.enum is not None:
        number = SCALARS["int32"][1](raw)
        return field.enum.by_number.get(number, number)
    return SCALARS[field.kind][1](raw)


# -- without a schema -------------------------------------------------------------------------------


def raw_fields(data: bytes, start: int = 0, depth: int = 0) -> list[dict[str, Any]]:
    """The fields of a message with an unknown schema: numbers and wire types, never names.

    :raises DecodeError: the bytes are not Protobuf's.
    """
    cursor = Cursor(data, start)
    cursor.elements_left = min(cursor.elements_left, 1024 + len(data))
    return [_raw(wire, depth) for wire in wire_fields(cursor, depth)]


def _raw(wire: Wire, depth: int) -> dict[str, Any]:
    return {"field": wire.number, "wire": WIRE_TYPES[wire.type], "value": raw_value(wire, depth)}


def raw_value(wire: Wire, depth: int) -> Any:
    """The value of a field without a schema: a number, text, fields, or bytes in hex or base64."""
    value = wire.value
    if wire.type == LEN:
        value = _raw_bytes(value, depth)
    elif wire.type == SGROUP:
        value = raw_fields(value, 0, depth + 1) if depth < DEEPEST else base64_text(value)
    elif wire.type in (I64, I32):
        value = value.hex()
    return value


_DEEPEST_GUESS = 16


def _raw_bytes(data: bytes, depth: int) -> Any:
    """Text if the bytes are printable, fields if all bytes are a message, else base64."""
    try:
        text = data.decode("utf-8")
        if text.isprintable():
            return text
    except UnicodeDecodeError:
        pass
    if depth < _DEEPEST_GUESS:
        try:
            return raw_fields(data, 0, depth + 1)
        except DecodeError:
            pass
    return {"base64": base64_text(data)}
