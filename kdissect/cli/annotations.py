"""``--comment``: comments on the packets that are written, collected while the capture is read."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import BinaryIO

from kdissect.analysis.whole import WholeFold
from kdissect.cli.annotating import EXCHANGES, FINDINGS, Renumber
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.insight.judge import Judge, Judged
from kdissect.limits import Limits
from kdissect.model import Packet
from kdissect.present.comments import (
    exchange_comment,
    finding_comments,
    request_comment,
    section_comment,
    with_packets,
)
from kdissect.present.options import Options

_head = Struct("<Iqq")
"""The header of each text in the file: its length, and the packets of request and response."""


class Annotations:
    """Collects comments on packets.

    :param kinds: which of :data:`KINDS`.
    :param file: keeps the texts until they are written.
    """

    def __init__(self, kinds: Iterable[str], options: Options, limits: Limits, file: BinaryIO) -> None:
        kinds = frozenset(kinds)
        self._options = options
        self._file = file
        self._size = 0
        self._whole = WholeFold(lambda: Judge(limits)) if FINDINGS in kinds else None
        self._tells_exchanges = EXCHANGES in kinds
        self._exchanges = 0
        self._packets = array("q")
        """For each exchange, by number: the packets that completed request and response; 0 for none."""
        self._packet_of, self._place_of = array("q"), array("q")
        """For each text: its packet, and its place in the file. These are arrays of numbers, because a
        capture has many texts."""
        self._order: Sequence[int] = ()
        """The indexes of the texts, in the order of packets."""
        self._of_findings: dict[int, list[str]] = {}
        self._judged: Judged | None = None

    def pass_through(self, events: Iterable[Sequence[Event]]) -> Iterator[Sequence[Event]]:
        """Pass events through, and take them in."""
        for several in events:
            for event in several:
                self.feed(event)
            yield several

    def feed(self, event: Event) -> None:
        """Take in an event."""
        if self._whole is not None:
            self._whole.feed(event)
        if not isinstance(event, Exchange):
            return
        self._exchanges += 1
        at = 2 * event.number
        if len(self._packets) < at + 2:
            self._packets.extend([0] * (at + 2 - len(self._packets)))
        self._packets[at] = event.request_packet or 0
        self._packets[at + 1] = event.response_packet or 0
        if not self._tells_exchanges:
            return
        asked, answered = self._packets[at : at + 2]
        if asked and answered:
            self._keep(asked, request_comment(event, self._options), 0, answered)
        self._keep(answered or asked, exchange_comment(event, self._options), asked, answered)

    def _keep(self, packet: int, text: str, asked: int, answered: int) -> None:
        data = text.encode()
        self._file.write(_head.pack(len(data), asked, answered) + data)
        self._packet_of.append(packet)
        self._place_of.append(self._size)
        self._size += _head.size + len(data)

    def judge(self, thresholds: Mapping[str, Mapping[str, float]], ignored: Iterable[str]) -> None:
        """Judge the capture by the rules, after all of it was read.

        :param thresholds: thresholds of the configuration, by rule.
        :param ignored: rules that are not run.
        """
        self._order = array("q", sorted(range(len(self._packet_of)), key=self._packet_of.__getitem__))
        if self._whole is None:
            return
        self._whole.finish()
        self._judged = self._whole.counted.judged(thresholds, tuple(ignored))
        for finding in self._judged.findings:
            for number, text in finding_comments(finding):
                for packet in finding.packets if number is None else self._packets_of(number):
                    said = self._of_findings.setdefault(packet, [])
                    if text not in said:
                        said.append(text)

    def _packets_of(self, number: int) -> Sequence[int]:
        return [each for each in self._packets[2 * number : 2 * number + 2] if each]

    def section_text(self) -> str | None:
        """The comment on the whole capture, if it has one."""
        return None if self._judged is None else section_comment(self._judged, self._exchanges)

    def commented(self, packets: Iterable[Packet], renumber: Renumber) -> Iterator[Packet]:
        """The packets, in the order of their numbers, with their comments. A comment that a packet already
        has is not repeated."""
        at = 0
        for packet in packets:
            said = list(packet.comments)
            fresh = list(self._of_findings.get(packet.number, ()))
            at = bisect_left(self._order, packet.number, at, key=self._packet_of.__getitem__)
            while at < len(self._order) and self._packet_of[self._order[at]] == packet.number:
                fresh.append(self._text(self._place_of[self._order[at]], renumber))
                at += 1
            said += [text for text in fresh if text not in said]
            yield packet._replace(comments=tuple(said)) if fresh else packet

    def _text(self, place: int, renumber: Renumber) -> str:
        """The text at a place of the file, with the packets of its exchange."""
        self._file.seek(place)
        size, asked, answered = _head.unpack(self._file.read(_head.size))
        text = self._file.read(size).decode()
        return with_packets(text, (_there(asked, renumber), _there(answered, renumber)))


@contextmanager
def annotations_of(kinds: Iterable[str], options: Options, limits: Limits) -> Iterator[Annotations]:
    """The collector of comments, with a file for its texts."""
    from tempfile import TemporaryFile  # only a copy with comments needs it

    with TemporaryFile(prefix="kdissect-") as file:
        yield Annotations(kinds, options, limits, file)


def _there(packet: int, renumber: Renumber) -> int | None:
    return renumber(packet) if packet else None
