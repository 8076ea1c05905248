"""Connections in few bytes, for storage and for other processes. Without numpy, because the process that
counts does not need it."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from kdissect.session.conversation import Connection


class PackedRows(NamedTuple):
    """Rows of connections that are packed together. Unpacking thousands takes longer than a key may. So they
    are sent packed, and the receiving process unpacks them."""

    packed: bytes
    which: tuple[int, ...]
    """The chosen rows, in this order."""

    def rows(self) -> Iterator[Connection]:
        """Unpack them."""
        together = unpack(self.packed)
        return (Connection(*together[at]) for at in self.which)


def pack(rows: list[tuple[Any, ...]]) -> bytes:
    """Pack rows of plain values in few bytes."""
    return zlib.compress(marshal.dumps(rows), 1)


def unpack(packed: bytes) -> list[tuple[Any, ...]]:
    """The rows that :func:`pack` packed."""
    rows: list[tuple[Any, ...]] = marshal.loads(zlib.decompress(packed))
    return rows
