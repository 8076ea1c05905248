"""An Avro schema's JSON → the type that reads values (Avro 1.12, "Schema Declaration").

Only the parts that decoding needs are checked: a schema with a wrong default or alias still decodes. Schemas
that are used by reference are in a dict of named types; the types of a new schema are added to it.
"""

from __future__ import annotations

import json
from typing import Any

from kdissect.model import DecodeError
from kdissect.payload.avro_values import (
    ARRAY,
    BOOLEAN,
    BYTES,
    DOUBLE,
    ENUM,
    FIXED,
    FLOAT,
    INT,
    LONG,
    LONGEST_DECIMAL,
    MAP,
    NULL,
    RECORD,
    STRING,
    UNION,
    AvroType,
    read_value,
    values_left,
)
from kdissect.protocol.cursor import Cursor
from kdissect.wording import plural

PRIMITIVES = {
    **{"null": NULL, "boolean": BOOLEAN, "int": INT, "long": LONG, "float": FLOAT, "double": DOUBLE},
    **{"bytes": BYTES, "string": STRING},
}
MOST_TYPES = 20_000
"""The most types of one schema."""
DEEPEST_SCHEMA = 64
"""The deepest nesting of types."""


class SchemaError(ValueError):
    """A schema that cannot be used; the text says why."""

    def __init__(self, reason: str, missing: str | None = None) -> None:
        super().__init__(reason)
        self.missing = missing
        """The full name of a type that the schema needs and that is unknown."""


def avro_type(text: str, named: dict[str, AvroType] | None = None) -> AvroType:
    """The type of a schema.

    :param named: the types that it may refer to, by full name. Its own are added.
    :raises SchemaError: the text is no Avro schema.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        if text.strip() not in PRIMITIVES:
            raise SchemaError("an Avro schema is JSON, and this is not") from None
        found = text.strip()
    try:
        return _AvroParser({} if named is None else named).parse(found, "", 0)
    except RecursionError:  # a message quotes the wrong part, which may be nested deeper than types
        raise SchemaError("nested too deep") from None


def decode_avro(avro: AvroType, data: bytes, start: int = 0) -> Any:
    """The value in the bytes from ``start`` to the end.

    :raises DecodeError: the bytes do not fit the type, or bytes are left.
    """
    cursor = Cursor(data, start)
    cursor.elements_left = values_left(len(data) - start)
    value = read_value(avro, cursor)
    if cursor.position != cursor.end:
        left = plural(cursor.end - cursor.position, "byte is", "bytes are")
        raise DecodeError(f"{left} left after the last field", cursor.position, "remainder")
    return value


class _AvroParser:
    """Parses one schema."""

    def __init__(self, named: dict[str, AvroType]) -> None:
        self._named = named
        self._count = 0

    def parse(self, said: Any, space: str, depth: int) -> AvroType:
        """:param space: the namespace around it."""
        self._count += 1
        if self._count > MOST_TYPES:
            raise SchemaError(f"a schema may have {MOST_TYPES:,} types at most")
        if depth > DEEPEST_SCHEMA:
            raise SchemaError(f"types nested deeper than {DEEPEST_SCHEMA}")
        if isinstance(said, str):
            return self._by_name(said, space)
        if isinstance(said, list):
            union = AvroType(UNION, "union")
            union.types = [self.parse(each, space, depth + 1) for each in said]
            return union
        if not isinstance(said, dict):
            raise SchemaError(f"a type is a name, an object or a list, not {_short(said)}")
        kind = said.get("type")
        if kind in ("record", "error"):
            return self._record(said, space, depth)
        if kind == "enum":
            return self._enum(said, space)
        if kind == "fixed":
            return self._fixed(said, space)
        if kind == "array":
            return self._collection(ARRAY, "items", said, space, depth)
        if kind == "map":
            return self._collection(MAP, "values", said, space, depth)
        if isinstance(kind, str) and kind in PRIMITIVES:
            return _logical(AvroType(PRIMITIVES[kind], kind), said)
        if kind is None:
            raise SchemaError(f"an object without a type: {_short(said)}")
        return self.parse(kind, space, depth + 1)

    def _by_name(self, name: str, space: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroType(PRIMITIVES[name], name)
        full = name if "." in name or not space else f"{space}.{name}"
        for each in (full, name):
            if each in self._named:
                return self._named[each]
        raise SchemaError(f"no type is named {_short(full)}", full)

    def _new(self, kind: int, said: dict[str, Any], space: str) -> tuple[AvroType, str]:
        """A type with a name, and the namespace inside it."""
        name = said.get("name")
        if not isinstance(name, str) or not name:
            raise SchemaError(f"a {said['type']} without a name")
        if "." in name:
            space = name.rpartition(".")[0]
        else:
            own = said.get("namespace")
            space = own if isinstance(own, str) else space
            name = f"{space}.{name}" if space else name
        avro = self._named[name] = AvroType(kind, name)
        return avro, space

    def _record(self, said: dict[str, Any], space: str, depth: int) -> AvroType:
        avro, space = self._new(RECORD, said, space)
        fields = said.get("fields")
        if not isinstance(fields, list):
            raise SchemaError(f"the record {_short(avro.name)} has no list of fields")
        for field in fields:
            if not isinstance(field, dict) or not isinstance(field.get("name"), str) or "type" not in field:
                raise SchemaError(f"a field of {_short(avro.name)} has no name or no type")
            avro.types.append(self.parse(field["type"], space, depth + 1))
            avro.names.append(field["name"])
        return avro

    def _enum(self, said: dict[str, Any], space: str) -> AvroType:
        avro, _ = self._new(ENUM, said, space)
        symbols = said.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
            raise SchemaError(f"the enum {_short(avro.name)} has no list of symbols")
        avro.names = list(symbols)
        return avro

    def _fixed(self, said: dict[str, Any], space: str) -> AvroType:
        avro, _ = self._new(FIXED, said, space)
        size = said.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 31:
            raise SchemaError(f"the fixed {_short(avro.name)} has no size")
        avro.size = size
        return _logical(avro, said)

    def _collection(self, kind: int, of: str, said: dict[str, Any], space: str, depth: int) -> AvroType:
        avro = AvroType(kind, said["type"])
        if of not in said:
            raise SchemaError(f"an {said['type']} without {of}")
        avro.item = self.parse(said[of], space, depth + 1)
        return avro


def _logical(avro: AvroType, said: dict[str, Any]) -> AvroType:
    """The type with its logical type, if values are shown by it. An invalid logical type is ignored, as the
    specification requires."""
    logical = said.get("logicalType")
    if avro.kind not in (BYTES, FIXED):
        return avro
    if logical == "decimal":
        scale = said.get("scale", 0)
        if isinstance(scale, int) and 0 <= scale <= LONGEST_DECIMAL and avro.size <= LONGEST_DECIMAL:
            avro.logical, avro.scale = "decimal", scale
    elif (logical == "uuid" and avro.size == 16) or (logical == "duration" and avro.size == 12):
        avro.logical = str(logical)
    return avro


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
