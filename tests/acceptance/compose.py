"""Real captures in other shapes of TCP, tunnels and files, several at once: what they hold stays the same.

    python -m tests.acceptance.compose [--count 1000] [--seed 0]

No transform loses a byte: segments are cut and joined, come twice, again or late, begin at other sequence
numbers, travel in tunnels and fragments, and are written as other files. Every message must be found, paired
as it was, and nothing else.
"""

from __future__ import annotations

import argparse
import gzip
import io
import random
import sys
from collections.abc import Callable, Iterable
from functools import cache
from struct import pack
from typing import NamedTuple, cast

from kdissect.capture.files import read_packets
from kdissect.capture.segments import SegmentReader
from kdissect.limits import DEFAULTS
from kdissect.model import ACK, FIN, RST, SYN, Endpoint, Packet, Segment
from tests.capture import build
from tests.capture.test_tunnels import geneve, gre, mpls, pppoe, udp, vxlan
from tests.lab import CLEAR_CASES, Case, Dissected, dissected

MOST_SHAPES = 5
REACH = 3
"""Packets by which one may come late; a hole waits for eight."""
SEQUENCE_NUMBERS = 1 << 32

Said = tuple[str, str, str | None, int | None, str | None, tuple[bytes, ...]]
"""What is the same in all shapes of an exchange."""


class Whole(NamedTuple):
    """A capture in which nothing is missing."""

    name: str
    segments: tuple[Segment, ...]
    said: list[Said]
    protocols: list[str]


def said(found: Dissected) -> list[Said]:
    """The exchanges, in an order that does not depend on the packets."""
    return sorted(
        (
            (
                e.client,
                e.broker,
                e.api,
                e.correlation_id,
                e.missing,
                tuple(m.frame.payload for m in e.messages),
            )
            for e in found.exchanges
        ),
        key=repr,
    )


@cache
def captures() -> tuple[Whole, ...]:
    """Those of the lab's in which nothing is missing."""
    return tuple(whole for name in CLEAR_CASES if (whole := _whole(name)) is not None)


def _whole(name: str) -> Whole | None:
    packets = [item for item in Case(name).packets() if isinstance(item, Packet)]
    reader = SegmentReader()
    segments = [each for packet in packets if isinstance(each := reader.feed(packet), Segment)]
    found = dissected(packets)
    is_whole = all(segment.length == len(segment.payload) for segment in segments)
    is_whole = is_whole and not any(fault.layer in ("tcp", "frame") for fault in found.faults)
    # What the evidence of a segment's start shows is not shown where segments are cut.
    if not is_whole or any(exchange.inferred for exchange in found.exchanges):
        return None
    return Whole(name, tuple(segments), said(found), [each.protocol for each in found.connections])


# -- shapes of TCP

Shape = Callable[[list[Segment], random.Random], list[Segment]]


def cut(segments: list[Segment], randomly: random.Random) -> list[Segment]:
    """Smaller segments; none of one byte, which where it is late is taken for a FIN that was acknowledged."""
    size = randomly.choice((7, 64, 200, 536))
    out: list[Segment] = []
    for segment in segments:
        if segment.flags & SYN or segment.length <= size:
            out.append(segment)
            continue
        for at in range(0, segment.length - 1, size):
            is_last = at + size >= segment.length - 1
            part = segment.payload[at:] if is_last else segment.payload[at : at + size]
            flags = segment.flags if is_last else segment.flags & ~FIN
            out.append(_with(segment, part, at)._replace(flags=flags, identity=randomly.getrandbits(32)))
    return out


def joined(segments: list[Segment], randomly: random.Random) -> list[Segment]:
    """Segments that follow each other as one, as offloading hands them over."""
    out: list[Segment] = []
    for segment in segments:
        last = out[-1] if out else None
        if (
            last is not None
            and segment.length
            and last.length
            and (last.source, last.destination, last.ack)
            == (segment.source, segment.destination, segment.ack)
            and not (last.flags | segment.flags) & (SYN | FIN | RST)
            and (last.seq + last.length) % SEQUENCE_NUMBERS == segment.seq
            and last.length + segment.length < 60_000
        ):
            payload = last.payload + segment.payload
            out[-1] = segment._replace(seq=last.seq, payload=payload, length=len(payload))
        else:
            out.append(segment)
    return out


