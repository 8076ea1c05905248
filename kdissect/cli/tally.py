"""Counts faults and undecoded parts of the events of a reading."""

from __future__ import annotations

from collections import Counter

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.message import Token
from kdissect.model import Fault
from kdissect.present.form import plural
from kdissect.present.no_kafka import NoKafka
from kdissect.present.tls import HOW_TO, NO_SECRET, why_dark
from kdissect.session.briefs import Brief
from kdissect.session.conversation import Connection


class Tally:
    """Counts events. Separate counts can be merged."""

    def __init__(self, looks_inside: bool, unpacks: bool = True) -> None:
        """
        :param looks_inside: whether exchanges are decoded to find their faults.
        :param unpacks: whether compressed records are unpacked for that too.
        """
        self.looks_inside = looks_inside
        self.unpacks = unpacks
        self.faults = 0
        self.no_kafka = NoKafka()
        """The message if there is no exchange."""
        self._not_decoded: Counter[str] = Counter()

    def part(self) -> Tally:
        """An empty tally for some of the events."""
        return Tally(self.looks_inside, self.unpacks)

    def add(self, event: Event) -> None:
        """Count an event."""
        if isinstance(event, Brief):
            # It has no fault, as far as that is known without unpacking.
            if self.looks_inside and self.unpacks and event.has_records():
                self._exchange(event.exchange())
            return
        if isinstance(event, Exchange):
            if self.looks_inside:
                self._exchange(event)
        elif isinstance(event, Fault):
            self.faults += 1
        elif not event.is_copy:
            self._connection(event)

    def merge(self, later: Tally) -> None:
        """Add the counts of later events."""
        self.faults += later.faults
        self.no_kafka.merge(later.no_kafka)
        self._not_decoded.update(later._not_decoded)

    def _exchange(self, exchange: Exchange) -> None:
        self.faults += len(exchange.faults if self.unpacks else exchange.cheap_faults)
        for message in exchange.messages:
            if isinstance(message, Token) or message.survey() is not None:
                continue
            body = message.decoded()
            if body.opaque is not None:
                self._not_decoded["message of unknown form"] += 1
            elif body.remainder:
                self._not_decoded["message with bytes left"] += 1

    def _connection(self, connection: Connection) -> None:
        if connection.protocol == "tls":
            why = why_dark(connection)
            self.no_kafka.add(connection, why)
            self._not_decoded[f"{_OF_TLS}: {why}"] += 1
            return
        self.no_kafka.add(connection)
        if connection.protocol != "kafka" and connection.bytes_to_broker + connection.bytes_from_broker:
            self._not_decoded[_NOT_RECOGNISED] += 1
        elif connection.skipped_bytes:
            self._not_decoded["byte skipped"] += connection.skipped_bytes

    def not_decoded(self) -> str:
        """The undecoded parts, in words; empty if everything was decoded."""
        return ", ".join(_counted(each, n) for each, n in self._not_decoded.items())


_NOT_RECOGNISED = "connection not recognised as Kafka"
_OF_TLS = "TLS connection"

_PLURALS = {
    "message of unknown form": "messages of unknown form",
    "message with bytes left": "messages with bytes left",
    _NOT_RECOGNISED: "connections not recognised as Kafka",
    "byte skipped": "bytes skipped",
}


def _counted(what: str, count: int) -> str:
    what, colon, why = what.partition(": ")
    if what == _NOT_RECOGNISED:
        colon, why = ":", "-d tcp.port==9092,kafka treats a port as Kafka"
    elif what == _OF_TLS and why == NO_SECRET:
        why = f"{why}; {HOW_TO}"
    text = plural(count, what, _PLURALS.get(what))
    return f"{text} ({why})" if colon else text
