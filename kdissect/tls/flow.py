"""One direction of a TLS connection: its records, what protects them, and where in the sequence it is.

A record says neither its sequence number nor its key. Both are known as long as nothing is lost. After a loss
they are searched for, within bounds. A record counts as found only when it is authentic:

1. the key at hand, with the sequence numbers that the lost bytes have room for;
2. the keys that come after it in the handshake, and the one after a KeyUpdate, from their sequence number 0.
"""

from __future__ import annotations

from collections.abc import Iterable

from kdissect.tls.ciphers import Opened, Opener, Opener13
from kdissect.tls.handshake import Messages
from kdissect.tls.negotiation import CLEAR
from kdissect.tls.records import HEADER_BYTES, Loss, RecordReader, TlsRecord

SHORTEST_RECORD = HEADER_BYTES + 17
"""Of a protected one: what a loss has room for goes by it."""

MOST_LOST = 65_536
"""So many records are taken to be lost at most."""

SEARCH_EFFORT = 64 << 20
"""Bytes that a direction's searches may decrypt in all."""
TRY_COST = 256
"""What a try costs beside the record's bytes."""

MOST_FAILURES = 32
"""Records in a row that cannot be opened, before the direction is given up."""


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
        """What opens its records; None while it is in the clear or the secret is not known."""
        self.seq = 0
        """Sequence number of the next record, if none was lost."""
        self.slack = 0
        """How many more may have been lost."""
        self.opened = 0
        """Records that were opened."""
        self.failures = 0
        """Records in a row that were not."""
        self.is_dead = False
        """It is given up."""
        self.offset = 0
        """Bytes that came out."""
        self.unsaid: Loss | None = None
        """What was lost and may have held data, before it is known that there is data."""
        self._effort = SEARCH_EFFORT

    def enter(self, stage: str) -> None:
        """From the next record on, other keys count."""
        self.stage = stage
        self.opener = None
        self.seq = self.slack = 0

    def update(self) -> None:
        """A KeyUpdate was sent: the next generation of keys."""
        if isinstance(self.opener, Opener13):
            self.opener = self.opener.updated()
            self.seq = self.slack = 0

    def lost(self, loss: Loss) -> None:
        """Records are missing."""
        if loss.type is None:
            self.slack = min(MOST_LOST, self.slack + loss.length // SHORTEST_RECORD + 1)
        elif self.opener is not None:
            self.seq += 1
        else:
            self.slack = min(MOST_LOST, self.slack + 1)

    def open(self, record: TlsRecord) -> Opened | None:
        """What a record protects, under the key and the number that are expected."""
        if self.opener is None or self.is_dead:
            return None
        opened = self.opener.open(record.header, record.fragment, self.seq)
        if opened is not None:
            self.seq += 1
            self.opened += 1
            if self.slack or self.failures:
                self.slack = self.failures = 0
        return opened

    def search(self, record: TlsRecord, later: Iterable[tuple[str, Opener]]) -> Opened | None:
        """The same under what else may count; ``later`` are stages that may have begun unseen."""
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
        """Whether it was given up, or nothing of it could be opened."""
        return self.is_dead or (self.failures > 0 and not self.opened)

    def fail(self) -> None:
        """A record could not be opened. It counts in the sequence all the same."""
        self.seq += 1
        self.failures += 1
        self.is_dead = self.failures >= MOST_FAILURES
