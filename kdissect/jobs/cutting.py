"""A capture ─► parts, each dissected by a process, stitched here in their order.

Processes read the parts of a file by themselves, one after another. What cannot be cut without reading it
(several files, which may overlap; compressed ones) is read here. A process has its part of that from its
birth.

With few processes, this one has parts of its own, so many that all have about the same to do. A part that is
dissected and done here needs no seam, and nothing of it is handed over.

The first part is dissected here, and what is wanted of it is done here (:func:`beginning`), before any
process begins. The next ones are small, so that first rows come early. Cutting ends in three
cases: most segments in parts are of connections that began before them; parts are given up; more parts would
save nothing. One process then dissects the rest.
"""

from __future__ import annotations

import gc
import pickle
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from time import process_time
from typing import Any

from kdissect.capture.cuts import CapturePart, Cutter, FilePart
from kdissect.capture.reader import Item, first_time
from kdissect.capture.runs import PacketRun
from kdissect.collector import look_again
from kdissect.dissect import BEFORE_ALL, Dissector, Event
from kdissect.exchange import Exchange
from kdissect.jobs.batches import Batch, PartCounts
from kdissect.jobs.serving import OBJECTS_BEFORE_A_LOOK, Before, dump, load
from kdissect.jobs.workers import Workers
from kdissect.limits import Limits
from kdissect.model import Endpoint
from kdissect.parts.journal import Ends
from kdissect.parts.part import Dissected, PartEdge, Seam, dissect_part
from kdissect.parts.stitch import Stitcher
from kdissect.plain import exchange_of, plain_exchange
from kdissect.session.briefs import Brief
from kdissect.source import Input

FIRST_BYTES = 256 << 10
"""Of the first two parts; each one after them is :data:`GROWTH` times as large."""
GROWTH = 2
PART_BYTES = 16 << 20
"""Of the largest: the events of a part are in memory together."""
LAST_BYTES = 4 << 20
"""Parts of the end of a file are smaller, down to these, so that all processes end about together. With more
than :data:`MOST_WITH_OWN` processes they are twice as large: each part costs the first process some
milliseconds, and all others wait for it."""
MOST_WITH_OWN = 4
"""With more processes the first one has no parts of its own: it would be late with seams."""
MOST_POOR = 3
"""After so many parts in a row that one process had to dissect for the most part, it dissects the rest."""


class _CutTask:
    """A part of a capture, as a process has it.

    :param true: the true dissector, as it is when the process begins.
    :param count: says what is to be said of events that nobody here sees.
    :param tls: endpoints to which connections with TLS were opened.
    :param full_tables: in how many tables of the work no further key finds room.
    """

    def __init__(
        self,
        part: CapturePart,
        source: Input,
        true: Dissector,
        count: Callable[[Sequence[Event]], Any],
        tls: set[Endpoint],
        full_tables: int,
    ) -> None:
        self.part = part
        self.full_tables = full_tables
        """So many are full as its process knows them."""
        self._tls: Collection[Endpoint] = tls
        self._source = source
        self._true = true
        self._count = count
        self._dissected: Dissected | None = None
        self._going_on: frozenset[int] = frozenset()
        """The connections that are remembered since the process began, by :func:`_mark`."""
        self.known = len(true.names.order)
        """How many tellings of names its process knows."""

    def order(self, latest: _CutTask) -> bytes | None:
        """As :class:`~kdissect.jobs.serving.PartTask` has it."""
        if not isinstance(self.part, FilePart) or self.full_tables > latest.full_tables:
            return None
        self.known = latest.known
        going_on = array("q", (_mark(each.endpoints) for each, _ in self._true.handed_over()))
        return pickle.dumps((self.part, list(self._tls), going_on), pickle.HIGHEST_PROTOCOL)

    def take(self, order: bytes) -> None:
        """As :class:`~kdissect.jobs.serving.PartTask` has it."""
        self.part, self._tls, going_on = pickle.loads(order)
        self._going_on = frozenset(going_on)
        self._dissected = None

    def _may_go_on(self, ends: Ends) -> bool:
        return self._true.remembers(*ends) or _mark(ends) in self._going_on

    def edge(self) -> bytes:
        source = self._source
        self._dissected = dissect_part(
            _Blocks(self.part, source.limits),
            self._true,
            self._may_go_on,
            source.limits,
            source.ports,
            embedded=source.embedded,
            tells_tcp=source.tells_tcp,
            briefs=source.briefs,
            tls=self._tls,
        )
        return pickle.dumps(self._dissected.edge, pickle.HIGHEST_PROTOCOL)

    def batch(self, seam: bytes) -> tuple[Batch, Any]:
        assert self._dissected is not None
        names, limits = self._true.names, self._source.limits
        known, told = load(seam, (names,))
        for each in known:
            names.learn(*each)
        plain: Seam = told
        events = [(step, [_event(each, names, limits) for each in found]) for step, found in plain.events]
        batch = self._dissected.events(plain._replace(events=events), names)
        return batch, self._count(batch)


def _mark(ends: Ends) -> int:
    """Stands for the ends of a connection, in any order. Where it stands for those of two, one of them is
    left to the stitcher."""
    return hash(frozenset(ends))


class _Blocks:
    """The packets of a part, as often as they are asked for."""

    def __init__(self, part: CapturePart, limits: Limits) -> None:
        self._part = part
        self._limits = limits

    def __iter__(self) -> Iterator[Sequence[Item | PacketRun]]:
        return self._part.in_runs(self._limits)


