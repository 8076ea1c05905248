"""When a name became another topic's, as the brokers of one cluster tell it.

Two clusters may have one id: whoever starts them from one file of settings gives both the same. Then they
cannot be told apart by it. But brokers that name each other, or one broker, tell of one cluster only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kdissect.analysis.cluster_history import BEHIND_NS, Event


class Kin:
    """Which brokers are of one cluster, as lists of brokers tell."""

    def __init__(self, lists: Sequence[Event]) -> None:
        """
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
    """The id that a topic had, and the event that first tells another, each time that it changed.

    :param events: those of a topic, in order of time.
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
            # Both go on where two clusters share an address.
            if last_ns <= first.ns + BEHIND_NS:
                yield before, first
