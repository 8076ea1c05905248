"""The course of a lag (:mod:`kdissect.analysis.lag`): commits of a group and ends of a log, by time.

From it follow the lag, its changes, and the commits that step back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from kdissect.analysis.clusters import NameAt
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.packed import packed
from kdissect.analysis.timelines import Mark
from kdissect.analysis.trend import rising, sampled, slope_per_s

COMMIT, PENDING, ANSWER = "commit", "pending", "told"
"""The sources of an offset: a commit, a commit in an open transaction, an answer."""


class LagKey(NamedTuple):
    """The key of a lag."""

    group: NameAt
    topic: str | None
    """The topic's name."""
    partition: int


class CommittedOffset(NamedTuple):
    """An offset, and the time from which on it is committed."""

    ns: int
    offset: int | None
    kind: str
    client_id: str | None
    exchange: int
    order: int
    """The number of the exchange that committed it; in a transaction, of the exchange that ended it."""
    counts: bool


@packed
@dataclass(slots=True)
class LagCourse:
    """Commits and ends of a log, in the order of time."""

    commits: list[CommittedOffset] = field(default_factory=list)
    ends: list[tuple[int, int]] | None = field(default_factory=list)
    """None if it is unknown which of several logs of this name it is, or which of several transactions of one
    id committed to it."""
    beginnings: list[Mark] = field(default_factory=list)
    """The first offsets of the log that clients were told: ``(ns, number, offset, client id)``."""
    begun: list[int] = field(default_factory=list)
    """When other topics got the name."""

    def lives(self) -> list[LagCourse]:
        """The courses of the topics that had the name one after another."""
        found: defaultdict[int, LagCourse] = defaultdict(
            lambda: LagCourse(ends=None if self.ends is None else [])
        )
        for commit in self.commits:
            found[bisect_right(self.begun, commit.ns)].commits.append(commit)
        for end in self.ends or ():
            ends = found[bisect_right(self.begun, end[0])].ends
            assert ends is not None
            ends.append(end)
        for mark in self.beginnings:
            found[bisect_right(self.begun, mark[0])].beginnings.append(mark)
        lives = [found[number] for number in sorted(found)]
        former: int | None = None
        for life in lives:
            life._leave_out_former(former)
            former = next((each.offset for each in reversed(life.commits) if each.offset is not None), former)
        return [life for life in lives if life.commits]

    def _leave_out_former(self, former: int | None) -> None:
        """Remove the first commits if they are positions in the former topic, where the group had committed
        ``former``. A consumer that has not noticed the change still commits its old positions, and brokers
        accept them."""
        if former is None or not self.ends:
            return
        for at, commit in enumerate(self.commits):
            offset = commit.offset or 0
            if offset < former or any(ns <= commit.ns and end >= offset for ns, end in self.ends):
                del self.commits[:at]
                return
        self.commits.clear()

    def steps(self) -> Iterator[tuple[int, int | None, int | None]]:
        """Time, committed offset and log end from then on. Changes at one time are one step."""
        moves: list[tuple[int, int, int | None]] = [(each.ns, 1, each.offset) for each in self.commits]
        highest = -1
        for ns, offset in sorted(self.ends or ()):
            if offset > highest:  # the others were news only to a part of the capture
                highest = offset
                moves.append((ns, 0, offset))
        committed: int | None = None
        end: int | None = None
        moves.sort(key=lambda move: move[:2])
        for at, (ns, is_commit, told) in enumerate(moves):
            if is_commit:
                committed = told
            if told is not None and self.ends is not None and (end is None or told > end):
                end = told
            if at + 1 == len(moves) or moves[at + 1][0] != ns:
                yield ns, committed, end


