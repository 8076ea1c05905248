"""Gives the events of a part the numbers and names that they have in the whole capture."""

from __future__ import annotations

from kdissect.exchange import Exchange
from kdissect.names import TopicNames
from kdissect.numbering import AT_THE_END, Event
from kdissect.parts.packed import PackedNumbers
from kdissect.session.briefs import Brief
from kdissect.session.conversation import Connection

_AT_THE_END = AT_THE_END


def true_numbers(own: PackedNumbers, others: PackedNumbers, first: int) -> PackedNumbers:
    """Return the numbers that things of a part, such as its exchanges, have in the whole capture, in order.

    :param own: the packet with which each thing began, in order.
    :param others: the packets in the part with which things of other connections began, in order.
    :param first: the number of the first of all these things.
    """
    out = PackedNumbers()
    passed, many, place, count = 0, others.count(), 0, own.count()
    number = first
    other = others.at(0) if many else _AT_THE_END
    while place < count:
        packet = own.at(place)
        while other < packet:
            passed += 1
            number += 1
            other = others.at(passed) if passed < many else _AT_THE_END
        out.add(number)
        number += 1
        place += 1
    return out


def number_events(
    events: list[Event],
    steps: PackedNumbers,
    before: int,
    numbers: PackedNumbers | None,
    connections: PackedNumbers,
    names: TopicNames,
    known: int,
    learned_names: list[int] | None,
) -> None:
    """Give events their numbers and names.

    :param steps: the packet that led to each event.
    :param before: how many exchanges have a number before the part.
    :param numbers: the :func:`true_numbers` of the part's exchanges; None if the part has no exchanges of
        other connections.
    :param connections: the true numbers of the part's connections, by their numbers in the part.
    :param names: the names of topic ids.
    :param known: how many names were learned before the part.
    :param learned_names: the packets with new names in the part, in order; None if all names are known from
        the start.
    """
    learned = 0
    count = 0 if learned_names is None else len(learned_names)
    for at, event in enumerate(events):
        if learned_names is not None:
            while learned < count and learned_names[learned] <= steps.at(at):
                learned += 1
        if isinstance(event, Brief):
            brief = event
            brief.number = before + brief.number if numbers is None else numbers.at(brief.number - 1)
            brief.connection = connections.at(brief.connection)
            brief.names, brief.names_count = names, known + learned
            brief.up_to_packet = _AT_THE_END if learned_names is None else brief._last()
        elif isinstance(event, Exchange):
            exchange = event
            exchange.number = before + exchange.number if numbers is None else numbers.at(exchange.number - 1)
            exchange.connection = connections.at(exchange.connection)
            packet = _AT_THE_END if learned_names is None else exchange._last()
            exchange.topic_names = names.up_to(packet, known + learned)
        elif event.connection is not None:
            events[at] = event._replace(connection=connections[event.connection])


def speak_tls(events: list[Event]) -> bool:
    """Whether events are of a connection with TLS."""
    for event in events:  # noqa: SIM110 - any() makes a generator, and took longer than all else at the end
        if type(event) is Connection and event.tls is not None:
            return True
    return False
