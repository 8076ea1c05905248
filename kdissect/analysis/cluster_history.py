"""Statements about clusters → the values of each thing through time, and its changes.

If statements have an epoch, the newest epoch counts, whoever told it. A leader's epoch and a partition's
(KIP-841) are compared. If statements have no epoch, the latest counts, with one exception. It may repeat an
older value shortly after another broker told a newer one. Then its broker is behind, and it is believed only
if the broker keeps repeating it.

The first values in a capture are no change: nobody knows how long they had held.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kdissect.analysis.fold import SECOND
from kdissect.analysis.packed import packed

BEHIND_NS = 5 * SECOND
"""How long a broker may repeat an older value. The spread of metadata takes milliseconds, on a bad day
seconds."""
ORDER_NS = 10 * SECOND
"""How long after an order to elect or reassign a new leader counts as its result."""


Cluster = str | None
"""The id of a cluster; None if it is unknown."""
Subject = tuple[Hashable, ...]
"""The key of the thing that an event is about."""


class Event(NamedTuple):
    """A statement and its source."""

    ns: int
    number: int
    last_ns: int
    """When it was last repeated without another one in between."""
    last_number: int
    """The exchange of the last repetition."""
    told_by: str
    teller: str
    values: dict[str, Any]
    by: str | None = None
    is_fresh: bool = True
    """Whether it happened when it was told. Otherwise it may have happened long before."""
    counts: bool = True


class Spell(NamedTuple):
    """The values of a thing during a span of time."""

    values: dict[str, Any]
    from_ns: int
    to_ns: int | None
    exchange: int
    told_by: str
    counts: bool
    last_told_ns: int
    """When these values were last told, perhaps after somebody told other ones."""


class Change(NamedTuple):
    """A change."""

    ns: int
    what: str
    subject: str
    before: str | None
    after: str | None
    by: str | None
    told_by: str
    number: int
    """The exchange that told it."""
    counts: bool
    topic: str | None = None
    partition: int | None = None
    node: int | None = None
    cluster: str | None = None


Moved = dict[str, tuple[Any, Any]]
"""For each changed field, the old and the new value."""
Notice = Callable[[Event, Moved, dict[str, Any]], None]
"""A function that is called for each change, with the values after it."""


@packed
@dataclass(slots=True)
class _Held:
    """A value that was replaced."""

    value: Any
    ns: int
    teller: str
    """The broker that replaced it."""


@packed
@dataclass(slots=True)
class Track:
    """One thing through time.

    :param versions: fields that are epochs, the most important first. A statement that is older by them is
        not believed.
    """

    versions: tuple[str, ...] = ()
    notice: Notice | None = None
    identity: str | None = None
    """A field that shows, if it changes, that another thing has the name now."""
    follows: tuple[str, ...] = ()
    """Fields that become unknown if the first of the versions is newer and the statement lacks them."""
    keeps: tuple[str, ...] = ()
    """Fields that keep their values when the thing appears again."""
    spans: list[Spell] = field(default_factory=list)
    values: dict[str, Any] | None = None
    _from: tuple[int, int, str] = (0, 0, "")
    _counts: bool = False
    _replaced: dict[str, _Held] = field(default_factory=dict)
    _last_told_ns: int = 0
    _gone: dict[Any, int] = field(default_factory=dict)
    """For each identity that lost the name, when somebody last told of it."""
    _last: dict[str, Any] = field(default_factory=dict)
    """The last values of ``follows`` fields that are now unknown."""

    def run(self, events: Iterable[Event]) -> None:
        """Take in all events of the thing."""
        told = list(events)
        told += [
            event._replace(ns=event.last_ns, number=event.last_number)
            for event in told
            if event.last_ns > event.ns + BEHIND_NS
        ]
        for event in sorted(told, key=lambda event: (event.ns, event.number)):
            self._take(event)
        if self.values is not None:
            self._close(None)
        if self._gone:
            self.spans = [self._until_last_statement(span) for span in self.spans]

    def _until_last_statement(self, span: Spell) -> Spell:
        """The span with the time when somebody last told of its identity."""
        ns = self._gone.get(span.values.get(self.identity or ""), span.last_told_ns)
        return span._replace(last_told_ns=max(ns, span.last_told_ns))

    def _take(self, event: Event) -> None:
        """Take in an event, if it is believed."""
        if self.values is not None and event.values.items() <= self.values.items():
            # It tells nothing new, like most events.
            self._last_told_ns = max(self._last_told_ns, event.last_ns)
            self._counts = self._counts or event.counts
            return
        is_there = event.values.get("is_there", True)
        values = {name: value for name, value in event.values.items() if not name.startswith("is_")}
        if self._is_old(values):
            named = values.get(self.identity or "")
            if named in self._gone:
                self._gone[named] = max(self._gone[named], event.last_ns)
            return
        if self.values is None:
            if is_there and not event.values.get("is_echo"):
                self._open(event, values)
            return
        if not is_there:
            if event.values.get("is_deleted"):
                self._end(event)
            return
        if self.identity is not None:
            named, held = values.get(self.identity), self.values.get(self.identity)
            if named is not None and held is not None and named != held:
                self._end(event)
                self._open(event, values)
                return
        known = {**self._last, **self.values}
        moved = {
            name: (known[name], value)
            for name, value in values.items()
            if name in known and known[name] != value and name not in self.versions
        }
        is_newer = self._is_newer(values)
        if not is_newer:
            behind = [name for name, (_, value) in moved.items() if self._is_behind(event, name, value)]
            if behind:
                return
        if moved:
            if (self._from[0], self._from[1]) != (event.ns, event.number) and event.is_fresh:
                self._close(event.ns)
                self._from = event.ns, event.number, event.told_by
                self._counts = False
                self._last_told_ns = 0
            elif not event.is_fresh:
                self._from = event.ns, event.number, event.told_by
            for name, (before, _) in moved.items():
                self._replaced[name] = _Held(before, event.ns, event.teller)
        self._last_told_ns = max(self._last_told_ns, event.last_ns)
        self._fill(values, is_newer)
        self._counts = self._counts or event.counts
        if moved and self.notice is not None and event.is_fresh:
            self.notice(event, moved, self.values)

    def _fill(self, values: dict[str, Any], is_newer: bool) -> None:
        """Take in the values of a statement."""
        assert self.values is not None
        kept = self.values
        if is_newer and self.versions[0] in values and values[self.versions[0]] != kept.get(self.versions[0]):
            self._last.update((name, kept[name]) for name in self.follows if name in kept)
            kept = {name: value for name, value in kept.items() if name not in self.follows}
        for name in values:
            self._last.pop(name, None)
        self.values = {**kept, **values}

    def _is_old(self, values: dict[str, Any]) -> bool:
        if self.identity is not None and values.get(self.identity) in self._gone:
            return True
        if self.values is None:
            return False
        named = values.get(self.identity or "")
        if named is not None and named != self.values.get(self.identity or "", named):
            return False  # of another thing, whose epochs are its own
        for name in self.versions:
            known, told = self.values.get(name), values.get(name)
            if known is None or told is None:
                continue
            if told != known:
                return bool(told < known)
        return False

    def _is_newer(self, values: dict[str, Any]) -> bool:
        assert self.values is not None
        return any(
            values.get(name) is not None
            and self.values.get(name) is not None
            and values[name] > self.values[name]
            for name in self.versions
        )

    def _is_behind(self, event: Event, name: str, value: Any) -> bool:
        held = self._replaced.get(name)
        return (
            held is not None
            and held.value == value
            and held.teller != event.teller
            and event.ns - held.ns < BEHIND_NS
        )

    def _open(self, event: Event, values: dict[str, Any]) -> None:
        self.values = {**self._last, **values}
        self._from = event.ns, event.number, event.told_by
        self._counts = event.counts
        self._last_told_ns = event.last_ns
        self._replaced.clear()
        self._last = {}

    def _end(self, event: Event) -> None:
        assert self.values is not None
        if self.identity is not None and self.values.get(self.identity) is not None:
            self._gone[self.values[self.identity]] = self._last_told_ns
        self._close(event.ns)
        self._last = {name: value for name, value in self.values.items() if name in self.keeps}
        self.values = None

    def _close(self, to_ns: int | None) -> None:
        assert self.values is not None
        from_ns, number, told_by = self._from
        told_ns = self._last_told_ns if to_ns is None else min(self._last_told_ns, to_ns)
        self.spans.append(Spell(self.values, from_ns, to_ns, number, told_by, self._counts, told_ns))


def list_text(nodes: Any) -> str | None:
    """``1,2,3``; None if the nodes are unknown."""
    return None if nodes is None else ",".join(map(str, nodes))


def leader_text(node: int) -> str:
    """A leader as text, or that the partition has none."""
    return "none" if node < 0 else str(node)
