"""Columns of the list of exchanges, by the names that the configuration has."""

from __future__ import annotations

import pytest

from kdissect.settings.list_columns import field_of, has_field, listed, printed


def test_columns_of_tables_of_the_list_and_fields_can_be_listed() -> None:
    names = ("number", "what", "latency", "joinGroup.request.groupId", "record.key", "wait_ns", "groupId")
    assert tuple(listed(names)) == (*names[:2], "latency_ns", *names[3:])


def test_fields_are_not_printed() -> None:
    assert printed(("number", "joinGroup.request.groupId", "what")) == ("number", "api", "api_version")
    assert printed(("joinGroup.request.groupId", "coloring_rule")) == ()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("lateny", "exchanges have no column 'lateny'; did you mean latency?"),
        ("joinGroup.request.gropId", "JoinGroup has no field gropId; did you mean groupId?"),
        ("jonGroup.groupId", "there is no field jonGroup.groupId; did you mean joinGroup.groupId?"),
        ("kafka.x", "there is no field kafka.x"),
        (
            "joinGroup.request.protocols",
            "joinGroup.request.protocols is a structure or records: choose a field inside it",
        ),
        ("slow", "slow can be asked for in a filter, but not be a column"),
        ("finding.severity", "finding.severity can be asked for in a filter, but not be a column"),
    ],
)
def test_what_is_no_column_is_said_in_one_line(name: str, reason: str) -> None:
    with pytest.raises(LookupError) as found:
        list(listed(("number", name)))
    assert str(found.value.args[0]).startswith(reason)


def test_a_field_is_one_of_the_display_filter() -> None:
    assert field_of("joinGroup.request.groupId").name == "joinGroup.request.groupId"
    assert has_field("produce.request.topicData")
    assert not has_field("produce.request.topicDta")
