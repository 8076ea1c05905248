"""What the decoder says to the screens: batches, and that it ended; and what a feed of them is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kdissect.capture.reader import Interface
from kdissect.exchange import Exchange
from kdissect.live.journal import Status
from kdissect.model import Fault
from kdissect.session.conversation import Connection
from kdissect.tui.feed.source import Source


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
    """Those that are over."""
    going_on: Sequence[Connection] = ()
    """Those that speak TLS, are not over, and of which something else is known than before."""
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
    cut: Mapping[int, FaultCount] = {}
    """By connection, of the faults those that the snap length made."""


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
        """The descriptor of the spool, for processes that read it too."""

    def poll(self) -> list[Batch | Ended]:
        """What came since the last call."""

    def exchange(self, place: int, length: int) -> Exchange:
        """An exchange by its place in the spool.

        :raises OSError: it cannot be read.
        """

    def close(self) -> None:
        """Stop, and let go of everything."""
