"""A capture → batches for the index, from a process of its own.

Decoding keeps a processor busy; in the process of the screens it would make every key wait. The decoder
process sends a :class:`Batch` about ten times a second and, when it is done, :class:`Ended`; the screens
ask for them with :meth:`Decoder.poll`, which never waits for more. If the process dies, that is told once,
as an Ended with a reason; what came before stays and, because the frames are in the spool, can be shown.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from threading import Event, Lock, Thread
from typing import BinaryIO, NamedTuple, Protocol, cast

from kdissect.capture.files import read_packets
from kdissect.capture.keylogs import KeyLogs
from kdissect.capture.reader import Interface, Item
from kdissect.dissect import Dissector
from kdissect.dissect import Event as Found
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.live.following import Files, Following, Spooled
from kdissect.live.journal import Status
from kdissect.model import CaptureError, Fault, Packet
from kdissect.names import TopicNames
from kdissect.present.sanitise import sanitise
from kdissect.session.conversation import Connection
from kdissect.tls.keylog import Secrets as KnownSecrets
from kdissect.tui.feed.rows import Texts, pack_row
from kdissect.tui.feed.sharing import Arrived, Shared, be_quiet, how_it_ended
from kdissect.tui.feed.spool import SpoolWriter, read_exchange

BATCH_SECONDS = 0.1
"""How long results wait, at most, before they are sent."""
BATCH_ROWS = 5_000
"""How many wait, at most."""
POLL_SECONDS = 0.02
"""How long one poll may go on taking in what came."""
MOST_INTERFACES = 1_000
"""How many interfaces are told apart: a merged capture of a day's rotated files has some hundred."""
MOST_COMMENTS, LONGEST_COMMENT = 10_000, 500
"""How many comments of packets are taken in, and how many characters of each."""
_PIPE_BYTES = 1 << 20
"""More than a batch takes."""
_PACKET_HEADER = 24
"""About what a capture file adds to a packet's bytes."""


class Source(NamedTuple):
    """What to decode, and how."""

    paths: tuple[str, ...]
    limits: Limits = DEFAULTS
    ports: frozenset[int] = frozenset()
    """Ports whose connections are taken for Kafka's."""
    topics: Mapping[str, str] = {}
    """Names of topic ids that no capture tells."""
    is_live: bool = False
    """Whether packets come as they are captured: what they bring to light does not wait for more of them."""
    secrets: KnownSecrets | None = None
    """With which TLS is decrypted, beside those that the capture has."""
    key_logs: KeyLogs | None = None
    """Of which more may come."""
    spool: str | None = None
    """The folder of a capture process (:mod:`kdissect.live.journal`), whose files are decoded; ``paths`` are
    only names then."""
    follows: bool = False
    """Whether the files grow, or are folders in which files appear."""

    @property
    def bytes_in_all(self) -> int:
        """Of all files."""
        return sum(os.path.getsize(path) for path in self.paths if os.path.isfile(path))


class Packets(Protocol):
    """The packets of a source, and whatever else it has."""

    @property
    def interfaces(self) -> Sequence[Interface]:
        """By the index that packets have; they grow."""

    def __iter__(self) -> Iterator[Item]:
        """In order."""

    def close(self) -> None:
        """Let go of what is open."""


def packets_of(source: Source, *, waits: bool) -> Packets:
    """The packets of a source.

    :param waits: whether those are waited for that are still to come.
    :raises CaptureError: there are none to read.
    """
    following: Following
    if source.spool is not None:
        try:
            following = Spooled(source.spool, source.limits)
        except OSError as error:
            raise CaptureError(f"the capture has gone: {error.strerror}") from None
    elif source.follows:
        following = Files(source.paths, source.limits)
    else:
        return read_packets(source.paths, source.limits)
    if not waits:
        following.stop()
    return following


class FaultCount(NamedTuple):
    """Faults of one kind."""

    number: int
    first: Fault


class InterfaceCount(NamedTuple):
    """What came from one interface, or one pcap file."""

    interface: Interface
    packets: int = 0
    bytes: int = 0
    """On the wire."""
    captured: int = 0
    """Of them, those that are in the file: less where a snap length cut packets."""


class Batch(NamedTuple):
    """What came to light since the batch before."""

    rows: bytes = b""
    """Packed exchanges, in the order in which they were complete (:mod:`kdissect.tui.feed.rows`)."""
    texts: Sequence[str] = ()
    """What the list of texts grew by."""
    connections: Sequence[Connection] = ()
    faults: Mapping[tuple[str, str], FaultCount] = {}
    """By layer and kind; those of exchanges too."""
    packets: int = 0
    """How many were read up to here."""
    bytes_read: int = 0
    """About how many bytes of the files that were."""
    first_ns: int | None = None
    """Time of the first packet."""
    last_ns: int | None = None
    """Time of the latest."""
    spooled: int = 0
    """Bytes of the spool."""
    interfaces: Sequence[InterfaceCount] = ()
    """All interfaces so far, by number."""
    names: Sequence[tuple[str, str, int]] = ()
    """Topic ids that were named, with the name and the packet that told it."""
    comments: Sequence[tuple[int, str]] = ()
    """Exchanges of which the capture has comments: the number, and what their packets' comments say."""


