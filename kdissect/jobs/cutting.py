"""A capture ─► parts, each dissected by a process, stitched here in their order.

Processes read the parts of one plain file by themselves, one after another. Several files (which may overlap)
and compressed files cannot be cut without reading them. This process reads them, and forks a process with
each part in its memory.

With few processes, this one has parts of its own, so many that all processes have about the same to do. A
part that is dissected and done here needs no seam, and is not sent to another process.

The first part is dissected and done here (:func:`beginning`), before any process begins. The next parts are
small, so that first rows come early. Cutting ends in three cases: most segments in parts are of connections
that began before them; parts are given up; more parts would save nothing. One process then dissects the rest.
"""

from __future__ import annotations

import gc
import pickle
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from time import process_time
from typing import Any

from kdissect.capture.cuts import CapturePart, Cuts, Cutter, FilePart
from kdissect.capture.reader import Item, first_time
from kdissect.capture.runs import PacketRun
from kdissect.collector import restore_thresholds
from kdissect.dissect import BEFORE_ALL, Dissector, Event
from kdissect.exchange import Exchange
from kdissect.jobs.batches import Batch, PartCounts
from kdissect.jobs.pending import PendingBatch
from kdissect.jobs.serving import COLLECTOR_THRESHOLD, Before, dump, load
from kdissect.jobs.workers import MOST_SPARE, Workers
from kdissect.limits import Limits
from kdissect.model import Endpoint
from kdissect.parts.part import Dissected, PartEdge, Seam, dissect_part
from kdissect.parts.stitch import Stitcher
from kdissect.plain import exchange_of, plain_exchange
from kdissect.session.briefs import Brief, brief_of, plain_brief
from kdissect.session.quick import PairLayouts
from kdissect.source import Input
from kdissect.system.heap import keep_freed_blocks

FIRST_BYTES = 256 << 10
"""The size of each of the first two parts. Each later part is :data:`GROWTH` times as large as the one
before."""
GROWTH = 4
PART_BYTES = 16 << 20
"""The size of the largest part: all events of a part are in memory together."""
BRIEF_TIMES = 2
"""How many times larger a part of a file may be if its exchanges may be brief, which takes less memory. Parts
are larger only with more than :data:`MOST_WITH_OWN` processes: fewer parts have fewer edges, and the first
process must not be late with edges. With fewer processes that does not pay: events that no longer fit into
the caches of a processor cost more than edges."""
MOST_PACKETS = 250_000
"""The most packets of a part of a file: small packets bring the most events."""
LAST_BYTES = 4 << 20
"""The smallest size of parts near the end of a file: small parts let all processes end at about the same
time. With more than :data:`MOST_WITH_OWN` processes, parts do not become smaller than two for each process
need: each part costs the first process some milliseconds, and all others wait for it."""
MOST_WITH_OWN = 4
"""With more processes, the first one has no parts of its own: it would be late with seams."""
MOST_POOR = 3
"""After this many parts in a row that one process mostly had to dissect, that process dissects the rest."""


class _CutTask:
    """A part of a capture, with what its process needs.

    :param true: the true dissector, as it is when the process begins.
    :param count: counts events that this process does not see.
    :param tls: endpoints to which connections with TLS were opened.
    """

    def __init__(
        self,
        part: CapturePart,
        source: Input,
        true: Dissector,
        count: Callable[[Sequence[Event]], Any],
        tls: set[Endpoint],
    ) -> None:
        self.part = part
        self.bytes = 0
        """About its size."""
        self._tls: Collection[Endpoint] = tls
        self._source = source
        self._true = true
        self._count = count
        self._dissected: Dissected | None = None
        self._going_on: frozenset[int] = frozenset()
        """The hashes of the ends of the connections that the true dissector remembers when the part is
        ordered."""
        self.known = len(true.names.order)
        """How many entries of the true dissector's names the process knows."""

    def order(self, latest: _CutTask) -> bytes | None:
        """See :class:`~kdissect.jobs.serving.PartTask`."""
        if not isinstance(self.part, FilePart):
            return None
        self.known = latest.known
        going_on = array("q", map(hash, self._true.pairs()))
        return pickle.dumps((self.part, list(self._tls), going_on), pickle.HIGHEST_PROTOCOL)

    def take(self, order: bytes) -> None:
        """See :class:`~kdissect.jobs.serving.PartTask`."""
        self.part, self._tls, going_on = pickle.loads(order)
        self._going_on = frozenset(going_on)
        self._dissected = None

    def edge(self) -> bytes:
        source = self._source
        self._dissected = dissect_part(
            _Blocks(self.part, source.limits),
            self._true,
            self._going_on.union(map(hash, self._true.pairs())),
            source.limits,
            source.ports,
            embedded=source.embedded,
            adds_tcp=source.adds_tcp,
            briefs=source.briefs,
            tls=self._tls,
        )
        return pickle.dumps(self._dissected.edge, pickle.HIGHEST_PROTOCOL)

    def batch(self, seam: bytes) -> tuple[Batch, Any]:
        assert self._dissected is not None
        names, limits, forms = self._true.names, self._source.limits, self._true.forms
        known, told = load(seam, (names,))
        for each in known:
            names.learn(*each)
        plain: Seam = told
        events = [
            (step, [_event(each, names, limits, forms) for each in found]) for step, found in plain.events
        ]
        batch = self._dissected.events(plain._replace(events=events), names)
        return batch, self._count(batch)


