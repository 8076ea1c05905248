"""The times when a name became another topic's, by the brokers of one cluster.

Two clusters may have the same id, if somebody starts them from one file of settings. Then the id does not
distinguish them. But brokers that list each other, or one broker, are always of one cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kdissect.analysis.cluster_history import BEHIND_NS, Event


class Kin:
    """Brokers that belong to one cluster, by the lists of brokers."""

    def __init__(self, lists: Sequence[Event]) -> None:
        """Join the brokers of each list.

        :param lists: events of the kind ``listing``.
        """
        self._parents: dict[str, str] = {}
        for event in lists:
            for _, host, port in event.values["nodes"]:
                self._join(event.teller, f"{host}:{port}")

    def of(self, teller: str) -> str:
        """A name for the cluster of a broker."""
        while (parent := self._parents.get(teller, teller)) != teller:
            self._parents[teller] = self._parents.get(parent, parent)
            teller = parent
        return teller

    def _join(self, one: str, other: str) -> None:
        self._parents[self.of(one)] = self.of(other)


def replacements(events: Sequence[Event], kin: Kin) -> Iterator[tuple[str, Event]]:
    """The former id of a topic, and the event with the first mention of the new id, for each change.

    :param events: the events of a topic, in order of time.
    """
    lives: dict[str, dict[str, tuple[Event, int]]] = {}
    for event in events:
        topic_id = event.values.get("topic_id")
        if topic_id is None or not event.values.get("is_there"):
            continue
        of_cluster = lives.setdefault(kin.of(event.teller), {})
        first, last_ns = of_cluster.get(topic_id, (event, event.last_ns))
        of_cluster[topic_id] = first, max(last_ns, event.last_ns)
    for of_cluster in lives.values():
        for (before, (_, last_ns)), (_, (first, _)) in pairwise(of_cluster.items()):
            # If two clusters share an address, both ids stay in use.
            if last_ns <= first.ns + BEHIND_NS:
                yield before, first