class Ended(NamedTuple):
    """Nothing more comes."""

    reason: str | None = None
    """Why, if it is not that everything was read."""


class Feed(Protocol):
    """What fills an index, and gives the exchanges in it."""

    source: Source

    @property
    def capture(self) -> Status | None:
        """How the capture goes, if there is one that goes on."""

    @property
    def descriptor(self) -> int:
        """Of the spool, for processes that read it too."""

    def poll(self) -> list[Batch | Ended]:
        """What came since the last call."""

    def exchange(self, place: int, length: int) -> Exchange:
        """An exchange by its place in the spool.

        :raises OSError: it cannot be read.
        """

    def close(self) -> None:
        """Stop, and let go of everything."""


class Collector:
    """Collects events, and makes batches of them. Sends a batch when it is time."""

    def __init__(
        self,
        spool: BinaryIO,
        send: Callable[[Batch], None],
        interfaces: Sequence[Interface],
        names: TopicNames,
    ) -> None:
        self._spool = SpoolWriter(spool)
        self._send = send
        self._texts = Texts()
        self._rows: list[bytes] = []
        self._connections: list[Connection] = []
        self._faults: dict[tuple[str, str], FaultCount] = {}
        self._packets = self._bytes = 0
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._interfaces = interfaces
        self._counts: dict[int, list[int]] = {}
        """By interface: packets, bytes on the wire, bytes captured."""
        self._names = names
        self._named = 0
        self._said: dict[int, str] = {}
        """Comments by packet."""
        self._comments: list[tuple[int, str]] = []
        self._due = 0.0
        self._sent = 0
        """Packets of the last batch."""
        self.lock = Lock()
        """To be held by who adds: batches are also made beside it (:meth:`flush_often`)."""

    def packet(self, packet: Packet) -> None:
        """A packet was read, and what it brought to light was added."""
        if self._first_ns is None:
            self._first_ns = packet.timestamp_ns
        if self._last_ns is None or packet.timestamp_ns > self._last_ns:
            self._last_ns = packet.timestamp_ns
        counts = self._counts.get(packet.interface)
        if counts is None:
            counts = self._counts[packet.interface] = [0, 0, 0]
        counts[0] += 1
        counts[1] += packet.wire_length
        counts[2] += len(packet.data)
        self._packets += 1
        self._bytes += len(packet.data) + _PACKET_HEADER
        if len(self._rows) >= BATCH_ROWS or (not self._packets & 0x3F and time.monotonic() >= self._due):
            self.flush()

    def flush_often(self, over: Event, learn: Callable[[], None]) -> None:
        """Send what there is while no packets come that would have it sent, until ``over``.

        :param learn: adds what comes to light without a packet.
        """
        while not over.wait(BATCH_SECONDS):
            with self.lock:
                if not over.is_set():
                    learn()
                    if self._rows or self._sent != self._packets:
                        self.flush()

    def add(self, event: Found) -> None:
        """Take in one event."""
        if isinstance(event, Exchange):
            if self._said:
                self._find_comments(event)
            place, length = self._spool.write(event)
            self._rows.append(pack_row(event, self._texts, place, length))
            for fault in event.faults:
                self._fault(fault)
        elif isinstance(event, Fault):
            self._fault(event)
        else:
            self._connections.append(event)

    def comment(self, packet: Packet) -> None:
        """A packet with comments is about to be decoded."""
        text = sanitise("  ".join(packet.comments), LONGEST_COMMENT)
        if len(self._said) < MOST_COMMENTS:
            self._said[packet.number] = text

    def _find_comments(self, exchange: Exchange) -> None:
        packets = (number for message in exchange.messages for number in message.frame.packets)
        found = dict.fromkeys(self._said[number] for number in packets if number in self._said)
        if found:
            self._comments.append((exchange.number, "  ".join(found)))

    def _fault(self, fault: Fault) -> None:
        key = (fault.layer, fault.kind)
        found = self._faults.get(key)
        counted = FaultCount(1, fault) if found is None else found._replace(number=found.number + 1)
        self._faults[key] = counted

    def flush(self) -> None:
        """Send what there is."""
        self._spool.flush()
        names = self._names.told(self._named)
        self._named += len(names)
        batch = Batch(
            b"".join(self._rows),
            self._texts.take(),
            self._connections,
            self._faults,
            self._packets,
            self._bytes,
            self._first_ns,
            self._last_ns,
            self._spool.size,
            [
                InterfaceCount(each, *self._counts.get(number, ()))
                for number, each in enumerate(self._interfaces[:MOST_INTERFACES])
            ],
            names,
            self._comments,
        )
        self._rows, self._connections, self._faults, self._comments = [], [], {}, []
        self._send(batch)
        self._sent = self._packets
        self._due = time.monotonic() + BATCH_SECONDS


