"""Stays of members in generations, and the rebalances of a classic group in which they began.

A member asks to join (JoinGroup), and is answered with a generation when all have joined. Then it asks for
its assignment (SyncGroup), which is answered when the leader has sent it. A rebalance lasts from the first
JoinGroup request to the last SyncGroup response. Without a SyncGroup response, it goes on, or the next one
overtook it: it is not completed. Its time so far runs to the last message that its members sent or got in it.
If one of these requests still waits when the capture ends, the time runs to the end of the capture. If the
connection of that request was closed, it runs to the close. Requests of others do not make it longer.

A JoinGroup that is answered with the generation in force makes no rebalance. A static member that comes back
within its session timeout (KIP-345) sends one, or a member that asks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kdissect.analysis.counters import Span
from kdissect.analysis.fold import least, most
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.packed import packed
from kdissect.exchange import Exchange

WAITED = ("capture ended", "connection closed")
"""The reasons for a missing response that mean that it never came. For other reasons, it came, or may have
come, without being captured."""


class Unanswered(NamedTuple):
    """A request that was not answered."""

    ns: int
    connection: int
    is_waiting: bool
    """Whether it still waited when the capture ended; otherwise its connection was closed."""

    def until(self, end_ns: int | None, ends: Mapping[int, int]) -> int:
        """When its wait ended: at the end of the capture or of its connection."""
        end = end_ns if self.is_waiting else ends.get(self.connection)
        return self.ns if end is None else max(self.ns, end)


def waiting(exchange: Exchange) -> Unanswered | None:
    """The unanswered request of an exchange; None if it was answered, or if that is unknown."""
    if exchange.request is None or exchange.response is not None or exchange.missing not in WAITED:
        return None
    ns = exchange.request.frame.last_ns
    return Unanswered(ns, exchange.connection, exchange.missing == "capture ended")


@packed
@dataclass(slots=True)
class Stay:
    """A member in one generation, or at one member epoch."""

    types: set[str] = field(default_factory=set)
    join_ns: int | None = None
    """When the first JoinGroup request that was answered with this generation was complete."""
    sync_ns: int | None = None
    """When the first SyncGroup response for it was complete."""
    joined_ns: int | None = None
    """When the last JoinGroup response with this generation was complete."""
    asked_ns: int | None = None
    """The last time of its requests and answers before its assignment."""
    waits: Unanswered | None = None
    """Its last unanswered SyncGroup request."""
    is_lost: bool = False
    """Whether it got its assignment, or may have got it, in a response that was not captured."""
    protocol: str | None = None
    leader: bool | None = None
    reason: str | None = None
    assigned: int | None = None
    heartbeats: int = 0
    gaps: Histogram = field(default_factory=Histogram)
    """The times between consecutive heartbeats."""
    first_beat_ns: int | None = None
    last_beat_ns: int | None = None
    span: Span = field(default_factory=Span)

    @property
    def completed(self) -> bool | None:
        """Whether the member that joined was given its assignment; None if neither is known."""
        if self.sync_ns is not None:
            return True
        return None if self.join_ns is None or self.is_lost else False

    def beat(self, ns: int) -> None:
        """Count an answered heartbeat."""
        self.heartbeats += 1
        if self.last_beat_ns is None:
            self.first_beat_ns = ns
        else:
            self.gaps.add(ns - self.last_beat_ns)
        self.last_beat_ns = ns

    def _beat(self, later: Stay) -> None:
        self.heartbeats += later.heartbeats
        if later.first_beat_ns is None:
            return
        if self.last_beat_ns is not None:
            self.gaps.add(later.first_beat_ns - self.last_beat_ns)
        self.gaps.merge(later.gaps)
        self.last_beat_ns = later.last_beat_ns
        if self.first_beat_ns is None:
            self.first_beat_ns = later.first_beat_ns

    def merge(self, later: Stay) -> None:
        """Add later facts."""
        self.types |= later.types
        for name in ("protocol", "leader", "reason", "assigned"):
            if getattr(later, name) is not None:
                setattr(self, name, getattr(later, name))
        self._beat(later)
        self.span.merge(later.span)
        self.merge_times(later)

    def merge_times(self, other: Stay) -> None:
        """Add the facts about its rebalance only, earlier or later ones."""
        self.join_ns = least(self.join_ns, other.join_ns)
        self.sync_ns = least(self.sync_ns, other.sync_ns)
        self.joined_ns = most(self.joined_ns, other.joined_ns)
        self.asked_ns = most(self.asked_ns, other.asked_ns)
        self.waits = max((each for each in (self.waits, other.waits) if each is not None), default=None)
        self.is_lost |= other.is_lost

    def until(self, end_ns: int | None, ends: Mapping[int, int]) -> int | None:
        """The last known time of it before it was given its assignment."""
        waited = self.waits.until(end_ns, ends) if self.waits is not None else None
        return most(self.asked_ns, waited)


class RebalanceSpan(NamedTuple):
    """A rebalance of a group, or a member's share of it."""

    begin_ns: int
    end_ns: int | None
    """The end; for an uncompleted one, its last known time; None if unknown."""
    completed: bool | None

    @property
    def duration_ns(self) -> int | None:
        """The duration, so far if it is not completed; None for absurd times."""
        if self.end_ns is None or self.end_ns < self.begin_ns:
            return None
        return self.end_ns - self.begin_ns


def rebalance_of(stay: Stay, end_ns: int | None, ends: Mapping[int, int]) -> RebalanceSpan | None:
    """A member's share of the rebalance that led to its stay; None if it was not seen joining."""
    if stay.join_ns is None:
        return None
    completed = stay.completed
    end = stay.sync_ns if completed else stay.until(end_ns, ends) if completed is False else None
    return RebalanceSpan(stay.join_ns, end, completed)


def rebalance_to(stays: Iterable[Stay], end_ns: int | None, ends: Mapping[int, int]) -> RebalanceSpan | None:
    """The rebalance that led to a generation, from all its stays; None if none was seen."""
    stays = [stay for stay in stays if "classic" in stay.types]  # others in their group do not stop for it
    told = [stay.span.first_ns for stay in stays if stay.span.first_ns is not None]
    in_force = min(told, default=None)
    part = [
        (stay.join_ns, stay)
        for stay in stays
        if stay.join_ns is not None and (in_force is None or stay.join_ns <= in_force)
    ]
    if not part:
        return None
    begin = min(join_ns for join_ns, _ in part)
    synced = [stay.sync_ns for _, stay in part if stay.sync_ns is not None]
    if synced:
        return RebalanceSpan(begin, max(synced), True)
    others = [stay.sync_ns for stay in stays if stay.sync_ns is not None]
    if others:
        return RebalanceSpan(begin, min(others), True)
    if any(stay.is_lost for _, stay in part):
        return RebalanceSpan(begin, None, None)
    until = [stay.until(end_ns, ends) for _, stay in part]
    return RebalanceSpan(begin, max((each for each in until if each is not None), default=None), False)