def whole_row(key: LagKey, course: LagCourse, lives: list[LagCourse]) -> Row:
    """The row at the end of the course."""
    steps = list(lives[-1].steps())
    both = [
        (ns, end - committed, committed, end)
        for ns, committed, end in steps
        if committed is not None and end is not None
    ]
    points = sampled([step[:2] for step in both])
    committed, end = steps[-1][1:] if steps else (None, None)
    commits = [each for each in course.commits if each.kind == COMMIT]
    rewinds = [each for life in lives for each in _rewinds(life)]
    rewound_from, rewind = rewinds[-1] if rewinds else (None, None)
    lost_from, lost = next(reversed([each for life in lives for each in _losses(life)]), (None, None))
    deletions = [each for life in lives for each in _deletions(life)]
    deleted_from, deleted = deletions[-1] if deletions else (None, None)
    evidence = [each.exchange for each in commits]
    span = both[-1][0] - both[0][0] if both else 0
    return {
        "group": key.group.name,
        "cluster_id": key.group.cluster_id,
        "topic": key.topic,
        "partition": key.partition,
        "ns": None,
        "committed": committed,
        "log_end": end,
        "lag": end - committed if end is not None and committed is not None else None,
        "lag_max": max((step[1] for step in both), default=None),
        "lag_first": both[0][1] if both else None,
        "lag_per_s": slope_per_s(points),
        "rising": rising(points),
        "points": len(points),
        "written_per_s": (both[-1][3] - both[0][3]) * SECOND / span if span > 0 else None,
        "committed_per_s": (both[-1][2] - both[0][2]) * SECOND / span if span > 0 else None,
        "commits": len(commits),
        "committers": sorted({each.client_id for each in commits if each.client_id is not None}),
        "rewinds": len(rewinds),
        "rewound_from": rewound_from,
        "rewound_to": rewind.offset if rewind is not None else None,
        "rewound_by": rewind.client_id if rewind is not None else None,
        "rewound_ns": rewind.ns if rewind is not None else None,
        "rewind_exchange": rewind.exchange if rewind is not None else None,
        "lost_from": lost_from.offset if lost_from is not None else None,
        "lost_after_ns": lost.ns - lost_from.ns if lost is not None and lost_from is not None else None,
        "lost_ns": lost.ns if lost is not None else None,
        "lost_exchange": lost.exchange if lost is not None else None,
        "deleted_from": deleted_from,
        "deleted_to": deleted[2] if deleted is not None else None,
        "deleted_for": deleted[3] if deleted is not None else None,
        "deleted_ns": deleted[0] if deleted is not None else None,
        "deleted_exchange": deleted[1] if deleted is not None else None,
        "first_ns": course.commits[0].ns,
        "last_ns": course.commits[-1].ns,
        "exchanges": sorted({*evidence[:4], *evidence[-4:]}),
    }


def _rewinds(course: LagCourse) -> Iterator[tuple[int, CommittedOffset]]:
    """Commits of an offset before the committed one, with that commit. After a loss, a smaller offset is no
    step back."""
    former: tuple[int, CommittedOffset] | None = None
    for each in course.commits:
        if each.kind == ANSWER and each.offset is None:
            former = None
        if each.kind != COMMIT or each.offset is None:
            continue
        if former is not None and each.offset < former[0] and not _precedes(each, former[1]):
            yield former[0], each
        former = each.offset, each


def _losses(course: LagCourse) -> Iterator[tuple[CommittedOffset, CommittedOffset]]:
    """Answers that nothing is committed after a commit, each with that commit."""
    former: CommittedOffset | None = None
    for each in course.commits:
        if each.kind == COMMIT and each.offset is not None:
            former = each
        elif each.kind == ANSWER and each.offset is None and former is not None and former.order < each.order:
            yield former, each
            former = None


def _deletions(course: LagCourse) -> Iterator[tuple[int, Mark]]:
    """Answers that the log begins after the committed offset, each with that offset. The client had just
    asked for the committed offset: a client that has read further than it has committed loses nothing. It is
    one of the group: its next commit is of an offset from there on."""
    for mark in course.beginnings:
        ns, _, offset, client_id = mark
        at = bisect_right(course.commits, ns, key=lambda each: each.ns)
        last = course.commits[at - 1] if at else None
        if last is None or last.kind != ANSWER or last.client_id != client_id:
            continue
        before = last.offset
        if before is None or before >= offset:
            continue
        later = islice(course.commits, at, None)
        commits = (each for each in later if each.kind == COMMIT and each.client_id == client_id)
        after = next((each.offset for each in commits), None)
        if after is not None and after >= offset:
            yield before, mark


def _precedes(commit: CommittedOffset, other: CommittedOffset) -> bool:
    """Whether a commit came before another one, though its time is later because the clock was set back. The
    exchanges of a client are numbered as they came."""
    return commit.client_id == other.client_id and commit.order < other.order
