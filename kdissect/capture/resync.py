"""The position after damage at which a pcapng block surely begins again.

A position counts if it meets all of these conditions. It is aligned like the blocks before it. A known block
type is there. The block's length is possible and is repeated at its end. The head of another such block
follows, or the file ends. A section header must also have its byte-order magic.
"""

from __future__ import annotations

import re
from struct import Struct

SECTION = 0x0A0D0D0A
INTERFACE, OBSOLETE_PACKET, SIMPLE_PACKET, NAMES, STATISTICS, ENHANCED_PACKET = 1, 2, 3, 4, 5, 6
SECRETS = 0x0A
_CUSTOM, _CUSTOM_LOCAL = 0x0BAD, 0x4000_0BAD
_KNOWN = (
    SECTION,
    INTERFACE,
    OBSOLETE_PACKET,
    SIMPLE_PACKET,
    NAMES,
    STATISTICS,
    ENHANCED_PACKET,
    SECRETS,
    _CUSTOM,
    _CUSTOM_LOCAL,
)

_ORDERS = {bytes.fromhex("1a2b3c4d"): ">", bytes.fromhex("4d3c2b1a"): "<"}


def section_order(buffer: bytes, at: int) -> str | None:
    """The byte order of the section header at ``at``, by its byte-order magic; None if it has none."""
    return _ORDERS.get(buffer[at + 8 : at + 12])


class Resynchroniser:
    """Searches for blocks of one byte order (and for section headers of either)."""

    def __init__(self, order: str, block_bytes: int) -> None:
        self.needed = 12
        """After an undecided search: the number of bytes that must follow the returned position."""
        self._order = order
        self._block_bytes = block_bytes
        types = b"|".join(re.escape(Struct(order + "I").pack(kind)) for kind in _KNOWN)
        self._types = re.compile(b"(?=" + types + b")", re.DOTALL)

    def find(self, buffer: bytes, at: int, alignment: int, final: bool) -> tuple[int, bool]:
        """The next position from ``at`` on that surely begins a block, and True. Or the position up to which
        no block was found, and False: the search must go on from there with more bytes.

        :param alignment: the offset in ``buffer``, modulo 4, at which blocks begin.
        """
        self.needed = 12
        for match in self._types.finditer(buffer, at):
            place = match.start()
            if (place - alignment) & 3:
                continue
            after = self._after(buffer, place, self._order)
            if after is not None and after[0] <= len(buffer):
                length = after[0] - place
                if Struct(after[1] + "I").unpack_from(buffer, after[0] - 4)[0] != length:
                    continue
                if self._is_head(buffer, *after, final):
                    return place, True
                if after[0] + 12 > len(buffer) and not final:
                    self.needed = length + 12
                    return place, False
            elif after is not None and not final:
                self.needed = after[0] - place + 12
                return place, False
            elif place + 12 > len(buffer) and not final:
                return place, False
        return (len(buffer) if final else max(at, len(buffer) - 3)), False

    def _after(self, buffer: bytes, at: int, order: str) -> tuple[int, str] | None:
        """The end that the block at ``at`` announces, and its byte order (``order``, unless it is a section
        header); None if it cannot be a block."""
        if at + 12 > len(buffer):
            return None
        kind, length = Struct(order + "II").unpack_from(buffer, at)
        if kind == SECTION:
            own = section_order(buffer, at)
            if own is None:
                return None
            order = own
            (length,) = Struct(order + "I").unpack_from(buffer, at + 4)
        if kind not in _KNOWN or length < 12 or length & 3 or length > self._block_bytes:
            return None
        return at + length, order

    def _is_head(self, buffer: bytes, at: int, order: str, final: bool) -> bool:
        if at + 12 > len(buffer):
            return final
        return self._after(buffer, at, order) is not None
