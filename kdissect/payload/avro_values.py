"""Avro's binary encoding → values that JSON can hold (Avro 1.12, "Binary Encoding").

Records and maps are objects, arrays are lists, enums are their symbols. A union is the value of its branch.
Bytes are base64, a decimal is text (``"12.50"``), a duration is an object. Times stay numbers. A string that
is not UTF-8 is ``{"base64": …}``.

A schema may be hostile too. It can nest without end, or describe any number of values that take no bytes. So
depth and the number of values are bounded; the second bound grows with the bytes.
"""

from __future__ import annotations

from base64 import b64encode
from math import isfinite, isnan
from struct import Struct
from typing import Any
from uuid import UUID

from kdissect.model import DecodeError
from kdissect.protocol.cursor import Cursor

NULL, BOOLEAN, INT, LONG, FLOAT, DOUBLE, BYTES, STRING, RECORD, ENUM, ARRAY, MAP, UNION, FIXED = range(14)

_NULL, _BOOLEAN, _INT, _LONG, _FLOAT, _DOUBLE, _BYTES = 0, 1, 2, 3, 4, 5, 6
_STRING, _RECORD, _ENUM, _ARRAY, _MAP, _UNION, _FIXED = 7, 8, 9, 10, 11, 12, 13

DEEPEST = 128
"""The deepest nesting of values."""
_DEEPEST = 128
FREE_VALUES, VALUES_A_BYTE = 1_024, 16
"""How many values there may be: a fixed part, and a part for each byte. Nulls and empty records take no
bytes."""

_float32 = Struct("<f").unpack_from
_float64 = Struct("<d").unpack_from
_duration = Struct("<III").unpack


class AvroType:
    """One type of a schema."""

    __slots__ = ("item", "kind", "logical", "name", "names", "scale", "size", "texts", "types")

    def __init__(self, kind: int, name: str) -> None:
        self.kind = kind
        """One of the numbers above."""
        self.name = name
        """The full name of a record, enum or fixed; else the name of the type."""
        self.names: list[str] = []
        """The names of a record's fields, or an enum's symbols."""
        self.types: list[AvroType] = []
        """The types of a record's fields, or a union's branches."""
        self.item: AvroType | None = None
        """The type of an array's items or a map's values."""
        self.size = 0
        """The size of a fixed."""
        self.logical = ""
        """The logical type if values are shown by it; else empty."""
        self.scale = 0
        """The scale of a decimal."""
        self.texts: list[bytes] | None = None
        """Made by :mod:`kdissect.payload.avro_text`."""


def values_left(size: int) -> int:
    """The most values that ``size`` bytes may have."""
    return FREE_VALUES + VALUES_A_BYTE * size


def read_value(avro: AvroType, cursor: Cursor, depth: int = 0) -> Any:
    """The value at the cursor.

    :param cursor: its ``elements_left`` comes from :func:`values_left`.
    :raises DecodeError: the bytes do not fit the type.
    """
    kind = avro.kind
    if kind == _STRING:
        return read_text(cursor, read_size(cursor))
    if kind == _LONG:
        return cursor.read_varlong()
    if kind == _INT:
        return read_int(cursor)
    if kind == _UNION:
        index = cursor.read_varlong()
        types = avro.types
        if index < 0 or index >= len(types):
            raise DecodeError(f"branch {index} of a union of {len(types)}", cursor.position)
        if depth >= _DEEPEST:
            raise too_deep(cursor)
        return read_value(types[index], cursor, depth + 1)
    if kind == _NULL:
        return None
    if kind == _RECORD:
        return _record(avro, cursor, depth)
    if kind == _DOUBLE:
        return as_json(_float64(cursor.data, cursor.take(8))[0])
    if kind == _BOOLEAN:
        byte = cursor.read_int8()
        if byte < 0 or byte > 1:
            raise DecodeError(f"a boolean of {byte}", cursor.position - 1)
        return byte == 1
    if kind == _ENUM:
        index = cursor.read_varlong()
        names = avro.names
        if index < 0 or index >= len(names):
            raise DecodeError(f"symbol {index} of the enum {avro.name} of {len(names)}", cursor.position)
        return names[index]
    if kind == _ARRAY:
        return _array(avro, cursor, depth)
    if kind == _MAP:
        return _map(avro, cursor, depth)
    if kind == _FLOAT:
        return as_json(_float32(cursor.data, cursor.take(4))[0])
    size = avro.size if kind == _FIXED else read_size(cursor)
    return shown_bytes(avro, cursor.read_bytes(size))


