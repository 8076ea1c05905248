"""The small text files."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.logdir.checkpoints import read_facts
from kdissect.model import Fault

KINDS = ("offset-checkpoint", "leader-epoch-checkpoint", "properties", "quorum-state")


def facts(kind: str, text: str | bytes) -> list[dict[str, Any]]:
    found = list(read_facts(kind, text.encode() if isinstance(text, str) else text))
    assert not any(isinstance(each, Fault) for each in found)
    return [each for each in found if not isinstance(each, Fault)]


def faults(kind: str, text: str | bytes) -> list[tuple[str, int | None]]:
    found = read_facts(kind, text.encode() if isinstance(text, str) else text)
    return [(each.kind, each.offset) for each in found if isinstance(each, Fault)]


def test_offsets_of_partitions() -> None:
    assert facts("offset-checkpoint", "0\n2\norders 0 42\n__consumer_offsets 49 7\n") == [
        {"topic": "orders", "partition": 0, "offset": 42},
        {"topic": "__consumer_offsets", "partition": 49, "offset": 7},
    ]


def test_where_leader_epochs_begin() -> None:
    assert facts("leader-epoch-checkpoint", "0\n1\n3 100\n") == [{"epoch": 3, "startOffset": 100}]


@pytest.mark.parametrize("text", ["", "0\n0\n"])
def test_a_checkpoint_without_entries(text: str) -> None:
    assert facts("offset-checkpoint", text) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1\n0\n", [("bad-entry", 0)]),
        ("0\nmany\n", [("bad-entry", 2)]),
        ("0\n", [("bad-entry", 2)]),
        ("0\n1\norders 0\n", [("bad-entry", 4), ("bad-entry", 2)]),
        ("0\n1\norders zero 1\n", [("bad-entry", 4), ("bad-entry", 2)]),
        ("0\n1\norders 0 " + "9" * 5_000, [("bad-entry", 4), ("bad-entry", 2)]),
        ("0\n2\norders 0 1\n", [("bad-entry", 2)]),
        (b"0\n1\n\xff 0 1\n", [("not-utf8", 4)]),
    ],
)
def test_what_is_no_checkpoint_is_told(text: str | bytes, wanted: list[tuple[str, int]]) -> None:
    assert faults("offset-checkpoint", text) == wanted


def test_of_a_long_line_that_is_wrong_only_the_beginning_is_repeated() -> None:
    for text in ("9" * 10_000, "0\n" + "1" * 10_000, "0\n1\n" + "x" * 10_000):
        found = next(read_facts("leader-epoch-checkpoint", text.encode()))
        assert isinstance(found, Fault)
        assert "…" in found.message
        assert len(found.message) < 200


def test_properties_as_java_writes_them() -> None:
    text = "#\n#Sat Nov 21 09:15:30 UTC 2026\nbroker.id=1\ncluster.id=a\\=b\\:\\u00e9\nempty=\n"
    assert facts("properties", text) == [{"broker.id": "1", "cluster.id": "a=b:é", "empty": ""}]


def test_a_partitions_metadata() -> None:
    text = "version: 0\ntopic_id: UoOs6m82SQeMqCWgyM2Sqw"
    assert facts("properties", text) == [{"version": "0", "topic_id": "UoOs6m82SQeMqCWgyM2Sqw"}]


def test_a_line_that_is_no_property_is_told() -> None:
    assert faults("properties", "version: 0\n=\n") == [("bad-entry", 11)]


def test_the_quorums_state() -> None:
    assert facts("quorum-state", '{"leaderId":1,"data_version":1}') == [{"leaderId": 1, "data_version": 1}]
    for text in ("", "[]", "{", "[" * 100_000, "1" * 5_000, '{"a":NaN}', '{"a":-Infinity}', '{"c":1e400}'):
        assert [kind for kind, _ in faults("quorum-state", text)] == ["bad-entry"]


@given(st.sampled_from(KINDS), st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_facts_or_faults(kind: str, data: bytes) -> None:
    for found in read_facts(kind, data):
        assert isinstance(found, dict | Fault)
