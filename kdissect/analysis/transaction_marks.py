"""Marks: the facts about transactions in each exchange, for :mod:`kdissect.analysis.transaction`."""

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
    """A batch in a Produce request of a transaction."""

    place: Place
    sequence: int
    records: int
    size: int
    offset: int | None
    """The broker's offset for its first record."""
    error: str | None


class Mark(NamedTuple):
    """The facts about a transactional id in an exchange."""

    ns: int
    """When the exchange began."""
    number: int
    kind: str
    done_ns: int | None
    """When its answer was complete."""
    counts: bool
    """Whether the filter selects it."""
    client_id: str | None
    client: str | None
    """None for a request of a broker."""
    connection: int
    coordinator: str | None
    producer_id: int | None
    epoch: int | None
    error: str | None
    """The first error of the answer, by name."""
    missing: str | None
    """The reason for a missing answer."""
    api_version: int
    version: str | None
    """The version of the transaction protocol, if known from this: TV1, TV2."""
    parts: tuple[Place, ...] = ()
    """The partitions that this adds to the transaction."""
    written: tuple[Written, ...] = ()
    group: str | None = None
    offsets: tuple[Place, ...] = ()
    """Partitions whose offsets are committed."""
    committed: bool | None = None
    timeout_ms: int | None = None
    state: str | None = None
    """The state in the coordinator's answer."""
    start_ns: int | None = None
    """When the transaction began, from the coordinator's answer."""
    is_new: bool = False
    """Whether an InitProducerId comes from a producer that begins, which has no id yet."""

    @property
    def is_accepted(self) -> bool:
        """Whether a response shows that the broker did at least part of the request."""
        if self.done_ns is None:
            return False
        return self.error is None or any(each.error is None for each in self.written)


class Marker(NamedTuple):
    """The end of a transaction in a partition, or in an order of the coordinator."""

    ns: int
    number: int
    epoch: int
    committed: bool
    place: Place | None
    offset: int | None
    """The offset of the control record; None for a WriteTxnMarkers."""


class ReadableTo(NamedTuple):
    """The offset up to which a partition could be read, from an answer."""

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
    """An answer to a request that was not captured, so that its API is unknown. If its bytes read as an
    answer to EndTxn of version 2 of the protocol, it has the producer in them."""

    ns: int
    number: int
    payload: bytes | None
    """None if it is long: then it may be an answer to any request."""
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
