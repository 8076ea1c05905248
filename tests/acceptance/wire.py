"""Conversations made in tests, as the packets of a capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import pack

from kdissect.capture.links import LINK_TYPES
from kdissect.model import Packet, Segment
from tests.kafka import Talk
from tests.lab import Dissected, dissected

RAW_IP = 101
assert RAW_IP in LINK_TYPES


def packets(segments: Iterable[Segment]) -> Iterator[Packet]:
    """IPv4 packets without a link layer."""
    for segment in segments:
        ports = segment.source[4:] + segment.destination[4:]
        numbers = pack(">IIBBHHH", segment.seq, segment.ack or 0, 5 << 4, segment.flags, 65_535, 0, 0)
        length = 40 + len(segment.payload)
        ends = segment.source[:4] + segment.destination[:4]
        header = pack(">BBHHHBBH", 0x45, 0, length, segment.packet & 0xFFFF, 0, 64, 6, 0) + ends
        data = header + ports + numbers + segment.payload
        yield Packet(segment.packet, segment.timestamp_ns, RAW_IP, data, len(data))


def talked(talk: Talk) -> Dissected:
    """What kdissect says of a capture of a conversation."""
    return dissected(packets(talk.segments))
