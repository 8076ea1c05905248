"""Produced and fetched batches of one partition → when each consumer got which records.

All conclusions are drawn here, from all known facts, so the order in which they were captured does not
matter.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple, TypeVar

from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.headers import SAMPLE
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.packed import packed

C = TypeVar("C")


class ProducedBatch(NamedTuple):
    """A produced batch."""

    base: int | None
    """The offset of its first record; None if no answer contains it."""
    last: int | None
    """The offset of its last record; without a base, the number of records; None if only the answer was
    captured."""
    sent_ns: int | None
    acknowledged_ns: int | None
    first_ms: int | None
    last_ms: int | None
    crc: int | None
    counts: bool
    sample: tuple[int, ...] = ()
    """Timestamps of some of its records, in order, each of which represents equally many records."""
    producer: str | None = None
    """The client id of its sender."""


class Arrival(NamedTuple):
    """A fetched batch, or (without a base) a requested offset."""

    offset: int | None
    """The offset in the request, if it names the partition."""
    base: int | None
    last: int
    requested_ns: int | None
    answered_ns: int
    first_ms: int | None
    last_ms: int | None
    crc: int | None
    counts: bool
    is_after_loss: bool = False
    """Whether messages of the connection are missing between this request and the one before it."""


@packed
@dataclass(slots=True)
class ConsumerOutcome:
    """The records that reached one consumer."""

    counts: bool = False
    sets: int = 0
    records: int = 0
    read_again: int = 0
    unconsumed: int = 0
    producers: set[str] = field(default_factory=set)
    youngest: Histogram = field(default_factory=Histogram)
    send: Histogram = field(default_factory=Histogram)
    ack: Histogram = field(default_factory=Histogram)
    create: Histogram = field(default_factory=Histogram)
    linger: Histogram = field(default_factory=Histogram)
    produce: Histogram = field(default_factory=Histogram)
    replicate: Histogram = field(default_factory=Histogram)
    visible: Histogram = field(default_factory=Histogram)
    waited: Histogram = field(default_factory=Histogram)


class _Placed(NamedTuple):
    """A produced batch with known offsets."""

    base: int
    last: int
    batch: ProducedBatch


class ConnectionLoss(NamedTuple):
    """The gaps in a connection's messages."""

    lost: list[int]
    """The times of missing messages, ascending."""
    asks: list[int]
    """The times of requests for offsets of any partition, ascending."""
    anew: list[tuple[int, bool]]
    """The times of requests that name all fetched partitions, and whether a session begins with each."""


NO_LOSS = ConnectionLoss([], [], [])


def after_loss(
    arrivals: Iterable[Arrival], loss: ConnectionLoss, forgotten: Collection[int] = ()
) -> Iterable[Arrival]:
    """The arrivals of a connection and partition, each marked if an answer that may have brought records is
    missing before it. That is so if its request is the first one after the gap, and the partition was fetched
    all the time.

    :param forgotten: the times of requests that stop fetching the partition.
    """
    return _after_loss(arrivals, loss, forgotten) if loss.lost else arrivals


def _after_loss(
    arrivals: Iterable[Arrival], loss: ConnectionLoss, forgotten: Collection[int]
) -> Iterator[Arrival]:
    begun = {ns for ns, is_new in loss.anew if is_new}
    anew = sorted(ns for ns, _ in loss.anew)
    before: int | None = None
    for each in sorted(arrivals, key=_when):
        if each.offset is None or each.requested_ns is None:
            yield each
            continue
        ns = each.requested_ns
        is_lost = before is not None and ns not in begun and _missed(loss, before, ns)
        if is_lost and before is not None and bisect_right(anew, before) < bisect_left(anew, ns):
            is_lost = False  # it was not among all that was fetched meanwhile
        if is_lost and before is not None and any(before < gone_ns < ns for gone_ns in forgotten):
            is_lost = False
        before = ns
        yield each._replace(is_after_loss=True) if is_lost else each


def _missed(loss: ConnectionLoss, before: int, ns: int) -> bool:
    """Whether messages are missing between two times, and the request at the second time is the first one
    after the gap."""
    at = bisect_left(loss.lost, ns) - 1
    if at < 0 or loss.lost[at] < before:
        return False
    following = bisect_right(loss.asks, loss.lost[at])
    return following < len(loss.asks) and loss.asks[following] == ns


def _when(arrival: Arrival) -> tuple[int, int]:
    return arrival.requested_ns or arrival.answered_ns, arrival.base or -1


