"""Where, after damage, a pcapng block surely begins again.

A place counts if all of this holds. It is aligned like the blocks before it. A known block type stands there.
The block's length is possible and is repeated at its end. Behind the block stands the head of another such
block, or the file ends. A section header must have its byte-order magic besides.
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
    """The byte order that the section header at ``at`` sets, by its byte-order magic; None if it has none."""
    return _ORDERS.get(buffer[at + 8 : at + 12])


class Resynchroniser:
    """Looks for blocks of one byte order (and for section headers of either)."""

    def __init__(self, order: str, block_bytes: int) -> None:
        self.needed = 12
        """After a search that was not decided: bytes that must follow the place it gave."""
        self._order = order
        self._block_bytes = block_bytes
        types = b"|".join(re.escape(Struct(order + "I").pack(kind)) for kind in _KNOWN)
        self._types = re.compile(b"(?=" + types + b")", re.DOTALL)

    def find(self, buffer: bytes, at: int, alignment: int, final: bool) -> tuple[int, bool]:
        """The next place from ``at`` on that is surely a block, and True. Or the place up to which no block
        was found, and False: the search must go on from there when more has come.

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
        """Where the block at ``at`` says to end, and its byte order (``order``, unless it is a section
        header); None if that cannot be one."""
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
