"""Captures for parts: some of real clients one over another, with what goes wrong on a network."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from struct import pack_into, unpack_from

from kdissect.capture.reader import Item
from kdissect.dissect import LINGER_NS
from kdissect.model import Packet, Secrets, renumbered

_LOST = 0.02
"""Of the packets are missing."""
_FRAGMENTED = 0.01
"""Of the packets that can be come as two fragments."""
_ETHERNET, _IPV4, _LEAST_BYTES = 1, b"\x08\x00", 14 + 20 + 64


def composed(
    kinds: Sequence[Sequence[Item]], chance: random.Random, secrets: Sequence[Secrets] = ()
) -> list[Item]:
    """Three captures one over another, in which one packet in fifty is missing. Clocks may be set; ports may
    be used again; some packets are fragments.

    :param secrets: each is told somewhere.
    """
    found: list[Packet] = []
    for kind in chance.sample(kinds, min(3, len(kinds))):
        packets = [each for each in kind if isinstance(each, Packet) and chance.random() >= _LOST]
        if not packets:
            continue
        again = 2 if chance.random() < 0.2 else 1
        step = chance.choice((0, 1, 50)) * LINGER_NS // 40
        stretch = chance.choice((1, 1, 30, 1_000))
        begin = packets[0].timestamp_ns
        length = stretch * (packets[-1].timestamp_ns - begin)
        for turn in range(again):
            pause = turn * (length + chance.choice((1, LINGER_NS // 2, 2 * LINGER_NS)))
            for each in packets:
                time = 10**18 + step + pause + stretch * (each.timestamp_ns - begin)
                found += _fragments(each._replace(timestamp_ns=time), chance)
    found.sort(key=lambda each: each.timestamp_ns)
    if found and chance.random() < 0.2:
        at = chance.randrange(len(found))
        back = chance.choice((1, 2 * LINGER_NS))
        found[at:] = [each._replace(timestamp_ns=each.timestamp_ns - back) for each in found[at:]]
    out: list[Item] = [renumbered(each, number, each.interface) for number, each in enumerate(found, 1)]
    for some in secrets:
        out.insert(chance.randrange(len(out) + 1), some)
    return out


def _fragments(packet: Packet, chance: random.Random) -> Iterable[Packet]:
    """The packet, or the fragments in which it came."""
    data = packet.data
    is_ipv4 = packet.link_type == _ETHERNET and data[12:14] == _IPV4 and data[14:15] == b"\x45"
    if chance.random() >= _FRAGMENTED or not is_ipv4 or len(data) < _LEAST_BYTES:
        return (packet,)
    (length,) = unpack_from(">H", data, 16)
    if length + 14 != len(data):
        return (packet,)
    most = (length - 20 - 1) // 8
    pieces = fragments(packet, 8 * chance.randrange(4, most + 1), chance.randrange(1 << 16))
    if chance.random() < 0.2:
        pieces.reverse()
    if chance.random() < 0.1:
        del pieces[0]
    return pieces


def fragments(packet: Packet, cut: int, identity: int) -> list[Packet]:
    """The two fragments of an IPv4 packet on Ethernet, the first with so many bytes behind its header."""
    data, end = packet.data, len(packet.data) - 34
    pieces = []
    for start, stop in ((0, cut), (cut, end)):
        piece = bytearray(data[:34] + data[34 + start : 34 + stop])
        more = 0x2000 if stop < end else 0
        pack_into(">HHH", piece, 16, 20 + stop - start, identity, more | start >> 3)
        pieces.append(packet._replace(data=bytes(piece), wire_length=len(piece)))
    return pieces
