"""Captures → events: the only module that reads captures.

    Input   the paths and how to read them: ports, limits, names of topic ids
    Pass    one reading of it from begin to end: packets → events

The library, the command line, the screens and Spark all use it. They add progress, messages and batches.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from kdissect.capture.files import Capture, Opener, open_capture, read_packets
from kdissect.capture.following import Following
from kdissect.capture.reader import Interface, Item, Packets, Points
from kdissect.capture.runs import PacketRun
from kdissect.dissect import Dissector, Event, Numbering
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import CaptureError
from kdissect.names import TopicNames
from kdissect.session.briefs import Interest
from kdissect.session.conversation import Connection, Listener
from kdissect.tls.keylog import TlsSecrets

if TYPE_CHECKING:
    from kdissect.capture.cuts import Cuts, FilePart, PartPackets
    from kdissect.capture.keylogs import KeyLogs
    from kdissect.points.dissector import PointsDissector


class Input(NamedTuple):
    """The input, and how to read it."""

    paths: tuple[str, ...] = ()
    limits: Limits = DEFAULTS
    ports: frozenset[int] = frozenset()
    """Ports whose connections always count as Kafka."""
    topics: Mapping[str, str] = {}
    """Names of topic ids that no capture contains."""
    embedded: bool = False
    """Whether exchanges report faults of the bytes embedded in their messages."""
    points: Points | None = None
    """The capture points of the files, if there are several."""
    open_file: Opener = open_capture
    """Opens a file, for paths outside this machine."""
    open_packets: Callable[[], Packets] | None = None
    """Opens the packets, if they are not simply read from the files from begin to end."""
    adds_tcp: bool = True
    """Whether rows of connections have facts of TCP."""
    briefs: Interest | None = None
    """The questions about exchanges in brief. If set, a :class:`~kdissect.session.briefs.Brief` may replace
    an exchange among the events."""

    def with_points(self) -> Input:
        """The same input, with the capture points found in the files. Followed files have none."""
        if self.open_packets is not None or len(self.paths) < 2:
            return self
        from kdissect.capture.points import find_points

        return self._replace(points=find_points(self.paths, self.limits, self.open_file))

    def packets(self) -> Packets:
        """Open the packets.

        :raises CaptureError: they cannot be opened.
        """
        if self.open_packets is not None:
            return self.open_packets()
        return read_packets(self.paths, self.limits, self.open_file, points=self.points)


class Pass:
    """One reading from begin to end.

    :param secrets: decrypt TLS, besides the secrets in the capture.
    :param key_logs: key logs that are still being written.
    :param names: names of topic ids that are valid from the start.
    :param listener: gets the results of reassembly, for all connections.
    """

    def __init__(
        self,
        source: Input,
        secrets: TlsSecrets | None = None,
        key_logs: KeyLogs | None = None,
        names: TopicNames | None = None,
        listener: Listener | None = None,
    ) -> None:
        self._input = source
        self._key_logs = key_logs
        self._packets: Packets | None = None
        self._part: PartPackets | None = None
        """The same object, if only a part of the file is read."""
        self._dissector = _dissector_of(source, names, secrets, listener)
        teach(self._dissector.names, source.topics)

    def repeat(self, *, with_names: bool = False, listener: Listener | None = None) -> Pass:
        """Another pass over the same input. The secrets found in the capture are used from its start.

        :param with_names: whether the names of topic ids found in it are used from its start, too.
        :param listener: gets the results of reassembly, for all connections.
        """
        names = self.names if with_names else None
        return Pass(self._input, self.secrets, self._key_logs, names, listener)

    # -- what is known ------------------------------------------------------------------------------

    @property
    def points(self) -> Points | None:
        """The capture points, if the input has several."""
        return self._input.points

    @property
    def interfaces(self) -> Sequence[Interface]:
        """The interfaces of the input once it is open, by the index in packets; more may be added."""
        return () if self._packets is None else self._packets.interfaces

    @property
    def packets(self) -> int:
        """The number of packets read."""
        return self._dissector.packets

    @property
    def connections(self) -> int:
        """The number of connections seen."""
        return self._dissector.connections

    @property
    def names(self) -> TopicNames:
        """The known names of topic ids."""
        return self._dissector.names

    @property
    def secrets(self) -> TlsSecrets:
        """The known secrets."""
        return self._dissector.secrets

    @property
    def numbering(self) -> Numbering:
        """Gives the numbers of an input with one capture point. A reading may continue with the numbering of
        another."""
        assert isinstance(self._dissector, Dissector)
        return self._dissector.numbering

    def in_tls(self) -> Iterator[Connection]:
        """The rows, so far, of connections that speak TLS. Another thread may call it."""
        return self._dissector.in_tls()

    def seen_where(self) -> str:
        """How many exchanges each capture point saw, in words; empty if there is only one point."""
        return "" if isinstance(self._dissector, Dissector) else self._dissector.summary()

    # -- in parts -----------------------------------------------------------------------------------

    @property
    def source(self) -> Input:
        """The input."""
        return self._input

    def seams(self, least: int) -> Dissector | None:
        """The dissector for the seams between parts of the input; None if the input must be read as one. Call
        it before reading.

        :param least: the fewest bytes of files that are worth cutting.
        """
        source, dissector = self._input, self._dissector
        if not isinstance(dissector, Dissector) or dissector.packets or dissector.crosses_connections:
            return None
        if source.open_packets is not None or self._key_logs is not None:
            return None
        if not all(os.path.isfile(path) for path in source.paths) or self.file_bytes < least:
            return None
        return dissector

    @property
    def file_bytes(self) -> int:
        """The total size of the files that exist."""
        return sum(os.path.getsize(path) for path in self._input.paths if os.path.isfile(path))

    def cuts(self) -> Cuts | None:
        """Cuts the file of the input without reading it; None if that is impossible."""
        source = self._input
        if len(source.paths) != 1:
            return None
        from kdissect.capture.cuts import Cuts

        try:
            return Cuts(source.paths[0], source.limits)
        except CaptureError:
            return None

    def resume_with(self, part: FilePart) -> None:
        """Read only this part of the file from now on."""
        from kdissect.capture.cuts import PartPackets

        self.close()
        self._packets = self._part = PartPackets(part, self._input.limits)

    # -- reading ------------------------------------------------------------------------------------

    def open(self) -> Packets:
        """Open the input, if it is not open.

        :raises CaptureError: it cannot be opened.
        """
        if self._packets is None:
            self._packets = packets = self._input.packets()
            if isinstance(self._dissector, Dissector):
                can_come = not isinstance(packets, Capture) or packets.can_hold_secrets
                self.secrets.may_grow = can_come or self._key_logs is not None
        return self._packets

    def close(self) -> None:
        """Close the input, even if it was not read to the end."""
        if self._packets is not None:
            self._packets.close()

    def events(self) -> Iterator[Sequence[Event]]:
        """Read everything, and give the events in lists, as they come.

        :raises CaptureError: it cannot be opened.
        """
        try:
            for items in self.items():
                yield from self.feed_all(items)
            yield from ((event,) for event in self.end())
        finally:
            self.close()

    def items(self, *, one_by_one: bool = False) -> Iterator[Sequence[Item | PacketRun]]:
        """The packets and other items of the input, in lists. An empty list is a pause; key logs are read
        after it. Ordinary packets in a row may come as a run.

        :param one_by_one: whether to read only the next item, never several ahead.
        """
        packets = self.open()
        if self._key_logs is not None and isinstance(packets, Following):
            return (() if item is None else (item,) for item in packets.with_pauses())
        if self._part is not None and not one_by_one:
            return self._part.in_runs()
        if isinstance(packets, Capture) and not one_by_one:
            return packets.in_runs() if isinstance(self._dissector, Dissector) else packets.blocks()
        return ((item,) for item in packets)

    def feed(self, item: Item) -> Sequence[Event]:
        """The events of a packet, and of key log lines since the last packet."""
        if self._key_logs is None:
            return self._dissector.feed(item)
        return [*self.key_log_events(), *self._dissector.feed(item)]

    def feed_all(self, items: Sequence[Item | PacketRun]) -> Iterator[Sequence[Event]]:
        """The events of several items, in lists."""
        if self._key_logs is not None:
            yield self.key_log_events()
        if isinstance(self._dissector, Dissector):
            yield from self._dissector.feed_all(items)
        else:
            yield from self._dissector.feed_all(cast(Sequence[Item], items))  # these never come as runs

    def key_log_events(self, now: float | None = None) -> list[Event]:
        """The events of key log lines since the last look.

        :param now: see :meth:`~kdissect.capture.keylogs.KeyLogs.follow`.
        """
        if self._key_logs is None:
            return []
        lines = self._key_logs.follow(time.monotonic() if now is None else now)
        return [event for each in lines for event in self._dissector.feed(each)]

    def end(self) -> Iterator[Event]:
        """End the input, and give the remaining events."""
        yield from self.key_log_events(math.inf)
        yield from self._dissector.close()


def _dissector_of(
    source: Input, names: TopicNames | None, secrets: TlsSecrets | None, listener: Listener | None
) -> Dissector | PointsDissector:
    """The dissector for an input."""
    made: Callable[..., Dissector | PointsDissector] = Dissector
    if source.points is not None:
        from kdissect.points.dissector import dissector_of

        made = partial(dissector_of, source.points)
    return made(
        source.limits,
        source.ports,
        names,
        embedded=source.embedded,
        secrets=secrets,
        adds_tcp=source.adds_tcp,
        listener=listener,
        briefs=source.briefs,
    )


def teach(names: TopicNames, topics: Mapping[str, str]) -> None:
    """Make names of topic ids valid from the start that no capture contains."""
    for topic_id, name in topics.items():
        names.learn(topic_id, name, 0)


def secrets_of(key_logs: Iterable[str], rsa_keys: Iterable[str], limits: Limits) -> TlsSecrets:
    """The secrets in key logs (or directories of them) and private keys of brokers.

    :raises CaptureError: a file cannot be read, or a key cannot be used; the text has one line.
    """
    from kdissect.capture.keylogs import KeyLogs

    secrets = TlsSecrets(limits)
    for path in rsa_keys:
        secrets.add_rsa_key(read_rsa_key(path))
    for item in KeyLogs(key_logs).read():
        secrets.add(item.data)
    return secrets


def read_rsa_key(path: str) -> bytes:
    """Read a private key for decrypting TLS from a file.

    :raises CaptureError: it cannot be read, or cannot be used; the text has one line.
    """
    from kdissect.tls.crypto import load_rsa_key

    try:
        with open(path, "rb") as file:
            data = file.read()
        load_rsa_key(data)
    except OSError as error:
        raise CaptureError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CaptureError(f"{path}: cannot be used as an RSA private key: {error}") from error
    return data
