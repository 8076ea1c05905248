"""Objects that may be sent from one process to another: exchanges, and a dissector between any two
packets."""

from __future__ import annotations

import pickle
from typing import Any

from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.protocol.topics import _topic_fields
from tests.kafka import METADATA_RESPONSE_1, Talk, request, response


def talk() -> Talk:
    return (
        Talk().ask(request("Metadata", 1, topics=None)).answer(response("Metadata", 1, **METADATA_RESPONSE_1))
    )


def exchanges(dissector: Dissector, between: Any = lambda dissector: dissector) -> list[Exchange]:
    found: list[Any] = []
    for segment in talk().close().segments:
        found += dissector.feed(segment)
        dissector = between(dissector)
    found += dissector.close()
    return [event for event in found if isinstance(event, Exchange)]


def test_a_decoded_exchange_comes_back_with_the_same_structs() -> None:
    (exchange,) = exchanges(Dissector())
    assert (exchange.topics, exchange.faults) == (["orders"], [])
    known = _topic_fields.cache_info().currsize
    for _ in range(3):
        again: Exchange = pickle.loads(pickle.dumps(exchange))
        assert (again.topics, again.faults) == (["orders"], [])
        for mine, its in zip(exchange.messages, again.messages, strict=True):
            assert its.decoded().struct is mine.decoded().struct is not None
            assert its.decoded() == mine.decoded()
    assert _topic_fields.cache_info().currsize == known


def test_a_dissector_can_be_stored_between_any_two_segments() -> None:
    (plain,) = exchanges(Dissector())
    (stored,) = exchanges(Dissector(), lambda dissector: pickle.loads(pickle.dumps(dissector)))
    assert [m.decoded() for m in stored.messages] == [m.decoded() for m in plain.messages]
    assert (stored.number, stored.recognised) == (plain.number, plain.recognised)
