"""What a reading counts of its events."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from kdissect.cli.tally import Tally
from kdissect.dissect import Dissector, Event
from kdissect.session.briefs import Brief, Interest
from tests.kafka import Talk, request, response
from tests.record.build import batch


def produced(records: bytes) -> list[Event]:
    """The events of a Produce, in brief where it can be."""
    topic = {"name": "t", "partitionData": [{"index": 0, "records": b64encode(records).decode()}]}
    asked: dict[str, Any] = {"transactionalId": None, "acks": 1, "timeoutMs": 9, "topicData": [topic]}
    part = {"index": 0, "errorCode": 0, "baseOffset": 5, "logAppendTimeMs": -1, "logStartOffset": 0}
    answered: dict[str, Any] = {"responses": [{"name": "t", "partitionResponses": [part]}]}
    answered["throttleTimeMs"] = 0
    talk = Talk().ask(request("Produce", 7, **asked)).answer(response("Produce", 7, **answered))
    dissector = Dissector(briefs=Interest())
    found = [event for segment in talk.segments for event in dissector.feed(segment)]
    return [*found, *dissector.close()]


@pytest.mark.parametrize(("unpacks", "expected"), [(True, 1), (False, 0)])
def test_broken_records_of_an_exchange_in_brief_count_where_records_are_unpacked(
    unpacks: bool, expected: int
) -> None:
    events = produced(batch(b"this is no gzip", count=1, attributes=1))
    assert [type(each).__name__ for each in events] == [Brief.__name__]
    tally = Tally(looks_inside=True, unpacks=unpacks)
    for event in events:
        tally.add(event)
    assert tally.faults == expected
