"""A capture → a capture that can be sent to others, in two readings.

    first     packets ─► Dissector ─► messages ─► Streams     what became of the bytes of each connection
    second    packets ─► headers, and the bytes of Streams at their place ─► packets

Bytes outside of decoded messages are never written into the Streams. So the second reading cannot write them,
and writes filler. Connections with bytes but without messages are left out. The sequence numbers stay.

Decrypted TLS connections are written in the clear, without TLS records. A packet has the decrypted bytes of
the TLS records that it completed. Its sequence number counts those bytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

from kdissect.capture.reader import Item
from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import ACK, SYN, Chunk, Fault, Packet, Segment
from kdissect.scrub.messages import MessageScrubber
from kdissect.scrub.packets import Headers, Layers, kept_options, mend
from kdissect.scrub.preambles import FirstBytes, scrubbed_preambles
from kdissect.scrub.streams import Streams, stream_of
from kdissect.scrub.values import Scrubber
from kdissect.session.conversation import Conversation, Listener
from kdissect.session.preamble import begins
from kdissect.session.proxies import ANSWER_BYTES
from kdissect.tcp.duplex import Side
from kdissect.tls.keylog import TlsSecrets

_MOST_BEGIN = 2 * ANSWER_BYTES
"""The number of bytes that are kept of the beginning of a stream."""
_NOWHERE = -1
_UNKNOWN = 1 << 62
_NUMBERS = 1 << 32


class ScrubCounts(NamedTuple):
    """The numbers of written and left out parts."""

    packets: int
    """Packets in the result."""
    exchanges: int
    other_packets: int
    """Packets that are not in the result because they have no TCP, or broken headers."""
    unknown_packets: int
    """Packets that are not in the result because no message was found in their connections, such as TLS
    without secrets."""
    unknown_connections: int
    undecoded_bytes: int
    """Bytes outside of messages, in other connections."""
    decrypted_connections: int
    """TLS connections that are written in the clear."""
    compressed: int
    """Batches of records that became filler."""
    left_out_secrets: int
    """Blocks of the capture with TLS secrets, which are not in the result."""


class _DecryptedDirection:
    """The decrypted bytes of one direction."""

    def __init__(self) -> None:
        self.parts: dict[int, list[int]] = {}
        """By packet, the start and the number of its decrypted bytes."""
        self.ends, self.totals = array("q"), array("q")
        """The ends of segments in the encrypted stream, and the number of decrypted bytes by then."""
        self.total = 0
        self.last_packet = 0

    def add(self, chunk: Chunk) -> None:
        """Add decrypted bytes. They follow the previous ones directly; gaps have no bytes."""
        self.last_packet = max(self.last_packet, chunk.packet)
        part = self.parts.setdefault(self.last_packet, [chunk.offset, 0])
        part[1] = chunk.offset + len(chunk.data) - part[0]
        self.total = chunk.offset + len(chunk.data)

    def reached(self, end: int) -> None:
        """Note that segments up to this offset were decrypted."""
        if not self.ends or end > self.ends[-1]:
            self.ends.append(end)
            self.totals.append(self.total)

    def place(self, offset: int) -> int:
        """The number of bytes that were decrypted up to an offset of the encrypted stream."""
        at = bisect_right(self.ends, offset) - 1
        return self.totals[at] if at >= 0 else 0


class _FragmentedSegment(NamedTuple):
    """A segment that came in fragments."""

    stream: int
    offset: int
    length: int
    header: bytes


class Scrubbing(Listener):
    """Both readings of one capture.

    :param file: an empty file, for reading and writing, that keeps the replaced messages.
    """

    def __init__(
        self,
        scrubber: Scrubber,
        file: IO[bytes],
        limits: Limits = DEFAULTS,
        ports: frozenset[int] = frozenset(),
        secrets: TlsSecrets | None = None,
    ) -> None:
        self._scrubber = scrubber
        self._streams = Streams(file)
        self._messages = MessageScrubber(scrubber, limits)
        self._headers = Headers(scrubber, limits)
        self._dissector = Dissector(limits, ports, secrets=secrets, listener=self)
        self._stream_of, self._offset_of, self._heard_of = array("q"), array("q"), array("q")
        """By packet number: the stream, the offset of its first byte in it, and the acknowledged offset of
        the other stream."""
        self._opened: defaultdict[int, _DecryptedDirection] = defaultdict(_DecryptedDirection)
        """The decrypted bytes of TLS streams."""
        self._in_tls: set[int] = set()
        self._pieces: dict[int, _FragmentedSegment] = {}
        """By packet, the segment that it has a fragment of."""
        self._said: set[int] = set()
        """Connections with any bytes."""
        self._begins: dict[int, bytearray] = {}
        """The first bytes of streams that may begin with a proxy's."""
        self._unknown: set[int] = set()
        """Connections with bytes but without messages."""
        self._packets = self._exchanges = self._read = self._unknown_packets = self._undecoded = 0
        self._left_out_secrets = 0

    @property
    def counts(self) -> ScrubCounts:
        """The numbers of written and left out parts, once all is read."""
        decrypted = {stream // 2 for stream in self._opened if self._opened[stream].total}
        return ScrubCounts(
            self._packets,
            self._exchanges,
            self._read - self._packets - self._unknown_packets,
            self._unknown_packets,
            len(self._unknown),
            self._undecoded,
            len(decrypted),
            self._messages.record_sets.compressed,
            self._left_out_secrets,
        )

    # -- the first reading ----------------------------------------------------------------------------

    def read(self, items: Iterable[Item]) -> Iterator[Fault]:
        """Read the capture, and replace all its messages; give the faults of the file."""
        dissector = self._dissector
        for item in items:
            if isinstance(item, Fault):
                yield item
                continue
            if not isinstance(item, Packet):
                self._left_out_secrets += 1
            for event in dissector.feed(item):
                if isinstance(event, Exchange):
                    self._take(event)
        for event in dissector.close():
            if isinstance(event, Exchange):
                self._take(event)
        self._take_preambles()

    def segment(self, conversation: Conversation, segment: Segment) -> None:
        """Note the place of a segment."""
        for end in (segment.source, segment.destination):
            self._scrubber.address(end[:-2])
        side, offset, heard = conversation.place_of(segment)
        stream = stream_of(conversation.number, side)
        self._note(segment.packet, stream, offset, heard)
        if segment.length:
            self._said.add(conversation.number)
            self._collect(stream, offset, segment.payload)
        if conversation.speaks_tls:
            self._in_tls.update((stream, stream ^ 1))
        if stream in self._in_tls:
            self._opened[stream].reached(offset + segment.length)
        numbers = self._dissector.packets_of(segment.packet)
        if len(numbers) > 1:
            piece = _FragmentedSegment(stream, offset, segment.length, _header_of(segment, self._headers))
            for number in numbers:
                self._pieces[number] = piece

    def _collect(self, stream: int, offset: int, payload: bytes) -> None:
        """Keep the first bytes of connections that begin like those through proxies."""
        if offset == 0 and stream not in self._begins and begins(payload):
            self._begins.setdefault(stream, bytearray())
            self._begins.setdefault(stream ^ 1, bytearray())
        begin = self._begins.get(stream)
        if begin is not None and offset <= len(begin) < _MOST_BEGIN:
            begin += payload[len(begin) - offset :]

    def _take_preambles(self) -> None:
        for stream, begin in self._begins.items():
            other = bytes(self._begins[stream ^ 1])
            if stream in self._streams and begins(bytes(begin)):
                made = scrubbed_preambles(FirstBytes(bytes(begin), other), self._scrubber)
                for each, data in zip((stream, stream ^ 1), made, strict=True):
                    if data:
                        self._streams.add(each, 0, data)

    def decrypted(self, conversation: Conversation, side: Side, chunk: Chunk) -> None:
        """Note decrypted bytes."""
        stream = stream_of(conversation.number, side)
        self._in_tls.update((stream, stream ^ 1))
        self._opened[stream].add(chunk)

    def _note(self, packet: int, stream: int, offset: int, heard: int) -> None:
        columns = (self._stream_of, self._offset_of, self._heard_of)
        if packet >= len(self._stream_of):
            for column in columns:
                column.extend([_NOWHERE] * (packet + 1 - len(column)))
        for column, value in zip(columns, (stream, offset, heard), strict=True):
            column[packet] = max(-_UNKNOWN, min(value, _UNKNOWN))

    def _take(self, exchange: Exchange) -> None:
        self._exchanges += 1
        for message in exchange.messages:
            frame = message.frame
            stream = self._stream(exchange, message is exchange.request, frame.last_packet, frame.packets)
            if stream is None:
                continue
            made = self._messages.scrubbed(exchange, message)
            self._streams.add(stream, frame.offset, frame.size.to_bytes(4, "big", signed=True) + made)
        for message in exchange.messages:
            message.forget_body()

    def _stream(
        self, exchange: Exchange, is_request: bool, last_packet: int, packets: tuple[int, ...]
    ) -> int | None:
        """The stream of a message: that of the packets that carried it."""
        for number in (last_packet, *packets):
            if 0 <= number < len(self._stream_of) and self._stream_of[number] // 2 == exchange.connection:
                return self._stream_of[number]
        return None

    # -- the second reading ---------------------------------------------------------------------------

    def packets(self, items: Iterable[Item]) -> Iterator[Packet]:
        """The packets of the result, in their order."""
        for item in items:
            if isinstance(item, Packet):
                self._read += 1
                made = self._packet(item)
                if made is not None:
                    self._packets += 1
                    yield made

    def _packet(self, packet: Packet) -> Packet | None:
        layers = self._headers.layers(packet)
        if layers is None:
            return None
        if layers.fragment is not None:
            return self._fragment(packet, layers)
        number = packet.number
        stream = self._stream_of[number] if number < len(self._stream_of) else _NOWHERE
        if stream == _NOWHERE:
            return None
        if stream in self._in_tls and self._is_opened(stream):
            return self._opened_packet(packet, layers, stream)
        header = layers.payload - layers.tcp
        length = layers.length - header
        captured = max(0, min(len(packet.data) - layers.payload, length))
        out = layers.out
        if stream // 2 in self._said and stream not in self._streams:
            self._unknown.add(stream // 2)
            self._unknown_packets += 1
            return None
        part = self._streams.read(stream, self._offset_of[number], captured)
        self._undecoded += captured - part.known
        out[layers.payload : layers.payload + captured] = part.data
        mend(layers, out, layers.length, self._mark(packet, layers))
        return _changed(packet, out, packet.wire_length)

    def _is_opened(self, stream: int) -> bool:
        return any(each in self._opened and self._opened[each].total for each in (stream, stream ^ 1))

    def _opened_packet(self, packet: Packet, layers: Layers, stream: int) -> Packet:
        """A packet of a connection that is written in the clear."""
        number, out = packet.number, layers.out
        ours, theirs = self._opened[stream], self._opened[stream ^ 1]
        offset = self._offset_of[number]
        start, length = ours.parts.get(number, (ours.place(offset), 0))
        part = self._streams.read(stream, start, length)
        self._undecoded += length - part.known
        del out[layers.payload :]
        out += part.data
        _shift(out, layers.tcp + 4, start - offset)
        heard = self._heard_of[number]
        if out[layers.tcp + 13] & ACK and heard > 0:
            _shift(out, layers.tcp + 8, theirs.place(heard) - heard)
        header = layers.payload - layers.tcp
        grown = header + length - layers.length
        mend(layers, out, header + length, self._mark(packet, layers))
        wire = max(packet.wire_length + grown, len(out))
        return _changed(packet, out, wire)

    def _fragment(self, packet: Packet, layers: Layers) -> Packet | None:
        piece = self._pieces.get(packet.number)
        if piece is None or layers.fragment is None or piece.stream in self._in_tls:
            return None
        part = self._streams.read(piece.stream, piece.offset, piece.length)
        whole = piece.header + part.data
        first = layers.fragment.offset
        size = min(len(layers.out) - layers.tcp, layers.length)
        data = whole[first : first + size]
        layers.out[layers.tcp : layers.tcp + len(data)] = data
        mend(layers, layers.out, layers.length, b"")
        return _changed(packet, layers.out, packet.wire_length)

    def _mark(self, packet: Packet, layers: Layers) -> bytes:
        return self._headers.mark(packet.data[layers.tcp + 16 : layers.tcp + 18]).ljust(2, b"\0")


def _changed(packet: Packet, data: bytearray, wire_length: int) -> Packet:
    number, time = packet.number, packet.timestamp_ns
    return Packet(number, time, packet.link_type, bytes(data), wire_length, packet.interface)


def _shift(out: bytearray, at: int, distance: int) -> None:
    """Change a sequence number."""
    number = (int.from_bytes(out[at : at + 4], "big") + distance) % _NUMBERS
    out[at : at + 4] = number.to_bytes(4, "big")


def _header_of(segment: Segment, headers: Headers) -> bytes:
    """A TCP header with the facts of the segment, as far as they are known."""
    options = kept_options(segment.options) if segment.flags & SYN else b""
    ack = 0 if segment.ack is None else segment.ack
    size = 20 + len(options)
    return b"".join(
        (
            segment.source[-2:] + segment.destination[-2:],
            segment.seq.to_bytes(4, "big") + ack.to_bytes(4, "big"),
            bytes((size // 4 << 4, segment.flags)),
            max(segment.window, 0).to_bytes(2, "big"),
            headers.mark((segment.identity & 0xFFFF).to_bytes(2, "big")),
            bytes(2),
            options,
        )
    )
