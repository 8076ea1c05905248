"""Events of a capture → batches of bytes → the same events in another process.

Names of topic ids cross connections, and a name counts from the packet that told it, but not for what came
to light before it was learned. A batch therefore says of every exchange how many names were learned when
it was complete; the names themselves are told to every process once, in the order in which they were.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Sequence
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

Told = tuple[str, str, int]
"""A topic id, its name, and the packet that told it."""


class Learned(TopicNames):
    """Names that are learned, and the order in which they were."""

    def __init__(self, before: Sequence[Told]) -> None:
        """:param before: what was known when it began."""
        super().__init__()
        self.order: list[Told] = []
        for each in before:
            self.learn(*each)

    def learn(self, topic_id: str, name: str, packet: int) -> None:
        known = self._told.get(topic_id)
        super().learn(topic_id, name, packet)
        if self._told[topic_id] is not known:
            self.order.append((topic_id, name, packet))


class NameHistory:
    """The names that one process has heard of, with the place of each in the order."""

    def __init__(self) -> None:
        self._told: dict[str, list[tuple[int, int, str]]] = {}
        self._count = 0

    def hear(self, told: Told) -> None:
        """The next name."""
        topic_id, name, packet = told
        self._told.setdefault(topic_id, []).append((self._count, packet, name))
        self._count += 1

    def find(self, topic_id: str, known: int, packet: int) -> str | None:
        """The name, as of when so many were learned, if a packet up to ``packet`` told it."""
        for place, told, name in reversed(self._told.get(topic_id, ())):
            if place < known:  # of several, the earliest packet counts: it was learned last
                return name if told <= packet else None
        return None


class NamesThen:
    """The names that count for one exchange."""

    __slots__ = ("_history", "_known", "_packet")

    def __init__(self, history: NameHistory, known: int, packet: int) -> None:
        self._history = history
        self._known = known
        self._packet = packet

    def get(self, topic_id: str, /) -> str | None:
        return self._history.find(topic_id, self._known, self._packet)


class Batch:
    """Gathers events."""

    def __init__(self, most_bytes: int | None = None, most_events: int | None = None) -> None:
        """Without other bounds those of above count."""
        self._most_bytes = BATCH_BYTES if most_bytes is None else most_bytes
        self._most_events = BATCH_EVENTS if most_events is None else most_events
        self._events: list[tuple[Any, ...]] = []
        self._bytes = 0

    def add(self, event: Event, names: Learned) -> None:
        """Add an event, as of the names that are known now."""
        if isinstance(event, Exchange):
            known = event.topic_names
            assert isinstance(known, KnownNames)
            plain = plain_exchange(event)
            self._events.append((_EXCHANGE, plain, len(names.order), known.packet))
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
    batch: bytes, history: NameHistory, limits: Limits = DEFAULTS
) -> tuple[int | None, Iterator[Event]]:
    """The time of the capture's first packet, and the events of a batch. It comes from another process of
    this program, and of the same Python."""
    first_ns, events = marshal.loads(batch)
    return first_ns, _events(events, history, limits)


def _events(plain: list[Any], history: NameHistory, limits: Limits) -> Iterator[Event]:
    for event in plain:
        if event[0] == _EXCHANGE:
            _, exchange, known, packet = event
            yield exchange_of(exchange, NamesThen(history, known, packet), limits)
        elif event[0] == _CONNECTION:
            yield Connection(*event[1])
        else:
            yield Fault(*event[1])
