"""Scrubbing in a test: packets in, packets out, and what was made of them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from struct import pack
from typing import NamedTuple

from kdissect.capture.reader import Item
from kdissect.capture.writer import PcapngWriter
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.model import Packet, Segment
from kdissect.scrub.scrubbing import Scrubbing, ScrubCounts
from kdissect.scrub.search import Search
from kdissect.scrub.values import Scrubber
from tests.capture.build import ethernet
from tests.dissecting import dissect
from tests.kafka import Talk
from tests.lab import Dissected, dissected

KEY = bytes(range(32))
OTHER_KEY = bytes(32)

ROW = (
    *(
        "number",
        "connection",
        "api_key",
        "api_version",
        "correlation_id",
        "request_packet",
        "response_packet",
    ),
    *("request_start_ns", "request_time_ns", "response_start_ns", "response_time_ns", "latency_ns"),
    *("request_size", "response_size", "missing", "inferred", "error"),
)
"""What an exchange has that scrubbing does not change."""
TIMES = ("behind_ns", "behind_correlation_id", "network_ns", "throttle_ns", "served_ns", "think_ns")
"""More of that, where nothing was encrypted."""


class Scrubbed(NamedTuple):
    """What came out."""

    packets: list[Packet]
    counts: ScrubCounts
    scrubber: Scrubber

    @property
    def file(self) -> bytes:
        """The packets as a file."""
        file = io.BytesIO()
        writer = PcapngWriter(file)
        for packet in self.packets:
            writer.write(packet)
        return file.getvalue()

    def found(self) -> str | None:
        """Where something that was taken away is still there."""
        search = Search(self.scrubber.taken, DEFAULTS)
        return search.file(io.BytesIO(self.file)) or search.capture(self.packets, frozenset())

    def dissected(self) -> Dissected:
        """What kdissect reads in the result."""
        return dissected(self.packets)


def scrubbed(items: Iterable[Item], key: bytes = KEY) -> Scrubbed:
    """Scrub packets, and what else a capture has."""
    kept = list(items)
    scrubber = Scrubber(key)
    scrubbing = Scrubbing(scrubber, io.BytesIO())
    list(scrubbing.read(kept))
    packets = list(scrubbing.packets(kept))
    return Scrubbed(packets, scrubbing.counts, scrubber)


def exchanges(items: Iterable[Item]) -> list[Exchange]:
    """The exchanges in packets, by number."""
    found = [event for event in dissect(items) if isinstance(event, Exchange)]
    return sorted(found, key=lambda exchange: exchange.number)


def rows(found: Iterable[Exchange], names: Sequence[str] = ROW + TIMES) -> list[dict[str, object]]:
    """What must stay of exchanges."""
    return [{name: getattr(each, name) for name in names} for each in found]


def packet_of(segment: Segment) -> Packet:
    """A packet on Ethernet with a segment of IPv4."""
    size = 20 + len(segment.options)
    head = pack(
        ">HHIIBBHHH",
        int.from_bytes(segment.source[-2:], "big"),
        int.from_bytes(segment.destination[-2:], "big"),
        segment.seq,
        segment.ack or 0,
        size // 4 << 4,
        segment.flags,
        512,
        0,
        0,
    )
    payload = head + segment.options + segment.payload
    ip = pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), segment.packet & 0xFFFF, 0, 64, 6, 0)
    data = ethernet(ip + segment.source[:-2] + segment.destination[:-2] + payload)
    return Packet(segment.packet, segment.timestamp_ns, 1, data, len(data))


def packets_of(talk: Talk) -> list[Packet]:
    """The packets of a conversation."""
    return [packet_of(segment) for segment in talk.segments]