def deliver(
    batches: list[ProducedBatch],
    consumers: Mapping[C, list[Arrival]],
    followers: Collection[C],
    rises: list[tuple[int, int]],
) -> Iterator[tuple[C, ConsumerOutcome]]:
    """The records that reached each consumer.

    :param followers: the consumers that are brokers.
    :param rises: the times of answers with a higher high watermark, and the watermarks.
    """
    placed = _place(batches, consumers)
    bases = [each.base for each in placed]
    ordered = {consumer: sorted(arrivals, key=_when) for consumer, arrivals in consumers.items()}
    replicated: dict[int, int] = {}
    for follower in followers:
        for at, ns in _first_fetches(ordered[follower], placed, bases).items():
            replicated[at] = max(ns, replicated.get(at, ns))
    watermarks, unread = _Watermarks(rises), _Unread(placed, bases)
    for consumer, arrivals in ordered.items():
        yield consumer, _reach(arrivals, placed, bases, replicated, watermarks, unread)


def _place(batches: list[ProducedBatch], consumers: Mapping[C, list[Arrival]]) -> list[_Placed]:
    """The produced batches by offset, each once: by the offset in the answer, else by the fetches."""
    by_base: dict[int, Arrival] = {}
    by_content: dict[tuple[int | None, ...], int] = {}
    needs_content = any(batch.base is None for batch in batches)
    needs_base = any(batch.last is None for batch in batches)
    for arrivals in consumers.values() if needs_content or needs_base else ():
        for each in arrivals:
            if each.base is not None:
                by_base.setdefault(each.base, each)
                if needs_content and each.crc is not None:
                    content = each.crc, each.last - each.base + 1, each.first_ms, each.last_ms
                    by_content.setdefault(content, each.base)
    placed: dict[int, _Placed] = {}
    for batch in sorted(
        batches, key=lambda each: (each.base is None, each.sent_ns is None, each.sent_ns or 0)
    ):
        base, last = batch.base, batch.last
        if base is None:
            if last is None or batch.crc is None:
                continue
            found = by_content.get((batch.crc, last, batch.first_ms, batch.last_ms))
            if found is None:
                continue
            base, last = found, found + last - 1
        arrival = by_base.get(base)
        if last is None:  # only the answer was captured
            if arrival is None:
                continue
            last = arrival.last
            batch = batch._replace(first_ms=arrival.first_ms, last_ms=arrival.last_ms)
        before = placed.get(base)
        if before is None:
            placed[base] = _Placed(base, last, batch)
        elif before.batch.sent_ns is None and batch.sent_ns is not None:
            placed[base] = _Placed(base, last, batch._replace(acknowledged_ns=before.batch.acknowledged_ns))
    return [placed[base] for base in sorted(placed)]


def _overlapping(placed: list[_Placed], bases: list[int], first: int, last: int) -> Sequence[int]:
    """The indexes of the batches with offsets from ``first`` to ``last``."""
    begin = max(0, bisect_right(bases, first) - 1)
    end = bisect_right(bases, last, begin)
    if end == begin + 1:  # as mostly
        return (begin,) if placed[begin].last >= first else ()
    return [at for at in range(begin, end) if placed[at].last >= first]


def _first_fetches(arrivals: list[Arrival], placed: list[_Placed], bases: list[int]) -> dict[int, int]:
    """For each batch, when its end was first fetched."""
    found: dict[int, int] = {}
    for each in arrivals:
        if each.base is not None:
            for at in _overlapping(placed, bases, each.base, each.last):
                if placed[at].last <= each.last and _follows(placed[at].batch, each):
                    found[at] = min(each.answered_ns, found.get(at, each.answered_ns))
    return found


def _follows(batch: ProducedBatch, arrival: Arrival) -> bool:
    """Whether the fetched batch can be the produced one: nothing is fetched before it is sent."""
    return batch.sent_ns is None or arrival.answered_ns >= batch.sent_ns


def _common(one: _Placed, first: int, last: int) -> int:
    """The number of a batch's records from ``first`` to ``last``. Some of them lie there."""
    begin = one.base if one.base > first else first
    return (one.last if one.last < last else last) - begin + 1


