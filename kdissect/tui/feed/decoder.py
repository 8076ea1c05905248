"""A capture → batches for the index, from a process of its own.

Decoding keeps a processor busy; in the process of the screens it would make every key wait. The decoder
process sends a :class:`Batch` about ten times a second and, when it is done, :class:`Ended`; the screens
ask for them with :meth:`Decoder.poll`, which never waits for more. If the process dies, that is told once,
as an Ended with a reason; what came before stays and, because the frames are in the spool, can be shown.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection as Pipe
from multiprocessing.reduction import DupFd
from typing import Any, BinaryIO, NamedTuple, Protocol, cast

from kdissect.capture.files import read_packets
from kdissect.dissect import Dissector, Event
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError, Fault, Packet
from kdissect.session.conversation import Connection
from kdissect.tui.feed.rows import Texts, pack_row
from kdissect.tui.feed.spool import SpoolWriter, read_exchange

BATCH_SECONDS = 0.1
"""How long results wait, at most, before they are sent."""
BATCH_ROWS = 5_000
"""How many wait, at most."""
POLL_SECONDS = 0.02
"""How long one poll may go on taking in what came."""
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

    @property
    def bytes_in_all(self) -> int:
        """Of all files."""
        return sum(os.path.getsize(path) for path in self.paths if os.path.isfile(path))


class FaultCount(NamedTuple):
    """Faults of one kind."""

    number: int
    first: Fault


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


class Ended(NamedTuple):
    """Nothing more comes."""

    reason: str | None = None
    """Why, if it is not that everything was read."""


class Feed(Protocol):
    """What fills an index, and gives the exchanges in it."""

    source: Source

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

    def __init__(self, spool: BinaryIO, send: Callable[[Batch], None]) -> None:
        self._spool = SpoolWriter(spool)
        self._send = send
        self._texts = Texts()
        self._rows: list[bytes] = []
        self._connections: list[Connection] = []
        self._faults: dict[tuple[str, str], FaultCount] = {}
        self._packets = self._bytes = 0
        self._first_ns: int | None = None
        self._due = 0.0

    def packet(self, packet: Packet) -> None:
        """A packet was read, and what it brought to light was added."""
        if self._first_ns is None:
            self._first_ns = packet.timestamp_ns
        self._packets += 1
        self._bytes += len(packet.data) + _PACKET_HEADER
        if len(self._rows) >= BATCH_ROWS or (not self._packets & 0x3F and time.monotonic() >= self._due):
            self.flush()

    def add(self, event: Event) -> None:
        """Take in one event."""
        if isinstance(event, Exchange):
            place, length = self._spool.write(event)
            self._rows.append(pack_row(event, self._texts, place, length))
            for fault in event.faults:
                self._fault(fault)
        elif isinstance(event, Fault):
            self._fault(event)
        else:
            self._connections.append(event)

    def _fault(self, fault: Fault) -> None:
        key = (fault.layer, fault.kind)
        found = self._faults.get(key)
        counted = FaultCount(1, fault) if found is None else found._replace(number=found.number + 1)
        self._faults[key] = counted

    def flush(self) -> None:
        """Send what there is."""
        self._spool.flush()
        batch = Batch(
            b"".join(self._rows),
            self._texts.take(),
            self._connections,
            self._faults,
            self._packets,
            self._bytes,
            self._first_ns,
        )
        self._rows, self._connections, self._faults = [], [], {}
        self._send(batch)
        self._due = time.monotonic() + BATCH_SECONDS


def decode_all(source: Source, spool: BinaryIO, send: Callable[[Batch], None]) -> Ended:
    """Read the capture to its end."""
    collector = Collector(spool, send)
    try:
        for event in _events(source, collector):
            collector.add(event)
        collector.flush()
    except CaptureError as error:
        collector.flush()
        return Ended(str(error))
    return Ended()


def _events(source: Source, collector: Collector) -> Iterator[Event]:
    dissector = Dissector(source.limits, source.ports)
    for topic_id, name in source.topics.items():
        dissector.names.learn(topic_id, name, 0)
    for item in read_packets(source.paths, source.limits):
        yield from dissector.feed(item)
        if isinstance(item, Packet):
            collector.packet(item)
    yield from dissector.close()


def _run(source: Source, spool: Any, pipe: Pipe) -> None:
    """What the process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the key is the screens' to answer
    # A traceback would be written over the screens; that the process failed is told by its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
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


class Decoder:
    """The process, as the screens see it. Starts at once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._spool = tempfile.TemporaryFile(prefix="kdissect-", suffix=".spool")  # noqa: SIM115
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe(duplex=False)
        spool = _Shared(self._spool.fileno())
        self._process = context.Process(target=_run, args=(source, spool, theirs), daemon=True)
        self._process.start()
        theirs.close()
        self._is_over = False

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
        self._process.join(1)
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"the decoder was killed by signal {-code}; what it had decoded is shown"
        return f"the decoder stopped with exit code {code}; what it had decoded is shown"

    def exchange(self, place: int, length: int) -> Exchange:
        return read_exchange(self._spool.fileno(), place, length, self.source.limits)

    def close(self) -> None:
        self._is_over = True
        self._process.terminate()
        self._process.join()
        self._pipe.close()
        self._spool.close()


class _Shared:
    """A file descriptor on its way to another process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> tuple[Any, ...]:
        return _Arrived, (DupFd(self._descriptor),)


class _Arrived:
    """A file descriptor in the process it was sent to."""

    def __init__(self, shared: Any) -> None:
        self.detach = cast(Callable[[], int], shared.detach)


class Decoded:
    """A capture that was decoded here and at once: for who does not mind the wait."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._spool = tempfile.TemporaryFile(prefix="kdissect-", suffix=".spool")  # noqa: SIM115
        self._waiting: list[Batch | Ended] = []
        self._waiting.append(decode_all(source, cast(BinaryIO, self._spool), self._waiting.append))

    def poll(self) -> list[Batch | Ended]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def exchange(self, place: int, length: int) -> Exchange:
        return read_exchange(self._spool.fileno(), place, length, self.source.limits)

    def close(self) -> None:
        self._spool.close()
