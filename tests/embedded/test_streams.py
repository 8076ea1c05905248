"""AssignmentInfo: the parts of its form that the definitions cannot say."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.embedded.internal import decode_internal, encode_internal
from tests.embedded.official import one

NAME = "AssignmentInfo"


def read(data: bytes) -> Any:
    return decode_internal("streams", None, data, NAME)


def write(version: int, body: Any) -> bytes:
    _, value = encode_internal("streams", NAME, version, None, body)
    assert value is not None
    return value


def test_a_topic_that_is_not_in_the_dictionary_stays_an_index() -> None:
    known = one("streams", NAME, 11)
    data = known.value or b""
    # The dictionary's first entry is replaced by an index that no host uses.
    at = data.index("日本語".encode()) - 6
    found = read(data[:at] + b"\0\0\x03\xe7" + data[at + 4 :])
    hosts = [*found.body["partitionsByHost"], *found.body["standbyPartitionsByHost"]]
    partitions = [partition for host in hosts for partition in host["topicPartitions"]]
    lost = [partition for partition in partitions if "topic" not in partition]
    assert lost
    assert all(set(partition) == {"topicIndex", "partition"} for partition in lost)
    assert [fault.kind for fault in found.faults] == ["embedded"]


def test_a_topology_name_that_is_not_utf16_is_said_in_base64() -> None:
    body = {
        "version": 10,
        "commonlySupportedVersion": 11,
        "activeTasks": [{"topicGroupId": 0, "partition": 0, "topologyName": {"base64": "2AA="}}],
        "standbyTasks": [],
        "partitionsByHost": [],
        "standbyPartitionsByHost": [],
        "errCode": 0,
        "nextRebalanceMs": 0,
    }
    found = read(write(10, body))
    assert found.body == body
    assert [fault.kind for fault in found.faults] == ["embedded"]


def test_an_assignment_that_breaks_off_shows_what_was_read() -> None:
    known = one("streams", NAME, 7)
    found = read((known.value or b"")[:-9])
    assert "nextRebalanceMs" not in found.body
    assert found.body["partitionsByHost"] == known.json["partitionsByHost"]


TOPICS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
HOSTS = st.lists(
    st.fixed_dictionaries(
        {
            "host": TOPICS,
            "port": st.integers(0, 65535),
            "topicPartitions": st.lists(
                st.fixed_dictionaries({"topic": TOPICS, "partition": st.integers(0, 1 << 30)}), max_size=6
            ),
        }
    ),
    max_size=4,
)


@given(active=HOSTS, standby=HOSTS, topology=st.none() | TOPICS.filter(bool))
def test_what_is_written_is_read_back(active: Any, standby: Any, topology: str | None) -> None:
    body = {
        "version": 11,
        "commonlySupportedVersion": 11,
        "activeTasks": [{"topicGroupId": 1, "partition": 2, "topologyName": topology}],
        "standbyTasks": [],
        "partitionsByHost": active,
        "standbyPartitionsByHost": standby,
        "errCode": 0,
        "nextRebalanceMs": 5,
    }
    before = copy.deepcopy(body)
    found = read(write(11, body))
    assert found.body == body == before
    assert found.faults == ()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"partitionsByHost": [{"host": "a", "port": 1}]}, r"partitionsByHost\[0\].topicPartitions: "),
        ({"partitionsByHost": [1]}, r"partitionsByHost\[0\]: an object"),
        ({"activeTasks": None}, "activeTasks: an array"),
        ({"activeTasks": [{"topologyName": 1}]}, r"activeTasks\[0\].topologyName: a string"),
        ({"activeTasks": [{"topologyName": {"base64": "2A=="}}]}, r"activeTasks\[0\].topologyName: whole"),
        (
            {"partitionsByHost": [{"host": "a", "port": 1, "topicPartitions": [{"partition": 1}]}]},
            r"partitionsByHost\[0\].topicPartitions\[0\]: a topic",
        ),
    ],
)
def test_what_does_not_fit_is_not_written(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match="^" + problem):
        write(11, {**one("streams", NAME, 11).json, **change})
