"""One batch of a stream: what appeared of a capture point → its events, and what is carried on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from kdissect.capture.files import read_packets
from kdissect.capture.keylogs import KeyLogs
from kdissect.capture.reader import Item
from kdissect.dissect import Event
from kdissect.faults import fault
from kdissect.model import CaptureError, Fault, Packet, renumbered
from kdissect.present.form import Clock
from kdissect.source import read_rsa_key
from kdissect.spark.carried import Carried, States
from kdissect.spark.progress import Note
from kdissect.spark.replay import new_dissector
from kdissect.spark.settings import Settings
from kdissect.spark.spool import Span, limited
from kdissect.spark.twins import twins

OTHERS_ARE_READ = "; the other files are read"


def events_of_batch(
    states: States, batch: int, point: str, spans: Iterable[Span], settings: Settings, note: Note
) -> Iterator[Event]:
    """What the spans bring to light; the state is kept when all has been given.

    :raises StateError: the state cannot be used.
    """
    carried = states.load(point, batch)
    if carried is None:
        carried = Carried(new_dissector(settings))
    else:
        yield from _learn(carried, settings)
    for span in spans:
        if span.is_gone:
            yield from _gone(carried, span)
            continue
        if carried.firsts.get(span.path) not in (None, span.first_ns):
            carried.forget(span.path)
        _know_again(carried, span)
        yield from _events_of_span(carried, span, settings, note)
    carried.dissector.secrets.rsa_keys = ()  # private keys stay where they are
    states.save(point, batch, carried)


def events_at_end(states: States, batch: int, point: str, settings: Settings) -> Iterator[Event]:
    """What comes to light when nothing more is to come. The state remains, and the stream may go on."""
    carried = states.load(point, batch)
    if carried is None:
        return
    yield from _learn(carried, settings)
    for path in list(carried.items):
        if path not in carried.final:
            span = Span(point, path, carried.sizes[path], True, carried.firsts[path], False)
            yield from _events_of_span(carried, span, settings, Note(None, ""))
    yield from carried.dissector.close()


def _learn(carried: Carried, settings: Settings) -> Iterator[Event]:
    """Take in TLS secrets again: key logs have grown since the batch before, private keys were not kept."""
    carried.dissector.secrets.rsa_keys = tuple(map(read_rsa_key, settings.rsa_key))
    for lines in KeyLogs(settings.keylog).read():
        yield from carried.dissector.feed(lines)


def _know_again(carried: Carried, span: Span) -> None:
    """See whether it was read under another name, before it was compressed or unpacked."""
    if span.path in carried.items or not span.first_ns:
        return
    for twin in twins(span.path):
        if carried.firsts.get(twin) == span.first_ns:
            carried.rename(twin, span.path)
            carried.sizes[span.path] = span.size  # that of the other form is no measure
            return


def _gone(carried: Carried, span: Span) -> Iterator[Fault]:
    """A file is no more there. If somebody wrote to it shortly before, nobody knows what is missing; at the
    end of one that had settled, what was wrong was told."""
    if span.path in carried.items and span.path not in carried.final and not span.is_settled:
        read = carried.sizes[span.path]
        words = f"{span.path}: is gone; what it had behind byte {read:,} was not read"
        yield fault("unreadable", words, offset=read)
    carried.forget(span.path)


def _events_of_span(carried: Carried, span: Span, settings: Settings, note: Note) -> Iterator[Event]:
    if span.path in carried.final:
        if grown := span.size - carried.sizes[span.path]:
            words = f"{span.path}: grew by {grown} bytes after a later file was read; they are left out"
            yield fault("late-file", words, offset=carried.sizes[span.path])
        carried.sizes[span.path] = span.size
        return
    known = carried.items.get(span.path, 0)
    if not known and _is_late(carried, span):
        yield fault("late-file", _late_words(carried, span))
    taken = 0
    for item in _items(span, settings):
        taken += 1
        if taken > known:
            if isinstance(item, Packet):
                note.packet(len(item.data))
            yield from carried.dissector.feed(_renumbered(item, carried))
    if span.is_settled:
        yield from _waiting(span, settings, taken)
    carried.items[span.path] = max(taken, known)
    carried.sizes[span.path] = span.size
    carried.firsts[span.path] = span.first_ns
    if span.is_final:
        carried.final.add(span.path)


def _waiting(span: Span, settings: Settings, taken: int) -> Iterator[Fault]:
    """What would be wrong with a file that nobody has written to for long, if it ended here."""
    for item in islice(_items(span._replace(is_final=True), settings), taken, None):
        if isinstance(item, Fault):
            what = item.message.removesuffix(OTHERS_ARE_READ)
            words = f"{what}; nobody has written to it for long, and it is read on if it grows"
            yield fault("waiting-file", words, offset=item.offset)


def _items(span: Span, settings: Settings) -> Iterator[Item]:
    """What the span holds. Of a file that is not final what comes at its end is left for later."""
    try:
        unfinished = () if span.is_final else (span.path,)
        for item in read_packets([span.path], settings.limits, limited(span.size), unfinished):
            yield item._replace(message=f"{span.path}: {item.message}") if isinstance(item, Fault) else item
    except CaptureError as error:
        if span.is_final:
            kind = "unreadable" if isinstance(error.__cause__, OSError) else "not-a-capture"
            yield fault(kind, f"{error}{OTHERS_ARE_READ}")


def _renumbered(item: Item, carried: Carried) -> Item:
    """With the packet's number in the whole stream."""
    if isinstance(item, Packet):
        carried.packets += 1
        carried.last_ns = max(item.timestamp_ns, carried.last_ns or item.timestamp_ns)
        return renumbered(item, carried.packets, item.interface)
    if isinstance(item, Fault) and item.packet is not None:
        return item._replace(packet=carried.packets)
    return item


def _is_late(carried: Carried, span: Span) -> bool:
    return bool(span.first_ns) and carried.last_ns is not None and (span.first_ns or 0) < carried.last_ns


def _late_words(carried: Carried, span: Span) -> str:
    clock = Clock("u")
    return (
        f"{span.path}: its first packet is of {clock.text(span.first_ns or 0)}, packets up to"
        f" {clock.text(carried.last_ns or 0)} were read before; it is read after them"
    )
