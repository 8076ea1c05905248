"""Marks: what exchanges say of transactions, for :mod:`kdissect.analysis.transaction`."""

from __future__ import annotations

from typing import NamedTuple

from kdissect.analysis.labels import Topic
from kdissect.message import parse_response
from kdissect.model import DecodeError, Direction, Frame
from kdissect.protocol.apis import api_key

Place = tuple[Topic, int]
"""A partition."""

NO_PRODUCER = -1
INIT, ADD, PRODUCE, OFFSETS, END, TOLD = "init", "add", "produce", "offsets", "end", "told"


class Written(NamedTuple):
    """A batch that a Produce request of a transaction holds."""

    place: Place
    sequence: int
    records: int
    size: int
    offset: int | None
    """That the broker gave its first record."""
    error: str | None


class Mark(NamedTuple):
    """What an exchange says of a transactional id."""

    ns: int
    """When it began."""
    number: int
    kind: str
    done_ns: int | None
    """When its answer was complete."""
    counts: bool
    """Whether the filter chooses it."""
    client_id: str | None
    client: str | None
    """None where a broker asked."""
    connection: int
    coordinator: str | None
    producer_id: int | None
    epoch: int | None
    error: str | None
    """The first error of the answer, by name."""
    missing: str | None
    """Why the answer is not there."""
    api_version: int
    version: str | None
    """Of the protocol of transactions, where this tells it: TV1, TV2."""
    parts: tuple[Place, ...] = ()
    """Partitions that take part, by this."""
    written: tuple[Written, ...] = ()
    group: str | None = None
    offsets: tuple[Place, ...] = ()
    """Partitions whose offsets are committed."""
    committed: bool | None = None
    timeout_ms: int | None = None
    state: str | None = None
    """The state that the coordinator tells."""
    start_ns: int | None = None
    """When the transaction began, by the coordinator."""
    is_new: bool = False
    """Whether an InitProducerId comes from a producer that begins, which has no id yet."""

    @property
    def is_accepted(self) -> bool:
        """Whether a response shows that the broker did something of what was asked."""
        if self.done_ns is None:
            return False
        return self.error is None or any(each.error is None for each in self.written)


class Marker(NamedTuple):
    """The end of a transaction as a partition has it, or as the coordinator orders it."""

    ns: int
    number: int
    epoch: int
    committed: bool
    place: Place | None
    offset: int | None
    """Of the control record; None for a WriteTxnMarkers."""


class ReadableTo(NamedTuple):
    """How far a partition could be read, as an answer told."""

    ns: int
    number: int
    stable: int
    high: int


class Active(NamedTuple):
    """A transaction that is open in a partition, by an answer of DescribeProducers."""

    ns: int
    number: int
    epoch: int | None
    place: Place
    start_offset: int
    last_ms: int
    counts: bool


class Orphan(NamedTuple):
    """An answer to a request that was not captured: nobody knows what was asked. Where its bytes read as the
    answer to EndTxn of version 2 of the protocol, what they say: whoever knows the producer can tell."""

    ns: int
    number: int
    payload: bytes | None
    """None where it is long: it may be anything then."""
    producer_id: int | None = None
    epoch: int | None = None

    def may_answer(self, api: str, version: int) -> bool:
        """Whether its bytes read as an answer to such a request."""
        if self.payload is None:
            return True
        found = Frame(Direction.FROM_BROKER, 0, self.payload, len(self.payload), 0, 0, 0, 0, (0,))
        try:
            return parse_response(found, api_key(api), version).decoded().is_exact
        except DecodeError:
            return False
