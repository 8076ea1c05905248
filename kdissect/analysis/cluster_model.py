"""The model of the clusters in a capture: one fold that the tables of clusters are views of.

It only keeps what was said (:mod:`kdissect.analysis.statements`, :mod:`kdissect.analysis.metadata_log`); what
follows from it is decided when rows are asked for (:mod:`kdissect.analysis.cluster_history`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from kdissect.analysis.cluster_history import (
    ORDER_NS,
    Change,
    Event,
    Span,
    Subject,
    Track,
    leader_text,
    list_text,
)
from kdissect.analysis.cluster_told import told
from kdissect.analysis.fold import SECOND, Fold, most, told_ns
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.metadata_log import MetadataLog, followed, may_have_log
from kdissect.analysis.statements import Source, Statements
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits

Cluster = str | None
"""The id of a cluster; None where nothing tells it."""


@dataclass
class History:
    """What is known of all clusters."""

    endpoints: list[tuple[Cluster, tuple[int, str, int], Span]] = field(default_factory=list)
    """Node, host and port, each with how the node was."""
    topics: list[tuple[Cluster, str, Span]] = field(default_factory=list)
    partitions: list[tuple[Cluster, tuple[str, int], Span]] = field(default_factory=list)
    configs: list[tuple[Cluster, tuple[str, str, str], Span]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


class ClusterModel(Fold):
    """What was said of clusters."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._statements = Statements(limits)
        self._log = MetadataLog(limits)
        self._labels = Labels(limits)
        self._history: History | None = None
        """What follows from all that, until more is said."""
        self.end_ns: int | None = None
        """The latest time in the capture so far."""

    def _exchange(self, exchange: Exchange) -> None:
        self._see(exchange, True)

    def _other(self, exchange: Exchange) -> None:
        self._see(exchange, False)

    def _see(self, exchange: Exchange, counts: bool) -> None:
        self._labels.see(exchange)
        self.end_ns = most(self.end_ns, told_ns(exchange))
        source: Source | None = None
        for statement in told(exchange, self._labels):
            if source is None:
                api = exchange.api or ""
                source = Source(told_ns(exchange), exchange.number, api, exchange.broker, counts)
                self._history = None
            self._statements.add(statement, source)
        if may_have_log(exchange) and self._log.see(exchange, counts):
            self._history = None

    def merge(self, later: Self) -> None:
        self._statements.merge(later._statements)
        self._log.merge(later._log)
        self._labels.merge(later._labels)
        self.end_ns = most(self.end_ns, later.end_ns)
        self._history = None

    @property
    def left_out(self) -> int:
        return self._statements.left_out + self._log.left_out

    def history(self) -> History:
        """What is known by now."""
        self._labels.settle()
        if self._history is None:
            self._history = _Historian(self._statements, self._log, self._labels).history()
        return self._history


def _of_one_listener(events: list[Event]) -> list[list[Event]]:
    """The lists of brokers, apart by listener."""
    listeners: list[tuple[set[Any], list[Event]]] = []
    for event in sorted(events, key=_when):
        places, lists = set(event.values["nodes"]), [event]
        apart = []
        for known, earlier in listeners:
            if known & places:
                places |= known
                lists = [*earlier, *lists]
            else:
                apart.append((known, earlier))
        listeners = [*apart, (places, lists)]
    return [lists for _, lists in listeners]


def _listed(lists: list[Event], has: Callable[[Any], bool]) -> list[Event]:
    """When something appears in lists of brokers, and vanishes."""
    found: list[Event] = []

    def moved(event: Event, what: dict[str, tuple[Any, Any]], values: dict[str, Any]) -> None:
        told = {"is_there": values["listed"], "is_deleted": True, "is_new": True}
        found.append(event._replace(values=told))

    Track((), moved).run(event._replace(values={"listed": has(event.values["nodes"])}) for event in lists)
    if has(lists[0].values["nodes"]):
        found.insert(0, lists[0]._replace(values={"is_there": True}))
    return found


Listed = dict[tuple[Cluster, Any], list[Event]]
"""Cluster and node or address: when it was there, and was not."""


