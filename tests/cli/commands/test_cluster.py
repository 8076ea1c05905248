"""``kdissect cluster`` and ``kdissect graph``."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.cli.run import Ran, run
from tests.lab import Case

CAPTURE = Case("cluster43-combined").capture
Command = Callable[..., Ran]


@pytest.fixture
def call(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    return lambda *arguments: run(capsysbinary, *arguments)


def leader_of(ran: Ran, topic: str, partition: int) -> int:
    rows = [json.loads(line) for line in ran.lines]
    (found,) = (row for row in rows if (row["topic"], row["partition"]) == (topic, partition))
    leader: int = found["leader"]
    return leader


def test_a_cluster_is_shown_as_it_was_at_a_time(call: Command) -> None:
    def at(*when: str) -> int:
        ran = call("cluster", CAPTURE, "-z", "partitions", "-T", "ndjson", *when)
        assert (ran.code, ran.err) == (0, "")
        return leader_of(ran, "cluster43-combined-s", 2)

    assert [at("--at", "+20s"), at("--at", "+30s"), at("--at", "+37s"), at()] == [2, -1, 2, 2]
    assert at("--at", "-0s") == 2


def test_an_absolute_time_is_taken(call: Command) -> None:
    ran = call("cluster", CAPTURE, "-z", "changes", "-T", "ndjson")
    first = json.loads(ran.lines[0])
    ms = -(-first["ns"] // 1_000_000)
    assert len(call("cluster", CAPTURE, "-z", "changes", "-T", "ndjson", "--at", f"@{ms}").lines) >= 1


def test_text_has_a_part_for_each_table(call: Command) -> None:
    ran = call("cluster", CAPTURE, "--at", "+30s")
    assert ran.lines[0] == "Cluster JmDRag1LQtSxVsWp_vQmxQ, at 30.000000"
    assert [
        line for line in ran.lines if line in ("brokers", "topics", "partitions", "configs", "changes")
    ] == [*("brokers", "topics", "partitions", "configs", "changes")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cluster", CAPTURE, "--at", "+1h"), "--at +1h: the capture has no packets at that time"),
        (("cluster", CAPTURE, "--at", "-1h"), "--at -1h: the capture has no packets at that time"),
        (("cluster", CAPTURE, "--at", "2001-01-01"), "the capture has no packets at that time"),
        (("cluster", CAPTURE, "--at", "noon"), "--at noon: this is not a time"),
        (("cluster", CAPTURE, "--at", ""), "this is not a time"),
        (("cluster", CAPTURE, "-T", "csv"), "-T csv prints only one table"),
        (("cluster",), "no capture is given"),
        (("graph", CAPTURE, "-T", "svg"), "'svg' is not one of 'dot', 'graphml', 'mermaid', 'json'"),
        (("stats", CAPTURE, "-z", "cluster"), "-z cluster: there is no such table"),
    ],
)
def test_what_cannot_be_shown_is_one_line(call: Command, arguments: tuple[object, ...], said: str) -> None:
    ran = call(*arguments)
    assert (ran.code, ran.out) == (2, b"")
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_a_capture_that_tells_of_no_cluster_says_so(call: Command) -> None:
    ran = call("cluster", CAPTURE, "-Y", "api == ListGroups")
    assert ran.lines == ["The capture shows nothing about a cluster."]
    assert call("cluster", CAPTURE, "-Y", "api == ListGroups", "--exit-status").code == 1


def test_a_graph_can_be_drawn(call: Command) -> None:
    ran = call("graph", CAPTURE)
    assert ran.code == 0
    assert ran.lines[0] == "digraph kafka {"
    assert any('label="cluster43-combined-group"' in line for line in ran.lines)
    assert len(json.loads(call("graph", CAPTURE, "-T", "json").out)["nodes"]) > 5


def test_processes_share_the_work(call: Command) -> None:
    assert call("cluster", CAPTURE, "--jobs", "2").out == call("cluster", CAPTURE).out