def decode_all(source: Source, spool: BinaryIO, send: Callable[[Batch], None]) -> Ended:
    """Read the capture to its end."""
    dissector = Dissector(source.limits, source.ports, embedded=True, secrets=source.secrets)
    for topic_id, name in source.topics.items():
        dissector.names.learn(topic_id, name, 0)
    try:
        capture = packets_of(source, waits=True)
    except CaptureError as error:
        return Ended(str(error))
    collector = Collector(spool, send, capture.interfaces, dissector.names)
    ended = Ended()
    over = Event()

    def learn(now: float | None = None) -> None:
        if source.key_logs is not None:
            for lines in source.key_logs.follow(time.monotonic() if now is None else now):
                for event in dissector.learn_secrets(lines.data, dissector.packets):
                    collector.add(event)

    if source.is_live:
        Thread(target=collector.flush_often, args=(over, learn), daemon=True).start()
    try:
        _collect(capture, dissector, collector, learn)
    except CaptureError as error:
        ended = Ended(str(error))
    over.set()
    with collector.lock:
        collector.flush()
    return ended


def _collect(
    capture: Iterable[Item],
    dissector: Dissector,
    collector: Collector,
    learn: Callable[[float | None], None],
) -> None:
    for item in capture:
        with collector.lock:
            if isinstance(item, Packet) and item.comments:
                collector.comment(item)
            learn(None)
            for event in dissector.feed(item):
                collector.add(event)
            if isinstance(item, Packet):
                collector.packet(item)
    with collector.lock:
        learn(math.inf)
        for event in dissector.close():
            collector.add(event)


def _run(source: Source, spool: Arrived, pipe: Pipe) -> None:
    """What the process does."""
    be_quiet()
    with suppress(BrokenPipeError), os.fdopen(spool.detach(), "wb") as file:
        try:
            ended = decode_all(source, file, pipe.send)
        except BrokenPipeError:  # the screens are closed
            raise
        except OSError as error:
            ended = Ended(f"{error.filename or 'the spool cannot be written'}: {error.strerror}")
        except Exception as error:
            ended = Ended(f"a defect in kdissect, please report it: {type(error).__name__}: {error}")
        pipe.send(ended)


def _make_room(pipe: Pipe) -> None:
    """Have a pipe hold a whole batch, so that decoding goes on until the screens ask for it."""
    with suppress(ImportError, AttributeError, OSError):  # a system, or a user, that cannot have that
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


class Decoder:
    """The process, as the screens see it. Starts at once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._spool = tempfile.TemporaryFile(prefix="kdissect-", suffix=".spool")  # noqa: SIM115
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe(duplex=False)
        _make_room(theirs)
        spool = Shared(self._spool.fileno())
        self._process = context.Process(target=_run, args=(source, spool, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._is_over = False

    @property
    def capture(self) -> Status | None:
        return None

    @property
    def pid(self) -> int | None:
        """The process's number."""
        return self._process.pid

    def poll(self) -> list[Batch | Ended]:
        out: list[Batch | Ended] = []
        until = time.monotonic() + POLL_SECONDS
        while not self._is_over and time.monotonic() < until:
            try:
                if not self._pipe.poll():
                    break
                out.append(self._pipe.recv())
            except (EOFError, OSError):
                out.append(Ended(self._death()))
            self._is_over = isinstance(out[-1], Ended)
        return out

    def _death(self) -> str:
        return f"{how_it_ended('the decoder', self._process)}; what it had decoded is shown"

    @property
    def descriptor(self) -> int:
        return self._spool.fileno()

    def exchange(self, place: int, length: int) -> Exchange:
        return read_exchange(self.descriptor, place, length, self.source.limits)

    def close(self) -> None:
        self._is_over = True
        self._process.terminate()
        self._process.join()
        self._pipe.close()
        self._spool.close()


class Decoded:
    """A capture that was decoded here and at once: for who does not mind the wait."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._spool = tempfile.TemporaryFile(prefix="kdissect-", suffix=".spool")  # noqa: SIM115
        self._waiting: list[Batch | Ended] = []
        self._waiting.append(decode_all(source, cast(BinaryIO, self._spool), self._waiting.append))

    @property
    def capture(self) -> Status | None:
        return None

    def poll(self) -> list[Batch | Ended]:
        waiting, self._waiting = self._waiting, []
        return waiting

    @property
    def descriptor(self) -> int:
        return self._spool.fileno()

    def exchange(self, place: int, length: int) -> Exchange:
        return read_exchange(self.descriptor, place, length, self.source.limits)

    def close(self) -> None:
        self._spool.close()
