"""Packets of captures, some of them damaged or lost."""

from __future__ import annotations

import random
from pathlib import Path

from kdissect.capture.files import read_packets
from kdissect.model import Packet


def packets_of(path: Path, seed: int | None = None) -> list[Packet]:
    """The packets of a capture. With a seed, some of their bytes are changed, always the same ones for a
    seed."""
    packets = [each for each in read_packets([path]) if isinstance(each, Packet)]
    if seed is not None:
        dice = random.Random(seed)
        for _ in range(len(packets) // 8):
            at = dice.randrange(len(packets))
            data = bytearray(packets[at].data)
            data[dice.randrange(54, len(data)) if len(data) > 54 else -1] = dice.choice((0, 1, 0x80, 0xFF))
            packets[at] = packets[at]._replace(data=bytes(data))
    return packets


def packets_left(path: Path, seed: int) -> list[Packet]:
    """The packets of a capture, with one packet in thirty lost, always the same ones for a seed."""
    dice = random.Random(seed)
    return [each for each in packets_of(path) if dice.randrange(30)]
