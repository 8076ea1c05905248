"""MessagePack (its specification of 2017) → values that JSON can hold.

Binary is ``{"base64": …}``, an extension ``{"extension": type, "base64": …}``, a timestamp ``{"seconds": …,
"nanoseconds": …}``. Keys of maps that are not text are converted to text.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from kdissect.model import DecodeError
from kdissect.payload.avro_values import as_json
from kdissect.payload.plain import as_object, bytes_object, text_or_bytes
from kdissect.protocol.cursor import Cursor

DEEPEST = 100
_single, _double = (Struct(each).unpack for each in (">f", ">d"))
_NOT_USED = 0xC1


def decode_msgpack(data: bytes, start: int = 0) -> Any:
    """The one object in the bytes from ``start`` to the end.

    :raises DecodeError: the bytes have another form.
    """
    cursor = Cursor(data, start)
    value = _object(cursor, 0)
    if cursor.position != cursor.end:
        raise DecodeError("bytes are left after the object", cursor.position, "remainder")
    return value


def _object(cursor: Cursor, depth: int) -> Any:
    start = cursor.take(1)
    if depth > DEEPEST:
        raise DecodeError(f"objects nested deeper than {DEEPEST}", start, "too-many-elements")
    byte = cursor.data[start]
    if byte < 0x80:
        return byte
    if byte >= 0xE0:
        return byte - 0x100
    if byte < 0x90:
        return _map(cursor, byte & 0x0F, depth, start)
    if byte < 0xA0:
        return _array(cursor, byte & 0x0F, depth, start)
    if byte < 0xC0:
        return text_or_bytes(cursor.read_bytes(byte & 0x1F))
    if byte in (0xC0, 0xC2, 0xC3):
        return None if byte == 0xC0 else byte == 0xC3
    if byte == _NOT_USED:
        raise DecodeError("the byte 0xc1, which is never used", start)
    if byte in (0xCA, 0xCB):
        return as_json(_single(cursor.read_bytes(4))[0] if byte == 0xCA else _double(cursor.read_bytes(8))[0])
    if 0xCC <= byte <= 0xD3:
        size = 1 << (byte & 0x03)
        return int.from_bytes(cursor.read_bytes(size), "big", signed=byte >= 0xD0)
    if 0xD4 <= byte <= 0xD8:
        return _extension(cursor, 1 << (byte - 0xD4))
    # The remaining types have a length of 1, 2 or 4 bytes before the data.
    first = {0xC4: 0xC4, 0xC5: 0xC4, 0xC6: 0xC4, 0xC7: 0xC7, 0xC8: 0xC7, 0xC9: 0xC7, 0xD9: 0xD9, 0xDA: 0xD9}
    family = first.get(byte, 0xD9 if byte == 0xDB else 0xDC)
    base = 1 if family == 0xDC else 0
    width = 1 << (((byte - family) % 2 if family == 0xDC else byte - family) + base)
    size = int.from_bytes(cursor.read_bytes(width), "big")
    if byte in (0xDC, 0xDD):
        return _array(cursor, size, depth, start)
    if byte in (0xDE, 0xDF):
        return _map(cursor, size, depth, start)
    if size > cursor.end - cursor.position:
        raise DecodeError(f"the length is {size}, more than what is left", start, "truncated")
    if family == 0xC7:
        return _extension(cursor, size)
    data = cursor.read_bytes(size)
    return bytes_object(data) if family == 0xC4 else text_or_bytes(data)


def _array(cursor: Cursor, count: int, depth: int, start: int) -> list[Any]:
    if count > cursor.end - cursor.position:
        raise DecodeError(f"{count} objects are more than the bytes that are left", start, "truncated")
    return [_object(cursor, depth + 1) for _ in range(count)]


def _map(cursor: Cursor, count: int, depth: int, start: int) -> Any:
    found = _array(cursor, count * 2, depth, start)
    return as_object(found, cursor.position - start, start)


def _extension(cursor: Cursor, size: int) -> Any:
    kind = cursor.read_int8()
    data = cursor.read_bytes(size)
    if kind == -1 and size in (4, 8, 12):
        if size == 4:
            return {"seconds": int.from_bytes(data, "big"), "nanoseconds": 0}
        if size == 8:
            number = int.from_bytes(data, "big")
            return {"seconds": number & ((1 << 34) - 1), "nanoseconds": number >> 34}
        seconds = int.from_bytes(data[4:], "big", signed=True)
        return {"seconds": seconds, "nanoseconds": int.from_bytes(data[:4], "big")}
    return {"extension": kind, **bytes_object(data)}