class _Blocks:
    """The packets of a part. They can be read several times."""

    def __init__(self, part: CapturePart, limits: Limits) -> None:
        self._part = part
        self._limits = limits

    def __iter__(self) -> Iterator[Sequence[Item | PacketRun]]:
        return self._part.in_runs(self._limits)


class _Balance:
    """Decides whether this process or another one does the next part, so that all are busy for about the same
    time. This process cuts, stitches and writes, too. The times of parts that are not done are estimated."""

    def __init__(self, count: int) -> None:
        self._others = count - 1 if 1 < count <= MOST_WITH_OWN else 0
        self._since = process_time()
        self._given: list[tuple[int, PendingBatch]] = []
        """The parts that others have, with their sizes."""
        self._own: deque[int] = deque()
        """The sizes of the parts that are to be done here."""
        self._here = _Spent()
        """What was spent on own parts here …"""
        self._there = _Spent()
        """… and by others on theirs."""
        self._stitched = 0
        """How many bytes of other processes' parts were stitched."""

    @property
    def has_own(self) -> bool:
        """Whether some parts are done here."""
        return self._others > 0

    def is_own(self, size: int, may_give: bool = True) -> bool:
        """Whether the next part, of about ``size`` bytes, is to be done here.

        :param may_give: whether another process can begin it soon.
        """
        if not self._others:
            return False
        waiting, own = self._note_others(), sum(self._own)
        if self._here.bytes:
            used = process_time() - self._since
            pace = self._there if self._there.bytes else self._here
            here = used + self._here.seconds_of(own) + self._seconds_beside(used, waiting)
            is_own = here * self._others <= self._there.seconds + pace.seconds_of(waiting)
        else:
            is_own = own * self._others <= self._there.bytes + waiting
        is_own = is_own or not may_give
        if is_own:
            self._own.append(size)
        return is_own

    def _note_others(self) -> int:
        """Note which parts of others are done; return the bytes of the parts that are not."""
        waiting = []
        for size, part in self._given:
            if part.seconds:
                self._there.add(size, part.seconds)
            elif part.process is not None:  # otherwise it was given up
                waiting.append((size, part))
        self._given = waiting
        return sum(size for size, _ in waiting)

    def _seconds_beside(self, used: float, waiting: int) -> float:
        """About how long the parts of others will take here."""
        if not self._stitched:
            return 0.0
        unstitched = max(0, self._there.bytes + waiting - self._stitched)
        return (used - self._here.seconds) * unstitched / self._stitched

    def note_given(self, size: int, part: PendingBatch) -> None:
        """Note that another process has a part."""
        if self._others:
            self._given.append((size, part))

    def note_stitched(self, size: int) -> None:
        """Note that a part of another process was stitched."""
        self._stitched += size

    def note_done(self, seconds: float) -> None:
        """Note that the oldest of the parts to be done here is done, and how long it took."""
        self._here.add(self._own.popleft(), seconds)


class _Spent:
    """CPU seconds, and the bytes on which they were spent."""

    def __init__(self) -> None:
        self.bytes = 0
        self.seconds = 0.0

    def add(self, size: int, seconds: float) -> None:
        """Add a part."""
        self.bytes += size
        self.seconds += seconds

    def seconds_of(self, size: int) -> float:
        """About the CPU seconds for so many bytes."""
        return size * self.seconds / self.bytes


def beginning(cuts: Cutter, true: Dissector, limits: Limits) -> Iterator[Sequence[Event]]:
    """The events of the first part, for this process. What this process reads, imports and finds here once,
    each later process has from the fork. That takes as long as counting some hundred exchanges."""
    first = cuts.next(FIRST_BYTES)
    if first is not None:
        yield from _dissect_here(first, true, limits)


