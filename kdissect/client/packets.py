"""Sent and received bytes → packets, as if they had been captured.

A socket gives bytes, not packets. So packets are made for the bytes: IP and TCP headers with the real
addresses and ports, and sequence numbers from 0. A handshake comes before and FINs after. With TLS the
packets contain the decrypted bytes, so that they can be read without keys. :class:`ConnectionPackets` makes
the packets of one connection, in order.
"""

from __future__ import annotations

from typing import NamedTuple

from kdissect.model import ACK, FIN, PSH, SYN, Direction, Endpoint, Packet

LINK_TYPE = 101
"""LINKTYPE_RAW: packets begin with the IP header."""
LONGEST_PAYLOAD = 65_000
"""The most bytes of payload: an IP packet has at most 65,535 bytes."""

_TTL, _TCP, _WINDOW = 64, 6, 65_535


class SentPacket(NamedTuple):
    """A packet without its final bytes, because secrets in it may still have to be masked."""

    number: int
    time_ns: int
    direction: Direction
    seq: int
    ack: int
    flags: int
    payload: bytes
    start: int
    """The offset of its payload in the direction's stream."""
    comment: str | None = None


class ConnectionPackets:
    """The packets of a TCP connection of which only the bytes are known."""

    def __init__(self, client: Endpoint, broker: Endpoint) -> None:
        self._ends = {Direction.TO_BROKER: client, Direction.FROM_BROKER: broker}
        self._next = dict.fromkeys(Direction, 0)
        """The next sequence number of each direction."""

    def open(self, number: int, time_ns: int, comment: str | None) -> list[SentPacket]:
        """The handshake: three packets."""
        return [
            self._sent(number, time_ns, Direction.TO_BROKER, SYN, comment=comment),
            self._sent(number + 1, time_ns, Direction.FROM_BROKER, SYN | ACK),
            self._sent(number + 2, time_ns, Direction.TO_BROKER, ACK),
        ]

    def data(self, number: int, time_ns: int, direction: Direction, data: bytes) -> list[SentPacket]:
        """Bytes of one direction, in as many packets as they need."""
        pieces = [data[at : at + LONGEST_PAYLOAD] for at in range(0, len(data), LONGEST_PAYLOAD)]
        return [
            self._sent(number + at, time_ns, direction, PSH | ACK, piece) for at, piece in enumerate(pieces)
        ]

    def close(self, number: int, time_ns: int, first: Direction) -> list[SentPacket]:
        """The end of the connection, which the side ``first`` begins: two packets."""
        other = next(each for each in Direction if each is not first)
        return [
            self._sent(number, time_ns, first, FIN | ACK),
            self._sent(number + 1, time_ns, other, FIN | ACK),
        ]

    def _sent(
        self,
        number: int,
        time_ns: int,
        direction: Direction,
        flags: int,
        payload: bytes = b"",
        comment: str | None = None,
    ) -> SentPacket:
        other = next(each for each in Direction if each is not direction)
        seq = self._next[direction]
        ack = self._next[other] if flags & ACK else 0
        self._next[direction] = (seq + len(payload) + (1 if flags & (SYN | FIN) else 0)) & 0xFFFFFFFF
        start = seq - 1  # the SYN used one
        return SentPacket(number, time_ns, direction, seq, ack, flags, payload, start, comment)

    def packet(self, sent: SentPacket) -> Packet:
        """The final packet, with headers and checksums."""
        source = self._ends[sent.direction]
        target = next(end for way, end in self._ends.items() if way is not sent.direction)
        tcp = bytearray(source[-2:] + target[-2:])
        tcp += sent.seq.to_bytes(4, "big") + sent.ack.to_bytes(4, "big")
        tcp += bytes((0x50, sent.flags)) + _WINDOW.to_bytes(2, "big") + bytes(4)
        length = len(tcp) + len(sent.payload)
        pseudo = source[:-2] + target[:-2] + length.to_bytes(4, "big") + _TCP.to_bytes(4, "big")
        tcp[16:18] = _checksum(pseudo + bytes(tcp) + sent.payload)
        data = _ip_header(source[:-2], target[:-2], length, sent.number) + bytes(tcp) + sent.payload
        comments = () if sent.comment is None else (sent.comment,)
        return Packet(sent.number, sent.time_ns, LINK_TYPE, data, len(data), 0, comments)


def _ip_header(source: bytes, target: bytes, length: int, number: int) -> bytes:
    if len(source) == 16:
        return b"\x60\0\0\0" + length.to_bytes(2, "big") + bytes((_TCP, _TTL)) + source + target
    head = bytearray(b"\x45\0" + (20 + length).to_bytes(2, "big") + (number & 0xFFFF).to_bytes(2, "big"))
    head += b"\x40\0" + bytes((_TTL, _TCP, 0, 0)) + source + target
    head[10:12] = _checksum(bytes(head))
    return bytes(head)


def _checksum(data: bytes) -> bytes:
    """The Internet checksum (RFC 1071): the ones' complement of the sum of all 16-bit words."""
    number = int.from_bytes(data + b"\0" * (len(data) & 1), "big")
    total = number % 0xFFFF
    if total == 0 and number:
        total = 0xFFFF
    return (0xFFFF - total).to_bytes(2, "big")
