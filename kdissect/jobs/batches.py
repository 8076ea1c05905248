"""Events of a capture → batches of bytes → the same events in another process.

Names of topic ids cross connections. A name counts from the packet that told it, but not for exchanges that
were complete before. So a batch says how many names were known when each exchange was complete. Every process
is told the names themselves once, in their order.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from typing import Any

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Fault
from kdissect.names import KnownNames, TopicNames
from kdissect.plain import exchange_of, plain_exchange
from kdissect.session.conversation import Connection

BATCH_BYTES = 256 << 10
"""A batch is full when its messages have so many bytes …"""
BATCH_EVENTS = 256
"""… or it has so many events: some ten milliseconds of work, next to which sending it is nothing, and few
enough for rows to come steadily."""

_EXCHANGE, _CONNECTION, _FAULT = 0, 1, 2


class EventBatch:
    """Gathers events."""

    def __init__(self, most_bytes: int | None = None, most_events: int | None = None) -> None:
        """Without other bounds those of above count."""
        self._most_bytes = BATCH_BYTES if most_bytes is None else most_bytes
        self._most_events = BATCH_EVENTS if most_events is None else most_events
        self._events: list[tuple[Any, ...]] = []
        self._bytes = 0

    def add(self, event: Event) -> None:
        """Add an event."""
        if isinstance(event, Exchange):
            known = event.topic_names
            assert isinstance(known, KnownNames)
            plain = plain_exchange(event)
            self._events.append((_EXCHANGE, plain, known.count, known.packet))
            self._bytes += sum(len(message.frame.payload) for message in event.messages)
        elif isinstance(event, Connection):
            self._events.append((_CONNECTION, tuple(event)))
        else:
            self._events.append((_FAULT, tuple(event)))

    def __len__(self) -> int:
        return len(self._events)

    @property
    def is_full(self) -> bool:
        """Whether it is worth sending."""
        return self._bytes >= self._most_bytes or len(self._events) >= self._most_events

    def take(self, first_ns: int | None) -> bytes:
        """What was gathered, for :func:`opened`; it is empty then.

        :param first_ns: time of the capture's first packet, if there was one.
        """
        data = marshal.dumps((first_ns, self._events))
        self._events, self._bytes = [], 0
        return data


def opened(
    batch: bytes, history: TopicNames, limits: Limits = DEFAULTS
) -> tuple[int | None, Iterator[Event]]:
    """The time of the capture's first packet, and the events of a batch. It comes from another process of
    this program, and of the same Python."""
    first_ns, events = marshal.loads(batch)
    return first_ns, _events(events, history, limits)


def _events(plain: list[Any], history: TopicNames, limits: Limits) -> Iterator[Event]:
    for event in plain:
        if event[0] == _EXCHANGE:
            _, exchange, known, packet = event
            yield exchange_of(exchange, history.up_to(packet, known), limits)
        elif event[0] == _CONNECTION:
            yield Connection(*event[1])
        else:
            yield Fault(*event[1])