class _Historian:
    """Makes the history."""

    def __init__(self, statements: Statements, log: MetadataLog, labels: Labels) -> None:
        self._statements = statements
        self._log = log
        self._labels = labels
        self._changes: list[Change] = []
        self._names: dict[str, str] = {}
        """Of topic ids, beside those that messages of the capture pair with names."""
        self._clusters: dict[str, str] = {}
        """By teller."""
        self._events: dict[str, dict[tuple[Cluster, Subject], list[Event]]] = {}
        self._carried_out: set[tuple[str, int, int]] = set()
        """Orders that led to another leader: partition, time, exchange."""
        self._made: dict[tuple[Cluster, str], list[int]] = {}
        """When topics were made."""

    def history(self) -> History:
        self._collect()
        out = History()
        controllers = {cluster: self._controller(cluster) for cluster in self._all_clusters()}
        listed, places = self._listings()
        self._note_nodes(listed)
        out.endpoints = list(self._endpoints(places, controllers))
        deleted = self._topics(out)
        self._partitions(out, deleted)
        self._configs(out)
        self._acls()
        self._refusals()
        out.changes = sorted(
            self._changes,
            key=lambda each: (each.ns, each.exchange, each.what, each.subject, each.after or ""),
        )
        return out

    # -- putting together -------------------------------------------------------------------------------

    def _collect(self) -> None:
        for _, teller, _, said in self._statements.about("cluster"):
            self._clusters[teller] = dict(said.fields)["id"]
        only = set(self._clusters.values())
        for place, _ in self._log:
            if place.cluster is not None:
                only.add(place.cluster)
        self._only: Cluster = next(iter(only)) if len(only) == 1 else None
        self._known_clusters = sorted(only)
        for kind in ("topic", "partition", "endpoint", "node", "listing", "controller", "named-controller"):
            self._gather(kind)
        for kind in ("offers", "config", "acl", "order", "refused"):
            self._gather(kind)
        for place, logged, statement in followed(iter(self._log)):
            event = Event(
                logged.ns,
                logged.number,
                logged.ns,
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
        for subject, teller, told_by, said in self._statements.about(kind):
            values = dict(said.fields)
            event = Event(
                said.ns, said.number, said.last_ns, told_by, teller, values, said.by, True, said.counts
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
        """What was said of a topic's id is said of its name."""
        for kind in ("topic", "partition", "order"):
            renamed: dict[tuple[Cluster, Subject], list[Event]] = {}
            for (cluster, (topic, *rest)), events in self._of(kind).items():
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

    def _of(self, kind: str) -> dict[tuple[Cluster, Subject], list[Event]]:
        return self._events.get(kind, {})

    def _cluster_of(self, teller: str) -> Cluster:
        return self._clusters.get(teller, self._only)

    def _all_clusters(self) -> list[Cluster]:
        found: dict[Cluster, None] = {}
        for kind in self._events.values():
            for cluster, _ in kind:
                found[cluster] = None
        return sorted(found, key=lambda each: each or "")

    # -- brokers and controllers --------------------------------------------------------------------------

    def _controller(self, cluster: Cluster) -> list[Event]:
        """When which node became the controller."""
        events = self._of("controller").get((cluster, ()), [])
        offers = self._of("offers").get((cluster, ()), ())
        if any(event.values.get("has_zookeeper") for event in offers):
            events = [*events, *self._of("named-controller").get((cluster, ()), ())]
        events = sorted(events, key=_when)
        while events and events[0].values.get("id", -1) < 0:
            events.pop(0)
        if not events:
            return []
        turns = [events[0]]

        def moved(event: Event, what: dict[str, tuple[Any, Any]], values: dict[str, Any]) -> None:
            before, after = turns[-1].values["id"], values["id"]
            if after < 0 or before == after:
                return  # nobody leads for a while, or the same again
            turns.append(event)
            self._change(
                event, "controller-moved", f"controller {after}", str(before), str(after), cluster, node=after
            )

        Track(("epoch",), moved).run(events)
        return turns

    def _listings(self) -> tuple[Listed, Listed]:
        """Nodes, and addresses of nodes, that appear in the lists of brokers that Metadata gives, and vanish
        from them. Lists that share an address are of one listener, and are compared; a broker may have one
        listener and not another."""
        nodes: Listed = {}
        places: Listed = {}
        for (cluster, _), events in self._of("listing").items():
            for lists in _of_one_listener(events):
                every = {place for event in lists for place in event.values["nodes"]}
                for place in sorted(every):
                    found = _listed(lists, lambda each, place=place: place in each)  # type: ignore[misc]
                    places.setdefault((cluster, place), []).extend(found)
                for node in sorted({node for node, *_ in every}):
                    found = _listed(lists, lambda each, node=node: any(node == it[0] for it in each))  # type: ignore[misc]
                    nodes.setdefault((cluster, node), []).extend(found)
        return nodes, places

    def _note_nodes(self, listed: Listed) -> None:
        """Note what happened to each node."""
        found: dict[tuple[Cluster, Any], list[Event]] = {}
        for (cluster, (node,)), events in self._of("node").items():
            found.setdefault((cluster, node), []).extend(events)
        for key, events in listed.items():
            found.setdefault(key, []).extend(events)
        for (cluster, node), events in found.items():
            self._note_node(cluster, node, sorted(events, key=_when))

    def _note_node(self, cluster: Cluster, node: int, events: list[Event]) -> None:
        subject = f"broker {node}"
        is_there: bool | None = None
        fenced: bool | None = None
        epoch: int | None = None
        for event in events:
            values = event.values
            there = values.get("is_there")
            if event.is_fresh and there is False and is_there is not False:
                self._change(event, "broker-gone", subject, None, None, cluster, node=node)
            elif (
                event.is_fresh
                and there
                and (is_there is False or (is_there is None and values.get("is_new")))
            ):
                self._change(event, "broker-appeared", subject, None, None, cluster, node=node)
            is_there = there if there is not None else is_there
            told = values.get("epoch")
            if told is not None:
                if epoch is not None and told < epoch:
                    continue  # of its life before
                if epoch is not None and told > epoch and event.is_fresh:
                    self._change(
                        event, "broker-registered", subject, str(epoch), str(told), cluster, node=node
                    )
                    fenced = None
                epoch = told
            now = values.get("fenced")
            if now is not None and fenced is not None and now != fenced and event.is_fresh:
                wanted = values.get("wants_fence") or values.get("is_stopping")
                what = "broker-fenced" if now else "broker-unfenced"
                after = "as it asked" if now and wanted else None
                self._change(event, what, subject, None, after, cluster, node=node)
            fenced = now if now is not None else fenced
            dirs = values.get("offline_dirs")
            if dirs:
                self._change(event, "log-dirs-offline", subject, None, str(dirs), cluster, node=node)

    def _endpoints(
        self, places: Listed, controllers: dict[Cluster, list[Event]]
    ) -> Iterator[tuple[Cluster, tuple[int, str, int], Span]]:
        for (cluster, subject), events in self._of("endpoint").items():
            node, host, port = subject
            if not isinstance(node, int) or not isinstance(host, str) or not isinstance(port, int):
                continue
            opening = min(events, key=_when)
            turns = [
                event._replace(values={"controller": event.values["id"] == node})
                for event in controllers.get(cluster, ())
            ]
            about = [*self._of("node").get((cluster, (node,)), ()), *turns]
            before = [event for event in about if _when(event) < _when(opening)]
            for event in sorted(before, key=_when):  # what is known of the node already
                values = {name: value for name, value in event.values.items() if not name.startswith("is_")}
                opening = opening._replace(values={**opening.values, **values})
            track = Track(("epoch",), keeps=("rack", "listener", "software"))
            after = [event for event in about if _when(event) >= _when(opening)]
            listed = places.get((cluster, subject), [])
            rest = [event for event in events if _when(event) != _when(opening)]
            track.run([opening, *rest, *after, *listed])
            for span in track.spans:
                yield cluster, (node, host, port), span

    # -- topics and partitions ----------------------------------------------------------------------------

    def _topics(self, out: History) -> dict[tuple[Cluster, str], list[Event]]:
        """Fills in topics; gives when each was deleted."""
        deleted: dict[tuple[Cluster, str], list[Event]] = {}
        for (cluster, (name,)), events in self._of("topic").items():
            assert isinstance(name, str)
            events.sort(key=_when)

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
                    self._change(
                        event, "partitions-added", where, str(before), str(after), cluster, topic=name
                    )

            track = Track((), moved, "topic_id")
            track.run(events)
            self._note_topic(cluster, name, events)
            out.topics += [(cluster, name, span) for span in track.spans]
            deleted[cluster, name] = [event for event in events if event.values.get("is_deleted")]
        return deleted

    def _note_topic(self, cluster: Cluster, name: str, events: list[Event]) -> None:
        """When it was made and deleted, and by whom. A topic that was not there, and is there without anybody
        making it, was made because it was asked for (``auto.create.topics.enable``)."""
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
                    self._change(found, "topic-created", subject, None, None, cluster, topic=name)
                    self._made.setdefault((cluster, name), []).append(event.ns)
                is_there, asked = True, None
            elif values.get("is_deleted"):
                is_known = topic_id is None or topic_id in lives or not lives
                if is_there is not False and event.is_fresh and is_known:
                    found = event._replace(by=(_asker(event, events, "is_deleted") or event).by)
                    self._change(found, "topic-deleted", subject, None, None, cluster, topic=name)
                is_there = False
            elif is_there is not True and values.get("is_asked_for") and asked is None:
                asked = event

    def _partitions(self, out: History, deleted: dict[tuple[Cluster, str], list[Event]]) -> None:
        for (cluster, (name, index)), events in self._of("partition").items():
            if not isinstance(name, str) or not isinstance(index, int):
                continue
            ends = [
                event._replace(values={**event.values, "is_there": False})
                for event in deleted.get((cluster, name), ())
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
            out.partitions += [(cluster, (name, index), span) for span in track.spans]

    def _note_partition(
        self,
        event: Event,
        moved: dict[str, tuple[Any, Any]],
        values: dict[str, Any],
        cluster: Cluster,
        name: str,
        index: int,
    ) -> None:
        subject = f"{name}-{index}"
        place = {"topic": name, "partition": index}
        if "leader" in moved:
            before, after = moved["leader"]
            by = event.by if event.by is not None else self._ordered(cluster, name, index, event.ns, True)
            self._change(
                event._replace(by=by),
                "leader-moved",
                subject,
                leader_text(before),
                leader_text(after),
                cluster,
                node=before if before >= 0 else None,
                **place,
            )
        if "replicas" in moved:
            one, other = map(list_text, moved["replicas"])
            by = self._ordered(cluster, name, index, event.ns, False)
            self._change(event._replace(by=by), "replicas-changed", subject, one, other, cluster, **place)
        if "isr" in moved:
            before, after = moved["isr"]
            one, other = list_text(before), list_text(after)
            replicas = values.get("replicas")
            lost = [node for node in before if node not in after and (replicas is None or node in replicas)]
            if lost:
                self._change(event, "isr-shrunk", subject, one, other, cluster, node=lost[0], **place)
            if set(after) - set(before):
                node = next(node for node in after if node not in before)
                self._change(event, "isr-grown", subject, one, other, cluster, node=node, **place)

    def _ordered(self, cluster: Cluster, name: str, index: int, ns: int, once: bool) -> str | None:
        """Who asked for another leader or other replicas shortly before. An order gives one leader."""
        for order in sorted(self._of("order").get((cluster, (name, index)), ()), key=lambda each: -each.ns):
            key = f"{name}-{index}", order.ns, order.number
            if abs(order.ns - ns) <= ORDER_NS and not (once and key in self._carried_out):
                if once:
                    self._carried_out.add(key)
                return order.by
        return None

    # -- settings -------------------------------------------------------------------------------------------

    def _configs(self, out: History) -> None:
        for (cluster, subject), events in self._of("config").items():
            kind, resource, name = subject
            assert isinstance(kind, str)
            assert isinstance(resource, str)
            assert isinstance(name, str)
            events.sort(key=_when)
            what = {"quota": "quota-changed", "feature": "feature-changed"}.get(kind, "config-changed")
            thing = " ".join(part for part in (kind, resource, name) if part)
            value: str | None = None
            for event in events:
                told = event.values.get("value")
                is_order = event.by is not None or event.told_by in ("ConfigRecord", "ClientQuotaRecord")
                is_first = value is None and kind == "topic" and self._is_new(cluster, resource, event.ns)
                if event.is_fresh and told != value and not is_first and (is_order or value is not None):
                    same = [
                        each for each in events if each.values.get("value") == told and each.by is not None
                    ]
                    found = event._replace(
                        by=next((each.by for each in same if abs(each.ns - event.ns) <= ORDER_NS), None)
                    )
                    after = None if event.values.get("is_unset") else told
                    self._change(found, what, thing, value or None, after, cluster)
                value = told
            track = Track()
            track.run(events)
            out.configs += [(cluster, (kind, resource, name), span) for span in track.spans]

    def _is_new(self, cluster: Cluster, topic: str, ns: int) -> bool:
        """Whether a topic was made just then: what it is made with is no change."""
        return any(abs(ns - made_ns) <= SECOND for made_ns in self._made.get((cluster, topic), ()))

    def _acls(self) -> None:
        for (cluster, (text,)), events in self._of("acl").items():
            is_there: bool | None = None
            for event in sorted(events, key=_when):
                now = event.values["is_there"]
                if event.is_fresh and now != is_there:
                    words = ("there", "removed") if not now else (None, "there")
                    self._change(event, "acl-changed", str(text), *words, cluster)
                is_there = now

    def _refusals(self) -> None:
        for (cluster, (node,)), events in self._of("refused").items():
            for event in events:
                error = event.values["error"]
                assert isinstance(node, int)
                self._change(event, "broker-refused", f"broker {node}", None, error, cluster, node=node)

    def _change(
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
        self._changes.append(
            Change(
                event.ns,
                what,
                subject,
                before,
                after,
                event.by,
                event.told_by,
                event.number,
                event.counts,
                topic,
                partition,
                node,
                cluster,
            )
        )


def _asker(event: Event, events: list[Event], order: str) -> Event | None:
    """The order that an event came of, whose answer may come after it."""
    if event.by is not None:
        return event
    near = (
        each
        for each in events
        if each.by is not None and each.values.get(order) and abs(each.ns - event.ns) <= ORDER_NS
    )
    return next(near, None)


def _when(event: Event) -> tuple[int, int]:
    return event.ns, event.number
