"""Rows that rarely change, as bytes: many in a compressed chunk.

Rows of connections resemble each other. Compressed one by one they take half of their memory, many together a
fifth.
"""

from __future__ import annotations

import marshal
import zlib
from functools import lru_cache
from typing import Any

CHUNK_ROWS = 128
"""The number of rows in a chunk. Larger chunks take no less memory, and more time to read one row."""

_UNPACKED = 32
"""The number of chunks that stay unpacked. Who reads all rows in order needs a few chunks by turns."""
_FASTEST = 1


def pack(rows: list[Any]) -> bytes:
    """Pack rows of plain values in few bytes."""
    return zlib.compress(marshal.dumps(rows), _FASTEST)


def unpack(packed: bytes) -> list[Any]:
    """The rows that :func:`pack` packed."""
    rows: list[Any] = marshal.loads(zlib.decompress(packed))
    return rows


@lru_cache(_UNPACKED)
def rows_of(chunk: bytes) -> list[bytes]:
    """The rows of a chunk. Do not change them."""
    return unpack(chunk)
