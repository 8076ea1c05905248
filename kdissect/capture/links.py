"""Link-layer headers: the position of the network layer in a packet, and its type.

VLAN tags, MPLS labels and PPPoE between the two are skipped. :mod:`~kdissect.capture.tunnels` handles tunnels
inside IP.
"""

from __future__ import annotations

from struct import Struct

from kdissect.model import DecodeError

NULL, ETHERNET, RAW, LOOP, SLL, IPV4_ONLY, IPV6_ONLY, SLL2 = 0, 1, 101, 108, 113, 228, 229, 276
_RAW_TYPES = (RAW, 12, 14)
"""12 and 14 are the values of DLT_RAW on most systems and on OpenBSD; some programs wrote them to files."""

IPV4, IPV6 = 0x0800, 0x86DD
OTHER = 0
"""A network layer that is not IP."""

_VLAN_TAGS = frozenset((0x8100, 0x88A8, 0x9100))
"""The tags of 802.1Q, 802.1ad, and the older QinQ."""
ETHERNET_FRAME = 0x6558
"""Transparent Ethernet bridging: a whole Ethernet frame follows."""
MPLS = 0x8847
_MPLS_TYPES = frozenset((MPLS, 0x8848))
_PPPOE = 0x8864
BETWEEN = _VLAN_TAGS | _MPLS_TYPES | {ETHERNET_FRAME, _PPPOE}
"""The EtherTypes of headers that may precede the network layer."""
_PPP_PROTOCOLS = {0x0021: IPV4, 0x0057: IPV6}

_AF_INET = 2
_AF_INET6 = frozenset((10, 24, 28, 30))
"""The values on Linux; NetBSD and OpenBSD; FreeBSD; macOS."""

_uint16 = Struct(">H").unpack_from

LINK_TYPES = frozenset((NULL, ETHERNET, LOOP, SLL, IPV4_ONLY, IPV6_ONLY, SLL2, *_RAW_TYPES))
"""The link types that :func:`network` can read."""


def network(link_type: int, data: bytes, layers: int) -> tuple[int, int]:
    """The network layer's EtherType (:data:`IPV4`, :data:`IPV6` or another) and its offset in ``data``.

    :param link_type: one of :data:`LINK_TYPES`.
    :param layers: the largest number of other headers to skip.
    :raises DecodeError: the packet ends inside its link-layer header, or the header contradicts itself.
    """
    if link_type == ETHERNET:
        return _tagged(data, 12, layers)
    if link_type == SLL:
        return _tagged(data, 14, layers)
    if link_type == SLL2:
        # Unlike in other headers, the protocol is at the beginning. The bytes after a tag are after the
        # header.
        _require(data, 20, "Linux cooked v2 header")
        (protocol,) = _uint16(data, 0)
        return carried(protocol, data, 20, layers)
    if link_type in (NULL, LOOP):
        return _family(data), 4
    if link_type == IPV4_ONLY:
        return IPV4, 0
    if link_type == IPV6_ONLY:
        return IPV6, 0
    _require(data, 1, "IP header")
    version = data[0] >> 4
    if version not in (4, 6):
        raise DecodeError(f"a raw IP packet has version {version}", 0)
    return IPV4 if version == 4 else IPV6, 0


def carried(protocol: int, data: bytes, at: int, layers: int) -> tuple[int, int]:
    """The EtherType and offset of the network layer, if ``protocol`` begins at ``at``: itself, or the layer
    after tags, labels, PPPoE and inner Ethernet headers.

    :raises DecodeError: as :func:`network`.
    """
    passed = 0
    while protocol in BETWEEN:
        passed += 1
        if passed > layers:
            raise DecodeError(f"more than {layers} headers before IP", at, "too-many-layers")
        protocol, at = behind(protocol, data, at)
    return protocol, at


def behind(protocol: int, data: bytes, at: int) -> tuple[int, int]:
    """The type of the layer after the one header at ``at``, and its position.

    :param protocol: the header's, one of :data:`BETWEEN`.
    :raises DecodeError: as :func:`network`.
    """
    if protocol in _VLAN_TAGS:
        _require(data, at + 4, "VLAN tag")
        return _uint16(data, at + 2)[0], at + 4
    if protocol == ETHERNET_FRAME:
        _require(data, at + 14, "inner Ethernet header")
        return _uint16(data, at + 12)[0], at + 14
    if protocol == _PPPOE:
        return _ppp(data, at + 6)
    _require(data, at + 5, "MPLS label")
    is_last = data[at + 2] & 1
    return _below_labels(data, at + 4) if is_last else (protocol, at + 4)


def _tagged(data: bytes, at: int, layers: int) -> tuple[int, int]:
    """The layer after the EtherType at ``at``."""
    _require(data, at + 2, "link-layer header")
    return carried(_uint16(data, at)[0], data, at + 2, layers)


def _below_labels(data: bytes, at: int) -> tuple[int, int]:
    """The layer below MPLS labels, which do not contain its type. The first four bits show it: an IP version,
    or the 0 of a pseudowire's control word (RFC 4385), which an Ethernet frame follows."""
    first = data[at] >> 4
    if first == 0:
        return ETHERNET_FRAME, at + 4
    return {4: IPV4, 6: IPV6}.get(first, OTHER), at


def _ppp(data: bytes, at: int) -> tuple[int, int]:
    """The layer after the PPP protocol number. The number has two bytes or, compressed, one odd byte (RFC
    1661)."""
    _require(data, at + 2, "PPPoE header")
    if data[at] & 1:
        return _PPP_PROTOCOLS.get(data[at], OTHER), at + 1
    return _PPP_PROTOCOLS.get(_uint16(data, at)[0], OTHER), at + 2


def _family(data: bytes) -> int:
    """The BSD loopback's address family. For NULL it is in the byte order of the capturing machine, for LOOP
    big-endian. Families are small numbers, so both orders are recognised and accepted for both."""
    _require(data, 4, "loopback header")
    family = int.from_bytes(data[:4], "little")
    if family > 0xFFFF:
        family = int.from_bytes(data[:4], "big")
    if family == _AF_INET:
        return IPV4
    return IPV6 if family in _AF_INET6 else OTHER


def _require(data: bytes, size: int, what: str) -> None:
    if len(data) < size:
        raise DecodeError(f"the packet ends inside its {what} ({len(data)} of {size} bytes)", len(data))