def doubled(segments: list[Segment], randomly: random.Random) -> list[Segment]:
    """Captured at two interfaces."""
    return [segment for segment in segments for _ in range(2)]


def sent_again(segments: list[Segment], randomly: random.Random) -> list[Segment]:
    """Retransmissions, some of them with what came before."""
    out: list[Segment] = []
    latest: dict[tuple[Endpoint, Endpoint], Segment] = {}
    for segment in segments:
        out.append(segment)
        ends = (segment.source, segment.destination)
        before = latest.get(ends)
        if not segment.length or segment.flags & (SYN | FIN | RST):
            latest.pop(ends, None)
            continue
        latest[ends] = segment
        if randomly.random() < 0.2:
            again = segment
            if before is not None and (before.seq + before.length) % SEQUENCE_NUMBERS == segment.seq:
                payload = before.payload + segment.payload
                again = segment._replace(seq=before.seq, payload=payload, length=len(payload))
            if again.length < 60_000:
                out.append(again._replace(identity=randomly.getrandbits(32)))
    return out


def late(segments: list[Segment], randomly: random.Random) -> list[Segment]:
    """A few packets later, but not across the begin or end of a connection."""
    out: list[Segment] = []
    run: list[Segment] = []
    for segment in [*segments, None]:
        if segment is not None and not segment.flags & (SYN | FIN | RST):
            run.append(segment)
            continue
        order = sorted(range(len(run)), key=lambda at: at + randomly.uniform(0, REACH))
        out += [run[at] for at in order]
        out += [segment] if segment is not None else []
        run = []
    return out


def renumbered(segments: list[Segment], randomly: random.Random) -> list[Segment]:
    """Other initial sequence numbers; many wrap around."""
    shifts: dict[tuple[Endpoint, Endpoint], int] = {}
    out = []
    for segment in segments:
        ours = (segment.source, segment.destination)
        if ours not in shifts:
            near_the_end = SEQUENCE_NUMBERS - segment.seq - randomly.randrange(5_000)
            shifts[ours] = near_the_end if randomly.random() < 0.5 else randomly.getrandbits(32)
        theirs = shifts.setdefault((ours[1], ours[0]), randomly.getrandbits(32))
        ack = None if segment.ack is None else (segment.ack + theirs) % SEQUENCE_NUMBERS
        out.append(segment._replace(seq=(segment.seq + shifts[ours]) % SEQUENCE_NUMBERS, ack=ack))
    return out


def probed(segments: list[Segment], randomly: random.Random) -> list[Segment]:
    """Keep-alive probes of no byte, or of the last one sent."""
    out: list[Segment] = []
    for segment in segments:
        out.append(segment)
        if segment.length and not segment.flags & (SYN | FIN | RST) and randomly.random() < 0.1:
            last = segment.length - 1
            out.append(_with(segment, segment.payload[last:] if randomly.random() < 0.5 else b"", last))
    return out


def without_handshakes(segments: list[Segment], randomly: random.Random) -> list[Segment]:
    """Connections that were open when the capture began; their endpoints come once."""
    begun: dict[frozenset[Endpoint], set[int]] = {}
    for segment in segments:
        if segment.flags & (SYN | ACK) == SYN:
            begun.setdefault(frozenset((segment.source, segment.destination)), set()).add(segment.seq)
    return [
        segment
        for segment in segments
        if not segment.flags & SYN or len(begun.get(frozenset((segment.source, segment.destination)), ())) > 1
    ]


SHAPES: tuple[Shape, ...] = (
    *(cut, joined, doubled, sent_again, late, renumbered, probed, without_handshakes),
)


def _with(segment: Segment, payload: bytes, at: int) -> Segment:
    """A part of a segment that begins ``at`` bytes in it."""
    seq = (segment.seq + at) % SEQUENCE_NUMBERS
    return segment._replace(seq=seq, payload=payload, length=len(payload))


