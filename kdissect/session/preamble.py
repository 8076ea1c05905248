"""The stage before recognition: it removes the preambles of proxies, and passes on the bytes after them.

    piece ─► Preambles ─► pieces ─► Recogniser

The first few bytes of an end show whether they may be a preamble at all. Until it is complete, the pieces of
both ends are held in their order, bounded by the forms themselves and by ``MOST_HELD``. Several preambles may
follow each other. Broken, cut or refused preambles are passed on unchanged: the later stages account for
their bytes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kdissect.model import Chunk, DecodeError, Gap
from kdissect.protocol.framing import PART_BYTES
from kdissect.session import proxies
from kdissect.session.proxies import Preamble, reader_of
from kdissect.tcp.duplex import Piece, Side

MOST = 4
"""The largest number of consecutive preambles."""
MOST_HELD = 1 << 18
MOST_BEHIND = 4_096
"""If a client sends more bytes after its part of a preamble, the proxy's part counts as not captured."""


class Defect(NamedTuple):
    """A defect of a preamble."""

    side: Side
    packet: int
    offset: int
    """The offset in the stream of that side."""
    message: str


class Preambles:
    """Removes the preambles of one connection. ``feed`` and ``close`` return the pieces that belong to no
    preamble."""

    def __init__(self) -> None:
        self.is_over = False
        """Whether no more preambles can come; then nothing needs to be fed any more."""
        self.found: list[tuple[Side, Preamble]] = []
        """The preambles, each with the end that began it; the caller removes them."""
        self.defects: list[Defect] = []
        self.packets: list[int] = []
        """The packets that carried preambles."""
        self._count = 0
        self._held: list[Piece] = []
        self._starter: Side | None = None
        self._lacks_responder = False
        """Whether bytes of the other end were not captured, so that its answer is unknown."""

    @property
    def held_bytes(self) -> int:
        """The cost of the held pieces."""
        return sum(PART_BYTES + len(p.data) for _, p in self._held if isinstance(p, Chunk))

    def feed(self, side: Side, piece: Chunk | Gap) -> list[Piece]:
        """Take one more piece."""
        if isinstance(piece, Gap) and side == self._starter:
            return [*self._end("bytes of it were not captured"), (side, piece)]
        self._held.append((side, piece))
        if isinstance(piece, Gap):
            self._lacks_responder = True
        if self._starter is None:
            self._starter = side
        out = self._read(final=False)
        if not self.is_over and self.held_bytes > MOST_HELD:
            out += self._end(f"more than {MOST_HELD:,} bytes came before its end")
        return out

    def close(self) -> list[Piece]:
        """End the stage: nothing more will come, or there is no room to wait for it."""
        return self._end("it ends here") if not self.is_over else []

    def _end(self, why: str) -> list[Piece]:
        out = self._read(final=True)
        if self._held and self._starter is not None and not self.is_over:
            self._note(0, f"the preamble of a proxy is incomplete: {why}")
        return out + self._release()

    def _release(self) -> list[Piece]:
        """Return all held pieces: there are no more preambles."""
        out, self._held, self.is_over = self._held, [], True
        return out

    def _read(self, final: bool) -> list[Piece]:
        while self._held and not self.is_over and self._starter is not None:
            said = self._bytes_of(self._starter)
            heard = bytearray() if self._lacks_responder else self._bytes_of(1 - self._starter)
            reader = reader_of(said) if self._count < MOST else None
            try:
                preamble = None if reader is None else reader(said, heard)
            except proxies.More:
                return []
            except DecodeError as error:
                self._note(error.offset, error.reason)
                preamble = None
            if preamble is None:
                return self._release()
            is_waited_for = preamble.is_half and not self._lacks_responder
            is_waited_for = is_waited_for and len(said) - preamble.initiator_bytes <= MOST_BEHIND
            if (preamble.is_refused or is_waited_for) and not final:
                return []
            if preamble.defect is not None:
                self._note(0, preamble.defect)
            self._count += 1
            self.found.append((self._starter, preamble))
            if preamble.is_refused:
                return self._release()
            self._take_off(self._starter, preamble.initiator_bytes)
            self._take_off(1 - self._starter, preamble.responder_bytes)
            if self._held and self._held[0][0] != self._starter:
                return self._release()  # the other end speaks: all needed bytes are there
            if not self._held:
                self._starter = None
        return []

    def _bytes_of(self, side: Side) -> bytearray:
        return bytearray().join(p.data for each, p in self._held if each == side and isinstance(p, Chunk))

    def _take_off(self, side: Side, count: int) -> None:
        """Drop the first bytes of a side."""
        kept: list[Piece] = []
        for each, piece in self._held:
            if each != side or not count or not isinstance(piece, Chunk):
                kept.append((each, piece))
                continue
            taken = min(count, len(piece.data))
            self.packets += piece.packets or (piece.packet,)
            count -= taken
            if taken < len(piece.data):
                kept.append((each, piece._replace(offset=piece.offset + taken, data=piece.data[taken:])))
        self._held = kept

    def _note(self, offset: int, message: str) -> None:
        """Note a defect of the current preamble, at an offset from its beginning."""
        assert self._starter is not None
        first = next(p for side, p in self._held if side == self._starter and isinstance(p, Chunk))
        self.defects.append(Defect(self._starter, first.packet, first.offset + offset, message))


def begins(data: bytes) -> bool:
    """Whether the first bytes of a connection may begin a preamble."""
    return reader_of(data) is not None


def facts(preamble: Preamble, own: str, other: str) -> dict[str, Any]:
    """The facts of a preamble, for the column ``proxies``.

    Its ``size`` is added where its bytes are removed.

    :param own: the address and port of the end that began; ``other`` is the other end's.
    """
    is_told = "target" not in preamble.facts
    size = {} if preamble.is_refused else {"size": preamble.initiator_bytes + preamble.responder_bytes}
    return preamble.facts | {"proxy": own if is_told else other} | size
