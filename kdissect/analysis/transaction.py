"""One transaction: its captured requests, and its doubtful values.
:mod:`kdissect.analysis.transaction_course` finds its end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.packed import packed
from kdissect.analysis.transaction_marks import ADD, END, INIT, PRODUCE, Mark, Orphan, Place

COMMITTED, ABORTED, FENCED, TIMED_OUT, OPEN, UNKNOWN = (
    *("committed", "aborted", "fenced", "timed-out", "open", "unknown"),
)
"""Outcomes."""


@packed
@dataclass(slots=True)
class Transaction:
    """The captured facts of one transaction."""

    first: Mark
    begin_ns: int | None
    """When the first request that was not refused came; None if that may not have been captured."""
    producer_id: int | None = None
    epoch: int | None = None
    version: str | None = None
    timeout_ms: int | None = None
    client_id: str | None = None
    client: str | None = None
    coordinator: str | None = None
    end_ns: int | None = None
    outcome: str = OPEN
    ended_by: str | None = None
    parts: set[Place] = field(default_factory=set)
    added: set[Place] = field(default_factory=set)
    """The partitions among ``partitions`` whose addition the coordinator confirmed to the client."""
    written: dict[tuple[Place, int], tuple[int, int, int | None]] = field(default_factory=dict)
    """The records, bytes and offset of each partition and sequence."""
    groups: dict[str, None] = field(default_factory=dict)
    offsets: set[Place] = field(default_factory=set)
    retries: int = 0
    retry_ns: int = 0
    errors: dict[str, None] = field(default_factory=dict)
    exchanges: list[int] = field(default_factory=list)
    telling: list[int] = field(default_factory=list)
    """Those of ``exchanges`` that are more than a write."""
    connections: set[int] = field(default_factory=set)
    counts: bool = False
    began_by: Mark | None = None
    is_whole: bool = False
    """Whether its begin was captured."""
    is_incomplete: bool = False
    """Whether a request of it may not have been captured."""
    is_told: bool = False
    """Whether it is known only from the coordinator, so that the amount of written data is unknown."""
    is_accepted: bool = False
    """Whether a response shows that a broker accepted one of its requests."""
    to_commit: bool | None = None
    """Whether its last EndTxn, while it is open, asks to commit it or to abort it."""
    state: str | None = None
    asked: Mark | None = None
    """An EndTxn whose answer was not captured."""
    refused_at: dict[str, int] = field(default_factory=dict)
    """For each request that is tried again, the time of its first refusal."""
    taker_client_id: str | None = None
    taker_client: str | None = None
    last_ns: int = 0

    @property
    def is_begun(self) -> bool:
        """Whether the transaction exists: not if all its requests were refused."""
        return self.began_by is not None or self.is_told or self.is_incomplete or self.outcome != OPEN

    def is_of(self, mark: Mark) -> bool:
        """Whether a mark is of the same producer at the same epoch. Unknown values count as equal."""
        same_id = None in (self.producer_id, mark.producer_id) or self.producer_id == mark.producer_id
        return same_id and (None in (self.epoch, mark.epoch) or self.epoch == mark.epoch)

    def age_ns(self, ns: int) -> int | None:
        return None if self.begin_ns is None else ns - self.begin_ns

    def is_late(self, ns: int, extra_ns: int = 0) -> bool | None:
        """Whether it was older than its timeout at a time; None if unknown."""
        age = self.age_ns(ns)
        if age is None or self.timeout_ms is None:
            return None
        return age >= self.timeout_ms * MILLISECOND + extra_ns

    def take(self, mark: Mark) -> None:
        """Note that an exchange is part of it."""
        self.exchanges.append(mark.number)
        self.counts = self.counts or mark.counts
        self.last_ns = max(self.last_ns, mark.ns)
        self.coordinator = mark.coordinator or self.coordinator
        if mark.client is not None and self.client is None:
            self.client, self.client_id = mark.client, mark.client_id
        if self.version is None or mark.kind == END:
            self.version = mark.version or self.version
        self.is_accepted = self.is_accepted or (mark.kind != INIT and mark.is_accepted)
        if mark.error is not None:
            self.errors[mark.error] = None
            self.telling.append(mark.number)
        elif mark.kind in (INIT, END):
            self.telling.append(mark.number)

    def end(self, outcome: str, ns: int | None, by: str | None) -> None:
        self.outcome, self.end_ns, self.ended_by = outcome, ns, by


def doubt(all_of_id: Sequence[Transaction], marks: Sequence[Mark], orphans: Sequence[Orphan]) -> None:
    """Remove the values that requests without a capture may have changed.

    :param all_of_id: the transactions of a transactional id.
    :param marks: all marks of the transactional id.
    :param orphans: answers to such requests on the connections of its producers, by time.
    """
    ends: dict[tuple[int | None, int | None], Orphan] = {
        (each.producer_id, each.epoch): each for each in orphans if each.producer_id is not None
    }
    for each in all_of_id:
        known_epoch = each.producer_id is not None and each.epoch is not None
        end = ends.get((each.producer_id, (each.epoch or 0) + 1)) if known_epoch else None
        if end is not None and each.outcome == UNKNOWN and each.end_ns is None and end.ns >= each.last_ns:
            each.end_ns, each.ended_by = end.ns, "EndTxn"
    known = {each.end_ns for each in all_of_id}
    orphans = [each for each in orphans if each.ns not in known]
    adding = {
        (_ADDING[each.kind], each.api_version) for each in marks if each.kind in _ADDING and each.client
    }
    times = [each.ns for each in orphans]
    before_ns = 0
    for each in all_of_id:
        first_ns = each.first.ns
        until_ns = each.end_ns if each.end_ns is not None else each.last_ns
        begin, end_at = bisect_right(times, before_ns), bisect_right(times, until_ns)
        if bisect_right(times, first_ns) > begin:
            each.begin_ns = None
        for orphan in orphans[begin:end_at]:
            if any(orphan.may_answer(*one) for one in adding):
                each.is_incomplete = True
        if each.outcome == OPEN and end_at < len(times):
            each.outcome = UNKNOWN
        before_ns = until_ns


_ADDING = {PRODUCE: "Produce", ADD: "AddPartitionsToTxn"}
"""Requests that add partitions to a transaction."""