# -- packets


def tcp(segment: Segment) -> bytes:
    """The segment with its header; the checksum is what identifies copies."""
    head = pack(
        ">IIBBHHH", segment.seq, segment.ack or 0, 5 << 4, segment.flags, 512, segment.identity & 0xFFFF, 0
    )
    return segment.source[-2:] + segment.destination[-2:] + head + segment.payload


def ip(segment: Segment, has_length: bool = True) -> tuple[int, bytes]:
    """The EtherType and the IP packet; without a length where offloading left it out."""
    body = tcp(segment)
    source, destination = segment.source[:-2], segment.destination[:-2]
    if len(source) == 16:
        return 0x86DD, pack(">IHBB", 6 << 28, len(body), 6, 64) + source + destination + body
    total = 20 + len(body) if has_length else 0
    head = pack(">BBHHHBBH", 0x45, 0, total, segment.identity >> 16 & 0xFFFF, 0, 64, 6, 0)
    return 0x0800, head + source + destination + body


Link = Callable[[int, bytes], bytes]

_AFS = {0x0800: 2, 0x86DD: 10}
_PPP = {0x0800: b"\0\x21", 0x86DD: b"\0\x57"}


def _outer(payload: bytes, protocol: int) -> bytes:
    return build.ethernet(build.ipv4(payload, protocol))


LINKS: dict[str, tuple[int, Link]] = {
    "Ethernet": (1, lambda kind, data: build.ethernet(data, kind)),
    "VLAN": (1, lambda kind, data: build.ethernet(data, kind, [0x8100])),
    "QinQ": (1, lambda kind, data: build.ethernet(data, kind, [0x88A8, 0x8100])),
    "VXLAN": (1, lambda kind, data: _outer(vxlan(build.ethernet(data, kind)), 17)),
    "Geneve": (1, lambda kind, data: _outer(geneve(kind, data, bytes(8)), 17)),
    "GRE": (1, lambda kind, data: _outer(gre(kind, data), 47)),
    "GRE with a key": (1, lambda kind, data: _outer(gre(kind, data, 0x2000, 1), 47)),
    "ERSPAN": (
        1,
        lambda kind, data: _outer(gre(0x88BE, bytes(8) + build.ethernet(data, kind), 0x1000, 1), 47),
    ),
    "IP in IP": (1, lambda kind, data: _outer(data, 4 if kind == 0x0800 else 41)),
    "MPLS": (1, lambda kind, data: build.ethernet(mpls(data, 2), 0x8847)),
    "MPLS over UDP": (1, lambda kind, data: _outer(udp(6635, mpls(data)), 17)),
    "PPPoE": (1, lambda kind, data: build.ethernet(pppoe(_PPP[kind], data), 0x8864)),
    "raw IP": (101, lambda kind, data: data),
    "null": (0, lambda kind, data: pack("<I", _AFS[kind]) + data),
    "loop": (108, lambda kind, data: pack(">I", _AFS[kind]) + data),
    "SLL": (113, lambda kind, data: bytes(14) + pack(">H", kind) + data),
    "SLL2": (276, lambda kind, data: pack(">H", kind) + bytes(18) + data),
}


