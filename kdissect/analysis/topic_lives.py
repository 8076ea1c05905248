"""When a name became another topic's: one was deleted and made again, and its offsets begin anew.

Another id under the same name is another topic (KIP-516). Where brokers tell no ids, a topic begins when
somebody deletes or makes it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from kdissect.analysis.cluster_told import topics_told
from kdissect.analysis.fold import SECOND
from kdissect.analysis.labels import Labels
from kdissect.analysis.room import Room
from kdissect.exchange import Exchange
from kdissect.protocol.apis import api_key

K = TypeVar("K", bound=Hashable)

METADATA = api_key("Metadata")
TELLING = ("Metadata", "CreateTopics", "DeleteTopics", "UpdateMetadata")
STALE_NS = 5 * SECOND
"""So long a broker may name a topic that others know to be gone. Ids that are told in turn for longer are
topics of two clusters. Without ids, what is told within that time is one beginning: the controller tells
every broker, and who makes a topic again deletes it before."""
SPAN_BYTES = 500
"""About what an id takes, or a time, with its part of what is kept by name."""

_Span = tuple[int, int]


class TopicLives:
    """What exchanges tell of the topics that have a name: no more than ``limits.rows`` ids and times in all,
    and what there is room for. The first are kept, further ones are only counted."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._ids: dict[str, dict[str, _Span]] = {}
        """By name and id: when it was told first, and last."""
        self._without_ids: dict[str, dict[int, _Span]] = {}
        """By name and part of the time, each as long as STALE_NS: when one was told to be deleted or made
        first, and last, and no id was told. Parts of a capture then merge without seams."""
        self._count = 0
        self.left_out = 0
        """How often an id or a time was not kept."""

    def take(self, exchange: Exchange, labels: Labels) -> list[str]:
        """Note what one of :data:`TELLING` tells; the names that may be another topic's from now on. One
        whose first id is told may be, as an earlier part of the capture may tell another."""
        anew: list[str] = []
        ns = exchange.told_ns
        taught = _taught(exchange)
        if taught is not None:
            return [name for topic_id, name in taught if self._note(self._ids, name, topic_id, (ns, ns))]
        for statement in topics_told(exchange, labels):
            name, values = statement.subject[0].name, dict(statement.fields)  # type: ignore[attr-defined]
            topic_id = values.get("topic_id")
            if not name:
                continue
            if topic_id is not None:
                if self._note(self._ids, name, topic_id, (ns, ns)):
                    anew.append(name)
            elif values.get("is_deleted") or values.get("is_made"):
                self._note(self._without_ids, name, ns // STALE_NS, (ns, ns))
                anew.append(name)
        return anew

    def _note(self, kept: dict[str, dict[K, _Span]], name: str, key: K, span: _Span) -> bool:
        """Keep when something was told of a name; whether it is the first of its key."""
        spans = kept.get(name, {})
        if key in spans:
            first, last = spans[key]
            spans[key] = min(first, span[0]), max(last, span[1])
            return False
        if self._count >= self._room.limits.rows or not self._room.takes(SPAN_BYTES):
            self.left_out += 1
            return False
        self._count += 1
        kept.setdefault(name, spans)[key] = span
        return True

    def merge(self, later: TopicLives) -> list[str]:
        """Add what was told later; the names that may be another topic's since then."""
        self.left_out += later.left_out
        anew: list[str] = []
        for name, ids in later._ids.items():
            is_known = name in self._ids
            added = [self._note(self._ids, name, topic_id, span) for topic_id, span in ids.items()]
            if any(added) and (is_known or len(ids) > 1):
                anew.append(name)
        for name, times in later._without_ids.items():
            for part, span in times.items():
                self._note(self._without_ids, name, part, span)
            anew.append(name)
        return anew

    def begun(self, name: str) -> list[int]:
        """The times from which on the name is another topic's, ascending."""
        ids = self._ids.get(name)
        return _begun_without_ids(self._without_ids.get(name, {})) if ids is None else _begun(ids)


def _taught(exchange: Exchange) -> Sequence[tuple[str, str]] | None:
    """The ids and names that an answer to Metadata tells, by its survey: such answers come often, and are
    long. None where its body has to be decoded."""
    response = exchange.response
    if exchange.api_key != METADATA or response is None:
        return None
    seen = response.survey()
    return None if seen is None else seen.taught or ()


def _begun(ids: dict[str, _Span]) -> list[int]:
    """When an id was told first after the last time of all before it."""
    begun: list[int] = []
    until: int | None = None
    for first, last in sorted(ids.values()):
        if until is not None and until <= first + STALE_NS:
            begun.append(first)
        until = last if until is None else max(until, last)
    return begun


def _begun_without_ids(times: dict[int, _Span]) -> list[int]:
    """The last of the times that are told of one beginning. Until then somebody may tell of the former topic,
    as it is deleted before it is made."""
    begun: list[int] = []
    since: int | None = None
    for first, last in sorted(times.values()):
        if since is None or first > since + STALE_NS:
            since = first
            begun.append(last)
        else:
            begun[-1] = last
    return begun
