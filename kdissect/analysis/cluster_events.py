"""Statements about clusters, as events of each thing, by cluster and under the names of topics."""

from __future__ import annotations

from kdissect.analysis.cluster_history import Change, Cluster, Event, Subject
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.metadata_log import MetadataLog, statements_of
from kdissect.analysis.statements import Statements

_KINDS = (
    *("topic", "partition", "endpoint", "node", "listing", "controller", "named-controller"),
    *("offers", "config", "acl", "order", "refused"),
)


class Events:
    """All events."""

    def __init__(self, statements: Statements, log: MetadataLog, labels: Labels) -> None:
        self._statements = statements
        self._log = log
        self._labels = labels
        self._names: dict[str, str] = {}
        """The names of topic ids that the statements give, beside those in the capture's messages."""
        self._clusters: dict[str, str] = {}
        """The cluster of each teller."""
        self._only: Cluster = None
        """The cluster, if there is only one."""
        self._events: dict[str, dict[tuple[Cluster, Subject], list[Event]]] = {}
        self._collect()

    def of(self, kind: str) -> dict[tuple[Cluster, Subject], list[Event]]:
        """The events of a kind, by cluster and thing."""
        return self._events.get(kind, {})

    def clusters(self) -> list[Cluster]:
        """All clusters; None for things without a known cluster."""
        found = {cluster for things in self._events.values() for cluster, _ in things}
        return sorted(found, key=lambda each: each or "")

    def _collect(self) -> None:
        for _, teller, _, said in self._statements.of_kind("cluster"):
            self._clusters[teller] = dict(said.fields)["id"]
        only = set(self._clusters.values())
        for place, _ in self._log:
            if place.cluster is not None:
                only.add(place.cluster)
        self._only = next(iter(only)) if len(only) == 1 else None
        for kind in _KINDS:
            self._gather(kind)
        for place, logged, statement in statements_of(iter(self._log)):
            event = Event(
                logged.ns,
                logged.number,
                logged.ns,
                logged.number,
                logged.name,
                "log",
                dict(statement.fields),
                statement.by,
                logged.is_fresh,
                logged.counts,
            )
            self._learn(statement.kind, statement.subject, event)
            cluster = place.cluster or self._cluster_of(logged.teller)
            self._add(statement.kind, cluster, statement.subject, event)
        self._rename()

    def _gather(self, kind: str) -> None:
        for subject, teller, told_by, said in self._statements.of_kind(kind):
            values = dict(said.fields)
            event = Event(
                said.ns,
                said.number,
                said.last_ns,
                said.last_number,
                told_by,
                teller,
                values,
                said.by,
                True,
                said.counts,
            )
            self._learn(kind, subject, event)
            self._add(kind, self._cluster_of(teller), subject, event)

    def _learn(self, kind: str, subject: Subject, event: Event) -> None:
        topic_id = event.values.get("topic_id")
        if kind in ("topic", "partition") and topic_id and isinstance(subject[0], Topic) and subject[0].name:
            self._names[topic_id] = subject[0].name

    def _add(self, kind: str, cluster: Cluster, subject: Subject, event: Event) -> None:
        self._events.setdefault(kind, {}).setdefault((cluster, subject), []).append(event)

    def _rename(self) -> None:
        """Move the events of a topic's id to its name."""
        for kind in ("topic", "partition", "order"):
            renamed: dict[tuple[Cluster, Subject], list[Event]] = {}
            for (cluster, (topic, *rest)), events in self.of(kind).items():
                assert isinstance(topic, Topic)
                name = topic.name or self._names.get(topic.topic_id) or self._labels.name(topic) or ""
                if topic.topic_id:
                    events = [
                        event._replace(values={"topic_id": topic.topic_id, **event.values})
                        for event in events
                    ]
                if name:
                    renamed.setdefault((cluster, (name, *rest)), []).extend(events)
            self._events[kind] = renamed

    def _cluster_of(self, teller: str) -> Cluster:
        return self._clusters.get(teller, self._only)


class Changes:
    """The changes."""

    def __init__(self) -> None:
        self.found: list[Change] = []

    def add(
        self,
        event: Event,
        what: str,
        subject: str,
        before: str | None,
        after: str | None,
        cluster: Cluster,
        topic: str | None = None,
        partition: int | None = None,
        node: int | None = None,
    ) -> None:
        """Add a change that an event reports."""
        place = topic, partition, node, cluster
        told = event.by, event.told_by, event.number, event.counts
        self.found.append(Change(event.ns, what, subject, before, after, *told, *place))

    def set_after(self, index: int, after: str) -> None:
        """Set the later value of a change that was found before."""
        self.found[index] = self.found[index]._replace(after=after)

    def in_order(self) -> list[Change]:
        """The changes by time."""
        return sorted(self.found, key=lambda each: (*when(each), each.what, each.subject, each.after or ""))


def when(event: Event | Change) -> tuple[int, int]:
    """The key that sorts by time, then by exchange."""
    return event.ns, event.number
