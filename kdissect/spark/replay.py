"""One capture → the events of one task: it dissects everything, and gives the task's share.

Every task of a capture computes the same numbers and names, because each reads all of it in one ordinary
pass, as ``kdissect read`` does. Sharing saves the making of rows, which costs most. Each exchange goes to the
task with the fewest bytes so far, so that no task gets all of a large connection. The first task gets
everything that is not an exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from kdissect.capture.files import read_packets
from kdissect.capture.reader import Item, Points
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.faults import fault
from kdissect.model import CaptureError, Fault
from kdissect.source import Input, Pass, secrets_of
from kdissect.spark.progress import Note
from kdissect.spark.settings import TableSettings
from kdissect.spark.storage import counting

EXCHANGE_COST = 2_048
"""The cost of a row beside its bytes, in bytes."""


class Shares:
    """Assigns exchanges to tasks. Every task must ask for the same exchanges in the same order."""

    def __init__(self, count: int) -> None:
        self._loads = [0] * count

    def owner(self, exchange: Exchange) -> int:
        """The task that makes its rows."""
        loads = self._loads
        owner = loads.index(min(loads))
        loads[owner] += EXCHANGE_COST + size_of(exchange)
        return owner


def size_of(exchange: Exchange) -> int:
    """The bytes of its messages."""
    return sum(len(message.frame.payload) for message in exchange.messages)


def share_of(
    paths: Sequence[str], settings: TableSettings, index: int, count: int, note: Note
) -> Iterator[Event]:
    """The events of the task ``index`` of ``count``. The first task has all other events; exchanges are
    shared.

    :raises CaptureError: a key log, or a key, cannot be read.
    """
    shares = Shares(count)
    for event in all_events(paths, settings, note):
        if (shares.owner(event) if isinstance(event, Exchange) else 0) == index:
            yield event


def packets_of(
    paths: Sequence[str], settings: TableSettings, note: Note, points: Points | None = None
) -> Iterator[Sequence[Item]]:
    """The packets of these files, with their faults, in lists. If none of the files is a capture, that is a
    fault too, because among other captures it is no reason to end.
    """
    try:
        capture = read_packets(paths, settings.limits, counting(note.took), points=points)
    except CaptureError as error:
        kind = "unreadable" if isinstance(error.__cause__, OSError) else "not-a-capture"
        return iter(((fault(kind, str(error)),),))
    return capture.blocks()


def damage_of(paths: Sequence[str], settings: TableSettings, note: Note) -> Iterator[Fault]:
    """The faults of the files."""
    for items in packets_of(paths, settings, note):
        for item in items:
            if isinstance(item, Fault):
                yield item


def new_pass(settings: TableSettings, paths: Sequence[str] = (), points: Points | None = None) -> Pass:
    """A reading from the beginning, as the settings ask for it.

    :param paths: the files to read; a stream has none, and feeds its items itself.
    :raises CaptureError: a key log, or a key, cannot be read.
    """
    source = Input(tuple(paths), settings.limits, settings.ports, settings.topics, points=points)
    return Pass(source, secrets_of(settings.keylog, settings.rsa_key, settings.limits))


def all_events(
    paths: Sequence[str], settings: TableSettings, note: Note, points: Points | None = None
) -> Iterator[Event]:
    """All events of a capture, with the numbers and names that ``kdissect read`` gives.

    :param points: the capture points of the files, if there are several.
    :raises CaptureError: a key log, or a key, cannot be read. Faults of captures are events.
    """
    for _, events in all_blocks(paths, settings, note, points):
        yield from events


def all_blocks(
    paths: Sequence[str], settings: TableSettings, note: Note, points: Points | None = None
) -> Iterator[tuple[Sequence[Item], Iterator[Event]]]:
    """Packets that come together, with their events, which must be taken before the next packets.

    :raises CaptureError: as :func:`all_events`.
    """
    if points is not None:
        points = points._replace(of_interface={})  # this dict grows while packets are read
    reading = last_pass(paths, settings, note, points)
    yield from blocks_of(reading, settings, note)


def last_pass(
    paths: Sequence[str], settings: TableSettings, note: Note, points: Points | None = None
) -> Pass:
    """The pass whose events count. With ``--two-pass``, a pass before it has learned the names.

    :raises CaptureError: as :func:`all_events`.
    """
    reading = new_pass(settings, paths, points)
    if settings.two_pass:
        for items in packets_of(paths, settings, note, points):
            for _ in reading.feed_all(items):
                pass
        for _ in reading.end():
            pass
        reading = reading.repeat(with_names=True)
    return reading


def blocks_of(
    reading: Pass, settings: TableSettings, note: Note
) -> Iterator[tuple[Sequence[Item], Iterator[Event]]]:
    """As :func:`all_blocks`, but for a given pass."""
    for items in packets_of(reading.source.paths, settings, note, reading.points):
        yield items, chain.from_iterable(reading.feed_all(items))
    yield (), reading.end()
