"""``-w``: the packets of the shown rows → a pcapng file that gives the same rows.

The packets are known only after the rows were shown. So the input is read again: once for the handshakes,
once to write. Standard input is kept in a temporary file while it is read the first time.

The packets of a connection's handshake and end (SYN, FIN, RST) are written too: they show where its bytes
begin. All fragments of an IP packet are written, and all packets of a TLS connection.

``--comment`` adds comments to packets. Then all packets of the capture are written if no row is left out, so
that they keep their numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, cast

from kdissect.capture.belonging import belonging
from kdissect.capture.reader import Interface, Points
from kdissect.capture.writer import PcapngWriter
from kdissect.cli.annotating import Annotated, section_of
from kdissect.cli.errors import complain
from kdissect.cli.inputs import packets_of, reads_once
from kdissect.cli.reading import Reading
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.message import Message, Token
from kdissect.model import TLS_KEY_LOG, Endpoint, Fault, Packet, Secrets
from kdissect.present.form import plural
from kdissect.present.redact import may_hold_secrets
from kdissect.protocol import apis
from kdissect.system import named_file
from kdissect.tls.keylog import TlsSecrets


class ShownPackets:
    """Collects the packets that are shown. Separate collections can be merged."""

    def __init__(self) -> None:
        self.packets: set[int] = set()
        self.encrypted: set[frozenset[Endpoint]] = set()
        """The ends of the TLS connections that are shown."""
        self.secretive = 0
        """How many messages with redacted parts were sent in the clear."""
        self.logins: set[int] = set()
        """Connections with a login at a proxy."""

    def part(self) -> ShownPackets:
        """An empty collection, for a batch."""
        return ShownPackets()

    def add(self, event: Event) -> None:
        """Add an event that was shown."""
        if isinstance(event, Exchange):
            self.packets.update(number for message in event.messages for number in message.frame.packets)
            ends = event.client_endpoint, event.broker_endpoint
            if event.proxied is not None:
                ends = event.proxied.client, event.proxied.peer
                self.packets.update(event.proxied.packets)
                if event.proxied.has_login:
                    self.logins.add(event.connection)
            if event.is_encrypted:
                self.encrypted.add(frozenset(ends))
            else:
                self.secretive += sum(map(_is_secretive, event.messages))
        elif isinstance(event, Fault) and event.packet is not None:
            self.packets.add(event.packet)

    def merge(self, other: ShownPackets) -> None:
        """Add another collection."""
        self.packets |= other.packets
        self.encrypted |= other.encrypted
        self.secretive += other.secretive
        self.logins |= other.logins


def _is_secretive(message: Message) -> bool:
    if message.api_key is None:
        return isinstance(message, Token)
    return may_hold_secrets(apis.api_name(message.api_key) + message.kind.capitalize())


class ShownPacketsWriter:
    """Writes the packets of the shown rows."""

    def __init__(
        self,
        paths: tuple[str, ...],
        limits: Limits,
        only_once: bool = False,
        *,
        with_secrets: bool = False,
        scratch: str | None = None,
        annotations: Annotated | None = None,
        everything: bool = False,
    ) -> None:
        """
        :param only_once: whether the packets can be read only once, whatever the paths are.
        :param with_secrets: whether to write TLS secrets too.
        :param scratch: the folder for inputs that can be read only once; None for the usual folder of
            temporary files.
        :param annotations: the comments on packets.
        :param everything: whether to write all packets.
        """
        self._annotations = annotations
        self._everything = everything
        self._paths = paths
        self._only_once = only_once or any(map(reads_once, paths))
        self._limits = limits
        self._with_secrets = with_secrets
        self._scratch = scratch
        self._points: Points | None = None
        self.found = ShownPackets()
        self._spool: BinaryIO | None = None
        """The copy of input that can be read only once."""
        self._end_spool: Callable[[], None] = lambda: None

    @contextmanager
    def kept(self, reading: Reading) -> Iterator[None]:
        """Make sure that the input of ``reading`` can be read again inside the ``with``."""
        if not self._only_once:
            self._points = reading.points
            yield
            return
        with named_file(".pcapng", self._scratch) as spool:
            # Packets keep their numbers there: the copy has all of the input, in the order of the numbers.
            file = cast(BinaryIO, spool)
            writer = PcapngWriter(file, reading.interfaces, None)
            reading.keep = writer.write
            self._paths, self._spool, self._end_spool = (spool.name,), file, writer.begin
            yield

    def write(
        self, file: BinaryIO, read: int, secrets: TlsSecrets, interfaces: Sequence[Interface] = ()
    ) -> None:
        """Write the packets, in the order of the capture.

        :param read: how many packets of the capture were read.
        :param interfaces: the interfaces of the capture, as they were read.
        :param secrets: the given secrets and those of the capture. Secrets of connections that were read are
            written first, for the packets after them.
        """
        if self._spool is not None:
            self._end_spool()
            self._spool.flush()
        capture = packets_of(self._paths, self._limits, self._points)
        writer = PcapngWriter(file, capture.interfaces, section_of(interfaces, self._annotations))
        writer.write_names(interfaces)
        left_out = False
        if self._with_secrets and (key_log := secrets.key_log()):
            writer.write(Secrets(TLS_KEY_LOG, key_log))
            if secrets.forgotten:
                others = plural(secrets.forgotten, "earlier TLS connection")
                complain(f"the secrets of {others} are not in the file: too many connections")
        wanted = self._wanted(read)

        def packets() -> Iterator[Packet]:
            nonlocal left_out
            last = read if wanted is None else max(wanted, default=0)
            for item in capture:
                if isinstance(item, Packet):
                    if wanted is None or item.number in wanted:
                        yield item
                    if item.number >= last:
                        break
                elif isinstance(item, Secrets):
                    left_out = True

        written = packets()
        if self._annotations is not None:
            written = self._annotations.commented(written, _numbers_of(wanted))
        for packet in written:
            writer.write(packet)
        writer.write_counts(interfaces)
        capture.close()
        if secretive := self.found.secretive + len(self.found.logins):
            many = plural(secretive, "message")
            complain(
                "packets are written as captured, including what is redacted here (passwords, tokens, "
                f"configs) in {many}"
            )
        if left_out and not self._with_secrets:
            complain("the TLS secrets of the capture are left out of the file; --with-secrets keeps them")

    def _wanted(self, read: int) -> set[int] | None:
        """The numbers of the packets to write; None for all."""
        if self._everything:
            return None
        shown, encrypted = self.found.packets, self.found.encrypted
        return shown | belonging(self._items(read), shown, self._limits, encrypted)

    def _items(self, last: int) -> Iterator[Packet]:
        """The packets up to number ``last``."""
        capture = packets_of(self._paths, self._limits, self._points)
        for item in capture:
            if isinstance(item, Packet):
                if item.number > last:
                    break
                yield item
        capture.close()


def _numbers_of(wanted: set[int] | None) -> Callable[[int], int | None]:
    """The function that gives the new number of a packet if only these packets are written."""
    if wanted is None:
        return lambda packet: packet
    order = sorted(wanted)
    return lambda packet: bisect_left(order, packet) + 1 if packet in wanted else None
