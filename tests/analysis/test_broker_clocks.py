"""How far the clocks of brokers are from that of the capture."""

from __future__ import annotations

from typing import Any

from kdissect.analysis.broker_clocks import BrokerClocks
from kdissect.analysis.fold import MILLISECOND, Row
from kdissect.exchange import Exchange
from tests.analysis.folds import made

SENT_MS, ANSWERED_MS = 1_000_000, 1_000_040


def written(*dated_ms: int, late_ms: int = 0, answered: bool = True) -> Exchange:
    """A Produce of some partitions, which the broker dated."""
    parts: list[dict[str, Any]] = [{"index": at, "records": None} for at in range(len(dated_ms))]
    asked = {"acks": -1, "timeoutMs": 9, "topicData": [{"name": "t", "partitionData": parts}]}
    told = [
        {"index": at, "errorCode": 0, "baseOffset": 0, "logAppendTimeMs": ms}
        for at, ms in enumerate(dated_ms)
    ]
    answer = {"responses": [{"name": "t", "partitionResponses": told}], "throttleTimeMs": 0}
    times = (SENT_MS + late_ms) * MILLISECOND, (ANSWERED_MS + late_ms) * MILLISECOND
    out = made("Produce", 3, {**asked, "transactionalId": None}, answer, times)
    if not answered:
        out.response, out.missing = None, "gap"
    return out


def rows_of(*events: Exchange) -> list[Row]:
    fold = BrokerClocks()
    for number, each in enumerate(events, 1):
        each.number = number
        fold.feed(each)
    return fold.result()


def test_the_time_of_a_broker_lies_between_request_and_answer() -> None:
    (row,) = rows_of(written(SENT_MS + 10), written(SENT_MS + 5_035, late_ms=5_000))
    assert (row["answers"], row["exchanges"]) == (2, [1, 2])
    assert (row["low_min_ms"], row["low_max_ms"]) == (-30, -5)
    assert (row["high_min_ms"], row["high_max_ms"]) == (10, 35)


def test_the_first_time_in_an_answer_counts() -> None:
    """A partition whose records have the times of their producers has none."""
    (row,) = rows_of(written(-1, SENT_MS - 7_000, SENT_MS))
    assert (row["low_max_ms"], row["high_min_ms"]) == (-7_040, -7_000)


def test_without_times_of_a_broker_there_is_no_row() -> None:
    assert rows_of(written(-1), written(-1, -1)) == []
    assert rows_of(written(SENT_MS, answered=False)) == []


def test_parts_of_a_capture_add_up() -> None:
    events = [written(SENT_MS + 10 + at, late_ms=at % 3) for at in range(7)]
    whole = rows_of(*events)
    for cut in range(len(events) + 1):
        parts = BrokerClocks(), BrokerClocks()
        for at, each in enumerate(events):
            parts[at >= cut].feed(each)
        parts[0].merge(parts[1])
        assert parts[0].result() == whole