class _Covered:
    """The offsets that were already fetched: intervals that do not touch."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, first: int, last: int) -> list[tuple[int, int]]:
        """Add an interval; return its new parts."""
        firsts, lasts = self._firsts, self._lasts
        if first <= last and (not lasts or (first > lasts[-1] and first > firsts[-1])):  # as mostly
            if lasts and first == lasts[-1] + 1:
                lasts[-1] = last
            else:
                firsts.append(first)
                lasts.append(last)
            return [(first, last)]
        low = bisect_left(lasts, first - 1)
        high = bisect_right(firsts, last + 1)
        fresh = []
        at = first
        for index in range(low, high):
            if firsts[index] > at:
                fresh.append((at, min(last, firsts[index] - 1)))
            at = max(at, lasts[index] + 1)
        if at <= last:
            fresh.append((at, last))
        if low < high:
            first, last = min(first, firsts[low]), max(last, lasts[high - 1])
        firsts[low:high] = [first]
        lasts[low:high] = [last]
        return fresh


class _Watermarks:
    """The times when offsets became visible."""

    def __init__(self, rises: list[tuple[int, int]]) -> None:
        self._times: list[int] = []
        self._heights: list[int] = []
        for ns, high in sorted(rises):
            if not self._heights or high > self._heights[-1]:
                self._times.append(ns)
                self._heights.append(high)

    def reached_ns(self, offset: int) -> int | None:
        """When a watermark beyond the offset was first told."""
        at = bisect_right(self._heights, offset)
        return self._times[at] if at < len(self._times) else None


class _Unread:
    """The produced records after an offset."""

    def __init__(self, placed: list[_Placed], bases: list[int]) -> None:
        self._placed, self._bases = placed, bases
        sizes = [max(0, one.last - one.base + 1) for one in reversed(placed)]
        self._from = list(accumulate(sizes, initial=0))[::-1]
        """The number of records in each batch and those after it; 0 at the end."""
        self._furthest = list(accumulate([one.last for one in placed], max))
        """The last offset of each batch and those before it: batches may overlap."""

    def count(self, offset: int) -> int:
        """The number of records after an offset."""
        at = bisect_right(self._bases, offset)
        found = self._from[at]
        while at and self._furthest[at - 1] > offset:
            at -= 1
            found += max(0, self._placed[at].last - offset)
        return found


_Came = tuple[ProducedBatch, Arrival, int]
"""A batch, the fetch that brought it, and the number of records that came."""
_TIMED_AT_ONCE = 256
"""How many of them wait until their times are counted. That takes less time for several together."""


def _reach(
    arrivals: list[Arrival],
    placed: list[_Placed],
    bases: list[int],
    replicated: Mapping[int, int],
    watermarks: _Watermarks,
    unread: _Unread,
) -> ConsumerOutcome:
    out, covered = ConsumerOutcome(), _Covered()
    reached: set[int] = set()
    came: list[_Came] = []
    first_came: list[int] = []
    wanted: int | None = None
    furthest = -1
    for each in arrivals:
        if each.offset is not None:
            if each.is_after_loss and wanted is not None and wanted < each.offset:
                _count_lost(out, each, covered.add(wanted, each.offset - 1), placed, bases, reached)
            wanted = each.offset
            if wanted > furthest:
                furthest = wanted - 1
        if each.base is None:
            continue
        last = each.last
        furthest = max(furthest, last)
        first = each.base if wanted is None or not each.base <= wanted <= last else wanted
        fresh = covered.add(first, last)
        news = 0
        for begin, end in fresh:
            for at in _overlapping(placed, bases, begin, end):
                one = placed[at]
                if not _follows(one.batch, each):
                    continue
                records = _common(one, begin, end)
                news += records
                out.records += records
                out.counts |= each.counts or one.batch.counts
                came.append((one.batch, each, records))
                if at not in reached:
                    reached.add(at)
                    first_came.append(at)
        if len(came) >= _TIMED_AT_ONCE:
            _time(out, came)
            came.clear()
        if not fresh or fresh != [(first, last)]:
            seen = 0
            for at in _overlapping(placed, bases, first, last):
                if _follows(placed[at].batch, each):
                    seen += _common(placed[at], first, last)
            out.read_again += max(0, seen - news)
    _time(out, came)
    _time_batches(out, first_came, placed, replicated, watermarks)
    out.sets = len(reached)
    if reached:
        out.unconsumed = unread.count(furthest)
    return out


def _count_lost(
    out: ConsumerOutcome,
    arrival: Arrival,
    fresh: list[tuple[int, int]],
    placed: list[_Placed],
    bases: list[int],
    reached: set[int],
) -> None:
    """Count the records that were fetched in an answer that was not captured."""
    for begin, end in fresh:
        for at in _overlapping(placed, bases, begin, end):
            one = placed[at]
            if (
                one.batch.sent_ns is None
                or arrival.requested_ns is None
                or one.batch.sent_ns <= arrival.requested_ns
            ):
                out.records += _common(one, begin, end)
                out.counts |= arrival.counts or one.batch.counts
                reached.add(at)


def _time(out: ConsumerOutcome, every: list[_Came]) -> None:
    """Count the times of fetched records."""
    answered = [
        (batch.acknowledged_ns, each, records)
        for batch, each, records in every
        if batch.acknowledged_ns is not None
    ]
    out.send.add_pairs(
        [
            (each.answered_ns - batch.sent_ns, records)
            for batch, each, records in every
            if batch.sent_ns is not None
        ]
    )
    out.ack.add_pairs([(each.answered_ns - ns, records) for ns, each, records in answered])
    out.waited.add_pairs(
        [
            (max(0, each.requested_ns - ns), records)
            for ns, each, records in answered
            if each.requested_ns is not None
        ]
    )
    for batch, each, records in every:
        first_ms, last_ms, came_ns = batch.first_ms, batch.last_ms, each.answered_ns
        if first_ms is None or last_ms is None:
            continue
        stamps = batch.sample
        if not stamps and last_ms > first_ms:
            stamps = _evenly(first_ms, last_ms, records)
        if not stamps:  # all have one timestamp
            if records > 0:
                out.create.add(came_ns - first_ms * MILLISECOND, records)
        elif len(stamps) == records:
            out.create.add_each([came_ns - ms * MILLISECOND for ms in stamps])
        else:
            for part, ms in enumerate(stamps):
                times = records * (part + 1) // len(stamps) - records * part // len(stamps)
                if times:
                    out.create.add(came_ns - ms * MILLISECOND, times)


def _time_batches(
    out: ConsumerOutcome,
    which: list[int],
    placed: list[_Placed],
    replicated: Mapping[int, int],
    watermarks: _Watermarks,
) -> None:
    """Count the times of the batches of which records came, each once."""
    batches = [placed[at].batch for at in which]
    out.producers.update([batch.producer for batch in batches if batch.producer is not None])
    sent = [(batch.sent_ns, batch) for batch in batches if batch.sent_ns is not None]
    out.youngest.add_each([ns - b.last_ms * MILLISECOND for ns, b in sent if b.last_ms is not None])
    out.linger.add_each([ns - b.first_ms * MILLISECOND for ns, b in sent if b.first_ms is not None])
    out.produce.add_each([b.acknowledged_ns - ns for ns, b in sent if b.acknowledged_ns is not None])
    for at in which:
        sent_ns = placed[at].batch.sent_ns
        if sent_ns is None:
            continue
        if at in replicated:
            out.replicate.add(replicated[at] - sent_ns)
        visible_ns = watermarks.reached_ns(placed[at].last)
        if visible_ns is not None and visible_ns >= sent_ns:
            out.visible.add(visible_ns - sent_ns)


def _evenly(first_ms: int, last_ms: int, records: int) -> tuple[int, ...]:
    """Timestamps of the records of a batch, estimated from its header."""
    parts, whole = min(records, SAMPLE), last_ms - first_ms
    return tuple([first_ms + whole * (2 * part + 1) // (2 * parts) for part in range(parts)])


@packed
@dataclass(slots=True)
class Again:
    """The records of a partition that the members of a group fetched."""

    records: int = 0
    """Fetched offsets, each counted once."""
    again: int = 0
    """Offsets that had been fetched before, each time."""
    clients: list[str] = field(default_factory=list)
    """Client ids of the members that fetched again."""
    first_ns: int | None = None
    last_ns: int | None = None
    """When the first and the last repeated fetches came."""


def read_again(consumers: Mapping[str, Iterable[Arrival]], begun: Sequence[int] = ()) -> Again:
    """The offsets that were fetched more than once, from the arrivals by client id. Arrivals that do not
    count are known to be fetched, but are not counted.

    :param begun: the times from which on the offsets are those of another topic, ascending.
    """
    out, covered, life = Again(), _Covered(), 0
    wanted: dict[str, int] = {}
    every = [(each, who) for who, arrivals in consumers.items() for each in arrivals]
    for each, who in sorted(every, key=lambda one: (_when(one[0]), one[1])):
        if life < len(begun) and each.answered_ns >= begun[life]:
            life = bisect_right(begun, each.answered_ns)
            covered, wanted = _Covered(), {}
        if each.offset is not None:
            wanted[who] = each.offset
        if each.base is None:
            continue
        asked = wanted.get(who)
        first = asked if asked is not None and each.base <= asked <= each.last else each.base
        news = sum(end - begin + 1 for begin, end in covered.add(first, each.last))
        if not each.counts:
            continue
        out.records += news
        known = each.last - first + 1 - news
        if known:
            out.again += known
            out.clients = [*dict.fromkeys((*out.clients, who))]
            out.first_ns = each.answered_ns if out.first_ns is None else min(out.first_ns, each.answered_ns)
            out.last_ns = each.answered_ns if out.last_ns is None else max(out.last_ns, each.answered_ns)
    return out
