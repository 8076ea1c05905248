"""Topics and partitions through time: when topics were made, which node leads a partition, and which replicas
are in sync."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.analysis.cluster_events import Changes, Events, when
from kdissect.analysis.cluster_history import (
    ORDER_NS,
    Cluster,
    Event,
    Spell,
    Track,
    leader_text,
    list_text,
)
from kdissect.analysis.topic_replaced import Kin, replacements


class TopicHistory:
    """The history of the topics and their partitions."""

    def __init__(self, events: Events, changes: Changes) -> None:
        self._events = events
        self._changes = changes
        self._carried_out: set[tuple[str, int, int]] = set()
        """Orders that led to another leader: partition, time, exchange."""
        self._deleted: dict[tuple[Cluster, str], list[Event]] = {}
        self._kin: dict[Cluster, Kin] = {}
        self.made: dict[tuple[Cluster, str], list[int]] = {}
        """When each topic was made."""

    def topics(self) -> Iterator[tuple[Cluster, str, Spell]]:
        """Each topic, with its values through time. Call it before :meth:`partitions`."""
        for (cluster, (name,)), events in self._events.of("topic").items():
            assert isinstance(name, str)
            events.sort(key=when)

            def moved(
                event: Event,
                what: dict[str, tuple[Any, Any]],
                values: dict[str, Any],
                cluster: Cluster = cluster,
                name: str = name,
            ) -> None:
                before, after = what.get("partitions", (0, 0))
                if after > before:
                    where = f"topic {name}"
                    self._changes.add(
                        event, "partitions-added", where, str(before), str(after), cluster, topic=name
                    )

            track = Track((), moved, "topic_id")
            track.run(events)
            self._note_topic(cluster, name, events)
            self._note_other(cluster, name, events)
            self._deleted[cluster, name] = [event for event in events if event.values.get("is_deleted")]
            for span in track.spans:
                yield cluster, name, span

    def _note_topic(self, cluster: Cluster, name: str, events: list[Event]) -> None:
        """Note when and by whom a topic was made and deleted. If a topic appears and nobody made it, it was
        made because a client asked for it (``auto.create.topics.enable``)."""
        subject = f"topic {name}"
        is_there: bool | None = None
        asked: Event | None = None
        lives: set[str] = set()
        for event in events:
            values = event.values
            topic_id = values.get("topic_id")
            if values.get("is_there"):
                is_other = topic_id is not None and bool(lives) and topic_id not in lives
                if topic_id is not None:
                    lives.add(topic_id)
                is_made = bool(values.get("is_made")) and (is_there is not True or is_other)
                if event.is_fresh and (is_made or (is_there is not True and asked is not None)):
                    maker = _asker(event, events, "is_made")
                    if maker is None and asked is not None and event.ns - asked.ns <= ORDER_NS:
                        maker = asked
                    found = event if maker is None else event._replace(by=maker.by, told_by=maker.told_by)
                    self._changes.add(found, "topic-created", subject, None, None, cluster, topic=name)
                    self.made.setdefault((cluster, name), []).append(event.ns)
                is_there, asked = True, None
            elif values.get("is_deleted"):
                is_known = topic_id is None or topic_id in lives or not lives
                if is_there is not False and event.is_fresh and is_known:
                    found = event._replace(by=(_asker(event, events, "is_deleted") or event).by)
                    self._changes.add(found, "topic-deleted", subject, None, None, cluster, topic=name)
                is_there = False
            elif is_there is not True and values.get("is_asked_for") and asked is None:
                asked = event

    def _note_other(self, cluster: Cluster, name: str, events: list[Event]) -> None:
        """Note when another topic got the name."""
        if len({event.values.get("topic_id") for event in events} - {None}) < 2:
            return
        if cluster not in self._kin:
            self._kin[cluster] = Kin(self._events.of("listing").get((cluster, ()), ()))
        for before, event in replacements(events, self._kin[cluster]):
            after = event.values["topic_id"]
            self._changes.add(event, "topic-replaced", f"topic {name}", before, after, cluster, topic=name)

    def partitions(self) -> Iterator[tuple[Cluster, tuple[str, int], Spell]]:
        """Each partition, with its values through time."""
        for (cluster, (name, index)), events in self._events.of("partition").items():
            if not isinstance(name, str) or not isinstance(index, int):
                continue
            ends = [
                event._replace(values={**event.values, "is_there": False})
                for event in self._deleted.get((cluster, name), ())
            ]

            def moved(
                event: Event,
                what: dict[str, tuple[Any, Any]],
                values: dict[str, Any],
                cluster: Cluster = cluster,
                name: str = name,
                index: int = index,
            ) -> None:
                self._note_partition(event, what, values, cluster, name, index)

            track = Track(("leader_epoch", "partition_epoch"), moved, "topic_id", ("isr", "elr", "offline"))
            track.run([*events, *ends])
            for span in track.spans:
                yield cluster, (name, index), span

    def _note_partition(
        self,
        event: Event,
        moved: dict[str, tuple[Any, Any]],
        values: dict[str, Any],
        cluster: Cluster,
        name: str,
        index: int,
    ) -> None:
        def note(what: str, before: str | None, after: str | None, node: int | None, by: str | None) -> None:
            told = event._replace(by=by)
            subject = f"{name}-{index}"
            self._changes.add(told, what, subject, before, after, cluster, name, index, node)

        if "leader" in moved:
            before, after = moved["leader"]
            by = event.by if event.by is not None else self._ordered(cluster, name, index, event.ns, True)
            node = before if before >= 0 else None
            note("leader-moved", leader_text(before), leader_text(after), node, by)
            if event.values.get("recovering") or _was_out_of_sync(event, moved):  # KIP-704
                note("unclean-election", leader_text(before), leader_text(after), node, by)
        if "replicas" in moved:
            before, after = moved["replicas"]
            by = self._ordered(cluster, name, index, event.ns, False)
            note("replicas-changed", list_text(before), list_text(after), None, by)
        if "isr" in moved:
            before, after = moved["isr"]
            replicas = values.get("replicas")
            lost = [node for node in before if node not in after and (replicas is None or node in replicas)]
            if lost:
                note("isr-shrunk", list_text(before), list_text(after), lost[0], event.by)
            if new := [node for node in after if node not in before]:
                note("isr-grown", list_text(before), list_text(after), new[0], event.by)

    def _ordered(self, cluster: Cluster, name: str, index: int, ns: int, once: bool) -> str | None:
        """The sender of a recent order for another leader or other replicas. An order gives one leader."""
        for order in sorted(
            self._events.of("order").get((cluster, (name, index)), ()), key=lambda each: -each.ns
        ):
            key = f"{name}-{index}", order.ns, order.number
            if abs(order.ns - ns) <= ORDER_NS and not (once and key in self._carried_out):
                if once:
                    self._carried_out.add(key)
                return order.by
        return None


WITH_ZOOKEEPER = ("UpdateMetadata", "LeaderAndIsr")
"""The requests with which a controller reports each change to brokers. They have no recovery state before
KIP-704."""


def _was_out_of_sync(event: Event, moved: dict[str, tuple[Any, Any]]) -> bool:
    """Whether a controller made a replica the leader that was not in sync, for a partition without a leader.
    If the partition has a leader, a replica may come back in sync seconds before the controller reports
    it."""
    before, _ = moved.get("isr", ((), ()))
    was, leader = moved["leader"]
    return event.told_by in WITH_ZOOKEEPER and was < 0 <= leader and bool(before) and leader not in before


def _asker(event: Event, events: list[Event], order: str) -> Event | None:
    """The order that caused an event. Its answer may come after the event."""
    if event.by is not None:
        return event
    near = (
        each
        for each in events
        if each.by is not None and each.values.get(order) and abs(each.ns - event.ns) <= ORDER_NS
    )
    return next(near, None)
