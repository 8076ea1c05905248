"""Name Resolution Blocks of pcapng: addresses and their names, in the form for writing them again."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from kdissect.capture.options import END, Option

_head = Struct("<HH").pack


def names_body(records: Iterable[tuple[int, bytes]], options: Iterable[Option]) -> bytes:
    """The contents of a block, in little-endian order.

    :param records: types, and addresses with their names.
    """
    parts = [_piece(*each) for each in (*records, (END, b""), *options, (END, b""))]
    return b"".join(parts)


def _piece(kind: int, data: bytes) -> bytes:
    return _head(kind, len(data)) + data + bytes(-len(data) % 4)
