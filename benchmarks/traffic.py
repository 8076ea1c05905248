"""Captures of real brokers, repeated with other addresses and times: one large capture."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import kdissect
from kdissect.capture.files import read_packets
from kdissect.model import Packet

CAPTURES = Path(__file__).resolve().parents[1] / "captures"
KINDS = ("basic-kafka43", "consumer-group-kip848", "errors", "share-group-kafka43", "transactions-kafka39")
"""Captures that are repeated, one after another."""

_ETHERNET, _IPV4, _TCP = 1, b"\x08\x00", 6
_HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, _ETHERNET)  # pcap with nanoseconds
_SECOND = 1_000_000_000
_BEGIN_NS = 1_700_000_000 * _SECOND
_PAUSE_NS = 1_000_000


def multiply(path: Path, exchanges: int) -> int:
    """Write a capture with at least so many exchanges; gives how many it has."""
    kinds = [_packets(CAPTURES / f"{name}.pcapng") for name in KINDS]
    in_all = sum(len(list(kdissect.read(CAPTURES / f"{name}.pcapng"))) for name in KINDS)
    rounds = -(-exchanges // in_all)
    with open(path, "wb", buffering=1 << 20) as file:
        file.write(_HEAD)
        start = _BEGIN_NS
        for number in range(rounds):
            for kind, packets in enumerate(kinds):
                address = bytes((10 + kind, number >> 16, number >> 8 & 0xFF, number & 0xFF))
                file.writelines(_moved(packets, address, start))
                start += packets[-1].timestamp_ns - packets[0].timestamp_ns + _PAUSE_NS
    return rounds * in_all


def _packets(path: Path) -> list[Packet]:
    packets = [item for item in read_packets([path]) if isinstance(item, Packet)]
    return [each for each in packets if each.data[12:14] == _IPV4 and each.data[23] == _TCP]


def _moved(packets: list[Packet], address: bytes, start: int) -> Iterator[bytes]:
    """The packets as records of a file, between ends with this address, from this time on."""
    first = packets[0].timestamp_ns
    for packet in packets:
        data = packet.data
        seconds, rest = divmod(start + packet.timestamp_ns - first, _SECOND)
        yield struct.pack("<IIII", seconds, rest, len(data), packet.wire_length)
        yield data[:26] + address + address + data[34:]
