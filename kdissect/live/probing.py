"""While a capture filter lets nothing of Kafka's through: on which other ports there is any.

Sockets of their own see all TCP of the interfaces. They are not read until somebody asks; what does not fit
into their buffers is dropped, and no matter: a few connections tell enough.
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
"""How long one look takes at most."""
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
                except OSError:  # nothing there, or the interface is down
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