def _record(avro: AvroType, cursor: Cursor, depth: int) -> dict[str, Any]:
    if depth >= _DEEPEST:
        raise too_deep(cursor)
    names, types = avro.names, avro.types
    out: dict[str, Any] = {}
    spend(cursor, len(names) + 1)
    for at in range(len(names)):
        out[names[at]] = read_value(types[at], cursor, depth + 1)
    return out


def _array(avro: AvroType, cursor: Cursor, depth: int) -> list[Any]:
    if depth >= _DEEPEST:
        raise too_deep(cursor)
    item, out = avro.item, []
    left = read_count(cursor)
    while left:
        for _ in range(left):
            out.append(read_value(item, cursor, depth + 1))  # type: ignore[arg-type]
        left = read_count(cursor)
    return out


def _map(avro: AvroType, cursor: Cursor, depth: int) -> dict[str, Any]:
    if depth >= _DEEPEST:
        raise too_deep(cursor)
    item = avro.item
    out: dict[str, Any] = {}
    left = read_count(cursor)
    while left:
        for _ in range(left):
            key = read_text(cursor, read_size(cursor))
            name = key if isinstance(key, str) else str(key)
            out[name] = read_value(item, cursor, depth + 1)  # type: ignore[arg-type]
        left = read_count(cursor)
    return out


def read_count(cursor: Cursor) -> int:
    """The number of items in the next block of an array or map. After a negative count, the block's size
    follows."""
    count = cursor.read_varlong()
    if count < 0:
        if count < -0x7FFF_FFFF:
            raise DecodeError(f"a block of {-count} items", cursor.position, "too-many-elements")
        count = -count
        read_size(cursor)
    spend(cursor, count)
    return count


def spend(cursor: Cursor, count: int) -> None:
    """Count ``count`` more values.

    :raises DecodeError: there are too many.
    """
    if count > cursor.elements_left:
        raise DecodeError(
            f"{count} more values than the bytes can contain", cursor.position, "too-many-elements"
        )
    cursor.elements_left -= count


def read_int(cursor: Cursor) -> int:
    """An int of 32 bits."""
    value = cursor.read_varlong()
    if value > 0x7FFF_FFFF or value < -0x7FFF_FFFF - 1:
        raise DecodeError(f"an int of {value}, which is over 32 bits", cursor.position, "varint-too-long")
    return value


def read_size(cursor: Cursor) -> int:
    """The length of bytes, a string or a block: never more than the bytes that are left."""
    size = cursor.read_varlong()
    if size < 0:
        raise DecodeError(f"the length is {size}", cursor.position, "negative-length")
    if size > cursor.end - cursor.position:
        raise DecodeError(
            f"the length is {size}, but {cursor.end - cursor.position} bytes are left",
            cursor.position,
            "truncated",
        )
    return size


def read_text(cursor: Cursor, size: int) -> Any:
    """UTF-8, or ``{"base64": …}``."""
    data = cursor.read_bytes(size)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


def as_json(number: float) -> Any:
    """The number if JSON can express it, else its name."""
    if isfinite(number):
        return number
    return "NaN" if isnan(number) else "Infinity" if number > 0 else "-Infinity"


def too_deep(cursor: Cursor) -> DecodeError:
    """The error of values that are nested too deep."""
    return DecodeError(f"values nested deeper than {_DEEPEST}", cursor.position, "too-many-elements")


def shown_bytes(avro: AvroType, data: bytes) -> Any:
    """Bytes or a fixed, by their logical type."""
    logical = avro.logical
    if logical == "decimal" and len(data) <= LONGEST_DECIMAL:
        return decimal_text(int.from_bytes(data, "big", signed=True), avro.scale)
    if logical == "uuid":
        return str(UUID(bytes=data))
    if logical == "duration":
        months, days, milliseconds = _duration(data)
        return {"months": months, "days": days, "milliseconds": milliseconds}
    return b64encode(data).decode("ascii")


LONGEST_DECIMAL = 256
"""The most bytes of a decimal that is written in digits."""


def decimal_text(unscaled: int, scale: int) -> str:
    """A decimal as text: ``12.50``."""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    sign = "-" if unscaled < 0 else ""
    return sign + (f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits)
