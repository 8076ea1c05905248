"""Packets of captures → an interface: ``python -m tests.live.replay INTERFACE FILE…``.

They leave in their order, without a pause; those without an Ethernet header get one.
"""

from __future__ import annotations

import socket
import sys
import time

from kdissect.capture.files import read_packets
from kdissect.model import Packet

_HEADER = bytes(12)


def main(interface: str, *paths: str) -> None:
    """Send the packets."""
    with sender(interface) as sending:
        send(sending, *paths)


def sender(interface: str) -> socket.socket:
    """A socket that sends from this interface."""
    sending = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sending.bind((interface, 0))
    return sending


def send(sending: socket.socket, *paths: str) -> None:
    """Send the packets through this socket."""
    sent = 0
    for item in read_packets(paths):
        if not isinstance(item, Packet):
            continue
        sending.send(item.data if item.link_type == 1 else _as_ethernet(item))
        sent += 1
        if not sent % 50:
            time.sleep(0.001)


def _as_ethernet(packet: Packet) -> bytes:
    skipped = {113: 16, 276: 20, 101: 0}[packet.link_type]
    data = packet.data[skipped:]
    return _HEADER + (b"\x08\x00" if data[0] >> 4 == 4 else b"\x86\xdd") + data


if __name__ == "__main__":
    main(*sys.argv[1:])
