"""Captures cut into rotated files."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random

from kdissect.capture.files import read_packets
from kdissect.model import Packet

_HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)


def pcap(packets: Sequence[Packet]) -> bytes:
    """A capture file of Ethernet packets, with nanoseconds."""
    out = [_HEADER]
    for packet in packets:
        seconds, fraction = divmod(packet.timestamp_ns, 1_000_000_000)
        out.append(struct.pack("<IIII", seconds, fraction, len(packet.data), packet.wire_length))
        out.append(packet.data)
    return b"".join(out)


def packets_of(path: Path) -> list[Packet]:
    """The packets of a capture, in the order of their times, as rotated files have them."""
    packets = [item for item in read_packets([path]) if isinstance(item, Packet)]
    return sorted(packets, key=lambda packet: packet.timestamp_ns)


def cut(path: Path, folder: Path, pieces: int, seed: int = 1) -> list[Path]:
    """A capture cut at arbitrary packets; the names of the files are not in the order of time."""
    packets = packets_of(path)
    random = Random(seed)
    ends = sorted(random.sample(range(1, len(packets)), pieces - 1))
    names = [f"{number:03}.pcap" for number in range(pieces)]
    random.shuffle(names)
    files = []
    for name, start, end in zip(names, [0, *ends], [*ends, len(packets)], strict=True):
        file = folder / name
        file.write_bytes(pcap(packets[start:end]))
        files.append(file)
    return files
