"""Errors, against every error code in the broker's request log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kdissect.protocol.errors import CLASSES, error_name
from kdissect.protocol.schema import ZERO_UUID
from tests.acceptance.test_request_log import LOGGED_CASES
from tests.analysis.folds import events_of, fold, ids_of, logged, made, rows_of

Place = tuple[str | None, int | None]


def codes(value: Any, place: Place, names: dict[str, str]) -> Iterator[tuple[int, Place]]:
    """Every error code that is not 0 in a logged response, with the topic and partition it stands in."""
    if isinstance(value, list):
        for each in value:
            yield from codes(each, place, names)
    if not isinstance(value, dict):
        return
    topic, partition = place
    name = value.get("resourceName") if value.get("resourceType") == 2 else None
    name = name or value.get("name") or value.get("topic") or value.get("topicName")
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
    by_client = fold("errors,client", events_of("java43-groups")).result()
    (row,) = [row for row in by_client if row["api"] == "Heartbeat"]
    exchanges = [x for _, _, x in logged("java43-groups") if x.api == "Heartbeat" and x.error]
    numbers = sorted(exchange.number for exchange in exchanges)
    assert (row["error"], row["error_code"], row["count"]) == ("REBALANCE_IN_PROGRESS", 27, len(exchanges))
    assert (row["first_exchange"], row["last_exchange"]) == (numbers[0], numbers[-1])
    times = [x.response.frame.last_ns for x in exchanges if x.response is not None]
    assert (row["first_ns"], row["last_ns"]) == (min(times), max(times))
    order = [(CLASSES.index(row["error_class"]), -row["count"]) for row in rows]
    assert order == sorted(order)


def test_they_say_whose_they_are_and_on_what() -> None:
    refused = {
        "throttleTimeMs": 0,
        "errorCode": 30,
        "errorMessage": None,
        "nodeId": -1,
        "host": "",
        "port": -1,
    }
    asked = made("FindCoordinator", 3, {"key": "orders-app", "keyType": 0}, refused)
    asked.principal = "alice"
    (row,) = fold("errors", [asked]).result()
    assert (row["error"], row["error_class"]) == ("GROUP_AUTHORIZATION_FAILED", "fatal")
    assert (row["client"], row["client_id"], row["principal"]) == ("10.0.0.1", "test", "alice")
    assert (row["group"], row["transactional_id"], row["topic"]) == ("orders-app", None, None)
    partition: dict[str, Any] = {
        "index": 3,
        "errorCode": 47,
        "baseOffset": -1,
        "logAppendTimeMs": -1,
        "logStartOffset": -1,
    }
    partition |= {"recordErrors": [], "errorMessage": None}
    asked = made(
        "Produce",
        9,
        {"transactionalId": "payer", "acks": -1, "timeoutMs": 1, "topicData": []},
        {"responses": [{"name": "orders", "partitionResponses": [partition]}], "throttleTimeMs": 0},
    )
    (row,) = fold("errors", [asked]).result()
    assert (row["transactional_id"], row["group"]) == ("payer", None)
    assert (row["topic"], row["partition"]) == ("orders", 3)


def test_each_error_of_several_groups_is_of_its_own() -> None:
    groups = [{"groupId": name, "errorCode": code} for name, code in (("a", 0), ("b", 69), ("c", 68))]
    answer = {"throttleTimeMs": 0, "results": groups}
    exchange = made("DeleteGroups", 1, {"groupsNames": ["a", "b", "c"]}, answer)
    rows = fold("errors,group", [exchange]).result()
    assert {row["group"]: row["error"] for row in rows} == {"b": "GROUP_ID_NOT_FOUND", "c": "NON_EMPTY_GROUP"}


def test_rows_are_told_apart_as_asked_for() -> None:
    refused = {"throttleTimeMs": 0, "errorCode": 25}
    beats = [
        made("Heartbeat", 1, {"groupId": group, "generationId": 1, "memberId": "m"}, refused, (at, at))
        for at, group in enumerate(("a", "b", "a"), 1)
    ]
    beats[0].routine = (25,)
    rows = fold("errors,group", beats).result()
    assert [(row["group"], row["count"], row["error_class"]) for row in rows] == [
        ("a", 1, "retriable"),
        ("b", 1, "retriable"),
        ("a", 1, "routine"),
    ]
    rows = fold("errors,client_id", beats).result()
    assert [(row["client_id"], row["group"], row["count"]) for row in rows] == [
        ("test", None, 2),
        ("test", None, 1),
    ]
    with pytest.raises(ValueError, match="can be grouped by broker, client, client_id, principal, group"):
        fold("errors,colour", [])
