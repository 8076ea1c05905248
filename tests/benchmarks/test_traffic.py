"""Traffic without an end: whole exchanges, all of them answered, on connections that are told apart."""

from __future__ import annotations

from itertools import islice

import pytest

from benchmarks.traffic import endless
from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.model import Packet


@pytest.mark.parametrize("churn", [0.0, 0.5])
def test_units_hold_the_exchanges_that_they_say(churn: float) -> None:
    dissector, number, said = Dissector(), 0, 0
    found: list[Exchange] = []
    for unit in islice(endless(churn, ends=2), 60):
        said += unit.exchanges
        for frame in unit.frames:
            number += 1
            packet = Packet(number, number * 1_000_000, 1, frame, len(frame), 0, ())
            found += [event for event in dissector.feed(packet) if isinstance(event, Exchange)]
    found += [event for event in dissector.close() if isinstance(event, Exchange)]
    assert len(found) == said
    assert not any(exchange.faults for exchange in found)
    assert (dissector.connections > 1) == bool(churn)
