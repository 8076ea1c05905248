"""Connections in few bytes, as they are kept and sent to other processes. Without numpy: the process that
counts needs none."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from kdissect.session.conversation import Connection


class PackedRows(NamedTuple):
    """Rows of connections that are packed together. To unpack thousands takes longer than a key may; so who
    sends them to another process leaves it to that one."""

    packed: bytes
    which: tuple[int, ...]
    """Those of them that are meant, in this order."""

    def rows(self) -> Iterator[Connection]:
        """Unpack them."""
        together = unpack(self.packed)
        return (Connection(*together[at]) for at in self.which)


def pack(rows: list[tuple[Any, ...]]) -> bytes:
    """Rows of plain values, in few bytes."""
    return zlib.compress(marshal.dumps(rows), 1)


def unpack(packed: bytes) -> list[tuple[Any, ...]]:
    """What :func:`pack` was given."""
    rows: list[tuple[Any, ...]] = marshal.loads(zlib.decompress(packed))
    return rows
