"""Configurations, quotas, features and permissions through time."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.analysis.cluster_events import Changes, Events, when
from kdissect.analysis.cluster_history import ORDER_NS, Cluster, Spell, Track
from kdissect.analysis.fold import SECOND


class Configs:
    """The history of settings.

    :param made: when topics were made. Their first settings are no change.
    """

    def __init__(self, events: Events, changes: Changes, made: dict[tuple[Cluster, str], list[int]]) -> None:
        self._events = events
        self._changes = changes
        self._made = made

    def configs(self) -> Iterator[tuple[Cluster, tuple[str, str, str], Spell]]:
        """Each setting, with its values through time. Changes are noted."""
        self._acls()
        for (cluster, subject), events in self._events.of("config").items():
            kind, resource, name = subject
            assert isinstance(kind, str)
            assert isinstance(resource, str)
            assert isinstance(name, str)
            events.sort(key=when)
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
                    self._changes.add(found, what, thing, value or None, after, cluster)
                value = told
            track = Track()
            track.run(events)
            for span in track.spans:
                yield cluster, (kind, resource, name), span

    def _is_new(self, cluster: Cluster, topic: str, ns: int) -> bool:
        """Whether a topic was just made. Its first settings are no change."""
        return any(abs(ns - made_ns) <= SECOND for made_ns in self._made.get((cluster, topic), ()))

    def _acls(self) -> None:
        for (cluster, (text,)), events in self._events.of("acl").items():
            is_there: bool | None = None
            for event in sorted(events, key=when):
                now = event.values["is_there"]
                if event.is_fresh and now != is_there:
                    before, after = (None, "there") if now else ("there", "removed")
                    self._changes.add(event, "acl-changed", str(text), before, after, cluster)
                is_there = now
