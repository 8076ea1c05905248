"""One direction of a TLS connection: its records, their protection, and the next sequence number.

A record has neither its sequence number nor its key. Both are known as long as no record is lost. After a
loss they are searched for, within bounds. A record counts as found only if it is authentic:

1. under the current key, with the sequence numbers that the lost bytes have room for;
2. under the keys that come after it in the handshake, and the key after a KeyUpdate, from sequence number 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from kdissect.tls.ciphers import Opened, Opener, Opener13
from kdissect.tls.handshake import Messages
from kdissect.tls.negotiation import CLEAR
from kdissect.tls.records import HEADER_BYTES, Loss, RecordReader, TlsRecord

SHORTEST_RECORD = HEADER_BYTES + 17
"""The fewest bytes of a protected record: they limit how many records a loss can contain."""

MOST_LOST = 65_536
"""The most records that are assumed to be lost."""

SEARCH_EFFORT = 64 << 20
"""The most bytes that all searches of a direction may decrypt."""
TRY_COST = 256
"""The effort of an attempt besides the record's bytes."""

MOST_FAILURES = 32
"""After this many records in a row that cannot be opened, the direction is given up."""


class Flow:
    """The state of one direction."""

    __slots__ = (
        *("_effort", "failures", "is_dead", "messages", "offset", "opened", "opener"),
        *("reader", "seq", "slack", "stage", "unsaid"),
    )

    def __init__(self) -> None:
        self.reader = RecordReader()
        self.messages = Messages()
        self.stage = CLEAR
        self.opener: Opener | None = None
        """Opens its records; None while they are in the clear or the secret is unknown."""
        self.seq = 0
        """The sequence number of the next record, if no record was lost."""
        self.slack = 0
        """How many records may have been lost before it."""
        self.opened = 0
        """The number of records that were opened."""
        self.failures = 0
        """The number of records in a row that could not be opened."""
        self.is_dead = False
        """Whether the direction is given up."""
        self.offset = 0
        """The number of bytes that came out."""
        self.unsaid: Loss | None = None
        """A loss that may have contained data. It is reported only if data follows."""
        self._effort = SEARCH_EFFORT

    def enter(self, stage: str) -> None:
        """Use the keys of another stage from the next record on."""
        self.stage = stage
        self.opener = None
        self.seq = self.slack = 0

    def update(self) -> None:
        """Use the next generation of keys, after a KeyUpdate."""
        if isinstance(self.opener, Opener13):
            self.opener = self.opener.updated()
            self.seq = self.slack = 0

    def lost(self, loss: Loss) -> None:
        """Note that records are missing."""
        if loss.type is None:
            self.slack = min(MOST_LOST, self.slack + loss.length // SHORTEST_RECORD + 1)
        elif self.opener is not None:
            self.seq += 1
        else:
            self.slack = min(MOST_LOST, self.slack + 1)

    def open(self, record: TlsRecord) -> Opened | None:
        """The content of a record, under the expected key and sequence number; None if that fails."""
        return self.open_fragment(record.header, record.fragment)

    def open_fragment(self, header: bytes, fragment: bytes) -> Opened | None:
        """As :meth:`open`, for the parts of a record."""
        if self.opener is None or self.is_dead:
            return None
        opened = self.opener.open(header, fragment, self.seq)
        if opened is not None:
            self.seq += 1
            self.opened += 1
            if self.slack or self.failures:
                self.slack = self.failures = 0
        return opened

    def search(self, record: TlsRecord, later: Iterable[tuple[str, Opener]]) -> Opened | None:
        """The content of a record, under other possible keys and sequence numbers. ``later`` are stages that
        may have begun in a loss."""
        candidates = [(stage, opener, range(self.slack + 1)) for stage, opener in later]
        if self.opener is not None:
            candidates.insert(0, (self.stage, self.opener, range(self.seq + 1, self.seq + 1 + self.slack)))
        for stage, opener, numbers in candidates:
            for seq in numbers:
                if self._effort <= 0:
                    return None
                self._effort -= len(record.fragment) + TRY_COST
                opened = opener.open(record.header, record.fragment, seq)
                if opened is not None:
                    self.stage, self.opener, self.seq = stage, opener, seq + 1
                    self.opened += 1
                    self.slack = self.failures = 0
                    return opened
        return None

    @property
    def has_failed(self) -> bool:
        """Whether the direction was given up, or no record of it could be opened."""
        return self.is_dead or (self.failures > 0 and not self.opened)

    def fail(self) -> None:
        """Note that a record could not be opened. It counts in the sequence all the same."""
        self.seq += 1
        self.failures += 1
        self.is_dead = self.failures >= MOST_FAILURES
