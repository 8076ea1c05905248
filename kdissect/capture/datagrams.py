"""Packet ─► Segment, the thorough way: IPv4 with options, IPv6 with extension headers, fragments, and
every header that is broken, cut or absent. dpkt reads the headers; what it raises stays in here.

:mod:`~kdissect.capture.segments` reads the common packets itself and asks here for the others. What it
reads, this reads alike: the tests hold one against the other.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

import dpkt

from kdissect.capture.fragments import Fragment, Fragments, fits
from kdissect.capture.links import IPV4, IPV6, LINK_TYPES, network
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import ACK, DecodeError, Fault, Packet, Segment

TCP = 6
AUTHENTICATION = 51
_FRAGMENT = 44
_ENCRYPTED = 50
EXTENSIONS = frozenset(dpkt.ip6.EXT_HDRS_CLS) - {_ENCRYPTED}
"""Headers that may stand between IPv6 and TCP: hop-by-hop options, routing, fragment, authentication,
destination options. What is encrypted ends the search."""

_tcp = Struct(">2s2sIIBB").unpack_from
_TCP_LEAST = 14
"""Up to the flags: enough for a Segment where the snap length cut the rest."""


class DatagramReader:
    """``feed(packet)`` gives its TCP segment, None if it has none (yet), or a Fault."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._limits = limits
        self._fragments = Fragments(limits)
        self._unknown: set[int] = set()
        """Interfaces whose link type was reported."""

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

    def close(self) -> list[Fault]:
        """Faults of the datagrams whose fragments never came together."""
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
        datagram = packet.data[at:]
        # The wire length is wrong in some files; a captured byte was there in any case.
        room = max(packet.wire_length, len(packet.data)) - at
        if protocol == IPV4:
            return self._ipv4(packet, datagram, room)
        if protocol == IPV6:
            return self._ipv6(packet, datagram, room)
        return None

    def _ipv4(self, packet: Packet, data: bytes, room: int) -> Segment | None:
        if len(data) < 20:
            raise _cut("IPv4", data, 20)
        header_bytes = (data[0] & 0x0F) * 4
        # dpkt gets the header alone: what it makes of other protocols' payloads is of no interest.
        header = _guarded(dpkt.ip.IP, data[: max(header_bytes, 20)], "IPv4 header")
        if header.v != 4:
            raise DecodeError(f"an IPv4 packet of version {header.v}", 0)
        protocol: int = header.p
        fragmented = header.offset or header.mf
        if protocol not in (TCP, AUTHENTICATION):
            return None
        if len(data) < header_bytes:
            raise _cut("IPv4", data, header_bytes)
        # 0 is what segmentation offload leaves: the packet is longer than the field can say, or was
        # captured before its length was filled in.
        total = header.len or room
        if total < header_bytes:
            raise DecodeError(f"an IPv4 packet of {total} bytes with a header of {header_bytes}", 2)
        payload, length = data[header_bytes:total], total - header_bytes
        if fragmented:
            fragment = Fragment(
                (header.src, header.dst, protocol, header.id),
                header.offset * 8,
                payload,
                length,
                bool(header.mf),
            )
            whole = self._add_fragment(packet, fragment)
            if whole is None:
                return None
            payload, length = whole
        if protocol == AUTHENTICATION:
            return self._upper(packet, header.src, header.dst, protocol, payload, length)
        return _segment(packet, header.src, header.dst, payload, length)

    def _ipv6(self, packet: Packet, data: bytes, room: int) -> Segment | None:
        if len(data) < 40:
            raise _cut("IPv6", data, 40)
        if data[0] >> 4 != 6:
            raise DecodeError(f"an IPv6 packet of version {data[0] >> 4}", 0)
        # 0 is segmentation offload, or a jumbogram (RFC 2675), whose length is that of the packet.
        length = int.from_bytes(data[4:6], "big") or room - 40
        return self._upper(packet, data[8:24], data[24:40], data[6], data[40 : 40 + length], length)

    def _upper(
        self, packet: Packet, source: bytes, destination: bytes, protocol: int, data: bytes, length: int
    ) -> Segment | None:
        """Through extension headers to TCP; ``length`` is that of ``data`` on the wire."""
        layers = 0
        while protocol in EXTENSIONS:
            layers += 1
            if layers > self._limits.layers:
                raise DecodeError(f"more than {self._limits.layers} extension headers", 0, "too-many-layers")
            header = _guarded(dpkt.ip6.EXT_HDRS_CLS[protocol], data, "IPv6 extension header")
            if header.length > len(data):
                raise _cut("IPv6 extension", data, header.length)
            protocol_here, protocol = protocol, header.nxt
            data, length = data[header.length :], length - header.length
            if protocol_here == _FRAGMENT and (header.frag_off or header.m_flag):
                if protocol != TCP and protocol not in EXTENSIONS:
                    return None
                fragment = Fragment(
                    (source, destination, protocol, header.id),
                    header.frag_off * 8,
                    data,
                    length,
                    bool(header.m_flag),
                )
                whole = self._add_fragment(packet, fragment)
                if whole is None:
                    return None
                data, length = whole
        return _segment(packet, source, destination, data, length) if protocol == TCP else None

    def _add_fragment(self, packet: Packet, fragment: Fragment) -> tuple[bytes, int] | None:
        if not fits(fragment):
            raise DecodeError(
                f"a fragment of {fragment.length} bytes at {fragment.offset}: no IP packet reaches so far", 0
            )
        return self._fragments.add(packet.number, packet.timestamp_ns, fragment)


def _segment(packet: Packet, source: bytes, destination: bytes, data: bytes, length: int) -> Segment:
    """The TCP header at the begin of ``data``, which had ``length`` bytes on the wire."""
    if len(data) < _TCP_LEAST:
        raise _cut("TCP", data, _TCP_LEAST)
    source_port, destination_port, seq, ack, offset, flags = _tcp(data)
    header_bytes = (offset >> 4) * 4
    if not 20 <= header_bytes <= length:
        raise DecodeError(f"a TCP header of {header_bytes} bytes in {length} bytes of payload", 12)
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
    )


def _guarded(parse: Callable[[bytes], Any], data: bytes, what: str) -> Any:
    """``parse(data)``; whatever dpkt raises (it is of many kinds) becomes a DecodeError."""
    try:
        return parse(data)
    except Exception as error:
        raise DecodeError(f"{what} cannot be read ({type(error).__name__}: {len(data)} bytes)", 0) from None


def _cut(what: str, data: bytes, wanted: int) -> DecodeError:
    return DecodeError(f"the packet ends inside its {what} header ({len(data)} of {wanted} bytes)", len(data))
