"""New facts about connections → events, with numbers and names.

Numbers are given here, because they count over all connections. Names of topic ids are attached here, because
they cross connections: a client learns a topic's id on one connection and uses it on another.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import cast

from kdissect.exchange import Exchange
from kdissect.model import Fault
from kdissect.names import TopicNames
from kdissect.session.briefs import Brief
from kdissect.session.conversation import Connection, recognised_in_order
from kdissect.session.conversation import Event as SessionEvent
from kdissect.session.pairing import Completed, Recognised

Event = Exchange | Connection | Fault

Step = SessionEvent | Connection
"""A result of dissecting one packet."""

AT_THE_END = sys.maxsize
"""The packet number of facts that are known only at the end of the capture."""
_AT_THE_END = AT_THE_END


class Numbering:
    """Gives connections and exchanges their numbers, by counting.

    It is called in the order of the numbers. So a dissector of some of the connections can use another
    object, which gives numbers counted over all connections.
    """

    def __init__(self) -> None:
        self.connections = 0
        """The number of connections so far."""
        self.exchanges = 0

    def connection(self, packet: int) -> int:
        """The number of the connection that begins with ``packet``: 0, 1, …"""
        self.connections += 1
        return self.connections - 1

    def exchange(self, begun: Exchange | Brief) -> int:
        """The number of a recognised exchange: 1, 2, …"""
        self.exchanges += 1
        return self.exchanges


class EventPublisher:
    """Gives numbers and names to the results of each packet.

    :param names: the names of topic ids so far.
    :param names_are_complete: whether no further names are learned.
    :param most_names: the most ids with a name.
    :param embedded: whether exchanges report faults of the bytes embedded in their messages.
    """

    __slots__ = (
        *(
            "_embedded",
            "_most_names",
            "has_published_briefs",
            "names",
            "names_are_complete",
            "names_left_out",
        ),
        "numbering",
    )

    def __init__(
        self,
        numbering: Numbering,
        names: TopicNames,
        names_are_complete: bool,
        most_names: int,
        embedded: bool,
    ) -> None:
        self.numbering = numbering
        self.names = names
        self.names_are_complete = names_are_complete
        self._most_names = most_names
        self._embedded = embedded
        self.names_left_out = 0
        """How many names were left out because there were too many."""
        self.has_published_briefs = False
        """Whether an exchange was given in brief."""

    def publish(self, step: list[Step]) -> list[Event]:
        """Number the results of one packet, learn names from all of them, then return the events."""
        if len(step) == 1:
            if isinstance(step[0], Brief):
                brief = step[0]
                if not brief.number:
                    self._number(brief)
                if not brief.is_over:
                    return []
                self._learn_brief(brief)
                self._close_brief(brief)
                return step  # type: ignore[return-value]  # the caller asked for briefs
            if isinstance(step[0], Recognised):
                begun = step[0]  # the case of nearly every request
                begun.exchange.number = self.numbering.exchange(begun.exchange)
                self._learn(begun.exchange)
                return []
            if isinstance(step[0], Connection):
                return [step[0]]
        out: list[Event] = []
        for each in recognised_in_order(step):
            if isinstance(each, Brief):
                self._number(each)
            else:
                each.number = self.numbering.exchange(each)
                self._learn(each)
        for event in step:
            if isinstance(event, Completed):
                completed = event
                self._learn(completed.exchange)
            elif isinstance(event, Brief) and event.is_over:
                self._learn_brief(event)
        told = {id(event): at for at, event in enumerate(step) if isinstance(event, Brief)}
        for at, event in enumerate(step):
            if isinstance(event, Brief):
                if event.is_over and told[id(event)] == at:  # it may be twice in the step: begun and over
                    self._close_brief(event)
                    out.append(cast(Event, event))  # the caller asked for briefs
                continue
            if isinstance(event, Completed):
                completed = event
                exchange = completed.exchange
                packet = _AT_THE_END if self.names_are_complete else exchange._last()
                exchange.topic_names = self.names.up_to(packet)  # looked up when asked for
                exchange.embedded = self._embedded
                out.append(exchange)
            elif not isinstance(event, Recognised):
                out.append(event)
        return out

    def _number(self, brief: Brief) -> None:
        """Give a number to a brief, and to the exchange that replaced it."""
        brief.number = self.numbering.exchange(brief)
        if brief.became is not None:
            brief.became.number = brief.number
        if brief.form.teaches and not self.names_are_complete:
            self._learn_all(brief.taught_topics())

    def _learn_brief(self, brief: Brief) -> None:
        form = brief.form
        if (form.teaches or form.carries_metadata) and not self.names_are_complete:
            taught = brief.taught_topics()
            if taught != ():  # nearly always empty
                self._learn_all(taught)

    def _close_brief(self, brief: Brief) -> None:
        """Fix the names of topic ids for a brief that is over."""
        brief.up_to_packet = _AT_THE_END if self.names_are_complete else brief._last()
        brief.names, brief.names_count = self.names, len(self.names.order)
        self.has_published_briefs = True

    def _learn(self, exchange: Exchange) -> None:
        if not self.names_are_complete:
            self._learn_all(exchange.taught_topics())

    def _learn_all(self, taught: Iterable[tuple[str, str, int]]) -> None:
        self.names_left_out += self.names.learn_all(taught, self._most_names)
