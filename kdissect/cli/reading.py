"""Reads captures for a command: events, with counts, progress and messages about damage."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from kdissect.capture.reader import PACKET_OVERHEAD, Interface, Item, Packets, Points, first_time
from kdissect.capture.runs import PacketRun
from kdissect.cli.config import Config
from kdissect.cli.errors import Complaints, Unreadable, complain
from kdissect.cli.exit_codes import DONE, FAULTS_SEEN, NOTHING_MATCHED, UNREADABLE
from kdissect.cli.inputs import open_file, ports_of, read_twice
from kdissect.cli.interrupts import EndOfInput
from kdissect.cli.tally import Tally
from kdissect.cli.tls_keys import Keys, keys_of
from kdissect.collector import rarely_collected
from kdissect.dissect import Dissector, Event
from kdissect.exchange import Exchange
from kdissect.model import CaptureError, Fault, Packet, Secrets
from kdissect.names import TopicNames
from kdissect.present.form import plural
from kdissect.present.options import Options
from kdissect.session.briefs import Brief, Interest, without_briefs
from kdissect.session.conversation import Listener
from kdissect.source import Input, Pass
from kdissect.tls.keylog import TlsSecrets

if TYPE_CHECKING:
    from kdissect.capture.cuts import Cuts, FilePart

PROGRESS_AFTER, PROGRESS_EVERY = 1.0, 0.2
"""Seconds before the progress is first shown, and between two updates."""
_CAPTURE_ENDED = "capture ended"
"""The value of :attr:`~kdissect.exchange.Exchange.missing` if the input ended before the response."""


class Reading:
    """One reading of captures; iterate over it for its events.

    It counts exchanges, connections and faults, and reports damage to the files on stderr.
    """

    def __init__(
        self,
        paths: Iterable[str],
        options: Options,
        ports: frozenset[int] = frozenset(),
        topics: Mapping[str, str] | None = None,
        *,
        progress: bool = False,
        count_faults: bool = False,
        unpacks: bool = True,
        adds_tcp: bool = True,
        briefs: Interest | None = None,
        keys: Keys | None = None,
        opener: Callable[[], Packets] | None = None,
    ) -> None:
        """
        :param briefs: the needs of the caller, if events may have a :class:`~kdissect.session.briefs.Brief`
            in place of an exchange.
        :param unpacks: whether compressed records are unpacked to count faults.
        :param adds_tcp: whether rows of connections have their TCP columns.
        :param opener: gives the packets, if the files are not simply read from beginning to end.
        """
        self.first_ns: int | None = None
        """The time of the first packet."""
        self.is_damaged = False
        self.is_interrupted = False
        """Whether Ctrl-C has ended the input."""
        self.exchanges = 0
        self.tally = Tally(count_faults, unpacks)
        self.is_counted_elsewhere = False
        """Whether another object adds the events to :attr:`tally`."""
        self.keep: Callable[[Packet | Secrets], None] | None = None
        """Receives every packet when it is read, if it is set before reading begins."""
        self.parts: Callable[[EndOfInput], Iterable[Sequence[Event]]] | None = None
        """Reads the beginning of the input in parts, if it is set before reading begins. It gives the events
        that are not counted yet."""
        self.one_by_one = False
        """Whether to read and count only what the caller asks for."""
        self.paths = tuple(paths)
        """The paths. An input that can be read only once is kept in a file if it is read more often."""
        self._names_file = opener is None and len(self.paths) == 1
        """Whether a complaint must name the file. If there are several files, or followed ones, the fault
        names it."""
        known = Keys() if keys is None else keys
        source = Input(
            *(self.paths, options.limits, ports, topics or {}, options.embedded, None, open_file, opener),
            adds_tcp=adds_tcp,
            briefs=briefs,
        )
        self._pass = Pass(source.with_points(), known.secrets, known.growing)
        self._items: Iterator[Sequence[Item | PacketRun]] | None = None
        """The input, once reading has begun."""
        self._ahead: Sequence[Item | PacketRun] = ()
        """Items that come before the rest of the input."""
        self._progress = ProgressLine(self.paths) if progress else None
        self._complaints = Complaints()

    def read_before(self, names: bool, learn: Callable[[Event], None] | None = None) -> None:
        """Read the capture once in advance.

        :param names: whether its names of topic ids then apply from the start.
        :param learn: receives every event.
        """
        first = self._pass.repeat()
        with _capture_errors():
            for items in first.items():
                for events in first.feed_all(items):
                    if learn is not None:
                        for event in events:
                            learn(event)
                if self._progress is not None:
                    self._progress.packets(items, self)
        for event in first.end():
            if learn is not None:
                learn(event)
        first.close()
        if names:
            self._pass.close()
            self._pass = first.repeat(with_names=True)

    def listen(self, listener: Listener) -> None:
        """Give a listener the output of reassembly, from the next reading on."""
        self._pass.close()
        self._pass = self._pass.repeat(listener=listener)

    def open(self) -> None:
        """Open the input. Reading would do it too, but an output should be replaced only if there is an
        input.

        :raises Unreadable: none of the files can be read.
        """
        with _capture_errors():
            self._pass.open()

    def close(self) -> None:
        """Close the input, even if it was not read to its end."""
        self._pass.close()

    def seams(self, least: int) -> Dissector | None:
        """As :meth:`kdissect.source.Pass.seams`; None if packets are also needed one by one."""
        return None if self.keep is not None or self.one_by_one else self._pass.seams(least)

    def cuts(self) -> Cuts | None:
        """As :meth:`kdissect.source.Pass.cuts`."""
        return self._pass.cuts()

    @property
    def file_bytes(self) -> int:
        """As :attr:`kdissect.source.Pass.file_bytes`."""
        return self._pass.file_bytes

    def items(self, end: EndOfInput) -> Iterator[Sequence[Item | PacketRun]]:
        """The remaining input, in lists, up to its end."""
        if self._items is None:
            one_by_one = self.keep is not None or self.one_by_one
            self._items = end.items(self._pass.items(one_by_one=one_by_one))
        for items in self._items:
            self._note(items)
            yield items

    def resume_with(self, part: FilePart) -> None:
        """As :meth:`kdissect.source.Pass.resume_with`."""
        self._pass.resume_with(part)
        self._items = None

    def put_back(self, items: Sequence[Item | PacketRun]) -> None:
        """Take items back, to give them out again."""
        self._ahead = items

    @property
    def source(self) -> Input:
        """The input and how it is read."""
        return self._pass.source

    @property
    def points(self) -> Points | None:
        """The capture points of the input, if there are several."""
        return self._pass.points

    @property
    def interfaces(self) -> Sequence[Interface]:
        """The interfaces of the input once it is open, by the index that packets have. The list grows."""
        return self._pass.interfaces

    @property
    def secrets(self) -> TlsSecrets:
        """The secrets that decrypt TLS."""
        return self._pass.secrets

    @property
    def packets(self) -> int:
        """How many packets were read."""
        return self._pass.packets

    @property
    def names(self) -> TopicNames:
        """The known names of topic ids."""
        return self._pass.names

    def __iter__(self) -> Iterator[Event]:
        """The events. If Ctrl-C ends the input, the events of its end come first.

        :raises KeyboardInterrupt: after those.
        """
        return chain.from_iterable(self.events())

    def events(self) -> Generator[Sequence[Event]]:
        """The events, in lists of those that came together."""
        with EndOfInput() as end, rarely_collected():
            yield from self._events(end)
        if self.is_interrupted:
            raise KeyboardInterrupt

    def _events(self, end: EndOfInput) -> Iterator[Sequence[Event]]:
        self.open()
        try:
            if self.parts is not None:
                for events in self.parts(end):
                    yield self._counted(events)
            for items in chain((self._ahead,) if self._ahead else (), self.items(end)):
                for events in self._pass.feed_all(items):
                    if self.one_by_one:
                        yield from (self._counted((event,)) for event in events)
                    else:
                        yield self._counted(events)
            self.is_interrupted = end.is_reached
            for event in self._pass.end():
                # If the input was not read to its end, it is not known that an answer is missing.
                if end.is_reached and isinstance(event, Exchange) and event.missing == _CAPTURE_ENDED:
                    continue
                yield self._counted((event,))
        finally:
            self.close()
            if self._progress is not None:
                self._progress.clear()
            self._complaints.close()

    def _note(self, items: Sequence[Item | PacketRun]) -> None:
        """Keep packets and show the progress, beside the dissection."""
        if self.keep is not None:
            for item in items:
                if not isinstance(item, Fault | PacketRun):
                    self.keep(item)
        if self.first_ns is None:
            self.first_ns = first_time(items)
        if self._progress is not None:
            self._progress.packets(items, self)

    def _counted(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events, after counting them."""
        looks_inside = self.tally.looks_inside and not self.is_counted_elsewhere
        others: Sequence[Event] = events if looks_inside else without_briefs(events)
        self.exchanges += len(events) - len(others)
        for event in others:
            if isinstance(event, Exchange | Brief):
                self.exchanges += 1
                if looks_inside:
                    self.tally.add(event)
                continue
            if isinstance(event, Fault) and event.layer == "file":
                self._complain(event)
            if not self.is_counted_elsewhere:
                self.tally.add(event)
        return events

    def _complain(self, fault: Fault) -> None:
        self.is_damaged = True
        if self._progress is not None:
            self._progress.clear()
        self._complaints.report_fault(self.paths[0] if self._names_file else None, fault)

    def in_tls(self) -> str:
        """The TLS connections that are not decrypted so far, in words; empty if all are. Another thread may
        call it."""
        tally = self.tally.part()
        for connection in self._pass.in_tls():
            if (connection.tls or {}).get("dark"):
                tally.add(connection)
        return tally.not_decoded()

    def summary(self) -> str:
        """The closing line."""
        parts = [
            plural(self._pass.packets, "packet"),
            plural(self._pass.connections, "connection"),
            plural(self.exchanges, "exchange"),
            plural(self.tally.faults, "fault"),
        ]
        text = ", ".join(parts)
        if seen_where := self._pass.seen_where():
            text += f"; {seen_where}"
        not_decoded = self.tally.not_decoded()
        return f"{text}; not decoded: {not_decoded}" if not_decoded else text

    def exit_code(self, talks: bool, strict: bool, shown: bool, name: str = "") -> int:
        """Print the closing line, and if there is no Kafka, what there is instead; return the exit code.

        :param talks: whether to print that line.
        :param strict: whether faults affect the exit code.
        :param shown: whether there was anything to show, or whether that does not matter.
        :param name: the name of the input, if a command reads several.
        """
        if talks:
            complain(self.summary())
        if not self.exchanges and (self._pass.packets or not self.is_damaged):
            complain(f"{name}: " * bool(name) + self.tally.no_kafka.text(self._pass.packets))
        if self.is_damaged:
            return UNREADABLE
        if strict and self.tally.faults:
            return FAULTS_SEEN
        return DONE if shown else NOTHING_MATCHED

    def progress_text(self) -> str:
        """The counts so far."""
        return f"{plural(self._pass.packets, 'packet')}, {plural(self.exchanges, 'exchange')}"


