"""Names of topic ids, and the packet that told each: a name counts from then on.

Topic ids stand in requests and responses of newer versions instead of names; their names are told
elsewhere, often on another connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Protocol

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""Kafka's Uuid.METADATA_TOPIC_ID, which needs no telling."""


def is_metadata_topic(word: object, other: object = None) -> bool:
    """Whether one of these, the name or the id of a topic or None, is that of ``__cluster_metadata``."""
    return word in (METADATA_TOPIC, METADATA_TOPIC_ID) or other in (METADATA_TOPIC, METADATA_TOPIC_ID)


class Names(Protocol):
    """What an exchange needs to name its topics."""

    def get(self, topic_id: str, /) -> str | None:
        """The topic's name; None where nothing told it in time."""


Told = tuple[str, str, int]
"""A topic id, its name, and the packet that told it."""


class TopicNames:
    """Everything that was told so far, and when. What counts for an exchange is settled when it is complete,
    even if its names are looked up late.
    """

    def __init__(self) -> None:
        self._told: dict[str, list[tuple[int, int, str]]] = {METADATA_TOPIC_ID: [(-1, 0, METADATA_TOPIC)]}
        """Of each id, each time that an earlier packet told it: the place in ``order``, packet, name."""
        self.order: list[Told] = []
        """The same in the order in which it was learned."""

    def __len__(self) -> int:
        return len(self._told)

    def __contains__(self, topic_id: str) -> bool:
        return topic_id in self._told

    def learn(self, topic_id: str, name: str, packet: int) -> None:
        """``packet`` told the name; of several, the earliest counts."""
        known = self._told.get(topic_id)
        if known is None:
            self._told[topic_id] = [(len(self.order), packet, name)]
        elif packet < known[-1][1]:  # hardly ever: it is told again and again
            known.append((len(self.order), packet, name))
        else:
            return
        self.order.append((topic_id, name, packet))

    def learn_all(self, taught: Iterable[Told], most: int) -> int:
        """Learn several. Gives how many were left out, because that would make more than ``most`` ids."""
        left_out = 0
        for topic_id, name, packet in taught:
            if topic_id in self._told or len(self._told) < most:
                self.learn(topic_id, name, packet)
            else:
                left_out += 1
        return left_out

    def up_to(self, packet: int, count: int = -1) -> KnownNames:
        """The names that packets up to ``packet`` told.

        :param count: of the tellings in ``order``, how many count; -1: all that are there now.
        """
        known = KnownNames.__new__(KnownNames)
        known._names, known.packet = self, packet
        known.count = len(self.order) if count < 0 else count
        return known

    def told(self, start: int = 0) -> list[Told]:
        """Id, name and packet of all ids that were named, in the order in which they were, from one on."""
        return [(each, told[-1][2], told[-1][1]) for each, told in islice(self._told.items(), start, None)]

    def find(self, topic_id: str, packet: int, count: int) -> str | None:
        """The name, as of the first ``count`` tellings, if a packet up to ``packet`` told it."""
        tellings = self._told.get(topic_id)
        at = 0 if tellings is None else len(tellings)
        while at > 0:
            at -= 1
            place, told, name = tellings[at]  # type: ignore[index]  # there are some
            if place < count:  # of several, the earliest packet counts: it was learned last
                return name if told <= packet else None
        return None


class KnownNames:
    """The names that count for one exchange."""

    __slots__ = ("_names", "count", "packet")

    def __init__(self, names: TopicNames, packet: int, count: int) -> None:
        self._names = names
        self.packet = packet
        """The last that counts."""
        self.count = count
        """How many tellings count."""

    def get(self, topic_id: str, /) -> str | None:
        return self._names.find(topic_id, self.packet, self.count)


NO_NAMES = TopicNames().up_to(0)
