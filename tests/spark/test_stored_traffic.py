"""Rows of the table ``exchanges``, counted as exchanges are."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from kdissect.limits import DEFAULTS
from kdissect.spark.stored_traffic import StoredExchange, StoredTraffic, traffic_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ID = "f4kCV7NlQR6wPyNNKcqk3g"
ROW: dict[str, Any] = {
    **dict.fromkeys(StoredExchange._fields),
    "number": 1,
    "api": "Fetch",
    "api_version": 17,
    "broker": "10.0.0.2:9092",
    "client": "10.0.0.1:5",
    "topics": [],
    "request_size": 10,
    "response_size": 20,
    "latency_ns": 100,
    "begun_ns": 1_000,
    "asked": {},
}


def row(**values: Any) -> StoredExchange:
    return StoredExchange(**{**ROW, **values})


@pytest.mark.parametrize(("by", "column"), [(("topic",), "topic"), (("client_id", "topics"), "topics")])
def test_a_name_that_a_later_part_tells_names_the_rows_of_all(by: tuple[str, ...], column: str) -> None:
    first, later = StoredTraffic(by=by), StoredTraffic(by=by)
    first.count(row(topics=[ID]))
    first.count(row(topics=["other"]))
    later.count(row(topics=["orders"], number=3))
    later.learn(ID, "orders")
    first.merge(pickle.loads(pickle.dumps(later)))
    for _ in range(2):  # to ask again does no harm
        assert {each[column]: each["exchanges"] for each in first.result()} == {"orders": 2, "other": 1}


def test_rows_have_no_order_so_the_first_name_in_the_alphabet_counts() -> None:
    for names in (["a", "b"], ["b", "a"]):
        fold = StoredTraffic(by=("topics",))
        fold.count(row(topics=[ID, "z"]))
        for name in names:
            fold.learn(ID, name)
        assert [each["topics"] for each in fold.result()] == ["a, z"]


def test_names_are_bounded() -> None:
    fold = StoredTraffic(DEFAULTS._replace(rows=1), ("topic",))
    fold.count(row(topics=[ID]))
    fold.learn("another", "name")
    fold.learn(ID, "orders")
    assert [each["topic"] for each in fold.result()] == [ID]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"groupId": "g", "memberId": "m"}, ("g", "m")),
        ({"groupId": "g", "memberId": ""}, ("g", None)),  # it asks for a member id
        ({"groupId": {"base64": "/w=="}}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_group_and_member_are_those_of_the_request(
    asked: dict[str, Any], expected: tuple[str | None, str | None]
) -> None:
    fold = StoredTraffic(by=("group", "member"))
    fold.count(row(asked=asked))
    assert [(each["group"], each["member"]) for each in fold.result()] == [expected]


def test_tasks_read_groups_and_names_from_the_messages(spark: SparkSession) -> None:
    messages = [
        ("Fetch", 1, 17, [ID], {}, {}),
        ("Heartbeat", 12, 4, [], {"groupId": "g", "memberId": "m"}, {}),
        ("CreateTopics", 19, 7, ["orders"], {}, {"topics": [{"name": "orders", "topicId": ID}]}),
        ("Fetch", 1, 4, [], {}, None),
    ]
    rows = [
        (api, key, version, topics, *(json.dumps({"header": {}, "body": body}) for body in bodies))
        for api, key, version, topics, *bodies in messages
    ]
    form = "api string, api_key int, api_version int, topics array<string>, request string, response string"
    frame = spark.createDataFrame(rows, form).selectExpr(
        *(
            "*",
            "1 as number",
            "'b:1' as broker",
            "'c:1' as client",
            "10 as request_size",
            "5 as response_size",
        ),
        *("7 as latency_ns", "1000 as request_time_ns", "1007 as response_start_ns"),
        *(f"string(null) as {name}" for name in ("client_id", "principal", "error", "error_class")),
        *(f"cast(null as array<string>) as {name}" for name in ("groups", "transactional_ids")),
        "string(null) as software",
    )
    made = traffic_of(frame, [("topic",), ("group", "member")], DEFAULTS)
    topics, groups = (table.to_pylist() for table in made.tables)
    assert {(each["api"], each["topic"]) for each in topics} == {
        ("Fetch", "orders"),
        ("CreateTopics", "orders"),
    }
    assert [(each["group"], each["member"]) for each in groups if each["group"]] == [("g", "m")]
