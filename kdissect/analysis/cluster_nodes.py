"""Brokers and controllers through time: their addresses, which node is the controller, and when a node
went."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kdissect.analysis.cluster_events import Changes, Events, when
from kdissect.analysis.cluster_history import Cluster, Event, Spell, Track

HEARTBEAT = "BrokerHeartbeat"
"""The request that a running broker sends."""


def _of_one_listener(events: list[Event]) -> list[list[Event]]:
    """The lists of brokers, grouped by listener."""
    listeners: list[tuple[set[Any], list[Event]]] = []
    for event in sorted(events, key=when):
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
    """When something appears in lists of brokers, and when it vanishes from them."""
    found: list[Event] = []

    def moved(event: Event, what: dict[str, tuple[Any, Any]], values: dict[str, Any]) -> None:
        told = {"is_there": values["listed"], "is_deleted": True, "is_new": True}
        found.append(event._replace(values=told))

    Track((), moved).run(event._replace(values={"listed": has(event.values["nodes"])}) for event in lists)
    if has(lists[0].values["nodes"]):
        found.insert(0, lists[0]._replace(values={"is_there": True}))
    return found


Listed = dict[tuple[Cluster, Any], list[Event]]
"""For each cluster and node or address, when it was listed and when it was not."""


def _echo(event: Event) -> Event:
    """The event, marked as an echo if its statement does not say whether the node is there."""
    if "is_there" in event.values:
        return event
    return event._replace(values={**event.values, "is_echo": True})


class Nodes:
    """The history of the nodes."""

    def __init__(self, events: Events, changes: Changes) -> None:
        self._events = events
        self._changes = changes

    def endpoints(self) -> Iterator[tuple[Cluster, tuple[int, str, int], Spell]]:
        """Each address of a node, with the node's values through time. Changes are noted."""
        controllers = {cluster: self._controller(cluster) for cluster in self._events.clusters()}
        listed, places = self._listings()
        self._note_nodes(listed)
        self._refusals()
        return self._endpoints(places, controllers)

    def _controller(self, cluster: Cluster) -> list[Event]:
        """The times when a node became the controller."""
        events = self._events.of("controller").get((cluster, ()), [])
        offers = self._events.of("offers").get((cluster, ()), ())
        if any(event.values.get("has_zookeeper") for event in offers):
            events = [*events, *self._events.of("named-controller").get((cluster, ()), ())]
        events = sorted(events, key=when)
        while events and events[0].values.get("id", -1) < 0:
            events.pop(0)
        if not events:
            return []
        turns = [events[0]]

        def moved(event: Event, what: dict[str, tuple[Any, Any]], values: dict[str, Any]) -> None:
            before, after = turns[-1].values["id"], values["id"]
            if after < 0 or before == after:
                return  # no node leads for a while, or the same one again
            turns.append(event)
            self._changes.add(
                event, "controller-moved", f"controller {after}", str(before), str(after), cluster, node=after
            )

        Track(("epoch",), moved).run(events)
        return turns

    def _listings(self) -> tuple[Listed, Listed]:
        """Nodes, and addresses of nodes, that appear in the broker lists of Metadata, and vanish from them.
        Lists that share an address are of one listener, and are compared. A broker may have one listener and
        not another."""
        nodes: Listed = {}
        places: Listed = {}
        for (cluster, _), events in self._events.of("listing").items():
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
        """Note the changes of each node."""
        found: dict[tuple[Cluster, Any], list[Event]] = {}
        for (cluster, (node,)), events in self._events.of("node").items():
            found.setdefault((cluster, node), []).extend(events)
        for key, events in listed.items():
            found.setdefault(key, []).extend(events)
        for (cluster, node), events in found.items():
            self._note_node(cluster, node, sorted(events, key=when))

    def _note_node(self, cluster: Cluster, node: int, events: list[Event]) -> None:
        subject = f"broker {node}"
        is_there: bool | None = None
        fenced: bool | None = None
        epoch: int | None = None
        stops = False
        worked = False  # whether the node was seen not to be fenced since its start
        shut_out: int | None = None  # index of the change that noted it as fenced without its own request
        went_on = False  # whether its epoch was told after that: then it had not started again
        for event in events:
            values = event.values
            there = values.get("is_there")
            if event.is_fresh and there is False and is_there is not False:
                self._changes.add(event, "broker-gone", subject, None, None, cluster, node=node)
            elif (
                event.is_fresh
                and there
                and (is_there is False or (is_there is None and values.get("is_new")))
            ):
                self._changes.add(event, "broker-appeared", subject, None, None, cluster, node=node)
            is_there = there if there is not None else is_there
            if values.get("is_stopping") and event.is_fresh and not stops:
                self._changes.add(event, "broker-stopping", subject, None, None, cluster, node=node)
            stops = bool(values.get("is_stopping")) or (stops and "fenced" not in values)
            told = values.get("epoch")
            if told is not None:
                if epoch is not None and told < epoch:
                    continue  # an event from before its last start
                if epoch is not None and told > epoch and event.is_fresh:
                    self._changes.add(
                        event, "broker-registered", subject, str(epoch), str(told), cluster, node=node
                    )
                    fenced, worked, shut_out = None, False, None
                epoch, went_on = told, True
            now = values.get("fenced")
            if now is not None and fenced is not None and now != fenced and event.is_fresh:
                wanted = values.get("wants_fence") or values.get("is_stopping")
                what = "broker-fenced" if now else "broker-unfenced"
                after = "as it asked" if now and wanted else None
                if now and after is None and event.told_by == HEARTBEAT:
                    after, worked = "alive", False
                if not now and shut_out is not None and went_on:
                    self._changes.set_after(shut_out, "alive")
                self._changes.add(event, what, subject, None, after, cluster, node=node)
                shut_out = len(self._changes.found) - 1 if now and after is None else None
                went_on = False
            elif now and worked and event.told_by == HEARTBEAT and event.is_fresh:
                if not (values.get("wants_fence") or values.get("is_stopping")):
                    self._changes.add(event, "broker-fenced", subject, None, "alive", cluster, node=node)
                worked = False
            worked = worked or now is False
            fenced = now if now is not None else fenced
            dirs = values.get("offline_dirs")
            if dirs:
                self._changes.add(event, "log-dirs-offline", subject, None, str(dirs), cluster, node=node)

    def _endpoints(
        self, places: Listed, controllers: dict[Cluster, list[Event]]
    ) -> Iterator[tuple[Cluster, tuple[int, str, int], Spell]]:
        for (cluster, subject), events in self._events.of("endpoint").items():
            node, host, port = subject
            if not isinstance(node, int) or not isinstance(host, str) or not isinstance(port, int):
                continue
            opening = min(events, key=when)
            turns = [
                event._replace(values={"controller": event.values["id"] == node})
                for event in controllers.get(cluster, ())
            ]
            about = [*self._events.of("node").get((cluster, (node,)), ()), *turns]
            before = [event for event in about if when(event) < when(opening)]
            for event in sorted(before, key=when):  # the earlier events of the node
                values = {name: value for name, value in event.values.items() if not name.startswith("is_")}
                opening = opening._replace(values={**opening.values, **values})
            track = Track(("epoch",), keeps=("rack", "listener", "software"))
            after = [_echo(event) for event in about if when(event) >= when(opening)]
            listed = places.get((cluster, subject), [])
            rest = [event for event in events if when(event) != when(opening)]
            if listed:  # lists show when it is back: other sources may name brokers that are gone
                rest = [_echo(event) for event in rest]
            track.run([opening, *rest, *after, *listed])
            for span in track.spans:
                yield cluster, (node, host, port), span

    def _refusals(self) -> None:
        for (cluster, (node,)), events in self._events.of("refused").items():
            for event in events:
                error = event.values["error"]
                assert isinstance(node, int)
                self._changes.add(event, "broker-refused", f"broker {node}", None, error, cluster, node=node)
