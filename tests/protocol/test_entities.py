"""What messages name: groups, transactional ids, topics."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.protocol import apis
from kdissect.protocol.entities import GROUP, TOPIC, TRANSACTIONAL_ID, named_around, names_in
from kdissect.protocol.schema import message_struct
from kdissect.protocol.topics import mentioned_topics


def names(entity: str, api: str, version: int, values: dict[str, Any]) -> list[str]:
    return names_in(entity, message_struct(apis.api_key(api), version, "request"), values)


@pytest.mark.parametrize(
    ("api", "version", "values"),
    [
        ("Heartbeat", 4, {"groupId": "g"}),
        ("DescribeGroups", 5, {"groups": ["g"]}),
        ("DeleteGroups", 2, {"groupsNames": ["g"]}),
        ("OffsetFetch", 8, {"groups": [{"groupId": "g", "topics": None}]}),
        ("TxnOffsetCommit", 3, {"transactionalId": "t", "groupId": "g"}),
        (
            "ReadShareGroupState",
            0,
            {"groupId": "g", "topics": []},
        ),  # without entityType in Kafka's definitions
        ("FindCoordinator", 0, {"key": "g"}),
        ("FindCoordinator", 3, {"key": "g", "keyType": 0}),
        ("FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g"]}),
        (
            "CreateAcls",
            3,
            {"creations": [{"resourceType": 3, "resourceName": "g", "resourcePatternType": 3}]},
        ),
        ("DescribeAcls", 3, {"resourceTypeFilter": 3, "resourceNameFilter": "g"}),
        ("DescribeConfigs", 4, {"resources": [{"resourceType": 32, "resourceName": "g"}]}),
    ],
)
def test_groups_are_found_wherever_they_are_named(api: str, version: int, values: dict[str, Any]) -> None:
    assert names(GROUP, api, version, values) == ["g"]


def test_transactional_ids_are_found_wherever_they_are_named() -> None:
    assert names(TRANSACTIONAL_ID, "Produce", 9, {"transactionalId": "t"}) == ["t"]
    assert names(TRANSACTIONAL_ID, "FindCoordinator", 3, {"key": "t", "keyType": 1}) == ["t"]
    assert names(TRANSACTIONAL_ID, "AddPartitionsToTxn", 3, {"v3AndBelowTransactionalId": "t"}) == ["t"]
    many = {"transactions": [{"transactionalId": "t"}, {"transactionalId": "u"}, {"transactionalId": "t"}]}
    assert names(TRANSACTIONAL_ID, "AddPartitionsToTxn", 4, many) == ["t", "u"]
    assert names(TRANSACTIONAL_ID, "Produce", 9, {"transactionalId": None}) == []


def test_what_another_field_says_is_something_else_is_not_taken() -> None:
    assert names(GROUP, "FindCoordinator", 3, {"key": "t", "keyType": 1}) == []
    assert names(GROUP, "FindCoordinator", 6, {"coordinatorKeys": ["g:id:0"], "keyType": 2}) == []
    broker = {"resources": [{"resourceType": 4, "resourceName": "1"}]}
    assert names(GROUP, "DescribeConfigs", 4, broker) == []
    prefix = {"creations": [{"resourceType": 3, "resourceName": "pay", "resourcePatternType": 4}]}
    assert names(GROUP, "CreateAcls", 3, prefix) == []
    every = {"creations": [{"resourceType": 3, "resourceName": "*", "resourcePatternType": 3}]}
    assert names(GROUP, "CreateAcls", 3, every) == []


def test_topics_are_found_among_resources() -> None:
    struct = message_struct(apis.api_key("IncrementalAlterConfigs"), 1, "request")
    values = {
        "resources": [{"resourceType": 2, "resourceName": "orders"}, {"resourceType": 4, "resourceName": "1"}]
    }
    assert mentioned_topics(struct, values) == [("orders", None)]


def test_the_innermost_place_counts() -> None:
    struct = message_struct(apis.api_key("DescribeGroups"), 5, "response")
    group = {"errorCode": 30, "groupId": "g"}
    other = {"errorCode": 0, "groupId": "h"}
    assert named_around(GROUP, struct, ({"groups": [other, group]}, group)) == "g"
    struct = message_struct(apis.api_key("FindCoordinator"), 4, "response")
    place = {"key": "t", "nodeId": -1, "errorCode": 15}
    values = ({"coordinators": [place]}, place)
    assert named_around(TRANSACTIONAL_ID, struct, values, {"keyType": 1}) == "t"
    assert named_around(GROUP, struct, values, {"keyType": 1}) is None
    assert named_around(GROUP, struct, values) is None  # the request tells, and it was not captured
    struct = message_struct(apis.api_key("AlterConfigs"), 1, "response")
    place = {"errorCode": 40, "resourceType": 2, "resourceName": "orders"}
    assert named_around(TOPIC, struct, ({"responses": [place]}, place)) == "orders"
