"""Avro's binary encoding → JSON text, without creating an object for each value.

The text is equal to :func:`~kdissect.protocol.json_form.dumps` of the value that
:mod:`kdissect.payload.avro_values` reads, and several times faster. That module also reads bytes with a
logical type.
"""

from __future__ import annotations

from json.encoder import encode_basestring_ascii
from struct import Struct

from kdissect.model import DecodeError
from kdissect.payload.avro_values import (
    AvroType,
    read_count,
    read_int,
    read_size,
    read_value,
    spend,
    too_deep,
)
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.json_form import dumps, java_double
from kdissect.protocol.json_text import JsonText

_NULL, _BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES = 0, 1, 2, 3, 4, 5, 6
_STRING, _RECORD, _ENUM, _ARRAY, _MAP, _UNION, _FIXED = 7, 8, 9, 10, 11, 12, 13
_DEEPEST = 128

_float64, _float32 = Struct("<d").unpack_from, Struct("<f").unpack_from


def can_be_written(avro: AvroType) -> bool:
    """Whether this module can write the text of the type's values. It cannot if two fields of a record have
    one name. It cannot if the value itself may be null, because a null value has no column."""
    if avro.kind in (_NULL, _UNION):
        return False
    seen, waiting = {id(avro)}, [avro]
    while waiting:
        each = waiting.pop()
        if each.kind == _RECORD and len(set(each.names)) < len(each.names):
            return False
        for inner in (*each.types, each.item):
            if inner is not None and id(inner) not in seen:
                seen.add(id(inner))
                waiting.append(inner)
    return True


def write_value(out: JsonText, avro: AvroType, cursor: Cursor, depth: int = 0) -> None:
    """Write the value at the cursor.

    :raises DecodeError: like :func:`~kdissect.payload.avro_values.read_value`. Also if a map has a key twice,
        or a key that is not UTF-8. A part may be written then.
    """
    kind = avro.kind
    if kind == _STRING:
        size = read_size(cursor)
        out.string(cursor.data, cursor.take(size), size)
    elif kind == _LONG:
        out.number(cursor.read_varlong())
    elif kind == _INT:
        out.number(read_int(cursor))
    elif kind == _UNION:
        index = cursor.read_varlong()
        types = avro.types
        if index < 0 or index >= len(types):
            raise DecodeError(f"branch {index} of a union of {len(types)}", cursor.position)
        if depth >= _DEEPEST:
            raise too_deep(cursor)
        write_value(out, types[index], cursor, depth + 1)
    elif kind == _NULL:
        out.put(b"null")
    elif kind == _RECORD:
        _record(out, avro, cursor, depth)
    elif kind == _DOUBLE:
        out.put(java_double(_float64(cursor.data, cursor.take(8))[0]).encode("ascii"))
    elif kind == _FLOAT:
        out.put(java_double(_float32(cursor.data, cursor.take(4))[0]).encode("ascii"))
    elif kind == _ENUM:
        index = cursor.read_varlong()
        if index < 0 or index >= len(avro.names):
            raise DecodeError(f"symbol {index} of an enum of {len(avro.names)}", cursor.position)
        out.put(_texts(avro)[index])
    elif kind == _ARRAY:
        _array(out, avro, cursor, depth)
    elif kind == _MAP:
        _map(out, avro, cursor, depth)
    elif kind in (_BYTES, _FIXED) and not avro.logical:
        size = avro.size if kind == _FIXED else read_size(cursor)
        out.base64(cursor.data, cursor.take(size), size)
    else:
        out.put(dumps(read_value(avro, cursor, depth)).encode("ascii"))


def _record(out: JsonText, avro: AvroType, cursor: Cursor, depth: int) -> None:
    if depth >= _DEEPEST:
        raise too_deep(cursor)
    texts, types = _texts(avro), avro.types
    spend(cursor, len(types) + 1)
    for at in range(len(types)):
        out.put(texts[at])
        write_value(out, types[at], cursor, depth + 1)
    out.put(b"}" if types else b"{}")


def _array(out: JsonText, avro: AvroType, cursor: Cursor, depth: int) -> None:
    if depth >= _DEEPEST:
        raise too_deep(cursor)
    item, before = avro.item, b"["
    left = read_count(cursor)
    while left:
        for _ in range(left):
            out.put(before)
            before = b","
            write_value(out, item, cursor, depth + 1)  # type: ignore[arg-type]
        left = read_count(cursor)
    out.put(b"[]" if before == b"[" else b"]")


def _map(out: JsonText, avro: AvroType, cursor: Cursor, depth: int) -> None:
    if depth >= _DEEPEST:
        raise too_deep(cursor)
    item, before = avro.item, b"{"
    data, keys = cursor.data, set()
    left = read_count(cursor)
    while left:
        for _ in range(left):
            out.put(before)
            before = b","
            size = read_size(cursor)
            start = cursor.take(size)
            key = data[start : start + size]
            if key in keys or not out.string(data, start, size):
                raise DecodeError("a map with a key that cannot be in JSON", start)
            keys.add(key)
            out.put(b":")
            write_value(out, item, cursor, depth + 1)  # type: ignore[arg-type]
        left = read_count(cursor)
    out.put(b"{}" if before == b"{" else b"}")


def _texts(avro: AvroType) -> list[bytes]:
    """The texts before the fields of a record, or the symbols of an enum."""
    texts = avro.texts
    if texts is None:
        names = [encode_basestring_ascii(name).encode("ascii") for name in avro.names]
        if avro.kind == _RECORD:
            names = [(b"," if at else b"{") + name + b":" for at, name in enumerate(names)]
        texts = avro.texts = names
    return texts
