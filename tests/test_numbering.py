"""Telling: numbers and names for the events of one packet after the other."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.exchange import Exchange, begin_exchange
from kdissect.faults import fault
from kdissect.limits import DEFAULTS
from kdissect.message import parse_request
from kdissect.model import Direction, Frame
from kdissect.names import TopicNames
from kdissect.numbering import EventPublisher, Numbering
from kdissect.session.pairing import Completed, Recognised
from tests.kafka import request

CLIENT, BROKER = bytes((10, 0, 0, 1, 4, 1)), bytes((10, 0, 0, 2, 35, 132))


def telling(names: TopicNames | None = None, most: int = 100) -> EventPublisher:
    return EventPublisher(
        Numbering(), TopicNames() if names is None else names, names is not None, most, False
    )


def begun(connection: int, packet: int) -> Exchange:
    exchange = begin_exchange(connection, CLIENT, BROKER)
    exchange.recognised = (packet, connection, 0)
    payload = request("Metadata", 1, 1, topics=[{"name": "orders"}])
    size = len(payload)
    frame = Frame(Direction.TO_BROKER, 0, payload, size, packet, packet, packet, packet, (packet,))
    exchange.request = parse_request(frame, DEFAULTS)
    return exchange


def test_exchanges_that_begin_at_one_packet_are_numbered_by_packet_and_connection() -> None:
    one, two, three = begun(2, 7), begun(1, 7), begun(9, 3)
    assert telling().publish([Recognised(one), Recognised(two), Recognised(three)]) == []
    assert [each.number for each in (three, two, one)] == [1, 2, 3]


def test_what_is_told_keeps_its_order_and_beginnings_are_not_given_out() -> None:
    exchange, wrong = begun(1, 1), fault("gap", "missing")
    found: list[Any] = telling().publish([wrong, Recognised(exchange), Completed(exchange)])
    assert [each is wrong or each is exchange for each in found] == [True, True]
    assert found[0] is wrong


def test_a_list_that_was_given_out_is_nobody_elses() -> None:
    machine = telling()
    for _ in range(2):
        given: list[Any] = machine.publish([Recognised(begun(1, 1))])
        assert given == []
        given.append("mine")


@pytest.mark.parametrize(("are_complete", "name"), [(False, None), (True, "orders")])
def test_names_hold_as_of_the_packet_of_an_exchange_unless_all_are_known(
    are_complete: bool, name: str | None
) -> None:
    names = TopicNames()
    names.learn("id", "orders", 50)
    machine = telling(names)
    machine.names_are_complete = are_complete
    exchange = begun(1, 1)
    machine.publish([Completed(exchange)])
    assert exchange.topic_names.get("id") == name
