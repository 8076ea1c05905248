"""Segments for tests, in few words."""

from __future__ import annotations

from kdissect.model import ACK, FIN, RST, SYN, Chunk, Endpoint, Fault, Gap, Segment

CLIENT: Endpoint = bytes((10, 0, 0, 1)) + (50_000).to_bytes(2, "big")
BROKER: Endpoint = bytes((10, 0, 0, 2)) + (19_092).to_bytes(2, "big")


class Wire:
    """Numbers packets and fills in what a test does not care about."""

    def __init__(self, client_isn: int = 1000, broker_isn: int = 9000) -> None:
        self.isn = {CLIENT: client_isn, BROKER: broker_isn}
        self.packet = 0

    def segment(
        self,
        source: Endpoint,
        offset: int,
        data: bytes = b"",
        ack: int | None = 0,
        flags: int = 0,
        length: int | None = None,
        at_ns: int | None = None,
    ) -> Segment:
        """``offset`` and ``ack`` count stream bytes from 0; ``ack=None`` leaves the flag out."""
        self.packet += 1
        other = BROKER if source == CLIENT else CLIENT
        seq = (self.isn[source] + 1 + offset) & 0xFFFFFFFF
        number = None if ack is None else (self.isn[other] + 1 + ack) & 0xFFFFFFFF
        flags |= 0 if ack is None else ACK
        time = self.packet * 1000 if at_ns is None else at_ns
        return Segment(
            self.packet,
            time,
            source,
            other,
            seq,
            number,
            flags,
            data,
            len(data) if length is None else length,
        )

    def handshake(self) -> list[Segment]:
        return [
            self.segment(CLIENT, -1, ack=None, flags=SYN),
            self.segment(BROKER, -1, ack=0, flags=SYN),
            self.segment(CLIENT, 0, ack=0),
        ]

    def fin(self, source: Endpoint, offset: int, ack: int = 0) -> Segment:
        return self.segment(source, offset, ack=ack, flags=FIN)

    def rst(self, source: Endpoint, offset: int) -> Segment:
        return self.segment(source, offset, flags=RST)


def stream(pieces: list[Chunk | Gap | Fault]) -> bytes:
    """The delivered bytes, with a dot for each byte of a gap; checks that the pieces join, and that no gap is
    empty."""
    out = b""
    for piece in pieces:
        if isinstance(piece, Fault):
            continue
        assert piece.offset == len(out), f"{piece} does not join at {len(out)}"
        if isinstance(piece, Gap):
            assert piece.length > 0
        out += piece.data if isinstance(piece, Chunk) else b"." * piece.length
    return out
