"""Captures of real brokers, repeated with other addresses and times, as one large capture."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import kdissect
from kdissect.capture.files import read_packets
from kdissect.dissect import Dissector, Event
from kdissect.exchange import Exchange
from kdissect.model import Packet

TOP = Path(__file__).resolve().parents[1]
CAPTURES = TOP / "captures"
LAB = TOP / "tests" / "data" / "lab"
"""Captures of real brokers and clients, with the logs of these."""
REAL = {
    "java44-on-44": "clients of Kafka 4.4",
    "cluster43-combined": "a cluster of 4.3, brokers and controllers",
    "streams-protocol-2": "Kafka Streams, new protocol",
    "librdkafka-new": "librdkafka",
    "broker-0.9": "a broker and clients of 2015",
    "kafkajs-on-39": "KafkaJS",
}
"""The captures among them that speed is measured on, and their descriptions."""
KINDS = ("basic-kafka43", "consumer-group-kip848", "errors", "share-group-kafka43", "transactions-kafka39")
"""The captures that are repeated, one after another."""

_ETHERNET, _IPV4, _TCP = 1, b"\x08\x00", 6
FILE_HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, _ETHERNET)  # pcap with nanoseconds
_SECOND = 1_000_000_000
_BEGIN_NS = 1_700_000_000 * _SECOND
_PAUSE_NS = 1_000_000


def multiply(path: Path, exchanges: int) -> int:
    """Write a capture with at least ``exchanges`` exchanges; return how many it has."""
    kinds = [_packets(CAPTURES / f"{name}.pcapng") for name in KINDS]
    in_all = sum(len(list(kdissect.read(CAPTURES / f"{name}.pcapng"))) for name in KINDS)
    rounds = -(-exchanges // in_all)
    with open(path, "wb", buffering=1 << 20) as file:
        file.write(FILE_HEAD)
        start = _BEGIN_NS
        for number in range(rounds):
            for kind, packets in enumerate(kinds):
                address = bytes((10 + kind, number >> 16, number >> 8 & 0xFF, number & 0xFF))
                file.writelines(_moved(packets, address, start))
                start += packets[-1].timestamp_ns - packets[0].timestamp_ns + _PAUSE_NS
    return rounds * in_all


def grow(path: Path, size: int, skew: float = 0.0) -> None:
    """Write a capture of about ``size`` bytes.

    :param skew: the share of the bytes on a single connection, whose client repeats its requests. Packets of
        other connections come between.
    """
    kinds = [_packets(CAPTURES / f"{name}.pcapng") for name in KINDS]
    again = _Again(_packets(CAPTURES / f"{KINDS[0]}.pcapng"))
    start, number = _BEGIN_NS, 0
    written = alone = 0
    with open(path, "wb", buffering=1 << 20) as file:
        file.write(FILE_HEAD)
        while written < size:
            for kind, packets in enumerate(kinds):
                address = bytes((10 + kind, number >> 16, number >> 8 & 0xFF, number & 0xFF))
                for record in _moved(packets, address, start):
                    written += file.write(record)
                start += packets[-1].timestamp_ns - packets[0].timestamp_ns + _PAUSE_NS
                while alone < skew * written:
                    more = b"".join(again.round(start))
                    start += _PAUSE_NS
                    alone += len(more)
                    written += file.write(more)
            number += 1


class Unit(NamedTuple):
    """Frames that contain whole exchanges."""

    frames: Sequence[bytes]
    exchanges: int


def endless(churn: float = 0.0, ends: int = 50) -> Iterator[Unit]:
    """Endless traffic on Ethernet, with one connection that goes on all the time.

    :param churn: the share of the exchanges on connections that begin and end.
    :param ends: how many different endpoints these have, before they repeat.
    """
    kinds = [_packets(CAPTURES / f"{name}.pcapng") for name in KINDS]
    counts = [_exchanges_in([packet.data for packet in kind]) for kind in kinds]
    again = _Again(kinds[0])
    in_round = _exchanges_in(again.frames())
    said = others = 0
    for number in cycle(range(ends * len(kinds))):
        while others >= churn * (said + others):
            yield Unit(list(again.frames()), in_round)
            said += in_round
        number, kind = divmod(number, len(kinds))
        address = bytes((10 + kind, 0, number >> 8, number & 0xFF))
        yield Unit([_between(packet.data, address) for packet in kinds[kind]], counts[kind])
        others += counts[kind]


def _exchanges_in(frames: Iterable[bytes]) -> int:
    dissector = Dissector()
    events: list[Event] = []
    for number, frame in enumerate(frames, 1):
        events += dissector.feed(Packet(number, number, _ETHERNET, frame, len(frame), 0, ()))
    events += dissector.close()
    return sum(isinstance(event, Exchange) for event in events)


def multiply_real(path: Path, case: str, size: int) -> None:
    """Write a capture of :data:`LAB` again and again, until the file has ``size`` bytes. Each copy has other
    addresses, so that all of its connections are new."""
    packets = _packets(lab_capture(case))
    start, number = _BEGIN_NS, 0
    with open(path, "wb", buffering=1 << 20) as file:
        file.write(FILE_HEAD)
        while file.tell() < size:
            shift = bytes((number // 200 & 0xFF, number % 200))
            file.writelines(_moved(packets, shift, start))
            start += packets[-1].timestamp_ns - packets[0].timestamp_ns + _PAUSE_NS
            number += 1


def lab_capture(case: str) -> Path:
    """The capture of a case."""
    return next((LAB / case).glob("capture.pcap*"))


def lab_ports(case: str) -> list[int]:
    """The ports of its brokers."""
    ports: list[int] = json.loads((LAB / case / "case.json").read_text())["ports"]
    return ports


class _Again:
    """The largest connection of a capture, repeated without an end. The messages after its handshake are sent
    again and again, with increasing sequence numbers."""

    def __init__(self, packets: list[Packet]) -> None:
        sizes: dict[bytes, int] = {}
        for packet in packets:
            key = b"".join(sorted((packet.data[34:36], packet.data[36:38])))
            sizes[key] = sizes.get(key, 0) + len(packet.data)
        most = max(sizes, key=lambda key: sizes[key])
        own = [p.data for p in packets if b"".join(sorted((p.data[34:36], p.data[36:38]))) == most]
        # By sender and sequence number, so that retransmissions count once.
        once = {data[34:36] + data[38:42]: data for data in own if _payload(data) and data[47] & 7 == 0}
        self._said = list(once.values())
        self._next = {data[34:36]: int.from_bytes(data[38:42], "big") for data in reversed(self._said)}

    def round(self, start: int) -> Iterator[bytes]:
        """One repetition as records of a file, from a time on."""
        seconds, rest = divmod(start, _SECOND)
        for frame in self.frames():
            yield struct.pack("<IIII", seconds, rest, len(frame), len(frame))
            yield frame

    def frames(self) -> Iterator[bytes]:
        """The frames of one repetition."""
        for data in self._said:
            sender, receiver = data[34:36], data[36:38]
            numbers = struct.pack(
                ">II", self._next[sender] % (1 << 32), self._next.get(receiver, 0) % (1 << 32)
            )
            self._next[sender] += _payload(data)
            yield data[:26] + 2 * bytes((9, 9, 9, 9)) + data[34:38] + numbers + data[46:]


def _payload(data: bytes) -> int:
    """The number of bytes of TCP payload."""
    return int.from_bytes(data[16:18], "big") - 20 - 4 * (data[46] >> 4)


def _packets(path: Path) -> list[Packet]:
    packets = [item for item in read_packets([path]) if isinstance(item, Packet)]
    return [each for each in packets if each.data[12:14] == _IPV4 and each.data[23] == _TCP]


def _moved(packets: list[Packet], address: bytes, start: int) -> Iterator[bytes]:
    """The packets as records of a file, between ends with this address, from a time on."""
    first = packets[0].timestamp_ns
    for packet in packets:
        data = packet.data
        seconds, rest = divmod(start + packet.timestamp_ns - first, _SECOND)
        yield struct.pack("<IIII", seconds, rest, len(data), packet.wire_length)
        yield _between(data, address)


def _between(data: bytes, address: bytes) -> bytes:
    """A frame between other ends: four bytes replace both addresses, two bytes are added to the middle of
    both."""
    if len(address) == 4:
        return data[:26] + address + address + data[34:]
    ends = bytearray(data[26:34])
    for at in (0, 4):
        ends[at + 1], ends[at + 2] = ends[at + 1] + address[0] & 0xFF, ends[at + 2] + address[1] & 0xFF
    return data[:26] + ends + data[34:]
