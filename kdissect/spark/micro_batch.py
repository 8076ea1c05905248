"""One batch of a stream: the new bytes of a capture point → its events, and the state for the next batch.

Files of a batch that overlap are merged by packet time, as :mod:`kdissect.capture.files` merges them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain
from typing import Any

from kdissect.capture.keylogs import KeyLogs
from kdissect.capture.reader import Item
from kdissect.dissect import Event
from kdissect.faults import fault
from kdissect.model import Fault, Packet, renumbered
from kdissect.names import TopicNames
from kdissect.present.form import Clock
from kdissect.session.conversation import Connection
from kdissect.source import read_rsa_key
from kdissect.spark.changes import as_columns, changes
from kdissect.spark.ending import Ending
from kdissect.spark.progress import Note
from kdissect.spark.questions import Judgement
from kdissect.spark.renamed_files import twins
from kdissect.spark.replay import new_pass
from kdissect.spark.settings import TableSettings
from kdissect.spark.spool import FileSpan
from kdissect.spark.states import OtherBuildError, States
from kdissect.spark.storage import found_file, may_be_there, unopened
from kdissect.spark.stream_state import Carried, Drained
from kdissect.spark.tailing import OTHERS_ARE_READ, SpanReading
from kdissect.wording import plural

WAITED = "it may have waited for TLS secrets that are known by now"
"""A reason why a state cannot be made again."""
UPGRADED = "upgraded"
"""The kind of the fault that reports that a state of another build was ended."""


class BatchEvents:
    """The events of a batch, which can be iterated once.

    :param carried: the state that goes on with the events, if there is one.
    :param judgement: how to judge findings, if that is wanted.
    """

    def __init__(
        self, carried: Carried | None, events: Iterable[Event], judgement: Judgement | None = None
    ) -> None:
        self.findings: list[dict[str, Any]] = []
        """The changes of findings, after all events were given."""
        self._carried = carried
        self._events = events
        self._judgement = judgement

    def __iter__(self) -> Iterator[Event]:
        carried, judgement = self._carried, self._judgement
        if carried is None or judgement is None:
            yield from self._events
            return
        if carried.judge is None:
            carried.judge = judgement.new()
        for event in self._events:
            carried.judge.feed(event)
            yield event
        (found,) = judgement.rows(carried.judge)
        self.findings = changes(carried.findings, as_columns(found.rows))

    @property
    def names(self) -> TopicNames:
        """The known names of topic ids."""
        return TopicNames() if self._carried is None else self._carried.reading.names


class _BatchOfFiles(BatchEvents):
    """The events of spans. Afterwards the state is kept."""

    def __init__(
        self, carried: Carried, events: Iterable[Event], judgement: Judgement | None, keep: Callable[[], None]
    ) -> None:
        super().__init__(carried, events, judgement)
        self._keep = keep

    def __iter__(self) -> Iterator[Event]:
        yield from super().__iter__()
        self._keep()


def events_of_batch(
    states: States,
    batch: int,
    point: str,
    spans: Iterable[FileSpan],
    settings: TableSettings,
    note: Note,
    judgement: Judgement | None = None,
) -> BatchEvents:
    """The events of the spans. The state is kept after all of them were given.

    :param batch: the number of the batch. It starts from the state of the batches before it.
    :param spans: the spans of this capture point, in the order in which they are read.
    :param note: counts what was read.
    :raises StateError: the state cannot be used.
    :raises CaptureError: a key log, or a key, cannot be read.
    """
    found, ended = _found(states, batch, point, settings, judgement)
    carried = Carried(new_pass(settings)) if found is None else begun(found, settings)
    carried.has_secrets |= settings.has_secrets
    known = _learn(carried, settings) if carried is found else ()
    events = chain(ended, known, events_of_spans(carried, list(spans), settings, note))
    return _BatchOfFiles(carried, events, judgement, lambda: keep(states, point, batch, carried))


def events_of_spans(
    carried: Carried, spans: Sequence[FileSpan], settings: TableSettings, note: Note
) -> Iterator[Event]:
    """The events of spans, which come from :func:`kdissect.spark.spool.spans_between`."""
    is_lost = any(
        span.is_gone or carried.firsts.get(span.path) not in (None, span.first_ns) for span in spans
    )
    carried.reads(spans, [span.path for span in spans], is_lost)
    yield from _events_of_files(carried, [span for span in spans if not span.is_gone], settings, note)
    for span in spans:
        if span.is_gone:
            yield from _gone(carried, span)


def keep(states: States, point: str, batch: int, carried: Carried) -> None:
    """Keep the state of a batch, without private keys.

    :raises OSError: it cannot be written.
    """
    carried.reading.secrets.rsa_keys = ()
    states.save(point, batch, carried)


def events_at_end(
    states: States,
    batch: int,
    point: str,
    settings: TableSettings,
    judgement: Judgement | None = None,
) -> BatchEvents:
    """The events that come out if nothing more is read. The state remains, and the stream may go on.

    :param batch: the number for these events, after that of the last batch.
    :raises StateError: the state cannot be used.
    """
    found, ended = _found(states, batch, point, settings, judgement)
    if found is None:
        return BatchEvents(None, ())
    carried = begun(found, settings)
    return BatchEvents(carried, chain(ended, _end(carried, point, settings)), judgement)


def _end(carried: Carried, point: str, settings: TableSettings) -> Iterator[Event]:
    yield from _learn(carried, settings)
    still_open = [
        FileSpan(point, path, carried.sizes[path], True, carried.firsts[path], False)
        for path in carried.items
        if path not in carried.final
    ]
    still_open.sort(key=lambda span: (span.first_ns or 0, span.path))
    yield from _events_of_files(carried, still_open, settings, Note(None, ""))
    yield from carried.reading.end()


def events_of_drain(
    states: States,
    batch: int,
    point: str,
    settings: TableSettings,
    drained_at: int,
    judgement: Judgement | None = None,
) -> BatchEvents:
    """The events of everything that is open, as if connections ended here. The rest is kept as a drained
    state. Files may be gone.

    :param drained_at: the batch whose drained state it is.
    :raises StateError: the state cannot be used.
    """
    found, ended = _found(states, batch, point, settings, judgement)
    events = chain(ended, _drain(states, point, settings, drained_at, found))
    if isinstance(found, Drained):
        carried = begun(found, settings) if ended else None  # otherwise there are no events
    else:
        carried = found
    return BatchEvents(carried, events, judgement)


def _drain(
    states: States, point: str, settings: TableSettings, drained_at: int, found: Carried | Drained | None
) -> Iterator[Event]:
    if isinstance(found, Carried):
        yield from _learn(found, settings)
        yield from found.reading.end()
        found = found.drained()
    if found is not None:
        states.drain(point, drained_at, found)


def _found(
    states: States, batch: int, point: str, settings: TableSettings, judgement: Judgement | None
) -> tuple[Carried | Drained | None, Sequence[Event]]:
    """The state of earlier batches, and the events that come before others. If another build made it, it is
    made again from the files. If that is impossible, but the user wants to drain, it is ended.

    :raises StateError: it cannot be used, or made again.
    """
    try:
        return states.load(point, batch), ()
    except OtherBuildError as error:
        trail = [[FileSpan(*values) for values in spans] for spans in error.trail or ()]
        lost = next((span for spans in trail for span in spans if why_lost(span) is not None), None)
        carried = None
        if trail and lost is None:
            carried = made_again(trail, settings, error.has_secrets, judgement)
        if carried is not None:
            return carried, ()
        ended = states.ending(point, batch, settings.limits) if states.ends_others else None
        if ended is not None:
            return ended[0].drained, [_upgrade(*ended), *ended[0].events]
        if lost is not None:
            raise error.because(f"{lost.path} {why_lost(lost)}") from None
        raise error.because(WAITED) if trail else error from None


def _upgrade(ending: Ending, maker: str) -> Fault:
    """The report that a state was ended."""
    requests = plural(ending.requests, "request")
    connections = plural(ending.connections, "connection")
    return fault(
        UPGRADED,
        f"the state was made by {maker}: what it had left open has rows, {requests} and {connections}."
        " Connections begin again. A later response to one of these requests has a row of its own, if"
        " kdissect still recognises Kafka on the connection",
    )


def made_again(
    history: Iterable[Sequence[FileSpan] | None],
    settings: TableSettings,
    has_secrets: bool | None,
    judgement: Judgement | None = None,
) -> Carried | None:
    """The state of batches, made again from what they read; None if the result may differ.

    TLS connections wait for secrets. With today's key log, connections that waited then would not wait now.
    Their exchanges would come among those that were written long ago, and be lost.

    :param history: what each batch read; None if it drained the state.
    :param has_secrets: whether TLS secrets were given to batches; None if unknown.
    """
    if has_secrets or (has_secrets is None and settings.has_secrets):
        return None
    settings = settings._replace(keylog=(), rsa_key=())
    carried = Carried(new_pass(settings))
    if judgement is not None:
        carried.judge = judgement.new()  # the findings of that time are reported again
    sees_tls = False
    for spans in history:
        if spans is None:
            events: Iterable[Event] = carried.reading.end()
        else:
            events = events_of_spans(carried, spans, settings, Note(None, ""))
        for event in events:
            sees_tls = sees_tls or (isinstance(event, Connection) and event.tls is not None)
            if carried.judge is not None:
                carried.judge.feed(event)
        if spans is None:
            carried = carried.drained().begun(new_pass(settings))
    sees_tls = sees_tls or any(True for _ in carried.reading.in_tls())
    return None if has_secrets is None and sees_tls else carried


def why_lost(span: FileSpan) -> str | None:
    """Why the read part of a file cannot be read again, such as "the file is missing"; None if it can."""
    now = found_file(span.path)
    if now is not None and now.size < span.size:
        return "is shorter now"
    error = unopened(span.path) if span.first_ns else None
    if error is not None and may_be_there(span.path):
        return f"cannot be read: {error.strerror or error}"
    return "is missing" if now is None else None


def begun(found: Carried | Drained, settings: TableSettings) -> Carried:
    """A state that can go on."""
    return found.begun(new_pass(settings)) if isinstance(found, Drained) else found


def _learn(carried: Carried, settings: TableSettings) -> Iterator[Event]:
    """Take in TLS secrets again: key logs have grown since the last batch, and private keys were not kept."""
    carried.reading.secrets.rsa_keys = tuple(map(read_rsa_key, settings.rsa_key))
    for lines in KeyLogs(settings.keylog).read():
        yield from carried.reading.feed(lines)


def _know_again(carried: Carried, span: FileSpan) -> None:
    """Check whether a file was read under another name, before it was compressed or unpacked."""
    if span.path in carried.items or not span.first_ns:
        return
    for twin in twins(span.path):
        if carried.firsts.get(twin) == span.first_ns:
            carried.rename(twin, span.path)
            carried.sizes[span.path] = span.size  # the size of the other form cannot be compared
            return


def _gone(carried: Carried, span: FileSpan) -> Iterator[Fault]:
    """Handle a file that is gone. If somebody wrote to it shortly before, its unread bytes are reported. If
    it had settled, its faults at the end were reported before."""
    if span.path in carried.items and span.path not in carried.final and not span.is_settled:
        read = carried.sizes[span.path]
        words = f"{span.path}: is gone; its bytes after {read:,} were not read"
        yield fault("unreadable", words, offset=read)
    carried.forget(span.path)


def _events_of_files(
    carried: Carried, spans: Iterable[FileSpan], settings: TableSettings, note: Note
) -> Iterator[Event]:
    """The events of spans, which are in the order of their first packets."""
    last_ns = carried.last_ns
    for item in _merged(spans, lambda span: _new_items(carried, span, settings, last_ns)):
        if isinstance(item, Packet):
            note.packet(len(item.data))
        yield from carried.reading.feed(_renumbered(item, carried))


def _merged(spans: Iterable[FileSpan], items_of: Callable[[FileSpan], Iterator[Item]]) -> Iterator[Item]:
    """The items of spans by packet time; each span keeps its own order. A file is opened when its first
    packet is next. Other items stay after the packet that they follow."""
    waiting = deque(enumerate(spans))
    heap: list[tuple[int, int, Packet, Iterator[Item]]] = []
    while waiting or heap:
        if waiting and (not heap or (waiting[0][1].first_ns or 0) <= heap[0][0]):
            order, span = waiting.popleft()
            items = items_of(span)
        else:
            _, order, packet, items = heappop(heap)
            yield packet
        for item in items:
            if isinstance(item, Packet):
                heappush(heap, (item.timestamp_ns, order, item, items))
                break
            yield item


def _new_items(
    carried: Carried, span: FileSpan, settings: TableSettings, last_ns: int | None
) -> Iterator[Item]:
    """The items of a span that were not taken in yet. After all of them, it notes how far the file was read.

    :param last_ns: the latest time of a packet of earlier batches.
    """
    path = span.path
    if carried.firsts.get(path) not in (None, span.first_ns):
        error = unopened(path) if span.first_ns is None else None
        if error is not None:  # what is known of it stays, until it can be read
            words = f"{path}: cannot be read: {error.strerror or error}{OTHERS_ARE_READ}"
            yield fault("unreadable", words)
            return
        carried.forget(path)
    _know_again(carried, span)
    if path in carried.final:
        grown = span.size - carried.sizes[path]
        if grown > 0:
            words = f"{path}: grew by {grown} bytes after a later file was read; kdissect left these out"
            yield fault("late-file", words, offset=carried.sizes[path])
        elif grown:
            carried.trail = None
            yield fault("rewritten-file", _rewritten_words(path, carried.sizes[path]))
        carried.sizes[path] = span.size
        return
    known = carried.items.get(path, 0)
    if not known and span.first_ns and last_ns is not None and span.first_ns < last_ns:
        yield fault("late-file", _late_words(path, span.first_ns, last_ns))
    before = carried.sums.pop(path, None)
    reading = SpanReading(span, settings.limits, carried.bookmarks.pop(path, None), before)
    taken = known if reading.goes_on else 0
    for item in reading.items():
        taken += 1
        if taken > known:
            yield item
    if reading.is_other and known:
        carried.trail = None  # the bytes that were read do not exist any more
        yield fault("rewritten-file", _rewritten_words(path, carried.sizes[path], known))
    if not span.is_final:
        carried.sums[path] = reading.sum
    if span.is_settled:
        yield from _waiting(reading, taken)
    if reading.bookmark is not None and not span.is_final:
        carried.bookmarks[path] = reading.bookmark
    carried.items[path] = max(taken, known)
    carried.sizes[path] = span.size
    carried.firsts[path] = span.first_ns
    if span.is_final:
        carried.final.add(path)


def _waiting(reading: SpanReading, taken: int) -> Iterator[Fault]:
    """The faults that a file without recent writes would have if it ended here; or the reason why it cannot
    be read."""
    for item in reading.items_at_end(taken):
        if isinstance(item, Fault) and item.kind == "unreadable":
            yield item  # the file may be quite new
        elif isinstance(item, Fault):
            what = item.message.removesuffix(OTHERS_ARE_READ)
            words = f"{what}; nobody has written to it for a long time; kdissect reads on if it grows"
            yield fault("waiting-file", words, offset=item.offset)


def _renumbered(item: Item, carried: Carried) -> Item:
    """An item with the packet's number in the whole stream."""
    if isinstance(item, Packet):
        carried.packets += 1
        carried.last_ns = max(item.timestamp_ns, carried.last_ns or item.timestamp_ns)
        return renumbered(item, carried.packets, item.interface)
    if isinstance(item, Fault) and item.packet is not None:
        return item._replace(packet=carried.packets)
    return item


def _rewritten_words(path: str, size: int, known: int | None = None) -> str:
    left_out = "kdissect did not read it again"
    if known is not None:
        left_out = f"kdissect left out as many packets as it had read: {known:,}"
    return f"{path}: was replaced after {size:,} bytes of it were read; {left_out}"


def _late_words(path: str, first_ns: int, last_ns: int) -> str:
    clock = Clock("u")
    return (
        f"{path}: its first packet is from {clock.text(first_ns)}, but packets up to {clock.text(last_ns)} "
        "were already read; it is read after them"
    )
