"""Wanted packets → all packets that they need. With those, a later reading understands this part of a capture
as in the whole."""

from __future__ import annotations

from collections.abc import Container, Iterable

from kdissect.capture.segments import SegmentReader
from kdissect.limits import Limits
from kdissect.model import FIN, RST, SYN, Endpoint, Packet, Segment


def belonging(
    packets: Iterable[Packet], wanted: set[int], limits: Limits, whole: Container[frozenset[Endpoint]] = ()
) -> set[int]:
    """The packets that belong to the ``wanted`` ones: the beginnings and ends of their connections, and the
    earlier fragments of their datagrams.

    :param whole: the endpoints of connections that need all packets, because they are encrypted.
    """
    reader = SegmentReader(limits)
    begun: dict[frozenset[Endpoint], list[tuple[Segment, tuple[int, ...]]]] = {}
    """The handshakes, with their packets, of connections without a wanted packet so far."""
    shown: set[frozenset[Endpoint]] = set()
    found: set[int] = set()
    for packet in packets:
        segment = reader.feed(packet)
        if not isinstance(segment, Segment):
            continue
        ends = frozenset((segment.source, segment.destination))
        carriers = reader.packets_of(packet.number)
        if segment.flags & SYN:
            earlier = begun.setdefault(ends, [])
            same = [each for each, _ in earlier if each.network == segment.network]
            if (
                segment.ack is None
                and (same or not earlier)
                and not any(each.seq == segment.seq for each in same)
            ):
                earlier.clear()  # another connection uses the endpoints now
                shown.discard(ends)
            earlier.append((segment, carriers))
        if ends in whole:
            found.update(carriers)
        if packet.number in wanted:
            shown.add(ends)
            found.update(carriers)
        if ends in shown:
            for _, others in begun.pop(ends, ()):
                found.update(others)
            if segment.flags & (FIN | RST):
                found.update(carriers)
    return found