class _Balance:
    """Tells whose the next part is, so that this process and the others have about the same to do. This one
    stitches and writes, too. What others do is not seen: bytes take them as long as they take here."""

    def __init__(self, count: int) -> None:
        self._others = count - 1 if 1 < count <= MOST_WITH_OWN else 0
        self._since = process_time()
        self._given = 0
        """Bytes that others have …"""
        self._own: deque[int] = deque()
        """… and those of each part that is to be done here."""
        self._done = 0
        """Bytes that were done here …"""
        self._seconds = 0.0
        """… and how long it took."""

    def is_own(self, size: int) -> bool:
        """Whether the next part, of about so many bytes, is to be done here."""
        if not self._others:
            return False
        mine = self._done + sum(self._own)
        if self._seconds:
            rate = self._seconds / self._done
            mine = round((process_time() - self._since) / rate) + sum(self._own)
        if mine * self._others > self._given:
            self._given += size
            return False
        self._own.append(size)
        return True

    def was_done(self, seconds: float) -> None:
        """The first part of those that were to be done here was: so long it took."""
        self._done += self._own.popleft()
        self._seconds += seconds


def beginning(cuts: Cutter, true: Dissector, limits: Limits) -> Iterator[Sequence[Event]]:
    """The events of the first part, for the work of this process. What that reads, imports and finds once,
    each process that is forked later has from its birth. It takes as long as to count some hundred exchanges.
    """
    first = cuts.next(FIRST_BYTES)
    if first is not None:
        yield from _here(first, true, limits)


def in_parts(
    cuts: Cutter,
    true: Dissector,
    source: Input,
    workers: Workers,
    count: int,
    flush: Callable[[], None],
    count_events: Callable[[Sequence[Event]], Any],
    is_over: Callable[[], bool],
    full_tables: Callable[[], int],
) -> Iterator[Sequence[Event] | PartCounts]:
    """Have a capture done in parts behind its :func:`beginning`, up to where it can be cut.

    Gives the events of parts that were dissected here, then how it went.

    :param count: how many processes there are.
    :param flush: has events that were given done as a batch.
    :param is_over: whether nothing more is wanted.
    :param full_tables: in how many tables of the work no further key finds room.
    """
    stitcher = Stitcher(true, source.limits)
    balance = _Balance(count)
    least = LAST_BYTES if count <= MOST_WITH_OWN else 2 * LAST_BYTES
    waiting: deque[tuple[Any, _CutTask]] = deque()
    tls: set[Endpoint] = set()
    size, poor, seams, given_up = FIRST_BYTES, 0, 0, 0
    latest_ns: int | None = None
    thresholds = gc.get_threshold()
    # The events of a part of its own stay here, too: see serving.OBJECTS_BEFORE_A_LOOK.
    gc.set_threshold(max(OBJECTS_BEFORE_A_LOOK, thresholds[0]), *thresholds[1:])
    try:
        while not is_over():
            while len(waiting) < count and poor < MOST_POOR and (not waiting or workers.may_begin):
                share = cuts.left // (2 * count)
                wanted = min(size, max(share, least))
                part = cuts.next(wanted)
                if part is None:
                    break
                size = min(GROWTH * size, PART_BYTES)
                task = _CutTask(part, source, true, count_events, tls, full_tables())
                is_own = not part.is_plain or balance.is_own(wanted)
                waiting.append((None if is_own else workers.begin_part(task), task))
            if not waiting:
                break
            begun, task = waiting.popleft()
            before = Before(true.numbering.exchanges, true.numbering.connections, latest_ns)
            if begun is None:
                here = _here(task.part, true, source.limits)
                if task.part.is_plain:
                    flush()
                    begin, attended = process_time(), workers.attended
                    workers.do_here(here, count_events, before)
                    balance.was_done(process_time() - begin - (workers.attended - attended))
                else:
                    yield from here
                continue
            edge: PartEdge = pickle.loads(workers.edge_of(begun))
            if stitcher.why_not(edge) is not None:
                workers.drop_part(begun)
                given_up += 1
                poor += 1
                yield from _here(task.part, true, source.limits)
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
    finally:
        look_again(thresholds)
        for begun, _ in waiting:
            if begun is not None:
                workers.drop_part(begun)
        workers.end_idle()
    yield PartCounts(seams, given_up, poor >= MOST_POOR)


def _here(part: CapturePart, true: Dissector, limits: Limits) -> Iterator[list[Event]]:
    """The events of a part that is dissected with the true state."""
    for items in part.in_runs(limits):
        yield from true.feed_all(items)


def first_ns(part: CapturePart, limits: Limits) -> int | None:
    """The time of the first packet of a part."""
    times = map(first_time, part.in_runs(limits))
    return next((timestamp_ns for timestamp_ns in times if timestamp_ns is not None), None)


def _plain(event: Event) -> Any:
    """An event on its way to the process that has its part."""
    if isinstance(event, Brief):
        event = event.exchange()
    if not isinstance(event, Exchange):
        return event
    known = event.topic_names
    return plain_exchange(event), known.packet, known.count  # type: ignore[attr-defined]


def _event(plain: Any, names: Any, limits: Limits) -> Event:
    if type(plain) is not tuple:  # those of others are named tuples
        event: Event = plain
        return event
    exchange, packet, count = plain
    return exchange_of(exchange, names.up_to(packet, count), limits)
