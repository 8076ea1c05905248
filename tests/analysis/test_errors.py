"""Errors, against every error code in the broker's request log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kdissect.protocol.errors import error_name
from kdissect.protocol.schema import ZERO_UUID
from tests.acceptance.test_request_log import LOGGED_CASES
from tests.analysis.folds import fold, ids_of, logged, rows_of

Place = tuple[str | None, int | None]


def codes(value: Any, place: Place, names: dict[str, str]) -> Iterator[tuple[int, Place]]:
    """Every error code that is not 0 in a logged response, with the topic and partition it stands in."""
    if isinstance(value, list):
        for each in value:
            yield from codes(each, place, names)
    if not isinstance(value, dict):
        return
    topic, partition = place
    name = value.get("name") or value.get("topic") or value.get("topicName")
    if value.get("topicId", ZERO_UUID) != ZERO_UUID:
        name = names.get(value["topicId"], name or value["topicId"])
    for key in ("partition", "index", "partitionIndex", "partitionId"):
        partition = value[key] if isinstance(value.get(key), int) else partition
    place = (name if isinstance(name, str) else topic, partition)
    for key, each in value.items():
        if key.lower().endswith("errorcode") and each:
            yield each, place
        else:
            yield from codes(each, place, names)


@pytest.mark.parametrize("case", LOGGED_CASES)
def test_errors_are_those_that_the_broker_logged(case: str) -> None:
    names = ids_of(case)
    want: Counter[Any] = Counter()
    exchanges = []
    for each, _, exchange in logged(case):
        if exchange.response is None or exchange.response.is_cut:
            continue
        exchanges.append(exchange)
        for code, (topic, partition) in codes(each.response, (None, None), names):
            want[exchange.api, error_name(code), topic, partition] += 1
    got: Counter[Any] = Counter()
    for row in fold("errors", exchanges).result():
        topic = names.get(row["topic"], row["topic"])
        got[row["api"], row["error"], topic, row["partition"]] += row["count"]
    assert got == want


def test_the_first_and_the_last_are_told() -> None:
    rows = rows_of("errors", "java43-groups")
    (row,) = [row for row in rows if row["api"] == "Heartbeat"]
    exchanges = [x for _, _, x in logged("java43-groups") if x.api == "Heartbeat" and x.error]
    numbers = sorted(exchange.number for exchange in exchanges)
    assert (row["error"], row["error_code"], row["count"]) == ("REBALANCE_IN_PROGRESS", 27, len(exchanges))
    assert (row["first_exchange"], row["last_exchange"]) == (numbers[0], numbers[-1])
    times = [x.response.frame.last_ns for x in exchanges if x.response is not None]
    assert (row["first_ns"], row["last_ns"]) == (min(times), max(times))
    assert [row["count"] for row in rows] == sorted((row["count"] for row in rows), reverse=True)
