"""Frames → an interface, at a rate, to test a capture.

    python -m benchmarks.sending INTERFACE exchanges --rate 5000 --seconds 30 [--churn 0.5]
    python -m benchmarks.sending INTERFACE frames --rate 100000 --seconds 30

``exchanges`` sends exchanges of captures, with the packets of both ends. They are on one connection that goes
on all the time and, for a share of them (``--churn``), on connections that begin and end. ``frames`` sends
equal frames. It prints the numbers of sent frames as JSON. It needs the permission to open packet sockets.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import cycle, islice

from benchmarks.traffic import Unit, endless

AT_ONCE = 64
"""The frames in one system call."""
FRAME_BYTES = 300
PORT = 9092
_MOST_BYTES = 1 << 16
"""The most bytes of a frame."""
_message = struct.Struct("@PIxxxxPNPNixxxxIxxxx")
"""struct mmsghdr: no name, one piece, no control data."""
_piece = struct.Struct("@PN")
_PAUSE_SECONDS = 0.001


class Sender:
    """A packet socket that sends many frames by one call (``sendmmsg``)."""

    def __init__(self, interface: str) -> None:
        """:raises OSError: there is no such interface, or it is not permitted."""
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.bind((interface, 0))
        self._library = ctypes.CDLL(None, use_errno=True)
        self._bytes = ctypes.create_string_buffer(AT_ONCE * _MOST_BYTES)
        self._pieces = ctypes.create_string_buffer(AT_ONCE * _piece.size)
        self._messages = ctypes.create_string_buffer(AT_ONCE * _message.size)
        for at in range(AT_ONCE):
            piece = ctypes.addressof(self._pieces) + at * _piece.size
            _message.pack_into(self._messages, at * _message.size, 0, 0, piece, 1, 0, 0, 0, 0)

    def put(self, frames: Sequence[bytes]) -> None:
        """Prepare at most ``AT_ONCE`` frames for :meth:`send`."""
        address = ctypes.addressof(self._bytes)
        for at, frame in enumerate(frames):
            start = at * _MOST_BYTES
            ctypes.memmove(address + start, frame, len(frame))
            _piece.pack_into(self._pieces, at * _piece.size, address + start, len(frame))

    def send(self, count: int) -> None:
        """Send the first of the prepared frames.

        :raises OSError: the system does not accept them.
        """
        at, messages = 0, ctypes.addressof(self._messages)
        while at < count:
            sent = self._library.sendmmsg(
                self._socket.fileno(), ctypes.c_void_p(messages + at * _message.size), count - at, 0
            )
            if sent > 0:
                at += sent
                continue
            error = ctypes.get_errno()
            if error not in (errno.ENOBUFS, errno.EAGAIN):
                raise OSError(error, os.strerror(error))
            time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def send(interface: str, units: Iterable[Unit], rate: float, seconds: float) -> tuple[int, int, float]:
    """Send ``rate`` exchanges per second for ``seconds``; return the numbers of packets and exchanges, and
    the time."""
    sender = Sender(interface)
    packets = exchanges = 0
    began = time.monotonic()
    for unit in units:
        if time.monotonic() - began >= seconds:
            break
        for at in range(0, len(unit.frames), AT_ONCE):
            due = began + (exchanges + unit.exchanges * at / len(unit.frames)) / rate
            time.sleep(max(0.0, due - time.monotonic()))
            some = unit.frames[at : at + AT_ONCE]
            sender.put(some)
            sender.send(len(some))
        packets += len(unit.frames)
        exchanges += unit.exchanges
    sender.close()
    return packets, exchanges, time.monotonic() - began


def send_alike(interface: str, rate: float, seconds: float) -> tuple[int, float]:
    """Send prepared frames, as fast as the rate."""
    sender = Sender(interface)
    sender.put(list(islice(cycle(_alike()), AT_ONCE)))
    sent, began = 0, time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        if sent > passed * rate:
            time.sleep(_PAUSE_SECONDS / 2)
            continue
        sender.send(AT_ONCE)
        sent += AT_ONCE
    sender.close()
    return sent, time.monotonic() - began


def _alike() -> list[bytes]:
    """Frames of TCP from some clients to a broker's port."""
    out = []
    for client in range(8):
        size = FRAME_BYTES - 14
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, size, 0, 0, 64, 6, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
        tcp = struct.pack(">HHIIBBHHH", 40_000 + client, PORT, 0, 0, 0x50, 0x10, 1_000, 0, 0)
        out.append((bytes(12) + b"\x08\x00" + ip + tcp).ljust(FRAME_BYTES, b"\0"))
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("interface")
    parser.add_argument("what", choices=("exchanges", "frames"))
    parser.add_argument("--rate", type=float, required=True, help="how many a second")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--churn", type=float, default=0.0)
    given = parser.parse_args()
    if given.what == "frames":
        sent, took = send_alike(given.interface, given.rate, given.seconds)
        sys.stdout.write(json.dumps({"packets": sent, "seconds": took}) + "\n")
        return 0
    units = endless(given.churn)
    packets, exchanges, took = send(given.interface, units, given.rate, given.seconds)
    sys.stdout.write(json.dumps({"packets": packets, "exchanges": exchanges, "seconds": took}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
