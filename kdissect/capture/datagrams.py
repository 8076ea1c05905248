"""Packet ─► Segment, the thorough way: IPv4 with options, IPv6 with extension headers, fragments, tunnels,
and every header that is damaged, cut or absent. dpkt reads extension headers; its exceptions do not leave
this module.

:mod:`~kdissect.capture.segments` reads the common packets itself and passes the others to this module. Both
give the same result for its packets; tests compare them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from struct import Struct
from typing import Any

from kdissect.capture.fragments import Fragment, FragmentKey, Fragments, fits
from kdissect.capture.links import IPV4, IPV6, LINK_TYPES, carried, network
from kdissect.capture.tunnels import CARRIERS, UDP, begins_tunnel, inner, within
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import ACK, SYN, DecodeError, Fault, Packet, Segment
from kdissect.wording import plural

TCP = 6
AUTHENTICATION = 51
_FRAGMENT = 44
EXTENSIONS = frozenset((0, 43, _FRAGMENT, AUTHENTICATION, 60))
"""Headers that may be between IPv6 and TCP: hop-by-hop options, routing, fragment, authentication,
destination options. The search ends at encrypted data."""

_CARRIED = CARRIERS | {TCP, AUTHENTICATION}
"""The protocols that are read after an IPv4 header."""

_ipv4 = Struct(">BxHHHxBxx4s4s").unpack_from
_MORE_FRAGMENTS, _FRAGMENT_OFFSET = 0x2000, 0x1FFF

_tcp = Struct(">2s2sIIBB").unpack_from
_TCP_LEAST = 14
"""The bytes up to the flags: enough for a Segment if the snap length cut the rest."""
_TCP_CHECKSUM_END = 18
_TIMESTAMP = b"\x01\x01\x08\x0a"
"""The first bytes of a timestamp option as all systems place it, except in a SYN."""
TIMESTAMP_HEADER = 32
"""The bytes of a TCP header with a timestamp, as nearly all are. Further options may have other
information."""


class DatagramReader:
    """``feed(packet)`` returns its TCP segment, None if it has none (yet), or a Fault."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._limits = limits
        self._fragments = Fragments(limits)
        self._unknown: set[int] = set()
        """The interfaces whose link type was already reported."""
        self._completed: list[int] = []
        """The packets of the last completed datagram."""

    def feed(self, packet: Packet) -> Segment | Fault | None:
        """The segment that ``packet`` carries or completes."""
        try:
            found = self._segment(packet)
        except DecodeError as error:
            kind = error.kind if error.kind == "too-many-layers" else "bad-header"
            return fault(kind, error.reason, packet=packet.number, layer="link")
        if found is None and self._fragments.faults:
            return self._fragments.faults.popleft()
        return found

    def packets_of(self, number: int) -> tuple[int, ...]:
        """The packets that carried the result of the packet ``number``, which was fed last."""
        is_completed = bool(self._completed) and self._completed[-1] == number
        return tuple(self._completed) if is_completed else (number,)

    @property
    def waits(self) -> bool:
        """Whether fragments wait for others, or a fault of fragments waits to be reported."""
        return self._fragments.wait

    @property
    def had_fragments(self) -> bool:
        """Whether there was a fragment."""
        return self._fragments.had_any

    @property
    def fragments(self) -> Fragments:
        """The current fragments."""
        return self._fragments

    def resume_with(self, fragments: Fragments) -> None:
        """Go on with the fragments of another reader, which read the packets in between. No fragments waited
        here."""
        self._fragments = fragments

    @property
    def has_fault(self) -> bool:
        """Whether a fault of fragments waits to be reported by the next packet without a segment."""
        return bool(self._fragments.faults)

    def close(self) -> list[Fault]:
        """The faults of datagrams whose fragments never came together."""
        self._fragments.close()
        faults = list(self._fragments.faults)
        self._fragments.faults.clear()
        return faults

    def _segment(self, packet: Packet) -> Segment | Fault | None:
        if packet.link_type not in LINK_TYPES:
            if packet.interface in self._unknown:
                return None
            self._unknown.add(packet.interface)
            return fault(
                "unknown-link-type",
                f"packets of interface {packet.interface} have link type {packet.link_type}, which cannot be "
                "read; further ones are not reported",
                packet=packet.number,
            )
        protocol, at = network(packet.link_type, packet.data, self._limits.layers)
        # The wire length is wrong in some files, but a captured byte was surely on the wire.
        room = max(packet.wire_length, len(packet.data)) - at
        return self._network(packet, protocol, packet.data[at:], room, 0, 0)

    def _network(
        self, packet: Packet, protocol: int, data: bytes, room: int, tunnels: int, net: int
    ) -> Segment | None:
        """Read a network layer of ``room`` bytes on the wire, inside ``tunnels`` tunnels, in the network
        ``net``."""
        if protocol == IPV4:
            return self._ipv4(packet, data, room, tunnels, net)
        if protocol == IPV6:
            return self._ipv6(packet, data, room, tunnels, net)
        return None

    def _ipv4(self, packet: Packet, data: bytes, room: int, tunnels: int, net: int) -> Segment | None:
        if len(data) < 20:
            raise _cut("IPv4", data, 20)
        first, total, identification, fragmented, protocol, source, destination = _ipv4(data)
        if first >> 4 != 4:
            raise DecodeError(f"an IPv4 packet has version {first >> 4}", 0)
        header_bytes = (first & 0x0F) * 4
        if header_bytes < 20:
            raise DecodeError(f"an IPv4 header announces {plural(header_bytes, 'byte')}", 0)
        if protocol not in _CARRIED:
            return None
        if len(data) < header_bytes:
            raise _cut("IPv4", data, header_bytes)
        # Segmentation offload leaves 0: the packet is longer than the field can express, or was captured
        # before its length was filled in.
        total = total or room
        if total < header_bytes:
            raise DecodeError(
                f"an IPv4 packet announces {plural(total, 'byte')}, but {header_bytes} for its header", 2
            )
        payload, length = data[header_bytes:total], total - header_bytes
        if fragmented & (_FRAGMENT_OFFSET | _MORE_FRAGMENTS):
            key = (source, destination, protocol, identification, net)
            offset = (fragmented & _FRAGMENT_OFFSET) * 8
            whole = self._add_fragment(
                packet, key, offset, payload, length, bool(fragmented & _MORE_FRAGMENTS)
            )
            if whole is None:
                return None
            payload, length = whole
        return self._upper(
            packet, source, destination, protocol, payload, length, tunnels, net, identification << 16
        )

    def _ipv6(self, packet: Packet, data: bytes, room: int, tunnels: int, net: int) -> Segment | None:
        if len(data) < 40:
            raise _cut("IPv6", data, 40)
        if data[0] >> 4 != 6:
            raise DecodeError(f"an IPv6 packet has version {data[0] >> 4}", 0)
        # 0 means segmentation offload, or a jumbogram (RFC 2675), whose length is that of the packet.
        length = int.from_bytes(data[4:6], "big") or room - 40
        return self._upper(
            packet, data[8:24], data[24:40], data[6], data[40 : 40 + length], length, tunnels, net, 0
        )

    def _upper(
        self,
        packet: Packet,
        source: bytes,
        destination: bytes,
        protocol: int,
        data: bytes,
        length: int,
        tunnels: int,
        net: int,
        identity: int,
    ) -> Segment | None:
        """Read through extension headers to TCP, or into a tunnel; ``length`` is the length of ``data`` on
        the wire."""
        layers = 0
        while protocol in EXTENSIONS:
            layers += 1
            if layers > self._limits.layers:
                raise DecodeError(f"more than {self._limits.layers} extension headers", 0, "too-many-layers")
            header = _guarded(_extension_headers()[protocol], data, "IPv6 extension header")
            if header.length > len(data):
                raise _cut("IPv6 extension", data, header.length)
            protocol_here, protocol = protocol, header.nxt
            data, length = data[header.length :], length - header.length
            if protocol_here == _FRAGMENT and (header.frag_off or header.m_flag):
                if protocol not in _CARRIED and protocol not in EXTENSIONS:
                    return None
                key = (source, destination, protocol, header.id, net)
                whole = self._add_fragment(
                    packet, key, header.frag_off * 8, data, length, bool(header.m_flag)
                )
                if whole is None:
                    return None
                data, length = whole
        if protocol == TCP:
            return _segment(packet, source, destination, data, length, identity, net)
        found = inner(protocol, data) if protocol in CARRIERS else None
        if found is None:
            return None
        if tunnels >= self._limits.tunnels:
            raise DecodeError(f"more than {self._limits.tunnels} tunnels", 0, "too-many-layers")
        network_type, at = carried(found.type, data, found.at, self._limits.layers)
        net = within(net, found.network)
        return self._network(packet, network_type, data[at:], length - at, tunnels + 1, net)

    def _add_fragment(
        self, packet: Packet, key: FragmentKey, offset: int, data: bytes, length: int, more: bool
    ) -> tuple[bytes, int] | None:
        # Most UDP is no tunnel. So the loss of a datagram matters only if a first fragment begins a tunnel.
        matters = key[2] != UDP or (offset == 0 and begins_tunnel(data))
        fragment = Fragment(key, offset, data, length, more, matters)
        if not fits(fragment):
            raise DecodeError(
                f"a fragment of {plural(length, 'byte')} at {offset}: no IP packet can be that long", 0
            )
        whole = self._fragments.add(self.packets_of(packet.number), packet.timestamp_ns, fragment)
        if whole is None:
            return None
        data, length, self._completed = whole
        return data, length


