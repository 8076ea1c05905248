from __future__ import annotations

from typing import Any

from kdissect.protocol.schema import Field
from kdissect.protocol.select import pick, selection
from tests.protocol.structs import struct_of

STRUCT = struct_of(
    """data 1 of 9.9
    id      int32    0+
    topics  []Topic  0+
        name        string  0+   is topicName
        partitions  []Part  0+
            index   int32   0+
        owner       Owner   0+   nullable
            name    string  0+   is topicName
    other   string   0+  is topicName
    more    []string  0+  is topicName
"""
)


def is_topic(field: Field) -> bool:
    return field.entity == "topicName"


def names(values: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value, _ in pick(selection(STRUCT, is_topic), values)]


def test_only_branches_with_wanted_fields_are_in_a_selection() -> None:
    assert selection(STRUCT, is_topic) == (
        ("topics", False, (("name", True, None), ("owner", False, (("name", True, None),)))),
        ("other", True, None),
        ("more", True, None),
    )
    assert selection(STRUCT, lambda field: field.name == "absent") == ()


def test_a_struct_can_be_wanted_itself_and_for_what_is_in_it() -> None:
    found = selection(STRUCT, lambda field: field.name in ("topics", "index"))
    assert found == (("topics", True, (("partitions", False, (("index", True, None),)),)),)


def test_fields_come_in_the_order_of_the_definition() -> None:
    values = {
        "more": ["d", "e"],
        "topics": [{"owner": {"name": "b"}, "name": "a"}, {"name": "c", "owner": None}],
        "id": 7,
        "other": "x",
    }
    assert names(values) == [
        ("name", "a"),
        ("name", "b"),
        ("name", "c"),
        ("other", "x"),
        ("more", ["d", "e"]),
    ]


def test_each_comes_with_the_structs_around_it_outermost_first() -> None:
    owner = {"name": "b"}
    topic = {"name": "a", "owner": owner}
    values = {"topics": [topic]}
    found = [ancestors for _, _, ancestors in pick(selection(STRUCT, is_topic), values)]
    assert found == [(values, topic), (values, topic, owner)]


def test_what_is_absent_or_null_or_broke_off_is_passed_over() -> None:
    assert names({}) == []
    assert names({"topics": None, "other": None}) == []
    assert names({"topics": [{}, {"owner": {}}], "other": ""}) == [("other", "")]
