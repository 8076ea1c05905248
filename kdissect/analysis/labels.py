"""Topics as the wire names them, by name or by id, and the names of the ids.

Rows are kept under the name or id on the wire. The name of an id may be told after the exchanges that use it,
or never. When the rows are asked for, the names known by then count from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from kdissect.analysis.clusters import NameAt
from kdissect.analysis.latest import Latest
from kdissect.analysis.rows import Mergeable, as_one
from kdissect.limits import DEFAULTS, Limits

R = TypeVar("R", bound=Mergeable)
K = TypeVar("K", bound=tuple[Any, ...])


class Topic(NamedTuple):
    """A topic, by its name or its id: exactly one of them is set, or none for no topic."""

    name: str
    topic_id: str


_NAMED: dict[str, Topic] = {}
"""Topics that were named lately. Every table asks for the topics of each exchange, and all share one object
for each. Compiled, a dict answers quicker than ``lru_cache``, which must be called."""
_WITH_ID: dict[str, Topic] = {}
"""The same for ids."""
_MOST_SHARED = 4_096


def _remembered(known: dict[str, Topic], word: str, topic: Topic) -> Topic:
    """Share a topic from now on."""
    if len(known) >= _MOST_SHARED:
        known.clear()
    known[word] = topic
    return topic


class Labels:
    """Names of topic ids.

    :param latest: has the names known so far.
    """

    __slots__ = ("_latest", "_most", "_names", "_unnamed")

    def __init__(self, latest: Latest, limits: Limits = DEFAULTS) -> None:
        self._names: dict[str, str] = {}
        self._unnamed: dict[str, None] = {}
        self._most = limits.rows
        self._latest = latest
        latest.register(self)

    def topic(self, name: str | None, topic_id: str | None) -> Topic:
        """The topic with this name or id from a message."""
        if not topic_id:
            name = name or ""
            found = _NAMED.get(name)
            return _remembered(_NAMED, name, Topic(name, "")) if found is None else found
        if topic_id not in self._names and len(self._unnamed) < self._most:
            self._unnamed[topic_id] = None
        found = _WITH_ID.get(topic_id)
        return _remembered(_WITH_ID, topic_id, Topic("", topic_id)) if found is None else found

    def merge(self, later: Labels) -> None:
        """Add the names of later exchanges."""
        self._latest.merge(later._latest)
        self._names = {**later._names, **self._names}
        both = {**self._unnamed, **later._unnamed}
        self._unnamed = {each: None for each in both if each not in self._names}

    def name(self, topic: Topic) -> str | None:
        """The topic's name; its id if the name was unknown when :meth:`resolve_names` was called; None for no
        topic."""
        return topic.name or self._names.get(topic.topic_id) or topic.topic_id or None

    def by_name(self, rows: Mapping[K, R], new: Callable[[], R]) -> dict[tuple[Any, ...], R]:
        """The rows under names, if their keys begin with a Topic. The rows of an id and of its name become
        one. Do not change the rows: most are not copied."""
        self.resolve_names()
        return as_one(rows, new, lambda key: (self.name(key[0]), *key[1:]))

    def by_cluster(
        self, rows: Mapping[K, R], new: Callable[[], R], *others: Mapping[K, Any]
    ) -> dict[tuple[Any, ...], R]:
        """The rows under names and clusters, if their keys begin with a Topic and a broker. In the result,
        the broker's cluster is in its place; it is empty if unknown.

        :param others: other rows under the same names, so that all are separated alike.
        """
        self.resolve_names()
        kept = dict.fromkeys([key[:2] for each in (rows, *others) for key in each])
        places = {(topic, broker): NameAt(self.name(topic) or "", broker) for topic, broker in kept}
        apart = self._latest.clusters.apart(places.values())
        return as_one(rows, new, lambda key: (self.name(key[0]), apart[places[key[:2]]].at, *key[2:]))

    def resolve_names(self) -> None:
        """Give ids without a name the names that are known by now."""
        told = self._latest.names
        for topic_id in list(self._unnamed):
            name = told.get(topic_id)
            if name is not None:
                self._names[topic_id] = name
                del self._unnamed[topic_id]
