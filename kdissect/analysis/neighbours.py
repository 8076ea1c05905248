"""The exchanges around one exchange: those in flight, those that led to it or followed, and errors at the
same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from kdissect.analysis.fold import MILLISECOND
from kdissect.exchange import Exchange

MOST_BEFORE = MOST_AFTER = 4
MOST_IN_FLIGHT = 8
MOST_ERRORS = 8
MARGIN_NS = 500 * MILLISECOND
"""Errors up to this long before or after the exchange are listed."""

Key = tuple[str, object]


def keys_of(exchange: Exchange) -> Iterator[Key]:
    """The keys that an exchange shares with others of the same course of events."""
    for name in exchange.transactional_ids:
        yield "transactional id", name
    if exchange.request is None:
        return
    body = exchange.request.body()
    groups = exchange.groups
    if groups:
        members = list(_members_of(exchange)) or [exchange.client]
        for group in groups:
            for member in members:
                yield "member of", (group, member)
    producer = body.get("producerId", -1)
    if isinstance(producer, int) and producer >= 0:
        yield "producer", producer


def _members_of(exchange: Exchange) -> Iterator[str]:
    """The ids of the members that an exchange is about. The first JoinGroup of a member has no id: the answer
    gives it (KIP-394). LeaveGroup (KIP-345) and OffsetFetch (KIP-848) have their members in a list."""
    for message in (exchange.request, exchange.response):
        body = {} if message is None else message.body()
        if body.get("memberId"):
            yield body["memberId"]
            return
    body = {} if exchange.request is None else exchange.request.body()
    for each in (*(body.get("members") or ()), *(body.get("groups") or ())):
        if isinstance(each, dict) and each.get("memberId"):
            yield each["memberId"]


class Beside:
    """Takes in the whole capture of an exchange, after the exchange is known.

    :param subject: the exchange.
    """

    def __init__(self, subject: Exchange) -> None:
        self.before: deque[Exchange] = deque(maxlen=MOST_BEFORE)
        """The exchanges that led to it: of the same transaction, producer or member; otherwise of its
        connection."""
        self.after: list[Exchange] = []
        self.in_flight: list[Exchange] = []
        """The exchanges of its connection that were in flight at the same time."""
        self.in_flight_left_out = 0
        self.errors: list[Exchange] = []
        """The exchanges of the same broker that failed at about the same time."""
        self._number = subject.number
        self._connection = subject.connection
        self._broker = subject.broker
        self._begun_ns, self._told_ns = subject.begun_ns, subject.ended_ns
        self._keys = frozenset(keys_of(subject))

    def feed(self, exchange: Exchange) -> None:
        """Take in the next exchange."""
        if exchange.number == self._number:
            return
        begun, told = exchange.begun_ns, exchange.ended_ns
        if exchange.connection == self._connection and begun < self._told_ns and told > self._begun_ns:
            if len(self.in_flight) < MOST_IN_FLIGHT:
                self.in_flight.append(exchange)
            else:
                self.in_flight_left_out += 1
        is_near = told >= self._begun_ns - MARGIN_NS and begun <= self._told_ns + MARGIN_NS
        has_failed = exchange.broker == self._broker and exchange.error_class in ("fatal", "retriable")
        if is_near and has_failed and len(self.errors) < MOST_ERRORS:
            self.errors.append(exchange)
        if self._belongs(exchange):
            if exchange.number < self._number:
                self.before.append(exchange)
            elif len(self.after) < MOST_AFTER:
                self.after.append(exchange)

    def _belongs(self, exchange: Exchange) -> bool:
        if not self._keys:
            return exchange.connection == self._connection
        return not self._keys.isdisjoint(keys_of(exchange))
