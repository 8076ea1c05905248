"""Names of topic ids, and the packet that told each: a name counts from then on.

Topic ids stand in requests and responses of newer versions instead of names; their names are told
elsewhere, often on another connection.
"""

from __future__ import annotations

from itertools import islice
from typing import Protocol

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""Kafka's Uuid.METADATA_TOPIC_ID, which needs no telling."""


def is_metadata_topic(*words: object) -> bool:
    """Whether one of these, names or ids of a topic or None, is that of ``__cluster_metadata``."""
    return METADATA_TOPIC in words or METADATA_TOPIC_ID in words


class Names(Protocol):
    """What an exchange needs to name its topics."""

    def get(self, topic_id: str, /) -> str | None:
        """The topic's name; None where nothing told it in time."""


class TopicNames:
    """Everything that was told so far."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[int, str]] = {METADATA_TOPIC_ID: (0, METADATA_TOPIC)}

    def __len__(self) -> int:
        return len(self._told)

    def __contains__(self, topic_id: str) -> bool:
        return topic_id in self._told

    def learn(self, topic_id: str, name: str, packet: int) -> None:
        """``packet`` told the name; of several, the earliest counts."""
        known = self._told.get(topic_id)
        if known is None or packet < known[0]:
            self._told[topic_id] = (packet, name)

    def up_to(self, packet: int) -> KnownNames:
        """The names that packets up to ``packet`` told."""
        known = KnownNames.__new__(KnownNames)
        known._names, known.packet = self, packet
        return known

    def told(self, start: int = 0) -> list[tuple[str, str, int]]:
        """Id, name and packet of all ids that were named, in the order in which they were, from one on."""
        return [(each, name, packet) for each, (packet, name) in islice(self._told.items(), start, None)]

    def find(self, topic_id: str, packet: int) -> str | None:
        """The name, if a packet up to ``packet`` told it."""
        packet_told, name = self._told.get(topic_id, (packet + 1, ""))
        return name if packet_told <= packet else None


class KnownNames:
    """The names that count for one exchange."""

    __slots__ = ("_names", "packet")

    def __init__(self, names: TopicNames, packet: int) -> None:
        self._names = names
        self.packet = packet
        """The last that counts."""

    def get(self, topic_id: str, /) -> str | None:
        return self._names.find(topic_id, self.packet)


NO_NAMES = TopicNames().up_to(0)
