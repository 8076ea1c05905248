"""Chosen interfaces ─► objects that open them in the capture process.

On Linux, a separate process has opened their sockets by then, and no further step needs a privilege. On other
systems, libpcap opens them in the capture process, which has the privileges of its user.
"""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass
from typing import NamedTuple

from kdissect.live import devices, privileged
from kdissect.live.adapters import adapter
from kdissect.live.bpf import COOKED, DEFAULT_FILTER, ETHERNET, program_of
from kdissect.live.errors import NoInterfaceError, NotPermittedError
from kdissect.live.probing import Probe
from kdissect.live.sources import Interfaces, PacketSource, SourceOpener


@dataclass(frozen=True)
class _Ring:
    """Opens a ring in the capture process."""

    opened: socket.socket
    name: str
    link_type: int
    snap_length: int

    def __call__(self) -> PacketSource:
        if sys.platform == "linux":
            from kdissect.live.ring import RingListenSocket

            interface = "" if self.name == devices.ANY else self.name
            return RingListenSocket(self.opened, interface, self.link_type, self.snap_length)
        raise NotImplementedError

    def close(self) -> None:
        self.opened.close()


@dataclass(frozen=True)
class _Pcap:
    """Opens an interface with libpcap in the capture process."""

    name: str
    device: str
    """The name that libpcap uses for it."""
    requested: Interfaces

    def __call__(self) -> PacketSource:
        from kdissect.live.handle import PcapSource

        return PcapSource(self.name, self.requested, self.device)

    def close(self) -> None:
        """Do nothing: nothing was opened beforehand."""


class OpenedInterfaces(NamedTuple):
    """Interfaces that can be captured from."""

    openers: list[SourceOpener]
    probe: Probe | None
    """Sees packets that the capture filter drops; None if the filter drops none."""

    def hand_over(self) -> None:
        """Close the sockets here after the capture process got them. The decoder must not have unfiltered
        packets, or a socket that could send packets."""
        for each in self.openers:
            each.close()


def open_interfaces(wanted: Interfaces) -> OpenedInterfaces:
    """Open the sockets that need a privilege, where that can be done for another process: on Linux.

    :raises LiveError: the filter is wrong, there is no such interface, or capturing is not permitted.
    """
    names = dict.fromkeys(wanted.names)
    if sys.platform == "win32":
        found = dict.fromkeys(map(adapter, names))
        return OpenedInterfaces([_Pcap(each.name, each.device, wanted) for each in found], None)
    if sys.platform != "linux":
        return OpenedInterfaces([_Pcap(name, name, wanted) for name in names], None)
    asked = [_asked(name, wanted) for name in names]
    count = len(asked)
    if wanted.filter != DEFAULT_FILTER:
        asked += [_asked(name, wanted._replace(filter=DEFAULT_FILTER)) for name in names]
    try:
        sockets = privileged.open_sockets(asked)
    except PermissionError as error:
        raise NotPermittedError(f"not permitted to capture on {error.filename or devices.ANY}") from None
    except OSError as error:
        raise NoInterfaceError(f"{error.filename or devices.ANY}: {error.strerror}") from None
    openers: list[SourceOpener] = []
    for opened, each in zip(sockets[:count], asked, strict=False):
        link_type = COOKED if each.is_cooked else ETHERNET
        openers.append(_Ring(opened, each.interface or devices.ANY, link_type, wanted.snap_length))
    others = [(opened, not each.is_cooked) for opened, each in zip(sockets, asked, strict=True)][count:]
    return OpenedInterfaces(openers, Probe(others) if others else None)


def _asked(name: str, wanted: Interfaces) -> privileged.SocketRequest:
    if name == devices.ANY:
        interface, cooked = "", True
        loopback = next((each.number for each in devices.devices() if each.is_loopback), None)
    else:
        found = devices.device(name)
        if not found.is_up:
            raise NoInterfaceError(f"{name} is down: ip link set {name} up")
        interface, cooked = name, not found.has_ethernet_header
        loopback = found.number if found.is_loopback else None
    program = program_of(wanted.filter, COOKED if cooked else ETHERNET, wanted.snap_length, loopback)
    return privileged.SocketRequest(interface, program, cooked, wanted.is_promiscuous and bool(interface))
