"""What the decoder hands to the screens: batches through a pipe, and exchanges through a temporary file.

The file, called the spool, has no name. The process that decodes appends what an exchange was made from: its
frames, what their headers told, and the topic names it needs. Any process that has the file reads an exchange
back by its place. Nothing that was decoded is kept. So the file is about as large as the capture, and neither
process holds the frames in memory. The file ends with the last process that has it open.

A capture cannot serve instead. It may be a pipe or compressed. A frame in it may be scattered over packets
that came twice, in pieces, or in another order.
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
    """What came from one interface, or one pcap file."""

    interface: Interface
    packets: int = 0
    bytes: int = 0
    """On the wire."""
    captured: int = 0
    """Of them, those that are in the file: less where a snap length cut packets."""


class FeedBatch(NamedTuple):
    """What came to light since the batch before."""

    rows: bytes = b""
    """Packed exchanges, in the order in which they were complete (:mod:`kdissect.feed.rows`)."""
    texts: Sequence[str] = ()
    """What the list of texts grew by."""
    connections: Sequence[Connection] = ()
    """Those that are over."""
    going_on: Sequence[Connection] = ()
    """Those that speak TLS, are not over, and of which something else is known than before."""
    faults: Mapping[tuple[str, str], CountedFault] = {}
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
    cut: Mapping[int, CountedFault] = {}
    """By connection, of the faults those that the snap length made."""


class Ended(NamedTuple):
    """Nothing more comes."""

    reason: str | None = None
    """Why, if it is not that everything was read."""


class Feed(Protocol):
    """What fills an index, and gives the exchanges in it."""

    source: ScreenSource

    @property
    def capture(self) -> Status | None:
        """How the capture goes, if there is one that goes on."""

    @property
    def silence(self) -> str | None:
        """Why nothing of Kafka's comes from a capture that goes on, in a line; None if it is not known."""

    @property
    def descriptor(self) -> int:
        """The descriptor of the spool, for processes that read it too."""

    def poll(self) -> list[FeedBatch | Ended]:
        """What came since the last call."""

    def exchange(self, place: int, length: int) -> Exchange:
        """An exchange by its place in the spool.

        :raises OSError: it cannot be read.
        """

    def close(self) -> None:
        """Stop, and let go of everything."""


class SpoolWriter:
    """Appends exchanges to ``file``, which nobody else writes to."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        """Bytes that were appended."""

    def write(self, exchange: Exchange) -> tuple[int, int]:
        """Append an exchange; gives its place and length. It can be read after :meth:`flush`."""
        data = pickle.dumps((plain_exchange(exchange), _names(exchange)), pickle.HIGHEST_PROTOCOL)
        self._file.write(data)
        place = self.size
        self.size += len(data)
        return place, len(data)

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._file.flush()


def read_exchange(descriptor: int, place: int, length: int, limits: Limits = DEFAULTS) -> Exchange:
    """An exchange from the spool, as it was when it was complete; its bodies are decoded when asked for.

    :raises OSError: the file cannot be read, or ends before ``length`` bytes.
    """
    data = bytearray()
    while len(data) < length:
        piece = read_at(descriptor, length - len(data), place + len(data))
        if not piece:
            raise OSError(f"the spool ends at byte {place + len(data):,}")
        data += piece
    plain, names = pickle.loads(data)  # what this program wrote itself, in a nameless file
    return exchange_of(plain, names, limits)


def _names(exchange: Exchange) -> dict[str, str]:
    """The names that its lists need; a page that shows its tree knows all of the index."""
    names = {topic_id: exchange.topic_names.get(topic_id) for topic_id in exchange.topic_ids()}
    return {topic_id: name for topic_id, name in names.items() if name is not None}
