"""Link-layer headers: where in a packet the network layer begins, and which it is.

Tunnels (VXLAN, GRE, …) are not looked into here: whoever adds them finds an IP header inside what
:mod:`~kdissect.capture.datagrams` calls the payload, and asks :func:`network` or starts there again.
"""

from __future__ import annotations

from struct import Struct

from kdissect.model import DecodeError

NULL, ETHERNET, RAW, LOOP, SLL, IPV4_ONLY, IPV6_ONLY, SLL2 = 0, 1, 101, 108, 113, 228, 229, 276
_RAW_TYPES = (RAW, 12, 14)
"""12 and 14 are what DLT_RAW is on most systems and on OpenBSD; some programs wrote them to files."""

IPV4, IPV6 = 0x0800, 0x86DD
OTHER = 0
"""A network layer that is not IP."""

_VLAN_TAGS = frozenset((0x8100, 0x88A8, 0x9100))
"""802.1Q, 802.1ad and the QinQ tag from before it."""

_AF_INET = 2
_AF_INET6 = frozenset((10, 24, 28, 30))
"""Linux; NetBSD and OpenBSD; FreeBSD; macOS."""

_uint16 = Struct(">H").unpack_from

LINK_TYPES = frozenset((NULL, ETHERNET, LOOP, SLL, IPV4_ONLY, IPV6_ONLY, SLL2, *_RAW_TYPES))
"""Those that :func:`network` can read."""


def network(link_type: int, data: bytes, layers: int) -> tuple[int, int]:
    """The network layer's EtherType (:data:`IPV4`, :data:`IPV6` or another) and its offset in ``data``.

    :param link_type: one of :data:`LINK_TYPES`.
    :param layers: so many VLAN tags are passed over at most.
    :raises DecodeError: the packet ends inside its link-layer header, or the header contradicts itself.
    """
    if link_type == ETHERNET:
        return _tagged(data, 12, layers)
    if link_type == SLL:
        return _tagged(data, 14, layers)
    if link_type == SLL2:
        # Unlike the others its protocol stands at its begin; what a tag is followed by, behind it.
        _require(data, 20, "Linux cooked v2 header")
        (protocol,) = _uint16(data, 0)
        return _tagged(data, 22, layers) if protocol in _VLAN_TAGS else (protocol, 20)
    if link_type in (NULL, LOOP):
        return _family(data), 4
    if link_type == IPV4_ONLY:
        return IPV4, 0
    if link_type == IPV6_ONLY:
        return IPV6, 0
    _require(data, 1, "IP header")
    version = data[0] >> 4
    if version not in (4, 6):
        raise DecodeError(f"a raw IP packet of version {version}", 0)
    return IPV4 if version == 4 else IPV6, 0


def _tagged(data: bytes, at: int, layers: int) -> tuple[int, int]:
    """The EtherType at ``at``, or the one behind the VLAN tags that stand there."""
    _require(data, at + 2, "link-layer header")
    (protocol,) = _uint16(data, at)
    tags = 0
    while protocol in _VLAN_TAGS:
        tags += 1
        if tags > layers:
            raise DecodeError(f"more than {layers} VLAN tags", at, "too-many-layers")
        at += 4
        _require(data, at + 2, "VLAN tag")
        (protocol,) = _uint16(data, at)
    return protocol, at + 2


def _family(data: bytes) -> int:
    """The BSD loopback's address family: in the byte order of the capturing machine for NULL, big-endian
    for LOOP. Families are small, so the order shows, and both are taken for both."""
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
