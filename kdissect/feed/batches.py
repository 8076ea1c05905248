"""The decoder's output for the screens: batches through a pipe, and exchanges through a temporary file.

The file, called the spool, has no name. The decoding process appends the parts that make an exchange: its
frames, the facts of their headers, and the topic names that it needs. Any process with the file reads an
exchange back by its place. Decoded values are not kept. So the file is about as large as the capture, and no
process holds the frames in memory. The file is deleted when the last process closes it.

A capture cannot replace it. It may be a pipe or compressed. A frame in it may be scattered over packets that
came twice, in pieces, or in another order.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import BinaryIO, NamedTuple, Protocol

from kdissect.capture.reader import Interface
from kdissect.exchange import Exchange
from kdissect.feed.source import ScreenSource
from kdissect.limits import DEFAULTS, Limits
from kdissect.live.journal import Status
from kdissect.model import Fault
from kdissect.plain import exchange_of, plain_exchange
from kdissect.session.conversation import Connection
from kdissect.system import read_at


class CountedFault(NamedTuple):
    """Faults of one kind."""

    number: int
    first: Fault


class InterfaceCount(NamedTuple):
    """The counts of one interface, or of one pcap file."""

    interface: Interface
    packets: int = 0
    bytes: int = 0
    """Bytes on the wire."""
    captured: int = 0
    """Bytes in the file; fewer if a snap length cut packets."""


class FeedBatch(NamedTuple):
    """The results since the batch before."""

    rows: bytes = b""
    """Packed exchanges, in the order in which they were complete (:mod:`kdissect.feed.rows`)."""
    texts: Sequence[str] = ()
    """The new entries of the list of texts."""
    connections: Sequence[Connection] = ()
    """The connections that are over."""
    going_on: Sequence[Connection] = ()
    """Open connections with TLS whose known facts have changed."""
    faults: Mapping[tuple[str, str], CountedFault] = {}
    """The faults by layer and kind, including those of exchanges."""
    packets: int = 0
    """The number of packets read so far."""
    bytes_read: int = 0
    """About the number of bytes read of the files."""
    first_ns: int | None = None
    """The time of the first packet."""
    last_ns: int | None = None
    """The time of the latest packet."""
    spooled: int = 0
    """The number of bytes in the spool."""
    interfaces: Sequence[InterfaceCount] = ()
    """All interfaces so far, by number."""
    names: Sequence[tuple[str, str, int]] = ()
    """Topic ids with their names, and the packets that had the names."""
    comments: Sequence[tuple[int, str]] = ()
    """Exchanges with comments in the capture: the number, and their packets' comments."""
    cut: Mapping[int, CountedFault] = {}
    """The faults caused by the snap length, by connection."""


class Ended(NamedTuple):
    """The end: nothing more comes."""

    reason: str | None = None
    """The reason, if not everything was read."""


class Feed(Protocol):
    """Fills an index, and returns its exchanges."""

    source: ScreenSource

    @property
    def capture(self) -> Status | None:
        """The status of a capture that goes on; None without one."""

    @property
    def silence(self) -> str | None:
        """The reason, in a line, why a capture that goes on has nothing of Kafka; None if unknown."""

    @property
    def descriptor(self) -> int:
        """The descriptor of the spool, for other processes that read it."""

    def poll(self) -> list[FeedBatch | Ended]:
        """The batches since the last call."""

    def exchange(self, place: int, length: int) -> Exchange:
        """An exchange by its place in the spool.

        :raises OSError: it cannot be read.
        """

    def close(self) -> None:
        """Stop, and close everything."""


class SpoolWriter:
    """Appends exchanges to ``file``, which no other code writes to."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        """The number of bytes appended."""

    def write(self, exchange: Exchange) -> tuple[int, int]:
        """Append an exchange, and return its place and length. It can be read after :meth:`flush`."""
        data = pickle.dumps((plain_exchange(exchange), _names(exchange)), pickle.HIGHEST_PROTOCOL)
        self._file.write(data)
        place = self.size
        self.size += len(data)
        return place, len(data)

    def flush(self) -> None:
        """Pass the written bytes to the system."""
        self._file.flush()


def read_exchange(descriptor: int, place: int, length: int, limits: Limits = DEFAULTS) -> Exchange:
    """An exchange from the spool, as it was when complete; its bodies are decoded on demand.

    :raises OSError: the file cannot be read, or ends before ``length`` bytes.
    """
    data = bytearray()
    while len(data) < length:
        piece = read_at(descriptor, length - len(data), place + len(data))
        if not piece:
            raise OSError(f"the spool ends at byte {place + len(data):,}")
        data += piece
    plain, names = pickle.loads(data)  # this program wrote it itself, in a nameless file
    return exchange_of(plain, names, limits)


def _names(exchange: Exchange) -> dict[str, str]:
    """The names that its lists need; the page with its tree uses all names of the index."""
    names = {topic_id: exchange.topic_names.get(topic_id) for topic_id in exchange.topic_ids()}
    return {topic_id: name for topic_id, name in names.items() if name is not None}
