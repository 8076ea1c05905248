"""Finds the ports with Kafka traffic while a capture filter lets no Kafka traffic through.

Separate sockets see all TCP of the interfaces. They are not read until a caller asks. Packets that do not fit
into their buffers are dropped. That does no harm: a few connections are enough.
"""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from kdissect.capture.links import ETHERNET, RAW
from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.model import Packet

SECONDS = 2.0
"""The longest time of one look."""
MOST_PACKETS = 20_000
MOST_PORTS = 5
_BUFFER = 1 << 20
_LIMITS = DEFAULTS._replace(connections=1_000, waiting_bytes=16 << 20)


class Probe:
    """Looks once.

    :param sockets: packet sockets, each with whether its packets have a link header.
    """

    def __init__(self, sockets: Sequence[tuple[socket.socket, bool]]) -> None:
        self._sockets = sockets
        for each, _ in sockets:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            each.setblocking(False)

    def ports(self) -> list[int]:
        """The ports of brokers, those with most exchanges first; closes the sockets."""
        dissector = Dissector(_LIMITS)
        found: Counter[int] = Counter()
        for packet in self._packets():
            for event in dissector.feed(packet):
                if isinstance(event, Exchange):
                    found[_port_of(event)] += 1
        for event in dissector.close():
            if isinstance(event, Exchange):
                found[_port_of(event)] += 1
        self.close()
        return [port for port, _ in found.most_common(MOST_PORTS)]

    def _packets(self) -> Iterator[Packet]:
        number = 0
        until = time.monotonic() + SECONDS
        while number < MOST_PACKETS and time.monotonic() < until:
            quiet = True
            for each, has_header in self._sockets:
                try:
                    data = each.recv(1 << 18)
                except OSError:  # no packet, or the interface is down
                    continue
                quiet = False
                number += 1
                link_type = ETHERNET if has_header else RAW
                yield Packet(number, time.time_ns(), link_type, data, len(data), 0, ())
            if quiet:
                time.sleep(0.01)

    def close(self) -> None:
        """Close the sockets."""
        for each, _ in self._sockets:
            each.close()


def _port_of(exchange: Exchange) -> int:
    return int(exchange.broker.rpartition(":")[2])
