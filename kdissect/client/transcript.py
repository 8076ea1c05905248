"""Everything that a run of the client sent and received, on all its connections: numbers, names, packets.

It does for the client what the Dissector does for a capture. Connections, packets and exchanges get the
numbers that they would have in a capture of the run. Names of topic ids apply from the packet that gave them.
So the output of a client, and the rows of the file that it wrote, have the same numbers.

With ``keeps_packets`` it makes the packets themselves. Secrets in a packet are masked. So the transcript
holds a packet until all messages in it are complete. Then :meth:`Transcript.take_packets` returns it, in the
order of the numbers.
"""

from __future__ import annotations

from collections import deque

from kdissect.client.masking import MASK, secret_ranges
from kdissect.client.packets import ConnectionPackets, SentPacket
from kdissect.dissect import Numbering
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Message
from kdissect.model import Chunk, Direction, Endpoint, Packet
from kdissect.names import TopicNames

ABOUT = "the bytes are what the client sent and received; IP and TCP headers are made up"
IN_TLS = "; they went through TLS"


class Recording:
    """One connection in the transcript."""

    def __init__(self, transcript: Transcript, number: int, client: Endpoint, broker: Endpoint) -> None:
        self._transcript = transcript
        self.number = number
        """The number of the connection: 0, 1, … in the order of opening."""
        self.client = client
        self.broker = broker
        self.line = ConnectionPackets(client, broker)
        self.complete_to = dict.fromkeys(Direction, 0)
        """The offset in each stream up to which all messages are complete."""
        self.masked: dict[Direction, list[tuple[int, int]]] = {each: [] for each in Direction}
        """The places of secrets in the streams."""
        self.is_over = False
        self._offset = dict.fromkeys(Direction, 0)

    def chunks(self, direction: Direction, data: bytes, now_ns: int) -> list[Chunk]:
        """Bytes of one direction, with the numbers of the packets that carry them."""
        first = self._transcript.packets + 1
        chunks = []
        for sent in self.line.data(first, now_ns, direction, data):
            chunks.append(Chunk(self._offset[direction], sent.payload, sent.number, now_ns))
            self._offset[direction] += len(sent.payload)
            self._transcript.keep(self, sent)
        return chunks

    def note_complete(self, message: Message) -> None:
        """Record that a message is complete: the packets with its bytes may be released."""
        frame = message.frame
        start = frame.offset + 4
        if self._transcript.masks:
            self.masked[frame.direction] += [(start + a, start + b) for a, b in secret_ranges(message)]
        self.complete_to[frame.direction] = max(self.complete_to[frame.direction], start + len(frame.payload))

    def close(self, first: Direction, now_ns: int) -> None:
        """End the connection: both ends sent FIN, ``first`` before the other."""
        if not self.is_over:
            self.is_over = True
            for sent in self.line.close(self._transcript.packets + 1, now_ns, first):
                self._transcript.keep(self, sent)


class Transcript:
    """The numbers and names of a run.

    :param embedded: whether exchanges report faults of bytes embedded in their messages.
    :param keeps_packets: whether to make packets.
    :param masks: whether secrets in the packets are overwritten with ``*``.
    """

    def __init__(
        self,
        limits: Limits = DEFAULTS,
        *,
        embedded: bool = False,
        keeps_packets: bool = False,
        masks: bool = True,
    ) -> None:
        self.limits = limits
        self.masks = masks and keeps_packets
        self.packets = 0
        """How many packets there were."""
        self._embedded = embedded
        self._keeps = keeps_packets
        self._held: deque[tuple[Recording, SentPacket]] = deque()
        self._names = TopicNames()
        self._numbering = Numbering()

    def open(self, client: Endpoint, broker: Endpoint, now_ns: int, is_tls: bool = False) -> Recording:
        """Begin a new connection."""
        number = self._numbering.connection(self.packets + 1)
        recording = Recording(self, number, client, broker)
        comment = ABOUT + (IN_TLS if is_tls else "")
        for sent in recording.line.open(self.packets + 1, now_ns, comment):
            self.keep(recording, sent)
        return recording

    def keep(self, recording: Recording, sent: SentPacket) -> None:
        """Count a packet, and hold it if packets are kept."""
        self.packets = sent.number
        if self._keeps:
            self._held.append((recording, sent))

    def take_packets(self) -> list[Packet]:
        """The packets that can be written. Nothing in them, or in packets before them, still has to be
        masked."""
        out = []
        while self._held and _is_complete(*self._held[0]):
            recording, sent = self._held.popleft()
            out.append(recording.line.packet(_masked(recording, sent)))
        return out

    def begin(self, exchange: Exchange) -> None:
        """Give a number to a new exchange."""
        exchange.number = self._numbering.exchange(exchange)
        self._learn(exchange)

    def complete(self, exchange: Exchange) -> None:
        """Give a complete exchange the names of its topics."""
        self._learn(exchange)
        exchange.topic_names = self._names.up_to(exchange.last_packet)
        exchange.embedded = self._embedded

    def _learn(self, exchange: Exchange) -> None:
        for topic_id, name, packet in exchange.taught_topics():
            self._names.learn(topic_id, name, packet)


def _is_complete(recording: Recording, sent: SentPacket) -> bool:
    return recording.is_over or sent.start + len(sent.payload) <= recording.complete_to[sent.direction]


def _masked(recording: Recording, sent: SentPacket) -> SentPacket:
    """The packet with its secrets overwritten, and a comment about it."""
    end = sent.start + len(sent.payload)
    ranges = [(a, b) for a, b in recording.masked[sent.direction] if a < end and b > sent.start]
    if not ranges:
        return sent
    payload = bytearray(sent.payload)
    for a, b in ranges:
        first, last = max(a - sent.start, 0), min(b - sent.start, len(payload))
        payload[first:last] = MASK * (last - first)
    return sent._replace(payload=bytes(payload), comment="secrets are overwritten with *")
