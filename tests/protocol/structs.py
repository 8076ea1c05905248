"""Small structs for tests of the walks, from definitions written for them."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.protocol.definition import ApiTraits, Document, FieldDefinition, parse
from kdissect.protocol.schema import Struct, build


def struct_of(text: str, version: int = 1) -> Struct:
    """The first block of a definition text as a class named ``Sample``."""
    return build(parse(text).blocks[0], "Sample", version)


def within(fields: tuple[FieldDefinition, ...]) -> Iterator[FieldDefinition]:
    """Fields, and those of the structs in them, at any depth."""
    for field in fields:
        yield field
        yield from within(field.fields)


def without_traits(document: Document) -> Document:
    """A document with no more than Kafka's own files say."""

    def plain(fields: tuple[FieldDefinition, ...]) -> tuple[FieldDefinition, ...]:
        return tuple(
            each._replace(fields=plain(each.fields), secret=None, holds=None, harmless=False)
            for each in fields
        )

    blocks = tuple(block._replace(fields=plain(block.fields)) for block in document.blocks)
    return document._replace(blocks=blocks, api=ApiTraits())


EVERYTHING = """request 0-9 of 9.9; flexible 5+
    int8      int8           0+
    int16     int16          0+
    int32     int32          0+
    int64     int64          0+
    uint16    uint16         0+
    uint32    uint32         0+
    float64   float64        0+
    bool      bool           0+
    uuid      uuid           0+
    string    string         0+  nullable
    bytes     bytes          0+  nullable
    records   records        0+  nullable
    numbers   []int32        0+  nullable
    words     []string       0+
    things    []Thing        0+  nullable
        name  string         0+
        small string         5+  nullable, default null, tag 1
    one       One            0+  nullable, default null
        id    int16          0+
    tagged    int32          5+  default -1, tag 0
    rare      One            5+  nullable, default null, tag 2
    plain     One            5+  tag 3
    list      []int8         5+  nullable, default null, tag 4
    gone      One            5+  nullable, tag 6
"""
"""A field of every form."""
