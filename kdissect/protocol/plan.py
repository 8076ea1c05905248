"""The plan of a struct: what the six walks (decode, annotate, encode, size_of, survey, json_walk) follow, as
plain tuples.

    plan  = (type name, fields, tags)
    field = (opcode, name, argument)
    tags  = ((tag, field), …) in ascending order, or None where the version is not flexible

| opcode | argument |
|---|---|
| below ``STRING``: a value of fixed width | None. |
| strings, bytes | whether null is allowed. |
| arrays | (null allowed, opcode and argument of an element, least bytes of an element). |
| structs | plan. |
"""

from __future__ import annotations

from typing import Any

(
    INT8,
    INT16,
    INT32,
    INT64,
    UINT16,
    UINT32,
    FLOAT64,
    BOOLEAN,
    UUID,
    STRING,
    COMPACT_STRING,
    BYTES,
    COMPACT_BYTES,
    RECORDS,
    COMPACT_RECORDS,
    ARRAY,
    COMPACT_ARRAY,
    STRUCT,
    NULLABLE_STRUCT,
    TAGGED_NULLABLE_STRUCT,
) = range(20)

Plan = tuple[str, tuple[tuple[int, str, Any], ...], tuple[tuple[int, tuple[int, str, Any]], ...] | None]

WIDTHS = (1, 2, 4, 8, 2, 4, 8, 1, 16)
"""The number of bytes of each fixed opcode."""

FIXED = {
    "int8": INT8,
    "int16": INT16,
    "int32": INT32,
    "int64": INT64,
    "uint16": UINT16,
    "uint32": UINT32,
    "float64": FLOAT64,
    "bool": BOOLEAN,
    "uuid": UUID,
}
"""The opcode of each type with fixed width, by Kafka's name."""

VARIABLE = {
    "string": (STRING, COMPACT_STRING),
    "bytes": (BYTES, COMPACT_BYTES),
    "records": (RECORDS, COMPACT_RECORDS),
}
"""The two opcodes of each type with variable length, by Kafka's name: in inflexible versions, and in flexible
ones."""

PRIMITIVES = FIXED.keys() | VARIABLE.keys()

TYPE_NAMES = (
    *("int8", "int16", "int32", "int64", "uint16", "uint32", "float64", "bool", "uuid"),
    *("string", "compact string", "bytes", "compact bytes", "records", "compact records"),
)
"""The type names of leaves, by opcode."""

COMPACT = (COMPACT_STRING, COMPACT_BYTES, COMPACT_RECORDS, COMPACT_ARRAY)
"""KIP-482: the length is an unsigned varint, one more than the counted number; 0 means null."""


def prefix_width(opcode: int) -> int:
    """The fewest bytes of the length of a string, bytes or array."""
    if opcode in COMPACT:
        return 1
    return 2 if opcode == STRING else 4


def least_bytes(opcode: int, argument: Any) -> int:
    """The fewest bytes that a value of this form can take."""
    if opcode < STRING:
        return WIDTHS[opcode]
    if opcode <= COMPACT_ARRAY:
        return prefix_width(opcode)
    if opcode != STRUCT:
        return 1
    _, fields, tags = argument
    least = 0 if tags is None else 1
    for op, _, arg in fields:
        least += WIDTHS[op] if op < STRING else least_bytes(op, arg)
    return least
