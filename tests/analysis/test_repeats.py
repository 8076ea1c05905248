"""Which requests count as repeated: of fetches, those that got nothing long before their wait was over."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from kdissect.analysis.repeats import Repeats
from kdissect.exchange import Exchange
from tests.analysis.produced import batch, exchange


def fetched(records: str | None, answered_ms: int, wait_ms: int = 500) -> Exchange:
    """A Fetch of version 11 with these records, by the encoding of JSON, in its answer."""
    part: dict[str, Any] = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 5, "lastStableOffset": 5}
    part |= {"logStartOffset": 0, "abortedTransactions": None, "preferredReadReplica": -1, "records": records}
    asked: dict[str, Any] = {"replicaId": -1, "maxWaitMs": wait_ms, "minBytes": 1, "maxBytes": 9}
    asked |= {"isolationLevel": 0, "sessionId": 0, "sessionEpoch": 0, "topics": []}
    asked |= {"forgottenTopicsData": [], "rackId": ""}
    answer: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0}
    answer |= {"responses": [{"topic": "t", "partitions": [part]}]}
    return exchange("Fetch", 11, asked, answer, 1, answered_ms)


def counted(*exchanges: Exchange) -> list[tuple[str, int]]:
    found = Repeats()
    for each in exchanges:
        found.feed(each)
    return [(row["api"], row["count"]) for row in found.result()]


@pytest.mark.parametrize("records", [None, ""])
@pytest.mark.parametrize("has_survey", [True, False])
def test_an_empty_answer_counts_if_it_came_early(records: str | None, has_survey: bool) -> None:
    early, late = fetched(records, 10), fetched(records, 400)
    for each in (early, late):
        assert each.response is not None
        each.response._is_surveyed = not has_survey
    assert counted(early) == [("Fetch", 1)]
    assert counted(late) == []


@pytest.mark.parametrize("has_survey", [True, False])
def test_an_answer_with_records_does_not_count(has_survey: bool) -> None:
    full = fetched(b64encode(batch("a")).decode(), 10)
    assert full.response is not None
    full.response._is_surveyed = not has_survey
    assert counted(full) == []
    assert counted(fetched("", 10), full, fetched("", 10)) == [("Fetch", 2)]
