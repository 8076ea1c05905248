"""Tunnels: the packets inside an IP packet that is not TCP itself.

    IP in IP (RFC 2003, 2473, 4213), MPLS in IP (RFC 4023), GRE (RFC 2784, 2890) with IP, Ethernet, MPLS or
    ERSPAN in it; over UDP, told by the destination port: VXLAN (RFC 7348), VXLAN-GPE, Geneve (RFC 8926) and
    MPLS (RFC 7510).

This module only finds the beginning of the inner headers; :func:`kdissect.capture.links.carried` goes on from
there.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from kdissect.capture.links import ETHERNET_FRAME, IPV4, IPV6, MPLS, OTHER
from kdissect.model import DecodeError

UDP, GRE = 17, 47
_IPV4_IN_IP, _IPV6_IN_IP, _MPLS_IN_IP = 4, 41, 137

CARRIERS = frozenset((_IPV4_IN_IP, UDP, _IPV6_IN_IP, GRE, _MPLS_IN_IP))
"""IP protocols that may carry packets."""

_VXLAN = frozenset((4789, 8472))
"""IANA's port, and the older port of Linux, which flannel and Cilium still use."""
_VXLAN_GPE, _GENEVE, _MPLS_IN_UDP = 4790, 6081, 6635
_PORTS = _VXLAN | {_VXLAN_GPE, _GENEVE, _MPLS_IN_UDP}

_GPE_PROTOCOLS = {1: IPV4, 2: IPV6, 3: ETHERNET_FRAME, 5: MPLS}

_ERSPAN_2, _ERSPAN_3 = 0x88BE, 0x22EB
_GRE_CHECKSUM, _GRE_ROUTING, _GRE_KEY, _GRE_SEQUENCE, _GRE_VERSION = 0x8000, 0x4000, 0x2000, 0x1000, 0x0007

_VXLAN_NETWORK, _GENEVE_NETWORK, _GRE_NETWORK = 1 << 32, 2 << 32, 3 << 32
_NESTING = 1_000_003
"""Any large odd number: it combines the identifiers of nested networks into one integer."""

_uint16 = Struct(">H").unpack_from
_two = Struct(">HH").unpack_from


class Inner(NamedTuple):
    """The packet in a tunnel."""

    type: int
    """Its EtherType."""
    at: int
    """Its position in the IP payload."""
    network: int = 0
    """Distinguishes it from other networks in tunnels of its kind, and contains the kind; 0 without an
    identifier. (ERSPAN's session and MPLS' labels identify mirrors and paths, which may differ for the two
    directions.)"""


def within(network: int, inner_network: int) -> int:
    """The network in a tunnel that itself came through ``network``."""
    return (network * _NESTING + inner_network) & 0x7FFF_FFFF_FFFF_FFFF if network else inner_network


def inner(protocol: int, data: bytes) -> Inner | None:
    """The packet in an IP payload; None if the payload is no tunnel.

    :param protocol: one of :data:`CARRIERS`.
    :raises DecodeError: the payload ends inside the tunnel's header.
    """
    if protocol == UDP:
        return _over_udp(data)
    if protocol == GRE:
        return _gre(data)
    if protocol == _MPLS_IN_IP:
        return Inner(MPLS, 0)
    return Inner(IPV4 if protocol == _IPV4_IN_IP else IPV6, 0)


def begins_tunnel(udp: bytes) -> bool:
    """Whether the beginning of a UDP datagram has the destination port of a tunnel."""
    return len(udp) >= 4 and _uint16(udp, 2)[0] in _PORTS


def _over_udp(data: bytes) -> Inner | None:
    if not begins_tunnel(data):
        return None
    (port,) = _uint16(data, 2)
    if port == _MPLS_IN_UDP:
        return Inner(MPLS, 8)
    _require(data, 16, "VXLAN or Geneve")
    if port == _GENEVE:
        first, control = data[8], data[9] & 0x80
        if first >> 6 or control:
            return None
        return Inner(_uint16(data, 10)[0], 16 + (first & 0x3F) * 4, _GENEVE_NETWORK | _vni(data))
    if not data[8] & 0x08:  # without a valid network identifier it is another protocol on that port
        return None
    if port == _VXLAN_GPE and data[8] & 0x04:
        return Inner(_GPE_PROTOCOLS.get(data[11], OTHER), 16, _VXLAN_NETWORK | _vni(data))
    return Inner(ETHERNET_FRAME, 16, _VXLAN_NETWORK | _vni(data))


def _vni(data: bytes) -> int:
    """The virtual network identifier, which is at the same position in VXLAN and Geneve."""
    return int.from_bytes(data[12:15], "big")


def _gre(data: bytes) -> Inner | None:
    _require(data, 4, "GRE")
    flags, protocol = _two(data)
    if flags & (_GRE_VERSION | _GRE_ROUTING):
        return None  # PPTP, and source routes, which RFC 2784 removed
    at = 4 + 4 * (bool(flags & _GRE_CHECKSUM) + bool(flags & _GRE_KEY) + bool(flags & _GRE_SEQUENCE))
    if protocol == _ERSPAN_2:
        # Type I has no header, and differs from type II by having no sequence number.
        return Inner(ETHERNET_FRAME, at + (8 if flags & _GRE_SEQUENCE else 0))
    if protocol == _ERSPAN_3:
        _require(data, at + 12, "ERSPAN")
        return Inner(ETHERNET_FRAME, at + (20 if data[at + 11] & 1 else 12))
    network = 0
    if flags & _GRE_KEY:
        _require(data, at, "GRE")
        key = 8 if flags & _GRE_CHECKSUM else 4
        network = _GRE_NETWORK | int.from_bytes(data[key : key + 4], "big")
    return Inner(protocol, at, network)


def _require(data: bytes, size: int, what: str) -> None:
    if len(data) < size:
        raise DecodeError(
            f"the packet ends inside its {what} header ({len(data)} of {size} bytes)", len(data)
        )
