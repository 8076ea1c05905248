"""The headers of a packet → headers with the same facts about the connection, and without its owner.

These stay: types and lengths of layers, VLAN tags, labels, network identifiers, hop limits, flags, ports,
sequence numbers and windows. TCP options about how a connection works stay too. Hardware addresses, padding
and everything else in headers become zeros. IP addresses become others. Checksums are computed again. If
bytes are missing for that, the checksum becomes a number that is equal for equal old checksums.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812 - it is one
from typing import NamedTuple

from kdissect.capture.datagrams import AUTHENTICATION, EXTENSIONS, TCP
from kdissect.capture.links import (
    BETWEEN,
    ETHERNET,
    ETHERNET_FRAME,
    IPV4,
    IPV6,
    LINK_TYPES,
    LOOP,
    NULL,
    SLL,
    SLL2,
    behind,
    network,
)
from kdissect.capture.tunnels import CARRIERS, GRE, UDP, inner
from kdissect.limits import Limits
from kdissect.model import DecodeError, Packet
from kdissect.scrub.values import Scrubber

_FRAGMENT = 44
_UDP_BYTES = 8
_TUNNEL_BYTES = 8
"""The size of the header of VXLAN, and of Geneve without its options."""
_GRE_CHECKSUM = 0x8000
_TCP_BYTES = 20
_MORE_FRAGMENTS, _FRAGMENT_OFFSET = 0x2000, 0x1FFF
_END, _PASS = 0, 1
_OPTIONS = {2: 4, 3: 3, 4: 2, 8: 10}
"""TCP options that are kept, and their lengths: segment size, window scale, SACK permitted, timestamps."""
_SACK = 5

_uint16 = Struct(">H")


class Fragmented(NamedTuple):
    """The part of a TCP segment in a fragment of its datagram."""

    offset: int
    """The offset of its bytes in the IP payload."""


class Layers:
    """The layers of one packet that are written so far."""

    def __init__(self, packet: Packet) -> None:
        self.data = packet.data
        self.out = bytearray(len(packet.data))
        self.networks: list[tuple[int, int, int]] = []
        """The IP layers, outermost first: IPv4 or IPv6, start and end of the header."""
        self.tcp = 0
        """The start of the TCP header, or of the part in a fragment."""
        self.payload = 0
        """The start of the TCP payload."""
        self.length = 0
        """The number of bytes from :attr:`tcp` on, on the wire."""
        self.fragment: Fragmented | None = None

    def keep(self, start: int, end: int) -> None:
        """Copy bytes."""
        self.out[start:end] = self.data[start:end]


class Headers:
    """Replaces the headers of packets."""

    def __init__(self, scrubber: Scrubber, limits: Limits) -> None:
        self._scrubber, self._limits = scrubber, limits

    def layers(self, packet: Packet) -> Layers | None:
        """The layers down to TCP, with all headers written except for lengths and checksums; None if the
        packet has no TCP or a broken header."""
        if packet.link_type not in LINK_TYPES:
            return None
        layers = Layers(packet)
        try:
            room = max(packet.wire_length, len(packet.data))
            return layers if self._link(layers, packet.link_type, room) else None
        except DecodeError:
            return None
        except (IndexError, ValueError, StructError):
            return None  # the packet ends inside a header

    def _link(self, layers: Layers, kind: int, room: int) -> bool:
        data = layers.data
        if kind in (ETHERNET, SLL, SLL2):
            begin, told = {ETHERNET: (14, 12), SLL: (16, 14), SLL2: (20, 0)}[kind]
            if kind == SLL:
                layers.keep(0, 6)
            elif kind == SLL2:
                layers.keep(0, 12)
            layers.keep(told, told + 2)
            protocol = _uint16.unpack_from(data, told)[0]
            protocol, at = self._between(layers, protocol, begin)
        else:
            protocol, at = network(kind, data, self._limits.layers)
            if kind in (NULL, LOOP):
                layers.keep(0, 4)
        return self._network(layers, protocol, at, room - at, 0)

    def _between(self, layers: Layers, protocol: int, at: int) -> tuple[int, int]:
        """Write tags, labels and inner Ethernet headers."""
        for _ in range(self._limits.layers):
            if protocol not in BETWEEN:
                break
            is_frame = protocol == ETHERNET_FRAME
            protocol, end = behind(protocol, layers.data, at)
            layers.keep(end - 2 if is_frame else at, end)
            at = end
        return protocol, at

    def _network(self, layers: Layers, protocol: int, at: int, room: int, tunnels: int) -> bool:
        if protocol == IPV4:
            return self._ipv4(layers, at, room, tunnels)
        if protocol == IPV6:
            return self._ipv6(layers, at, room, tunnels)
        return False

    def _ipv4(self, layers: Layers, at: int, room: int, tunnels: int) -> bool:
        data, out = layers.data, layers.out
        header = (data[at] & 0x0F) * 4
        if data[at] >> 4 != 4 or header < 20 or len(data) < at + header:
            return False
        total = _uint16.unpack_from(data, at + 2)[0] or room
        layers.keep(at, at + 10)
        for place in (at + 12, at + 16):
            out[place : place + 4] = self._scrubber.address(data[place : place + 4])
        for place in range(at + 20, at + header):
            out[place] = _PASS
        layers.networks.append((IPV4, at, at + header))
        fragmented = _uint16.unpack_from(data, at + 6)[0]
        if fragmented & (_MORE_FRAGMENTS | _FRAGMENT_OFFSET):
            if data[at + 9] != TCP:
                return False
            layers.fragment = Fragmented((fragmented & _FRAGMENT_OFFSET) * 8)
        return self._upper(layers, data[at + 9], at + header, total - header, tunnels)

    def _ipv6(self, layers: Layers, at: int, room: int, tunnels: int) -> bool:
        data, out = layers.data, layers.out
        if len(data) < at + 40 or data[at] >> 4 != 6:
            return False
        length = _uint16.unpack_from(data, at + 4)[0] or room - 40
        layers.keep(at, at + 8)
        for place in (at + 8, at + 24):
            out[place : place + 16] = self._scrubber.address(data[place : place + 16])
        layers.networks.append((IPV6, at, at + 40))
        return self._upper(layers, data[at + 6], at + 40, length, tunnels)

    def _upper(self, layers: Layers, protocol: int, at: int, length: int, tunnels: int) -> bool:
        data = layers.data
        for _ in range(self._limits.layers):
            if protocol not in EXTENSIONS:
                break
            size = 8
            if protocol == AUTHENTICATION:
                size = (data[at + 1] + 2) * 4
            elif protocol != _FRAGMENT:
                size = (data[at + 1] + 1) * 8
            # Everything in an extension except its length is zeros: padding, a route without stops, no
            # fragment.
            layers.keep(at, at + (8 if protocol == _FRAGMENT else 2))
            if protocol == _FRAGMENT and (shifted := _uint16.unpack_from(data, at + 2)[0]) & 0xFFF9:
                if data[at] != TCP:
                    return False
                layers.fragment = Fragmented(shifted & 0xFFF8)
            protocol, at, length = data[at], at + size, length - size
        if protocol == TCP:
            return self._tcp(layers, at, length)
        found = inner(protocol, data[at:]) if protocol in CARRIERS else None
        if found is None or tunnels >= self._limits.tunnels:
            return False
        self._tunnel(layers, protocol, at, at + found.at)
        kind, place = self._between(layers, found.type, at + found.at)
        return self._network(layers, kind, place, length - (place - at), tunnels + 1)

    def _tunnel(self, layers: Layers, protocol: int, at: int, end: int) -> None:
        """Write a tunnel's header. Options of Geneve, checksums and fields of mirroring are left out."""
        if protocol == UDP:
            layers.keep(at, at + 6)
            layers.keep(at + _UDP_BYTES, min(end, at + _UDP_BYTES + _TUNNEL_BYTES))
        elif protocol == GRE:
            layers.keep(at, end)
            if _uint16.unpack_from(layers.data, at)[0] & _GRE_CHECKSUM:
                # Without its flag the word would not be there.
                layers.out[at + 4 : at + 8] = bytes(4)

    def _tcp(self, layers: Layers, at: int, length: int) -> bool:
        data, out = layers.data, layers.out
        layers.tcp, layers.length = at, length
        if layers.fragment is not None:
            layers.payload = at
            return True
        header = (data[at + 12] >> 4) * 4
        if not _TCP_BYTES <= header <= length or len(data) < at + 14:
            return False
        layers.payload = at + header
        layers.keep(at, at + 16)
        if header > _TCP_BYTES and len(data) >= at + header:
            out[at + _TCP_BYTES : at + header] = kept_options(data[at + _TCP_BYTES : at + header])
        return True

    def mark(self, data: bytes) -> bytes:
        """Two bytes that are equal for equal bytes, for a checksum that cannot be computed."""
        if not any(data):
            return data
        bits = self._scrubber.permutation.bits
        return bytes((bits(b"checksum high", data), bits(b"checksum low", data)))


