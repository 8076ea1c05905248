"""What comes to light of connections → what is given out, with numbers and names.

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
"""What comes to light at one packet."""

AT_THE_END = sys.maxsize
"""The packet number by which things are known that only the capture's end settles."""
_AT_THE_END = AT_THE_END


class Numbering:
    """Gives connections and exchanges their numbers, by counting.

    It is asked in the order of the numbers, so that who dissects some connections only can give numbers
    that were counted over all.
    """

    def __init__(self) -> None:
        self.connections = 0
        """How many connections have a number."""
        self.exchanges = 0

    def connection(self, packet: int) -> int:
        """The number of the connection of which ``packet`` is the first: 0, 1, …"""
        self.connections += 1
        return self.connections - 1

    def exchange(self, begun: Exchange | Brief) -> int:
        """The number of an exchange that was recognised: 1, 2, …"""
        self.exchanges += 1
        return self.exchanges


class Teller:
    """Gives numbers and names to what one packet after the other brings to light.

    :param names: those of topic ids so far.
    :param names_are_complete: whether no others are to be learned.
    :param most_names: so many ids may have one.
    :param embedded: whether exchanges tell what is wrong with the bytes embedded in their messages.
    """

    __slots__ = (
        *("_embedded", "_most_names", "has_told_briefs", "names", "names_are_complete", "names_left_out"),
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
        """How often a name was left out because there are too many."""
        self.has_told_briefs = False
        """Whether an exchange was told in brief."""

    def publish(self, step: list[Step]) -> list[Event]:
        """Number what one packet brought to light, learn from all of it, then give it out."""
        if len(step) == 1:
            if isinstance(step[0], Brief):
                brief = step[0]
                if not brief.number:
                    self._number(brief)
                if not brief.is_over:
                    return []
                self._learn_brief(brief)
                self._close_brief(brief)
                return step  # type: ignore[return-value]  # who asked for briefs knows them
            if isinstance(step[0], Recognised):
                begun = step[0]  # as nearly every request
                begun.exchange.number = self.numbering.exchange(begun.exchange)
                self._learn(begun.exchange)
                return []
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
                if event.is_over and told[id(event)] == at:  # it may have begun in this step too
                    self._close_brief(event)
                    out.append(cast(Event, event))  # who asked for briefs knows them
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
        """Give a brief its number, and what waits in its place."""
        brief.number = self.numbering.exchange(brief)
        if brief.became is not None:
            brief.became.number = brief.number
        if brief.form.teaches and not self.names_are_complete:
            self._learn_all(brief.taught_topics())

    def _learn_brief(self, brief: Brief) -> None:
        form = brief.form
        if (form.teaches or form.carries_metadata) and not self.names_are_complete:
            taught = brief.taught_topics()
            if taught != ():  # as nearly always
                self._learn_all(taught)

    def _close_brief(self, brief: Brief) -> None:
        """Say which names of topic ids hold for a brief that is over."""
        brief.up_to_packet = _AT_THE_END if self.names_are_complete else brief._last()
        brief.names, brief.names_count = self.names, len(self.names.order)
        self.has_told_briefs = True

    def _learn(self, exchange: Exchange) -> None:
        if not self.names_are_complete:
            self._learn_all(exchange.taught_topics())

    def _learn_all(self, taught: Iterable[tuple[str, str, int]]) -> None:
        self.names_left_out += self.names.learn_all(taught, self._most_names)
