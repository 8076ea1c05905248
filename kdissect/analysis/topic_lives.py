"""The times when a name became another topic's: the old one was deleted, and the new one's offsets begin
again.

Another id under the same name is another topic (KIP-516). If brokers give no ids, a topic begins when
somebody deletes or makes it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

from kdissect.analysis.cluster_statements import topic_statements_of
from kdissect.analysis.fold import SECOND
from kdissect.analysis.labels import Labels
from kdissect.analysis.room import Room
from kdissect.exchange import Exchange
from kdissect.protocol.apis import api_key

K = TypeVar("K", bound=Hashable)

METADATA = api_key("Metadata")
TOPIC_ID_APIS = ("Metadata", "CreateTopics", "DeleteTopics", "UpdateMetadata")
STALE_NS = 5 * SECOND
"""How long a broker may name a topic that others know to be gone. If two ids alternate for longer, they are
topics of two clusters. Without ids, all reports within this time are one beginning: the controller reports to
every broker, and a client that makes a topic again deletes it before."""
SPAN_BYTES = 500
"""The approximate size of an id or a time, with its part of the data kept by name."""

_Span = tuple[int, int]


class TopicLives:
    """The known topics of each name: at most ``limits.rows`` ids and times in all, if there is room. The
    first are kept, further ones are only counted."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._ids: dict[str, dict[str, _Span]] = {}
        """For each name and id, the times of its first and last mention."""
        self._without_ids: dict[str, dict[int, _Span]] = {}
        """For each name and span of STALE_NS, the first and the last report, without an id, that the topic
        was deleted or made. With fixed spans, parts of a capture merge without seams."""
        self._count = 0
        self.left_out = 0
        """The number of ids and times that were not kept."""

    def take(self, exchange: Exchange, labels: Labels) -> list[str]:
        """Take in an exchange of :data:`TOPIC_ID_APIS`. Return the names that may be another topic's from now
        on. A name with its first id is among them, because an earlier part of the capture may have another
        id."""
        anew: list[str] = []
        ns = exchange.ended_ns
        taught = _taught(exchange)
        if taught is not None:
            return [name for topic_id, name in taught if self._note(self._ids, name, topic_id, (ns, ns))]
        for statement in topic_statements_of(exchange, labels):
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
        """Keep a mention of a name. Return whether it is the first of its key."""
        spans = kept.get(name, {})
        if key in spans:
            first, last = spans[key]
            spans[key] = min(first, span[0]), max(last, span[1])
            return False
        if self._room.refuses(self._count >= self._room.limits.rows) or not self._room.takes(SPAN_BYTES):
            self.left_out += 1
            return False
        self._count += 1
        kept.setdefault(name, spans)[key] = span
        return True

    def merge(self, later: TopicLives) -> list[str]:
        """Add a later part. Return the names that may have become another topic's."""
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
        """The times at which the name became another topic's, ascending."""
        ids = self._ids.get(name)
        return _begun_without_ids(self._without_ids.get(name, {})) if ids is None else _begun(ids)


def _taught(exchange: Exchange) -> Sequence[tuple[str, str]] | None:
    """The ids and names in an answer to Metadata, from its survey: such answers come often, and are long.
    None if its body must be decoded."""
    response = exchange.response
    if exchange.api_key != METADATA or response is None:
        return None
    seen = response.survey()
    return None if seen is None else seen.taught or ()


def _begun(ids: dict[str, _Span]) -> list[int]:
    """The first mentions of ids that came after the last mention of all earlier ids."""
    begun: list[int] = []
    until: int | None = None
    for first, last in sorted(ids.values()):
        if until is not None and until <= first + STALE_NS:
            begun.append(first)
        until = last if until is None else max(until, last)
    return begun


def _begun_without_ids(times: dict[int, _Span]) -> list[int]:
    """The last report of each beginning. Until then, messages may still be about the former topic, because it
    is deleted before the new one is made."""
    begun: list[int] = []
    since: int | None = None
    for first, last in sorted(times.values()):
        if since is None or first > since + STALE_NS:
            since = first
            begun.append(last)
        else:
            begun[-1] = last
    return begun