class ProgressLine:
    """A line on stderr that shows the progress of reading."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._total = sum(os.path.getsize(path) for path in paths if os.path.isfile(path))
        self._read = 0
        self._next = time.monotonic() + PROGRESS_AFTER
        self._shown = False

    def packets(self, items: Iterable[Item | PacketRun], reading: Reading) -> None:
        """Take in packets that were read."""
        for item in items:
            if isinstance(item, PacketRun):
                self._read += item.size
            elif isinstance(item, Packet):
                self._read += len(item.data) + PACKET_OVERHEAD
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PROGRESS_EVERY
        # The share cannot be computed for compressed files: they give more bytes than they have.
        share = f"{100 * self._read // self._total} %, " if 0 < self._read <= self._total else ""
        sys.stderr.write(f"\r\x1b[Kkdissect: {share}{reading.progress_text()}")
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Clear the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False


@contextmanager
def reading_of(
    given: Mapping[str, Any],
    paths: tuple[str, ...],
    config: Config,
    options: Options,
    *,
    twice: bool = False,
    progress: bool = False,
    count_faults: bool = False,
    unpacks: bool = True,
    adds_tcp: bool = True,
    briefs: Interest | None = None,
    growing: bool = False,
    opener: Callable[[], Packets] | None = None,
) -> Iterator[Reading]:
    """Read the captures of a command, by its options and the configuration.

    :param twice: whether they are read more than once.
    :param unpacks: whether compressed records are unpacked to count faults.
    :param adds_tcp: whether rows of connections have their TCP columns.
    :param briefs: as for :class:`Reading`.
    :param growing: whether packets come as they are captured.
    :param opener: gives the packets, if the files are not simply read from beginning to end.
    """
    ports = config.ports | ports_of(given["decode_as"])
    keys = keys_of(given, config.limits, growing=growing)
    with read_twice(paths, twice) as readable:
        reading = Reading(
            readable,
            options,
            ports,
            config.topics,
            progress=progress,
            count_faults=count_faults,
            unpacks=unpacks,
            adds_tcp=adds_tcp,
            briefs=briefs,
            keys=keys,
            opener=opener,
        )
        with closing(reading):
            yield reading


@contextmanager
def _capture_errors() -> Iterator[None]:
    try:
        yield
    except CaptureError as error:
        raise Unreadable(str(error)) from None
