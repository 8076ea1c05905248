"""One capture → the events of one task: everything is dissected, and the task's share is given.

Each of a capture's tasks makes the same numbers and names, because each reads all of it with one ordinary
Dissector, as ``kdissect read`` does; what a share saves is making rows, which is the dear part. Exchanges
go to the task that has the fewest bytes so far, so that no connection and no message is anybody's burden
alone. Whatever is no exchange is the first task's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdissect.capture.files import read_packets
from kdissect.capture.keylogs import KeyLogs
from kdissect.capture.reader import Points
from kdissect.dissect import Dissector, Event, Numbering
from kdissect.exchange import Exchange
from kdissect.faults import fault
from kdissect.model import CaptureError, Fault, Packet, Secrets
from kdissect.names import TopicNames
from kdissect.points.dissector import PointsDissector, dissector_of
from kdissect.reading import read_rsa_key
from kdissect.spark.progress import Note
from kdissect.spark.settings import Settings
from kdissect.spark.storage import open_file
from kdissect.tls.keylog import Secrets as KnownSecrets

EXCHANGE_COST = 2_048
"""What a row costs beside its bytes, in bytes."""


class Shares:
    """Whose an exchange is; every task must ask for the same exchanges in the same order."""

    def __init__(self, count: int) -> None:
        self._loads = [0] * count

    def owner(self, exchange: Exchange) -> int:
        """The task that makes its rows."""
        loads = self._loads
        owner = loads.index(min(loads))
        loads[owner] += EXCHANGE_COST + size_of(exchange)
        return owner


def size_of(exchange: Exchange) -> int:
    """Bytes of its messages."""
    return sum(len(message.frame.payload) for message in exchange.messages)


def share_of(paths: Sequence[str], settings: Settings, index: int, count: int, note: Note) -> Iterator[Event]:
    """The events of the task ``index`` of ``count``."""
    shares = Shares(count)
    for event in all_events(paths, settings, note):
        if (shares.owner(event) if isinstance(event, Exchange) else 0) == index:
            yield event


def packets_of(
    paths: Sequence[str], settings: Settings, points: Points | None = None
) -> Iterator[Packet | Secrets | Fault]:
    """The packets of these files, with what is wrong with them; also that none of them is a capture: among
    other captures that is no reason to end."""
    try:
        capture = read_packets(paths, settings.limits, open_file, points=points)
    except CaptureError as error:
        kind = "unreadable" if isinstance(error.__cause__, OSError) else "not-a-capture"
        return iter((fault(kind, str(error)),))
    return iter(capture)


def damage_of(paths: Sequence[str], settings: Settings, note: Note) -> Iterator[Fault]:
    """What is wrong with the files."""
    for item in packets_of(paths, settings):
        if isinstance(item, Fault):
            yield item
        elif isinstance(item, Packet):
            note.packet(len(item.data))


def new_dissector(
    settings: Settings,
    names: TopicNames | None = None,
    numbering: Numbering | None = None,
    learned: TopicNames | None = None,
) -> Dissector:
    """A dissector as the settings ask for it.

    :param names: names that hold from the start.
    :param learned: takes the names that are learned, where none hold from the start.
    :raises CaptureError: a key log, or a key, cannot be read.
    """
    dissector = Dissector(settings.limits, settings.ports, names, numbering, secrets=_secrets_of(settings))
    if learned is not None:
        dissector.names = learned
    _learn_topics(dissector.names, settings)
    return dissector


def _secrets_of(settings: Settings) -> KnownSecrets:
    secrets = KnownSecrets(settings.limits)
    secrets.rsa_keys = rsa_keys_of(settings)
    for item in KeyLogs(settings.keylog).read():
        secrets.add(item.data)
    return secrets


def _learn_topics(names: TopicNames, settings: Settings) -> None:
    for topic_id, name in settings.topics.items():
        names.learn(topic_id, name, 0)


def rsa_keys_of(settings: Settings) -> tuple[bytes, ...]:
    """The private keys that the settings name.

    :raises CaptureError: one cannot be read, or is none.
    """
    return tuple(map(read_rsa_key, settings.rsa_key))


def all_events(
    paths: Sequence[str], settings: Settings, note: Note, points: Points | None = None
) -> Iterator[Event]:
    """All events of a capture, with the numbers and names that ``kdissect read`` gives.

    :param points: the capture points of the files, where they are of several.
    """
    names = _names_in(paths, settings, note) if settings.two_pass else None
    if points is None:
        dissector: Dissector | PointsDissector = new_dissector(settings, names)
    else:
        points = points._replace(of_interface={})  # it grows while packets are read
        secrets = _secrets_of(settings)
        dissector = dissector_of(points, settings.limits, settings.ports, names, secrets=secrets)
        _learn_topics(dissector.names, settings)
    for events in dissector.feed_all(_noted(paths, settings, note, points)):
        yield from events
    yield from dissector.close()


def _noted(
    paths: Sequence[str], settings: Settings, note: Note, points: Points | None = None
) -> Iterator[Packet | Secrets | Fault]:
    """What the captures hold, noted as it is read."""
    for item in packets_of(paths, settings, points):
        if isinstance(item, Packet):
            note.packet(len(item.data))
        yield item


def _names_in(paths: Sequence[str], settings: Settings, note: Note) -> TopicNames:
    dissector = new_dissector(settings)
    for _ in dissector.feed_all(_noted(paths, settings, note)):
        pass
    for _ in dissector.close():
        pass
    return dissector.names
