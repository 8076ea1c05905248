"""What tasks read of rows of the table ``exchanges``, and what folds count of them."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from kdissect.analysis.fold import Row
from kdissect.limits import DEFAULTS, Limits
from kdissect.spark.row_fold import RowFold, SeenCopy, StoredExchange
from kdissect.spark.stored_folds import RowQuestion, counted_rows
from tests.spark.stored_rows import row
from tests.spark.test_stored_traffic import ID

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def asked(group: Any = "g", member: Any = "m", api: str = "Heartbeat", **values: Any) -> StoredExchange:
    return row(api=api, asked={"groupId": group, "memberId": member}, **values)


ROWS = (
    *(asked(api=api, client_id=name) for api in ("JoinGroup", "SyncGroup") for name in ("c", "d")),
    *(asked(member=name, client_id="c") for name in ("m", "n", "n")),
    asked(api="OffsetCommit", error="REBALANCE_IN_PROGRESS", error_class="routine"),
    asked(api="ConsumerGroupHeartbeat", error="FENCED_MEMBER_EPOCH", error_class="fatal"),
    asked(api="Heartbeat", member="", error="UNKNOWN_MEMBER_ID", error_class="retriable"),
    asked(group="other", member=None),
    asked(group={"base64": "/w=="}),
    row(api="Fetch", software="java 4", api_version=12, client_id="c"),
    row(api="Fetch", software="java 4", api_version=4, client_id="d"),
    row(api="Fetch", api_version=4, client_id="d"),
    row(api="SaslToken", api_version=None),
    row(api="Fetch", copies=[SeenCopy("a", 100)]),
    row(api="Fetch", copies=[SeenCopy("a", 120), SeenCopy("b", 90)]),
    row(api="Fetch", copies=[SeenCopy("a", None), SeenCopy("b", 30)]),
    row(api="Fetch", copies=[SeenCopy("a", 200), SeenCopy("b", 150)]),
)


def counted(name: str, parts: int, limits: Limits = DEFAULTS) -> RowFold:
    """Rows that several folds counted, added up."""
    whole, *others = (RowQuestion((name,), limits).folds()[0] for _ in range(parts))
    for at, values in enumerate(ROWS):
        [whole, *others][at % parts].count(values)
    for other in others:
        whole.merge(pickle.loads(pickle.dumps(other)))
    return whole


def told(name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Values of the rows, which are the same however the rows were shared out."""
    made: list[list[Row]] = [counted(name, parts).result() for parts in (1, 2, 5)]
    assert made[0] == made[1] == made[2]
    assert [column.name for column in RowQuestion((name,), DEFAULTS).tables[0].columns] == list(made[0][0])
    return [tuple(each[column] for column in columns) for each in made[0]]


def test_groups_have_members_clients_and_requests() -> None:
    assert told("groups", "group", "members", "clients") == [("g", 2, 2), ("other", 0, 0)]
    columns = ("joins", "syncs", "commits", "heartbeats", "errors", "fatal", "routine")
    assert told("groups", *columns) == [(2, 2, 1, 5, 2, 1, 1), (0, 0, 0, 1, 0, 0, 0)]


def test_versions_are_those_of_a_software() -> None:
    rows = [each for each in told("versions", "software", "api", "versions", "clients") if each[1] == "Fetch"]
    assert rows == [("java 4", "Fetch", [4, 12], 2), ("unknown", "Fetch", [4, 17], 1)]
    assert "SaslToken" not in {api for (api,) in told("versions", "api")}


def test_capture_points_are_compared_with_the_one_where_it_took_longest() -> None:
    assert told("points", "capture_point", "exchanges", "only_here", "p50_ns", "p50_to_here_ns") == [
        ("a", 4, 1, 120, 0),
        ("b", 3, 0, 90, 30),
    ]


@pytest.mark.parametrize("name", ["groups", "versions", "points"])
def test_what_finds_no_room_is_counted(name: str) -> None:
    fold = counted(name, 1, DEFAULTS._replace(rows=1))
    assert len(fold.result()) == 1
    assert fold.left_out > 0


def test_names_beyond_the_limit_are_told() -> None:
    limits = DEFAULTS._replace(rows=2)
    fold = RowQuestion(("groups",), limits).folds()[0]
    for member in "abc":
        fold.count(asked(member=member))
    assert fold.result()[0]["members"] == 2
    assert fold.left_out == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"groupId": "g", "memberId": "m"}, ("g", "m")),
        ({"groupId": "g", "memberId": ""}, ("g", None)),  # it asks for a member id
        ({"groupId": {"base64": "/w=="}}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_group_and_member_are_those_of_the_request(
    body: dict[str, Any], expected: tuple[str | None, str | None]
) -> None:
    made = row(asked=body)
    assert (made.group, made.member) == expected


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
    made = counted_rows(frame, ["traffic,topic", "groups"], DEFAULTS)
    topics, groups = (table.to_pylist() for table in made.tables)
    assert {(each["api"], each["topic"]) for each in topics} == {
        ("Fetch", "orders"),
        ("CreateTopics", "orders"),
    }
    assert [(each["group"], each["members"], each["heartbeats"]) for each in groups] == [("g", 1, 1)]
