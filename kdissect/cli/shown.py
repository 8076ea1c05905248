"""``-w``: the packets of what is shown → a pcapng file that reads as what was shown.

Which packets those are is known only when rows have been shown, so the input is read again: once for
the handshakes, once to write. Standard input is kept in a temporary file while it is read the first time.

Of a connection that is shown, the packets of its handshake and of its end (SYN, FIN, RST) belong to it:
without them another reading could not tell where the bytes begin, and would have to infer it. Of an IP
packet that came in fragments, all fragments belong to it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from kdissect.capture.belonging import belonging
from kdissect.capture.writer import PcapngWriter
from kdissect.cli.reading import Reading, packets_of
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.model import Fault, Packet


class Shown:
    """Collects what is shown, and writes its packets."""

    def __init__(self, paths: tuple[str, ...], limits: Limits) -> None:
        self._paths = paths
        self._limits = limits
        self._packets: set[int] = set()
        self._spool: BinaryIO | None = None
        """What of the input can be read only once."""

    @contextmanager
    def kept(self, reading: Reading) -> Iterator[None]:
        """See to it that what ``reading`` reads can be read again in here."""
        if "-" not in self._paths:
            yield
            return
        with tempfile.NamedTemporaryFile(prefix="kdissect-", suffix=".pcapng") as spool:
            # Packets have the same numbers there: it holds all of the input, in the order of the numbers.
            file = cast(BinaryIO, spool)
            reading.keep = PcapngWriter(file, reading.interfaces).write
            self._paths, self._spool = (spool.name,), file
            yield

    def add(self, event: Event) -> None:
        """This was shown."""
        if isinstance(event, Exchange):
            self._packets.update(number for message in event.messages for number in message.frame.packets)
        elif isinstance(event, Fault) and event.packet is not None:
            self._packets.add(event.packet)

    def write(self, file: BinaryIO, read: int) -> None:
        """Write the packets, in the order of the capture, of which so many packets were ``read``."""
        if self._spool is not None:
            self._spool.flush()
        wanted = self._packets | belonging(self._items(read), self._packets, self._limits)
        last = max(wanted, default=0)
        capture = packets_of(self._paths, self._limits)
        writer = PcapngWriter(file, capture.interfaces)
        for item in capture:
            if isinstance(item, Packet):
                if item.number in wanted:
                    writer.write(item)
                if item.number >= last:
                    break
            elif not isinstance(item, Fault):
                writer.write(item)
        capture.close()

    def _items(self, last: int) -> Iterator[Packet]:
        """The packets up to the ``last``."""
        capture = packets_of(self._paths, self._limits)
        for item in capture:
            if isinstance(item, Packet):
                if item.number > last:
                    break
                yield item
        capture.close()
