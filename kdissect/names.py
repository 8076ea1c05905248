"""The names of topic ids, each with the packet that contained it: a name is valid from that packet on.

Requests and responses of newer versions have topic ids instead of names. The names are in other messages,
often on another connection.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Protocol

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""Kafka's Uuid.METADATA_TOPIC_ID, whose name is always known."""


def is_metadata_topic(word: object, other: object = None) -> bool:
    """Whether one of the arguments (the name or the id of a topic, or None) is that of
    ``__cluster_metadata``."""
    return word in (METADATA_TOPIC, METADATA_TOPIC_ID) or other in (METADATA_TOPIC, METADATA_TOPIC_ID)


class Names(Protocol):
    """The names that an exchange needs for its topics."""

    def get(self, topic_id: str, /) -> str | None:
        """The topic's name; None if no packet had it in time."""


NameEntry = tuple[str, str, int]
"""A topic id, its name, and the packet that contained it."""


class TopicNames:
    """All names learned so far, and when. The names for an exchange are fixed when it is complete, even if
    they are looked up later."""

    def __init__(self) -> None:
        self._told: dict[str, list[tuple[int, int, str]]] = {METADATA_TOPIC_ID: [(-1, 0, METADATA_TOPIC)]}
        """The entries of each id: the place in ``order``, the packet, the name. An entry is added only if its
        packet is earlier than those of the entries before."""
        self.order: list[NameEntry] = []
        """The same entries in the order in which they were learned."""

    def __len__(self) -> int:
        return len(self._told)

    def __contains__(self, topic_id: str) -> bool:
        return topic_id in self._told

    def learn(self, topic_id: str, name: str, packet: int) -> None:
        """Learn a name from ``packet``; the name from the earliest packet is used."""
        known = self._told.get(topic_id)
        if known is None:
            self._told[topic_id] = [(len(self.order), packet, name)]
        elif packet < known[-1][1]:  # rare: most names come again in later packets
            known.append((len(self.order), packet, name))
        else:
            return
        self.order.append((topic_id, name, packet))

    def learn_all(self, taught: Iterable[NameEntry], most: int) -> int:
        """Learn several names. Return how many were left out, because there would be more than ``most``
        ids."""
        left_out = 0
        for topic_id, name, packet in taught:
            if topic_id in self._told or len(self._told) < most:
                self.learn(topic_id, name, packet)
            else:
                left_out += 1
        return left_out

    def up_to(self, packet: int, count: int = -1) -> KnownNames:
        """The names from packets up to ``packet``.

        :param count: how many entries of ``order`` are used; -1: all that exist now.
        """
        known = KnownNames.__new__(KnownNames)
        known._names, known.packet = self, packet
        known.count = len(self.order) if count < 0 else count
        return known

    def entries(self, start: int = 0) -> list[NameEntry]:
        """Id, name and packet of all named ids from ``start`` on, in the order in which they were learned."""
        return [(each, told[-1][2], told[-1][1]) for each, told in islice(self._told.items(), start, None)]

    def find(self, topic_id: str, packet: int, count: int) -> str | None:
        """The name from a packet up to ``packet``, in the first ``count`` entries of ``order``."""
        tellings = self._told.get(topic_id)
        at = 0 if tellings is None else len(tellings)
        while at > 0:
            at -= 1
            place, told, name = tellings[at]  # type: ignore[index]  # there are some
            if place < count:  # the earliest packet is used: its entry is the last one
                return name if told <= packet else None
        return None


class KnownNames:
    """The names that are valid for one exchange."""

    __slots__ = ("_names", "count", "packet")

    def __init__(self, names: TopicNames, packet: int, count: int) -> None:
        self._names = names
        self.packet = packet
        """The last packet whose names are used."""
        self.count = count
        """How many entries of ``order`` are used."""

    def get(self, topic_id: str, /) -> str | None:
        return self._names.find(topic_id, self.packet, self.count)


NO_NAMES = TopicNames().up_to(0)
