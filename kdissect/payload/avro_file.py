"""Avro's object container files → the list of their values (Avro 1.12, "Object Container Files")."""

from __future__ import annotations

import zlib
from base64 import b64decode
from typing import Any

from kdissect.model import DecodeError
from kdissect.payload.avro import avro_type
from kdissect.payload.avro_values import BYTES, MAP, AvroType, read_size, read_value, spend, values_left
from kdissect.protocol.cursor import Cursor

MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
LARGEST_BLOCK = 16 << 20
"""The most unpacked bytes of a block."""
MOST_VALUES = 1_000_000
"""The most values of a file: a few bytes may unpack to many, and values such as null have no bytes at all."""


def decode_avro_file(data: bytes) -> list[Any]:
    """All values.

    :raises DecodeError: the file is damaged, or packed with a codec other than ``null`` and ``deflate``.
    :raises SchemaError: its schema cannot be used.
    """
    cursor = Cursor(data, len(MAGIC))
    cursor.elements_left = values_left(len(data))
    schema, codec = _header(cursor)
    sync = cursor.read_bytes(_SYNC_BYTES)
    avro = avro_type(schema)
    values: list[Any] = []
    left = MOST_VALUES
    while cursor.remaining():
        count = cursor.read_varlong()
        block = cursor.read_bytes(read_size(cursor))
        inner = Cursor(_unpacked(block, codec, cursor.position))
        inner.elements_left = allowed = min(values_left(inner.end), left)
        if not 0 <= count <= allowed:
            raise DecodeError(f"a block of {count} values", cursor.position, "too-many-elements")
        spend(inner, count)
        values += [read_value(avro, inner) for _ in range(count)]
        left -= allowed - inner.elements_left
        if cursor.read_bytes(_SYNC_BYTES) != sync:
            raise DecodeError("a block without the file's marker", cursor.position)
    return values


def _header(cursor: Cursor) -> tuple[str, str]:
    """The schema's text and the codec."""
    meta = AvroType(MAP, "map")
    meta.item = AvroType(BYTES, "bytes")
    found = read_value(meta, cursor)
    try:
        schema = b64decode(found["avro.schema"]).decode("utf-8")
        return schema, b64decode(found.get("avro.codec", "bnVsbA==")).decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        raise DecodeError("the header has no schema", cursor.position) from None


def _unpacked(block: bytes, codec: str, at: int) -> bytes:
    if codec == "null":
        return block
    if codec != "deflate":
        raise DecodeError(f"kdissect does not unpack the codec {codec[:40]!r}", at, "unknown-codec")
    stream = zlib.decompressobj(-15)
    try:
        out = stream.decompress(block, LARGEST_BLOCK)
    except zlib.error as error:
        raise DecodeError(str(error), at, "bad-compressed-data") from None
    if stream.unconsumed_tail:
        raise DecodeError(f"a block unpacks to over {LARGEST_BLOCK:,} bytes", at, "decompression-limit")
    return out
