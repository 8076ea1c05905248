"""Connections in few bytes, for storage and for other processes. Without numpy, because the process that
counts does not need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdissect.row_chunks import unpack
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
