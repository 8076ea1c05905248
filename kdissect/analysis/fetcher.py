"""The partitions that one connection fetches, by its requests (:mod:`kdissect.analysis.positions`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kdissect.analysis.fold import most
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.packed import packed
from kdissect.analysis.position import Position
from kdissect.protocol.schema import ZERO_UUID

NEW_SESSION, NO_SESSION = 0, -1
"""Session epochs of requests that name all fetched partitions (``FetchMetadata``)."""

Place = tuple[Topic, int]
"""A partition, with the topic as the wire names it."""


@packed
@dataclass(slots=True)
class Fetcher:
    """The fetches of one connection."""

    client: str = ""
    broker: str = ""
    client_id: str | None = None
    replica_id: int = -1
    last_ns: int | None = None
    """The time of its last request."""
    session_id: int | None = None
    steps: int = 0
    sessions: int = 0
    """Steps that began a session."""
    began_anew: int | None = None
    """The first step that named all partitions."""
    asked: dict[Place, Position] = field(default_factory=dict)
    """The partitions that it now asks for."""

    def merge(self, later: Fetcher) -> None:
        """Take over the identity of the later part. :meth:`Positions.merge` merges the partitions."""
        self.client, self.broker = later.client, later.broker
        self.client_id = later.client_id if later.client_id is not None else self.client_id
        self.replica_id = later.replica_id if later.steps else self.replica_id
        self.session_id = later.session_id if later.session_id is not None else self.session_id
        self.last_ns = most(self.last_ns, later.last_ns)
        if later.began_anew is not None and self.began_anew is None:
            self.began_anew = self.steps + later.began_anew
        self.steps += later.steps
        self.sessions += later.sessions


def partitions_in(
    labels: Labels, topics: Iterable[dict[str, Any]] | None
) -> list[tuple[Topic, dict[str, Any]]]:
    """The partitions of the topics that a request or an answer names, each with its topic."""
    found = []
    for each in topics or ():
        topic = _topic(labels, each)
        found += [(topic, partition) for partition in each.get("partitions") or ()]
    return found


def forgotten(labels: Labels, body: dict[str, Any]) -> Iterator[Place]:
    """The partitions that a request removes from its session."""
    for each in body.get("forgottenTopicsData") or ():
        topic = _topic(labels, each)
        for number in each.get("partitions") or ():
            yield topic, number


def _topic(labels: Labels, values: dict[str, Any]) -> Topic:
    topic_id = values.get("topicId", ZERO_UUID)
    return labels.topic(values.get("topic"), topic_id if topic_id != ZERO_UUID else None)