def kept_options(options: bytes) -> bytes:
    """The TCP options that are kept, with padding in place of the others."""
    out = bytearray([_PASS]) * len(options)
    at = 0
    while at < len(options):
        kind = options[at]
        if kind == _END:
            out[at:] = bytes(len(options) - at)
            break
        if kind == _PASS:
            at += 1
            continue
        size = options[at + 1] if at + 1 < len(options) else 0
        if size < 2 or at + size > len(options):
            break
        if _OPTIONS.get(kind) == size or (kind == _SACK and size in (10, 18, 26, 34)):
            out[at : at + size] = options[at : at + size]
        at += size
    return bytes(out)


def mend(layers: Layers, packet: bytearray, length: int, mark: bytes) -> None:
    """Write lengths and checksums of all layers.

    :param packet: the headers, and the new payload.
    :param length: the length of the TCP header and the payload on the wire.
    :param mark: the TCP checksum if bytes of the payload are missing.
    """
    grown = length - layers.length
    for kind, at, end in layers.networks:
        field = at + (2 if kind == IPV4 else 4)
        told = _uint16.unpack_from(packet, field)[0]
        if told:
            new = told + grown
            # Segmentation offload leaves 0 for a length that the field cannot express.
            packet[field : field + 2] = _uint16.pack(new if 0 < new <= 0xFFFF else 0)
        if kind == IPV4:
            packet[at + 10 : at + 12] = bytes(2)
            packet[at + 10 : at + 12] = _uint16.pack(_checksum(bytes(packet[at:end])))
    if layers.fragment is not None or len(packet) < layers.tcp + 18:
        return
    packet[layers.tcp + 16 : layers.tcp + 18] = mark
    if layers.tcp + length <= len(packet):
        packet[layers.tcp + 16 : layers.tcp + 18] = bytes(2)
        kind, at, _ = layers.networks[-1]
        ends = packet[at + 12 : at + 20] if kind == IPV4 else packet[at + 8 : at + 40]
        said = bytes(ends) + bytes((0, TCP)) + (length & 0xFFFFFFFF).to_bytes(4, "big")
        covered = bytes(packet[layers.tcp : layers.tcp + length])
        packet[layers.tcp + 16 : layers.tcp + 18] = _uint16.pack(_checksum(said + covered))


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071). Summing more than 16 bits at a time gives the same remainder."""
    if len(data) & 1:
        data += b"\0"
    number = int.from_bytes(data, "big")
    return 0xFFFF - (number % 0xFFFF or (0xFFFF if number else 0))
