"""A member of a group, and its requests (:mod:`kdissect.analysis.membership`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kdissect.analysis.clusters import NameAt
from kdissect.analysis.counters import Grades, Span
from kdissect.analysis.packed import packed
from kdissect.analysis.speakers import address


class MemberKey(NamedTuple):
    """The identity of a member."""

    group: NameAt
    member: str
    instance: str
    """Set only if the request has no member id."""


@packed
@dataclass(slots=True)
class Member:
    """The requests of a member."""

    types: set[str] = field(default_factory=set)
    client_id: str | None = None
    client: str | None = None
    instance: str | None = None
    joins: int = 0
    heartbeats: int = 0
    commits: int = 0
    committed_partitions: int = 0
    left: str | None = None
    leave_reason: str | None = None
    left_ns: int | None = None
    left_by: tuple[str, str | None] | None = None
    """Client and client id of the sender that made it leave, perhaps an administrator."""
    offers: set[str] = field(default_factory=set)
    """Assignors, or other protocols, that it supports."""
    subscribed: set[str] = field(default_factory=set)
    """The topics of its last subscription."""
    session_ms: int | None = None
    rebalance_ms: int | None = None
    errors: Grades = field(default_factory=Grades)
    requests: Span = field(default_factory=Span)
    """Its requests, without those to leave."""
    leaving: Span = field(default_factory=Span)
    """Requests that made it leave, from itself and from others."""
    refused: Span = field(default_factory=Span)
    """Refused requests that it leave."""

    @property
    def is_removed(self) -> bool:
        """Whether another client made it leave: from elsewhere, or under another client id."""
        if self.left_by is None or self.client is None:
            return False
        client, client_id = self.left_by
        if client == self.client:
            return False
        return (address(client), client_id) != (address(self.client), self.client_id)

    @property
    def span(self) -> Span:
        """Its own requests; if none was seen, the requests of others about it."""
        if self.requests.first_ns is None:
            return self.whole_span
        found = Span()
        found.merge(self.requests)
        if not self.is_removed:
            found.merge(self.leaving)
        return found

    @property
    def whole_span(self) -> Span:
        """Its requests and those of others about it."""
        found = Span()
        for each in (self.requests, self.leaving, self.refused):
            found.merge(each)
        return found

    def merge(self, later: Member) -> None:
        """Add later requests."""
        self.types |= later.types
        self.offers = later.offers or self.offers
        self.subscribed = later.subscribed or self.subscribed
        for name in ("client_id", "client", "instance", "session_ms", "rebalance_ms"):
            if getattr(later, name) is not None:
                setattr(self, name, getattr(later, name))
        self.joins += later.joins
        self.heartbeats += later.heartbeats
        self.commits += later.commits
        self.committed_partitions += later.committed_partitions
        if later.left is not None:
            self.left, self.leave_reason, self.left_ns = later.left, later.leave_reason, later.left_ns
        self.left_by = later.left_by if later.left_by is not None else self.left_by
        self.errors.merge(later.errors)
        self.requests.merge(later.requests)
        self.leaving.merge(later.leaving)
        self.refused.merge(later.refused)
