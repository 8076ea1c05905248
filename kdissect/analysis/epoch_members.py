"""Members of a group of heartbeats at a point in time: their partitions, and the silent ones
(:mod:`kdissect.analysis.epoch_rebalances`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdissect.analysis.assignment import Held
from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.group_marks import Beat, Who, places
from kdissect.analysis.group_rebalance import GroupLine
from kdissect.analysis.packed import packed
from kdissect.analysis.triggers import EARLY, LONG_POLL_NS, committed_until, without_commits

LOST = (25, 110)
"""UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH."""
USUAL_MS = 5_000
"""The usual interval of a member's heartbeats (``group.consumer.heartbeat.interval.ms``)."""
SILENT = 3
"""The number of heartbeat intervals after which a member without a sign counts as silent."""


@packed
@dataclass(slots=True)
class MemberNow:
    """The state of a member at a point in time."""

    who: Who
    instance: str | None
    epoch: int = 0
    target: Held | None = None
    owned: Held | None = None
    tasks: dict[str, Held] = field(default_factory=dict)
    topics: tuple[str, ...] | None = None
    interval_ms: int | None = None
    rebalance_ms: int | None = None
    is_known: bool = True
    """Whether its partitions are known, because it joined in the capture."""


def holds(member: MemberNow) -> bool:
    """Whether a member owns the partitions that it was given."""
    if member.owned is None:
        return not any(True for _ in places(member.target or ()))
    return set(places(member.owned)) == set(places(member.target or ()))


def did_not_poll(line: GroupLine, beat: Beat, member: MemberNow) -> bool:
    """Whether a member that leaves was not polled for its poll interval, although there were signs of it.

    It fetched nothing for that time. With librdkafka, fetches go on by themselves. There it committed nothing
    for that time, and joined again on the same connection as the same member.
    """
    fetched = line.fetched_until(beat.member, {beat.member}, beat.ns)
    heard = line.last_sign(beat.member, beat.ns - 1)
    if heard is None or not member.rebalance_ms:
        return False
    interval_ns = int(EARLY * member.rebalance_ms * MILLISECOND)
    if fetched is not None and beat.ns - fetched >= interval_ns - LONG_POLL_NS:
        return heard > fetched + interval_ns // 2
    joins = [mark for mark in line.epoch_beats_of(beat.member) if not mark.requested_epoch and not mark.error]
    since = max((mark.answered_ns or mark.ns for mark in joins if mark.ns < beat.ns), default=None)
    again = any(mark.ns > beat.ns and mark.who.connection == beat.who.connection for mark in joins)
    if since is None or not again or beat.ns - since < interval_ns:
        return False
    is_alive = beat.ns - heard <= SILENT * (member.interval_ms or USUAL_MS) * MILLISECOND
    committed = committed_until(line, beat.member, since, beat.ns)
    return is_alive and beat.ns - committed >= without_commits(interval_ns)


def silent_member(
    line: GroupLine, beat: Beat, members: Mapping[str, MemberNow], interval_ms: int | None
) -> str | None:
    """A member that was silent for several of its heartbeat intervals, and afterwards is silent too, or is
    refused when it sends something."""
    assert beat.answered_ns is not None
    found: list[tuple[int, str]] = []
    for name, member in members.items():
        last_ns = line.last_sign(name, beat.answered_ns)
        every_ms = member.interval_ms or interval_ms
        if name == beat.member or last_ns is None or every_ms is None:
            continue
        if beat.answered_ns - last_ns >= SILENT * every_ms * MILLISECOND and _is_out(line, name, beat):
            found.append((last_ns, name))
    return min(found)[1] if found else None


def _is_out(line: GroupLine, name: str, beat: Beat) -> bool:
    """Whether a member sends nothing more, or is refused when it does."""
    later = [run for run in line.beats_of(name) if run.last_ns > beat.ns]
    refused = [
        run.first_ns for key, run in line.refusals_to(name) if key.error in LOST and run.first_ns > beat.ns
    ]
    if not refused:
        return not later and not any(mark.ns > beat.ns for mark in line.epoch_beats_of(name))
    return not any(run.last_ns < min(refused) for run in later)