def fragments(data: bytes, size: int) -> list[bytes]:
    """An IPv4 packet in fragments."""
    head, body = data[:20], data[20:]
    out = []
    for at in range(0, len(body), size):
        part = body[at : at + size]
        more = at + size < len(body)
        total = pack(">H", 20 + len(part))
        place = pack(">H", at // 8 | (0x2000 if more else 0))
        out.append(head[:2] + total + head[4:6] + place + head[8:20] + part)
    return out


# -- files


def _pcap(packets: list[tuple[int, bytes]], link_type: int, order: str, magic: int) -> bytes:
    unit = 1 if magic == 0xA1B23C4D else 1_000
    records = (build.record(data, ns // 10**9, ns % 10**9 // unit, order=order) for ns, data in packets)
    return build.pcap(records, order, magic, link_type)


def _pcapng(packets: list[tuple[int, bytes]], link_type: int, order: str) -> bytes:
    blocks = [build.section(order), build.interface(link_type, order=order)]
    blocks += [build.enhanced(data, ns // 1_000, order=order) for ns, data in packets]
    return b"".join(blocks)


File = Callable[[list[tuple[int, bytes]], int], bytes]

FILES: dict[str, File] = {
    "pcap": lambda packets, link: _pcap(packets, link, "<", 0xA1B2C3D4),
    "pcap, big-endian": lambda packets, link: _pcap(packets, link, ">", 0xA1B2C3D4),
    "pcap, nanoseconds": lambda packets, link: _pcap(packets, link, "<", 0xA1B23C4D),
    "pcapng": lambda packets, link: _pcapng(packets, link, "<"),
    "pcapng, big-endian": lambda packets, link: _pcapng(packets, link, ">"),
    "pcap.gz": lambda packets, link: gzip.compress(_pcap(packets, link, "<", 0xA1B2C3D4), 1),
}


def composed(whole: Whole, randomly: random.Random) -> tuple[str, bytes]:
    """A capture in several shapes at once: their names, and the file."""
    shapes = randomly.sample(SHAPES, randomly.randint(1, MOST_SHAPES))
    if late in shapes:
        shapes.remove(late)
        # Where streams begin without a handshake nobody tells, nor that a response came first. Else it is
        # the last shape: a segment that is late and then cut would be late by hundreds of packets.
        shapes += [] if without_handshakes in shapes else [late]
    segments = list(whole.segments)
    for shape in shapes:
        segments = shape(segments, randomly)
    link = randomly.choice(list(LINKS))
    file = randomly.choice(list(FILES))
    size = randomly.choice((0, 0, 256, 1_000))
    has_length = bool(size) or randomly.random() < 0.7
    link_type, wrap = LINKS[link]
    packets: list[tuple[int, bytes]] = []
    for number, segment in enumerate(segments):
        ns = 1_700_000_000 * 10**9 + number * 50_000
        kind, data = ip(segment, has_length)
        parts = fragments(data, size) if size and kind == 0x0800 and segment.length > size else [data]
        if len(parts) > 1 and randomly.random() < 0.5:
            parts.reverse()
        packets += [(ns, wrap(kind, part)) for part in parts]
    name = " + ".join([*(shape.__name__ for shape in shapes), link, file])
    return f"{whole.name}: {name}, fragments of {size}, {has_length=}", FILES[file](packets, link_type)


def check(seed: str) -> str | None:
    """What is wrong with the composition of this seed; None where nothing is."""
    randomly = random.Random(seed)
    whole = randomly.choice(captures())
    name, file = composed(whole, randomly)
    found = dissected(
        read_packets(["capture"], DEFAULTS, lambda _: cast(io.BufferedIOBase, io.BytesIO(file)))
    )
    got = said(found)
    if got != whole.said:
        lost = [each[:5] for each in whole.said if each not in got]
        bogus = [each[:5] for each in got if each not in whole.said]
        return f"seed {seed}: {name}: {len(lost)} lost {lost[:3]}, {len(bogus)} bogus {bogus[:3]}"
    faults = [fault for fault in found.faults if fault.layer in ("file", "link", "tcp", "frame")]
    return f"seed {seed}: {name}: {faults[:3]}" if faults else None


def failures(seeds: Iterable[str]) -> list[str]:
    """What is wrong, of all of them."""
    return [wrong for seed in seeds if (wrong := check(seed)) is not None]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.compose", description=__doc__)
    parser.add_argument(
        "--count", type=int, default=1_000, help="how many compositions (default %(default)s)"
    )
    parser.add_argument("--seed", default="0", help="another seed gives others (default %(default)s)")
    options = parser.parse_args()
    wrong = failures(f"{options.seed}-{number}" for number in range(options.count))
    for each in wrong:
        sys.stdout.write(f"{each}\n")
    exchanges = sum(len(whole.said) for whole in captures())
    of = f"{len(captures())} captures with {exchanges:,} exchanges"
    sys.stdout.write(f"{len(wrong)} of {options.count:,} compositions wrong, of {of}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
