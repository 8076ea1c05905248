"""When a name became another topic's: one was deleted and made again, and its offsets begin anew.

Another id under the same name is another topic (KIP-516). Where brokers tell no ids, a topic begins when
somebody deletes or makes it.
"""

from __future__ import annotations

from kdissect.analysis.cluster_told import topics_told
from kdissect.analysis.fold import SECOND
from kdissect.analysis.labels import Labels
from kdissect.exchange import Exchange
from kdissect.limits import Limits

TELLING = ("Metadata", "CreateTopics", "DeleteTopics", "UpdateMetadata")
STALE_NS = 5 * SECOND
"""So long a broker may name a topic that others know to be gone. Ids that are told in turn for longer are
topics of two clusters."""


class TopicLives:
    """What exchanges tell of the topics that have a name."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.rows
        self._ids: dict[str, dict[str, tuple[int, int]]] = {}
        """By name and id: when it was told first, and last."""
        self._without_ids: dict[str, list[int]] = {}
        """By name: when one was deleted or made, and no id was told."""
        self.left_out = 0

    def take(self, exchange: Exchange, labels: Labels) -> list[str]:
        """Note what one of :data:`TELLING` tells; the names that may be another topic's from now on."""
        anew: list[str] = []
        ns = exchange.told_ns
        for statement in topics_told(exchange, labels):
            name, values = statement.subject[0].name, dict(statement.fields)  # type: ignore[attr-defined]
            topic_id = values.get("topic_id")
            if not name or not (self._knows(name) or len(self._ids) + len(self._without_ids) < self._most):
                self.left_out += bool(name)
            elif topic_id is not None:
                ids = self._ids.setdefault(name, {})
                if topic_id in ids or len(ids) < self._most:
                    if topic_id not in ids:
                        anew.append(name)
                    first, last = ids.get(topic_id, (ns, ns))
                    ids[topic_id] = min(first, ns), max(last, ns)
            elif values.get("is_deleted") or values.get("is_made"):
                times = self._without_ids.setdefault(name, [])
                if len(times) < self._most:
                    times.append(ns)
                    anew.append(name)
        return anew

    def _knows(self, name: str) -> bool:
        return name in self._ids or name in self._without_ids

    def merge(self, later: TopicLives) -> list[str]:
        """Add what was told later; the names that may be another topic's since then."""
        anew = list(later._without_ids)
        for name, ids in later._ids.items():
            mine = self._ids.setdefault(name, {})
            if ids.keys() - mine.keys():
                anew.append(name)
            for topic_id, (first, last) in ids.items():
                begun, ended = mine.get(topic_id, (first, last))
                mine[topic_id] = min(begun, first), max(ended, last)
        for name, times in later._without_ids.items():
            self._without_ids[name] = [*self._without_ids.get(name, ()), *times][: self._most]
        self.left_out += later.left_out
        return anew

    def begun(self, name: str) -> list[int]:
        """The times from which on the name is another topic's, ascending."""
        ids = sorted(self._ids.get(name, {}).values())
        if not ids:
            return sorted(self._without_ids.get(name, ()))
        return [
            first
            for at, (first, _) in enumerate(ids)
            if at and all(last <= first + STALE_NS for _, last in ids[:at])
        ]