def _segment(
    packet: Packet, source: bytes, destination: bytes, data: bytes, length: int, identity: int, net: int
) -> Segment:
    """Read the TCP header at the beginning of ``data``, which had ``length`` bytes on the wire. ``identity``
    has the part from the IP header; ``net`` is the network."""
    if len(data) < _TCP_LEAST:
        raise _cut("TCP", data, _TCP_LEAST)
    source_port, destination_port, seq, ack, offset, flags = _tcp(data)
    header_bytes = (offset >> 4) * 4
    if not 20 <= header_bytes <= length:
        raise DecodeError(
            f"a TCP header announces {plural(header_bytes, 'byte')}, the packet has {length:,}", 12
        )
    has_checksum = len(data) >= _TCP_CHECKSUM_END
    has_room = header_bytes >= TIMESTAMP_HEADER and len(data) >= TIMESTAMP_HEADER
    has_clock = has_room and data[20:24] == _TIMESTAMP
    has_news = header_bytes > TIMESTAMP_HEADER or flags & SYN
    return Segment(
        packet.number,
        packet.timestamp_ns,
        source + source_port,
        destination + destination_port,
        seq,
        ack if flags & ACK else None,
        flags,
        data[header_bytes:],
        length - header_bytes,
        identity | int.from_bytes(data[16:18], "big") if has_checksum else 0,
        net,
        int.from_bytes(data[14:16], "big") if has_checksum else -1,
        data[20:header_bytes] if has_news and len(data) >= header_bytes else b"",
        int.from_bytes(data[24:28], "big") if has_clock else -1,
    )


@cache
def _extension_headers() -> Mapping[int, Callable[[bytes], Any]]:
    """The reader of each extension header. Importing dpkt takes long, and few captures need it."""
    import dpkt

    found: Mapping[int, Callable[[bytes], Any]] = dpkt.ip6.EXT_HDRS_CLS
    return found


def _guarded(parse: Callable[[bytes], Any], data: bytes, what: str) -> Any:
    """Call ``parse(data)``. Any exception of dpkt, which has many kinds, becomes a DecodeError."""
    try:
        return parse(data)
    except Exception as error:
        raise DecodeError(
            f"{what} cannot be read ({type(error).__name__}: {plural(len(data), 'byte')})", 0
        ) from None


def _cut(what: str, data: bytes, wanted: int) -> DecodeError:
    return DecodeError(f"the packet ends inside its {what} header ({len(data)} of {wanted} bytes)", len(data))