def in_parts(
    cuts: Cutter,
    true: Dissector,
    source: Input,
    workers: Workers,
    count: int,
    flush: Callable[[], None],
    count_events: Callable[[Sequence[Event]], Any],
    is_over: Callable[[], bool],
) -> Iterator[Sequence[Event] | PartCounts]:
    """Have the parts behind the :func:`beginning` of a capture done, up to where it can be cut.

    Gives the events of parts that were dissected here, then a :class:`PartCounts`.

    :param count: how many processes there are.
    :param flush: has the events given so far done as a batch.
    :param is_over: whether no more events are needed.
    """
    stitcher = Stitcher(true, source.limits)
    balance = _Balance(count)
    least, shares, largest = LAST_BYTES, count, PART_BYTES
    if count > MOST_WITH_OWN:
        shares = 2 * count
        least = min(PART_BYTES, max(2 * LAST_BYTES, cuts.left // shares))
        # Other parts than those of files are in the memory of this process.
        if source.briefs is not None and isinstance(cuts, Cuts):
            largest *= BRIEF_TIMES
    # With own parts, this process is one of them, so one other process is extra already.
    spare = 0 if balance.has_own else MOST_SPARE
    waiting: deque[tuple[PendingBatch | None, _CutTask]] = deque()
    tls: set[Endpoint] = set()
    size, poor, seams, given_up = FIRST_BYTES, 0, 0, 0
    latest_ns: int | None = None
    keep_freed_blocks()
    thresholds = gc.get_threshold()
    # The events of this process's own parts stay in its memory: see serving.COLLECTOR_THRESHOLD.
    gc.set_threshold(max(COLLECTOR_THRESHOLD, thresholds[0]), *thresholds[1:])
    try:
        while not is_over():
            while len(waiting) < count and poor < MOST_POOR and (not waiting or workers.may_begin(spare)):
                wanted = min(size, max(cuts.left // shares, least))
                part = cuts.next(wanted, MOST_PACKETS) if isinstance(cuts, Cuts) else cuts.next(wanted)
                if part is None:
                    break
                size = min(GROWTH * size, largest)
                task = _CutTask(part, source, true, count_events, tls)
                task.bytes = _size_of(part, wanted)
                # Processes with small parts are free soon.
                may_give = task.bytes < LAST_BYTES or workers.may_begin(spare)
                if not part.is_plain or balance.is_own(task.bytes, may_give):
                    waiting.append((None, task))
                    continue
                workers.wait_to_begin(spare)
                given = workers.begin_part(task)
                balance.note_given(task.bytes, given)
                waiting.append((given, task))
            if not waiting:
                break
            begun, task = waiting.popleft()
            before = Before(true.numbering.exchanges, true.numbering.connections, latest_ns)
            if begun is None:
                here = _dissect_here(task.part, true, source.limits)
                if task.part.is_plain:
                    flush()
                    begin, attended = process_time(), workers.attended
                    workers.work_locally(here, count_events, before)
                    balance.note_done(process_time() - begin - (workers.attended - attended))
                else:
                    yield from here
                continue
            edge: PartEdge = pickle.loads(workers.edge_of(begun))
            if stitcher.refusal_reason(edge) is not None:
                workers.drop_part(begun)
                given_up += 1
                poor += 1
                yield from _dissect_here(task.part, true, source.limits)
                continue
            poor = poor + 1 if 2 * len(edge.segments) > edge.packets else 0
            seams += 1
            tls.update(edge.tls)
            known = true.names.order[task.known :]
            seam = stitcher.take(edge)
            if edge.ticks is not None and edge.ticks.latest_ns != BEFORE_ALL:
                latest_ns = max(edge.ticks.latest_ns, BEFORE_ALL if latest_ns is None else latest_ns)
            plain = [(step, [_plain(event) for event in found]) for step, found in seam.events]
            flush()
            news = dump((known, seam._replace(events=plain)), (true.names,))
            task.known = len(true.names.order)
            workers.submit_part(begun, news, before)
            balance.note_stitched(task.bytes)
    finally:
        restore_thresholds(thresholds)
        for begun, _ in waiting:
            if begun is not None:
                workers.drop_part(begun)
        workers.end_idle()
    yield PartCounts(seams, given_up, poor >= MOST_POOR)


def _size_of(part: CapturePart, wanted: int) -> int:
    """The number of bytes of a part, of which ``wanted`` were asked for."""
    if isinstance(part, FilePart) and part.end is not None:
        return part.end - part.start
    return wanted


def _dissect_here(part: CapturePart, true: Dissector, limits: Limits) -> Iterator[list[Event]]:
    """Dissect a part with the true state, and give its events."""
    for items in part.in_runs(limits):
        yield from true.feed_all(items)


def first_ns(part: CapturePart, limits: Limits) -> int | None:
    """The time of the first packet of a part."""
    times = map(first_time, part.in_runs(limits))
    return next((timestamp_ns for timestamp_ns in times if timestamp_ns is not None), None)


def _plain(event: Event) -> Any:
    """An event in the form that is sent to the process of its part."""
    if isinstance(event, Brief):
        return (plain_brief(event),)
    if not isinstance(event, Exchange):
        return event
    known = event.topic_names
    return plain_exchange(event), known.packet, known.count  # type: ignore[attr-defined]


def _event(plain: Any, names: Any, limits: Limits, forms: PairLayouts | None) -> Event:
    if type(plain) is not tuple:  # events other than exchanges are named tuples
        event: Event = plain
        return event
    if len(plain) == 1:
        assert forms is not None
        brief: Any = brief_of(plain[0], forms.find, names, limits)
        return brief  # type: ignore[no-any-return]  # the caller asked for briefs
    exchange, packet, count = plain
    return exchange_of(exchange, names.up_to(packet, count), limits)
