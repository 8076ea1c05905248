"""A capture → batches: events are packed, counted, and sent ten times a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from threading import Event, Lock, Thread
from typing import BinaryIO, TypeVar

from kdissect.capture.reader import PACKET_OVERHEAD, Interface
from kdissect.dissect import Event as Found
from kdissect.exchange import Exchange
from kdissect.faults import is_cut
from kdissect.feed.batches import CountedFault, Ended, FeedBatch, InterfaceCount, SpoolWriter
from kdissect.feed.rows import TextNumbers, pack_row
from kdissect.feed.source import ScreenSource, input_of
from kdissect.model import CaptureError, Fault, Packet
from kdissect.names import TopicNames
from kdissect.present.sanitise import sanitise
from kdissect.session.conversation import Connection
from kdissect.source import Pass

BATCH_SECONDS = 0.1
"""The longest time that results wait before they are sent."""
BATCH_ROWS = 5_000
"""The largest number of results that wait."""
LOOK_SECONDS = 1.0
"""How often the facts of open connections are collected, in seconds."""
MOST_GOING_ON = 1_000
"""The largest number of open connections reported."""
MOST_INTERFACES = 1_000
"""The largest number of separately counted interfaces. A merged capture of a day's rotated files has some
hundred."""
MOST_COMMENTS, LONGEST_COMMENT = 10_000, 500
"""The largest number of packets' comments taken in, and the largest number of characters of each."""


class Collector:
    """Collects events, makes batches of them, and sends each batch when it is due."""

    def __init__(
        self,
        spool: BinaryIO,
        send: Callable[[FeedBatch], None],
        interfaces: Sequence[Interface],
        names: TopicNames,
    ) -> None:
        self._spool = SpoolWriter(spool)
        self._send = send
        self._texts = TextNumbers()
        self._rows: list[bytes] = []
        self._connections: list[Connection] = []
        self._going_on: list[Connection] = []
        self._known: dict[int, str] = {}
        """The facts reported of open connections, by number."""
        self._look_due = 0.0
        self._faults: dict[tuple[str, str], CountedFault] = {}
        self._cut: dict[int, CountedFault] = {}
        self._packets = self._bytes = 0
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._interfaces = interfaces
        self._counts: dict[int, list[int]] = {}
        """The counts by interface: packets, bytes on the wire, bytes captured."""
        self._names = names
        self._named = 0
        self._said: dict[int, str] = {}
        """The comments by packet."""
        self._comments: list[tuple[int, str]] = []
        self._due = 0.0
        self._sent = 0
        """The number of packets in the last batch."""
        self.lock = Lock()
        """Must be held while adding, because batches are also made in another thread
        (:meth:`flush_often`)."""

    def packet(self, packet: Packet) -> None:
        """Take in a packet whose events were added."""
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
        self._bytes += len(packet.data) + PACKET_OVERHEAD
        if len(self._rows) >= BATCH_ROWS or (not self._packets & 0x3F and time.monotonic() >= self._due):
            self.flush()

    def flush_often(
        self, over: Event, learn: Callable[[], None], going_on: Callable[[], Iterable[Connection]]
    ) -> None:
        """Send the collected events from time to time, until ``over``. Without packets, no other code does
        so.

        :param learn: adds events that come without a packet.
        :param going_on: returns the facts of open connections.
        """
        while not over.wait(BATCH_SECONDS):
            with self.lock:
                if not over.is_set():
                    learn()
                    self._look(going_on)
                    if self._rows or self._going_on or self._sent != self._packets:
                        self.flush()

    def _look(self, going_on: Callable[[], Iterable[Connection]]) -> None:
        now = time.monotonic()
        if now < self._look_due:
            return
        self._look_due = now + LOOK_SECONDS
        known: dict[int, str] = {}
        for connection in islice(going_on(), MOST_GOING_ON):
            said = known[connection.connection] = f"{connection.protocol} {connection.end} {connection.tls}"
            if self._known.get(connection.connection) != said:
                self._going_on.append(connection)
        self._known = known

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
        """Take in the comments of a packet before it is decoded."""
        text = sanitise("  ".join(packet.comments), LONGEST_COMMENT)
        if len(self._said) < MOST_COMMENTS:
            self._said[packet.number] = text

    def _find_comments(self, exchange: Exchange) -> None:
        packets = (number for message in exchange.messages for number in message.frame.packets)
        found = dict.fromkeys(self._said[number] for number in packets if number in self._said)
        if found:
            self._comments.append((exchange.number, "  ".join(found)))

    def _fault(self, fault: Fault) -> None:
        _count(self._faults, (fault.layer, fault.kind), fault)
        if fault.connection is not None and is_cut(fault):
            _count(self._cut, fault.connection, fault)

    def flush(self) -> None:
        """Send all collected events."""
        self._spool.flush()
        names = self._names.entries(self._named)
        self._named += len(names)
        batch = FeedBatch(
            b"".join(self._rows),
            self._texts.take(),
            self._connections,
            self._going_on,
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
            self._cut,
        )
        self._rows, self._connections, self._faults, self._comments = [], [], {}, []
        self._going_on, self._cut = [], {}
        self._send(batch)
        self._sent = self._packets
        self._due = time.monotonic() + BATCH_SECONDS


def decode_all(source: ScreenSource, spool: BinaryIO, send: Callable[[FeedBatch], None]) -> Ended:
    """Read the capture to its end."""
    reading = Pass(input_of(source), source.secrets, source.key_logs)
    try:
        reading.open()
    except CaptureError as error:
        return Ended(source.reason_of(error))
    collector = Collector(spool, send, reading.interfaces, reading.names)
    ended = Ended()
    over = Event()

    def learn() -> None:
        for event in reading.key_log_events():
            collector.add(event)

    if source.is_live:
        Thread(target=collector.flush_often, args=(over, learn, reading.in_tls), daemon=True).start()
    try:
        _collect(reading, collector)
    except CaptureError as error:
        ended = Ended(source.reason_of(error))
    finally:  # no other thread may use the pipe from here on; results before an error are shown
        over.set()
        with collector.lock:
            collector.flush()
    return ended


def _collect(reading: Pass, collector: Collector) -> None:
    for item in reading.open():
        with collector.lock:
            if isinstance(item, Packet) and item.comments:
                collector.comment(item)
            for event in reading.feed(item):
                collector.add(event)
            if isinstance(item, Packet):
                collector.packet(item)
    with collector.lock:
        for event in reading.end():
            collector.add(event)


_Key = TypeVar("_Key")


def _count(counts: dict[_Key, CountedFault], key: _Key, fault: Fault) -> None:
    found = counts.get(key)
    counts[key] = CountedFault(1, fault) if found is None else found._replace(number=found.number + 1)
