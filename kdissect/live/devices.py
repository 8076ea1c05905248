"""The interfaces of a Linux machine, as the kernel shows them without any privilege."""

from __future__ import annotations

import socket
import struct
import sys
from typing import NamedTuple

from kdissect.live.errors import NoInterfaceError

ANY = "any"
"""The name that means all interfaces at once."""
_GET_FLAGS, _GET_HARDWARE, _GET_ADDRESS = 0x8913, 0x8927, 0x8915
_UP, _LOOPBACK = 1, 8
_WITH_ETHERNET_HEADER = frozenset((1, 772))
"""Hardware types (ARPHRD): Ethernet, loopback."""


class Device(NamedTuple):
    """An interface."""

    name: str
    number: int
    is_up: bool
    is_loopback: bool
    has_ethernet_header: bool
    """Whether its packets begin with an Ethernet header; packets of tunnels do not."""
    address: str | None
    """IPv4."""


def devices() -> list[Device]:
    """All interfaces, in the order of their numbers."""
    return [device for _, name in socket.if_nameindex() if (device := _device(name)) is not None]


def device(name: str) -> Device:
    """The interface with this name.

    :raises NoInterfaceError: there is no such interface; the text names those that exist.
    """
    found = _device(name)
    if found is None:
        there = ", ".join([ANY, *(each.name for each in devices())])
        raise NoInterfaceError(f"there is no interface {name or repr(name)}; there are {there}")
    return found


def is_up(name: str) -> bool | None:
    """Whether an interface is up; None if no interface has that name."""
    found = _device(name)
    return None if found is None else found.is_up


def _device(name: str) -> Device | None:
    request = struct.pack("256s", name.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            index = socket.if_nametoindex(name)
            (flags,) = struct.unpack_from("H", _ask(asking, _GET_FLAGS, request), 16)
            (hardware,) = struct.unpack_from("H", _ask(asking, _GET_HARDWARE, request), 16)
        except OSError:
            return None
        try:
            address = socket.inet_ntoa(_ask(asking, _GET_ADDRESS, request)[20:24])
        except OSError:
            address = None
    loopback = bool(flags & _LOOPBACK)
    return Device(name, index, bool(flags & _UP), loopback, hardware in _WITH_ETHERNET_HEADER, address)


def _ask(asking: socket.socket, what: int, request: bytes) -> bytes:
    if sys.platform != "linux":
        raise NotImplementedError
    import fcntl

    return fcntl.ioctl(asking, what, request)
