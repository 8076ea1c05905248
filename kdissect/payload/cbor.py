"""CBOR (RFC 8949) → values that JSON can hold.

Byte strings are ``{"base64": …}``. Keys of maps that are not text are converted to text. Tags are ignored,
except those of large integers; ``undefined`` is null.
"""

from __future__ import annotations

from base64 import b64decode
from struct import Struct
from typing import Any

from kdissect.model import DecodeError
from kdissect.payload.avro_values import as_json
from kdissect.payload.plain import as_object, bytes_object, text_or_bytes
from kdissect.protocol.cursor import Cursor

DEEPEST = 100
SELF_DESCRIBED = b"\xd9\xd9\xf7"
"""The tag that marks data as CBOR."""
_LONGEST_INTEGER = 64
_BREAK = object()
_half, _single, _double = (Struct(each).unpack for each in (">e", ">f", ">d"))


def decode_cbor(data: bytes, start: int = 0) -> Any:
    """The one item in the bytes from ``start`` to the end.

    :raises DecodeError: the bytes have another form.
    """
    cursor = Cursor(data, start)
    cursor.elements_left = min(cursor.elements_left, 1 + len(data))
    value = _item(cursor, 0)
    if cursor.position != cursor.end:
        raise DecodeError("bytes are left after the item", cursor.position, "remainder")
    return value


def _item(cursor: Cursor, depth: int, may_break: bool = False) -> Any:
    start = cursor.take(1)
    if depth > DEEPEST:
        raise DecodeError(f"items nested deeper than {DEEPEST}", start, "too-many-elements")
    byte = cursor.data[start]
    major, info = byte >> 5, byte & 0x1F
    if major == 7:
        return _simple(cursor, info, start, may_break)
    argument = _argument(cursor, info, start)
    if argument is None and major in (0, 1, 6):
        raise DecodeError(f"initial byte {byte:#04x}", start)
    if major in (2, 3):
        return _string(cursor, major, argument, start)
    if major == 4:
        return list(_several(cursor, argument, depth, start))
    if major == 5:
        return _map(cursor, argument, depth, start)
    assert argument is not None
    if major == 6:
        value = _item(cursor, depth + 1)
        return _large(argument, value)
    return argument if major == 0 else -1 - argument


def _argument(cursor: Cursor, info: int, start: int) -> int | None:
    """The argument of an initial byte; None if the length is indefinite."""
    if info < 24:
        return info
    if info == 31:
        return None
    if info > 27:
        raise DecodeError(f"additional information {info}", start)
    return int.from_bytes(cursor.read_bytes(1 << (info - 24)), "big")


def _simple(cursor: Cursor, info: int, start: int, may_break: bool) -> Any:
    if info in (20, 21):
        return info == 21
    if info in (22, 23):
        return None
    if info == 25:
        return as_json(_half(cursor.read_bytes(2))[0])
    if info == 26:
        return as_json(_single(cursor.read_bytes(4))[0])
    if info == 27:
        return as_json(_double(cursor.read_bytes(8))[0])
    if info == 31 and may_break:
        return _BREAK
    raise DecodeError(f"simple value {info}", start)


def _string(cursor: Cursor, major: int, size: int | None, start: int) -> Any:
    if size is not None:
        data = cursor.read_bytes(_room(cursor, size, start))
    else:
        parts = []
        while True:
            at = cursor.take(1)
            byte = cursor.data[at]
            if byte == 0xFF:
                break
            if byte >> 5 != major or byte & 0x1F == 31:
                raise DecodeError("a part of a string of another type", at)
            part = _argument(cursor, byte & 0x1F, at)
            parts.append(cursor.read_bytes(_room(cursor, part or 0, at)))
        data = b"".join(parts)
    return bytes_object(data) if major == 2 else text_or_bytes(data)


def _room(cursor: Cursor, size: int, start: int) -> int:
    if size > cursor.end - cursor.position:
        raise DecodeError(f"the length is {size}, more than what is left", start, "truncated")
    return size


def _several(cursor: Cursor, count: int | None, depth: int, start: int, of: int = 1) -> list[Any]:
    if count is not None and count * of > cursor.end - cursor.position:
        raise DecodeError(f"{count} items are more than the bytes that are left", start, "truncated")
    found: list[Any] = []
    while count is None or len(found) < count * of:
        value = _item(cursor, depth + 1, may_break=count is None)
        if value is _BREAK:
            break
        found.append(value)
    return found


def _map(cursor: Cursor, count: int | None, depth: int, start: int) -> Any:
    found = _several(cursor, count, depth, start, of=2)
    if len(found) % 2:
        raise DecodeError("a key without a value", cursor.position)
    return as_object(found, cursor.position - start, start)


def _large(tag: int, value: Any) -> Any:
    """An integer of any size (tags 2 and 3), else the value."""
    if tag in (2, 3) and isinstance(value, dict) and set(value) == {"base64"}:
        data = b64decode(value["base64"])
        if len(data) <= _LONGEST_INTEGER:
            number = int.from_bytes(data, "big")
            return number if tag == 2 else -1 - number
    return value
